"""Certificates of bounds: every bound can be certified, and nothing that is wrong is accepted."""

from __future__ import annotations

import ast
import importlib.util
import json
import random
import sys
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from pebble.certificate import RefusedError, check
from pebble.errors import InfeasibleError
from pebble.families import FAMILIES, lower_bound
from pebble.proof.certificate import bound_certificate
from pebble.reports.capacity import Known, known_of
from pebble.workloads import (
    Attention,
    AttentionBackward,
    Conv2d,
    Ffn,
    FfnBackward,
    Gemm,
    GemmBackward,
    GroupedGemm,
    LatentAttention,
    TransformerLayer,
)
from pebble.workloads.widths import FastMemory
from pebble.workloads.workload import Workload as AnyWorkload
from tests.certificate.mutate import EVERY, mutations

LONG = ("ffn, tied", "layer", "layer, small")
SHORT = ("ffn-backward, compulsory",)  # nothing but that every operand moves
CHECKER = Path(importlib.util.find_spec("pebble.certificate").origin).parent

INSTANCES: dict[str, tuple[AnyWorkload, int, bool]] = {
    "gemm": (Gemm(8192, 8192, 8192), 40 * 2**19, False),
    "gemm, shallow": (Gemm(400, 400, 10), 400, False),
    "gemm, tiny": (Gemm(3, 4, 5, accumulate=True), 5, False),
    "gemm, fp8": (Gemm(300, 200, 100, "fp8", "fp32"), 900, False),
    "gemm-backward": (GemmBackward(819, 1023, 517), 50000, False),
    "gemm-backward, segments": (GemmBackward(30, 40, 20, "fp8", "fp32"), 20, True),
    "ffn-backward": (FfnBackward(300, 200, 400), 4000, False),
    "ffn-backward, the middle": (FfnBackward(900, 300, 800, 40), 60000, False),
    "ffn-backward, segments": (FfnBackward(12, 9, 15, 8), 12, False),
    "ffn-backward, computed again": (FfnBackward(30, 40, 20, 0, True, "fp8", "fp32"), 300, False),
    "ffn-backward, gated": (FfnBackward(300, 200, 400, gated=True), 4000, False),
    "ffn-backward, gated middle": (FfnBackward(434, 40, 90, 60, True, gated=True), 4000, False),
    "ffn-backward, compulsory": (FfnBackward(30, 40, 20, gated=True), 300, True),
    "attention-backward": (AttentionBackward(4096, 4096, 64), 2**15, False),
    "attention-backward, by lines": (AttentionBackward(60, 90, 30, heads=4, kv_heads=2), 900, False),
    "attention-backward, causal": (AttentionBackward(300, 310, 3, 5, 2, 1, 1, True, "fp8", "fp32"), 600, False),
    "attention-backward, segments": (AttentionBackward(9, 20, 12, causal=False), 40, False),
    "ffn": (Ffn(8192, 4096, 11008), 40 * 2**19, False),
    "ffn, H spilled": (Ffn(140, 20, 5340, 20, False, "fp8", "fp8"), 251, False),
    "ffn, gated": (Ffn(40, 30, 50, 20, True), 60, False),
    "ffn, tied": (Ffn(300, 20, 900, 90, True), 6000, False),
    "ffn, computed again": (Ffn(400, 1, 400, 9), 400, True),
    "ffn, distinct": (Ffn(300, 60, 200, 40, True), 500, True),
    "attention": (Attention(32768, 32768, 128), 228 * 2**9, False),
    "attention, causal": (Attention(40, 50, 8, heads=4, kv_heads=2, causal=True), 300, False),
    "attention, strict": (Attention(30, 200, 4, softmax="strict"), 90, False),
    "latent": (LatentAttention(40, 96, 24, 8, heads=4, batch=2), 400, False),
    "latent, segments": (LatentAttention(300, 300, 64, 8, heads=2), 900, False),
    "latent, panels": (LatentAttention(64, 1024, heads=16), 2**15, False),
    "latent, causal": (LatentAttention(20, 90, 12, 5, heads=3, causal=True), 300, False),
    "latent, computed again": (LatentAttention(4, 9, 3, 2, heads=3), 40, True),
    "grouped": (GroupedGemm((512, 384, 1024, 128), 4096, 7168), 40 * 2**19, False),
    "grouped, tiny": (GroupedGemm((3, 1, 3), 4, 5, "fp8", "fp32", True), 6, False),
    "batch": (GroupedGemm((300,) * 7, 200, 100), 900, False),
    "layer": (TransformerLayer(8192, 4096, 14336, 32, 8, 128), 40 * 2**19, False),
    "layer, small": (TransformerLayer(40, 16, 50, 4, 2, 6, 9, False, "fp8", "fp32"), 60, False),
    "layer, in bands": (TransformerLayer(40, 16, 50, 4, 2, 6), 1300, False),
    "layer, in bands, then its ffn": (TransformerLayer(300, 64, 256, 4, 2, 16, 12, False), 16000, False),
    "layer, computed again": (TransformerLayer(40, 16, 50, 4, 2, 6), 60, True),
    "conv2d, by lines": (Conv2d(2, 8, 16, 12, 12, 3, 1), 700, False),
    "conv2d": (Conv2d(4, 16, 32, 20, 20, 3, 2), 400, False),
}


