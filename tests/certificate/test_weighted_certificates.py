"""Certificates of bounds in bytes: what `bound` says, and nothing that is false."""

import json
import random
from fractions import Fraction
from functools import cache
from itertools import islice
from typing import Any

import pytest

from pebble.bounds import LineBound, WeightedBound, in_bytes
from pebble.bounds.accounting import lower_bound, separate_bound
from pebble.bounds.lines import MULTIPLIER_BITS, Cut
from pebble.certificate import RefusedError, check
from pebble.families import FAMILIES, accounting
from pebble.reports.bound import bound_workload
from pebble.workloads import (
    Attention,
    AttentionBackward,
    Conv2d,
    Ffn,
    FfnBackward,
    Gemm,
    GemmBackward,
    GroupedGemm,
    TransformerLayer,
)
from pebble.workloads.widths import FastMemory, Widths
from pebble.workloads.workload import Workload
from tests.certificate.mutate import EVERY, mutations
from tests.certificate.persuade import persuade

INSTANCES: dict[str, tuple[Workload, str]] = {
    "gemm": (Gemm(8192, 8192, 8192), "40MiB"),
    "gemm, small": (Gemm(30, 40, 50, accumulate=True), "500B"),
    "gemm, fp8": (Gemm(300, 200, 100, "fp8"), "4KiB"),
    "gemm-backward": (GemmBackward(300, 400, 200), "4KiB"),
    "gemm-backward, segments": (GemmBackward(30, 40, 20), "30B"),
    "ffn-backward": (FfnBackward(300, 400, 200), "8KiB"),
    "ffn-backward, the middle": (FfnBackward(900, 300, 800, 40), "120KiB"),
    "ffn-backward, narrower": (FfnBackward(300, 400, 200, dtype="fp8"), "8KiB"),
    "ffn-backward, gated": (FfnBackward(300, 200, 400, recomputed=True, gated=True), "8KiB"),
    "ffn-backward, gated middle": (FfnBackward(434, 40, 90, 60, gated=True), "8KiB"),
    "attention-backward": (AttentionBackward(4096, 4096, 64), "128KiB"),
    "attention-backward, by lines": (AttentionBackward(60, 90, 30, heads=4, kv_heads=2, dtype="fp8"), "2KiB"),
    "attention-backward, causal": (AttentionBackward(900, 910, 5, heads=4, kv_heads=2, causal=True), "4KiB"),
    "ffn": (Ffn(8192, 1600, 6400), "6MiB"),
    "ffn, small": (Ffn(314, 29, 53, 229), "331B"),
    "ffn, by lines": (Ffn(8192, 4096, 11008), "6MiB"),
    "ffn, of many segments": (Ffn(300, 20000, 300), "150B"),
    "ffn, gated": (Ffn(300, 200, 500, gated=True), "20KiB"),
    "ffn, gate and up": (Ffn(400, 300, 900, gated=True), "4KiB"),
    "ffn, gated, tied": (Ffn(4096, 64, 1500, gated=True), "32KiB"),
    "attention": (Attention(32768, 32768, 128), "228KiB"),
    "attention, causal": (Attention(400, 500, 16, heads=4, kv_heads=2, causal=True), "4KiB"),
    "grouped": (GroupedGemm((512, 384, 512), 409, 716), "64KiB"),
    "layer": (TransformerLayer(400, 96, 300, 4, 2, 24), "4KiB"),
    "layer, in bands": (TransformerLayer(300, 64, 256, 4, 2, 16), "32KiB"),
    "conv2d": (Conv2d(4, 64, 64, 20, 20, 3), "8KiB"),
}


