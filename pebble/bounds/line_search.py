r"""Which segments and prices the line bound is taken at: for each :math:`h` the best :math:`\mu`, and the best of all.

For given :math:`h` and :math:`\rho` the right side of Theorem 7 is concave in :math:`\mu`, and the memory enters it
through :math:`\rho (h - 1) S` alone. So the best :math:`\mu` is found once for each :math:`h`, whatever :math:`S` is,
and the bound is the largest of lines that fall as :math:`S` grows. The search is in floating point; what it finds is
evaluated exactly.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cache, lru_cache
from math import isqrt
from typing import Any

from pebble.bounds.base import Theorem
from pebble.bounds.box import shares_of
from pebble.bounds.lines import BITS, PRICE_BITS, Cut, Problem
from pebble.units import ceil_div

METHOD = "line accounting"
_MOST_PRODUCTS = 2**100  # of any workload
_STRIDES = (16, 1), (4, 1), (1, 3)  # of the search for h, and so many steps without gain end it
_STEPS = 24  # of the search for mu, at most
_CLOSE = 1e-7  # of the bound: what a better mu may still gain when the search for it ends
_SMALLEST_MU, _LARGEST_MU = 1e-18, 64.0


@dataclass(frozen=True)
class LineBound:
    """Theorem 7 or 8 on an instance."""

    method: str  #: what the bound is called
    problem: Problem  #: kinds of values, products, and what moves besides
    capacity: int  #: S
    cut: Cut  #: h, mu and rho
    minima: tuple[Any, ...]  #: for each kind the number of segments at which it is charged least
    elements: int  #: values moved at least

    @property
    def theorem(self) -> Theorem:
        """What it rests on."""
        return self.problem.theorem

    @property
    def form(self) -> str:
        """Which of the workload's boxes it is about."""
        return self.problem.form

    @property
    def segments(self) -> int:
        """How many there are, h."""
        return self.cut.segments

    @property
    def shares(self) -> tuple[tuple[int, int], ...]:
        """(products of a segment, how many segments have so many)."""
        return shares_of(self.problem.work, self.segments)

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        h, work = self.segments, self.problem.work
        return {
            "products": work,
            "segments": h,
            "share_multiply_adds": work // h,
            "share_products": [work // h, ceil_div(work, h)],
            "held_at_cuts": (h - 1) * self.capacity,
            "mu": f"{self.cut.mu}/{1 << PRICE_BITS}",
            "rho": f"{self.cut.rho}/{1 << PRICE_BITS}",
            "segments_of_a_value": {kind.name: at for kind, at in zip(self.problem.kinds, self.minima, strict=True)},
            "added_elements": self.problem.added,
        }


def line_bound(problem: Problem, capacity: int, method: str = METHOD) -> LineBound:
    """Theorem 7 with about the best h, mu and rho: a few milliseconds for any size.

    Parameters
    ----------
    problem : Problem
    capacity : int
        S, in what the problem counts: values, or bytes.
    method : str
        What the bound is called.
    """
    best: tuple[int, Cut, tuple[Any, ...]] | None = None
    at = _first_guess(problem, capacity)
    for rho in problem.prices:
        cut, at = _best_segments(problem, capacity, rho, at)
        total, minima = problem.value(capacity, cut)
        if best is not None and total <= best[0]:
            break
        best = total, cut, minima
    assert best is not None
    total, cut, minima = best
    return LineBound(method, problem, capacity, cut, minima, -((-total) >> BITS))


def _first_guess(problem: Problem, capacity: int) -> int:
    """Where in the list the best h is about: segments of S^1.5 products, or of slabs as deep as the shortest line."""
    shortest = min(kind.length for kind in problem.kinds)
    products = max(isqrt(capacity**3), capacity**2 // shortest)
    return bisect_right(_segment_counts(), max(1, problem.work // products)) - 1


def _best_segments(problem: Problem, capacity: int, rho: float, start: int) -> tuple[Cut, int]:
    """The best h for one rho, and where it is: up and down the list, the same for every S, in smaller steps."""
    numbers = _segment_counts()

    def value(at: int) -> float:
        return best_mu(problem, numbers[at], rho)[0] - rho * (numbers[at] - 1) * capacity

    last = bisect_right(numbers, problem.work) - 1
    best = min(last, start)
    for stride, patience in _STRIDES:
        for step in (stride, -stride):
            at, idle = best + step, 0
            while idle < patience and 0 <= at <= last:
                best, idle = (at, 0) if value(at) > value(best) else (best, idle + 1)
                at += step
    mu = best_mu(problem, numbers[best], rho)[1]
    return Cut(numbers[best], int(mu * (1 << PRICE_BITS)), int(rho * (1 << PRICE_BITS))), best


@cache
def _segment_counts() -> tuple[int, ...]:
    """The numbers of segments that are looked at: each larger than the one before by 1/16 of it, 1 at least."""
    found = [1]
    while found[-1] < _MOST_PRODUCTS:
        found.append(found[-1] + max(1, found[-1] // 16))
    return tuple(found)


@lru_cache(maxsize=4096)
def best_mu(problem: Problem, segments: int, rho: float) -> tuple[float, float]:
    """The right side but for the room at the cuts, at its largest, and mu there.

    It is concave and made of straight pieces: where the tangents at two sides of the top meet is tried next, and it is
    the top if it lies on both.
    """
    if segments == 1:  # nothing is held or moved again, whatever mu is
        return problem.rough(1, 0.0, rho)[0], 0.0

    def at(mu: float) -> tuple[float, float, float]:
        return (mu, *problem.rough(segments, mu, rho))

    low = high = at(min(1.0, rho) * (segments / problem.work) ** (1 / 3))  # where all lines are cut alike
    factor = 1.25
    while high[2] > 0 and high[0] < _LARGEST_MU:
        low, high, factor = high, at(high[0] * factor), factor * factor
    while low[2] <= 0 and low[0] > _SMALLEST_MU:
        low, high, factor = at(low[0] / factor), low, factor * factor
    for step in range(_STEPS):
        (mu, value, slope), (far, other, falls) = low, high
        if slope <= falls:
            break
        meet = mu + (other - value - falls * (far - mu)) / (slope - falls)
        top = value + slope * (meet - mu)
        # every third time half way, so that neither side stays for long
        middle = at(meet if step % 3 < 2 and mu < meet < far else (mu + far) / 2)
        low, high = (middle, high) if middle[2] > 0 else (low, middle)
        if top - max(low[1], high[1]) <= _CLOSE * abs(top):
            break
    return max((low[1], low[0]), (high[1], high[0]))
