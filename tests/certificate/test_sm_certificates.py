"""Certificates of bounds for several SMs: what `bound --buffers` says, and nothing that its numbers do not prove."""

from __future__ import annotations

import copy
import json
import re
from fractions import Fraction
from math import floor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pebble
from pebble.bounds.box import Box, best_segments
from pebble.bounds.memories import balanced_share, buffer_lower_bound
from pebble.cdag.products import gemm_dag
from pebble.certificate import RefusedError, check, geometry, splits
from pebble.cli import main
from pebble.errors import InputError
from pebble.families import accounting
from pebble.game import SINGLE, BufferModel, Game
from pebble.proof.on_sms import sm_certificate
from pebble.solvers import solve
from pebble.workloads import Attention, Conv2d, Ffn, Gemm
from pebble.workloads.workload import Workload
from tests.certificate.mutate import mutations

WORKLOADS: dict[str, Workload] = {
    "gemm": Gemm(8192, 8192, 8192),
    "gemm, few rows, added to": Gemm(256, 8192, 8192, accumulate=True),
    "ffn": Ffn(8192, 4096, 14336),
    "ffn, gated": Ffn(8192, 4096, 14336, gated=True),
    "attention": Attention(8192, 8192, 128, heads=32, kv_heads=8),
    "attention, causal, strict": Attention(1024, 2048, 128, causal=True, softmax="strict"),
}
MODELS = [
    BufferModel("sm-local", 132),
    BufferModel("connected", 132, Fraction(1, 4)),
    BufferModel("connected", 132, Fraction(1, 4), "cluster-16"),
    BufferModel("connected", 132, Fraction(1, 3), "partitions-2"),
    BufferModel("connected", 132, Fraction(3, 4), "partitions-2"),
    BufferModel("connected", 132, Fraction(5, 2), "mesh-11x12"),
    BufferModel("connected", 132, Fraction(1, 4), "ring"),
    BufferModel("connected", 132, Fraction(3, 2), "ring"),
]


def certificate(workload: Workload, capacity: int, buffers: BufferModel, most: int | None = None) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(json.dumps(sm_certificate(accounting(workload), capacity, buffers, most)))
    return result


def balanced(workload: Workload, capacity: int, buffers: BufferModel) -> dict[str, Any]:
    """The certificate of the balanced bound alone."""
    result = certificate(workload, capacity, buffers, balanced_share(workload, buffers.sms))
    del result["claims"][0]
    return result


@pytest.mark.parametrize(
    ("name", "buffers"),
    [  # each model with a product and with a chain, each workload with a network that is not whole; then the rest
        pytest.param(
            name,
            buffers,
            marks=() if name in ("gemm", "ffn, gated") or buffers is MODELS[3] else pytest.mark.slow,
            id=f"{buffers}-{name}",
        )
        for buffers in MODELS
        for name in WORKLOADS
    ],
)
def test_the_bound_of_the_command_is_verified(name: str, buffers: BufferModel) -> None:
    workload = WORKLOADS[name]
    share = balanced_share(workload, buffers.sms)
    for capacity in (64, 262144):
        claims = certificate(workload, capacity, buffers, share)["claims"]
        assert [claim.get("most_multiply_adds") for claim in claims] == [None, share]
        for claim, most in zip(claims, (None, share), strict=True):
            bound = buffer_lower_bound(accounting(workload), capacity, buffers, most)
            assert (claim["elements"], claim["bytes"]) == (bound.elements, bound.bytes)


def still_true(workload: Workload, document: dict[str, Any], mutant: dict[str, Any]) -> bool:
    """Whether what a changed certificate claims is no more than the bound of its own question.

    C += A B costs no less than C := A B with atomic adds, so the one word more in the statement changes nothing.
    """
    statement, claim = copy.deepcopy(mutant["statement"]), mutant["claims"][0]
    if "accumulate_into" in statement["workload"]:
        statement["workload"]["accumulate_into"] = document["statement"]["workload"]["accumulate_into"]
    spec = claim["buffers"]
    omega = min(Fraction(spec.get("omega", 0)), Fraction(1))  # above 1 it makes no difference
    if omega.denominator > 1000:  # what is proved at less is proved
        omega = Fraction(floor(1000 * omega), 1000)
    model = BufferModel(spec["kind"], claim["sms"], omega, spec.get("topology", "all-to-all"))
    bound = buffer_lower_bound(accounting(workload), claim["capacity_elements"], model, claim.get("most_multiply_adds"))
    return statement == document["statement"] and claim["elements"] <= bound.elements and claim["bytes"] <= bound.bytes


@pytest.mark.parametrize(
    ("name", "buffers"),
    [("gemm", MODELS[0]), ("ffn, gated", MODELS[2]), ("attention", MODELS[3]), ("ffn", MODELS[5]), ("ffn", MODELS[6])],
)
def test_no_change_proves_something_else(name: str, buffers: BufferModel) -> None:
    document = certificate(WORKLOADS[name], 262144, buffers)
    assert len(check(document)) == 1
    taken = 0
    for what, mutant in mutations(document):
        try:
            check(mutant)
        except RefusedError:
            continue
        taken += 1
        assert still_true(WORKLOADS[name], document, mutant), what
    assert taken <= 20  # digits of a number that is proved with room to spare


