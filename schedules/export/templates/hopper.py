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
def _load_tiles(q, k, v, walk, begin, end, sizes, buffers, BARRIER: gl.constexpr):
    """The warp that loads: each tile of Q, then the tiles of K and V that it sees, as buffers become free."""
    q_tile, k_tiles, v_tiles, q_full, q_empty, k_full, k_empty, v_full, v_empty = buffers
    queries, keys, group = sizes.queries, sizes.keys, sizes.group
    STAGES: gl.constexpr = k_tiles.shape[0]
    BN: gl.constexpr = k_tiles.shape[1]
    HALF: gl.constexpr = q_tile.shape[1]
    steps = 0
    for at in range(begin, end):
        entry = walk.tiles + 6 * at
        tile, head = gl.load(entry), gl.load(entry + 1)
        start, direction, seen = gl.load(entry + 2), gl.load(entry + 3), gl.load(entry + 4)
        if BARRIER:
            _wait(walk.finished, gl.load(entry + 5))
        row = head * queries + tile * (2 * HALF)
        for half in gl.static_range(2):
            hopper.mbarrier.wait(q_empty.index(half), ((at - begin) & 1) ^ 1)
            hopper.mbarrier.expect(q_full.index(half), HALF * q_tile.shape[2] * 2)
            hopper.tma.async_copy_global_to_shared(q, [row + half * HALF, 0], q_full.index(half), q_tile.index(half))
        for step in range(seen):
            key = (head // group) * keys + _k_step(0, seen, start, direction, step) * BN
            stage, phase = steps % STAGES, (steps // STAGES & 1) ^ 1
            hopper.mbarrier.wait(k_empty.index(stage), phase)
            hopper.mbarrier.expect(k_full.index(stage), BN * k_tiles.shape[2] * 2)
            hopper.tma.async_copy_global_to_shared(k, [key, 0], k_full.index(stage), k_tiles.index(stage))
            hopper.mbarrier.wait(v_empty.index(stage), phase)
            hopper.mbarrier.expect(v_full.index(stage), BN * v_tiles.shape[2] * 2)
            hopper.tma.async_copy_global_to_shared(v, [key, 0], v_full.index(stage), v_tiles.index(stage))
            steps += 1


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


@gluon.jit
def _multiply(o, walk, begin, end, sizes, buffers, GROUP: gl.constexpr, CAUSAL: gl.constexpr, BARRIER: gl.constexpr):
    """A warp group: scores of its half of a tile of Q, weights, and their sums of values."""
    q_tile, k_tiles, v_tiles, q_full, q_empty, k_full, k_empty, v_full, v_empty = buffers
    queries, keys, value_dim, pitch, scale = sizes.queries, sizes.keys, sizes.value_dim, sizes.pitch, sizes.scale
    STAGES: gl.constexpr = k_tiles.shape[0]
    BN: gl.constexpr = k_tiles.shape[1]
    HALF: gl.constexpr = q_tile.shape[1]
    DV: gl.constexpr = v_tiles.shape[2]
    SCORES: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BN, 16])
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, DV, 16])
    WEIGHTS: gl.constexpr = gl.DotOperandLayout(0, SUMS, 2)
    mine = q_tile.index(GROUP)
    nothing = gl.full([HALF, BN], 0.0, gl.float32, SCORES)
    steps = 0
    for at in range(begin, end):
        entry = walk.tiles + 6 * at
        tile, head = gl.load(entry), gl.load(entry + 1)
        start, direction, seen = gl.load(entry + 2), gl.load(entry + 3), gl.load(entry + 4)
        top = tile * (2 * HALF) + GROUP * HALF
        last = top + keys - queries + gl.arange(0, HALF, gl.SliceLayout(1, SCORES))
        whole = keys // BN
        if CAUSAL:
            whole = gl.minimum(whole, (top + keys - queries + 1) // BN)
        most = gl.full([HALF], float("-inf"), gl.float32, gl.SliceLayout(1, SCORES))
        total = gl.full([HALF], 0.0, gl.float32, gl.SliceLayout(1, SCORES))
        acc = gl.full([HALF, DV], 0.0, gl.float32, SUMS)
        hopper.mbarrier.wait(q_full.index(GROUP), (at - begin) & 1)
        stage, phase = steps % STAGES, steps // STAGES & 1
        hopper.mbarrier.wait(k_full.index(stage), phase)
        turned = k_tiles.index(stage).permute((1, 0))
        coming = hopper.warpgroup_mma(mine, turned, nothing, use_acc=False, is_async=True)
        scores = hopper.warpgroup_mma_wait(0, deps=[coming])
        hopper.mbarrier.arrive(k_empty.index(stage))
        step = _k_step(0, seen, start, direction, 0)
        weights, most, shrink, total = _weigh(scores, most, total, step, whole, last, keys, scale, CAUSAL)
        left = gl.convert_layout(weights.to(q_tile.dtype), WEIGHTS)
        for turn in range(1, seen):
            before, phase_before = stage, phase
            stage, phase = (steps + turn) % STAGES, (steps + turn) // STAGES & 1
            hopper.mbarrier.wait(k_full.index(stage), phase)
            turned = k_tiles.index(stage).permute((1, 0))
            coming = hopper.warpgroup_mma(mine, turned, nothing, use_acc=False, is_async=True)
            hopper.mbarrier.wait(v_full.index(before), phase_before)
            summing = hopper.warpgroup_mma(left, v_tiles.index(before), acc, is_async=True)
            scores = hopper.warpgroup_mma_wait(1, deps=[coming])
            hopper.mbarrier.arrive(k_empty.index(stage))
            step = _k_step(0, seen, start, direction, turn)
            weights, most, shrink, total = _weigh(scores, most, total, step, whole, last, keys, scale, CAUSAL)
            acc = hopper.warpgroup_mma_wait(0, deps=[summing])
            hopper.mbarrier.arrive(v_empty.index(before))
            acc = acc * gl.convert_layout(shrink, gl.SliceLayout(1, SUMS))[:, None]
            left = gl.convert_layout(weights.to(q_tile.dtype), WEIGHTS)
        hopper.mbarrier.arrive(q_empty.index(GROUP))
        hopper.mbarrier.wait(v_full.index(stage), phase)
        summing = hopper.warpgroup_mma(left, v_tiles.index(stage), acc, is_async=True)
        acc = hopper.warpgroup_mma_wait(0, deps=[summing])
        hopper.mbarrier.arrive(v_empty.index(stage))
        steps += seen
        acc = acc / gl.convert_layout(total, gl.SliceLayout(1, SUMS))[:, None]
        rm = top + gl.arange(0, HALF, gl.SliceLayout(1, SUMS))
        rv = gl.arange(0, DV, gl.SliceLayout(0, SUMS))
        out = o + (head * queries + rm).to(gl.int64)[:, None] * pitch + rv[None, :]
        gl.store(out, acc.to(o.dtype.element_ty), mask=(rm < queries)[:, None] & (rv < value_dim)[None, :])
        if BARRIER and GROUP == 0:
            _tick(walk.finished, gl.load(walk.begins + gl.num_programs(0)))


@gluon.jit
def hopper_attention_kernel(q, k, v, o, walk, sizes, BUILD: gl.constexpr):
    """O = softmax(Q K^T) V as `attention_kernel`, for tiles of 128 queries."""
    STAGES: gl.constexpr = BUILD.STAGES
    first = walk.begins + gl.program_id(0)
    begin, end = gl.load(first), gl.load(first + 1)
    BN: gl.constexpr = k.block_type.shape[0]
    q_tile = gl.allocate_shared_memory(q.dtype, [2, q.block_type.shape[0], q.block_type.shape[1]], q.layout)
    k_tiles = gl.allocate_shared_memory(k.dtype, [STAGES, BN, k.block_type.shape[1]], k.layout)
    v_tiles = gl.allocate_shared_memory(v.dtype, [STAGES, BN, v.block_type.shape[1]], v.layout)
    q_full = gl.allocate_shared_memory(gl.int64, [2, 1], hopper.mbarrier.MBarrierLayout())
    q_empty = gl.allocate_shared_memory(gl.int64, [2, 1], hopper.mbarrier.MBarrierLayout())
    k_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], hopper.mbarrier.MBarrierLayout())
    k_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], hopper.mbarrier.MBarrierLayout())
    v_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], hopper.mbarrier.MBarrierLayout())
    v_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], hopper.mbarrier.MBarrierLayout())
    for half in gl.static_range(2):
        hopper.mbarrier.init(q_full.index(half), count=1)
        hopper.mbarrier.init(q_empty.index(half), count=1)
    for stage in gl.static_range(STAGES):
        hopper.mbarrier.init(k_full.index(stage), count=1)
        hopper.mbarrier.init(v_full.index(stage), count=1)
        hopper.mbarrier.init(k_empty.index(stage), count=2)
        hopper.mbarrier.init(v_empty.index(stage), count=2)
    CAUSAL: gl.constexpr = BUILD.CAUSAL
    BARRIER: gl.constexpr = BUILD.BARRIER
    buffers = Buffers(q_tile, k_tiles, v_tiles, q_full, q_empty, k_full, k_empty, v_full, v_empty)
    gl.warp_specialize(
        [
            (_multiply, (o, walk, begin, end, sizes, buffers, gl.constexpr(0), CAUSAL, BARRIER)),
            (_multiply, (o, walk, begin, end, sizes, buffers, gl.constexpr(1), CAUSAL, BARRIER)),
            (_load_tiles, (q, k, v, walk, begin, end, sizes, buffers, BARRIER)),
        ],
        [4, 1],
        [240, 24],
    )
