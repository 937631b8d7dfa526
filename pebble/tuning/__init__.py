"""Search for schedules that move little: what can be tried, what it moves, and the way from coarse to fine."""

from pebble.families.spaces.candidate import Candidate, Condition, measure, runnable
from pebble.tuning.alternatives import OtherLaunch, SetAside, launches, set_asides
from pebble.tuning.objectives import (
    BYTES,
    NAMES,
    Objective,
    TuningProblem,
    default_objective,
    objective_of,
    timed_by_traffic,
)
from pebble.tuning.progress import Progress, as_progress, silent, with_bar
from pebble.tuning.search import Scored, Search, space_of

__all__ = [
    "BYTES",
    "NAMES",
    "Candidate",
    "Condition",
    "Objective",
    "OtherLaunch",
    "Progress",
    "Scored",
    "Search",
    "SetAside",
    "TuningProblem",
    "as_progress",
    "default_objective",
    "launches",
    "measure",
    "objective_of",
    "runnable",
    "set_asides",
    "silent",
    "space_of",
    "timed_by_traffic",
    "with_bar",
]
