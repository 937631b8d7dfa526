"""Certificates of bounds in bytes: what `bound` says, and nothing that is false."""

import json
from fractions import Fraction
from typing import Any

import pytest

from pebble.bounds import Wide, in_bytes
from pebble.bounds.accounting import lower_bound, separate_bound
from pebble.certificate import RefusedError, check
from pebble.families import FAMILIES, accounting
from pebble.reports.bound import bound_workload
from pebble.workloads import Attention, Conv2d, Ffn, Gemm, GroupedGemm
from pebble.workloads.base import Workload
from pebble.workloads.widths import Room, Widths
from tests.certificate.mutate import mutations

INSTANCES: dict[str, tuple[Workload, str]] = {
    "gemm": (Gemm(8192, 8192, 8192), "40MiB"),
    "gemm, small": (Gemm(30, 40, 50, accumulate=True), "500B"),
    "gemm, fp8": (Gemm(300, 200, 100, "fp8"), "4KiB"),
    "ffn": (Ffn(8192, 4096, 11008), "6MiB"),
    "ffn, gated": (Ffn(300, 200, 500, gated=True), "20KiB"),
    "attention": (Attention(32768, 32768, 128), "228KiB"),
    "attention, causal": (Attention(400, 500, 16, heads=4, kv_heads=2, causal=True), "4KiB"),
    "grouped": (GroupedGemm((512, 384, 512), 409, 716), "64KiB"),
    "conv2d": (Conv2d(4, 64, 64, 20, 20, 3), "8KiB"),
}


def certificate(name: str) -> dict[str, Any]:
    workload, cache = INSTANCES[name]
    found = bound_workload(workload, cache=cache, accumulators="fp32")
    assert isinstance(found.lower.proof, Wide)
    document: dict[str, Any] = json.loads(json.dumps(found.certificate()))
    claims = [c for c in document["claims"] if c["claim"] != "lower bound"]
    assert claims[0]["claim"] == "lower bound in bytes" and claims[0]["bytes"] == found.lower.bytes
    if found.upper is not None and claims[-1]["claim"] == "upper bound in bytes":
        assert claims[-1]["bytes"] == found.upper.bytes
    assert claims[0]["capacity_bytes"] == found.capacity.bytes
    assert any("a partial sum takes 4 bytes" in sentence for sentence in check(document))
    return document | {"claims": claims}  # the others are looked at elsewhere


def true_claims(document: dict[str, Any]) -> bool:
    """Whether an accepted certificate says no more than the bounds do for the game that it names."""
    told = dict(document["statement"]["workload"])
    family = told.pop("family")
    if "accumulate_into" in told:
        told["accumulate"] = told.pop("accumulate_into")
    workload = FAMILIES[family].shape(**told)
    for claim in document["claims"]:
        partial, capacity = claim["widths_bytes"], claim["capacity_bytes"]
        if claim["claim"] == "upper bound in bytes":  # no schedule that is accepted moves less than is proved
            claim = {**claim, "game": {"kernels": "fused"}}
        bounds = separate_bound if claim["game"]["kernels"] == "separate" else lower_bound
        values = bounds(accounting(workload), capacity // workload.narrowest_bytes)
        found = 0
        # what holds for narrower partial sums holds for wider ones
        for hidden in {4, workload.in_bytes, partial["partial_hidden"]}:
            for output in {4, workload.out_bytes, partial["partial_output"]}:
                if hidden <= partial["partial_hidden"] and output <= partial["partial_output"]:
                    widths = Widths(workload.in_bytes, hidden, output, workload.out_bytes)
                    found = max(found, in_bytes(accounting(workload), values, Room(capacity, widths)).bytes)
        if (claim["bytes"] < found) if claim["claim"] == "upper bound in bytes" else (claim["bytes"] > found):
            return False
    return True


@pytest.mark.parametrize("name", INSTANCES)
def test_no_wrong_change_is_accepted(name: str) -> None:
    original = certificate(name)
    refused = accepted = 0
    for what, mutant in mutations(original):
        try:
            check(mutant)
        except RefusedError:
            refused += 1
        else:
            accepted += 1
            assert true_claims(mutant), what
    assert refused > 100
    assert accepted < refused / 5  # a wider partial sum than was needed, another data type of the same width


@pytest.mark.parametrize("name", ["gemm", "gemm, small", "ffn", "attention", "attention, causal"])
def test_schedules_are_certified_and_must_fit(name: str) -> None:
    document = certificate(name)
    upper = document["claims"][-1]
    assert upper["claim"] == "upper bound in bytes"
    capacity, upper["capacity_bytes"] = upper["capacity_bytes"], upper["capacity_bytes"] // 2
    assert "capacity" in refusal(document)
    upper["capacity_bytes"], upper["bytes"] = capacity, upper["bytes"] - 1
    assert "bytes moved" in refusal(document)


def test_a_schedule_that_keeps_partial_sums_takes_their_width() -> None:
    document = certificate("attention")
    upper = document["claims"][-1]
    upper["widths_bytes"]["partial_output"] = 8
    assert "capacity" in refusal(document)


def one_claim(name: str = "ffn") -> tuple[dict[str, Any], dict[str, Any]]:
    document = certificate(name)
    return document, document["claims"][0]


def refusal(document: dict[str, Any]) -> str:
    with pytest.raises(RefusedError) as caught:
        check(document)
    return str(caught.value)


def test_a_partial_sum_counts_no_more_than_it_takes() -> None:
    document, claim = one_claim()
    claim["widths_bytes"]["partial_hidden"] = 3
    assert "hidden_cell_bytes" in refusal(document)
    document, claim = one_claim()
    claim["widths_bytes"]["partial_output"] = 2
    assert "output_cell_bytes" in refusal(document)
    claim["widths_bytes"]["partial_output"] = 1  # less than what it ends as
    assert "partial_output" in refusal(document)


def test_more_bytes_in_a_segment_are_refused() -> None:
    document, claim = one_claim()
    for share in claim["proof"]["kernels"][0]["shares"]:
        for kind in share["kinds"]:
            kind["bytes"] = str(Fraction(kind["bytes"]) * Fraction(1001, 1000))
    assert "do not prove" in refusal(document)


def test_a_segment_touches_the_least_of_both_kinds() -> None:
    """Leaving out the kind of product that touches less would prove more."""
    document, claim = one_claim()
    for share in claim["proof"]["kernels"][0]["shares"]:
        share["kinds"].sort(key=lambda kind: Fraction(kind["bytes"]))
        share["kinds"] = share["kinds"][1:]
    assert "kinds" in refusal(document)


def test_games_without_a_theorem_are_refused() -> None:
    document, claim = one_claim()
    claim["game"]["recompute"] = "allowed"
    assert "compute nothing again" in refusal(document)
    document, claim = one_claim("gemm")
    claim["game"]["kernels"] = "separate"
    assert "one kernel" in refusal(document)
    claim["game"] = {"kernels": "fused", "recompute": "allowed"}
    assert "whether or not values are computed again" in check(document)[0]
    document["statement"]["workload"]["dtype"] = "fp8"  # narrower inputs touch fewer bytes
    assert "do not prove" in refusal(document)
