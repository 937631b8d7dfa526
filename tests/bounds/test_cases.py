"""Theorem 15: its inequalities on schedules, its charges on histories, its bounds against optima and schedules."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from math import inf, log

import pytest

from pebble.bounds import CasesBound, Chain
from pebble.bounds.cases import OFFSETS, Box, Parting, Prices, boxes, hull
from pebble.bounds.cases_choice import even, exact
from pebble.bounds.cases_search import Branching
from pebble.bounds.cases_value import CaseValue
from pebble.bounds.lagrangian import LagrangianChain, lagrangian_chains
from pebble.bounds.lines import MULTIPLIER_BITS
from pebble.certificate import check
from pebble.certificate.case_charges import Shape as CheckedShape
from pebble.certificate.case_charges import charged
from pebble.certificate.cases import read_prices
from pebble.certificate.lagrangian_lines import Units
from pebble.families import lower_bound
from pebble.proof.certificate import bound_certificate
from pebble.reports.bound import bound_workload, known_of
from pebble.schedules.explicit.ffn import best_ffn_schedule
from pebble.workloads import Ffn
from pebble.workloads.widths import ALIKE, FastMemory, Widths
from tests.bounds.lagrangian_game import Shape, chain_steps, play, some_order
from tests.bounds.test_chain_lines import SHAPES, optima_of
from tests.bounds.test_lagrangian_game import lines_of, optima_in_units, some_shape, some_units
from tests.rooms import in_values

ONE = 1 << MULTIPLIER_BITS
MIB = 2**19  # values of two bytes


@pytest.mark.parametrize("seed", range(80))
def test_each_inequality_of_the_proof_holds_of_schedules(seed: int) -> None:
    """Moves and room pay for what values are charged, whatever a cut costs; entropies are no more than v ln v."""
    rnd = random.Random(seed)
    gated, units = rnd.random() < 0.4, some_units(rnd)
    shape = some_shape(rnd, 7)
    steps = chain_steps(shape, some_order(shape, gated, rnd), gated, rnd.choice([1, 1, 2, 4]), rnd)
    products = [step for step in steps if step.product]
    h = rnd.randint(1, min(len(products), 9))
    cuts = [0, *sorted(rnd.sample(range(1, len(products)), h - 1)), len(products)]
    empty = {cut - 1 for cut in cuts if rnd.random() < 0.7}
    often = rnd.choice([0, 0.5, 1, 1])
    capacity = rnd.choice([rnd.randint(3, 40), 500]) * max(units)
    played = play(steps, capacity, units, lambda product: product in empty and rnd.random() < often)
    assert played is not None
    firsts: dict[tuple[object, ...], list[int]] = {}
    seconds: dict[tuple[object, ...], list[int]] = {}
    for t, (low, high) in enumerate(pairwise(cuts)):
        together = Counter(value for step in products[low:high] for value in lines_of(step))
        assert sum(c * log(c) for c in together.values()) <= (high - low) * log(high - low) + 1e-9
        for kind, seen in ((False, firsts), (True, seconds)):
            part = [step for step in products[low:high] if step.second == kind]
            counts = Counter(value for step in part for value in lines_of(step))
            assert sum(c * log(c) for c in counts.values()) <= len(part) * log(max(1, len(part))) + 1e-9
            for value in counts:
                seen.setdefault(value, []).append(t)
    held = [sum(played.held[cut - 1].values()) for cut in cuts[1:-1]]
    assert max(held, default=0) <= capacity

    def over(room: list[float]) -> float:
        def gaps(seen: list[int], most: float) -> float:
            return sum(min(most, sum(room[item:other])) for item, other in pairwise(seen))

        total = 0.0
        for value in firsts | seconds:
            touched = firsts.get(value) or seconds[value]
            if value[0] in "ABD":
                total += units.read * (1 + gaps(touched, 1))
            elif value[0] == "Y":
                total += units.written + units.partial * gaps(touched, 2)
            else:
                total += units.hidden * gaps(touched, 2)
                later = [touched[-1], *(t for t in seconds.get(value, []) if t > touched[-1])]
                total += units.read * min(gaps(later, inf), 1 + gaps(later, 1))
        return total - played.moved - sum(price * x for price, x in zip(room, held, strict=True))

    room = [rnd.choice([0.0, 0.5, 1, 1.4, 2, 2.5, rnd.uniform(0, 3)]) for _ in range(h - 1)]
    assert over(room) <= 1e-6
    for t in range(h - 1):  # towards the prices that ask for most
        room = max(([*room[:t], price, *room[t + 1 :]] for price in (0, 0.3, 0.7, 1, 1.5, 2, 5)), key=over)
    assert over(room) <= 1e-6
    assert over([5.0 if x == 0 else 0.0 for x in held]) <= 1e-6


def some_prices(rnd: random.Random, h: int, capacity: int) -> Prices:
    scale = capacity**-0.5

    def row(low: float, high: float, count: int = h) -> tuple[int, ...]:
        return tuple(round(rnd.uniform(low, high) * ONE) for _ in range(count))

    entropies = [
        row(0, 2 * scale) if rnd.random() < 0.7 else (0,) * h,
        row(0.2 * scale, 2 * scale),
        row(0.2 * scale, 2 * scale),
    ]
    return Prices(row(0, 2.2, h - 1), *entropies, *(row(-scale, scale) for _ in OFFSETS))


def random_parts(rnd: random.Random, total: int, count: int) -> list[float]:
    weights = [rnd.expovariate(1) + 1e-6 for _ in range(count)]
    return [total * weight / sum(weights) for weight in weights]


def plogp(x: float) -> float:
    return x * log(x) if x > 0 else 0.0


def some_history(rnd: random.Random, problem: LagrangianChain, prices: Prices, name: str) -> float:
    """What a value costs in some segments, with some products in each."""
    h = len(prices.first)
    of = {field: [price / ONE for price in prices.of(field)] for field in prices._fields}

    def gaps(touched: list[int], most: float) -> float:
        return sum(min(most, sum(of["room"][item:other])) for item, other in pairwise(touched))

    def worked(parts: dict[int, float], own: str, offset: str, both: bool = True) -> float:
        return sum(
            (of[own][t] + (of["both"][t] if both else 0)) * plogp(c) + of[offset][t] * c for t, c in parts.items()
        )

    if name != "H":
        line = next(line for line in problem.lines if line.name == name)
        touched = sorted(rnd.sample(range(h), rnd.randint(1, h)))
        parts = dict(zip(touched, random_parts(rnd, line.length, len(touched)), strict=True))
        gap = line.begin.after
        assert gap is not None
        moves = line.certain + gap.width * gaps(touched, gap.moves)
        return moves + worked(parts, "first" if line.first else "second", line.offset)
    last = rnd.randrange(h)
    first = sorted({last, *rnd.sample(range(last + 1), rnd.randint(0, last))})
    second = sorted(rnd.sample(range(last, h), rnd.randint(1, h - last)))
    ups = dict(zip(first, random_parts(rnd, problem.k, len(first)), strict=True))
    backs = dict(zip(second, random_parts(rnd, problem.l, len(second)), strict=True))
    later = sorted({last, *second})
    moves = problem.hidden * gaps(first, 2) + problem.read * min(gaps(later, inf), 1 + gaps(later, 1))
    work = worked(ups, "first", "cells", False) + worked(backs, "second", "again", False)
    return moves + work + sum(of["both"][t] * plogp(ups.get(t, 0) + backs.get(t, 0)) for t in range(h))


@pytest.mark.parametrize("seed", range(40))
def test_no_history_is_cheaper_than_a_charge_and_the_checker_agrees(seed: int) -> None:
    rnd = random.Random(seed)
    gated, units = rnd.random() < 0.4, some_units(rnd)
    m, k, f, l = (rnd.randint(1, 40) for _ in range(4))
    capacity, h = rnd.randint(4, 400), rnd.randint(2, 5)
    widths = ALIKE if units == (1, 1, 1, 1) else Widths(*units)
    problem = rnd.choice(lagrangian_chains(Chain(m, k, f, l, m * f, gated), widths))
    sizes = even(problem.work, min(h, problem.work))
    prices = some_prices(rnd, len(sizes), capacity)
    mine = CaseValue(problem, capacity, sizes, prices).charged()
    columns = 2 * f if problem.form == "gated chain" else f
    shape = CheckedShape(m, k, f, l, columns, Units(*widths.in_units))
    item = {field: list(row) for field, row in prices._asdict().items()}
    theirs = charged(shape, read_prices(item, len(sizes), "prices"), "prices")
    assert abs(mine - theirs) <= 1e-9 * max(abs(mine), ONE * ONE)  # both round down, theirs a little less or more
    least = 0.0
    for line in problem.lines:
        least += line.count * min(some_history(rnd, problem, prices, line.name) for _ in range(300))
    least += m * f * min(some_history(rnd, problem, prices, "H") for _ in range(1500))
    assert max(mine, theirs) / ONE**2 <= least + 1e-9 * abs(least)


def test_a_charge_is_what_the_cheapest_history_costs() -> None:
    """A chain of one cell: all ways to share its products in two segments, in small steps."""
    (problem,) = lagrangian_chains(Chain(1, 60, 1, 40, 1))
    prices = some_prices(random.Random(5), 2, 100)._replace(both=(ONE // 10, ONE // 12), a=(0, 0), d=(0, 0))
    of = {field: [price / ONE for price in prices.of(field)] for field in prices._fields}
    steps, (room,) = 400, of["room"]
    best = inf
    for i in range(steps + 1):
        for j in range(steps + 1):
            c, d = 60 * i / steps, 40 * j / steps  # first and second products in the first segment
            if c < 60 and d > 0:
                continue
            ups, backs = (c, 60 - c), (d, 40 - d)
            gap = min(2, room) if 0 < c < 60 else 0
            gap += min(room, 2) if c == 60 and d < 40 else 0  # held, or stored and loaded
            both = sum(of["both"][t] * plogp(ups[t] + backs[t]) for t in range(2))
            work = sum(of["first"][t] * plogp(ups[t]) + of["cells"][t] * ups[t] for t in range(2))
            work += sum(of["second"][t] * plogp(backs[t]) + of["again"][t] * backs[t] for t in range(2))
            best = min(best, gap + both + work)
    case = CaseValue(problem, 100, even(problem.work, 2), prices)
    others = sum(line.count * min(_line_in_two(line.length, of, line, steps)) for line in problem.lines)
    assert best + others - 1e-2 <= case.charged() / ONE**2 <= best + others + 1e-12


def _line_in_two(length: int, of: dict[str, list[float]], line: object, steps: int) -> list[float]:
    results = []
    own = "first" if line.first else "second"  # type: ignore[attr-defined]
    gap = line.begin.after  # type: ignore[attr-defined]
    for i in range(steps + 1):
        parts = length * i / steps, length - length * i / steps
        cost = sum(
            (of["both"][t] + of[own][t]) * plogp(parts[t]) + of[line.offset][t] * parts[t]  # type: ignore[attr-defined]
            for t in range(2)
        )
        gaps = gap.width * min(gap.moves, of["room"][0]) if 0 < i < steps else 0
        results.append(line.certain + cost + gaps)  # type: ignore[attr-defined]
    return results


# cases


def random_tree(rnd: random.Random, sizes: tuple[int, ...], total: int, prices: Prices) -> list[Parting | Prices]:
    def below(box: Box, depth: int) -> list[Parting | Prices]:
        inside = hull(box, total)
        if inside is None:
            return []
        wide = [t for t, (low, high) in enumerate(inside) if low < high]
        if not wide or depth == 0 or rnd.random() < 0.2:
            return [prices]
        t = rnd.choice(wide)
        low, high = inside[t]
        at = rnd.randrange(low, high)
        parts = ((*inside[:t], part, *inside[t + 1 :]) for part in ((low, at), (at + 1, high)))
        return [Parting(t, at), *(node for part in parts for node in below(part, depth - 1))]

    return below(tuple((0, size) for size in sizes), 6)


@pytest.mark.parametrize("seed", range(30))
def test_all_shares_are_in_one_case_of_a_tree(seed: int) -> None:
    rnd = random.Random(seed)
    sizes = tuple(rnd.randint(1, 9) for _ in range(rnd.randint(1, 4)))
    total = rnd.randint(0, sum(sizes))
    prices = some_prices(rnd, len(sizes), 10)
    tree = random_tree(rnd, sizes, total, prices)
    found = list(boxes(tree, sizes, total))
    for _ in range(60):
        left, shares = total, []
        for t, size in enumerate(sizes):
            rest = sum(sizes[t + 1 :])
            shares.append(rnd.randint(max(0, left - rest), min(size, left)))
            left -= shares[-1]
        inside = [box for box, _ in found if all(low <= v <= high for v, (low, high) in zip(shares, box, strict=True))]
        assert len(inside) == 1
    with pytest.raises(ValueError, match="leaves a case out"):
        list(boxes(tree[:-1], sizes, total))
    with pytest.raises(ValueError, match="more cases"):
        list(boxes([*tree, prices], sizes, total))


def test_a_box_is_parted_inside() -> None:
    prices = some_prices(random.Random(1), 2, 10)
    with pytest.raises(ValueError, match="parted"):
        list(boxes([Parting(0, 5), prices, prices], (5, 5), 5))


# bounds


def proved(problem: LagrangianChain, capacity: int, h: int, cases: int) -> int:
    """What so many cases prove, in units."""
    branching = Branching(problem, capacity, even(problem.work, h))
    branching.grow(cases)
    return exact(problem, capacity, branching).elements


def never_above(shape: Shape, gated: bool, widths: Widths, optima: dict[int, int]) -> None:
    m, k, f, l = shape
    for capacity, optimum in optima.items():
        for problem in lagrangian_chains(Chain(m, k, f, l, m * f, gated), widths):
            for h in range(2, min(3, problem.work) + 1):
                assert proved(problem, capacity, h, 3) < optimum, (shape, problem.form, capacity, h)


@pytest.mark.parametrize(
    "shape", [*SHAPES[1:3], *(pytest.param(shape, marks=pytest.mark.slow) for shape in SHAPES[3:])]
)
def test_below_the_optima_of_chains(shape: Shape) -> None:
    never_above(shape, False, ALIKE, dict(list(optima_of(shape).items())[:3]))


@pytest.mark.parametrize("shape", [(2, 1, 2, 1), pytest.param((1, 2, 2, 1), marks=pytest.mark.slow)])
def test_below_the_optima_of_gated_chains(shape: Shape) -> None:
    never_above(shape, True, ALIKE, dict(list(optima_of(shape, True).items())[:2]))


@pytest.mark.parametrize("shape", [(1, 2, 2, 1), (2, 1, 1, 2)])
@pytest.mark.parametrize("units", [Units(1, 2, 2, 1)])
def test_below_the_optima_in_bytes(shape: Shape, units: Units) -> None:
    never_above(shape, False, Widths(*units), optima_in_units(shape, units))


@pytest.mark.parametrize("seed", range(6))
def test_below_schedules_in_any_memory(seed: int) -> None:
    """Prices found for one memory prove a bound in any."""
    rnd = random.Random(seed)
    ffn = Ffn(*(rnd.randint(4, 60) for _ in range(4)), gated=rnd.random() < 0.4)
    m, f = ffn.tokens, ffn.hidden
    problem = rnd.choice(lagrangian_chains(Chain(m, ffn.d_model, f, ffn.d_out, m * f, ffn.gated)))
    capacity = max(8, int(rnd.choice(ffn.operands).elements / rnd.uniform(0.8, 3)))
    branching = Branching(problem, capacity, even(problem.work, rnd.randint(2, 4)))
    branching.grow(8)
    bound = exact(problem, capacity, branching)
    for other in (capacity, capacity * 3 // 4, capacity * 5 // 4):
        cases = boxes(bound.tree, bound.sizes, problem.products[0])
        values = [(CaseValue(problem, other, bound.sizes, prices), box) for box, prices in cases]
        least = min(case.in_box(case.charged(), box) for case, box in values)
        assert least <= in_values(best_ffn_schedule, ffn, other).elements


def test_more_cases_prove_no_less() -> None:
    (problem,) = lagrangian_chains(Chain(4096, 4096, 14336, 4096, 4096 * 14336))
    branching = Branching(problem, 50 * MIB, even(problem.work, 4))
    values = []
    for cases in (1, 5, 15):
        branching.grow(cases)
        values.append(exact(problem, 50 * MIB, branching).elements)
    assert values == sorted(values) and values[0] < values[-1]
    assert values[-1] == pytest.approx(branching.value * 50 * MIB, rel=1e-6)


def test_a_layer_in_three_segments() -> None:
    """Above what is proved without cases, below the best schedule; the checker takes it."""
    ffn, capacity = Ffn(8192, 4096, 11008), 72 * MIB
    bound = lower_bound(ffn, capacity, cases=40)
    assert isinstance(bound.proof, CasesBound) and bound.proof.segments == 3
    assert 1.01 * lower_bound(ffn, capacity).elements < bound.elements
    assert bound.elements <= in_values(best_ffn_schedule, ffn, capacity).elements
    known = known_of(ffn, capacity, FastMemory.of_values(capacity, ffn))._replace(lower=bound)
    assert any(f"{bound.elements:,}" in line for line in check(bound_certificate(ffn, known)))


def test_a_layer_in_bytes_with_sums_of_their_own_width() -> None:
    ffn = Ffn(4096, 4096, 14336)
    result, without = (bound_workload(ffn, cache="72MiB", accumulators="fp32", cases=cases) for cases in (24, None))
    assert result.lower.method == "line accounting by cases in bytes" and result.upper is not None
    assert without.lower.bytes < result.lower.bytes <= result.upper.bytes
    assert check(result.certificate())
