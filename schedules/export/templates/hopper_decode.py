"""A decode step for Hopper in Gluon: one warp loads without a break, a warp group multiplies, weighs and adds up.

The pieces and what they leave in memory are those of `decode`. The loading warp goes from one piece to the next while
the group still stores the last, so DRAM is never idle between them. Products are turned, with keys and columns of V in
the place of rows, of which a warp group multiplies 64 at least: few queries are columns, 16 or more.
"""

from typing import NamedTuple

import triton.experimental.gluon as gluon
import triton.experimental.gluon.language as gl
import triton.experimental.gluon.language.nvidia.hopper as hopper
from hopper import Run, _buffers, _load_steps
from kernels import _all_there, _k_step


class HopperDecodeSizes(NamedTuple):
    """``rows`` of Q share one copy of K and V; rows of O are ``pitch`` values apart; ``scale`` holds log2(e) too."""

    rows: int
    queries: int
    keys: int
    value_dim: int
    pitch: int
    scale: float


class HopperDecodeBuild(NamedTuple):
    """Buffers of K and of V; a power of two that holds the rows; the pieces of a head that are added up together."""

    STAGES: int
    ROWS: int
    AT_ONCE: int
    CAUSAL: bool
    BARRIER: bool = False


@gluon.jit
def _piece(entry, there):
    """What the list says of a piece, if it is there: whose, its start and direction, first step, steps, number, of."""
    copy, start = gl.load(entry + 1, mask=there, other=0), gl.load(entry + 2, mask=there, other=0)
    direction, first = gl.load(entry + 3, mask=there, other=0), gl.load(entry + 4, mask=there, other=0)
    turns, number = gl.load(entry + 5, mask=there, other=0), gl.load(entry + 6, mask=there, other=0)
    return copy, start, direction, first, turns, number, gl.load(entry + 7, mask=there, other=0)


@gluon.jit
def _load_pieces(q, k, v, walk, sizes, buffers):
    """The warp that loads: the rows of Q, then the keys of each piece."""
    steps, seen = 0, (sizes.keys + buffers.k_tiles.shape[1] - 1) // buffers.k_tiles.shape[1]
    mine = walk.piece_begins + 16 * gl.program_id(0)
    begin, end = gl.load(mine), gl.load(mine + 1)
    copy, start, direction, first, turns, _, _ = _piece(mine + 2, gl.program_id(0) >= 0)
    for at in range(begin, end):
        coming = _piece(walk.pieces + 9 * (at + 1), at + 1 < end)
        run = Run(seen, start, direction, first, turns)
        _load_steps(q, copy * sizes.rows, k, v, copy * sizes.keys, run, steps, at - begin, buffers)
        steps += turns
        copy, start, direction, first, turns, _, _ = coming


