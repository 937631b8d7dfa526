"""Search for schedules that move little: what can be tried, what it moves, and the way from coarse to fine."""

from pebble.tuning.evaluate import Candidate, Condition, measure, runnable
from pebble.tuning.search import Scored, Search, space_of

__all__ = ["Candidate", "Condition", "Scored", "Search", "measure", "runnable", "space_of"]
