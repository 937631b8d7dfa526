"""Certificates of the line theorem: nothing that its numbers do not prove is taken."""

from __future__ import annotations

import copy
import json
import random
from fractions import Fraction
from typing import Any

import pytest

from pebble.certificate import RefusedError, check
from pebble.certificate.lines import Form, Lines, by_lines
from pebble.certificate.statement import ALIKE
from pebble.families import lower_bound
from pebble.proof.certificate import bound_certificate
from pebble.reports.bound import known_of
from pebble.schedules.explicit import best_gemm_schedule
from pebble.workloads import Attention, Conv2d, Ffn, Gemm, GroupedGemm
from pebble.workloads.widths import FastMemory
from pebble.workloads.workload import Workload
from tests.certificate.persuade import persuade
from tests.rooms import in_values

WORKLOADS: dict[str, tuple[Workload, int]] = {
    "gemm": (Gemm(8192, 8192, 8192), 40 * 2**19),
    "gemm, added to": (Gemm(300, 200, 500, accumulate=True), 4000),
    "convolution": (Conv2d(2, 8, 16, 12, 12, 3, 1), 700),
    "convolution, strided": (Conv2d(4, 32, 32, 30, 30, 3, 2), 3000),
    "ffn": (Ffn(8192, 4096, 11008), 72 * 2**19),
    "ffn, H in two segments": (Ffn(8192, 8192, 28672), 6 * 2**19),
    "ffn, gated": (Ffn(8192, 4096, 11008, gated=True), 40 * 2**19),
    "attention": (Attention(32768, 32768, 128, heads=8, kv_heads=2), 96 * 2**9),
    "groups": (GroupedGemm((512, 384, 1024), 4096, 7168), 6 * 2**19),
}


