"""Priced lines that are refused: malformed, foreign, changed anywhere; and no file makes the checker long."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import Any

import pytest

from pebble.certificate import RefusedError, check
from pebble.certificate.lagrangian_lines import LINES, prove_lagrangian
from pebble.schedules.explicit.ffn import best_ffn_schedule
from pebble.workloads import Attention, Ffn, Gemm, TransformerLayer
from pebble.workloads.workload import Workload
from tests.bounds.lagrangian_game import (
    ONE,
    proof_of,
    some_multipliers,
    text,
    work_of,
)
from tests.bounds.lagrangian_search import best_proof
from tests.certificate.lagrangian import CAPACITY, CHAIN, ENDS, SEGMENTS, flat, of_chain, refusal, with_proof
from tests.certificate.mutate import mutations
from tests.certificate.persuade import mutant, persuade
from tests.rooms import in_values
from tests.work import calls


def changed(change: Callable[[dict[str, Any]], object]) -> str:
    ends = (100, 274)
    proof = proof_of("chain", SEGMENTS, ends, some_multipliers(2, CAPACITY, random.Random(2)))
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
    spec = changed(lambda proof: proof["kinds"][0].__setitem__(key, value))
    assert re.search(why, spec), spec


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
    spec = changed(lambda proof: proof.update(changes))
    assert re.search(why, spec), spec


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
    assert document["claims"][0]["elements"] == 2 * prove_lagrangian(shape, "chain", ONE, 30, proof, "proof")


# changes of all kinds


def test_no_change_makes_a_certificate_false() -> None:
    document = of_chain()
    least = in_values(best_ffn_schedule, Ffn(*CHAIN), CAPACITY).elements
    refused = 0
    for what, other in random.Random(1).sample(list(mutations(document["claims"][0]["proof"])), 120):
        changed = {**document, "claims": [{**document["claims"][0], "proof": other}]}
        changed = json.loads(json.dumps(changed))
        if persuade(changed) is None:
            refused += 1
        else:
            assert changed["claims"][0]["elements"] <= least, what
    assert refused > 15


@pytest.mark.parametrize("seed", range(60))
def test_changes_anywhere_end_in_one_sentence(seed: int) -> None:
    rnd = random.Random(seed)
    proof = proof_of("chain", SEGMENTS, ENDS, some_multipliers(len(ENDS), CAPACITY, rnd))
    document = with_proof(Ffn(*CHAIN), CAPACITY, proof)
    for _ in range(10):
        persuade(mutant(document, rnd))


@pytest.mark.parametrize("seed", range(12))
def test_no_prices_take_long(seed: int) -> None:
    """Sixty-four kinds with prices of any size."""
    rnd = random.Random(seed)

    def multiplier(signed: bool) -> str:
        size = 2.0 ** rnd.uniform(-63, 31) if rnd.random() < 0.7 else rnd.choice([0.0, 2.0**-64, 2.0**31])
        return text(size * (rnd.choice([1, -1]) if signed else 1))

    shape = (10**9, 10**9, 10**9, 10**9)
    proof = flat("chain", shape, 10 ** rnd.randint(3, 30), 1e-9, 1.0, 64)
    for kind in proof["kinds"]:
        for key in kind:
            if key != "to":
                kind[key] = multiplier(key in LINES)
    proof["shares"] = {"one": text(rnd.choice([0, 0.3, 1])), "two": text(rnd.choice([0, 0.3, 2]))}
    for kind in proof["kinds"]:
        for key in ("first", "second"):
            kind[key] = kind[key] if Fraction(kind[key]) else "1"

    def prove() -> None:
        with suppress(RefusedError):
            prove_lagrangian(shape, "chain", ONE, 10**6, proof, "proof")

    assert calls(prove) < 500_000  # seconds


def test_a_proof_of_ten_kinds_is_little_work() -> None:
    shape = (8192, 4096, 11008, 4096)
    proof = flat("chain", shape, 97, 6e-4, 0.75, 10)
    proof["shares"] = {"one": "1/2", "two": "5/4"}
    for number, kind in enumerate(proof["kinds"]):
        kind["after"], kind["before"] = text(0.5 + number / 10), text(1.5 - number / 10)
    assert calls(lambda: prove_lagrangian(shape, "chain", ONE, 6 * 2**19, proof, "proof")) < 500_000  # a second


def test_a_claim_may_be_less_than_the_prices_prove_and_not_more() -> None:
    document = of_chain()
    claim = document["claims"][0]
    claim["proof"]["least"] = claim["elements"]
    check(document)
    claim["proof"]["least"] = claim["elements"] = claim["elements"] + 1
    assert "prove" in refusal(document)
