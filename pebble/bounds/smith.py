"""Smith, Lowery, Langou, van de Geijn, "A tight I/O lower bound for matrix multiplication", arXiv 1702.02017, 2019."""

from math import isqrt

from pebble.bounds.base import Formula
from pebble.workloads import Gemm


def formula(gemm: Gemm, capacity: int) -> Formula:
    """2 V / sqrt S - 2 S: loads only, for C += A B, whatever the cache holds at the start."""
    return Formula(
        name="smith-et-al",
        source="Smith, Lowery, Langou, van de Geijn 2019",
        elements=max(0, isqrt(4 * gemm.multiply_adds**2 // capacity) - 2 * capacity),
        holds=gemm.accumulate,
        note="the theorem counts loads of C += AB, from any initial cache; 0 where the formula is negative",
    )