@pytest.fixture(autouse=True)
def without_multipliers(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are about the other theorems; certificates of Theorem 10 have tests of their own."""
    monkeypatch.setattr("pebble.bounds.lagrangian_choice.lagrangian_bound", lambda *_: None)


def certificate(name: str) -> dict[str, Any]:
    workload, capacity = WORKLOADS[name]
    result: dict[str, Any] = json.loads(
        json.dumps(bound_certificate(workload, known_of(workload, capacity, FastMemory.of_values(capacity, workload))))
    )
    return result


def line_proofs(document: dict[str, Any]) -> list[dict[str, Any]]:
    proof = document["claims"][0]["proof"]
    return [item for item in proof.get("parts", [proof]) if item["theorem"] == "lines"]


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_bound_of_the_command_is_by_lines_and_verified(name: str) -> None:
    document = certificate(name)
    assert line_proofs(document)
    assert document["claims"][0]["elements"] == lower_bound(*WORKLOADS[name]).elements
    assert f"{document['claims'][0]['elements']:,}" in check(document)[0]


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_bound_that_is_one_higher_is_refused(name: str) -> None:
    document = certificate(name)
    document["claims"][0]["elements"] += 1
    with pytest.raises(RefusedError, match="elements moved, at least"):
        check(document)


@pytest.mark.parametrize("name", WORKLOADS)
def test_another_number_of_segments_of_a_value_is_refused(name: str) -> None:
    """The minima are checked against both neighbours: one that is not the least would charge too much."""
    for number, proof in enumerate(line_proofs(certificate(name))):
        for at, s in enumerate(proof["minima"]):
            for other in {s - 1, s + 1, 2 * s + 1} - {0}:
                changed = certificate(name)
                line_proofs(changed)[number]["minima"][at] = other
                with pytest.raises(RefusedError):
                    check(changed)


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("mu", "-1/5", "fraction"),
        ("mu", 0.5, "fraction"),
        ("mu", "1/0", "fraction"),
        ("rho", "-1", "fraction"),
        ("segments", 0, "at least 1"),
        ("segments", 8192**3 + 1, "at most"),
        ("segments", "5", "whole number"),
        ("minima", [1, 1], "3 to 3 entries"),
        ("minima", [0, 1, 1], "at least 1"),
        ("minima", [1, 1, 9000], "at most"),
        ("form", "chain", "one of product"),
        ("form", None, "one of product"),
        ("theorem", "line", "one of"),
    ],
)
def test_what_makes_no_sense_is_refused(key: str, value: object, why: str) -> None:
    document = certificate("gemm")
    document["claims"][0]["proof"][key] = value
    with pytest.raises(RefusedError, match=why):
        check(document)


def test_prices_of_any_kind_prove_no_more_than_a_schedule_moves() -> None:
    """The numbers of a proof at random, the rest put right: what the checker takes is true."""
    rnd, taken = random.Random(3), 0
    for _ in range(60):
        gemm = Gemm(rnd.randint(1, 40), rnd.randint(1, 40), rnd.randint(1, 40), accumulate=rnd.random() < 0.3)
        capacity = rnd.randint(3, 300)
        document = bound_certificate(gemm, known_of(gemm, capacity, FastMemory.of_values(capacity, gemm)))
        claim = copy.deepcopy(document["claims"][0])
        h = rnd.randint(1, min(gemm.multiply_adds, 60))
        proof = {"theorem": "lines", "form": "product", "segments": h}
        multipliers = [str(Fraction(rnd.randint(0, 400), rnd.randint(1, 200))) for _ in range(2)]
        proof |= {"mu": multipliers[0], "rho": multipliers[1], "minima": [1, 1, 1]}
        sides = [(1, gemm.n), (1, gemm.m), (2, gemm.k)]
        proof["minima"] = [_best(length, again, h, *map(float, map(Fraction, multipliers))) for again, length in sides]
        document["claims"] = [{**claim, "proof": proof}]
        if persuade(document) is not None:
            taken += 1
            assert document["claims"][0]["elements"] <= in_values(best_gemm_schedule, gemm, capacity).elements
    assert taken > 8


def _best(length: int, again: int, h: int, mu: float, rho: float) -> int:
    from pebble.bounds import Lines as Kind
    from pebble.bounds.lines import MULTIPLIER_BITS, Cut

    cut = Cut(h, int(mu * 2**MULTIPLIER_BITS), int(rho * 2**MULTIPLIER_BITS))
    return Kind("x", 1, length, again=again).least(cut)[1]


def test_one_segment_is_compulsory_whatever_the_prices() -> None:
    kinds = [Lines(6, 4), Lines(8, 3), Lines(12, 2, again=2)]
    proof = {"theorem": "lines", "form": "product", "segments": 1, "mu": "7/3", "rho": "2", "minima": [1, 1, 1]}
    assert by_lines({"product": Form(kinds, 24)}, ALIKE, 5, proof, "proof") == 26


def test_a_chain_or_a_wide_kernel_has_no_such_proof_here() -> None:
    wide = Conv2d(1, 1, 1, 80, 80, 70)
    document: dict[str, Any] = bound_certificate(wide, known_of(wide, 100, FastMemory.of_values(100, wide)))
    document["claims"] = [{**document["claims"][0], "proof": {"theorem": "lines", "form": "convolution"}}]
    with pytest.raises(RefusedError, match="not about such a conv2d"):
        check(document)


@pytest.mark.parametrize(
    ("name", "changes", "why"),
    [
        ("ffn", {"rho": "1/2"}, "multipliers rho|charged less"),
        ("ffn", {"rho": "5/2"}, "multipliers rho|charged less"),
        ("ffn", {"form": "gated chain"}, "one of chain"),
        ("ffn", {"minima": [2, 1, 2, 4]}, "at most|charged less"),
        ("ffn, gated", {"form": "gate's chain"}, "4 to 4 entries"),
        ("ffn, H in two segments", {"minima": [16, 5, 12]}, "4 to 4 entries"),
    ],
)
def test_what_the_theorem_of_chains_does_not_say(name: str, changes: dict[str, Any], why: str) -> None:
    document = certificate(name)
    document["claims"][0]["proof"] |= changes
    with pytest.raises(RefusedError, match=why):
        check(document)


def test_a_chain_that_computes_again_or_is_masked_has_no_proof_by_lines() -> None:
    document = certificate("ffn")
    document["claims"][0]["game"]["recompute"] = "allowed"
    with pytest.raises(RefusedError, match="compute nothing again"):
        check(document)
    document = certificate("attention")
    document["statement"]["workload"]["causal"] = True
    with pytest.raises(RefusedError):
        check(document)
