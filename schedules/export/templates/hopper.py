"""Attention for Hopper in Gluon: one warp loads, two warp groups of 64 queries each multiply and weigh.

While the tensor cores multiply the weights of one step by its values, a group weighs the scores of the next. The list
of tiles is that of `kernels`.
"""

from typing import NamedTuple

import triton.experimental.gluon as gluon
import triton.experimental.gluon.language as gl
import triton.experimental.gluon.language.nvidia.hopper as hopper
from kernels import _k_step, _tick, _wait


class HopperSizes(NamedTuple):
    """``group`` heads share one of K and V; rows of O are ``pitch`` values apart; ``scale`` holds log2(e) too."""

    queries: int
    keys: int
    group: int
    value_dim: int
    pitch: int
    scale: float


class HopperBuild(NamedTuple):
    """Buffers of K and of V, and what each block does."""

    STAGES: int
    CAUSAL: bool
    BARRIER: bool = False


class Run(NamedTuple):
    """Steps of a tile of Q: of the tiles of keys that it ``seen``, from ``start`` on, the ``first`` and how many."""

    seen: object
    start: object
    direction: object
    first: object
    turns: object


class Buffers(NamedTuple):
    """Tiles in shared memory, and for each whether it is full, or may be filled."""

    q_tile: object
    k_tiles: object
    v_tiles: object
    q_full: object
    q_empty: object
    k_full: object
    k_empty: object
    v_full: object
    v_empty: object


