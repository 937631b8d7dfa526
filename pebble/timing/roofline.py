"""The roofline of a chip and where a workload lies below it: numbers for a figure."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.models.rates import Rate


@dataclass(frozen=True)
class Point:
    """A schedule, or the bound.

    Attributes
    ----------
    name : str
    intensity : float
        Operations for each byte to and from DRAM.
    operations_per_second : float
        What the roofs allow at that intensity.
    """

    name: str
    intensity: float
    operations_per_second: float


@dataclass(frozen=True)
class Roofline:
    """Roofs, and points below them.

    Attributes
    ----------
    title, chip : str
    peak, dram : Rate
        Operations, and bytes to and from DRAM, per second.
    l2 : Rate or None
        Bytes from L2 per second; None where the machine file does not say.
    bound : Point
        At the proved least DRAM traffic.
    orders : tuple of Point
        At the simulated DRAM traffic, most first.
    sm_intensity : float or None
        Operations for each byte between L2 and the SMs; it has nothing to say of DRAM.
    sm_formula : str
        What that is.
    """

    title: str
    chip: str
    peak: Rate
    dram: Rate
    l2: Rate | None
    bound: Point
    orders: tuple[Point, ...] = ()
    sm_intensity: float | None = None
    sm_formula: str = ""
