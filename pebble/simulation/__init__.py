"""How a kernel runs, what its trace moves through a cache, and one trace at many capacities."""

from pebble.simulation.kernel import KernelConfig, ScheduleCurve, Traffic, curve_of, simulate_trace

__all__ = ["KernelConfig", "ScheduleCurve", "Traffic", "curve_of", "simulate_trace"]