@gluon.constexpr_function
def _of_pieces(at_once, rows, columns):
    """Sums of several pieces, those of one value in one thread; a thread has up to 4 values side by side."""
    across = min(32, columns // 2)
    side = min(4, columns // across)
    down = 32 // across
    return gl.BlockedLayout([at_once, 1, side], [1, down, across], [1, 4, 1], [2, 1, 0])


@gluon.jit
def _added_up(o, sums, of, copy, sizes, ROWS: gl.constexpr, DV: gl.constexpr, AT_ONCE: gl.constexpr):
    """Store what all pieces of a head make together."""
    EACH: gl.constexpr = _of_pieces(AT_ONCE, ROWS, DV)
    TOPS: gl.constexpr = gl.SliceLayout(2, EACH)
    RESULT: gl.constexpr = gl.SliceLayout(0, EACH)
    most = gl.full([ROWS], float("-inf"), gl.float32, gl.SliceLayout(0, TOPS))
    total = gl.full([ROWS], 0.0, gl.float32, gl.SliceLayout(0, TOPS))
    acc = gl.full([ROWS, DV], 0.0, gl.float32, RESULT)
    row = gl.arange(0, ROWS, gl.SliceLayout(0, TOPS))
    column = gl.arange(0, DV, gl.SliceLayout(0, gl.SliceLayout(1, EACH)))
    for piece in range(0, of, AT_ONCE):
        which = piece + gl.arange(0, AT_ONCE, gl.SliceLayout(1, TOPS))
        there = (which < of)[:, None] & (row < sizes.rows)[None, :]
        marks = sums + which[:, None] * (ROWS * (DV + 4)) + row[None, :] * (DV + 4)
        tops = gl.load(marks, mask=there, other=float("-inf"))
        totals = gl.load(marks + 1, mask=there, other=0.0)
        values = gl.load(marks[:, :, None] + 4 + column[None, None, :], mask=there[:, :, None], other=0.0)
        new_most = gl.where(row < sizes.rows, gl.maximum(most, gl.max(tops, 0)), 0.0)
        shrink, weights = gl.exp2(most - new_most), gl.exp2(tops - new_most[None, :])
        total = total * shrink + gl.sum(weights * totals, 0)
        acc = acc * gl.convert_layout(shrink, gl.SliceLayout(1, RESULT))[:, None]
        acc += gl.sum(gl.expand_dims(weights, 2) * values, 0)
        most = new_most
    acc = acc * gl.convert_layout(1.0 / total, gl.SliceLayout(1, RESULT))[:, None]
    out_row = gl.arange(0, ROWS, gl.SliceLayout(1, RESULT))
    out_column = gl.arange(0, DV, gl.SliceLayout(0, RESULT))
    out = o + (copy * sizes.rows + out_row).to(gl.int64)[:, None] * sizes.pitch + out_column[None, :]
    inside = (out_row < sizes.rows)[:, None] & (out_column < sizes.value_dim)[None, :]
    gl.store(out, acc.to(o.dtype.element_ty), mask=inside)


@gluon.jit
def _weigh_turned(scores, most, total, step, whole, last, keys, scale, CAUSAL: gl.constexpr):
    """As `_weigh` of scores that lie in columns; the sums of weights stay apart, a value each."""
    BN: gl.constexpr = scores.shape[0]
    layout: gl.constexpr = scores.type.layout
    if step >= whole:
        key = step * BN + gl.arange(0, BN, gl.SliceLayout(1, layout))
        seen = (key < keys)[:, None]
        if CAUSAL:
            seen = seen & (key[:, None] <= last[None, :])
        scores = gl.where(seen, scores, -1.0e6)  # finite: a piece that a row does not see at all must not make it 0/0
    new_most = gl.maximum(most, gl.max(scores, 0) * scale)
    weights = gl.exp2(scores * scale - new_most[None, :])
    shrink = gl.exp2(most - new_most)
    return weights, new_most, shrink, total * shrink[None, :] + weights


@gluon.jit
def _attend_turned(buffers, weights_tile, run, steps, number, whole, last, keys, scale, CAUSAL: gl.constexpr):
    """As `_attend`, with queries in columns; weights go through shared memory, the right-hand side of a product."""
    q_tile, k_tiles, v_tiles, q_full, q_empty, k_full, k_empty, v_full, v_empty = buffers
    STAGES: gl.constexpr = k_tiles.shape[0]
    BN: gl.constexpr = k_tiles.shape[1]
    N: gl.constexpr = q_tile.shape[1]
    DV: gl.constexpr = v_tiles.shape[2]
    PRODUCT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, N, 16])
    queries = q_tile.index(0).permute((1, 0))
    nothing = gl.full([BN, N], 0.0, gl.float32, PRODUCT)
    most = gl.full([N], float("-inf"), gl.float32, gl.SliceLayout(0, PRODUCT))
    total = gl.full([BN, N], 0.0, gl.float32, PRODUCT)
    acc = gl.full([DV, N], 0.0, gl.float32, PRODUCT)
    hopper.mbarrier.wait(q_full.index(0), number & 1)
    stage, phase = steps % STAGES, steps // STAGES & 1
    hopper.mbarrier.wait(k_full.index(stage), phase)
    coming = hopper.warpgroup_mma(k_tiles.index(stage), queries, nothing, use_acc=False, is_async=True)
    scores = hopper.warpgroup_mma_wait(0, deps=[coming])
    hopper.mbarrier.arrive(k_empty.index(stage))
    hopper.mbarrier.arrive(q_empty.index(0), pred=run.turns == 1)
    step = _k_step(0, run.seen, run.start, run.direction, run.first)
    weights, most, shrink, total = _weigh_turned(scores, most, total, step, whole, last, keys, scale, CAUSAL)
    weights_tile.store(weights.to(q_tile.dtype))
    hopper.fence_async_shared()
    for turn in range(1, run.turns):
        before, phase_before = stage, phase
        stage, phase = (steps + turn) % STAGES, (steps + turn) // STAGES & 1
        hopper.mbarrier.wait(k_full.index(stage), phase)
        coming = hopper.warpgroup_mma(k_tiles.index(stage), queries, nothing, use_acc=False, is_async=True)
        hopper.mbarrier.wait(v_full.index(before), phase_before)
        values = v_tiles.index(before).permute((1, 0))
        summing = hopper.warpgroup_mma(values, weights_tile, acc, is_async=True)
        scores = hopper.warpgroup_mma_wait(1, deps=[coming])
        hopper.mbarrier.arrive(k_empty.index(stage))
        hopper.mbarrier.arrive(q_empty.index(0), pred=turn == run.turns - 1)
        step = _k_step(0, run.seen, run.start, run.direction, run.first + turn)
        weights, most, shrink, total = _weigh_turned(scores, most, total, step, whole, last, keys, scale, CAUSAL)
        acc = hopper.warpgroup_mma_wait(0, deps=[summing])
        hopper.mbarrier.arrive(v_empty.index(before))
        acc = acc * shrink[None, :]
        weights_tile.store(weights.to(q_tile.dtype))
        hopper.fence_async_shared()
    hopper.mbarrier.wait(v_full.index(stage), phase)
    summing = hopper.warpgroup_mma(v_tiles.index(stage).permute((1, 0)), weights_tile, acc, is_async=True)
    acc = hopper.warpgroup_mma_wait(0, deps=[summing])
    hopper.mbarrier.arrive(v_empty.index(stage))
    return acc, most, gl.sum(total, 0)


