"""O = softmax(Q K^T) V of few queries and many keys: kernel, launch, and the library's own. The rest is `attention`'s.

The queries of all heads that share K and V are rows of one tile, so that keys are read once. The tiles of keys of all
heads, in the table's order, are dealt evenly to all blocks; whoever brings the last piece of a head adds them up.
"""

import functools
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
import triton
import triton.language as tl
from attention import AttentionLaunch, AttentionProblem, _rows
from dealing import in_runs, parts_of, with_first
from hopper_decode import HopperDecodeBuild, HopperDecodeSizes, hopper_decode_kernel
from kernels import AttentionBuild, _all_there, _k_step, _matrices
from launch import Waves, described, has_copy_engine, on_hopper, power_of_two

MOST_AT_ONCE = 32  # pieces that are added up together
MOST_SUMS = 128 * 128  # of them: they fill the registers
SHARED = 216 * 1024  # that hold Q and the stages, beside what a warp group exchanges


class DecodeSizes(NamedTuple):
    """``copies`` of K and V, each of ``rows`` queries of all heads that share it; rows of O are ``pitch`` values apart.

    ``scale`` holds log2(e) too.
    """

    copies: int
    rows: int
    queries: int
    keys: int
    head_dim: int
    value_dim: int
    pitch: int
    scale: float


