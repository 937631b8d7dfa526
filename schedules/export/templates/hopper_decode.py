"""A decode step for Hopper in Gluon: one warp loads without a break, a warp group multiplies, weighs and adds up.

The pieces and what they leave in memory are those of `decode`. The loading warp goes from one piece to the next while
the group still stores the last, so DRAM is never idle between them.
"""

from typing import NamedTuple

import triton.experimental.gluon as gluon
import triton.experimental.gluon.language as gl
from hopper import Run, _attend, _buffers, _load_steps
from kernels import _all_there


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
def _load_pieces(q, k, v, walk, begin, end, sizes, buffers):
    """The warp that loads: the rows of Q, then the keys of each piece."""
    steps, seen = 0, (sizes.keys + buffers.k_tiles.shape[1] - 1) // buffers.k_tiles.shape[1]
    for at in range(begin, end):
        entry = walk.pieces + 9 * at
        copy, start, direction = gl.load(entry + 1), gl.load(entry + 2), gl.load(entry + 3)
        run = Run(seen, start, direction, gl.load(entry + 4), gl.load(entry + 5))
        _load_steps(q, copy * sizes.rows, k, v, copy * sizes.keys, run, steps, at - begin, buffers)
        steps += run.turns


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
def _weigh_pieces(o, walk, begin, end, sizes, buffers, ROWS: gl.constexpr, AT_ONCE: gl.constexpr, CAUSAL: gl.constexpr):
    """The warp group: what a piece found is DV sums, the greatest score and the sum of weights of each row, in fp32."""
    rows, queries, keys = sizes.rows, sizes.queries, sizes.keys
    BN: gl.constexpr = buffers.k_tiles.shape[1]
    DV: gl.constexpr = buffers.v_tiles.shape[2]
    SCORES: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BN, 16])
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, DV, 16])
    row, out_row = gl.arange(0, 64, gl.SliceLayout(1, SCORES)), gl.arange(0, 64, gl.SliceLayout(1, SUMS))
    column = gl.arange(0, DV, gl.SliceLayout(0, SUMS))
    seen, steps = (keys + BN - 1) // BN, 0
    last, whole = keys - queries + row % queries, keys // BN
    if CAUSAL:
        whole = gl.minimum(whole, (keys - queries + 1) // BN)
    for at in range(begin, end):
        entry = walk.pieces + 9 * at
        copy, start, direction = gl.load(entry + 1), gl.load(entry + 2), gl.load(entry + 3)
        run = Run(seen, start, direction, gl.load(entry + 4), gl.load(entry + 5))
        number, of = gl.load(entry + 6), gl.load(entry + 7)
        acc, most, total = _attend(buffers, 0, run, steps, at - begin, whole, last, keys, sizes.scale, CAUSAL)
        steps += run.turns
        sums = walk.partial + number.to(gl.int64) * (ROWS * (DV + 4))
        mine = sums + (at - number) * (ROWS * (DV + 4))
        gl.store(mine + row * (DV + 4), most, mask=row < rows)
        gl.store(mine + row * (DV + 4) + 1, total, mask=row < rows)
        gl.store(mine + 4 + out_row[:, None] * (DV + 4) + column[None, :], acc, mask=(out_row < rows)[:, None])
        if _all_there(walk.arrived + number, of):
            _added_up(o, sums, of, copy, sizes, ROWS, DV, AT_ONCE)


@gluon.jit
def hopper_decode_kernel(q, k, v, o, walk, sizes, BUILD: gl.constexpr):
    """O = softmax(Q K^T) V of few queries as `decode_kernel`, of up to 64 rows that share keys."""
    mine = walk.piece_begins + gl.program_id(0)
    begin, end = gl.load(mine), gl.load(mine + 1)
    buffers = _buffers(q, k, v, 1, BUILD.STAGES)
    ROWS: gl.constexpr = BUILD.ROWS
    AT_ONCE: gl.constexpr = BUILD.AT_ONCE
    CAUSAL: gl.constexpr = BUILD.CAUSAL
    gl.warp_specialize(
        [
            (_weigh_pieces, (o, walk, begin, end, sizes, buffers, ROWS, AT_ONCE, CAUSAL)),
            (_load_pieces, (q, k, v, walk, begin, end, sizes, buffers)),
        ],
        [1],
        [24],
    )
