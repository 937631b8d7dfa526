"""Opponents of the checker, on workloads: the strongest claims it takes never contradict an optimum, or each other.

Every seed is a parameter of its test. The slow suite runs many more.
"""

from __future__ import annotations

import json
import random
from functools import lru_cache
from typing import Any

import networkx as nx
import pytest

from pebble.cdag import attention_dag, conv2d_dag, ffn_dag, gemm_dag
from pebble.cdag.backward import attention_backward_dag, ffn_backward_dag, gemm_backward_dag
from pebble.certificate import RefusedError, check
from pebble.certificate.statement import read_workload
from pebble.errors import InfeasibleError, InputError
from pebble.proof.certificate import _DERIVED, bound_certificate
from pebble.reports.bound import known_of as answer
from pebble.solvers import solve
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
from pebble.workloads.widths import FastMemory
from pebble.workloads.workload import Workload as AnyWorkload
from tests.bounds.joined_dags import grouped_dag, layer_dag
from tests.certificate.persuade import mutant, persuade
from tests.certificate.strongest import (
    RECOMPUTE,
    accepted,
    document,
    raised,
    strongest_lower,
    strongest_of_parts,
    upper_at_random,
)

FAST, SLOW = range(2), range(100, 160)
SEEDS = [*FAST, *(pytest.param(seed, marks=pytest.mark.slow) for seed in SLOW)]
BACKWARD = ("gemm-backward", "ffn-backward", "attention-backward")
FUSED, AGAIN = {"recompute": "forbidden", "kernels": "fused"}, {"recompute": "allowed", "kernels": "fused"}
SEPARATE = {"recompute": "forbidden", "kernels": "separate"}


def tiny(rnd: random.Random, family: str) -> AnyWorkload:
    """Small enough for an exact optimum."""
    types = rnd.choice(["bf16", "fp32", "fp8"]), rnd.choice(["bf16", "fp32", "fp8"])
    if family == "gemm":
        return Gemm(*(rnd.randint(1, 3) for _ in range(2)), rnd.randint(1, 2), *types, accumulate=rnd.random() < 0.3)
    if family == "ffn":
        return Ffn(rnd.randint(1, 3), rnd.randint(1, 2), rnd.randint(1, 2), 1, rnd.random() < 0.4, *types)
    if family == "attention":
        queries, heads = rnd.randint(1, 2), rnd.choice([1, 1, 2])
        softmax, causal = rnd.choice(["online", "strict"]), rnd.random() < 0.4
        keys = rnd.randint(queries, 3)
        return Attention(queries, keys, 1, 1, heads, rnd.choice([1, heads]), 1, causal, softmax, *types)
    if family == "grouped":
        rows = tuple(rnd.randint(1, 2) for _ in range(rnd.randint(1, 3)))
        return GroupedGemm(rows, rnd.randint(1, 2), rnd.randint(1, 2), *types, accumulate=rnd.random() < 0.3)
    if family == "layer":
        tokens, d_model, head_dim = rnd.choice([(1, 2, 1), (2, 1, 1), (2, 2, 1)])
        return TransformerLayer(tokens, d_model, rnd.randint(1, 2), 1, 1, head_dim, 0, rnd.random() < 0.5, *types)
    if family == "gemm-backward":
        return GemmBackward(*(rnd.randint(1, 2) for _ in range(3)), *types)
    if family == "ffn-backward":
        sizes = rnd.choice([(1, 1, 1, 1), (1, 1, 2, 1), (2, 1, 1, 1), (1, 2, 1, 1), (1, 1, 1, 2), (2, 1, 2, 1)])
        return FfnBackward(*sizes, rnd.random() < 0.4, *types, gated=rnd.random() < 0.4)
    if family == "attention-backward":
        queries, heads = rnd.randint(1, 2), rnd.choice([1, 1, 2])
        keys, causal = rnd.randint(queries, 2), rnd.random() < 0.4
        return AttentionBackward(queries, keys, 1, 1, heads, rnd.choice([1, heads]), 1, causal, *types)
    kernel = rnd.randint(1, 2)
    return Conv2d(1, 1, rnd.randint(1, 2), kernel, kernel + rnd.randint(0, 2), kernel, rnd.randint(1, 2), *types)


def statement(workload: AnyWorkload) -> dict[str, Any]:
    """As a certificate states it."""
    return {key: value for key, value in workload.to_json().items() if key not in _DERIVED}


