"""Reports of Nsight Compute, and what their counters give away."""

from pebble.counters.profile import Launch, Metric, Profile
from pebble.counters.quantities import QUANTITIES, SECTOR_BYTES, Found, Quantity
from pebble.counters.reading import read_profile

__all__ = ["QUANTITIES", "SECTOR_BYTES", "Found", "Launch", "Metric", "Profile", "Quantity", "read_profile"]
