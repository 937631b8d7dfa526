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
from attention import AttentionLaunch, AttentionProblem
from dealing import in_runs, parts_of
from kernels import AttentionBuild, _all_there, _k_step, _matrices
from launch import Waves, described, has_copy_engine, power_of_two

MOST_AT_ONCE = 8  # pieces that are added up together: their sums fill the registers


class DecodeSizes(NamedTuple):
    """``copies`` of K and V, each of ``rows`` queries of all heads that share it; ``scale`` holds log2(e) too."""

    copies: int
    rows: int
    queries: int
    keys: int
    head_dim: int
    value_dim: int
    scale: float


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
    AT_ONCE: tl.constexpr = BUILD.AT_ONCE
    copies, rows, queries, keys = sizes.copies, sizes.rows, sizes.queries, sizes.keys
    head_dim, value_dim, scale = sizes.head_dim, sizes.value_dim, sizes.scale
    q = _matrices(q, copies, rows, head_dim, head_dim, BM, D, TMA)
    k = _matrices(k, copies, keys, head_dim, head_dim, BN, D, TMA)
    v = _matrices(v, copies, keys, value_dim, value_dim, BN, DV, TMA)
    o = _matrices(o, copies, rows, value_dim, value_dim, BM, DV, TMA)
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
        mine_at = number.to(tl.int64) + (at - number)
        mark = walk.partial + mine_at * (BM * (DV + 2)) + rm * (DV + 2)
        tl.store(mark, most)
        tl.store(mark + 1, total)
        tl.store(mark[:, None] + 2 + rv[None, :], acc)
        if _all_there(walk.arrived + number, of):
            most = tl.full((BM,), float("-inf"), dtype=tl.float32)
            for piece in range(0, of, AT_ONCE):
                which = piece + tl.arange(0, AT_ONCE)
                marks = walk.partial + (number + which).to(tl.int64)[:, None] * (BM * (DV + 2)) + rm[None, :] * (DV + 2)
                tops = tl.load(marks, mask=(which < of)[:, None] & (rm < rows)[None, :], other=float("-inf"))
                most = tl.maximum(most, tl.max(tops, 0))
            most = tl.where(rm < rows, most, 0.0)
            total = tl.zeros((BM,), dtype=tl.float32)
            acc = tl.zeros((BM, DV), dtype=tl.float32)
            for piece in tl.range(0, of, AT_ONCE, loop_unroll_factor=2):
                which = piece + tl.arange(0, AT_ONCE)
                marks = walk.partial + (number + which).to(tl.int64)[:, None] * (BM * (DV + 2)) + rm[None, :] * (DV + 2)
                there = (which < of)[:, None] & (rm < rows)[None, :]
                weights = tl.exp2(tl.load(marks, mask=there, other=float("-inf")) - most[None, :])
                total += tl.sum(weights * tl.load(marks + 1, mask=there, other=0.0), 0)
                sums = tl.load(marks[:, :, None] + 2 + rv[None, None, :], mask=there[:, :, None], other=0.0)
                acc += tl.sum(weights[:, :, None] * sums, 0)
            o.store([copy, 0, 0], (acc / total[:, None]).to(o.dtype).reshape(1, BM, DV))


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

        def operands(q, k, v, out):
            q = q.unflatten(1, (self.kv_heads, self.group)).flatten(2, 3).flatten(0, 1)
            k, v, out = k.flatten(0, 1), v.flatten(0, 1), out.unflatten(0, (copies, rows))
            return [described(q, 1, bm, d), described(k, 1, bn, d), described(v, 1, bn, dv), described(out, 1, bm, dv)]

        pieces = in_runs(slots, programs, 1)
        at_once = max(2, min(MOST_AT_ONCE, 1 << (len(pieces[0]) // copies).bit_length() - 1))  # of those of a head
        build = AttentionBuild(bm, bn, d, dv, self.causal, has_copy_engine(), AT_ONCE=at_once)
        sizes = DecodeSizes(copies, rows, self.queries, self.keys, self.dim, self.value_dim, self.scale)
        waves = Waves(tensors, programs, how, self.build, warps=4)
        waves.add_pieces(decode_kernel, pieces, operands, bm * (dv + 2), [sizes], build)
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