def dag_of(told: dict[str, Any], form: str) -> nx.DiGraph[Any]:
    """The computation of a stated workload."""
    if told["family"] == "gemm":
        return gemm_dag(told["m"], told["n"], told["k"], accumulate=told["accumulate_into"], form=form)
    if told["family"] == "ffn":
        sizes = (told[x] for x in ("tokens", "d_model", "hidden", "d_out"))
        return ffn_dag(*sizes, gated=told["gated"], form=form)
    if told["family"] == "attention":
        options = {x: told[x] for x in ("heads", "kv_heads", "batch", "causal", "softmax")}
        return attention_dag(told["queries"], told["keys"], told["head_dim"], form=form, **options)
    if told["family"] == "gemm-backward":
        return gemm_backward_dag(told["m"], told["n"], told["k"], form=form)
    if told["family"] == "ffn-backward":
        sizes = (told[x] for x in ("tokens", "d_model", "hidden", "d_out"))
        return ffn_backward_dag(*sizes, recomputed=told["recomputed"], gated=told["gated"], form=form)
    if told["family"] == "attention-backward":
        options = {x: told[x] for x in ("heads", "kv_heads", "batch", "causal")}
        return attention_backward_dag(told["queries"], told["keys"], told["head_dim"], form=form, **options)
    if told["family"] == "grouped":
        rows = tuple(told["rows"])
        return grouped_dag(GroupedGemm(rows, told["n"], told["k"], accumulate=told["accumulate_into"]), form)
    if told["family"] == "layer":
        return layer_dag(TransformerLayer(*(told[x] for x in TransformerLayer.DIMENSIONS), told["gated"]))
    sizes = (told[x] for x in ("batch", "in_channels", "out_channels", "height", "width", "kernel"))
    return conv2d_dag(*sizes, stride=told["stride"], form=form)


@lru_cache(maxsize=20_000)
def _interval(told: str, capacity: int, again: bool) -> tuple[int, float]:
    dag = dag_of(json.loads(told), "chain" if again else "in-place")
    try:
        result = solve(dag, capacity, "recompute-sliding" if again else "in-place", "search", 1.5)
    except (InfeasibleError, InputError):  # too little room for the DAG's own temporaries, or too many values
        return 0, float("inf")
    return result.lower_bound, float("inf") if result.upper_bound is None else result.upper_bound


def interval(told: dict[str, Any], capacity: int, again: bool = False) -> tuple[int, float]:
    """What an exact search says: no pebbling of this DAG costs less, and one costs so much."""
    values = {**told, "dtype": "", "out_dtype": ""}
    return _interval(json.dumps(values, sort_keys=True), min(capacity, 200), again)


def games_of(told: dict[str, Any]) -> list[dict[str, str]]:
    if told["family"] in ("ffn-backward", "attention-backward"):
        return [FUSED, AGAIN]
    return [FUSED, AGAIN, SEPARATE] if told["family"] in ("ffn", "attention", "layer") else [AGAIN]


def optimum_of(told: dict[str, Any], claim: dict[str, Any]) -> float:
    """What a lower claim must not exceed: the cost of some pebbling of the claimed game."""
    once = interval(told, claim["capacity_elements"])[1]
    if claim["game"]["recompute"] == "forbidden" or told["family"] not in ("ffn", "attention"):
        return once
    return min(once, interval(told, claim["capacity_elements"], again=True)[1])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", ["gemm", "ffn", "attention", "conv2d", "grouped", "layer", *BACKWARD])
def test_the_strongest_lower_claim_is_true(family: str, seed: int) -> None:
    rnd = random.Random(f"{family} {seed}")
    spec = statement(tiny(rnd, family))
    for game in games_of(spec):
        for capacity in (3, rnd.randint(4, 9)):
            workload = read_workload(spec, "workload")
            for strongest in (strongest_of_parts, strongest_lower):
                if bool(workload.pieces) == (strongest is strongest_of_parts) or family == "ffn-backward":
                    claim = strongest(spec, workload, capacity, game, rnd)
                    if claim is not None and game is not SEPARATE:
                        assert claim["elements"] <= optimum_of(spec, claim), (spec, claim)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", ["gemm", "ffn", "attention", "conv2d"])
