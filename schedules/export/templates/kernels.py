"""Triton kernels that walk a table: one GEMM, one feed-forward network, one attention, all in 16-bit types.

A table has one row a slot, nine numbers: product (-1: a slot that stays empty), tile row, tile column, first k step,
k steps, the k step to begin with, k direction (1 or -1), whether to add to the result, and whether this wave reads what
waves before it wrote. k goes round at its end. Program p takes slots p, p + P, p + 2 P ... of a launch of P programs.
So a launch of as many programs as slots runs one block a tile, and a launch of P resident programs is persistent.

``BARRIER`` keeps the waves of a persistent launch together: a block ticks a global counter once for each slot that it
has finished, and waits before its next until all P blocks of the wave before have ticked. With ``PHASES`` but no
``BARRIER`` it waits only where a wave depends on earlier ones.

Rows of every matrix take whole lines of 128 bytes, as in the prediction, with zeros after the last value: so rows are
aligned whatever their length, and only what hangs over the edge of a padded matrix has to be masked (``RAGGED``).
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
def _pitch(matrix, width):
    """Values from one row to the next: whole lines."""
    line: tl.constexpr = 1024 // matrix.dtype.element_ty.primitive_bitwidth
    return (width + line - 1) // line * line


@triton.jit
def _tile(pointers, rows, height, columns, width, RAGGED: tl.constexpr):
    """A tile of a matrix of height x width, padding included; zeros beyond its edges."""
    if RAGGED:
        tile = tl.load(pointers, mask=(rows < height)[:, None] & (columns < width)[None, :], other=0.0)
    else:
        tile = tl.load(pointers)
    return tile


@triton.jit
def _partial(pointers, rows, height, columns, width, RAGGED: tl.constexpr):
    """A tile of partial sums that another block may have written: from L2, past this SM's L1."""
    if RAGGED:
        inside = (rows < height)[:, None] & (columns < width)[None, :]
        tile = tl.load(pointers, mask=inside, other=0.0, cache_modifier=".cg")
    else:
        tile = tl.load(pointers, cache_modifier=".cg")
    return tile.to(tl.float32)


@triton.jit
def _put(pointers, tile, rows, height, columns, width, RAGGED: tl.constexpr):
    """Store a tile as far as the matrix goes; an empty slot, which has row -1, stores nothing."""
    inside = (rows >= 0)[:, None]
    if RAGGED:
        inside = inside & (rows < height)[:, None] & (columns < width)[None, :]
    tl.store(pointers, tile.to(pointers.dtype.element_ty), mask=inside)