@pytest.fixture(autouse=True)
def without_multipliers(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are about the other theorems; certificates of Theorem 10 have tests of their own."""
    monkeypatch.setattr("pebble.bounds.lagrangian_choice.lagrangian_bound", lambda *_: None)


def certificate(name: str) -> dict[str, Any]:
    workload, cache = INSTANCES[name]
    result = bound_workload(workload, cache=cache, accumulators="fp32")
    assert isinstance(result.lower.proof, WeightedBound)
    document: dict[str, Any] = json.loads(json.dumps(result.certificate()))
    claims = [c for c in document["claims"] if c["claim"] != "lower bound"]
    assert claims[0]["claim"] == "lower bound in bytes" and claims[0]["bytes"] == result.lower.bytes
    if result.upper is not None and claims[-1]["claim"] == "upper bound in bytes":
        assert claims[-1]["bytes"] == result.upper.bytes
    assert claims[0]["capacity_bytes"] == result.capacity.bytes
    assert any("a partial sum takes 4 bytes" in sentence for sentence in check(document))
    return document | {"claims": claims}  # the others are looked at elsewhere


@cache
def least_bytes(workload: Workload, separate: bool, memory: FastMemory) -> int:
    """What is proved of a workload, once for all changes that leave it what it is."""
    values = (separate_bound if separate else lower_bound)(
        accounting(workload), memory.bytes // workload.narrowest_bytes
    )
    return in_bytes(accounting(workload), values, memory).bytes


def true_claims(document: dict[str, Any]) -> bool:
    """Whether an accepted certificate says no more than the bounds do for the game that it names."""
    spec = dict(document["statement"]["workload"])
    family = spec.pop("family")
    if "accumulate_into" in spec:
        spec["accumulate"] = spec.pop("accumulate_into")
    workload = FAMILIES[family].shape(**spec)
    for claim in document["claims"]:
        partial, capacity = claim["widths_bytes"], claim["capacity_bytes"]
        if claim["claim"] == "upper bound in bytes":  # no schedule that is accepted moves less than is proved
            claim = {**claim, "game": {"kernels": "fused"}}
        separate, result = claim["game"]["kernels"] == "separate", 0
        # what holds for narrower partial sums holds for wider ones
        for hidden in {4, workload.in_bytes, partial["partial_hidden"]}:
            for output in {4, workload.out_bytes, partial["partial_output"]}:
                if hidden <= partial["partial_hidden"] and output <= partial["partial_output"]:
                    widths = Widths(workload.in_bytes, hidden, output, workload.out_bytes)
                    result = max(result, least_bytes(workload, separate, FastMemory(capacity, widths)))
        if (claim["bytes"] < result) if claim["claim"] == "upper bound in bytes" else (claim["bytes"] > result):
            return False
    return True


@pytest.mark.parametrize("name", INSTANCES)
@pytest.mark.parametrize("every", [EVERY, pytest.param(1, marks=pytest.mark.slow)])
def test_no_wrong_change_is_accepted(name: str, every: int) -> None:
    original = certificate(name)
    refused = accepted = 0
    for what, mutant in islice(mutations(original), 0, None, every):
        try:
            check(mutant)
        except RefusedError:
            refused += 1
        else:
            accepted += 1
            assert true_claims(mutant), what
    assert refused > 100 / every
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


@pytest.mark.parametrize(
    ("key", "value"),
    [("turns", [[[99, n, 0]] * 2, [[0, 0, 0]] * 2]) for n in (500, 4000)] + [("first", 90), ("enter", [1, 5, 0])],
)
def test_bands_that_do_not_fit_are_refused(key: str, value: object) -> None:
    """Corners and wider blocks save traffic for room: more than there is, or room that is counted in values alone."""
    document = certificate("attention")
    upper = document["claims"][-1]
    document["claims"] = [upper]
    for run in upper["schedule"]["runs"]:
        run["kept"] = [0, 0]
    upper["schedule"]["runs"][0][key] = value
    assert persuade(document) is None


@pytest.mark.parametrize(("queries", "keys", "heads"), [(1, 1, 1), (1, 5, 1), (1, 9, 2), (2, 2, 1), (3, 40, 1)])
@pytest.mark.parametrize("room", [96, 300, 5000])
def test_single_rows_and_columns_under_a_mask(queries: int, keys: int, heads: int, room: int) -> None:
    workload = Attention(queries, keys, 4, heads=heads, kv_heads=1, causal=True)
    result = bound_workload(workload, cache=f"{room}B", accumulators="fp32")
    sentences = check(json.loads(json.dumps(result.certificate())))
    assert result.upper is not None
    assert any(f"moves {result.upper.bytes:,} bytes" in sentence for sentence in sentences)


def test_gate_and_up_are_certified_in_one_kernel() -> None:
    document = certificate("ffn, gate and up")
    claim = document["claims"][-1]
    assert claim["claim"] == "upper bound in bytes"
    first, last = claim["schedule"]["kernels"]
    assert first["kind"] == "pairs" and last["kind"] in ("blocks", "banded")
    assert f"moves {claim['bytes']:,} bytes" in check(document)[-1]
    for kernels in ([last, last], [first, first], [first], [first, last, last]):
        claim["schedule"]["kernels"] = kernels
        with pytest.raises(RefusedError):
            check(document)
    claim["schedule"]["kernels"] = [first, last]
    claim["bytes"] -= 1
    with pytest.raises(RefusedError, match="bytes moved"):
        check(document)
    claim["bytes"] += 1
    claim["capacity_bytes"] //= 2
    with pytest.raises(RefusedError, match=r"it holds .* bytes, the capacity is"):
        check(document)


def test_a_schedule_that_keeps_partial_sums_takes_their_width() -> None:
    document = certificate("attention")
    upper = document["claims"][-1]
    upper["widths_bytes"]["partial_output"] = 8
    assert "capacity" in refusal(document)


BY_LINES = [
    "gemm", "gemm, small", "gemm, fp8", "ffn, by lines", "ffn, of many segments", "ffn, gated", "grouped", "conv2d",
]  # fmt: skip


def line_proofs(document: dict[str, Any]) -> list[dict[str, Any]]:
    kernels = document["claims"][0]["proof"]["kernels"]
    return [kernel for kernel in kernels if kernel["theorem"] == "lines"]


@pytest.mark.parametrize("name", BY_LINES)
def test_a_bound_by_lines_is_as_large_as_it_can_be(name: str) -> None:
    document = certificate(name)
    assert line_proofs(document)
    document["claims"][0]["bytes"] += 1
    assert "bytes moved, at least" in refusal(document)


@pytest.mark.parametrize("name", BY_LINES)
def test_another_number_of_segments_of_a_value_is_refused(name: str) -> None:
    """The minima are checked: one that is not the least would charge too much."""
    for number, proof in enumerate(line_proofs(certificate(name))):
        for at, spec in enumerate(proof["minima"]):
            others: list[object] = [spec - 1, spec + 1, 2 * spec + 1] if isinstance(spec, int) else []
            if isinstance(spec, list):
                others = [[spec[0] + 1, spec[1]], [spec[0], spec[1] - 1], [*spec, 1], spec[0], [spec]]
            for other in others:
                changed = certificate(name)
                line_proofs(changed)[number]["minima"][at] = other
                refusal(changed)


@pytest.mark.parametrize("name", ["gemm", "ffn, by lines", "ffn, gated", "conv2d"])
def test_lines_of_narrower_partial_sums_prove_less(name: str) -> None:
    """The same prices with other widths: what they prove is computed anew from the widths that are claimed."""
    document = certificate(name)
    claim = document["claims"][0]
    said = claim["bytes"]
    for key in ("partial_output", "partial_hidden"):
        claim["widths_bytes"][key] = 3
    assert persuade(document) is None or claim["bytes"] < said


@pytest.mark.parametrize(
    ("name", "changes", "why"),
    [
        ("ffn, by lines", {"rho": "1/2"}, "multipliers rho|charged less"),
        ("ffn, by lines", {"rho": "5/2"}, "multipliers rho|charged less"),
        ("ffn, by lines", {"form": "gated chain"}, "one of chain"),
        ("ffn, by lines", {"minima": [2, 1, 2]}, "5 to 5 entries"),
        ("ffn, by lines", {"work_weights": [1, 0]}, "at least 1"),
        ("ffn, by lines", {"work_weights": [1]}, "2 to 2 entries"),
        ("ffn, by lines", {"work_weights": [1, 1025]}, "at most"),
        ("ffn, by lines", {"work_weights": None}, "expected"),
        ("ffn, gated", {"form": "gate's chain"}, "5 to 5 entries"),
        ("gemm", {"work_weights": [1, 2]}, "nothing here has"),
        ("gemm", {"mu": "-1/5"}, "fraction"),
        ("gemm", {"rho": 1.0}, "fraction"),
        ("gemm", {"segments": 0}, "at least 1"),
        ("gemm", {"segments": 8192**3 + 1}, "at most"),
        ("gemm", {"unit": 4}, "unit|expected"),
        ("attention, causal", {"theorem": "lines", "form": "chain"}, "not about a mask"),
    ],
)
def test_what_the_line_theorem_does_not_say(name: str, changes: dict[str, Any], why: str) -> None:
    document = certificate(name)
    document["claims"][0]["proof"]["kernels"][0] |= changes
    with pytest.raises(RefusedError, match=why):
        check(document)


@pytest.mark.parametrize("weights", [[1, 1], [2, 3], [5, 8], [7, 5], [10, 14], [1, 1000]])
def test_other_weights_prove_no_more(weights: list[int]) -> None:
    """With the rest put right: the weights that the bound takes are about the best."""
    document = certificate("ffn")
    claim = document["claims"][0]
    (proof,) = line_proofs(document)
    assert proof["work_weights"] == [5, 7]
    said, proof["work_weights"] = claim["bytes"], weights
    assert persuade(document) is None or claim["bytes"] <= 1.001 * said


def test_prices_of_any_kind_prove_no_more_than_a_schedule_moves() -> None:
    """The numbers of a proof at random, the rest put right: what the checker takes is true."""
    rnd, taken = random.Random(4), 0
    for _ in range(40):
        workload: Workload = Gemm(*(rnd.randint(1, 40) for _ in range(3)), accumulate=rnd.random() < 0.3)
        if rnd.random() < 0.5:
            workload = Ffn(*(rnd.randint(1, 30) for _ in range(4)), gated=rnd.random() < 0.3)
        result = bound_workload(workload, cache=f"{rnd.randint(12, 900)}B", accumulators="fp32")
        if not isinstance(result.lower.proof, WeightedBound) or result.upper is None:
            continue
        ((spec, *_),) = result.lower.proof.kernels
        if not isinstance(spec, LineBound):
            continue
        document: dict[str, Any] = json.loads(json.dumps(result.certificate()))
        claim = document["claims"][1]
        h, mu, rho = rnd.randint(1, 60), Fraction(rnd.randint(0, 800), rnd.randint(1, 200)), Fraction(1)
        rho += Fraction(rnd.randint(0, 9), 9) if isinstance(workload, Ffn) else Fraction(rnd.randint(-9, 18), 9)
        cut = Cut(min(h, spec.products), *(int(multiplier * 2**MULTIPLIER_BITS) for multiplier in (mu, rho)))
        minima = [kind.least(cut)[1] for kind in spec.problem.kinds]
        exact = [str(Fraction(multiplier, 2**MULTIPLIER_BITS)) for multiplier in cut[1:]]
        proof = {"theorem": "lines", "form": spec.form, "segments": cut.segments, "mu": exact[0], "rho": exact[1]}
        if spec.problem.weights is not None:
            proof["work_weights"] = list(spec.problem.weights)
        proof["minima"] = [list(x) if isinstance(x, tuple) else x for x in minima]
        document["claims"] = [{**claim, "proof": {"theorem": "segments in bytes", "kernels": [proof]}}]
        if persuade(document) is not None:
            taken += 1
            assert document["claims"][0]["bytes"] <= result.upper.bytes
    assert taken > 5


def one_claim(name: str = "attention, causal") -> tuple[dict[str, Any], dict[str, Any]]:
    document = certificate(name)
    return document, document["claims"][0]


def refusal(document: dict[str, Any]) -> str:
    with pytest.raises(RefusedError) as caught:
        check(document)
    return str(caught.value)


def test_a_partial_sum_counts_no_more_than_it_takes() -> None:
    document, claim = one_claim("ffn, small")
    claim["widths_bytes"]["partial_hidden"] = 3
    assert "hidden_cell_bytes" in refusal(document)
    document, claim = one_claim("ffn, small")
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


def test_what_a_layer_hands_over_is_taken_off() -> None:
    document, claim = one_claim("layer")
    qkv, _, o, mlp = (part["theorem"] for part in claim["proof"]["kernels"])
    assert "compulsory" not in (qkv, o, mlp)
    claim["bytes"] += 2 * 400 * 96  # the result of the projection, which need not be loaded
    assert "the steps give" in refusal(document)
    claim["game"]["kernels"] = "separate"
    assert "kernel by kernel" in refusal(document)


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
    assert "the steps give" in refusal(document)
