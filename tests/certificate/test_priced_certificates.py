"""Certificates of priced lines: nothing that their prices do not prove is taken, and no file makes the checker long."""

from __future__ import annotations

import copy
import json
import random
import re
import time
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from math import ceil
from typing import Any

import pytest

from pebble.bounds import line_bound
from pebble.certificate import RefusedError, check
from pebble.certificate.priced_lines import LINES, Units, prove_priced
from pebble.families import accounting
from pebble.proof.certificate import bound_certificate
from pebble.reports.bound import bound_workload, known_of
from pebble.schedules.explicit.ffn import best_ffn_schedule
from pebble.workloads import Attention, Ffn, Gemm, TransformerLayer
from pebble.workloads.base import Workload
from pebble.workloads.widths import Room
from tests.bounds.priced_game import (
    ONE,
    Shape,
    proof_of,
    some_ends,
    some_prices,
    some_shares,
    text,
    with_whole_numbers,
    work_of,
)
from tests.bounds.priced_search import best_proof
from tests.certificate.mutate import mutations
from tests.certificate.persuade import mutant, persuade
from tests.rooms import in_values

CHAIN: Shape = (16, 16, 16, 16)
CAPACITY, SEGMENTS, ENDS = 40, 30, (30, 137, 190, 274)


def with_proof(workload: Workload, capacity: int, proof: dict[str, Any]) -> dict[str, Any]:
    """A certificate of a lower bound, whose proof is another."""
    document: dict[str, Any] = json.loads(
        json.dumps(bound_certificate(workload, known_of(workload, capacity, Room.of_values(capacity, workload))))
    )
    document["claims"] = [{**document["claims"][0], "proof": copy.deepcopy(proof)}]
    return document


def of_chain(form: str = "chain") -> dict[str, Any]:
    """A certificate with good prices, put right."""
    segments = SEGMENTS if form != "gated chain" else 45
    proof = best_proof(CHAIN, form, ONE, CAPACITY, segments, ENDS)
    document = with_proof(Ffn(*CHAIN, form != "chain"), CAPACITY, proof)
    assert persuade(document) is not None
    return document


