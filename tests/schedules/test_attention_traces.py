"""Attention kernels as traces: the pairs they cover, the causal mask, and the bound below every one of them."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.errors import InputError, UnknownNameError
from pebble.families import lower_bound
from pebble.families.attention import ATTENTION
from pebble.families.concurrent import simulate_concurrent
from pebble.models.caches import parse_policy
from pebble.reports.capacity import trace_capacity
from pebble.schedules.attention import AttentionKernel, attention_groups
from pebble.schedules.attention_names import all_attention_schedules, parse_attention_schedule
from pebble.schedules.ffn import parse_ffn_schedule
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.traces.touches import program_trace
from pebble.workloads import Attention, Ffn
from tests.schedules.lockstep import attention_trace

NAMES = [s.name for s in all_attention_schedules()] + ["split-kv-2", "split-kv-3+sawtooth"]

LRU = parse_policy("lru")


@st.composite
def problems(draw: st.DrawFn) -> Attention:
    kv_heads = draw(st.integers(1, 2))
    queries = draw(st.integers(1, 60))
    causal = draw(st.booleans())
    keys = draw(st.integers(queries if causal else 1, 90))
    return Attention(
        queries, keys, draw(st.sampled_from([1, 16, 64])), draw(st.sampled_from([0, 32])),
        heads=kv_heads * draw(st.integers(1, 3)), kv_heads=kv_heads, batch=draw(st.integers(1, 2)), causal=causal,
        dtype=draw(st.sampled_from(["bf16", "fp32", "fp8"])),
    )  # fmt: skip


def heads_together(a: Attention) -> int:
    """Heads whose queries are rows of one matrix: those that share keys, where all fit a tile of 64."""
    shared = a.heads // a.kv_heads
    return shared if a.queries * shared <= 64 else 1


def visible_tiles(a: Attention, bm: int, bn: int, tile: int) -> set[int]:
    """KV tiles with a key that some query of the Q tile sees, row by row."""
    seen, together = set(), heads_together(a)
    for row in range(tile * bm, min(a.queries * together, (tile + 1) * bm)):
        query = row // together
        last = a.keys - a.queries + query if a.causal else a.keys - 1
        seen |= {key // bn for key in range(last + 1)}
    return seen


@settings(max_examples=80, deadline=None)
@given(problems(), st.integers(1, 16), st.integers(1, 16), st.integers(1, 5), st.sampled_from(NAMES))
def test_every_output_is_written_and_every_needed_key_read(a: Attention, bm: int, bn: int, sms: int, name: str) -> None:
    trace = attention_trace(a, parse_attention_schedule(name), bm, bn, sms)
    touches: dict[str, list[int]] = defaultdict(list)
    length = 0
    for chunk in trace.chunks():
        length += len(chunk.ids)
        for unit, op in zip(chunk.ids.tolist(), chunk.ops.tolist(), strict=True):
            touches[trace.operand_names[trace.tile_operand[unit]] + "rw"[op]].append(unit)
    assert length == trace.touches
    kernel = AttentionKernel(a, bm, bn)
    heads, q_tiles = a.batch * a.heads // heads_together(a), kernel.q_tiles
    assert len(touches["Ow"]) == len(set(touches["Ow"])) == heads * q_tiles
    needed = sum(len(visible_tiles(a, kernel.bm, kernel.bn, t)) for t in range(q_tiles))
    assert len(set(touches["Kr"])) == len(set(touches["Vr"])) == a.groups * kernel.kv_tiles
    if name.startswith("fa1"):
        assert len(touches["Kr"]) == heads * kernel.kv_tiles
        assert len(touches["Qr"]) == heads * needed
        assert len(touches["Opartr"]) == len(touches["Opartw"]) == heads * (needed - q_tiles)
    else:
        assert len(touches["Vr"]) == heads * needed
    if name.startswith("unfused"):
        assert len(touches["Sw"]) == len(touches["Sr"]) == len(touches["Pw"]) == len(touches["Pr"]) == heads * needed


@settings(max_examples=100, deadline=None)
@given(problems(), st.integers(1, 16), st.integers(1, 16), st.integers(1, 5), st.sampled_from(NAMES),
       st.sampled_from(["lru", "fifo", "opt"]), st.integers(0, 800))  # fmt: skip
def test_bound_is_below_every_simulated_kernel(
    a: Attention, bm: int, bn: int, sms: int, name: str, policy: str, more: int
) -> None:
    trace = attention_trace(a, parse_attention_schedule(name), bm, bn, sms)
    lines = int(trace.tile_lines.max()) + more
    counts = parse_policy(policy).simulate(trace, lines)
    traffic = 128 * (sum(counts.read_misses) + sum(counts.write_backs))
    capacity = trace_capacity(
        lines * 128, a, sms * ATTENTION.kernel_needs(a, ATTENTION.cut_tile(TileShape(bm, bn, 1), a)).values, sms
    )
    assert lower_bound(a, capacity.elements).bytes <= traffic


def test_keys_are_walked_from_last_to_first_and_back() -> None:
    a = Attention(8, 32, 64)
    for name, expected in (("fa2", [3, 2, 1, 0, 3, 2, 1, 0]), ("fa2+sawtooth", [3, 2, 1, 0, 0, 1, 2, 3])):
        kernel = AttentionKernel(a, 4, 8)
        trace = program_trace(kernel.layout, attention_groups(kernel, parse_attention_schedule(name), 1, 1))
        ids = np.concatenate([chunk.ids for chunk in trace.chunks()])
        first = kernel.k.first
        assert [i - first for i in ids.tolist() if first <= i < first + 4] == expected


def test_longest_first_by_hand() -> None:
    # K and V of a head take 64 KiB: sections of 512 heads; here one section of 4 heads, 3 Q tiles
    kernel = AttentionKernel(Attention(12, 128, 128, heads=4), 4, 64)
    tiles, heads = kernel.longest_first()
    assert tiles.tolist() == [2] * 4 + [1] * 4 + [0] * 4
    assert heads.tolist() == [0, 1, 2, 3] * 3
    # 48 MiB per KV head: one KV head per section, which two query heads share
    large = AttentionKernel(Attention(256, 96 * 1024, 128, heads=4, kv_heads=2), 128, 128)
    tiles, heads = large.longest_first()
    assert heads.tolist() == [0, 1, 0, 1, 2, 3, 2, 3]


def test_decoding_splits() -> None:
    decode = AttentionKernel(Attention(1, 8192, 128, heads=8), 64, 128)
    splits = decode.decoding_splits(108)
    assert splits > 1
    assert 8 * splits <= 2 * 108 * 2
    assert AttentionKernel(Attention(8192, 8192, 128, heads=32), 128, 128).decoding_splits(108) == 1


def test_partial_outputs_are_counted() -> None:
    a = Attention(1, 4096, 128, heads=4)
    whole = LRU.simulate(attention_trace(a, parse_attention_schedule("fa2"), 64, 128, 8), 10**6)
    split = LRU.simulate(attention_trace(a, parse_attention_schedule("split-kv-4"), 64, 128, 8), 10**6)
    assert whole.operand_names == ("Q", "K", "V", "O")
    assert split.operand_names[-1] == "Opart"
    # one row of 129 fp32 values, 5 lines, for each of 4 heads and 4 splits, written once
    assert split.write_backs[-1] == 5 * 16
    assert split.accesses[-1] == 2 * 5 * 16


def test_side_by_side_touches_both_and_only_both() -> None:
    a, f = Attention(64, 64, 64, heads=2), Ffn(64, 128, 256)
    config = KernelConfig(TileShape(16, 16, 1), 6, 1, 2**16)
    fa2, fused = parse_attention_schedule("fa2"), parse_ffn_schedule("row-fused-2")
    both = simulate_concurrent(a, fa2, f, fused, TileShape(16, 128, 64), config, 3)
    alone = LRU.simulate(attention_trace(a, fa2, 16, 16, 3), 512)
    assert both.counts.operand_names == ("Q", "K", "V", "O", "X", "W1", "H", "W2", "Y")
    assert both.counts.accesses[:4] == alone.accesses
    assert both.dram_bytes >= a.compulsory_bytes + f.compulsory_bytes
    with pytest.raises(InputError, match="1 to 5"):
        simulate_concurrent(a, fa2, f, fused, TileShape(16, 128, 64), config, 6)
    with pytest.raises(InputError, match="interleaved"):
        simulate_concurrent(a, fa2, f, parse_ffn_schedule("interleaved-1"), TileShape(16, 128, 64), config, 3)


def test_names() -> None:
    for name in NAMES:
        assert parse_attention_schedule(name.upper()).name == name
    with pytest.raises(UnknownNameError, match="fa2"):
        parse_attention_schedule("fa4")
    with pytest.raises(InputError, match="1 to 128"):
        parse_attention_schedule("split-kv-0")
