"""Advisors of tile sizes: one rule a file, and the registry of them."""

from pebble.tuning.advisors.advisor import Advice, Advisor
from pebble.tuning.advisors.ours import TimedKernel, Timer, best_timed
from pebble.tuning.advisors.registry import ADVISORS, parse_advisor

__all__ = ["ADVISORS", "Advice", "Advisor", "TimedKernel", "Timer", "best_timed", "parse_advisor"]
