"""In how many segments Theorem 15 is tried, and what it then proves: cases are grown where they prove most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import floor, log

from pebble.bounds.cases import MOST_SEGMENTS, OFFSETS, Parting, Prices, boxes
from pebble.bounds.cases_bound import CasesBound
from pebble.bounds.cases_search import Branching, Node
from pebble.bounds.cases_value import CaseValue
from pebble.bounds.chain_lines import ChainLines
from pebble.bounds.lagrangian import LagrangianChain, lagrangian_chains
from pebble.bounds.linear_program import Array
from pebble.bounds.lines import MULTIPLIER_BITS
from pebble.bounds.uses import Goal, Use
from pebble.workloads.widths import Widths

_FEWEST = 1 << 20  # products in all: in small games whole numbers say more
MAX_CASES = 10_000
_TRIED, _BEST = (8, 4), 2  # parts of the cases for each number of segments that is tried, and for each of the two best
_LESS, _MORE = 1, 2  # segments than V / S^1.5


@dataclass(frozen=True)
class ByCases(Use):
    """Theorem 15 of a chain, in values or in bytes, where cases are asked for."""

    lines: ChainLines
    slow = True

    def proofs(self, goal: Goal) -> tuple[CasesBound, ...]:
        """Where it proves more than the others."""
        if not goal.cases:
            return ()
        chain, widths = self.lines.chain, self.lines.widths
        problems = lagrangian_chains(chain, widths)
        bound = cases_bound(problems, goal.capacity // widths.unit, goal.cases)
        return (bound,) if bound is not None and bound.bytes > goal.least else ()

    def weighted(self, widths: Widths) -> tuple[ByCases, ...]:
        """With every value at its width."""
        return tuple(map(ByCases, self.lines.weighted(widths)))

    def on_sms(self) -> tuple[()]:
        """Nothing: it counts two moves for a partial sum that leaves and returns."""
        return ()

    @property
    def about(self) -> tuple[()]:
        """The lines tell theirs."""
        return ()


@lru_cache(maxsize=64)
def cases_bound(problems: tuple[LagrangianChain, ...], capacity: int, cases: int) -> CasesBound | None:
    """Theorem 15 in the best of its forms and of some numbers of segments; None where it is not tried.

    Parameters
    ----------
    problems : tuple of LagrangianChain
        The forms of a chain.
    capacity : int
        S, in their units.
    cases : int
        At most so many are distinguished, counted with those that were parted; some more are tried.
    """
    grown = []
    for problem in problems:
        if problem.work < _FEWEST or problem.hidden < problem.read or problem.partial < problem.written:
            continue
        for h in numbers(problem, capacity):
            grown.append((problem, Branching(problem, capacity, even(problem.work, h))))
    for part in (*_TRIED, 1):
        for _, branching in grown:
            branching.grow(cases // part)
        grown.sort(key=lambda item: item[1].value * capacity + item[0].added, reverse=True)
        grown = grown[: 1 if part == _TRIED[-1] else _BEST]
    return exact(grown[0][0], capacity, grown[0][1]) if grown else None


def numbers(problem: LagrangianChain, capacity: int) -> Iterator[int]:
    """The numbers of segments that are tried."""
    usual = floor(problem.work / capacity**1.5)
    return (h for h in range(max(2, usual - _LESS), usual + _MORE + 1) if h <= MOST_SEGMENTS)


def even(work: int, segments: int) -> tuple[int, ...]:
    """Segments of equal work, the first ones a product more."""
    small, larger = divmod(work, segments)
    return (small + 1,) * larger + (small,) * (segments - larger)


def exact(problem: LagrangianChain, capacity: int, branching: Branching) -> CasesBound:
    """What the cases that were found prove."""
    sizes, tree, values = branching.search.sizes, tuple(_tree(branching, branching.root)), []
    charged: dict[Prices, tuple[CaseValue, int]] = {}
    for box, prices in boxes(tree, sizes, problem.products[0]):
        if prices not in charged:
            case = CaseValue(problem, capacity, sizes, prices)
            charged[prices] = case, case.charged()
        case, values_charged = charged[prices]
        values.append(case.in_box(values_charged, box))
    return CasesBound(problem, capacity, sizes, tree, min(values) - 1)  # what the checker's rounding may lose


def _tree(branching: Branching, node: Node) -> Iterator[Parting | Prices]:
    """Partings and prices, in the order of `boxes`."""
    if node.parted is None:
        yield _prices(branching, node)
        return
    yield Parting(*node.parted)
    for part in node.parts:
        if part is not None:
            yield from _tree(branching, part)


def _prices(branching: Branching, node: Node) -> Prices:
    """The prices of a case as whole numbers; those of products are per product, not per sqrt(S) of them."""
    columns, prices, root = branching.search.columns, node.solved.prices, branching.search.histories.root
    of = {field: prices[columns.of(field)] for field in columns.sizes}

    def whole(values: Array) -> tuple[int, ...]:
        return tuple(round(value * (1 << MULTIPLIER_BITS)) for value in values.tolist())

    results = {field: whole(of[field] / root) for field in ("both", "first", "second")}
    for number, field in enumerate(OFFSETS):
        entropy = of["both"] + of["first" if number < len(OFFSETS) // 2 else "second"]
        results[field] = whole(of[field] / root - entropy * log(root) / root)
    results = {field: tuple(max(0, x) for x in row) if field == "both" else row for field, row in results.items()}
    return Prices(room=tuple(max(0, x) for x in whole(of["room"])), **results)
