"""How a kernel runs, what its trace moves through a cache, and one trace at many capacities."""

from pebble.simulation.curves import ScheduleCurve, curve_of
from pebble.simulation.kernel import KernelConfig, Traffic, simulate_trace

__all__ = ["KernelConfig", "ScheduleCurve", "Traffic", "curve_of", "simulate_trace"]