def flat(form: str, shape: Shape, segments: int, mu: float, rho: float, count: int = 1) -> dict[str, Any]:
    """The same prices for all kinds."""
    longest = -(-work_of(shape, form) // segments)
    kind = {"before": rho, "after": 0.0, "first": mu, "second": mu, **dict.fromkeys(LINES, 0.0)}
    return proof_of(form, segments, [longest * (i + 1) // count for i in range(count)], [kind] * count)


@pytest.mark.parametrize("form", ["chain", "gated chain", "gate's chain"])
def test_what_is_proved_is_below_schedules_and_no_more_is_taken(form: str) -> None:
    document = of_chain(form)
    claim = document["claims"][0]
    workload = Ffn(*CHAIN, form != "chain")
    assert f"{claim['elements']:,} elements" in check(document)[0]
    assert claim["elements"] <= in_values(best_ffn_schedule, workload, CAPACITY).elements
    if form == "chain":  # more than without kinds of segments
        assert claim["elements"] > line_bound(accounting(workload).lines[0], CAPACITY).elements
    claim["elements"] += 1
    with pytest.raises(RefusedError, match="elements moved, at least"):
        check(document)


@pytest.mark.parametrize(
    ("shape", "capacity"),
    [((8192, 4096, 11008, 4096), 6 * 2**19), ((8192, 8192, 28672, 8192), 72 * 2**19), ((64, 64, 64, 64), 300)],
)
def test_one_price_for_all_kinds_proves_no_more_than_lines_without_prices(shape: Shape, capacity: int) -> None:
    (problem,) = accounting(Ffn(*shape)).lines
    lines = line_bound(problem, capacity)
    prices = lines.cut.mu / 2**64, lines.cut.rho / 2**64
    found = {
        prove_priced(shape, "chain", ONE, capacity, flat("chain", shape, lines.cut.segments, *prices, count), "proof")
        for count in (1, 4, 10)
    }
    assert len(found) == 1
    assert 0.5 * lines.elements < found.pop() <= lines.elements


def test_one_segment_is_compulsory_and_prices_do_not_matter() -> None:
    """All products are in the segment: their offsets and entropies are what G takes off."""
    shape = (3, 4, 5, 2)
    for mu, rho in ((0.01, 0.0), (3.0, 2.0)):
        one = prove_priced(shape, "chain", ONE, 9, flat("chain", shape, 1, mu, rho), "proof")
        assert one <= 3 * 4 + 4 * 5 + 5 * 2 + 3 * 2
    exact = proof_of(
        "chain", 1, [29, 30, 90], [{"before": 1.0, "first": 1e-18, "second": 1e-18, **dict.fromkeys(LINES, 0.0)}] * 3
    )
    assert prove_priced(shape, "chain", ONE, 9, exact, "proof") == 48


def test_the_same_in_units_of_any_width() -> None:
    """Widths, rooms and prices that are all three times as large prove three times as much."""
    rnd = random.Random(7)
    kinds = some_prices(3, 30, rnd)
    thrice = [{key: price * (1 if key in ("before", "after") else 3) for key, price in kind.items()} for kind in kinds]
    ends = some_ends(-(-work_of(CHAIN, "chain") // 20), 3, rnd)
    one = prove_priced(CHAIN, "chain", ONE, 30, proof_of("chain", 20, ends, kinds), "proof")
    three = prove_priced(CHAIN, "chain", Units(3, 3, 3, 3), 90, proof_of("chain", 20, ends, thrice), "proof")
    assert abs(three - 3 * one) <= 3


def test_wider_partial_sums_prove_more() -> None:
    proof = best_proof(CHAIN, "chain", Units(1, 2, 2, 1), 2 * CAPACITY, SEGMENTS, ENDS)
    found = [
        prove_priced(CHAIN, "chain", Units(1, hidden, partial, 1), 2 * CAPACITY, proof, "proof")
        for hidden, partial in ((1, 1), (1, 2), (2, 2), (3, 3))
    ]
    assert found == sorted(found) and found[0] < found[-1]
    with pytest.raises(RefusedError, match="no narrower"):
        prove_priced(CHAIN, "chain", Units(2, 1, 2, 1), 2 * CAPACITY, proof, "proof")


# room on both sides


def one_kind(before: float, after: float, **other: float) -> dict[str, float]:
    """A kind whose entropies cost next to nothing."""
    return {"before": before, "after": after, "first": 1e-18, "second": 1e-18, **dict.fromkeys(LINES, 0.0), **other}


@pytest.mark.parametrize(
    ("shares", "prices", "gaps"),
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
    shares: tuple[float, float], prices: tuple[float, float], gaps: tuple[float, float, float]
) -> None:
    """A segment for each product, and entropies that are dear: so each product of a line is in one of its own."""
    m, k, f, l = shape = (2, 3, 4, 3)
    work, (once, twice, kept) = work_of(shape, "chain"), gaps
    kind = {**one_kind(*prices), "first": 1e3, "second": 1e3}
    capacity = 7
    found = prove_priced(shape, "chain", ONE, capacity, proof_of("chain", work, [0, 1], [kind] * 2, shares), "proof")
    charged = m * k * (1 + (f - 1) * once) + (k * f + f * l) * (1 + (m - 1) * once) + m * l * (1 + (f - 1) * twice)
    # the last first product of a cell may be where its first second one is
    charged += m * f * ((k - 1) * twice + min((l - 1) * kept, 1 + (l - 1) * once))
    expected = charged - (work - 1) * sum(prices) * capacity
    assert found == ceil(expected - 1e-9)


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

    found = prove_priced(shape, "chain", ONE, capacity, proof_of("chain", work, [0, 1], kinds, shares), "proof")
    charged = m * k * (1 + (f - 1) * gap(0, 0, 1)) + k * f * (1 + (m - 1) * gap(0, 0, 1))
    charged += f * l * (1 + (m - 1) * gap(1, 1, 1)) + m * l * (1 + (f - 1) * gap(1, 1, 2))
    kept = rooms[1] + rooms[2] + (l - 1) * (rooms[2] + rooms[3])
    stored = 1 + gap(0, 1, 1) + (l - 1) * gap(1, 1, 1)
    charged += m * f * ((k - 1) * gap(0, 0, 2) + min(kept, stored))
    charged -= capacity * work * max(rooms[0] + rooms[1], rooms[2] + rooms[3])
    charged += capacity * (min(rooms[0], rooms[2]) + min(rooms[1], rooms[3]))
    assert found == ceil(charged - 1e-9)


def test_a_cell_whose_second_products_are_all_where_the_last_first_ones_are() -> None:
    """Two segments, one of each price: whatever is there once has no gap, and the rest is one gap at least."""
    shape = (1, 1, 1, 1)
    for shares in ((0.0, 0.0), (0.5, 1.0), (1.0, 2.0)):
        proof = proof_of("chain", 1, [1, 2], [one_kind(1.0, 1.0)] * 2, shares)
        assert prove_priced(shape, "chain", ONE, 5, proof, "proof") == 4  # A, B, D and Y, no room
        # a product each: the cell is in both, or all is in one kind, which nothing forbids
        proof = proof_of("chain", 2, [0, 1], [one_kind(0.5, 0.25)] * 2, shares)
        assert prove_priced(shape, "chain", ONE, 2, proof, "proof") == ceil(4 - 2 * 0.75)
        # second products cost 9 more where first ones are done, and the other way round: a gap, kept
        kinds = [one_kind(0.5, 0.25, D=9.0), one_kind(0.5, 0.25, A=9.0)]
        kinds[0]["cells again"] = kinds[1]["cells"] = 900.0
        proof = proof_of("chain", 2, [0, 1], kinds, shares)
        lone = prove_priced(shape, "chain", ONE, 2, proof, "proof")
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
        proof = proof_of(form, h, ends, some_prices(len(ends), capacity, rnd), some_shares(rnd))
        found = prove_priced(shape, form, units, capacity, proof, "proof")
        least = with_whole_numbers(shape, form, units, capacity, proof)
        assert least - 0.1 * abs(least) - 10 <= found <= ceil(least + 1e-9 * abs(least))
        # nor than with gaps that cost what is moved or held, without shares
        assert found <= ceil(with_whole_numbers(shape, form, units, capacity, proof, True) + 1e-9 * abs(least))


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
    assert prove_priced(shape, form, units, capacity, one_sided(shape, form, capacity, h, seed), "proof") == proved


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
    """Some of the price of room goes to the cut after a segment."""
    proof = document["claims"][0]["proof"]
    proof["shares"] = {"one": text(shares[0]), "two": text(shares[1])}
    for kind in proof["kinds"]:
        room = float(Fraction(kind["before"]))
        kind["before"], kind["after"] = text(room * (1 - part)), text(room * part)


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
            for price in ("0", "1", "3"):
                other = copy.deepcopy(document)
                other["claims"][0]["proof"]["kinds"][number][key] = price
                worse.append(refusal(other))
    assert all("these prices prove" in told for told in worse)


# in bytes


def in_bytes(workload: Workload, cache: str, proof: dict[str, Any]) -> dict[str, Any]:
    found = bound_workload(workload, cache=cache, accumulators="fp32")
    document: dict[str, Any] = json.loads(json.dumps(found.certificate()))
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
    least = prove_priced(CHAIN, form, Units(1, 2, 2, 1), cache // 2, proof, "proof") + more
    assert document["claims"][0]["bytes"] == 2 * least
    document["claims"][0]["bytes"] += 1
    with pytest.raises(RefusedError, match="bytes moved, at least"):
        check(document)


# what is refused


def refusal(document: dict[str, Any]) -> str:
    with pytest.raises(RefusedError) as caught:
        check(document)
    told = str(caught.value)
    assert len(told) < 300 and "\n" not in told
    return told


def changed(change: Callable[[dict[str, Any]], object]) -> str:
    ends = (100, 274)
    proof = proof_of("chain", SEGMENTS, ends, some_prices(2, CAPACITY, random.Random(2)))
    document = with_proof(Ffn(*CHAIN), CAPACITY, proof)
    assert persuade(document) is not None
    change(document["claims"][0]["proof"])
    return refusal(document)


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("to", 275, "at most 274"),
        ("to", -1, "at least 0"),
        ("to", "100", "whole number"),
        ("to", True, "whole number"),
        ("before", "-1", "fraction"),
        ("before", 1, "fraction"),
        ("before", "1/3", "multiple"),
        ("before", "4294967296", "below 2\\^32"),
        ("after", "-1", "fraction"),
        ("after", "-1/18446744073709551616", "fraction"),
        ("after", 0, "fraction"),
        ("after", None, "fraction"),
        ("after", "1/3", "multiple"),
        ("after", "1/36893488147419103232", "multiple"),
        ("after", "4294967296", "below 2\\^32"),
        ("first", "0", "above 0"),
        ("second", "0", "above 0"),
        ("first", "-1/2", "fraction"),
        ("A", "1/0", "fraction"),
        ("D", "-0.5", "fraction"),
        ("Y", None, "fraction"),
        ("cells", "1/36893488147419103232", "multiple"),
        ("cells again", "9" * 1300, "fraction"),
        ("B", "-4294967296", "below 2\\^32"),
    ],
)
def test_prices_that_are_none(key: str, value: object, why: str) -> None:
    told = changed(lambda proof: proof["kinds"][0].__setitem__(key, value))
    assert re.search(why, told), told


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"kinds": []}, "1 to 64 entries"),
        ({"kinds": {}}, "1 to 64 entries"),
        ({"form": "gated chain"}, "one of chain"),
        ({"form": None}, "one of chain"),
        ({"segments": 0}, "at least 1"),
        ({"segments": 16 * 16 * 32 + 1}, "at most"),
        ({"segments": "30"}, "whole number"),
        ({"segments": 29}, "does not end at 283"),
        ({"minima": [1]}, "nothing here has"),
        ({"theorem": "priced line"}, "one of"),
        ({"theorem": "lines"}, "nothing here has|missing"),
        ({"shares": None}, "object"),
        ({"shares": ["0", "0"]}, "object"),
        ({"shares": {}}, "'one' is missing"),
        ({"shares": {"one": "0"}}, "'two' is missing"),
        ({"shares": {"two": "0"}}, "'one' is missing"),
        ({"shares": {"one": "0", "two": "0", "three": "0"}}, "nothing here has"),
        ({"shares": {"one": 0, "two": "0"}}, "fraction"),
        ({"shares": {"one": "0", "two": "1.5"}}, "fraction"),
        ({"shares": {"one": "-1/2", "two": "0"}}, "fraction"),
        ({"shares": {"one": "0", "two": "-1"}}, "fraction"),
        ({"shares": {"one": "1/3", "two": "0"}}, "multiple"),
        ({"shares": {"one": "0", "two": "1/36893488147419103232"}}, "multiple"),
        ({"shares": {"one": "2", "two": "0"}}, "at most 1"),
        ({"shares": {"one": "18446744073709551617/18446744073709551616", "two": "0"}}, "at most 1"),
        ({"shares": {"one": "0", "two": "36893488147419103233/18446744073709551616"}}, "at most 2"),
        ({"shares": {"one": "0", "two": "4294967296"}}, "2\\^32"),
    ],
)
def test_proofs_that_are_none(changes: dict[str, Any], why: str) -> None:
    told = changed(lambda proof: proof.update(changes))
    assert re.search(why, told), told


