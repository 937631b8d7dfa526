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
from tests.bounds.priced_game import ONE, Shape, proof_of, some_ends, some_prices, text, work_of
from tests.bounds.priced_search import best_proof
from tests.certificate.mutate import mutations
from tests.certificate.persuade import mutant, persuade

CHAIN: Shape = (16, 16, 16, 16)
CAPACITY, SEGMENTS, ENDS = 40, 30, (30, 137, 190, 274)


def with_proof(workload: Workload, capacity: int, proof: dict[str, Any]) -> dict[str, Any]:
    """A certificate of a lower bound, whose proof is another."""
    document: dict[str, Any] = json.loads(
        json.dumps(bound_certificate(workload, known_of(workload, capacity, capacity)))
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
    kind = {"room": rho, "first": mu, "second": mu, **dict.fromkeys(LINES, 0.0)}
    return proof_of(form, segments, [longest * (i + 1) // count for i in range(count)], [kind] * count)


@pytest.mark.parametrize("form", ["chain", "gated chain", "gate's chain"])
def test_what_is_proved_is_below_schedules_and_no_more_is_taken(form: str) -> None:
    document = of_chain(form)
    claim = document["claims"][0]
    workload = Ffn(*CHAIN, form != "chain")
    assert f"{claim['elements']:,} elements" in check(document)[0]
    assert claim["elements"] <= best_ffn_schedule(workload, CAPACITY).elements
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
        "chain", 1, [29, 30, 90], [{"room": 1.0, "first": 1e-18, "second": 1e-18, **dict.fromkeys(LINES, 0.0)}] * 3
    )
    assert prove_priced(shape, "chain", ONE, 9, exact, "proof") == 48


def test_the_same_in_units_of_any_width() -> None:
    """Widths, rooms and prices that are all three times as large prove three times as much."""
    rnd = random.Random(7)
    kinds = some_prices(3, 30, rnd)
    thrice = [{key: price * (1 if key == "room" else 3) for key, price in kind.items()} for kind in kinds]
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
        ("room", "-1", "fraction"),
        ("room", 1, "fraction"),
        ("room", "1/3", "multiple"),
        ("room", "4294967296", "below 2\\^32"),
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
    least = best_ffn_schedule(Ffn(*CHAIN), CAPACITY).elements
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
        for key in ("first", "second"):
            kind[key] = kind[key] if Fraction(kind[key]) else "1"
    start = time.monotonic()
    with suppress(RefusedError):
        prove_priced(shape, "chain", ONE, 10**6, proof, "proof")
    assert time.monotonic() - start < 20


def test_speed() -> None:
    shape = (8192, 4096, 11008, 4096)
    proof = flat("chain", shape, 97, 6e-4, 1.5, 10)
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