@pytest.fixture(autouse=True)
def without_multipliers(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are about the other theorems; certificates of Theorem 10 have tests of their own."""
    monkeypatch.setattr("pebble.bounds.lagrangian_choice.lagrangian_bound", lambda *_: None)


def answer(workload: AnyWorkload, capacity: int, recompute: bool) -> Known:
    """What is known in a memory of so many values."""
    return known_of(workload, capacity, FastMemory.of_values(capacity, workload), 1, recompute)


def certificate(name: str) -> dict[str, Any]:
    workload, capacity, recompute = INSTANCES[name]
    document = bound_certificate(workload, answer(workload, capacity, recompute))
    result: dict[str, Any] = json.loads(json.dumps(document))
    return result


@pytest.mark.parametrize("name", INSTANCES)
def test_a_certificate_says_what_bound_says(name: str) -> None:
    workload, capacity, recompute = INSTANCES[name]
    document = certificate(name)
    proved = check(document)
    assert len(proved) == len(document["claims"])
    assert document["claims"][0]["elements"] == lower_bound(workload, capacity, recompute).elements
    assert f"{document['claims'][0]['elements']:,}" in proved[0]


def random_workload(rnd: random.Random, families: int = 10) -> AnyWorkload:
    def size() -> int:
        return rnd.choice([rnd.randint(1, 6), rnd.randint(1, 40), rnd.randint(1, 500), rnd.randint(1, 9000)])

    types = rnd.choice(["bf16", "fp32", "fp8"]), rnd.choice(["", "fp32", "bf16", "fp8"])
    family = rnd.randrange(families)
    if family == 0:
        return Gemm(size(), size(), size(), *types, accumulate=rnd.random() < 0.3)
    if family == 1:
        return Ffn(size(), size(), size(), rnd.choice([0, size()]), rnd.random() < 0.5, *types)
    if family == 2:
        causal, queries, kv_heads = rnd.random() < 0.4, size(), rnd.randint(1, 3)
        queries = min(queries, 300) if causal else queries
        keys = queries + size() if causal else size()
        return Attention(
            queries, keys, size(), rnd.choice([0, size()]), kv_heads * rnd.randint(1, 3), kv_heads, rnd.randint(1, 2),
            causal, rnd.choice(["online", "strict"]), *types,
        )  # fmt: skip
    if family == 4:
        rows = tuple(size() for _ in range(rnd.randint(1, 5)))
        return GroupedGemm(rows, size(), size(), *types, accumulate=rnd.random() < 0.3)
    if family == 5:
        kv_heads, tokens = rnd.randint(1, 3), min(size(), 300)
        heads = kv_heads * rnd.randint(1, 3)
        return TransformerLayer(tokens, size(), size(), heads, kv_heads, size(), size(), rnd.random() < 0.5, *types)
    if family == 6:
        queries, causal = min(size(), 300), rnd.random() < 0.4
        keys, heads = queries * causal + size(), rnd.randint(1, 9)
        return LatentAttention(queries, keys, size(), size(), heads, rnd.randint(1, 2), causal, *types)
    if family == 7:
        return GemmBackward(size(), size(), size(), *types)
    if family == 8:
        flags = rnd.random() < 0.4, rnd.random() < 0.5
        return FfnBackward(size(), size(), size(), rnd.choice([0, size()]), flags[0], *types, gated=flags[1])
    if family == 9:
        kv_heads, causal, queries = rnd.randint(1, 3), rnd.random() < 0.4, min(size(), 300)
        heads, keys = kv_heads * rnd.randint(1, 3), queries * causal + size()
        value_dim = rnd.choice([0, size()])
        return AttentionBackward(queries, keys, size(), value_dim, heads, kv_heads, rnd.randint(1, 2), causal, *types)
    kernel = rnd.randint(1, 5)
    sides = kernel + rnd.randint(0, 50), kernel + rnd.randint(0, 50)
    return Conv2d(rnd.randint(1, 4), size(), size(), *sides, kernel, rnd.randint(1, 4), *types)


def certify_random_ones(seed: int, count: int) -> None:
    rnd = random.Random(seed)
    for _ in range(count):
        workload = random_workload(rnd)
        capacity = rnd.choice([rnd.randint(3, 12), rnd.randint(3, 300), rnd.randint(3, 10**4), rnd.randint(3, 10**7)])
        try:
            result = answer(workload, capacity, rnd.random() < 0.5)
        except InfeasibleError:  # a causal mask needs room for one query
            continue
        bound_certificate(workload, result)  # NotCertifiedError names the bound that fails


@pytest.mark.parametrize("seed", range(4))
def test_every_bound_can_be_certified(seed: int) -> None:
    certify_random_ones(seed, 30)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_every_bound_can_be_certified_at_length(seed: int) -> None:
    certify_random_ones(seed, 100)


def refusal(document: dict[str, Any]) -> str | None:
    try:
        check(document)
    except RefusedError as error:
        return str(error)
    return None


def true_claims(document: dict[str, Any], original: dict[str, Any]) -> bool:
    """Whether an accepted certificate says something true: judged by the bounds, and by what was accepted before."""
    spec = dict(document["statement"]["workload"])
    family = spec.pop("family")
    if "accumulate_into" in spec:
        spec["accumulate"] = spec.pop("accumulate_into")
    workload = FAMILIES[family].shape(**spec)
    for claim in document["claims"]:
        if claim["claim"] == "lower bound":
            recompute = claim["game"]["recompute"] == "allowed" and claim["game"]["kernels"] == "fused"
            result = answer(workload, claim["capacity_elements"], recompute)
            bound = result.lower if claim["game"]["kernels"] == "fused" else result.separate
            assert bound is not None
            if claim["elements"] > bound.elements or claim["bytes"] > bound.bytes:
                return False
        else:
            first = next(c for c in original["claims"] if c["claim"] == "upper bound")
            if claim["moved"] != first["moved"] or claim["bytes"] != first["bytes"]:
                return False
            if claim["capacity_elements"] < first["moved"]["peak_elements"]:
                return False
    return True


def test_a_little_more_per_segment_is_refused() -> None:
    document = certificate("ffn, tied")
    proof = document["claims"][0]["proof"]
    assert proof["theorem"] == "tied segments"
    h, phi = proof["segments"], Fraction(proof["phi"])
    for part in (1 + Fraction(1, 1000), 2):
        proof["phi"] = str(phi * part)
        document["claims"][0]["elements"] += int(h * phi * (part - 1))
        assert "may have less" in str(refusal(document)) or "too close" in str(refusal(document))


@pytest.mark.parametrize("name", INSTANCES)
@pytest.mark.parametrize("every", [EVERY, pytest.param(1, marks=pytest.mark.slow)])
def test_no_wrong_change_is_accepted(name: str, every: int) -> None:
    original = certificate(name)
    refused = accepted = 0
    every = 37 if name in LONG else every  # a thousand, and some take a second
    for what, mutant in islice(mutations(original), 0, None, every):
        why = refusal(mutant)
        if why is not None:
            assert len(why) < 400, what
            refused += 1
            continue
        accepted += 1
        assert true_claims(mutant, original), what
    assert refused > (20 if name in LONG else 100 / every if name in SHORT else 150 / every)
    assert accepted < refused / 5  # another data type of the same width, a larger capacity for a schedule, ...


@pytest.mark.parametrize("name", ["gemm-backward", "ffn-backward", "attention-backward"])
def test_schedules_that_are_not_defined_are_refused(name: str) -> None:
    document = certificate(name)
    moved = {"loads": {}, "stores": {}, "peak_elements": 3}
    upper = {"claim": "upper bound", "capacity_elements": 9, "elements": 1, "bytes": 1, "moved": moved}
    piece = {"kind": "parts", "parts": [{"kind": "blocks"}] * 2}
    for schedule in ({"kind": "bands", "side": "rows", "runs": []}, {"kind": "kernels", "kernels": []}, piece):
        document["claims"] = [{**upper, "schedule": schedule}]
        assert "no schedule of a" in str(refusal(document))


def test_the_checker_stands_alone() -> None:
    for file in CHECKER.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            for name in names:
                own = name.startswith("pebble.certificate")
                assert own or name.partition(".")[0] in sys.stdlib_module_names, f"{file.name} imports {name}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("float", "eval", "exec"), f"{file.name} calls {node.func.id}"
            if isinstance(node, ast.Constant):
                assert not isinstance(node.value, float), f"{file.name} has the number {node.value}"
