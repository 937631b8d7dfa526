"""Triton kernels that walk a table: one GEMM, one feed-forward network, one attention, all in 16-bit types.

A table has one row a slot, nine numbers: product (-1: a slot that stays empty), tile row, tile column, first k step,
k steps, the k step to begin with, k direction (1 or -1), whether to add to the result, and whether this wave reads what
waves before it wrote. k goes round at its end. Program p takes slots p, p + P, p + 2 P ... of a launch of P programs.
So a launch of as many programs as slots runs one block a tile, and a launch of P resident programs is persistent.

``BARRIER`` keeps the waves of a persistent launch together: a block ticks a global counter once for each slot that it
has finished, and waits before its next until all P blocks of the wave before have ticked. With ``PHASES`` but no
``BARRIER`` it waits only where a wave depends on earlier ones. Tiles must divide the problem.
"""

import triton
import triton.language as tl


@triton.jit
def _tick(counter):
    """This block has finished a slot: all its warps, and what they wrote is visible to whoever sees the tick."""
    tl.debug_barrier()
    tl.atomic_add(counter, 1, sem="release", scope="gpu")


@triton.jit
def _wait(counter, ticks):
    """Until the counter has reached ``ticks``."""
    while tl.atomic_add(counter, 0, sem="acquire", scope="gpu") < ticks:
        pass
    tl.debug_barrier()


@triton.jit
def _k_step(first, steps, start, direction, step):
    """The k step of a block: from ``start`` on, round at either end."""
    at = start + direction * step
    at = tl.where(at >= first + steps, at - steps, at)
    return tl.where(at < first, at + steps, at)


