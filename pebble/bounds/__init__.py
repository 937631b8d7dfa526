"""Lower bounds: one theorem per file, and the registry of published ones.

Nothing in this package knows a schedule: what a bound is worth against one is judged by the caller.
"""

from __future__ import annotations

from pebble.bounds import compulsory, cosma, irony_toledo_tiskin, memory_independent, smith
from pebble.bounds.base import Formula, LowerBound, PublishedBound, judge
from pebble.bounds.gemm import gemm_lower_bound
from pebble.workloads import Gemm

GEMM_FORMULAS = (
    compulsory.formula,
    irony_toledo_tiskin.formula,
    smith.formula,
    cosma.formula,
)


def published_gemm_bounds(gemm: Gemm, capacity: int, processors: int = 1) -> tuple[Formula, ...]:
    """The published formulas, evaluated on this instance.

    Parameters
    ----------
    gemm : Gemm
        The problem.
    capacity : int
        S, values that fast memory holds.
    processors : int
        P, for the parallel memory-independent bound: the number of SMs.
    """
    return (
        *(formula(gemm, capacity) for formula in GEMM_FORMULAS),
        memory_independent.formula(gemm, processors),
    )


__all__ = [
    "GEMM_FORMULAS",
    "Formula",
    "LowerBound",
    "PublishedBound",
    "gemm_lower_bound",
    "judge",
    "published_gemm_bounds",
]
