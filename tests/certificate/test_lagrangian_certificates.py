"""Certificates of priced lines: nothing that their prices do not prove is taken."""

from __future__ import annotations

import copy
import json
import random
from fractions import Fraction
from math import ceil
from typing import Any

import pytest

from pebble.bounds import LineProblem, line_bound
from pebble.certificate import RefusedError, check
from pebble.certificate.lagrangian_lines import LINES, Units, prove_lagrangian
from pebble.families import accounting
from pebble.reports.bound import bound_workload
from pebble.schedules.explicit.ffn import best_ffn_schedule
from pebble.workloads import Ffn
from pebble.workloads.workload import Workload
from tests.bounds.lagrangian_game import (
    ONE,
    Shape,
    proof_of,
    some_ends,
    some_multipliers,
    some_shares,
    text,
    with_whole_numbers,
    work_of,
)
from tests.bounds.lagrangian_search import best_proof
from tests.certificate.lagrangian import CAPACITY, CHAIN, ENDS, SEGMENTS, flat, of_chain, refusal
from tests.certificate.persuade import persuade
from tests.rooms import in_values


@pytest.mark.parametrize("form", ["chain", "gated chain", "gate's chain"])
def test_what_is_proved_is_below_schedules_and_no_more_is_taken(form: str) -> None:
    document = of_chain(form)
    claim = document["claims"][0]
    workload = Ffn(*CHAIN, form != "chain")
    assert f"{claim['elements']:,} elements" in check(document)[0]
    assert claim["elements"] <= in_values(best_ffn_schedule, workload, CAPACITY).elements
    if form == "chain":  # more than without kinds of segments
        assert claim["elements"] > line_bound(accounting(workload).of(LineProblem)[0], CAPACITY).elements
    claim["elements"] += 1
    with pytest.raises(RefusedError, match="elements moved, at least"):
        check(document)


@pytest.mark.parametrize(
    ("shape", "capacity"),
    [((8192, 4096, 11008, 4096), 6 * 2**19), ((8192, 8192, 28672, 8192), 72 * 2**19), ((64, 64, 64, 64), 300)],
)
def test_one_price_for_all_kinds_proves_no_more_than_lines_without_prices(shape: Shape, capacity: int) -> None:
    (problem,) = accounting(Ffn(*shape)).of(LineProblem)
    lines = line_bound(problem, capacity)
    multipliers = lines.cut.mu / 2**64, lines.cut.rho / 2**64
    result = {
        prove_lagrangian(
            shape, "chain", ONE, capacity, flat("chain", shape, lines.cut.segments, *multipliers, count), "proof"
        )
        for count in (1, 4, 10)
    }
    assert len(result) == 1
    assert 0.5 * lines.elements < result.pop() <= lines.elements


def test_one_segment_is_compulsory_and_prices_do_not_matter() -> None:
    """All products are in the segment: their offsets and entropies are what G takes off."""
    shape = (3, 4, 5, 2)
    for mu, rho in ((0.01, 0.0), (3.0, 2.0)):
        single = prove_lagrangian(shape, "chain", ONE, 9, flat("chain", shape, 1, mu, rho), "proof")
        assert single <= 3 * 4 + 4 * 5 + 5 * 2 + 3 * 2
    exact = proof_of(
        "chain", 1, [29, 30, 90], [{"before": 1.0, "first": 1e-18, "second": 1e-18, **dict.fromkeys(LINES, 0.0)}] * 3
    )
    assert prove_lagrangian(shape, "chain", ONE, 9, exact, "proof") == 48