@triton.jit
def gemm_kernel(
    a, b, c, table, slots, counter, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PHASES: tl.constexpr, BARRIER: tl.constexpr,
):  # fmt: skip
    """C = A B, all of k at once or in slabs that add to C."""
    programs = tl.num_programs(0)
    for slot in range(tl.program_id(0), slots, programs):
        entry = table + 9 * slot
        row, col = tl.load(entry + 1), tl.load(entry + 2)
        first, steps = tl.load(entry + 3), tl.load(entry + 4)
        start, direction = tl.load(entry + 5), tl.load(entry + 6)
        adds, depends = tl.load(entry + 7), tl.load(entry + 8)
        if BARRIER or depends == 1:
            _wait(counter, slot // programs * programs)
        rm, rn, rk = row * BM + tl.arange(0, BM), col * BN + tl.arange(0, BN), tl.arange(0, BK)
        pa = a + rm[:, None].to(tl.int64) * k + rk[None, :]
        pb = b + rk[:, None].to(tl.int64) * n + rn[None, :]
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for step in range(steps):
            at = (_k_step(first, steps, start, direction, step) * BK).to(tl.int64)
            acc = tl.dot(tl.load(pa + at), tl.load(pb + at * n), acc)
        out = c + rm[:, None].to(tl.int64) * n + rn[None, :]
        if PHASES:  # noqa: SIM102 - one is known when compiling, the other when running
            if adds == 1:
                acc += tl.load(out, cache_modifier=".cg").to(tl.float32)
        tl.store(out, acc.to(c.dtype.element_ty), mask=(rm >= 0)[:, None])  # an empty slot has row -1 and no steps
        if BARRIER or PHASES:
            _tick(counter)


@triton.jit
def ffn_kernel(
    x, w1, wu, h, w2, y, table, slots, counter, d_model, hidden, d_out,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GATED: tl.constexpr, BARRIER: tl.constexpr,
):  # fmt: skip
    """H = silu(X W1) or silu(X W1) * (X Wu), product 0; Y = H W2, or Y += H W2 over a part of H, product 1.

    Without ``BARRIER`` blocks still wait where a wave depends on earlier ones; the launch is persistent.
    """
    programs = tl.num_programs(0)
    for slot in range(tl.program_id(0), slots, programs):
        entry = table + 9 * slot
        product, row, col = tl.load(entry), tl.load(entry + 1), tl.load(entry + 2)
        first, steps = tl.load(entry + 3), tl.load(entry + 4)
        start, direction = tl.load(entry + 5), tl.load(entry + 6)
        adds, depends = tl.load(entry + 7), tl.load(entry + 8)
        if BARRIER or depends == 1:
            _wait(counter, slot // programs * programs)
        rm, rn, rk = row * BM + tl.arange(0, BM), col * BN + tl.arange(0, BN), tl.arange(0, BK)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        if product == 0:
            pa = x + rm[:, None].to(tl.int64) * d_model + rk[None, :]
            at_b = rk[:, None].to(tl.int64) * hidden + rn[None, :]
            if GATED:
                up = tl.zeros((BM, BN), dtype=tl.float32)
                for step in range(steps):
                    at = (_k_step(first, steps, start, direction, step) * BK).to(tl.int64)
                    rows_of_x = tl.load(pa + at)
                    acc = tl.dot(rows_of_x, tl.load(w1 + at_b + at * hidden), acc)
                    up = tl.dot(rows_of_x, tl.load(wu + at_b + at * hidden), up)
                acc = acc * tl.sigmoid(acc) * up
            else:
                for step in range(steps):
                    at = (_k_step(first, steps, start, direction, step) * BK).to(tl.int64)
                    acc = tl.dot(tl.load(pa + at), tl.load(w1 + at_b + at * hidden), acc)
                acc = acc * tl.sigmoid(acc)
            tl.store(h + rm[:, None].to(tl.int64) * hidden + rn[None, :], acc.to(h.dtype.element_ty))
        elif product == 1:
            pa = h + rm[:, None].to(tl.int64) * hidden + rk[None, :]
            pb = w2 + rk[:, None].to(tl.int64) * d_out + rn[None, :]
            for step in range(steps):
                at = (_k_step(first, steps, start, direction, step) * BK).to(tl.int64)
                acc = tl.dot(tl.load(pa + at), tl.load(pb + at * d_out), acc)
            out = y + rm[:, None].to(tl.int64) * d_out + rn[None, :]
            if adds == 1:
                acc += tl.load(out, cache_modifier=".cg").to(tl.float32)
            tl.store(out, acc.to(y.dtype.element_ty))
        _tick(counter)


@triton.jit
def attention_kernel(
    q, k, v, o, table, slots, counter, queries, keys, group, scale,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr, BARRIER: tl.constexpr,
):  # fmt: skip
    """O = softmax(Q K^T) V with online softmax; ``scale`` holds log2(e) too.

    A tile row is a Q tile, a tile column a head, batch by batch; k are the KV tiles that the Q tile sees. ``group``
    query heads share one KV head. Causal: the last query sees all keys.
    """
    programs = tl.num_programs(0)
    for slot in range(tl.program_id(0), slots, programs):
        entry = table + 9 * slot
        tile, head = tl.load(entry + 1), tl.load(entry + 2)
        seen, start, direction = tl.load(entry + 4), tl.load(entry + 5), tl.load(entry + 6)
        if BARRIER:
            _wait(counter, slot // programs * programs)
        rm, rn, rd = tile * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
        there = (rm >= 0)[:, None]  # an empty slot has Q tile -1 and sees nothing
        rows = (head.to(tl.int64) * queries + rm.to(tl.int64)) * D
        queries_of_tile = tl.load(q + rows[:, None] + rd[None, :], mask=there, other=0.0)
        first_key = (head // group).to(tl.int64) * keys * D
        pk = k + first_key + rn[None, :] * D + rd[:, None]
        pv = v + first_key + rn[:, None] * D + rd[None, :]
        most = tl.full((BM,), float("-inf"), dtype=tl.float32)
        total = tl.zeros((BM,), dtype=tl.float32)
        acc = tl.zeros((BM, D), dtype=tl.float32)
        for step in range(seen):
            at = _k_step(0, seen, start, direction, step)
            scores = tl.dot(queries_of_tile, tl.load(pk + at.to(tl.int64) * BN * D)) * scale
            if CAUSAL:  # a finite penalty: a tile that a row does not see at all must not make it 0/0
                visible = (keys - queries + rm)[:, None] >= (at * BN + rn)[None, :]
                scores = tl.where(visible, scores, -1.0e6)
            new_most = tl.maximum(most, tl.max(scores, 1))
            weights = tl.exp2(scores - new_most[:, None])
            shrink = tl.exp2(most - new_most)
            total = total * shrink + tl.sum(weights, 1)
            values = tl.load(pv + at.to(tl.int64) * BN * D)
            acc = tl.dot(weights.to(values.dtype), values, acc * shrink[:, None])
            most = new_most
        tl.store(o + rows[:, None] + rd[None, :], (acc / total[:, None]).to(o.dtype.element_ty), mask=there)
        if BARRIER:
            _tick(counter)


@triton.jit
def end_of_case(mark):
    """A launch that separates one case from the next in a profile."""
    tl.store(mark, 1)