def test_ranges_must_follow_each_other_and_cover_all() -> None:
    assert "does not end at 274" in changed(lambda proof: proof["kinds"].pop())
    assert "at least 275" in changed(lambda proof: proof["kinds"].append(dict(proof["kinds"][0])))
    assert "at least 275" in changed(lambda proof: proof["kinds"].reverse())
    assert "nothing here has" in changed(lambda proof: proof["kinds"][0].update({"from": 0}))
    assert "nothing here has" in changed(lambda proof: proof["kinds"][0].update({"room": "0"}))
    assert "'after' is missing" in changed(lambda proof: proof["kinds"][0].pop("after"))
    assert "'before' is missing" in changed(lambda proof: proof["kinds"][1].pop("before"))
    assert "'shares' is missing" in changed(lambda proof: proof.pop("shares"))
    assert "'Y' is missing" in changed(lambda proof: proof["kinds"][1].pop("Y"))
    assert "1 to 64 entries" in changed(lambda proof: proof.update(kinds=proof["kinds"] * 40))


@pytest.mark.parametrize(
    "workload",
    [
        Attention(64, 64, 8, causal=True),
        Gemm(64, 64, 64),
        TransformerLayer(64, 32, 96, 4, 2, 8, 8),
    ],
)
def test_workloads_that_the_theorem_is_not_about(workload: Workload) -> None:
    assert "theorem" in refusal(with_proof(workload, 100, flat("chain", (64, 8, 64, 8), 9, 0.1, 1.0)))