def test_the_same_in_units_of_any_width() -> None:
    """Widths, rooms and prices that are all three times as large prove three times as much."""
    rnd = random.Random(7)
    kinds = some_multipliers(3, 30, rnd)
    thrice = [
        {key: multiplier * (1 if key in ("before", "after") else 3) for key, multiplier in kind.items()}
        for kind in kinds
    ]
    ends = some_ends(-(-work_of(CHAIN, "chain") // 20), 3, rnd)
    single = prove_lagrangian(CHAIN, "chain", ONE, 30, proof_of("chain", 20, ends, kinds), "proof")
    three = prove_lagrangian(CHAIN, "chain", Units(3, 3, 3, 3), 90, proof_of("chain", 20, ends, thrice), "proof")
    assert abs(three - 3 * single) <= 3


def test_wider_partial_sums_prove_more() -> None:
    proof = best_proof(CHAIN, "chain", Units(1, 2, 2, 1), 2 * CAPACITY, SEGMENTS, ENDS)
    results = [
        prove_lagrangian(CHAIN, "chain", Units(1, hidden, partial, 1), 2 * CAPACITY, proof, "proof")
        for hidden, partial in ((1, 1), (1, 2), (2, 2), (3, 3))
    ]
    assert results == sorted(results) and results[0] < results[-1]
    with pytest.raises(RefusedError, match="no narrower"):
        prove_lagrangian(CHAIN, "chain", Units(2, 1, 2, 1), 2 * CAPACITY, proof, "proof")


# room on both sides


def one_kind(before: float, after: float, **other: float) -> dict[str, float]:
    """A kind whose entropies cost next to nothing."""
    return {"before": before, "after": after, "first": 1e-18, "second": 1e-18, **dict.fromkeys(LINES, 0.0), **other}


@pytest.mark.parametrize(
    ("shares", "multipliers", "gaps"),
    [  # what a gap of an input, of a partial sum and of a cell that is kept is charged
        ((0.0, 0.0), (0.5, 0.25), (0.5, 0.5, 0.75)),
        ((0.25, 0.25), (0.5, 0.25), (0.75, 0.75, 0.75)),
        ((0.5, 0.5), (0.75, 0.25), (0.75, 1.0, 1.0)),
        ((1.0, 2.0), (0.5, 0.25), (0.25, 0.25, 0.75)),
        ((1.0, 1.0), (5.0, 5.0), (1.0, 2.0, 10.0)),
        ((0.25, 1.5), (5.0, 0.75), (1.0, 1.25, 5.75)),
    ],
)
def test_charges_computed_by_hand(
    shares: tuple[float, float], multipliers: tuple[float, float], gaps: tuple[float, float, float]
) -> None:
    """A segment for each product, and entropies that are dear: so each product of a line is in one of its own."""
    m, k, f, l = shape = (2, 3, 4, 3)
    work, (once, twice, kept) = work_of(shape, "chain"), gaps
    kind = {**one_kind(*multipliers), "first": 1e3, "second": 1e3}
    capacity = 7
    result = prove_lagrangian(
        shape, "chain", ONE, capacity, proof_of("chain", work, [0, 1], [kind] * 2, shares), "proof"
    )
    charged = m * k * (1 + (f - 1) * once) + (k * f + f * l) * (1 + (m - 1) * once) + m * l * (1 + (f - 1) * twice)
    # the last first product of a cell may be where its first second one is
    charged += m * f * ((k - 1) * twice + min((l - 1) * kept, 1 + (l - 1) * once))
    expected = charged - (work - 1) * sum(multipliers) * capacity
    assert result == ceil(expected - 1e-9)


@pytest.mark.parametrize("shares", [(0.0, 0.0), (0.25, 0.25), (0.5, 1.0), (1.0, 1.5), (0.75, 2.0)])
@pytest.mark.parametrize(
    "rooms", [(0.5, 0.25, 0.125, 0.75), (3.0, 0.5, 0.75, 5.0), (0.25, 2.0, 1.5, 0.5), (0, 0, 1, 3)]
)
def test_charges_of_segments_that_have_only_first_or_only_second_products(
    shares: tuple[float, float], rooms: tuple[float, float, float, float]
) -> None:
    """Where offsets say which kind a product is in, a cell is last added up in one kind and first read in the other."""
    m, k, f, l = shape = (2, 3, 4, 3)
    work, capacity = work_of(shape, "chain"), 3
    dear = {"first": 1e3, "second": 1e3}
    kinds = [
        {**one_kind(*rooms[:2]), **dear, "D": 900.0, "Y": 900.0, "cells again": 900.0},
        {**one_kind(*rooms[2:]), **dear, "A": 900.0, "B": 900.0, "cells": 900.0},
    ]

    def gap(one: int, other: int, moves: int) -> float:
        share = shares[moves - 1]
        return min(share, rooms[2 * one + 1]) + min(moves - share, rooms[2 * other])

    result = prove_lagrangian(shape, "chain", ONE, capacity, proof_of("chain", work, [0, 1], kinds, shares), "proof")
    charged = m * k * (1 + (f - 1) * gap(0, 0, 1)) + k * f * (1 + (m - 1) * gap(0, 0, 1))
    charged += f * l * (1 + (m - 1) * gap(1, 1, 1)) + m * l * (1 + (f - 1) * gap(1, 1, 2))
    kept = rooms[1] + rooms[2] + (l - 1) * (rooms[2] + rooms[3])
    stored = 1 + gap(0, 1, 1) + (l - 1) * gap(1, 1, 1)
    charged += m * f * ((k - 1) * gap(0, 0, 2) + min(kept, stored))
    charged -= capacity * work * max(rooms[0] + rooms[1], rooms[2] + rooms[3])
    charged += capacity * (min(rooms[0], rooms[2]) + min(rooms[1], rooms[3]))
    assert result == ceil(charged - 1e-9)


def test_a_cell_whose_second_products_are_all_where_the_last_first_ones_are() -> None:
    """Two segments, one of each price: whatever is there once has no gap, and the rest is one gap at least."""
    shape = (1, 1, 1, 1)
    for shares in ((0.0, 0.0), (0.5, 1.0), (1.0, 2.0)):
        proof = proof_of("chain", 1, [1, 2], [one_kind(1.0, 1.0)] * 2, shares)
        assert prove_lagrangian(shape, "chain", ONE, 5, proof, "proof") == 4  # A, B, D and Y, no room
        # a product each: the cell is in both, or all is in one kind, which nothing forbids
        proof = proof_of("chain", 2, [0, 1], [one_kind(0.5, 0.25)] * 2, shares)
        assert prove_lagrangian(shape, "chain", ONE, 2, proof, "proof") == ceil(4 - 2 * 0.75)
        # second products cost 9 more where first ones are done, and the other way round: a gap, kept
        kinds = [one_kind(0.5, 0.25, D=9.0), one_kind(0.5, 0.25, A=9.0)]
        kinds[0]["cells again"] = kinds[1]["cells"] = 900.0
        proof = proof_of("chain", 2, [0, 1], kinds, shares)
        lone = prove_lagrangian(shape, "chain", ONE, 2, proof, "proof")
        assert lone == ceil(4 + 0.75 - 2 * 0.75)


@pytest.mark.parametrize("seed", range(60))
def test_no_more_than_the_least_over_all_whole_numbers(seed: int) -> None:
    """Every way to split small lines over the kinds, gap by gap: what is proved is no more, and not much less."""
    rnd = random.Random(seed)
    for _ in range(4):
        form = rnd.choice(["chain", "gated chain", "gate's chain"])
        shape = rnd.randint(1, 6), rnd.randint(1, 6), rnd.randint(1, 6), rnd.randint(1, 6)
        units = rnd.choice([ONE, Units(1, 2, 2, 1), Units(2, 3, 1, 4)])
        capacity, h = rnd.randint(3, 60), rnd.randint(1, min(20, work_of(shape, form)))
        ends = some_ends(-(-work_of(shape, form) // h), rnd.randint(1, 4), rnd)
        proof = proof_of(form, h, ends, some_multipliers(len(ends), capacity, rnd), some_shares(rnd))
        result = prove_lagrangian(shape, form, units, capacity, proof, "proof")
        least = with_whole_numbers(shape, form, units, capacity, proof)
        assert least - 0.1 * abs(least) - 10 <= result <= ceil(least + 1e-9 * abs(least))
        # nor than with gaps that cost what is moved or held, without shares
        assert result <= ceil(with_whole_numbers(shape, form, units, capacity, proof, True) + 1e-9 * abs(least))


# what was found of the old theorem, with room before segments alone: shape, form, units, S, h, seed, units moved
OLD_THEOREM: list[tuple[Shape, str, Units, int, int, int, int]] = [
    ((16, 16, 16, 16), "chain", ONE, 40, 30, 1, -3096),
    ((16, 16, 16, 16), "gated chain", ONE, 40, 45, 2, -1740),
    ((7, 20, 9, 31), "gate's chain", ONE, 25, 60, 3, -1939),
    ((64, 64, 64, 64), "chain", Units(1, 2, 2, 1), 300, 200, 4, -59169),
    ((300, 100, 200, 150), "gated chain", Units(2, 3, 2, 1), 2000, 150, 5, 279155),
    ((8192, 4096, 11008, 4096), "chain", ONE, 3145728, 97, 6, -1446146070),
    ((8192, 4096, 11008, 4096), "gated chain", Units(1, 2, 2, 1), 3145728, 150, 7, -3297767777),
    ((3, 2, 2, 4), "chain", ONE, 5, 9, 8, -46),
]


@pytest.mark.parametrize(("shape", "form", "units", "capacity", "h", "seed", "proved"), OLD_THEOREM)
def test_room_before_segments_alone_is_the_old_theorem(
    shape: Shape, form: str, units: Units, capacity: int, h: int, seed: int, proved: int
) -> None:
    assert prove_lagrangian(shape, form, units, capacity, one_sided(shape, form, capacity, h, seed), "proof") == proved


def one_sided(shape: Shape, form: str, capacity: int, h: int, seed: int) -> dict[str, Any]:
    rnd = random.Random(seed)
    ends = some_ends(-(-work_of(shape, form) // h), 5, rnd)
    mu = 0.8 / capacity**0.5
    kinds = [
        {"before": rnd.uniform(0.5, 2.2), "first": mu * rnd.uniform(0.8, 1.2), "second": mu * rnd.uniform(0.8, 1.2)}
        | {line: rnd.uniform(-mu, mu) for line in LINES}
        for _ in ends
    ]
    return proof_of(form, h, ends, kinds)


def split_room(document: dict[str, Any], part: float, shares: tuple[float, float]) -> None:
    """Some of the multiplier of room goes to the cut after a segment."""
    proof = document["claims"][0]["proof"]
    proof["shares"] = {"one": text(shares[0]), "two": text(shares[1])}
    for kind in proof["kinds"]:
        capacity = float(Fraction(kind["before"]))
        kind["before"], kind["after"] = text(capacity * (1 - part)), text(capacity * part)


def test_a_share_or_a_price_that_would_prove_more_is_refused() -> None:
    """Room after segments for nothing, or more shares than there are moves: the claims that these would give."""
    document = of_chain()
    split_room(document, 0.5, (0.5, 1.0))
    said = persuade(document)
    assert said is not None
    honest = document["claims"][0]["elements"]
    document["claims"][0]["proof"]["least"] = honest
    check(document)
    for key, beyond, why in (("one", "5/4", "at most 1"), ("two", "9/4", "at most 2"), ("two", "-1", "fraction")):
        other = copy.deepcopy(document)
        other["claims"][0]["proof"]["shares"][key] = beyond
        assert why in refusal(other)
    worse = []
    for key, value in (("one", "0"), ("one", "1"), ("two", "0"), ("two", "2")):
        other = copy.deepcopy(document)
        other["claims"][0]["proof"]["shares"][key] = value
        worse.append(refusal(other))
    for key in ("before", "after"):
        for number in range(len(ENDS)):
            for multiplier in ("0", "1", "3"):
                other = copy.deepcopy(document)
                other["claims"][0]["proof"]["kinds"][number][key] = multiplier
                worse.append(refusal(other))
    assert all("these multipliers prove" in spec for spec in worse)


# in bytes


def in_bytes(workload: Workload, cache: str, proof: dict[str, Any]) -> dict[str, Any]:
    result = bound_workload(workload, cache=cache, accumulators="fp32")
    document: dict[str, Any] = json.loads(json.dumps(result.certificate()))
    (claim,) = (claim for claim in document["claims"] if claim["claim"] == "lower bound in bytes")
    kernels = [copy.deepcopy(proof)] if claim["game"]["kernels"] == "fused" else []
    document["claims"] = [{**claim, "proof": {"theorem": "segments in bytes", "kernels": kernels}}]
    return document


@pytest.mark.parametrize("gated", [False, True])
def test_certificates_in_bytes(gated: bool) -> None:
    form, cache = "gate's chain" if gated else "chain", 333
    proof = best_proof(CHAIN, form, Units(1, 2, 2, 1), cache // 2, SEGMENTS, ENDS)
    document = in_bytes(Ffn(*CHAIN, gated), f"{cache}B", proof)
    said = persuade(document)
    assert said is not None
    more = CHAIN[1] * CHAIN[2] * gated
    least = prove_lagrangian(CHAIN, form, Units(1, 2, 2, 1), cache // 2, proof, "proof") + more
    assert document["claims"][0]["bytes"] == 2 * least
    document["claims"][0]["bytes"] += 1
    with pytest.raises(RefusedError, match="bytes moved, at least"):
        check(document)
