r"""For how many segments multipliers of Theorem 10 are looked for, so that the bound hardly rises as S grows.

For one number :math:`h` of segments the best multipliers prove less in a larger memory, for the right side falls with
:math:`S` whatever they are, and the search for them ends within 5/10,000 of the best that it sees. The choice of
:math:`h` is rougher: multipliers far from the best make it, and where it changed from one :math:`S` to the next the
bound rose by up to 17/10,000. So it is made at memories of few binary digits alone, and the bound in any other is the
largest for what was chosen at the two next to it: neighbours nearly always share their numbers of segments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import NamedTuple

from pebble.bounds.chain_lines import ChainLines
from pebble.bounds.lagrangian import LagrangianChain, lagrangian_chains
from pebble.bounds.lagrangian_bound import LagrangianBound
from pebble.bounds.lagrangian_search import CLOSE, Search
from pebble.bounds.line_search import line_bound
from pebble.bounds.uses import Goal, Use
from pebble.workloads.widths import Widths

_DIGITS = 5  # binary ones, of a memory that multipliers are looked for at
_ROUGH = 10 * CLOSE  # of the first multipliers
_SHORTEST, _DEEPEST = 1.0, 40.0  # k + l in units of sqrt(S)
_FEWEST, _SMALLEST = 1 << 20, 1000  # products in all, and of a segment
_GAIN = 1.2  # more than Theorem 10 has ever proved over Theorem 8


class Hint(NamedTuple):
    """What Theorem 8, or B4, proves in some memory."""

    problem: LagrangianChain  #: in which form
    segments: int
    units: int  #: what it proves


@dataclass(frozen=True)
class ByMultipliers(Use):
    """Theorem 10 of a chain, in values or in bytes, about the segments of the line theorem."""

    lines: ChainLines
    slow = True

    def proofs(self, goal: Goal) -> tuple[LagrangianBound, ...]:
        """Where it may prove more than the others."""
        chain, widths = self.lines.chain, self.lines.widths
        problems, uses = {problem.form: problem for problem in lagrangian_chains(chain, widths)}, self.lines.about
        unit = widths.unit

        def hint(at: int) -> Hint:
            best = max((line_bound(problem, unit * at) for problem in uses), key=lambda proof: proof.elements)
            return Hint(problems[best.form], best.segments, best.elements)

        bound = lagrangian_bound(hint, goal.capacity // unit, goal.least // unit) if uses else None
        return (bound,) if bound is not None and bound.bytes > goal.least else ()

    def weighted(self, widths: Widths) -> tuple[ByMultipliers, ...]:
        """With every value at its width."""
        return tuple(map(ByMultipliers, self.lines.weighted(widths)))

    def on_sms(self) -> tuple[()]:
        """Nothing: it counts two moves for a partial sum that leaves and returns."""
        return ()

    @property
    def about(self) -> tuple[()]:
        """The lines tell theirs."""
        return ()


def worth_a_try(problem: LagrangianChain, capacity: int, segments: int) -> bool:
    """Whether better multipliers may prove more: vectors not short nor very long beside sqrt(S), segments not tiny."""
    many = problem.work >= max(_FEWEST, _SMALLEST * segments)
    return segments > 1 and _SHORTEST <= _depth(problem, capacity) <= _DEEPEST and many


def _depth(problem: LagrangianChain, capacity: int) -> float:
    return (problem.k + problem.l) / sqrt(capacity)


def lagrangian_bound(hint: Callable[[int], Hint], capacity: int, least: int) -> LagrangianBound | None:
    """Theorem 10 with about the best multipliers; None where it is not worth a try.

    Parameters
    ----------
    hint : callable
        S -> what Theorem 8, or B4, proves there.
    capacity : int
        S, in the problem's units.
    least : int
        What is proved otherwise, in units.
    """
    here = hint(capacity)
    if here.units * _GAIN < least or here.problem.work < _FEWEST:
        return None
    by_problem: dict[LagrangianChain, set[int]] = {}
    for at, spec in _memories(hint, here.problem, capacity):
        by_problem.setdefault(spec.problem, set()).update(best_segments(spec.problem, at, spec.segments))
    results = [multipliers_at(problem, capacity, tuple(sorted(numbers))) for problem, numbers in by_problem.items()]
    return max((item for item in results if item), key=lambda single: single.elements, default=None)


def _memories(hint: Callable[[int], Hint], problem: LagrangianChain, capacity: int) -> Iterator[tuple[int, Hint]]:
    """The two memories next to S that are worth a try: below those that are, the least ones up to twice S.

    Half of the least memory is so small that Theorem 8 proves more there than Theorem 10 does at that one.
    """
    step = 1 << max(0, capacity.bit_length() - _DIGITS)
    at, two = capacity - capacity % step, 2
    while two and at <= 2 * capacity and _depth(problem, at) >= _SHORTEST:
        spec = hint(at) if _depth(problem, at) <= _DEEPEST else None
        if spec is not None and worth_a_try(spec.problem, at, spec.segments):
            two -= 1
            yield at, spec
        at += 1 << max(0, at.bit_length() - _DIGITS)


@lru_cache(maxsize=1 << 10)
def best_segments(problem: LagrangianChain, capacity: int, segments: int) -> tuple[int, ...]:
    """About the two best numbers of segments in one memory, from that of Theorem 8 on."""
    search, tried = Search(problem, capacity), dict[int, float]()

    def roughly(h: int) -> float:
        if h not in tried:
            tried[h] = search.solve(h, 0.1, _ROUGH) if h > 1 else 0.0
        return tried[h]

    best, step = segments, max(1, round(segments / 8))
    roughly(best)
    up = search.at(best + step) > search.at(max(1, best - step))
    for way in (step, -step) if up else (-step, step):
        while best + way > 0 and roughly(best + way) > roughly(best):
            best += way
    # rough multipliers get better from one number to the next, so that the second may be the first
    return tuple(sorted((h for h in tried if h > 1), key=roughly, reverse=True)[:2])


@lru_cache(maxsize=1 << 10)
def multipliers_at(problem: LagrangianChain, capacity: int, segments: tuple[int, ...]) -> LagrangianBound | None:
    """Theorem 10 with about the best multipliers, for the best of some numbers of segments."""
    search, ends = Search(problem, capacity), []
    for h in sorted(segments, key=lambda h: search.solve(h, 0.1, _ROUGH))[-2:]:
        ends.append((search.solve(h, 0.1), search.optimum))
    search.optimum = max(ends, key=lambda end: end[0])[1]
    return search.exact()