@pytest.mark.parametrize(
    ("workload", "capacity", "buffers"),
    [
        (WORKLOADS["gemm"], 262144, MODELS[0]),
        (WORKLOADS["attention, causal, strict"], 32768, MODELS[2]),
        (WORKLOADS["ffn"], 262144, MODELS[6]),
        (Gemm(4, 4, 4), 12, BufferModel("connected", 4, Fraction(1, 2))),
    ],
    ids=["gemm", "attention", "ring", "whole numbers"],
)
def test_no_change_of_a_balanced_one_proves_something_else(
    workload: Workload, capacity: int, buffers: BufferModel
) -> None:
    """A leaf may end elsewhere, and have other multipliers, as far as its rate is proved: the claim stays the same."""
    document = balanced(workload, capacity, buffers)
    assert check(document)[0].count("none of which does more than") == 1
    for what, mutant in mutations(document):
        try:
            check(mutant)
        except RefusedError:
            continue
        assert still_true(workload, document, mutant), what
        assert not re.match("claims.0.(elements|bytes|most_multiply_adds):", what), what


def test_a_rate_is_proved_on_all_leaves() -> None:
    document = balanced(WORKLOADS["gemm"], 262144, MODELS[0])
    group = document["claims"][0]["groups"][0]
    proof = group["proof"]
    assert proof["theorem"] == "segments at a rate" and len(proof["leaves"]) == 6
    assert (
        document["claims"][0]["elements"] > certificate(WORKLOADS["gemm"], 262144, MODELS[0])["claims"][0]["elements"]
    )

    def with_proof(**change: object) -> dict[str, Any]:
        return changed(document, "groups", [{"sms": 1, "proof": proof | change}])

    leaves = proof["leaves"]
    refused(with_proof(rate=str(Fraction(proof["rate"]) + Fraction(1, 10**9))), "the rate is not proved")
    refused(with_proof(leaves=leaves[1:]), "is not proved for an SM that does 0 products")
    refused(with_proof(leaves=leaves[:-1]), "the last leaf ends at")
    refused(with_proof(leaves=[*leaves[:2], *leaves[3:]]), "the rate is not proved")
    refused(with_proof(leaves=[leaves[0] | {"segments": 2}, *leaves[1:]]), "does 0 products")
    refused(with_proof(leaves=[leaves[0] | {"multipliers": ["3/2", "0", "0"]}, *leaves[1:]]), "above 1")
    refused(with_proof(leaves=[leaves[1], leaves[0], *leaves[2:]]), "to|proved")
    refused(with_proof(form="chain"), "form")
    refused(changed(document, "most_multiply_adds", 2 * document["claims"][0]["most_multiply_adds"]), "last leaf")
    refused(changed(document, "most_multiply_adds", 1), "most_multiply_adds")
    del document["claims"][0]["most_multiply_adds"]
    refused(document, "needs a limit")


def test_a_box_of_some_multiply_adds_has_no_limit() -> None:
    """The gate's chain leaves out the products of the up weights, of which an SM may do nothing else."""
    document = balanced(WORKLOADS["ffn, gated"], 262144, MODELS[0])
    proof = document["claims"][0]["groups"][0]["proof"] | {"form": "gate's chain"}
    if proof["theorem"] == "segments":
        proof = {"theorem": "segments at a rate", "form": "gate's chain", "rate": "0", "leaves": []}
    refused(changed(document, "groups", [{"sms": 1, "proof": proof}]), "in a box of all")


def test_whole_numbers_are_for_few_products() -> None:
    proof = {"theorem": "segments of whole numbers", "form": "product"}
    document = balanced(WORKLOADS["gemm"], 262144, MODELS[0])
    refused(changed(document, "groups", [{"sms": 1, "proof": proof}]), "at most 160 products")


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(st.integers(1, 40), min_size=3, max_size=3),
    st.integers(3, 60),
    st.integers(1, 500),
    st.integers(1, 12),
    st.lists(st.fractions(0, 1, max_denominator=8), min_size=3, max_size=3),
)
def test_a_leaf_proves_what_lies_within(
    sides: list[int], capacity: int, start: int, h: int, multipliers: list[Fraction]
) -> None:
    """The function whose two ends the checker looks at is concave, and below what the program's box says."""
    box, values = geometry.Box(*sides), range(start, start + 3 * h + 2)
    below = [splits._touched(box, v, h, multipliers) - (h - 1) * capacity for v in values]
    room = Fraction(3 * h, 1 << 60)  # each value is rounded down
    assert all(2 * b + room >= a + c for a, b, c in zip(below, below[1:], below[2:], strict=False))
    own = Box(*sides)
    best = [best_segments(own.touched, v, capacity)[0] for v in values]
    assert all(value <= bound for value, bound in zip(below, best, strict=True))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.integers(1, 9), min_size=3, max_size=3), st.integers(1, 160))
