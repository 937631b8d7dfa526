"""Certificates of the pass theorem: nothing that its numbers do not prove is taken."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest

from pebble.certificate import RefusedError, check
from pebble.certificate.passes import row_and_column
from pebble.certificate.statement import read_workload
from pebble.families import lower_bound
from pebble.proof.certificate import bound_certificate, workload_statement
from pebble.reports.bound import bound_workload, known_of
from pebble.schedules.explicit.attention import best_attention_schedule
from pebble.workloads import Attention, Ffn
from pebble.workloads.widths import FastMemory
from pebble.workloads.workload import Workload
from tests.certificate.persuade import persuade
from tests.rooms import in_values

WORKLOADS: dict[str, tuple[Workload, int]] = {
    "attention": (Attention(32768, 32768, 128), 6 * 2**19),
    "many passes": (Attention(32768, 32768, 64), 228 * 2**9),
    "grouped heads": (Attention(8192, 32768, 128, heads=8, kv_heads=2), 6 * 2**19),
    "causal": (Attention(30000, 65536, 128, heads=4, kv_heads=2, causal=True), 6 * 2**19),
    "other lengths": (Attention(20000, 50000, 64, 96), 3 * 2**19),
    "ffn": (Ffn(65536, 256, 65536), 6 * 2**19),
    "gated": (Ffn(65536, 256, 65536, gated=True), 6 * 2**19),
}


def certificate(name: str) -> dict[str, Any]:
    workload, capacity = WORKLOADS[name]
    result: dict[str, Any] = json.loads(
        json.dumps(bound_certificate(workload, known_of(workload, capacity, FastMemory.of_values(capacity, workload))))
    )
    return result


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_bound_of_the_command_is_by_passes_and_verified(name: str) -> None:
    document = certificate(name)
    claim = document["claims"][0]
    assert claim["proof"]["theorem"] == "passes"
    assert claim["elements"] == lower_bound(*WORKLOADS[name]).elements
    assert f"{claim['elements']:,}" in check(document)[0]
    claim["elements"] += 1
    with pytest.raises(RefusedError, match="elements moved, at least"):
        check(document)


@pytest.mark.parametrize(
    ("cuttings", "why"),
    [
        ([], "1 to 2 entries"),
        ([{"by": "rows", "vectors": 16256}] * 3, "1 to 2 entries"),
        ([{"by": "cells", "vectors": 16256}], "one of rows, columns"),
        ([{"by": "rows", "vectors": 255}], "at least 256"),
        ([{"by": "rows", "vectors": 12288}], "cost nothing"),
        ([{"by": "rows", "vectors": "16256"}], "whole number"),
        ([{"by": "rows", "vectors": 16256, "cuts": 4}], "nothing here has"),
        ([{"by": "rows"}], "is missing"),
        ("all", "a list of"),
    ],
)
def test_what_makes_no_sense_is_refused(cuttings: object, why: str) -> None:
    document = certificate("attention")
    document["claims"][0]["proof"]["cuttings"] = cuttings
    with pytest.raises(RefusedError, match=why):
        check(document)


def test_not_for_other_games_and_workloads() -> None:
    document = certificate("attention")
    document["claims"][0]["game"]["recompute"] = "allowed"
    with pytest.raises(RefusedError, match="compute nothing again"):
        check(document)
    document = certificate("attention")
    document["claims"][0]["game"]["kernels"] = "separate"
    with pytest.raises(RefusedError, match="one of"):
        check(document)
    document = certificate("attention")
    document["statement"]["workload"] = {
        "family": "gemm", "m": 32768, "n": 32768, "k": 128, "accumulate_into": False,
        "dtype": "bf16", "out_dtype": "bf16",
    }  # fmt: skip
    with pytest.raises(RefusedError):
        check(document)


def test_a_search_that_would_take_too_long_is_refused() -> None:
    document = certificate("attention")
    spec = document["statement"]["workload"]
    spec |= {"queries": 2**32, "keys": 2**32, "head_dim": 1, "value_dim": 1}
    claim = document["claims"][0]
    claim["capacity_elements"] = 1000
    for vectors, why in ((501, "gaps"), (2**20, "numbers of cuts")):
        claim["proof"]["cuttings"] = [{"by": by, "vectors": vectors} for by in ("columns", "rows")]
        with pytest.raises(RefusedError, match=why):
            check(document)


@pytest.mark.parametrize("causal", [False, True])
def test_vectors_of_a_mask(causal: bool) -> None:
    workload = Attention(5, 9, 3, 2, heads=6, kv_heads=2, causal=causal)
    stated = read_workload(workload_statement(workload), "workload")
    rows, columns = row_and_column(stated, 15, 3, 9, 2)
    cells = [(head, i, j) for head in range(3) for i in range(5) for j in range(9) if not causal or j <= i + 4]
    for vectors, axes in ((rows, (0, 1)), (columns, (2,))):
        lengths: dict[tuple[int, ...], int] = {}
        for cell in cells:
            key = tuple(cell[axis] for axis in axes)
            lengths[key] = lengths.get(key, 0) + 1
        assert (vectors.number, vectors.longest) == (len(lengths), max(lengths.values()))
        for least in range(1, 30):
            assert vectors.at_least(least) == sum(n >= least for n in lengths.values())


def test_cuttings_of_any_size_prove_no_more_than_a_schedule_moves() -> None:
    rnd, taken = random.Random(5), 0
    for _ in range(25):
        d, heads = rnd.randint(1, 3), rnd.randint(1, 2)
        queries, keys = rnd.randint(4, 60), rnd.randint(4, 60)
        causal = keys >= queries and rnd.random() < 0.3
        attention = Attention(queries, keys, d, heads=heads, kv_heads=1, causal=causal)
        capacity = rnd.randint(3 * d + 6, d * (queries + keys))
        best = in_values(best_attention_schedule, attention, capacity, state=False)
        document = bound_certificate(
            attention, known_of(attention, capacity, FastMemory.of_values(capacity, attention))
        )
        document["claims"] = [copy.deepcopy(document["claims"][0])]
        for _ in range(6):
            ways = [
                {"by": by, "vectors": rnd.randint(2 * d, max(2 * d, most))}
                for by, most in rnd.sample([("rows", heads * queries), ("columns", keys)], rnd.randint(1, 2))
            ]
            document["claims"][0]["proof"] = {"theorem": "passes", "cuttings": ways}
            if persuade(document) is not None:
                taken += 1
                assert document["claims"][0]["elements"] <= best.elements
    assert taken > 8


def in_bytes(workload: Workload = WORKLOADS["attention"][0]) -> dict[str, Any]:
    """The certificate of a bound with accumulators in fp32, its first claim alone."""
    document = bound_workload(workload, cache="6MiB", accumulators="fp32").certificate()
    claims = [claim for claim in document["claims"] if claim["claim"] == "lower bound in bytes"]
    result: dict[str, Any] = json.loads(json.dumps(document | {"claims": claims[:1]}))
    return result


@pytest.mark.parametrize("name", ["attention", "grouped heads", "causal", "ffn", "gated"])
def test_in_bytes_it_is_verified_and_no_more(name: str) -> None:
    document = in_bytes(WORKLOADS[name][0])
    claim = document["claims"][0]
    assert [kernel["theorem"] for kernel in claim["proof"]["kernels"]] == ["passes"]
    assert f"{claim['bytes']:,}" in check(document)[0]
    claim["bytes"] += 1
    with pytest.raises(RefusedError, match="bytes moved, at least"):
        check(document)


def test_in_bytes_a_gap_costs_as_many_cells_as_its_width() -> None:
    document = in_bytes()
    kernel = document["claims"][0]["proof"]["kernels"][0]
    kernel["cuttings"][0]["vectors"] = 383  # (2 * 128 + 4 * 128) / 2 bytes are 384 cells
    with pytest.raises(RefusedError, match="at least 384"):
        check(document)


def test_in_bytes_of_narrower_partial_sums_is_less() -> None:
    document = in_bytes()
    before = document["claims"][0]["bytes"]
    document["claims"][0]["widths_bytes"]["partial_output"] = 2
    assert persuade(document) is not None
    assert document["claims"][0]["bytes"] < before


def test_in_bytes_not_for_separate_kernels() -> None:
    document = in_bytes()
    claim = document["claims"][0]
    claim["game"]["kernels"], claim["proof"]["kernels"] = "separate", claim["proof"]["kernels"] * 2
    with pytest.raises(RefusedError, match="two products in one kernel"):
        check(document)