def test_no_schedule_is_cheaper_than_the_optimum(family: str, seed: int) -> None:
    rnd = random.Random(f"{family} {seed}")
    spec = statement(tiny(rnd, family))
    if spec.get("softmax") == "strict" and spec["queries"] > 1:
        spec["softmax"] = (
            "online"  # the DAG of a strict softmax needs a place more than a probability in place of a score
        )
    workload = read_workload(spec, "workload")
    for _ in range(60):
        claim = upper_at_random(spec, workload, rnd)
        if claim is None:
            continue
        strict = spec.get("softmax") == "strict"
        assert claim["elements"] >= interval(spec, claim["moved"]["peak_elements"] + strict)[0], (spec, claim)


def medium(rnd: random.Random, family: str) -> dict[str, Any]:
    """Some tens of values a side, any options."""

    def size() -> int:
        return rnd.choice([rnd.randint(1, 4), rnd.randint(1, 12), rnd.randint(1, 40)])

    types = rnd.choice(["bf16", "fp32", "fp8"]), rnd.choice(["bf16", "fp32", "fp8"])
    if family == "gemm":
        return statement(Gemm(size(), size(), size(), *types, accumulate=rnd.random() < 0.3))
    if family == "ffn":
        return statement(Ffn(size(), size(), size(), size(), rnd.random() < 0.5, *types))
    kv_heads, queries = rnd.randint(1, 2), size()
    heads, causal = kv_heads * rnd.randint(1, 3), rnd.random() < 0.4
    keys = queries + rnd.randint(0, 9) if causal else size()
    softmax = rnd.choice(["online", "strict"])
    return statement(Attention(queries, keys, size(), size(), heads, kv_heads, 1, causal, softmax, *types))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", ["gemm", "ffn", "attention"])
def test_no_two_claims_contradict_each_other(family: str, seed: int) -> None:
    """Schedules at random against the strongest bounds at their own capacity, in elements and in bytes."""
    rnd = random.Random(f"{family} {seed}")
    spec = medium(rnd, family)
    workload = read_workload(spec, "workload")
    uppers = [claim for _ in range(80) if (claim := upper_at_random(spec, workload, rnd)) is not None]
    cheapest: dict[str, dict[str, Any]] = {}
    for upper in sorted(uppers, key=lambda c: (c["elements"] * c["moved"]["peak_elements"], c["elements"])):
        cheapest.setdefault(upper["schedule"]["kind"] + str(upper["moved"]["peak_elements"].bit_length()), upper)
    for upper in list(cheapest.values())[:4]:
        games = games_of(spec) if upper["schedule"]["kind"] == "kernels" else games_of(spec)[:2]
        for game in games:
            lower = strongest_lower(spec, workload, max(3, upper["moved"]["peak_elements"]), game, rnd)
            if lower is not None:
                assert check(document(spec, [lower, upper])), (lower, upper)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", ["gemm", "ffn", "attention", "conv2d", "grouped", "layer", *BACKWARD])
def test_no_false_claim_about_a_workload(family: str, seed: int) -> None:
    rnd = random.Random(f"{family} {seed}")
    workload = tiny(rnd, family)
    capacity = rnd.randint(3, 8)
    try:
        result = answer(workload, capacity, FastMemory.of_values(capacity, workload), 1, rnd.random() < 0.5)
    except InfeasibleError:
        return
    original = json.loads(json.dumps(bound_certificate(workload, result)))
    refused = 0
    for number in range(120):
        changed = mutant(original, rnd)
        if persuade(changed) is None:
            refused += 1
            continue
        spec = changed["statement"]["workload"]
        sizes = [value for value in (*spec.values(), *spec.get("rows", ())) if type(value) is int]
        if max(sizes) > 4 or sum(sizes) > 14 or spec.get("value_dim") != spec.get("head_dim"):
            continue  # the exact search cannot tell
        if spec["family"] == "layer" and (spec["heads"] > 1 or spec["tokens"] > 2):
            continue
        for claim in changed["claims"]:
            if claim["claim"] == "lower bound":
                if claim["game"]["kernels"] == "fused":
                    assert claim["elements"] <= optimum_of(spec, claim), (number, spec, claim)
            elif not (spec.get("softmax") == "strict" and spec["queries"] > 1):
                free_capacity = claim["moved"]["peak_elements"] + (spec.get("softmax") == "strict")
                assert claim["elements"] >= interval(spec, free_capacity)[0], (number, spec, claim)
    assert refused > 20