@gluon.jit
def _weigh_pieces(
    o, walk, sizes, buffers, weights_tile, ROWS: gl.constexpr, AT_ONCE: gl.constexpr, CAUSAL: gl.constexpr
):
    """The warp group: what a piece found is DV sums, the greatest score and the sum of weights of each row, in fp32."""
    rows, queries, keys = sizes.rows, sizes.queries, sizes.keys
    BN: gl.constexpr = buffers.k_tiles.shape[1]
    N: gl.constexpr = buffers.q_tile.shape[1]
    DV: gl.constexpr = buffers.v_tiles.shape[2]
    PRODUCT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, N, 16])
    row, column = gl.arange(0, N, gl.SliceLayout(0, PRODUCT)), gl.arange(0, DV, gl.SliceLayout(1, PRODUCT))
    seen, steps = (keys + BN - 1) // BN, 0
    last, whole = keys - queries + row % queries, keys // BN
    if CAUSAL:
        whole = gl.minimum(whole, (keys - queries + 1) // BN)
    mine = walk.piece_begins + 16 * gl.program_id(0)
    begin, end = gl.load(mine), gl.load(mine + 1)
    copy, start, direction, first, turns, number, of = _piece(mine + 2, gl.program_id(0) >= 0)
    for at in range(begin, end):
        coming = _piece(walk.pieces + 9 * (at + 1), at + 1 < end)
        run = Run(seen, start, direction, first, turns)
        acc, most, total = _attend_turned(
            buffers, weights_tile, run, steps, at - begin, whole, last, keys, sizes.scale, CAUSAL
        )
        steps += turns
        sums = walk.partial + number.to(gl.int64) * (ROWS * (DV + 4))
        marks = sums + (at - number) * (ROWS * (DV + 4)) + row * (DV + 4)
        gl.store(marks, most, mask=row < rows)
        gl.store(marks + 1, total, mask=row < rows)
        gl.store(marks[None, :] + 4 + column[:, None], acc, mask=(row < rows)[None, :])
        if _all_there(walk.arrived + number, of):
            _added_up(o, sums, of, copy, sizes, ROWS, DV, AT_ONCE)
        copy, start, direction, first, turns, number, of = coming


@gluon.jit
def hopper_decode_kernel(q, k, v, o, walk, sizes, BUILD: gl.constexpr):
    """O = softmax(Q K^T) V of few queries as `decode_kernel`, of up to 64 rows that share keys."""
    buffers = _buffers(q, k, v, 1, BUILD.STAGES)
    ROWS: gl.constexpr = BUILD.ROWS
    AT_ONCE: gl.constexpr = BUILD.AT_ONCE
    CAUSAL: gl.constexpr = BUILD.CAUSAL
    shape: gl.constexpr = [k.block_type.shape[0], q.block_type.shape[0]]
    WEIGHTS: gl.constexpr = gl.NVMMASharedLayout.get_default_for(shape, q.dtype)
    weights_tile = gl.allocate_shared_memory(q.dtype, shape, WEIGHTS)
    gl.warp_specialize(
        [
            (_weigh_pieces, (o, walk, sizes, buffers, weights_tile, ROWS, AT_ONCE, CAUSAL)),
            (_load_pieces, (q, k, v, walk, sizes, buffers)),
        ],
        [1],
        [24],
    )
