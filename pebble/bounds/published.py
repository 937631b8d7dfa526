"""The published formulas, evaluated on an instance and judged there: one registry for all families.

A formula is taken as proven on its own authority only where its theorem covers the instance and its proof is accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import Any, Literal

from pebble.units import ceil_div, floor_cbrt
from pebble.workloads import Conv2d, Ffn, Gemm
from pebble.workloads.base import Workload

Status = Literal["proven", "not_proven_here", "refuted_here"]


@dataclass(frozen=True)
class Formula:
    """A published formula before it is judged.

    Attributes
    ----------
    name, source : str
        What it is called, and where it stands.
    elements : int
        Its value, rounded down, at least 0.
    holds : bool
        The theorem's premises are met here and its proof is accepted.
    note : str
        Which game the theorem is about.
    counts_traffic : bool
        The number counts what this product bounds, loads plus stores of one fast memory.
    """

    name: str
    source: str
    elements: int
    holds: bool
    note: str
    counts_traffic: bool = True


@dataclass(frozen=True)
class PublishedBound:
    """A formula, and whether its number is a lower bound on this instance; ``note`` says why."""

    name: str
    source: str
    elements: int
    status: Status
    note: str

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "name": self.name,
            "elements": self.elements,
            "status": self.status,
            "note": self.note,
            "source": self.source,
        }


def judge(formula: Formula, lower_elements: int, upper_elements: int | None) -> PublishedBound:
    """Say what a published number is worth here.

    A number that its theorem proves, or that does not exceed our proven bound, is proven. A number above a
    schedule that was found is refuted. Anything between is open. Without a schedule (None) nothing is refuted.
    """
    status: Status
    value = formula.elements
    if not formula.counts_traffic:
        status, reason = "not_proven_here", "it counts something else"
    elif upper_elements is not None and value > upper_elements:
        status, reason = "refuted_here", f"a legal schedule moves only {upper_elements:,} elements"
    elif formula.holds:
        status, reason = "proven", "its theorem covers this instance"
    elif value <= lower_elements:
        status, reason = "proven", "not by its own theorem, but our bound implies this number"
    else:
        status, reason = "not_proven_here", "above our bound, and no schedule known refutes it"
    return PublishedBound(formula.name, formula.source, value, status, f"{reason}; {formula.note}")


def _leading(products: int, capacity: int, overlap: int = 1) -> int:
    """2 V / sqrt(R S), rounded down."""
    return isqrt(4 * products**2 // (overlap * capacity))


def compulsory(workload: Workload, capacity: int, processors: int) -> Formula:
    """Each input once, each output once; for every capacity, from an empty fast memory."""
    gemm = isinstance(workload, Gemm)
    note = "every input is read and every output written at least once" if gemm else "every value moves at least once"
    return Formula("compulsory", "folklore", workload.compulsory_elements, True, note)


def irony_toledo_tiskin(workload: Workload, capacity: int, processors: int) -> Formula | None:
    """V / (2 sqrt 2 sqrt S) - S, with V = mnk: "Communication lower bounds for distributed-memory matrix
    multiplication", JPDC 64, 2004."""
    if not isinstance(workload, Gemm):
        return None
    return Formula(
        "irony-toledo-tiskin",
        "Irony, Toledo, Tiskin 2004",
        max(0, isqrt(workload.multiply_adds**2 // (8 * capacity)) - capacity),
        True,
        "loads plus stores, any order of the work; 0 where the formula is negative",
    )


def smith(workload: Workload, capacity: int, processors: int) -> Formula | None:
    """2 V / sqrt S - 2 S: "A tight I/O lower bound for matrix multiplication", arXiv 1702.02017, 2019."""
    if not isinstance(workload, Gemm):
        return None
    return Formula(
        "smith-et-al",
        "Smith, Lowery, Langou, van de Geijn 2019",
        max(0, _leading(workload.multiply_adds, capacity) - 2 * capacity),
        workload.accumulate,
        "the theorem counts loads of C += AB, from any initial cache; 0 where the formula is negative",
    )


def cosma(workload: Workload, capacity: int, processors: int) -> Formula | None:
    """2 V / sqrt S + mn: "Red-blue pebbling revisited: near optimal parallel matrix-matrix multiplication", SC'19.

    False for C := AB when k < 2 sqrt S and m, n are much larger than k: with m = n = 400, k = 10, S = 400 it says
    320,000 and a legal schedule moves 207,800.
    """
    if not isinstance(workload, Gemm):
        return None
    return Formula(
        "cosma",
        "Kwasniewski et al., SC'19, Theorem 1",
        _leading(workload.multiply_adds, capacity) + workload.m * workload.n,
        False,
        "the +mn term is false for C := AB when k < 2 sqrt(S) and m, n >> k",
    )


def memory_independent(workload: Workload, capacity: int, processors: int) -> Formula | None:
    """Words into one of P processors (the SMs), not traffic with slow memory: see `words_per_processor`."""
    if not isinstance(workload, Gemm):
        return None
    words, regime = words_per_processor(workload.m, workload.n, workload.k, processors)
    return Formula(
        "parallel-memory-independent",
        "Al Daas, Ballard, Grigori, Kumar, Rouse 2022",
        words,
        False,
        f"regime {regime} of 3: words received by one of P={processors} processors that split the work evenly and "
        "hold one copy of the data, not loads and stores of one fast memory",
        counts_traffic=False,
    )


def soap(workload: Workload, capacity: int, processors: int) -> Formula | None:
    """2 m n (k + p) / sqrt S for a product m x k x n followed by m x n x p, as IOLB (Olivry et al., PLDI'20) and SOAP
    (Kwasniewski et al., SPAA'21) derive it. False when k + p < 2 sqrt S, where fusing the two beats it."""
    if not isinstance(workload, Ffn) or workload.gated:
        return None
    return Formula(
        "iolb-soap",
        "Olivry et al. 2020; Kwasniewski et al. 2021, leading term",
        _leading(workload.multiply_adds, capacity),
        False,
        "a leading term, which treats the two products apart; false when k + p < 2 sqrt(S)",
    )


def seven_nested_loops(workload: Workload, capacity: int, processors: int) -> Formula | None:
    """2 V / sqrt(R S) - 2 S for a convolution."""
    if not isinstance(workload, Conv2d):
        return None
    return Formula(
        "seven-nested-loops",
        "Chen et al. 2020, and the 7NL bound of 2022",
        max(0, _leading(workload.multiply_adds, capacity, workload.overlap) - 2 * capacity),
        False,
        "the theorem counts loads of a convolution that reads its output; 0 where the formula is negative",
    )


FORMULAS: tuple[Callable[[Workload, int, int], Formula | None], ...] = (
    compulsory,
    irony_toledo_tiskin,
    smith,
    cosma,
    memory_independent,
    soap,
    seven_nested_loops,
)


def published_bounds(workload: Workload, capacity: int, processors: int = 1) -> tuple[Formula, ...]:
    """The published formulas that are about a workload, evaluated on it.

    Parameters
    ----------
    workload : Workload
        Of any family.
    capacity : int
        S, values that fast memory holds.
    processors : int
        P, for the parallel memory-independent bound: the number of SMs.
    """
    found = (formula(workload, capacity, processors) for formula in FORMULAS)
    return tuple(formula for formula in found if formula is not None)


def words_per_processor(m: int, n: int, k: int, processors: int) -> tuple[int, int]:
    """Words that some processor must receive when P processors share the work and hold one copy of the data.

    Al Daas, Ballard, Grigori, Kumar and Rouse, "Tight memory-independent parallel matrix multiplication communication
    lower bounds", SPAA 2022: three regimes with their constants.

    Parameters
    ----------
    m, n, k : int
        Dimensions; the theorem sorts them.
    processors : int
        P, at least 1.

    Returns
    -------
    words, regime : int
        D - (mn + mk + nk) / P rounded down, at least 0, and which of the three regimes gave D.

    Examples
    --------
    >>> words_per_processor(4096, 4096, 4096, 1)
    (0, 1)
    """
    n1, n2, n3 = sorted((m, n, k), reverse=True)
    share = ceil_div(n1 * n2 + n1 * n3 + n2 * n3, processors)
    if processors * n2 <= n1:
        regime, words = 1, (n1 * n2 + n1 * n3) // processors + n2 * n3
    elif processors * n3 * n3 <= n1 * n2:
        regime, words = 2, isqrt(4 * n1 * n2 * n3 * n3 // processors) + n1 * n2 // processors
    else:
        regime, words = 3, floor_cbrt(27 * (n1 * n2 * n3) ** 2 // processors**2)
    return max(0, words - share), regime
