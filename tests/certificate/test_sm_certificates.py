"""Certificates of bounds for several SMs: what `bound --buffers` says, and nothing that its numbers do not prove."""

from __future__ import annotations

import copy
import json
from fractions import Fraction
from math import floor
from typing import Any

import pytest

import pebble
from pebble.bounds.memories import buffer_lower_bound
from pebble.cdag.products import gemm_dag
from pebble.certificate import RefusedError, check
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


def certificate(workload: Workload, capacity: int, buffers: BufferModel) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(json.dumps(sm_certificate(accounting(workload), capacity, buffers)))
    return result


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("buffers", MODELS, ids=str)
def test_the_bound_of_the_command_is_verified(name: str, buffers: BufferModel) -> None:
    for capacity in (64, 262144):
        claim = certificate(WORKLOADS[name], capacity, buffers)["claims"][0]
        bound = buffer_lower_bound(accounting(WORKLOADS[name]), capacity, buffers)
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
    bound = buffer_lower_bound(accounting(workload), claim["capacity_elements"], model)
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
    claim = certificate(Gemm(2, 2, 2), capacity, buffers)["claims"][0]
    optimum = solve(Game.from_dag(gemm_dag(2, 2, 2)), capacity, buffers=buffers, time_limit=600).upper_bound
    assert optimum is not None and claim["elements"] <= optimum


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
    assert "proves 104 elements, not 115" in capsys.readouterr().err
    with pytest.raises(InputError, match="several SMs"):
        sm_certificate(accounting(Gemm(8, 8, 8)), 9, SINGLE)
