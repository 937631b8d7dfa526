"""Irony, Toledo, Tiskin, "Communication lower bounds for distributed-memory matrix multiplication", JPDC 64, 2004."""

from math import isqrt

from pebble.bounds.base import Formula
from pebble.workloads import Gemm


def formula(gemm: Gemm, capacity: int) -> Formula:
    """V / (2 sqrt 2 sqrt S) - S, with V = mnk: loads plus stores."""
    return Formula(
        name="irony-toledo-tiskin",
        source="Irony, Toledo, Tiskin 2004",
        elements=max(0, isqrt(gemm.multiply_adds**2 // (8 * capacity)) - capacity),
        holds=True,
        note="loads plus stores, any order of the work; 0 where the formula is negative",
    )
