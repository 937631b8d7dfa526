"""Priced lines against schedules: step by step, against optima of tiny chains, against what is played and known."""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import ceil, inf, log
from typing import Any

import pytest

from pebble.bounds.lagrangian import LagrangianChain
from pebble.bounds.lagrangian_search import Search
from pebble.certificate.lagrangian_lines import Units, prove_lagrangian
from pebble.schedules.explicit.ffn import best_ffn_schedule
from pebble.workloads import Ffn
from pebble.workloads.widths import FastMemory, Widths
from tests.bounds.lagrangian_game import (
    MULTIPLIERS,
    ONE,
    Shape,
    Step,
    chain_steps,
    play,
    proof_of,
    some_ends,
    some_multipliers,
    some_order,
    some_shares,
    text,
    with_whole_numbers,
    work_of,
)
from tests.bounds.lagrangian_search import best_proof
from tests.bounds.test_chain_lines import SHAPES, optima_of
from tests.bounds.test_ffn import CHAIN_OF_TWOS
from tests.bounds.weighted_game import chain_game
from tests.rooms import in_values

FORMS = {False: ("chain",), True: ("gated chain", "gate's chain")}


def some_shape(rnd: random.Random, largest: int) -> Shape:
    m, k, f, l = (rnd.randint(1, rnd.choice([2, largest // 2, largest])) for _ in range(4))
    return m, k, f, l


def some_units(rnd: random.Random) -> Units:
    w, written = rnd.randint(1, 3), rnd.randint(1, 3)
    return rnd.choice([ONE, Units(w, w + rnd.randint(0, 3), written + rnd.randint(0, 3), written)])


def lines_of(step: Step) -> tuple[tuple[object, ...], ...]:
    """The three values of a product, its cell whatever the accumulator."""
    *_, operand = step.reads
    if step.second:
        return step.reads[0][:3], operand, step.target[:3]
    return step.reads[0], operand, step.target[:3]


@pytest.mark.parametrize("seed", range(120))
def test_each_inequality_of_the_proof_holds_of_schedules(seed: int) -> None:
    """Moves and room pay for every touch at any price of room; entropies of a segment are no more than v ln v."""
    rnd = random.Random(seed)
    gated, units = rnd.random() < 0.4, some_units(rnd)
    shape = some_shape(rnd, 7)
    steps = chain_steps(shape, some_order(shape, gated, rnd), gated, rnd.choice([1, 1, 2, 4]), rnd)
    products = [step for step in steps if step.product]
    h = rnd.randint(1, min(len(products), rnd.choice([3, 12, 60])))
    cuts = [len(products) * t // h for t in range(h + 1)]
    # at some cuts many values leave, so that what they are charged there must all be moved
    empty = {cut - 1 for cut in cuts if rnd.random() < 0.7}
    often = rnd.choice([0, 0.5, 1, 1])
    capacity = rnd.choice([rnd.randint(3, 40), 500]) * max(units)
    played = play(steps, capacity, units, lambda product: product in empty and rnd.random() < often)
    assert played is not None
    parts = [products[a:b] for a, b in pairwise(cuts)]
    firsts: dict[tuple[object, ...], list[int]] = {}
    seconds: dict[tuple[object, ...], list[int]] = {}
    for t, part in enumerate(parts):
        for kind, seen in ((False, firsts), (True, seconds)):
            counts = Counter(value for step in part if step.second == kind for value in lines_of(step))
            v = sum(step.second == kind for step in part)
            assert sum(c * log(c) for c in counts.values()) <= v * log(max(1, v)) + 1e-9
            for value in counts:
                seen.setdefault(value, []).append(t)
    assert all(min(seen) >= firsts[value][-1] for value, seen in seconds.items() if value[0] == "H")

    def charges(before: Sequence[float], after: Sequence[float]) -> float:
        def gaps(seen: Sequence[int], most: float) -> float:
            return sum(min(most, after[item] + before[other]) for item, other in pairwise(seen))

        total = 0.0
        for value in firsts | seconds:
            touched = firsts.get(value) or seconds[value]
            if value[0] in "ABD":
                total += units.read * (1 + gaps(touched, 1))
            elif value[0] == "Y":
                total += units.written + units.partial * gaps(touched, 2)
            else:
                total += units.hidden * gaps(touched, 2)
                last = touched[-1]
                later = [last, *(t for t in seconds.get(value, []) if t > last)]
                total += units.read * min(gaps(later, inf), 1 + gaps(later, 1))
        return total

    assert all(sum(held.values()) <= capacity for held in played.held)
    held = [0, *(sum(played.held[cuts[t] - 1].values()) for t in range(1, h)), 0]  # at the cut before each, and after

    def over(rooms: Sequence[float]) -> float:
        before, after = rooms[:h], rooms[h:]
        paid = sum(r * x for r, x in zip(before, held[:-1], strict=True))
        paid += sum(r * x for r, x in zip(after, held[1:], strict=True))
        return charges(before, after) - played.moved - paid

    rooms = [rnd.choice([0.0, 0.5, 1, 1.4, 2, 2.5, rnd.uniform(0, 3)]) for _ in range(2 * h)]
    assert over(rooms) <= 1e-6
    for t in rnd.sample(range(2 * h), min(2 * h, 20)):  # towards the prices that ask for most
        rooms = max(([*rooms[:t], r, *rooms[t + 1 :]] for r in (0, 0.3, 0.7, 1, 1.5, 2, 5)), key=over)
    assert over(rooms) <= 1e-6
    for sides in ((5.0, 0.0), (0.0, 5.0), (2.5, 2.5), (0.5, 0.5), (0.3, 0.7), (1.3, 0.7)):
        wide = [(sides[t >= h] if held[t if t < h else t - h + 1] == 0 else 0.0) for t in range(2 * h)]
        assert over(wide) <= 1e-6


@pytest.mark.parametrize("seed", range(40))
def test_a_charge_is_no_more_than_the_least_over_all_ways_to_share(seed: int) -> None:
    rnd = random.Random(seed)
    for _ in range(8):
        gated, units = rnd.random() < 0.4, some_units(rnd)
        shape, form = some_shape(rnd, 9), rnd.choice(FORMS[gated])
        capacity, h = rnd.randint(3, 200), rnd.randint(1, min(work_of(shape, form), 30))
        ends = some_ends(-(-work_of(shape, form) // h), rnd.randint(1, 5), rnd)
        proof = proof_of(form, h, ends, some_multipliers(len(ends), capacity, rnd), some_shares(rnd))
        least = with_whole_numbers(shape, form, units, capacity, proof)
        assert least <= with_whole_numbers(shape, form, units, capacity, proof, True) + 1e-9 * abs(least)
        result = prove_lagrangian(shape, form, units, capacity, proof, "proof")
        assert result <= ceil(least + 1e-9 * abs(least))
        assert result >= least - 0.1 * abs(least) - 10


def proved(shape: Shape, form: str, units: Units, capacity: int, h: int, rnd: random.Random) -> int:
    """What the best prices for some ranges prove, and those a little off."""
    ends = some_ends(-(-work_of(shape, form) // h), rnd.randint(1, 5), rnd)
    best = best_proof(shape, form, units, capacity, h, ends)
    other = copy.deepcopy(best)
    other["shares"] = dict(zip(("one", "two"), map(text, some_shares(rnd)), strict=True))
    for kind in other["kinds"]:
        part = rnd.uniform(0, 1)  # of the price of room goes to the cut after the segment
        kind["after"] = text(float(Fraction(kind["before"])) * part)
        kind["before"] = text(float(Fraction(kind["before"])) * (1 - part))
        for key in MULTIPLIERS:
            kind[key] = text(float(Fraction(kind[key])) * rnd.uniform(0.97, 1.03))
    more = units.read * shape[1] * shape[2] if form == "gate's chain" else 0
    searched = searched_proof(shape, form, units, capacity, h)
    return more + max(
        prove_lagrangian(shape, form, units, capacity, proof, "proof") for proof in (best, other, *searched)
    )


def searched_proof(shape: Shape, form: str, units: Units, capacity: int, h: int) -> list[dict[str, Any]]:
    """What the search for bounds finds, with prices on both sides of a segment."""
    problem = LagrangianChain(form, *shape, 2 if form == "gated chain" else 1, *units)
    search = Search(problem, capacity)
    search.solve(h, close=0.01)
    result = search.exact()
    return [] if result is None else [result.claim() | {"least": 0}]


# against optima


def never_above(shape: Shape, form: str, optima: dict[int, int], units: Units) -> None:
    rnd = random.Random(str(shape))
    for capacity, optimum in optima.items():
        for h in range(1, min(work_of(shape, form), 7) + 1):
            assert proved(shape, form, units, capacity, h, rnd) <= optimum, (shape, form, capacity, h)
        if optimum == min(optima.values()):
            return  # all that moves is compulsory, and more memory proves no more


@pytest.mark.parametrize("shape", SHAPES)
def test_below_the_optima_of_chains(shape: Shape) -> None:
    never_above(shape, "chain", optima_of(shape), ONE)


def test_below_the_optima_of_two_by_two_matrices() -> None:
    never_above((2, 2, 2, 2), "chain", dict(enumerate(CHAIN_OF_TWOS, start=3)), ONE)


@pytest.mark.parametrize("shape", [(2, 1, 2, 1), (1, 2, 2, 1), (1, 1, 2, 2)])
@pytest.mark.parametrize("variant", ["one-shot", "one-shot-sliding"])
def test_below_the_optima_with_a_value_for_each_partial_sum(shape: Shape, variant: str) -> None:
    never_above(shape, "chain", optima_of(shape, False, variant), ONE)


GATED = [(1, 1, 1, 1), (2, 1, 1, 1), (1, 1, 2, 1), (1, 2, 1, 1), (1, 2, 2, 1)]


@pytest.mark.parametrize("form", FORMS[True])
@pytest.mark.parametrize("shape", [*GATED, pytest.param((2, 1, 2, 1), marks=pytest.mark.slow)])
def test_below_the_optima_of_gated_chains(shape: Shape, form: str) -> None:
    never_above(shape, form, optima_of(shape, True), ONE)


@cache
def optima_in_units(shape: Shape, units: Units) -> dict[int, int]:
    game = chain_game(*shape, Widths(*units))
    low = 2 * units.read + max(units.hidden, units.partial)
    result = {capacity: game.least(capacity) for capacity in range(low, low + 4)}
    return {capacity: least for capacity, least in result.items() if least is not None}


IN_UNITS = [(1, 2, 1, 2), (2, 1, 1, 2), (2, 1, 2, 1), (1, 2, 2, 1), (2, 2, 1, 1)]


@pytest.mark.parametrize(
    ("shape", "units"),
    [  # all shapes in the widths of bf16 with sums in fp32, two in the others
        pytest.param(shape, units, marks=() if i == 0 or shape in IN_UNITS[:2] else pytest.mark.slow)
        for i, units in enumerate([Units(1, 2, 2, 1), Units(1, 4, 4, 2), Units(2, 3, 2, 1), Units(2, 2, 1, 1)])
        for shape in IN_UNITS
    ],
)
def test_below_the_optima_in_bytes(shape: Shape, units: Units) -> None:
    never_above(shape, "chain", optima_in_units(shape, units), units)


# against schedules


@pytest.mark.parametrize("seed", range(40))
def test_below_every_ffn_schedule(seed: int) -> None:
    rnd = random.Random(seed)
    gated, shape = rnd.random() < 0.4, some_shape(rnd, 16)
    form, capacity = rnd.choice(FORMS[gated]), rnd.randint(3, rnd.choice([10, 60, 200]))
    least = in_values(best_ffn_schedule, Ffn(*shape, gated), capacity).elements
    h = rnd.randint(1, min(work_of(shape, form), rnd.choice([4, 60])))
    assert proved(shape, form, ONE, capacity, h, rnd) <= least


@pytest.mark.parametrize("seed", range(20))
def test_below_every_ffn_schedule_in_bytes(seed: int) -> None:
    rnd = random.Random(seed)
    shape, units = some_shape(rnd, 16), Units(1, 2, 2, 1)
    widths, capacity = Widths(2, 4, 4, 2), rnd.randint(16, rnd.choice([30, 300]))
    result = best_ffn_schedule(Ffn(*shape), FastMemory(capacity, widths))
    if result is not None:
        h = rnd.randint(1, min(work_of(shape, "chain"), rnd.choice([4, 60])))
        assert 2 * proved(shape, "chain", units, capacity // 2, h, rnd) <= result.bytes


@pytest.mark.parametrize("seed", range(40))
def test_below_what_is_played_in_any_order(seed: int) -> None:
    rnd = random.Random(seed)
    gated, units, shape = rnd.random() < 0.3, some_units(rnd), some_shape(rnd, 8)
    capacity = rnd.randint(3, rnd.choice([6, 20, 60])) * max(units)
    traffic = []
    for _ in range(12):
        steps = chain_steps(shape, some_order(shape, gated, rnd), gated, rnd.choice([1, 1, 2]), rnd)
        if (played := play(steps, capacity, units)) is not None:
            traffic.append(played.moved)
    for form in FORMS[gated]:
        h = rnd.randint(1, min(work_of(shape, form), rnd.choice([4, 40])))
        assert proved(shape, form, units, capacity, h, rnd) <= min(traffic)
        ends = some_ends(-(-work_of(shape, form) // h), 3, rnd)
        more = units.read * shape[1] * shape[2] if form == "gate's chain" else 0
        for _ in range(20):
            proof = proof_of(form, h, ends, some_multipliers(len(ends), capacity, rnd), some_shares(rnd))
            assert prove_lagrangian(shape, form, units, capacity, proof, "proof") + more <= min(traffic)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 21000, 1000))
def test_many_more_of_each(start: int) -> None:
    for seed in range(start, start + 200):
        test_each_inequality_of_the_proof_holds_of_schedules(seed)
    for seed in range(start, start + 20):
        test_a_charge_is_no_more_than_the_least_over_all_ways_to_share(seed)
        test_below_every_ffn_schedule(seed)
        test_below_every_ffn_schedule_in_bytes(seed)
        test_below_what_is_played_in_any_order(seed)
