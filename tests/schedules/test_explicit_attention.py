"""Attention schedules: every one is played move by move, softmax state counted."""

import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pebble.certificate import RefusedError
from pebble.certificate.schedules import Memory, check_upper_bytes, traffic_of
from pebble.certificate.statement import read_workload
from pebble.errors import InfeasibleError
from pebble.families import lower_bound
from pebble.proof.certificate import upper_claim, workload_statement
from pebble.reports.bound import bound_workload
from pebble.schedules.explicit.attention import (
    attention_chain,
    attention_schedules,
    best_attention_schedule,
    fused_attention,
)
from pebble.schedules.explicit.chain import Chain
from pebble.schedules.explicit.chain_bands import best_band
from pebble.schedules.explicit.chain_search import best_chain_plan, plan_of_runs
from pebble.workloads import Attention, named_workload
from pebble.workloads.widths import FastMemory
from tests.rooms import in_values
from tests.schedules.fused_replay import replay

side = st.integers(1, 7)


@settings(max_examples=27, deadline=None)
@given(
    side, side, side, side, st.sampled_from([(1, 1), (2, 1), (3, 3), (4, 2)]), st.booleans(), st.booleans(), st.data()
)
def test_every_family_is_legal(
    queries: int, keys: int, d: int, v: int, heads: tuple[int, int], causal: bool, strict: bool, data: st.DataObject
) -> None:
    assume(not causal or keys >= queries)
    softmax = "strict" if strict else "online"
    attention = Attention(queries, keys, d, v, *heads, causal=causal, softmax=softmax)
    capacity = data.draw(st.integers(3 if not causal else 3 + d + v + keys, 120))
    for schedule in in_values(attention_schedules, attention, capacity):
        assert replay(schedule) <= schedule.peak_elements <= capacity
        assert schedule.elements >= attention.compulsory_elements


def test_figures_of_other_tools_and_the_frame() -> None:
    flash = in_values(best_attention_schedule, Attention(8192, 8192, 128), 228 * 2**9)
    assert flash.family == "flash attention"
    assert flash.elements <= 41_943_040
    assert in_values(best_attention_schedule, Attention(32768, 32768, 128), 228 * 2**9).elements <= 621_000_000
    assert in_values(best_attention_schedule, Attention(8192, 8192, 128), 6 * 2**19).elements == 4_194_304


def test_a_decode_step_reads_the_cache_once() -> None:
    decode = Attention(1, 4096, 128, heads=32, kv_heads=8, batch=4)
    best = in_values(best_attention_schedule, decode, 49_152)
    assert best.elements == decode.compulsory_elements
    assert best.loads["K"] == best.loads["V"] == 4 * 8 * 4096 * 128


def test_grouped_heads_share_keys() -> None:
    shared = in_values(best_attention_schedule, Attention(512, 512, 64, heads=8, kv_heads=1), 20_000)
    alone = in_values(best_attention_schedule, Attention(512, 512, 64, heads=8, kv_heads=8), 20_000)
    assert shared.elements < alone.elements


def test_causal_is_about_half() -> None:
    full = in_values(best_attention_schedule, Attention(8192, 8192, 128), 49_152)
    causal = in_values(best_attention_schedule, Attention(8192, 8192, 128, causal=True), 49_152)
    assert 0.5 < causal.elements / full.elements < 0.53
    model = in_values(best_attention_schedule, named_workload("llama-3-8b:attention", 1024), 49_152)
    assert model.detail.startswith("8 groups")


def test_strict_softmax_holds_or_spills_whole_rows() -> None:
    families = {s.family for s in in_values(attention_schedules, Attention(64, 64, 16, softmax="strict"), 2000)}
    assert "flash attention" not in families
    assert {"hidden block", "unfused"} <= families


def test_too_small() -> None:
    with pytest.raises(InfeasibleError, match="causal attention"):
        in_values(best_attention_schedule, Attention(64, 64, 16, causal=True), 20)
    with pytest.raises(InfeasibleError, match="at least 3"):
        in_values(best_attention_schedule, Attention(64, 64, 16), 2)