def test_the_least_whole_numbers_are_those_of_the_program(sides: list[int], v: int) -> None:
    v = min(v, sides[0] * sides[1] * sides[2])
    assert geometry.least_whole(geometry.Box(*sides), v) == Box(*sides).touched_whole(v)


def refused(document: dict[str, Any], why: str) -> None:
    with pytest.raises(RefusedError, match=why):
        check(document)


def test_what_holds_for_one_memory_alone_is_refused() -> None:
    """Prices above 1 for a partial sum that leaves, and counts of whole values, which are not concave."""
    document = certificate(Gemm(60, 70, 80), 100, BufferModel("connected", 4, Fraction(1, 2)))
    proof = document["claims"][0]["as_one"]
    assert proof["theorem"] == "lines"
    refused(changed(document, "as_one", proof | {"rho": "9/8"}), "no multiplier of room above 1")
    groups = document["claims"][0]["groups"]
    share = groups[0]["proof"]["shares"][0]
    counted = copy.deepcopy(document)
    counted["claims"][0]["groups"][0]["proof"]["shares"][0] = share | {"counts_at_least": share["touched"]}
    refused(counted, "over the reals")
    refused(changed(document, "groups", groups * 2), "twice")
    refused(changed(document, "sms", 5), "elements|shares|terms")
    conv = copy.deepcopy(document)
    conv["statement"]["workload"] = {
        key: value
        for key, value in Conv2d(2, 8, 16, 12, 12, 3, 1).to_json().items()
        if key not in ("name", "flops", "compulsory_elements", "compulsory_bytes")
    }
    refused(conv, "gemm, ffn, attention")


def test_multipliers_of_a_ring_are_checked() -> None:
    """Arcs of four prove half as much again as all together and each alone, and no more than their multipliers say."""
    document = certificate(WORKLOADS["gemm"], 262144, MODELS[6])
    claim = document["claims"][0]
    line = certificate(WORKLOADS["gemm"], 262144, MODELS[1])["claims"][0]
    assert claim["elements"] > 1.5 * line["elements"] and claim["program"] == [{"sms": 4, "multiplier": "1"}]
    refused(changed(document, "program", [{"sms": 4, "multiplier": "2"}]), "more than a load costs")
    refused(changed(document, "program", [{"sms": 1, "multiplier": "1"}]), "a hop is charged 1, more than it costs")
    refused(changed(document, "program", [{"sms": 3, "multiplier": "3/4"}]), "groups of 3 SMs")
    refused(changed(document, "buffers", claim["buffers"] | {"topology": "mesh-11x12"}), "for a ring")


def changed(document: dict[str, Any], key: str, value: object) -> dict[str, Any]:
    other = copy.deepcopy(document)
    other["claims"][0][key] = value
    return other


@pytest.mark.parametrize("omega", [None, "1/4", "1/2", "1"])
@pytest.mark.parametrize("capacity", [3, 4, 5])
def test_no_claim_is_above_an_optimum(omega: str | None, capacity: int) -> None:
    buffers = BufferModel("sm-local", 2) if omega is None else BufferModel("connected", 2, Fraction(omega))
    claims = certificate(Gemm(2, 2, 2), capacity, buffers, 4)["claims"]
    for claim, most in zip(claims, (None, 4), strict=True):
        game = Game.from_dag(gemm_dag(2, 2, 2))
        optimum = solve(game, capacity, buffers=buffers, most_tasks_per_sm=most, time_limit=600).upper_bound
        assert optimum is not None and claim["elements"] <= optimum
    if omega is None and capacity == 5:
        assert claims[1]["elements"] == 16  # the optimum


def test_the_command_writes_what_verify_takes(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "c.json")
    words = "bound gemm -m 4096 -n 4096 -k 4096 --gpu h100 --buffers connected --omega 0.25 --topology cluster-16"
    assert main([*words.split(), "--certificate", path]) == 0
    capsys.readouterr()
    assert main(["verify", path]) == 0
    assert "on 132 SMs" in capsys.readouterr().out
    bound = pebble.bound("gemm", m=4096, n=4096, k=4096, gpu="h100", buffers="connected", omega=0.25)
    assert bound.certificate()["claims"][0]["elements"] == bound.document()["lower_bound"]["elements"]
    small = ["bound", "ffn", "--tokens", "4", "--d-model", "4", "--hidden", "4", "--cache", "5el", "--sms", "2"]
    assert main([*small, "--buffers", "sm-local", "--certificate", path]) == 0
    assert "note" not in capsys.readouterr().err
    assert main(["verify", path]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "however the work is split, costs at least 115 elements" in said
    assert "none of which does more than 64 multiply-adds, costs at least 120 elements" in said
    with pytest.raises(InputError, match="several SMs"):
        sm_certificate(accounting(Gemm(8, 8, 8)), 9, SINGLE)
