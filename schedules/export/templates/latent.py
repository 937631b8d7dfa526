"""O = softmax(Q KV^T) V, V the first columns of KV: the kernel, operands, the launch, the library's, the check."""

import math

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
import triton
import triton.language as tl
from kernels import _k_step, _pitch, _put, _tick, _tile, _wait
from launch import Waves, is_ragged, line_of, one_in_each, power_of_two, random_values, whole_lines


@triton.jit
def latent_kernel(
    q, kv, o, table, slots, counter, rows, keys, heads, latent, rope, scale,
    L: tl.constexpr, R: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, RAGGED: tl.constexpr,
    CAUSAL: tl.constexpr, BARRIER: tl.constexpr,
):  # fmt: skip
    """One load of a tile of latents, used in both products; online softmax, ``scale`` holds log2(e) too.

    A tile row is a tile of stacked queries, the heads of a query side by side; a tile column a sequence. L and R are
    powers of two that hold the columns that are values too, and the others.
    """
    programs = tl.num_programs(0)
    for slot in range(tl.program_id(0), slots, programs):
        entry = table + 9 * slot
        tile, sequence = tl.load(entry + 1), tl.load(entry + 2).to(tl.int64)
        seen, start, direction = tl.load(entry + 4), tl.load(entry + 5), tl.load(entry + 6)
        if BARRIER:
            _wait(counter, slot // programs * programs)
        rm, rn, rl, rr = tile * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, L), tl.arange(0, R)
        w, wo = _pitch(q, latent + rope), _pitch(o, latent)
        there = (rm >= 0)[:, None]  # an empty slot has tile -1 and sees nothing
        inside = there & (rm < rows)[:, None]
        at_q = q + (sequence * rows + rm.to(tl.int64))[:, None] * w
        wide = tl.load(at_q + rl[None, :], mask=inside & (rl < latent)[None, :], other=0.0)
        turned = tl.load(at_q + latent + rr[None, :], mask=inside & (rr < rope)[None, :], other=0.0)
        at_kv = kv + (sequence * keys + rn.to(tl.int64))[:, None] * w
        most = tl.full((BM,), float("-inf"), dtype=tl.float32)
        total = tl.zeros((BM,), dtype=tl.float32)
        acc = tl.zeros((BM, L), dtype=tl.float32)
        for step in range(seen):
            at = _k_step(0, seen, start, direction, step) * BN
            here = at_kv + at.to(tl.int64) * w
            latents = _tile(here + rl[None, :], at + rn, keys, rl, latent, RAGGED)
            places = _tile(here + latent + rr[None, :], at + rn, keys, rr, rope, RAGGED)
            scores = tl.dot(wide, tl.trans(latents))
            scores = tl.dot(turned, tl.trans(places), scores) * scale
            if CAUSAL:  # a finite penalty: a tile that a row does not see at all must not make it 0/0
                visible = (keys - rows // heads + rm // heads)[:, None] >= (at + rn)[None, :]
                scores = tl.where(visible, scores, -1.0e6)
            if RAGGED:  # the same for keys beyond the last
                scores = tl.where((at + rn < keys)[None, :], scores, -1.0e6)
            new_most = tl.maximum(most, tl.max(scores, 1))
            weights = tl.exp2(scores - new_most[:, None])
            shrink = tl.exp2(most - new_most)
            total = total * shrink + tl.sum(weights, 1)
            acc = tl.dot(weights.to(latents.dtype), latents, acc * shrink[:, None])
            most = new_most
        out = o + (sequence * rows + rm.to(tl.int64))[:, None] * wo + rl[None, :]
        _put(out, acc / total[:, None], rm, rows, rl, latent, RAGGED)
        if BARRIER:
            _tick(counter)


class LatentProblem:
    """O = softmax(Q KV^T) V, all heads of a sequence over one KV; scores are scaled by the root of Q's columns."""

    def __init__(self, shape, tile, stages, dtype, out_dtype):
        batch, self.heads, self.queries = shape["batch"], shape["heads"], shape["queries"]
        self.keys, self.latent, self.rope = shape["keys"], shape["latent"], shape["rope"]
        self.causal, self.tile, self.stages = shape["causal"], tile, stages
        self.total, width = self.queries * self.heads, self.latent + self.rope
        self.q = random_values(batch, self.total, width, dtype=dtype)
        self.kv = random_values(batch, self.keys, width, dtype=dtype)
        self.operands = {"Q": self.q, "KV": self.kv}
        self.out = whole_lines(batch * self.total, self.latent, dtype=out_dtype)
        self.rows = one_in_each(self.total)

    def launch(self, table, programs, barrier):
        """The table's kernel."""
        bm, bn = self.tile[:2]
        wide, turned = power_of_two(self.latent), power_of_two(self.rope)
        meta = {"L": wide, "R": turned, "BM": bm, "BN": bn, "CAUSAL": self.causal, "BARRIER": barrier}
        exact = (self.latent, self.rope) == (wide, turned)
        line = min(line_of(self.q.dtype), line_of(self.out.dtype))
        edges = [(self.total, bm), (self.keys, bn)]
        meta["RAGGED"] = not exact or is_ragged(edges, [(self.latent, wide)], line)
        args = [self.q, self.kv, self.out, "TABLE", self.total, self.keys, self.heads]
        args += [self.latent, self.rope, math.log2(math.e) / (self.latent + self.rope) ** 0.5]
        return Waves(latent_kernel, args, meta, table, programs, self.stages)

    def library(self):
        """PyTorch's own attention, which takes keys and values as matrices of their own."""
        from torch.nn.attention.bias import causal_lower_right

        mask = causal_lower_right(self.queries, self.keys) if self.causal else None
        q = self.q.view(len(self.q), self.queries, self.heads, -1).transpose(1, 2)
        kv = self.kv[:, None]
        F.scaled_dot_product_attention(q, kv, kv[..., : self.latent], mask, enable_gqa=self.heads > 1)

    def poison(self):
        """No value of the result is left from before."""
        self.out.fill_(float("nan"))

    def sampled(self):
        """Some rows of each sequence."""
        return self.out.view(len(self.q), self.total, self.latent)[:, self.rows]

    def expected(self):
        """The same in float64."""
        last = self.keys - self.queries + self.rows // self.heads
        visible = torch.arange(self.keys, device="cuda")[None] <= last[:, None]
        results = []
        for q, kv in zip(self.q, self.kv, strict=True):
            scores = q[self.rows].double() @ kv.double().T / (self.latent + self.rope) ** 0.5
            if self.causal:
                scores = scores.masked_fill(~visible, -math.inf)
            results.append(scores.softmax(-1) @ kv[:, : self.latent].double())
        return torch.stack(results)