@gluon.jit
def _load_steps(q, row, k, v, first_key, run, steps, number, buffers):
    """What the warp that loads does for one tile of Q, or a piece of it: its rows, and K and V as buffers get free.

    K comes before Q: its buffer is free when Q's is still at work. ``steps`` and tiles of Q (``number``) were before.
    """
    q_tile, k_tiles, v_tiles, q_full, q_empty, k_full, k_empty, v_full, v_empty = buffers
    STAGES: gl.constexpr = k_tiles.shape[0]
    BN: gl.constexpr = k_tiles.shape[1]
    GROUPS: gl.constexpr = q_tile.shape[0]
    ROWS: gl.constexpr = q_tile.shape[1]
    for turn in range(run.turns):
        key = first_key + _k_step(0, run.seen, run.start, run.direction, run.first + turn) * BN
        stage, phase = (steps + turn) % STAGES, ((steps + turn) // STAGES & 1) ^ 1
        hopper.mbarrier.wait(k_empty.index(stage), phase)
        hopper.mbarrier.expect(k_full.index(stage), BN * k_tiles.shape[2] * 2)
        hopper.tma.async_copy_global_to_shared(k, [key, 0], k_full.index(stage), k_tiles.index(stage))
        if turn == 0:
            for half in gl.static_range(GROUPS):
                hopper.mbarrier.wait(q_empty.index(half), (number & 1) ^ 1)
                hopper.mbarrier.expect(q_full.index(half), ROWS * q_tile.shape[2] * 2)
                hopper.tma.async_copy_global_to_shared(
                    q, [row + half * ROWS, 0], q_full.index(half), q_tile.index(half)
                )
        hopper.mbarrier.wait(v_empty.index(stage), phase)
        hopper.mbarrier.expect(v_full.index(stage), BN * v_tiles.shape[2] * 2)
        hopper.tma.async_copy_global_to_shared(v, [key, 0], v_full.index(stage), v_tiles.index(stage))


@gluon.jit
def _load_tiles(q, k, v, walk, begin, end, sizes, buffers, BARRIER: gl.constexpr):
    """The warp that loads: each tile of Q, then the tiles of K and V that it sees."""
    steps = 0
    for at in range(begin, end):
        entry = walk.tiles + 6 * at
        tile, head = gl.load(entry), gl.load(entry + 1)
        start, direction, seen = gl.load(entry + 2), gl.load(entry + 3), gl.load(entry + 4)
        if BARRIER:
            _wait(walk.finished, gl.load(entry + 5))
        row = head * sizes.queries + tile * (2 * buffers.q_tile.shape[1])
        first_key = (head // sizes.group) * sizes.keys
        _load_steps(q, row, k, v, first_key, Run(seen, start, direction, 0, seen), steps, at - begin, buffers)
        steps += seen


@gluon.jit
def _weigh(scores, most, total, step, whole, last, keys, scale, CAUSAL: gl.constexpr):
    """Weights of a tile of scores with online softmax; only tiles from ``whole`` on have keys that are not seen."""
    BN: gl.constexpr = scores.shape[1]
    layout: gl.constexpr = scores.type.layout
    if step >= whole:
        key = step * BN + gl.arange(0, BN, gl.SliceLayout(0, layout))
        seen = key[None, :] < keys
        if CAUSAL:
            seen = seen & (key[None, :] <= last[:, None])
        scores = gl.where(seen, scores, -1.0e6)  # finite: a tile that a row does not see at all must not make it 0/0
    new_most = gl.maximum(most, gl.max(scores, 1) * scale)
    weights = gl.exp2(scores * scale - new_most[:, None])
    shrink = gl.exp2(most - new_most)
    return weights, new_most, shrink, total * shrink + gl.sum(weights, 1)


@gluon.constexpr_function
def _in_runs(columns, run):
    """64 rows as a warp group's products have them, but each thread with runs of 4 or 8 columns, for wide stores.

    From runs of 2 to runs of 8 the two bits of a thread's place in its row change with two of its registers, one after
    the other: each time by shuffles, without shared memory.
    """
    wide = columns > 16
    lanes = [[0, 8 if run == 8 else 2], [0, 16 if wide else 4]]
    inner = [[0, 1], [0, 4 if wide else 8]] if run == 4 else [[0, 1], [0, 2]]
    inner += [[0, 8]] if run == 4 and wide else [[0, 4]] if wide else []
    outer = [[0, 32 << i] for i in range((columns // 32).bit_length() - 1)] + [[8, 0]]
    return gl.DistributedLinearLayout(
        inner + outer, [*lanes, [1, 0], [2, 0], [4, 0]], [[16, 0], [32, 0]], [], [64, columns]
    )


@gluon.jit
def _entry(walk, at, end):
    """What the list says of a tile; nothing behind its end."""
    entry, there = walk.tiles + 6 * at, at < end
    tile, head = gl.load(entry, mask=there, other=0), gl.load(entry + 1, mask=there, other=0)
    start, direction = gl.load(entry + 2, mask=there, other=0), gl.load(entry + 3, mask=there, other=0)
    return tile, head, start, direction, gl.load(entry + 4, mask=there, other=0)


@gluon.jit
def _attend(buffers, GROUP: gl.constexpr, run, steps, number, whole, last, keys, scale, CAUSAL: gl.constexpr):
    """Sums of values, the greatest score and the sum of weights of 64 rows of Q, over some steps of the keys they see.

    ``steps`` and tiles of Q (``number``) were before.
    """
    q_tile, k_tiles, v_tiles, q_full, q_empty, k_full, k_empty, v_full, v_empty = buffers
    STAGES: gl.constexpr = k_tiles.shape[0]
    BN: gl.constexpr = k_tiles.shape[1]
    ROWS: gl.constexpr = q_tile.shape[1]
    DV: gl.constexpr = v_tiles.shape[2]
    SCORES: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BN, 16])
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, DV, 16])
    WEIGHTS: gl.constexpr = gl.DotOperandLayout(0, SUMS, 2)
    mine = q_tile.index(GROUP)
    nothing = gl.full([ROWS, BN], 0.0, gl.float32, SCORES)
    most = gl.full([ROWS], float("-inf"), gl.float32, gl.SliceLayout(1, SCORES))
    total = gl.full([ROWS], 0.0, gl.float32, gl.SliceLayout(1, SCORES))
    acc = gl.full([ROWS, DV], 0.0, gl.float32, SUMS)
    hopper.mbarrier.wait(q_full.index(GROUP), number & 1)
    stage, phase = steps % STAGES, steps // STAGES & 1
    hopper.mbarrier.wait(k_full.index(stage), phase)
    turned = k_tiles.index(stage).permute((1, 0))
    coming = hopper.warpgroup_mma(mine, turned, nothing, use_acc=False, is_async=True)
    scores = hopper.warpgroup_mma_wait(0, deps=[coming])
    hopper.mbarrier.arrive(k_empty.index(stage))
    hopper.mbarrier.arrive(q_empty.index(GROUP), pred=run.turns == 1)
    step = _k_step(0, run.seen, run.start, run.direction, run.first)
    weights, most, shrink, total = _weigh(scores, most, total, step, whole, last, keys, scale, CAUSAL)
    left = gl.convert_layout(weights.to(q_tile.dtype), WEIGHTS)
    for turn in range(1, run.turns):
        before, phase_before = stage, phase
        stage, phase = (steps + turn) % STAGES, (steps + turn) // STAGES & 1
        hopper.mbarrier.wait(k_full.index(stage), phase)
        turned = k_tiles.index(stage).permute((1, 0))
        coming = hopper.warpgroup_mma(mine, turned, nothing, use_acc=False, is_async=True)
        hopper.mbarrier.wait(v_full.index(before), phase_before)
        summing = hopper.warpgroup_mma(left, v_tiles.index(before), acc, is_async=True)
        scores = hopper.warpgroup_mma_wait(1, deps=[coming])
        hopper.mbarrier.arrive(k_empty.index(stage))
        hopper.mbarrier.arrive(q_empty.index(GROUP), pred=turn == run.turns - 1)
        step = _k_step(0, run.seen, run.start, run.direction, run.first + turn)
        weights, most, shrink, total = _weigh(scores, most, total, step, whole, last, keys, scale, CAUSAL)
        acc = hopper.warpgroup_mma_wait(0, deps=[summing])
        hopper.mbarrier.arrive(v_empty.index(before))
        acc = acc * gl.convert_layout(shrink, gl.SliceLayout(1, SUMS))[:, None]
        left = gl.convert_layout(weights.to(q_tile.dtype), WEIGHTS)
    hopper.mbarrier.wait(v_full.index(stage), phase)
    summing = hopper.warpgroup_mma(left, v_tiles.index(stage), acc, is_async=True)
    acc = hopper.warpgroup_mma_wait(0, deps=[summing])
    hopper.mbarrier.arrive(v_empty.index(stage))
    return acc, most, total


@gluon.jit
def _multiply(o, walk, begin, end, sizes, buffers, GROUP: gl.constexpr, CAUSAL: gl.constexpr, BARRIER: gl.constexpr):
    """A warp group: scores of its half of a tile of Q, weights, and their sums of values."""
    queries, keys, value_dim, pitch, scale = sizes.queries, sizes.keys, sizes.value_dim, sizes.pitch, sizes.scale
    BN: gl.constexpr = buffers.k_tiles.shape[1]
    HALF: gl.constexpr = buffers.q_tile.shape[1]
    DV: gl.constexpr = buffers.v_tiles.shape[2]
    SCORES: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BN, 16])
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, DV, 16])
    BETWEEN: gl.constexpr = _in_runs(DV, 4)
    STORED: gl.constexpr = _in_runs(DV, 8)
    steps = 0
    tile, head, start, direction, seen = _entry(walk, begin, end)
    for at in range(begin, end):
        next_tile, next_head, next_start, next_direction, next_seen = _entry(walk, at + 1, end)
        top = tile * (2 * HALF) + GROUP * HALF
        last = top + keys - queries + gl.arange(0, HALF, gl.SliceLayout(1, SCORES))
        whole = keys // BN
        if CAUSAL:
            whole = gl.minimum(whole, (top + keys - queries + 1) // BN)
        run = Run(seen, start, direction, 0, seen)
        acc, _, total = _attend(buffers, GROUP, run, steps, at - begin, whole, last, keys, scale, CAUSAL)
        steps += seen
        acc = acc * gl.convert_layout(1.0 / total, gl.SliceLayout(1, SUMS))[:, None]
        acc = gl.convert_layout(acc, BETWEEN)
        result = gl.convert_layout(acc.to(o.dtype.element_ty), STORED)
        rm = top + gl.arange(0, HALF, gl.SliceLayout(1, STORED))
        rv = gl.arange(0, DV, gl.SliceLayout(0, STORED))
        out = o + (head * queries + rm).to(gl.int64)[:, None] * pitch + rv[None, :]
        gl.store(out, result, mask=(rm < queries)[:, None] & (rv < value_dim)[None, :])
        if BARRIER and GROUP == 0:
            _tick(walk.finished, gl.load(walk.begins + gl.num_programs(0)))
        tile, head, start, direction, seen = next_tile, next_head, next_start, next_direction, next_seen


@gluon.jit
def _buffers(q, k, v, GROUPS: gl.constexpr, STAGES: gl.constexpr):
    """Buffers of as many tiles of Q as there are warp groups that multiply, and of K and V, with their barriers."""
    q_tile = gl.allocate_shared_memory(q.dtype, [GROUPS, q.block_type.shape[0], q.block_type.shape[1]], q.layout)
    k_tiles = gl.allocate_shared_memory(k.dtype, [STAGES, k.block_type.shape[0], k.block_type.shape[1]], k.layout)
    v_tiles = gl.allocate_shared_memory(v.dtype, [STAGES, v.block_type.shape[0], v.block_type.shape[1]], v.layout)
    q_full = gl.allocate_shared_memory(gl.int64, [GROUPS, 1], hopper.mbarrier.MBarrierLayout())
    q_empty = gl.allocate_shared_memory(gl.int64, [GROUPS, 1], hopper.mbarrier.MBarrierLayout())
    k_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], hopper.mbarrier.MBarrierLayout())
    k_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], hopper.mbarrier.MBarrierLayout())
    v_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], hopper.mbarrier.MBarrierLayout())
    v_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], hopper.mbarrier.MBarrierLayout())
    for group in gl.static_range(GROUPS):
        hopper.mbarrier.init(q_full.index(group), count=1)
        hopper.mbarrier.init(q_empty.index(group), count=1)
    for stage in gl.static_range(STAGES):
        hopper.mbarrier.init(k_full.index(stage), count=1)
        hopper.mbarrier.init(v_full.index(stage), count=1)
        hopper.mbarrier.init(k_empty.index(stage), count=GROUPS)
        hopper.mbarrier.init(v_empty.index(stage), count=GROUPS)
    return Buffers(q_tile, k_tiles, v_tiles, q_full, q_empty, k_full, k_empty, v_full, v_empty)


@gluon.jit
def hopper_attention_kernel(q, k, v, o, walk, sizes, BUILD: gl.constexpr):
    """O = softmax(Q K^T) V as `attention_kernel`, for tiles of 128 queries."""
    first = walk.begins + gl.program_id(0)
    begin, end = gl.load(first), gl.load(first + 1)
    buffers = _buffers(q, k, v, 2, BUILD.STAGES)
    CAUSAL: gl.constexpr = BUILD.CAUSAL
    BARRIER: gl.constexpr = BUILD.BARRIER
    gl.warp_specialize(
        [
            (_multiply, (o, walk, begin, end, sizes, buffers, gl.constexpr(0), CAUSAL, BARRIER)),
            (_multiply, (o, walk, begin, end, sizes, buffers, gl.constexpr(1), CAUSAL, BARRIER)),
            (_load_tiles, (q, k, v, walk, begin, end, sizes, buffers, BARRIER)),
        ],
        [4, 1],
        [240, 24],
    )
