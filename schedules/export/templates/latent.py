"""O = softmax(Q KV^T) V, V the first columns of KV: the kernel, operands, the launch, the library's, the check."""

import math
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from attention import attention_calls
from dealing import parts_of
from kernels import _k_step, _matrices, _tick, _wait
from launch import Waves, described, has_copy_engine, one_in_each, power_of_two, random_values, whole_lines


class LatentSizes(NamedTuple):
    """``rows``: queries times ``heads``; ``latent`` columns are values too, ``rope`` are not; ``scale`` has log2(e)."""

    batch: int
    rows: int
    keys: int
    heads: int
    latent: int
    rope: int
    scale: float


class LatentBuild(NamedTuple):
    """The tile, and powers of two that hold the columns that are values too (L), and the others (R)."""

    BM: int
    BN: int
    L: int
    R: int
    CAUSAL: bool
    TMA: bool
    BARRIER: bool = False


@triton.jit
def latent_kernel(q, q_turned, kv, kv_turned, o, walk, sizes, BUILD: tl.constexpr):
    """One load of a tile of latents, used in both products; online softmax.

    A tile row is a tile of stacked queries, the heads of a query side by side; a tile column a sequence.
    """
    BM: tl.constexpr = BUILD.BM
    BN: tl.constexpr = BUILD.BN
    L: tl.constexpr = BUILD.L
    R: tl.constexpr = BUILD.R
    TMA: tl.constexpr = BUILD.TMA
    batch, rows, keys, heads = sizes.batch, sizes.rows, sizes.keys, sizes.heads
    latent, rope, scale = sizes.latent, sizes.rope, sizes.scale
    width = latent + rope
    q = _matrices(q, batch, rows, latent, width, BM, L, TMA)
    q_turned = _matrices(q_turned, batch, rows, rope, width, BM, R, TMA)
    kv = _matrices(kv, batch, keys, latent, width, BN, L, TMA)
    kv_turned = _matrices(kv_turned, batch, keys, rope, width, BN, R, TMA)
    o = _matrices(o, batch, rows, latent, latent, BM, L, TMA)
    rn, first = tl.arange(0, BN), walk.begins + tl.program_id(0)
    for at in range(tl.load(first), tl.load(first + 1)):
        entry = walk.tiles + 6 * at
        top, sequence = tl.load(entry) * BM, tl.load(entry + 1)
        start, direction, seen = tl.load(entry + 2), tl.load(entry + 3), tl.load(entry + 4)
        if BUILD.BARRIER:
            _wait(walk.finished, tl.load(entry + 5))
        wide, turned = q.load([sequence, top, 0]).reshape(BM, L), q_turned.load([sequence, top, 0]).reshape(BM, R)
        last = keys - rows // heads + (top + tl.arange(0, BM)) // heads
        most = tl.full((BM,), float("-inf"), dtype=tl.float32)
        total = tl.zeros((BM,), dtype=tl.float32)
        acc = tl.zeros((BM, L), dtype=tl.float32)
        for turn in range(seen):
            key = _k_step(0, seen, start, direction, turn) * BN
            latents = kv.load([sequence, key, 0]).reshape(BN, L)
            scores = tl.dot(wide, latents.T)
            scores = tl.dot(turned, kv_turned.load([sequence, key, 0]).reshape(BN, R).T, scores) * scale
            visible = (key + rn < keys)[None, :]
            if BUILD.CAUSAL:
                visible = visible & (last[:, None] >= (key + rn)[None, :])
            scores = tl.where(visible, scores, -1.0e6)  # finite: a tile that a row does not see must not make it 0/0
            new_most = tl.maximum(most, tl.max(scores, 1))
            weights = tl.exp2(scores - new_most[:, None])
            shrink = tl.exp2(most - new_most)
            total = total * shrink + tl.sum(weights, 1)
            acc = tl.dot(weights.to(latents.dtype), latents, acc * shrink[:, None])
            most = new_most
        o.store([sequence, top, 0], (acc / total[:, None]).to(o.dtype).reshape(1, BM, L))
        if BUILD.BARRIER:
            _tick(walk.finished, tl.load(walk.begins + tl.num_programs(0)))


class LatentProblem:
    """O = softmax(Q KV^T) V, all heads of a sequence over one KV; scores are scaled by the root of Q's columns."""

    def __init__(self, shape, tile, build, dtype, out_dtype):
        batch, self.heads, self.queries = shape["batch"], shape["heads"], shape["queries"]
        self.keys, self.latent, self.rope = shape["keys"], shape["latent"], shape["rope"]
        self.causal, self.tile, self.build = shape["causal"], tile, build
        self.total, width = self.queries * self.heads, self.latent + self.rope
        self.q = random_values(batch, self.total, width, dtype=dtype)
        self.kv = random_values(batch, self.keys, width, dtype=dtype)
        self.operands = {"Q": self.q, "KV": self.kv}
        self.out = whole_lines(batch * self.total, self.latent, dtype=out_dtype)
        self.rows = one_in_each(self.total)

    def launch(self, table, programs, how):
        """The table's kernel."""
        bm, bn = self.tile[:2]
        wide, turned = power_of_two(self.latent), power_of_two(self.rope)
        build = LatentBuild(bm, bn, wide, turned, self.causal, has_copy_engine())
        out = self.out.unflatten(0, (len(self.q), self.total))

        def operands(q, kv, out):
            return [
                *(described(x, 1, bm, side) for x, side in zip(self._columns(q), (wide, turned), strict=True)),
                *(described(x, 1, bn, side) for x, side in zip(self._columns(kv), (wide, turned), strict=True)),
                described(out, 1, bm, wide),
            ]

        scale = math.log2(math.e) / (self.latent + self.rope) ** 0.5
        sizes = LatentSizes(len(self.q), self.total, self.keys, self.heads, self.latent, self.rope, scale)
        waves = Waves((self.q, self.kv, out), programs, how, self.build)
        (slots,) = parts_of(table, programs)
        waves.add(latent_kernel, slots, operands, [sizes], build)
        return waves

    def _columns(self, x):
        """The columns that are values too, and the others."""
        return x[..., : self.latent], x[..., self.latent :]

    def libraries(self):
        """PyTorch's own attention, which takes keys and values as matrices of their own."""
        q = self.q.view(len(self.q), self.queries, self.heads, -1).transpose(1, 2)
        kv = self.kv[:, None]
        return attention_calls(q, kv, kv[..., : self.latent], self.causal)

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
