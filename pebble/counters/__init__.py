"""Reports of Nsight Compute, and what their counters give away."""

from pebble.counters.profile import MeasuredLaunch, Metric, Profile
from pebble.counters.quantities import QUANTITIES, SECTOR_BYTES, LaunchQuantity, Quantity
from pebble.counters.reading import read_profile

__all__ = [
    "QUANTITIES",
    "SECTOR_BYTES",
    "LaunchQuantity",
    "MeasuredLaunch",
    "Metric",
    "Profile",
    "Quantity",
    "read_profile",
]
