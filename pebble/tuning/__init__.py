"""Search for schedules that move little: what can be tried, what it moves, and the way from coarse to fine."""

from pebble.families.spaces.candidate import Candidate, Condition, measure, runnable
from pebble.tuning.alternatives import OtherLaunch, SetAside, launches, set_asides
from pebble.tuning.progress import Progress, silent, told_to, with_bar
from pebble.tuning.search import Scored, Search, space_of

__all__ = [
    "Candidate",
    "Condition",
    "OtherLaunch",
    "Progress",
    "Scored",
    "Search",
    "SetAside",
    "launches",
    "measure",
    "runnable",
    "set_asides",
    "silent",
    "space_of",
    "told_to",
    "with_bar",
]