CHAINS = [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 180))]


@pytest.mark.parametrize("seed", CHAINS)
def test_theorems_pushed_to_their_limit(seed: int) -> None:
    """The gated theorem and those with recomputation, every free number raised as far as the checker lets it."""
    rnd = random.Random(seed)
    again = rnd.random() < 0.5
    sizes = rnd.randint(5, 40), rnd.randint(1, 8), rnd.randint(5, 60), rnd.randint(1, 12)
    workload = Ffn(*sizes, not again)
    capacity = rnd.randint(20, 200)
    result = answer(workload, capacity, FastMemory.of_values(capacity, workload), 1, again)
    original = json.loads(json.dumps(bound_certificate(workload, result)))
    lower = original["claims"][0]
    if lower["proof"]["theorem"] not in ("tied segments", *RECOMPUTE):
        return
    spec = original["statement"]["workload"]
    best = raised(spec, lower, 4 if lower["proof"]["theorem"] == "tied segments" else 12)
    assert best["elements"] >= lower["elements"]
    upper = next(claim for claim in original["claims"] if claim["claim"] == "upper bound")
    assert check(document(spec, [best, upper]))


def computing_again(m: int, k: int, f: int, l: int, rnd: random.Random) -> tuple[int, int]:
    """(values held, values moved) of a schedule that computes H again for every block of columns of Y.

    A block of Y stays with its rows of A: for each j the column of H is computed, used and dropped. Or a block of D
    stays with its columns of B: for each i the row of H is computed, used and dropped, and the row of Y comes and goes.
    """
    c = rnd.choice([1, l, rnd.randint(1, l)])
    if rnd.random() < 0.5:
        r = rnd.randint(1, m)
        blocks = -(-m // r) * -(-l // c)
        # A once for each block of columns, B and D once for each block of rows (B again for each block of columns)
        return r * c + r * k + r + 1, -(-l // c) * m * k + blocks * f * k + -(-m // r) * f * l + m * l
    j = rnd.randint(1, f)
    bands = -(-f // j)
    traffic = -(-l // c) * f * k + f * l + bands * -(-l // c) * m * k + (2 * bands - 1) * m * l
    return j * c + j * k + j + 1, traffic


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_with_recomputation_against_schedules_that_compute_again(seed: int) -> None:
    rnd = random.Random(seed)
    for _ in range(6):
        m, k, f, l = rnd.randint(2, 60), rnd.choice([1, 1, 2, 4]), rnd.randint(2, 60), rnd.randint(2, 12)
        spec = statement(Ffn(m, k, f, l))
        workload = read_workload(spec, "workload")
        schedules = sorted(computing_again(m, k, f, l, rnd) for _ in range(40))
        held, traffic = min(schedules, key=lambda s: (s[1] * s[0] ** 0.5, s))
        traffic = min(moves for capacity, moves in schedules if capacity <= held)
        claim = strongest_lower(spec, workload, held, AGAIN, rnd)
        assert claim is not None
        claim = raised(spec, claim)
        assert claim["elements"] <= traffic, (spec, held, traffic, claim)


def test_a_bound_above_a_schedule_is_refused() -> None:
    """Were a theorem wrong, the file would still be refused: claims that were put past the theorems."""
    from pebble.certificate.check import _agree

    workload = Gemm(4, 4, 4)
    claims = json.loads(
        json.dumps(bound_certificate(workload, answer(workload, 9, FastMemory.of_values(9, workload))))
    )["claims"]
    _agree(claims)
    upper = claims[-1]
    for unit in ("elements", "bytes"):
        false = {**claims[0], unit: upper[unit] + 1}
        with pytest.raises(RefusedError, match=f"the schedule moves .* {unit}"):
            _agree([upper, false])
        _agree([upper, {**false, "capacity_elements": upper["moved"]["peak_elements"] - 1}])
        _agree([upper, {**false, "game": SEPARATE}])


def test_numbers_are_not_truth_values() -> None:
    spec = statement(Gemm(1, 1, 1))
    claim = accepted(
        spec, {"claim": "lower bound", "game": AGAIN, "capacity_elements": 3, "proof": {"theorem": "compulsory"}}
    )
    assert claim is not None and claim["elements"] == 3
    with pytest.raises(RefusedError, match="version"):
        check({**document(spec, [claim]), "version": True})