@triton.jit
def gemm_kernel(
    a, b, c, table, slots, counter, places, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, RAGGED: tl.constexpr, GROUPED: tl.constexpr,
    PHASES: tl.constexpr, BARRIER: tl.constexpr,
):  # fmt: skip
    """C = A B, all of k at once or in slabs that add to C.

    ``GROUPED``: several products, their A and C one below the other. ``places`` has three numbers for each tile row:
    its first row, the end of its product's rows, and which product it is. Otherwise nothing is read from it.
    """
    programs = tl.num_programs(0)
    for slot in range(tl.program_id(0), slots, programs):
        entry = table + 9 * slot
        row, col = tl.load(entry + 1), tl.load(entry + 2)
        first, steps = tl.load(entry + 3), tl.load(entry + 4)
        start, direction = tl.load(entry + 5), tl.load(entry + 6)
        adds, depends = tl.load(entry + 7), tl.load(entry + 8)
        if BARRIER or depends == 1:
            _wait(counter, slot // programs * programs)
        wa, wb, wc = _pitch(a, k), _pitch(b, n), _pitch(c, n)
        rm, rn, rk = row * BM + tl.arange(0, BM), col * BN + tl.arange(0, BN), tl.arange(0, BK)
        pb = b + rk[:, None].to(tl.int64) * wb + rn[None, :]
        end = m
        if GROUPED:
            place = places + 3 * tl.maximum(row, 0)
            rm = tl.where(row < 0, -1, tl.load(place) + tl.arange(0, BM))
            end = tl.load(place + 1)
            pb += tl.load(place + 2).to(tl.int64) * k * wb
        pa = a + rm[:, None].to(tl.int64) * wa + rk[None, :]
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for step in range(steps):
            at = (_k_step(first, steps, start, direction, step) * BK).to(tl.int64)
            left = _tile(pa + at, rm, end, at + rk, wa, RAGGED)
            acc = tl.dot(left, _tile(pb + at * wb, at + rk, k, rn, wb, RAGGED), acc)
        out = c + rm[:, None].to(tl.int64) * wc + rn[None, :]
        if PHASES:  # noqa: SIM102 - one is known when compiling, the other when running
            if adds == 1:
                acc += _partial(out, rm, end, rn, wc, RAGGED)
        _put(out, acc, rm, end, rn, wc, RAGGED)
        if BARRIER or PHASES:
            _tick(counter)


@triton.jit
def ffn_kernel(
    x, w1, wu, h, w2, y, table, slots, counter, tokens, d_model, hidden, d_out,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, RAGGED: tl.constexpr, GATED: tl.constexpr,
    BARRIER: tl.constexpr,
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
        wx, wh, wy = _pitch(x, d_model), _pitch(h, hidden), _pitch(y, d_out)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        if product == 0:
            pa = x + rm[:, None].to(tl.int64) * wx + rk[None, :]
            at_b = rk[:, None].to(tl.int64) * wh + rn[None, :]
            if GATED:
                up = tl.zeros((BM, BN), dtype=tl.float32)
                for step in range(steps):
                    at = (_k_step(first, steps, start, direction, step) * BK).to(tl.int64)
                    rows_of_x = _tile(pa + at, rm, tokens, at + rk, wx, RAGGED)
                    acc = tl.dot(rows_of_x, _tile(w1 + at_b + at * wh, at + rk, d_model, rn, wh, RAGGED), acc)
                    up = tl.dot(rows_of_x, _tile(wu + at_b + at * wh, at + rk, d_model, rn, wh, RAGGED), up)
                acc = acc * tl.sigmoid(acc) * up
            else:
                for step in range(steps):
                    at = (_k_step(first, steps, start, direction, step) * BK).to(tl.int64)
                    rows_of_x = _tile(pa + at, rm, tokens, at + rk, wx, RAGGED)
                    acc = tl.dot(rows_of_x, _tile(w1 + at_b + at * wh, at + rk, d_model, rn, wh, RAGGED), acc)
                acc = acc * tl.sigmoid(acc)
            _put(h + rm[:, None].to(tl.int64) * wh + rn[None, :], acc, rm, tokens, rn, wh, RAGGED)
        elif product == 1:
            w = _pitch(w2, d_out)
            pa = h + rm[:, None].to(tl.int64) * wh + rk[None, :]
            pb = w2 + rk[:, None].to(tl.int64) * w + rn[None, :]
            for step in range(steps):
                at = (_k_step(first, steps, start, direction, step) * BK).to(tl.int64)
                rows_of_h = _tile(pa + at, rm, tokens, at + rk, wh, RAGGED)
                acc = tl.dot(rows_of_h, _tile(pb + at * w, at + rk, hidden, rn, w, RAGGED), acc)
            out = y + rm[:, None].to(tl.int64) * wy + rn[None, :]
            if adds == 1:
                acc += _partial(out, rm, tokens, rn, wy, RAGGED)
            _put(out, acc, rm, tokens, rn, wy, RAGGED)
        _tick(counter)


@triton.jit
def attention_kernel(
    q, k, v, o, table, slots, counter, queries, keys, group, head_dim, value_dim, scale,
    D: tl.constexpr, DV: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, RAGGED: tl.constexpr,
    CAUSAL: tl.constexpr, BARRIER: tl.constexpr,
):  # fmt: skip
    """O = softmax(Q K^T) V with online softmax; ``scale`` holds log2(e) too.

    A tile row is a Q tile, a tile column a head, batch by batch; k are the KV tiles that the Q tile sees. ``group``
    query heads share one KV head. Causal: the last query sees all keys. D and DV are powers of two that hold the
    vectors of Q and K, and of V.
    """
    programs = tl.num_programs(0)
    for slot in range(tl.program_id(0), slots, programs):
        entry = table + 9 * slot
        tile, head = tl.load(entry + 1), tl.load(entry + 2)
        seen, start, direction = tl.load(entry + 4), tl.load(entry + 5), tl.load(entry + 6)
        if BARRIER:
            _wait(counter, slot // programs * programs)
        rm, rn, rd, rv = tile * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D), tl.arange(0, DV)
        wq, wv, wo = _pitch(q, head_dim), _pitch(v, value_dim), _pitch(o, value_dim)
        there = (rm >= 0)[:, None]  # an empty slot has Q tile -1 and sees nothing
        if RAGGED:
            there = there & (rm < queries)[:, None] & (rd < wq)[None, :]
        rows = head.to(tl.int64) * queries + rm.to(tl.int64)
        queries_of_tile = tl.load(q + rows[:, None] * wq + rd[None, :], mask=there, other=0.0)
        first_key = (head // group).to(tl.int64) * keys
        pk = k + first_key * wq + rn[None, :] * wq + rd[:, None]
        pv = v + first_key * wv + rn[:, None] * wv + rv[None, :]
        most = tl.full((BM,), float("-inf"), dtype=tl.float32)
        total = tl.zeros((BM,), dtype=tl.float32)
        acc = tl.zeros((BM, DV), dtype=tl.float32)
        for step in range(seen):
            at = _k_step(0, seen, start, direction, step) * BN
            keys_of_tile = _tile(pk + at.to(tl.int64) * wq, rd, wq, at + rn, keys, RAGGED)
            scores = tl.dot(queries_of_tile, keys_of_tile) * scale
            if CAUSAL:  # a finite penalty: a tile that a row does not see at all must not make it 0/0
                visible = (keys - queries + rm)[:, None] >= (at + rn)[None, :]
                scores = tl.where(visible, scores, -1.0e6)
            if RAGGED:  # the same for keys beyond the last
                scores = tl.where((at + rn < keys)[None, :], scores, -1.0e6)
            new_most = tl.maximum(most, tl.max(scores, 1))
            weights = tl.exp2(scores - new_most[:, None])
            shrink = tl.exp2(most - new_most)
            total = total * shrink + tl.sum(weights, 1)
            values = _tile(pv + at.to(tl.int64) * wv, at + rn, keys, rv, wv, RAGGED)
            acc = tl.dot(weights.to(values.dtype), values, acc * shrink[:, None])
            most = new_most
        out = o + rows[:, None] * wo + rv[None, :]
        _put(out, acc / total[:, None], rm, queries, rv, wo, RAGGED)
        if BARRIER:
            _tick(counter)


@triton.jit
def end_of_case(mark):
    """A launch that separates one case from the next in a profile."""
    tl.store(mark, 1)