def test_runs_of_masked_bands_count_as_their_bands_one_by_one():
    draw = random.Random(1)
    checked = 0
    while checked < 300:
        masked, queries = draw.randint(1, 4), draw.randint(1, 12)
        keys, k, l = queries + draw.randint(0, 5), draw.randint(1, 5), draw.randint(1, 5)
        chain = Chain(masked * queries, k, keys, l, state=draw.choice([0, 2]), masked=masked)
        capacity, side = draw.randint(5, 200), draw.choice(["rows", "hidden"])
        runs, left = [], chain.m if side == "rows" else chain.f
        while left:
            extent = draw.randint(1, left)
            band = best_band(chain, side, extent, FastMemory.of_values(capacity))
            if band is None:
                break
            runs.append((band, draw.randint(1, left // extent)))
            left -= extent * runs[-1][1]
        if left:
            continue
        spec = plan_of_runs(chain, side, runs, FastMemory.of_values(capacity))
        alone = plan_of_runs(
            chain, side, [(band, 1) for band, count in runs for _ in range(count)], FastMemory.of_values(capacity)
        )
        assert (spec.loads, spec.stores, spec.peak_elements) == (alone.loads, alone.stores, alone.peak_elements)
        checked += 1


@pytest.mark.parametrize("causal", [False, True])
def test_the_largest_attention_has_a_schedule(causal):
    wide = Attention(4, 4, 4, heads=2**32, kv_heads=1, causal=causal, softmax="strict")
    long = Attention(2**32, 2**32, 4, causal=causal)
    for attention in (wide, long):
        best = in_values(best_attention_schedule, attention, 2**19)
        assert best.elements >= lower_bound(attention, 2**19).elements


@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 7), st.integers(2, 7), st.integers(1, 6), st.integers(8, 60), st.sampled_from(["online", "strict"])
)
def test_scores_are_spilled_with_the_state_of_their_rows(
    n: int, keys: int, d: int, capacity: int, softmax: str
) -> None:
    """Played: maximum and sum of a row stay from its first score to its outputs; the checker counts the same."""
    attention = Attention(n, keys, d, softmax=softmax)
    plan = best_chain_plan(attention_chain(attention), "rows", FastMemory.of_values(capacity), "spill")
    assume(plan is not None and plan.stores["H"] > 0)
    assert plan is not None
    schedule = fused_attention(attention, "Y stationary", plan)
    assert replay(schedule) <= schedule.peak_elements <= capacity
    claim = upper_claim(read_workload(workload_statement(attention), "workload"), schedule)
    assert claim["elements"] == schedule.elements
    run = claim["schedule"]["runs"][0]
    fields = {**claim["schedule"], "runs": [{**run, "stay": [run["stay"][0], run["stay"][1] + 1]}]}
    with pytest.raises(RefusedError):
        traffic_of(read_workload(workload_statement(attention), "workload"), Memory(capacity), fields, "schedule")


def test_long_vectors_in_little_memory_spill_their_scores() -> None:
    attention, capacity = Attention(8192, 8192, 256), 96 * 512
    result = {s.family: s for s in in_values(attention_schedules, attention, capacity)}
    best = result["O stationary"]
    assert "of scores spilled" in best.detail
    assert best.elements < 0.9 * result["flash attention"].elements
    assert in_values(best_attention_schedule, attention, capacity).elements <= best.elements
    wide = bound_workload(attention, cache="96KiB", accumulators="fp32")  # kernels of their own heights move less
    assert wide.upper is not None and "spilled" not in wide.upper.name


def test_a_certificate_in_bytes_spills_no_scores() -> None:
    workload = read_workload(workload_statement(Attention(8, 8, 4)), "workload")
    run = {"extent": 8, "count": 1, "blocks": 8, "stay": [4, 4], "kept": [0, 0], "spilled": 8}
    claim = {
        "claim": "upper bound in bytes",
        "widths_bytes": {"partial_hidden": 4, "partial_output": 4},
        "capacity_bytes": 4000,
        "bytes": 1,
        "schedule": {"kind": "bands", "side": "rows", "runs": [run]},
    }
    with pytest.raises(RefusedError, match="before the softmax"):
        check_upper_bytes(workload, claim, "claim")
