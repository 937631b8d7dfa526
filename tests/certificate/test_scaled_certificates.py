"""Certificates of products and networks with block scales: what `bound` says, and nothing that is false."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from pebble.certificate import RefusedError, check
from pebble.families import FAMILIES, family_of
from pebble.reports.bound import bound_workload
from pebble.workloads import ScaledFfn, ScaledGemm
from pebble.workloads.scaled import FORMATS
from pebble.workloads.widths import FastMemory, Widths
from pebble.workloads.workload import Workload
from tests.certificate.mutate import mutations
from tests.certificate.persuade import mutant, persuade

INSTANCES: dict[str, tuple[Workload, str, str]] = {
    "gemm": (ScaledGemm(8192, 8192, 8192, "mxfp8", "mxfp4"), "1MiB", "off"),
    "gemm, segments": (ScaledGemm(40, 30, 64, "bf16", "nvfp4", out_dtype="fp32"), "40B", "off"),
    "gemm, blocks of 128": (ScaledGemm(900, 700, 800, "fp8-1x128", "fp8-128x128"), "8KiB", "fp32"),
    "gemm, compulsory": (ScaledGemm(64, 65, 66, "mxfp4", "nvfp4"), "1MiB", "fp32"),
    "ffn": (ScaledFfn(900, 300, 700, 0, False, "mxfp8", "mxfp4", "mxfp8"), "8KiB", "fp32"),
    "ffn, gated": (ScaledFfn(300, 200, 500, 90, True, "fp8-1x128", "fp8-128x128", "fp8-1x128"), "8KiB", "off"),
    "ffn, compulsory": (ScaledFfn(30, 20, 50, 0, False, "nvfp4", "nvfp4"), "1MiB", "fp32"),
}


def certificate(name: str) -> dict[str, Any]:
    workload, cache, sums = INSTANCES[name]
    result = bound_workload(workload, cache=cache, accumulators=sums)
    document: dict[str, Any] = json.loads(json.dumps(result.certificate()))
    (claim,) = document["claims"]
    assert claim["bytes"] == result.lower.bytes and claim["capacity_bytes"] == result.capacity.bytes
    (sentence,) = check(document)
    assert f"moves at least {result.lower.bytes:,} bytes" in sentence
    assert ("of an intermediate" in sentence) == name.startswith("ffn")  # a single product has none
    return document


def true_claims(document: dict[str, Any]) -> bool:
    """Whether an accepted certificate says no more than the bounds do for the game that it names."""
    spec = dict(document["statement"]["workload"])
    workload = FAMILIES[spec.pop("family")].shape(**spec)
    for claim in document["claims"]:
        told, capacity = claim["widths_bytes"], claim["capacity_bytes"]
        best = 0
        # what holds for narrower partial sums holds for wider ones
        for hidden in {1, 4, told["partial_hidden"]}:
            for partial in {4, workload.out_bytes, told["partial_output"]}:
                if hidden <= told["partial_hidden"] and workload.out_bytes <= partial <= told["partial_output"]:
                    memory = FastMemory(capacity, Widths(workload.in_bytes, hidden, partial, workload.out_bytes))
                    redo = claim["game"]["recompute"] == "allowed"
                    values = workload.values_in(capacity)
                    best = max(best, family_of(workload).lower_bound(workload, max(3, values), redo, memory).bytes)
        if claim["bytes"] > best:
            return False
    return True


@pytest.mark.parametrize("name", INSTANCES)
def test_no_wrong_change_is_accepted(name: str) -> None:
    original = certificate(name)
    refused = accepted = 0
    for what, changed in mutations(original):
        try:
            check(changed)
        except RefusedError:
            refused += 1
        else:
            accepted += 1
            assert true_claims(changed), what
    assert refused > (100 if "compulsory" in name else 130)
    assert accepted < refused / 5  # a wider partial sum than was needed, a plain type that no operand has


@pytest.mark.parametrize("name", INSTANCES)
def test_what_is_made_to_agree_is_true(name: str) -> None:
    """Changes at random, and every number that the checker then names put right."""
    rnd, original, taken = random.Random(name), certificate(name), 0
    for _ in range(200):
        changed = mutant(original, rnd, 1)
        if persuade(changed) is None:
            continue
        taken += 1
        for claim in changed["claims"]:
            spec = dict(changed["statement"]["workload"])
            workload = FAMILIES[spec.pop("family")].shape(**spec)
            widths = Widths(
                workload.in_bytes, claim["widths_bytes"]["partial_hidden"],
                claim["widths_bytes"]["partial_output"], workload.out_bytes,
            )  # fmt: skip
            known = family_of(workload).schedules(workload, FastMemory(claim["capacity_bytes"], widths))
            assert all(claim["bytes"] <= schedule.bytes for schedule in known.values()), claim
    assert taken


def test_every_bound_can_be_certified() -> None:
    rnd = random.Random(7)

    def size() -> int:
        return rnd.choice([rnd.randint(1, 6), rnd.randint(1, 40), rnd.randint(1, 900)])

    for _ in range(60):
        types = [rnd.choice(sorted(FORMATS)) for _ in range(3)]
        out = rnd.choice(["bf16", "fp32", "fp8"])
        workload: Workload = ScaledGemm(size(), size(), size(), *types[:2], out_dtype=out)
        if rnd.random() < 0.6:
            workload = ScaledFfn(size(), size(), size(), size(), rnd.random() < 0.4, *types, out_dtype=out)
        sums, redo = rnd.choice(["off", "fp32"]), rnd.random() < 0.2
        cache = f"{rnd.choice([rnd.randint(40, 400), rnd.randint(40, 10**5)])}B"
        result = bound_workload(workload, cache=cache, accumulators=sums, recompute=redo)
        assert check(json.loads(json.dumps(result.certificate())))


def test_units_and_claims_that_are_not_defined() -> None:
    document = certificate("gemm")
    proof = document["claims"][0]["proof"]["kernels"][0]
    for units in (16, 64, None):
        proof["units_of_a_byte"] = units
        with pytest.raises(RefusedError, match="units_of_a_byte"):
            check(document)
    proof["units_of_a_byte"] = 32
    claim = {"claim": "lower bound", "game": document["claims"][0]["game"], "capacity_elements": 9}
    claim |= {"elements": 1, "bytes": 1, "proof": {"theorem": "compulsory"}}
    for statement in (document["statement"], {"workload": {**document["statement"]["workload"], "dtype_a": "mxfp6"}}):
        with pytest.raises(RefusedError, match=r"counted in bytes|dtype_a"):
            check({**document, "statement": statement, "claims": [claim]})
    upper = {"claim": "upper bound in bytes", "widths_bytes": document["claims"][0]["widths_bytes"]}
    upper |= {"capacity_bytes": 10**9, "bytes": 1, "schedule": {"kind": "blocks"}}
    with pytest.raises(RefusedError, match="no schedule of a scaled-gemm is defined"):
        check({**document, "claims": [upper]})