@triton.jit
def _put_sum(o, sums, of, copy, sizes, ROWS: tl.constexpr, DV: tl.constexpr, AT_ONCE: tl.constexpr):
    """Store what all pieces of a head make together."""
    row, column = tl.arange(0, ROWS), tl.arange(0, DV)
    most = tl.full((ROWS,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((ROWS,), dtype=tl.float32)
    acc = tl.zeros((ROWS, DV), dtype=tl.float32)
    for piece in range(0, of, AT_ONCE):
        which = piece + tl.arange(0, AT_ONCE)
        there = (which < of)[:, None] & (row < sizes.rows)[None, :]
        marks = sums + which[:, None] * (ROWS * (DV + 4)) + row[None, :] * (DV + 4)
        tops = tl.load(marks, mask=there, other=float("-inf"))
        totals = tl.load(marks + 1, mask=there, other=0.0)
        found = tl.load(marks[:, :, None] + 4 + column[None, None, :], mask=there[:, :, None], other=0.0)
        new_most = tl.where(row < sizes.rows, tl.maximum(most, tl.max(tops, 0)), 0.0)
        shrink, weights = tl.exp2(most - new_most), tl.exp2(tops - new_most[None, :])
        total = total * shrink + tl.sum(weights * totals, 0)
        acc = acc * shrink[:, None] + tl.sum(weights[:, :, None] * found, 0)
        most = new_most
    out = o + (copy * sizes.rows + row).to(tl.int64)[:, None] * sizes.pitch + column[None, :]
    inside = (row < sizes.rows)[:, None] & (column < sizes.value_dim)[None, :]
    tl.store(out, (acc / total[:, None]).to(o.dtype.element_ty), mask=inside)


@triton.jit
def decode_kernel(q, k, v, o, walk, sizes, BUILD: tl.constexpr):
    """Pieces of heads (`in_runs`).

    What a piece found is DV sums, the greatest score and the sum of weights of each row, in fp32. Causal: the last
    query sees all keys.
    """
    BM: tl.constexpr = BUILD.BM
    BN: tl.constexpr = BUILD.BN
    D: tl.constexpr = BUILD.D
    DV: tl.constexpr = BUILD.DV
    TMA: tl.constexpr = BUILD.TMA
    CAUSAL: tl.constexpr = BUILD.CAUSAL
    ROWS: tl.constexpr = BUILD.ROWS
    AT_ONCE: tl.constexpr = BUILD.AT_ONCE
    copies, rows, queries, keys = sizes.copies, sizes.rows, sizes.queries, sizes.keys
    head_dim, value_dim, scale = sizes.head_dim, sizes.value_dim, sizes.scale
    q = _matrices(q, copies, rows, head_dim, head_dim, BM, D, TMA)
    k = _matrices(k, copies, keys, head_dim, head_dim, BN, D, TMA)
    v = _matrices(v, copies, keys, value_dim, value_dim, BN, DV, TMA)
    rm, rn, rv = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, DV)
    last = keys - queries + rm % queries
    first = walk.piece_begins + tl.program_id(0)
    for at in range(tl.load(first), tl.load(first + 1)):
        entry = walk.pieces + 9 * at
        copy, start, direction = tl.load(entry + 1), tl.load(entry + 2), tl.load(entry + 3)
        turn, turns, number, of = tl.load(entry + 4), tl.load(entry + 5), tl.load(entry + 6), tl.load(entry + 7)
        seen = (keys + BN - 1) // BN
        mine = q.load([copy, 0, 0]).reshape(BM, D)
        most = tl.full((BM,), float("-inf"), dtype=tl.float32)
        total = tl.zeros((BM,), dtype=tl.float32)
        acc = tl.zeros((BM, DV), dtype=tl.float32)
        for step in range(turn, turn + turns):
            key = _k_step(0, seen, start, direction, step) * BN
            scores = tl.dot(mine, k.load([copy, key, 0]).reshape(BN, D).T)
            visible = (key + rn < keys)[None, :]
            if CAUSAL:
                visible = visible & (last[:, None] >= (key + rn)[None, :])
            scores = tl.where(visible, scores * scale, -1.0e6)  # finite: a piece that a row does not see is no 0/0
            new_most = tl.maximum(most, tl.max(scores, 1))
            weights = tl.exp2(scores - new_most[:, None])
            shrink = tl.exp2(most - new_most)
            total = total * shrink + tl.sum(weights, 1)
            values = v.load([copy, key, 0]).reshape(BN, DV)
            acc = tl.dot(weights.to(values.dtype), values, acc * shrink[:, None])
            most = new_most
        sums = walk.partial + number.to(tl.int64) * (ROWS * (DV + 4))
        mark = sums + (at - number) * (ROWS * (DV + 4)) + rm * (DV + 4)
        tl.store(mark, most, mask=rm < rows)
        tl.store(mark + 1, total, mask=rm < rows)
        tl.store(mark[:, None] + 4 + rv[None, :], acc, mask=(rm < rows)[:, None])
        if _all_there(walk.arrived + number, of):
            _put_sum(o, sums, of, copy, sizes, ROWS, DV, AT_ONCE)


class DecodeLaunch(AttentionLaunch):
    """O = softmax(Q K^T) V per head, heads in groups that share K and V, so few queries that a group is one tile."""

    def waves(self, table, programs, how, tensors):
        """The table's launch on Q, K, V (batch, heads, rows, columns) and O with all heads' rows one below the other.

        The table's columns are groups of heads; each is taken where its first tile stands.
        """
        bn, rows, copies = self.tile[1], self.group * self.queries, self.batch * self.kv_heads
        (slots,) = parts_of(table, programs)
        groups = slots[:, 2].long()
        first = torch.full((copies,), len(slots)).scatter_reduce(0, groups, torch.arange(len(slots)), "amin")
        slots = slots[first.sort().values].clone()
        slots[:, 1] = 0
        slots[:, 4] = -(-self.keys // bn)
        slots[:, 5] %= slots[:, 4]
        d, dv, bm = power_of_two(self.dim), power_of_two(self.value_dim), power_of_two(rows)

        pieces, pitch = in_runs(slots, programs, 1), tensors[-1].stride(0)
        height = power_of_two(rows, 1)
        most = (MOST_SUMS if height * dv <= MOST_SUMS // 16 else MOST_SUMS // 2) // (height * dv)
        at_once = min(MOST_AT_ONCE, power_of_two(-(-len(pieces[0]) // copies), 2), max(1, most))
        waves = Waves(tensors, programs, how, self.build, warps=4)
        if on_hopper() and bm <= 64 <= min(bn, dv) and bn * max(d, dv) <= 128**2:
            waves.stages = min(8, (SHARED - 2 * bm * (d + bn)) // (2 * bn * (d + dv)))
            build = HopperDecodeBuild(waves.stages, height, at_once, self.causal)
            sizes = HopperDecodeSizes(rows, self.queries, self.keys, self.value_dim, pitch, self.scale)

            def placed(q, k, v, out):
                q = q.unflatten(1, (self.kv_heads, self.group)).flatten(2, 3)
                return [_rows(q, bm, d), _rows(k, bn, d), _rows(v, bn, dv), out]

            pieces = with_first(*pieces)
            waves.add_pieces(hopper_decode_kernel, pieces, placed, height * (dv + 4), [sizes], build)
            return waves

        def operands(q, k, v, out):
            q = q.unflatten(1, (self.kv_heads, self.group)).flatten(2, 3).flatten(0, 1)
            k, v = k.flatten(0, 1), v.flatten(0, 1)
            return [described(q, 1, bm, d), described(k, 1, bn, d), described(v, 1, bn, dv), out]

        build = AttentionBuild(bm, bn, d, dv, self.causal, has_copy_engine(), ROWS=height, AT_ONCE=at_once)
        sizes = DecodeSizes(copies, rows, self.queries, self.keys, self.dim, self.value_dim, pitch, self.scale)
        waves.add_pieces(decode_kernel, pieces, operands, height * (dv + 4), [sizes], build)
        return waves


class DecodeProblem(DecodeLaunch, AttentionProblem):
    """Such attention of random operands, beside the library's."""

    def libraries(self):
        """PyTorch's own kernels, and FlashDecoding on the rows of a group as queries of one head."""
        calls = super().libraries()
        if self.queries > 1 and self.causal:
            return calls
        from torch.nn.attention import SDPBackend, sdpa_kernel

        q = self.q.unflatten(1, (self.kv_heads, self.group)).flatten(2, 3)

        def grouped(backend):
            with sdpa_kernel(backend):
                F.scaled_dot_product_attention(q, self.k, self.v)

        more = {
            f"torch, {name}, groups as queries": functools.partial(grouped, getattr(SDPBackend, name.upper()))
            for name in ("flash_attention", "cudnn_attention")
        }
        return calls | more
