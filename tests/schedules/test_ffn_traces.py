"""FFN schedules as traces: what is touched when, in words, and the chain bound below every one of them."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.errors import InputError, UnknownNameError
from pebble.families import lower_bound, simulate
from pebble.families.ffn import FFN
from pebble.models.caches import parse_policy
from pebble.reports.capacity import trace_capacity
from pebble.reports.kernel_compare import compare_kernels as compare
from pebble.schedules.ffn import FfnKernel, all_ffn_schedules, parse_ffn_schedule
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.traces import WRITE, Trace
from pebble.workloads import Ffn
from tests.schedules.lockstep import ffn_trace
from tests.work import calls

TILE = TileShape(16, 128, 64)


def spoken(kernel: FfnKernel, trace: Trace) -> Iterator[tuple[str, int, int, bool]]:
    """(operand, unit row, unit column, write) of every touch."""
    regions = [kernel.x, *kernel.ups, kernel.h, kernel.w2, kernel.y]
    for chunk in trace.chunks():
        for unit, op in zip(chunk.ids.tolist(), chunk.ops.tolist(), strict=True):
            region = next(r for r in reversed(regions) if unit >= r.first)
            row, col = divmod(unit - region.first, region.grid[1])
            yield trace.operand_names[region.operand], row, col, op == WRITE


def separate_row_first(ffn: Ffn, tile: TileShape, wave: int) -> Iterator[tuple[str, int, int, bool]]:
    """Two row-first kernels in lock step, straight from the definition."""
    rows, hidden = -(-ffn.tokens // tile.bm), -(-ffn.hidden // tile.bn)
    depth, units, out = -(-ffn.d_model // tile.bk), -(-ffn.hidden // tile.bk), -(-ffn.d_out // tile.bn)
    each = tile.bn // tile.bk
    ups = ("Wg", "Wu") if ffn.gated else ("W1",)
    blocks = [(i, j) for i in range(rows) for j in range(hidden)]
    for start in range(0, len(blocks), wave):
        now = blocks[start : start + wave]
        for k in range(depth):
            for i, j in now:
                yield "X", i, k, False
                for w in ups:
                    yield w, k, j, False
        for i, j in now:
            for unit in range(j * each, min(units, (j + 1) * each)):
                yield "H", i, unit, True
    blocks = [(i, j) for i in range(rows) for j in range(out)]
    for start in range(0, len(blocks), wave):
        now = blocks[start : start + wave]
        for k in range(units):
            for i, j in now:
                yield "H", i, k, False
                yield "W2", k, j, False
        for i, j in now:
            yield "Y", i, j, True


side = st.integers(1, 300)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), side, side, side, st.booleans(), st.integers(1, 7))
def test_separate_kernels_word_for_word(tokens: int, k: int, f: int, l: int, gated: bool, wave: int) -> None:
    ffn = Ffn(tokens, k, f, l, gated)
    kernel = FfnKernel(ffn, TILE)
    trace = ffn_trace(kernel, parse_ffn_schedule("separate:row"), wave)
    assert list(spoken(kernel, trace)) == list(separate_row_first(ffn, kernel.tile, wave))


NAMES = ["separate:morton", "row-fused-1", "row-fused-2+sawtooth", "row-fused-3-split-2", "interleaved-1",
         "interleaved-2+sawtooth"]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 90), side, side, side, st.booleans(), st.integers(2, 7), st.sampled_from(NAMES))
def test_every_schedule_does_the_same_work(
    tokens: int, k: int, f: int, l: int, gated: bool, wave: int, name: str
) -> None:
    ffn = Ffn(tokens, k, f, l, gated)
    kernel = FfnKernel(ffn, TILE)
    schedule = parse_ffn_schedule(name)
    trace = ffn_trace(kernel, schedule, wave)
    touched = list(spoken(kernel, trace))
    assert len(touched) == trace.touches
    expected = Counter(separate_row_first(ffn, kernel.tile, wave))
    result = Counter(touched)
    if schedule.split == 1:
        assert result == expected
    else:  # partial sums of Y are written and read between the parts, all else is the same
        parts = Counter(t for t in touched if t[0] == "Y" and t[3])
        assert {t: c for t, c in result.items() if t[0] != "Y"} == {t: c for t, c in expected.items() if t[0] != "Y"}
        for (operand, row, col, _), times in parts.items():
            assert result[operand, row, col, False] == times - 1
    written = set()
    for operand, row, col, write in touched:  # nothing is read before it is there
        if write:
            written.add((operand, row, col))
        elif operand in ("H", "Y"):
            assert (operand, row, col) in written


def test_a_band_runs_its_second_product_at_once() -> None:
    kernel = FfnKernel(Ffn(64, 128, 256, 128), TILE)
    trace = ffn_trace(kernel, parse_ffn_schedule("row-fused-2"), 4)
    writes = [(o, r) for o, r, _, write in spoken(kernel, trace) if write]
    rows = [o + str(r // 2) for o, r in writes]
    assert list(dict.fromkeys(rows)) == ["H0", "Y0", "H1", "Y1"]


def test_residual_is_read_once_per_output() -> None:
    ffn, config = Ffn(64, 128, 256, 128), KernelConfig(TILE, 2, 1, 2**20)
    plain, added = (
        simulate(ffn, parse_ffn_schedule("row-fused-1"), config, residual=r).counts.accesses for r in (False, True)
    )
    assert added[0] - plain[0] == 64 * 2  # every line of X once more
    assert added[1:] == plain[1:]
    with pytest.raises(InputError, match="residual"):
        simulate(Ffn(64, 128, 256, 64), parse_ffn_schedule("row-fused-1"), config, residual=True)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_chain_bound_is_below_every_simulated_schedule(data: st.DataObject) -> None:
    draw = data.draw
    ffn = Ffn(draw(st.integers(1, 150)), draw(side), draw(side), draw(side), draw(st.booleans()),
              draw(st.sampled_from(["bf16", "fp32", "fp8"])))  # fmt: skip
    tile = TileShape(draw(st.integers(1, 32)), 128, 128)
    kernel = FfnKernel(ffn, tile)
    sms = draw(st.integers(2, 6))
    trace = ffn_trace(kernel, parse_ffn_schedule(draw(st.sampled_from(NAMES))), sms)
    lines = draw(st.integers(int(trace.tile_lines.max()), 3000))
    counts = parse_policy(draw(st.sampled_from(["lru", "fifo", "opt"]))).simulate(trace, lines)
    traffic = 128 * (sum(counts.read_misses) + sum(counts.write_backs))
    held = sms * FFN.kernel_needs(ffn, FFN.cut_tile(tile, ffn)).values
    for recompute in (False, True):
        bound = lower_bound(ffn, trace_capacity(lines * 128, ffn, held, sms).elements, recompute)
        assert bound.bytes <= traffic


def test_names() -> None:
    for text in ("separate:grouped-8+sawtooth", "row-fused-8", "row-fused-8-split-4", "interleaved-2+sawtooth"):
        assert parse_ffn_schedule(text.upper()).name == text
    names = [s.name for s in all_ffn_schedules(Ffn(1000, 64, 64), TileShape(128, 128, 64))]
    assert len(names) == len(set(names))
    assert {"separate:row", "row-fused-8", "row-fused-6+sawtooth", "interleaved-4", "row-fused-8-split-2"} <= set(names)
    for bad in ("row-fused", "fused-8", "rowfused-8"):
        with pytest.raises(UnknownNameError):
            parse_ffn_schedule(bad)
    with pytest.raises(InputError, match="at least 1"):
        parse_ffn_schedule("row-fused-0")
    with pytest.raises(UnknownNameError, match="morton"):
        parse_ffn_schedule("separate:mortn")
    with pytest.raises(InputError, match="multiple of BK"):
        FfnKernel(Ffn(64, 256, 256), TileShape(16, 96, 64))


def test_comparison_names_the_best_band() -> None:
    ffn = Ffn(512, 256, 512, gated=True)
    result = compare(ffn, cache="256KiB", sms=4)
    assert {t.order for t in result.orders} >= {s.name for s in all_ffn_schedules(ffn, TileShape(128, 128, 64))}
    document = result.to_dict()
    assert document["best_band"]["name"].startswith("row-fused-")
    fused = [s["dram_bytes"] for s in document["schedules"] if s["name"].startswith("row-fused")]
    assert document["best_band"]["dram_bytes"] == min(fused)
    assert min(s["ratio_to_lower_bound"] for s in document["schedules"]) >= 1
    assert document["separate_kernels_bound"]["bytes"] >= document["lower_bound"]["bytes"]
    assert np.isfinite(result.ratio(result.best_known[0]))


def test_two_kernels_side_by_side_take_linear_time() -> None:
    def work(hidden: int) -> tuple[int, int]:
        kernel = FfnKernel(Ffn(64, 400, hidden), TileShape(16, 16, 16))
        trace, touches = ffn_trace(kernel, parse_ffn_schedule("interleaved-1"), 3), []
        count = calls(lambda: touches.extend(len(chunk.ids) for chunk in trace.chunks()))
        assert sum(touches) == trace.touches
        return trace.touches, count

    work(50)  # what is loaded once
    (few, of_few), (many, of_many) = work(200), work(800)
    assert many > 3.5 * few and of_many < 1.1 * many / few * of_few  # in the steps of a chunk, a square is 16 times


def test_separate_kernels_below_their_bound_are_explained() -> None:
    ffn = Ffn(1024, 128, 512, dtype="fp8")
    result = compare(ffn, "separate:row,row-fused-1", gpu="h20")
    assert result.separate is not None
    separate = next(t for t in result.orders if t.order == "separate:row")
    assert separate.dram_bytes < result.separate.bound.bytes
    assert any("finds in L2 what the first left there" in note for note in result.document()["notes"])


def test_a_kernel_that_holds_more_than_the_chip_has_no_chip_bound() -> None:
    ffn = Ffn(2604, 2048, 2048, 35, gated=True, dtype="fp16", out_dtype="bf16")
    options = {"gpu": "a2", "tile": "128x256x64", "blocks_per_sm": 8}
    result = compare(ffn, "row-fused-16", allow_infeasible=True, **options)
    assert result.chip is None and any("no chip bound" in note for note in result.notes)
    assert compare(ffn, "row-fused-16", gpu="a2").chip is not None
