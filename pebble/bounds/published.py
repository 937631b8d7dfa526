"""The published formulas, evaluated on an instance and judged there; a family says which are about it.

===========================  ==========================================  ==============================================
name                         formula, with V multiply-adds               where it stands
===========================  ==========================================  ==============================================
compulsory                   each input once, each output once           folklore; for every capacity
irony-toledo-tiskin          V / (2 sqrt 2 sqrt S) - S                   Irony, Toledo, Tiskin, JPDC 64, 2004
smith-et-al                  2 V / sqrt S - 2 S, loads of C += AB        Smith, Lowery, Langou, van de Geijn, arXiv
                                                                         1702.02017, 2019
cosma                        2 V / sqrt S + mn                           Kwasniewski and others, SC'19
parallel-memory-independent  words into one of P processors              Al Daas and others, SPAA'22
iolb-soap                    2 V / sqrt S for a chain of two products    Olivry and others, PLDI'20; Kwasniewski and
                                                                         others, SPAA'21
seven-nested-loops           2 V / sqrt(R S) - 2 S for a convolution     Chen and others 2020; the 7NL bound of 2022
===========================  ==========================================  ==============================================

A formula is proven on its own authority only where its theorem covers the instance and its proof is accepted. Never so:
cosma, false for C := AB when k < 2 sqrt S and m, n are much larger than k (with m = n = 400, k = 10, S = 400 it says
320,000 and a legal schedule moves 207,800); iolb-soap, false when k + p < 2 sqrt S, where fusing the two products beats
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Any, Literal

from pebble.bounds.accounting import COMPULSORY
from pebble.units import ceil_div, floor_cbrt

Status = Literal["proven", "not_proven_here", "refuted_here"]


@dataclass(frozen=True)
class Formula:
    """A published formula on an instance."""

    name: str  #: what it is called
    source: str  #: where it stands
    elements: int  #: its value, rounded down, at least 0
    holds: bool  #: the theorem's premises are met here and its proof is accepted
    note: str  #: which game the theorem is about
    counts_traffic: bool = True  #: it counts what this product bounds, loads plus stores of one fast memory

    def judge(self, lower_elements: int, upper_elements: int | None) -> tuple[Status, str]:
        """What the number is worth here, and why.

        A number that its theorem proves, or that does not exceed our proven bound, is proven. A number above a
        schedule that was found is refuted. Anything between is open. Without a schedule (None) nothing is refuted.
        """
        if not self.counts_traffic:
            return "not_proven_here", "it counts something else"
        if upper_elements is not None and self.elements > upper_elements:
            return "refuted_here", f"a legal schedule moves only {upper_elements:,} elements"
        if self.holds:
            return "proven", "its theorem covers this instance"
        if self.elements <= lower_elements:
            return "proven", "not by its own theorem, but our bound implies this number"
        return "not_proven_here", "above our bound, and no schedule known refutes it"

    def to_json(self, lower_elements: int, upper_elements: int | None) -> dict[str, Any]:
        """Plain data for ``--json``, judged between our bound and our schedule."""
        status, why = self.judge(lower_elements, upper_elements)
        fields = {"name": self.name, "elements": self.elements, "status": status}
        return {**fields, "note": f"{why}; {self.note}", "source": self.source}


def compulsory_formula(least: int, note: str = "every value moves at least once") -> Formula:
    """``least`` values, as each input is read and each output written."""
    return Formula(COMPULSORY, "folklore", least, True, note)


def product_formulas(m: int, n: int, k: int, accumulate: bool, capacity: int, processors: int) -> tuple[Formula, ...]:
    """What is published on a matrix product."""
    products = m * n * k
    leading = isqrt(4 * products**2 // capacity)
    words, regime = words_per_processor(m, n, k, processors)
    return (
        Formula(
            "irony-toledo-tiskin",
            "Irony, Toledo, Tiskin 2004",
            max(0, isqrt(products**2 // (8 * capacity)) - capacity),
            True,
            "loads plus stores, any order of the work; 0 where the formula is negative",
        ),
        Formula(
            "smith-et-al",
            "Smith, Lowery, Langou, van de Geijn 2019",
            max(0, leading - 2 * capacity),
            accumulate,
            "the theorem counts loads of C += AB, from any initial cache; 0 where the formula is negative",
        ),
        Formula(
            "cosma",
            "Kwasniewski et al., SC'19, Theorem 1",
            leading + m * n,
            False,
            "the +mn term is false for C := AB when k < 2 sqrt(S) and m, n >> k",
        ),
        Formula(
            "parallel-memory-independent",
            "Al Daas, Ballard, Grigori, Kumar, Rouse 2022",
            words,
            False,
            f"regime {regime} of 3: words received by one of P={processors} processors that split the work "
            "evenly and hold one copy of the data, not loads and stores of one fast memory",
            counts_traffic=False,
        ),
    )


def chain_formula(products: int, capacity: int) -> Formula:
    """What is published on two products in a row."""
    source = "Olivry et al. 2020; Kwasniewski et al. 2021, leading term"
    note = "a leading term, which treats the two products apart; false when k + p < 2 sqrt(S)"
    return Formula("iolb-soap", source, isqrt(4 * products**2 // capacity), False, note)


def convolution_formula(products: int, overlap: int, capacity: int) -> Formula:
    """What is published on a convolution in which one input value meets ``overlap`` pairs of pixel and tap."""
    value = isqrt(4 * products**2 // (overlap * capacity)) - 2 * capacity
    note = "the theorem counts loads of a convolution that reads its output; 0 where the formula is negative"
    return Formula("seven-nested-loops", "Chen et al. 2020, and the 7NL bound of 2022", max(0, value), False, note)


def words_per_processor(m: int, n: int, k: int, processors: int) -> tuple[int, int]:
    """Words that some processor must receive when P processors share a GEMM and hold one copy of the data.

    Returns
    -------
    words, regime : int
        D - (mn + mk + nk) / P rounded down, at least 0, and which of the three regimes of Al Daas and others gave D.

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
