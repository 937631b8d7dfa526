"""Search for schedules that move little: what can be tried, what it moves, and the way from coarse to fine."""

from pebble.families.spaces.candidate import Candidate, Condition, measure, runnable
from pebble.tuning.alternatives import OtherLaunch, SetAside, launches, set_asides
from pebble.tuning.objectives import BYTES, NAMES, Asked, Objective, as_moved, default_objective, objective_of
from pebble.tuning.progress import Progress, silent, told_to, with_bar
from pebble.tuning.search import Scored, Search, space_of

__all__ = [
    "BYTES",
    "NAMES",
    "Asked",
    "Candidate",
    "Condition",
    "Objective",
    "OtherLaunch",
    "Progress",
    "Scored",
    "Search",
    "SetAside",
    "as_moved",
    "default_objective",
    "launches",
    "measure",
    "objective_of",
    "runnable",
    "set_asides",
    "silent",
    "space_of",
    "told_to",
    "with_bar",
]
