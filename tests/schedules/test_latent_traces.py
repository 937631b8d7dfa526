"""The simulated kernel of latent attention: one load of a tile for both products, rows stacked query by query."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.families import kernel_family, lower_bound
from pebble.models.caches import parse_policy
from pebble.schedules.attention import LatentKernel, attention_groups
from pebble.schedules.attention_names import parse_attention_schedule
from pebble.schedules.tables import Launch
from pebble.schedules.tables.registry import check_table, named_table, table_kernel, table_phases
from pebble.schedules.tile import TileShape
from pebble.traces.program import Group
from pebble.traces.touches import program_trace
from pebble.workloads import LatentAttention

NAMES = ["fa2", "fa2+sawtooth", "fa2-heads-first", "fa3", "flash-decoding", "split-kv-3"]
LATENT = kernel_family(LatentAttention(1, 1))


@st.composite
def problems(draw: st.DrawFn) -> LatentAttention:
    queries, causal = draw(st.integers(1, 20)), draw(st.booleans())
    keys = draw(st.integers(queries if causal else 1, 60))
    widths = draw(st.sampled_from([(1, 1), (48, 16), (64, 32)]))
    return LatentAttention(queries, keys, *widths, draw(st.integers(1, 5)), draw(st.integers(1, 2)), causal)


@settings(max_examples=80, deadline=None)
@given(
    problems(), st.integers(1, 16), st.integers(1, 16), st.integers(1, 5), st.sampled_from(NAMES), st.integers(0, 60)
)
def test_each_tile_is_loaded_once_for_both_products_and_the_bound_is_below(
    w: LatentAttention, bm: int, bn: int, sms: int, name: str, more: int
) -> None:
    kernel = LatentKernel(w, bm, bn)
    tiles, schedule = -(-w.stacked_queries // kernel.bm), parse_attention_schedule(name)
    trace = program_trace(kernel.layout, attention_groups(kernel, schedule, sms, sms))
    touched: Counter[str] = Counter()
    for chunk in trace.chunks():
        for unit, op in zip(chunk.ids.tolist(), chunk.ops.tolist(), strict=True):
            touched[trace.operand_names[trace.tile_operand[unit]] + "rw"[op]] += 1
    needed = 0
    for tile in range(tiles):  # row by row, which keys it sees
        queries = {row // w.heads for row in range(tile * kernel.bm, min(w.stacked_queries, (tile + 1) * kernel.bm))}
        seen = [w.keys - w.queries + q + 1 if w.causal else w.keys for q in queries]
        needed += len({key // kernel.bn for keys in seen for key in range(keys)})
    assert touched["KVr"] == w.batch * needed
    assert touched["Ow"] == w.batch * tiles
    assert "Kr" not in touched and "Vr" not in touched
    lines = int(trace.tile_lines.max()) + more
    counts = parse_policy("lru").simulate(trace, lines)
    traffic = 128 * (sum(counts.read_misses) + sum(counts.write_backs))
    held = sms * LATENT.kernel_needs(w, LATENT.cut_tile(TileShape(bm, bn, 1), w)).values
    assert lower_bound(w, max(3, lines * 64 + held)).bytes <= traffic


@pytest.mark.parametrize("name", ["fa2", "fa2+sawtooth", "fa2-heads-first", "fa3"])
def test_its_table_is_its_trace(name: str) -> None:
    w = LatentAttention(9, 70, 64, 64, heads=3, batch=2, causal=True)
    schedule, kernel = parse_attention_schedule(name), LatentKernel(w, 8, 16)
    table = named_table(w, schedule, Launch(TileShape(8, 16, 1), 5))
    check_table(table)
    own = table_kernel(table)
    walked = program_trace(own.layout, [Group(table_phases(table, own), 5)])
    named = program_trace(kernel.layout, attention_groups(kernel, schedule, 5, 5))
    for item, other in zip(walked.chunks(), named.chunks(), strict=True):
        np.testing.assert_array_equal(item.ids, other.ids)


def test_a_decode_step_reads_the_latents_once() -> None:
    w = LatentAttention(1, 4096, heads=64)
    kernel = LatentKernel(w, 64, 64)
    assert (kernel.rows, kernel.copies, kernel.q_tiles, kernel.kv_tiles) == (64, 1, 1, 64)
    trace = program_trace(kernel.layout, attention_groups(kernel, parse_attention_schedule("fa2"), 132, 132))
    counts = parse_policy("lru").simulate(trace, 10**6)
    assert 128 * (sum(counts.read_misses) + sum(counts.write_backs)) == w.compulsory_bytes