def test_games_that_the_theorem_is_not_about() -> None:
    document = of_chain()
    claim = document["claims"][0]
    claim["game"]["recompute"] = "allowed"
    assert "compute nothing again" in refusal(document)
    claim["game"] = {"recompute": "forbidden", "kernels": "separate"}
    assert "one of" in refusal(document)


def test_attention_without_a_mask_is_a_chain_for_each_group() -> None:
    attention = Attention(24, 24, 4, heads=4, kv_heads=2)
    shape = (48, 4, 24, 4)
    longest = -(-work_of(shape, "chain") // 12)
    proof = best_proof(shape, "chain", ONE, 30, 12, [longest // 3, 2 * longest // 3, longest])
    document = with_proof(attention, 30, proof)
    assert persuade(document) is not None
    assert document["claims"][0]["elements"] == 2 * prove_priced(shape, "chain", ONE, 30, proof, "proof")


# changes of all kinds


def test_no_change_makes_a_certificate_false() -> None:
    document = of_chain()
    least = in_values(best_ffn_schedule, Ffn(*CHAIN), CAPACITY).elements
    refused = 0
    for what, other in mutations(document["claims"][0]["proof"]):
        changed = {**document, "claims": [{**document["claims"][0], "proof": other}]}
        changed = json.loads(json.dumps(changed))
        if persuade(changed) is None:
            refused += 1
        else:
            assert changed["claims"][0]["elements"] <= least, what
    assert refused > 50


@pytest.mark.parametrize("seed", range(60))
def test_changes_anywhere_end_in_one_sentence(seed: int) -> None:
    rnd = random.Random(seed)
    proof = proof_of("chain", SEGMENTS, ENDS, some_prices(len(ENDS), CAPACITY, rnd))
    document = with_proof(Ffn(*CHAIN), CAPACITY, proof)
    for _ in range(10):
        persuade(mutant(document, rnd))


@pytest.mark.parametrize("seed", range(12))
def test_no_prices_take_long(seed: int) -> None:
    """Sixty-four kinds with prices of any size."""
    rnd = random.Random(seed)

    def price(signed: bool) -> str:
        size = 2.0 ** rnd.uniform(-63, 31) if rnd.random() < 0.7 else rnd.choice([0.0, 2.0**-64, 2.0**31])
        return text(size * (rnd.choice([1, -1]) if signed else 1))

    shape = (10**9, 10**9, 10**9, 10**9)
    proof = flat("chain", shape, 10 ** rnd.randint(3, 30), 1e-9, 1.0, 64)
    for kind in proof["kinds"]:
        for key in kind:
            if key != "to":
                kind[key] = price(key in LINES)
    proof["shares"] = {"one": text(rnd.choice([0, 0.3, 1])), "two": text(rnd.choice([0, 0.3, 2]))}
    for kind in proof["kinds"]:
        for key in ("first", "second"):
            kind[key] = kind[key] if Fraction(kind[key]) else "1"
    start = time.monotonic()
    with suppress(RefusedError):
        prove_priced(shape, "chain", ONE, 10**6, proof, "proof")
    assert time.monotonic() - start < 20


def test_speed() -> None:
    shape = (8192, 4096, 11008, 4096)
    proof = flat("chain", shape, 97, 6e-4, 0.75, 10)
    proof["shares"] = {"one": "1/2", "two": "5/4"}
    for number, kind in enumerate(proof["kinds"]):
        kind["after"], kind["before"] = text(0.5 + number / 10), text(1.5 - number / 10)
    start = time.process_time()
    prove_priced(shape, "chain", ONE, 6 * 2**19, proof, "proof")
    assert time.process_time() - start < 2


def test_a_claim_may_be_less_than_the_prices_prove_and_not_more() -> None:
    document = of_chain()
    claim = document["claims"][0]
    claim["proof"]["least"] = claim["elements"]
    check(document)
    claim["proof"]["least"] = claim["elements"] = claim["elements"] + 1
    assert "prove" in refusal(document)
