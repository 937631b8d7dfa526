"""Attention bounds: against exact optima, replayed schedules, the target numbers, and each other."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pebble.bounds import Piece
from pebble.bounds import lower_bound as bound_of
from pebble.cdag.attention import attention_dag
from pebble.errors import InfeasibleError
from pebble.families import accounting, lower_bound
from pebble.families.attention import ATTENTION, strict_spills
from pebble.schedules.explicit.attention import attention_schedules, best_attention_schedule
from pebble.workloads import Attention
from tests.brute_force import brute_force
from tests.rooms import in_values

side = st.integers(1, 10)
# Proven optima, queries = keys = 2: (softmax, head_dim) -> S = 3, 4, 5, ...
OPTIMA = {
    ("online", 1): (16, 12, 10, 8),
    ("online", 2): (35, 24, 22, 19, 16),
    ("strict", 1): (22, 12, 10, 8),
    ("strict", 2): (40, 24, 22, 18, 16),
}


@pytest.mark.parametrize("case", OPTIMA)
def test_below_the_optima(case: tuple[str, int]) -> None:
    softmax, d = case
    attention = Attention(2, 2, d, softmax=softmax)
    for capacity, optimum in enumerate(OPTIMA[case], start=3):
        assert lower_bound(attention, capacity).elements <= optimum
        assert in_values(best_attention_schedule, attention, capacity).elements >= optimum
    assert lower_bound(attention, 100).elements == OPTIMA[case][-1]


@pytest.mark.parametrize("softmax", ["online", "strict"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 2, 1)])
def test_below_brute_force(shape: tuple[int, int, int], softmax: str) -> None:
    dag = attention_dag(*shape, softmax=softmax)
    for capacity in (3, 4):
        optimum = brute_force(dag, capacity, "in-place")
        assert optimum is not None
        assert lower_bound(Attention(*shape, softmax=softmax), capacity).elements <= optimum


@settings(max_examples=20, deadline=None)
@given(side, side, side, side, st.sampled_from([(1, 1), (2, 1), (4, 2)]), st.booleans(), st.booleans(), st.data())
def test_below_every_schedule(
    queries: int, keys: int, d: int, v: int, heads: tuple[int, int], causal: bool, strict: bool, data: st.DataObject
) -> None:
    assume(not causal or keys >= queries)
    softmax = "strict" if strict else "online"
    attention = Attention(queries, keys, d, v, *heads, causal=causal, softmax=softmax)
    capacity = data.draw(st.integers(3 if not causal else 3 + d + v + keys, 90))
    bound = lower_bound(attention, capacity)
    schedules = in_values(attention_schedules, attention, capacity)  # replayed in tests/schedules
    assert bound.elements <= min(s.elements for s in schedules)
    separate = ATTENTION.separate_bound(attention, capacity).elements
    assert separate >= lower_bound(Attention(queries, keys, d, v, *heads, causal=causal), capacity).elements
    if not causal:
        assert separate <= next(s for s in schedules if s.family == "unfused").elements
    assert lower_bound(attention, capacity, recompute=True).elements <= bound.elements


@settings(max_examples=40, deadline=None)
@given(side, side, side, st.booleans(), st.booleans(), st.integers(3, 60))
def test_relations(queries: int, keys: int, d: int, strict: bool, recompute: bool, capacity: int) -> None:
    keys += queries
    softmax = "strict" if strict else "online"
    full = Attention(queries, keys, d, heads=2, kv_heads=1, softmax=softmax)
    causal = Attention(queries, keys, d, heads=2, kv_heads=1, softmax=softmax, causal=True)
    value = lower_bound(full, capacity, recompute).elements
    assert lower_bound(causal, capacity, recompute).elements <= value
    assert lower_bound(full, capacity + 1, recompute).elements <= value
    assert ATTENTION.separate_bound(full, capacity + 1).elements <= ATTENTION.separate_bound(full, capacity).elements
    batch = Attention(queries, keys, d, heads=2, kv_heads=1, softmax=softmax, batch=3)
    assert lower_bound(batch, capacity, recompute).elements == 3 * value


@pytest.mark.parametrize(
    ("n", "capacity", "least"), [(32768, 116_736, 602e6), (8192, 49_152, 87.7e6), (8192, 116_736, 37.7e6)]
)
def test_targets(n: int, capacity: int, least: float) -> None:
    attention = Attention(n, n, 128)
    bound = lower_bound(attention, capacity)
    assert least <= bound.elements <= in_values(best_attention_schedule, attention, capacity).elements
    assert least <= lower_bound(attention, capacity, recompute=True).elements <= bound.elements


def test_flash_attention_is_within_five_per_cent() -> None:
    attention = Attention(32768, 32768, 128)
    bound = lower_bound(attention, 116_736)
    assert accounting(attention).of(Piece)[0].bound(116_736).segments in (5163, 5164)
    assert in_values(best_attention_schedule, attention, 116_736).elements <= 1.05 * bound.elements


@pytest.mark.parametrize("batch", [1, 64])
def test_decode_reads_the_cache_once(batch: int) -> None:
    decode = Attention(1, 131_072, 128, heads=32, kv_heads=8, batch=batch)
    bound = lower_bound(decode, 49_152)
    assert bound.elements == batch * (2 * 8 * 131_072 * 128 + 2 * 32 * 128)
    assert bound.method == "compulsory"


def test_scores_that_a_strict_softmax_must_store() -> None:
    attention = Attention(4, 10, 1, softmax="strict", heads=2, kv_heads=1)
    assert strict_spills(attention, 8) == 2 * 4 * (10 - 7)
    assert strict_spills(attention, 11) == 0
    # causal: rows of 7, 8, 9, 10 scores, at most 7 held
    assert strict_spills(Attention(4, 10, 1, softmax="strict", causal=True), 8) == 0 + 1 + 2 + 3
    assert strict_spills(Attention(4, 10, 1), 3) == 0
    spec = accounting(Attention(64, 4096, 64, softmax="strict")).quick
    strict = bound_of(spec, 2048)
    online = accounting(Attention(64, 4096, 64)).of(Piece)[0].bound(2048)
    assert strict.elements == online.elements + 64 * (4096 - 2047)


def test_widths() -> None:
    wide = Attention(256, 256, 32, dtype="bf16", out_dtype="fp32")
    bound = lower_bound(wide, 1000)
    assert bound.bytes == 2 * bound.elements + 2 * 256 * 32


def test_too_small() -> None:
    for bound in (lower_bound, ATTENTION.separate_bound):
        with pytest.raises(InfeasibleError, match="at least 3"):
            bound(Attention(2, 2, 2), 2)
