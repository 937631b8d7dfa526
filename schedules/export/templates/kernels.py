"""Triton kernels that walk a table: matrix products, attention, both in 16-bit types.

A launch has P programs, and program p takes the tiles ``begins[p]`` to ``begins[p + 1]`` of a list: six numbers for
each, its row and column, the k step to begin with, the k direction (1 or -1), the k steps, and how many tiles of the
launch must be finished before it begins (``BARRIER``). k goes round at its end. What one tile writes and another reads
stands in launches of their own.

Matrices are tensor descriptors where the GPU has a copy engine for them (``TMA``, from Hopper on): what hangs over an
edge is read as zero and not written. Elsewhere they are pointers, of which Triton makes masked loads; rows take whole
lines of 128 bytes then, as in the prediction.

A product's loop over tiles is one with its loop over k (``flatten``), so that the first tiles of the next block are
loaded while this one is stored. The compiler must not see a loop in between: waiting is a few instructions of PTX.
"""

from typing import NamedTuple

import triton
import triton.language as tl


class ProductSizes(NamedTuple):
    """Of A (m x k), B (k x n) and C (m x n), all groups together."""

    m: int
    n: int
    k: int


class ProductBuild(NamedTuple):
    """A product's constants: its tile, the parts in which it is stored, and which of its kinds it is.

    ``POLLS``: how often a block that waits asks (0: for ever). ``CUT``: behind its tiles a program takes pieces of
    others. ``SILU``: silu(A B); ``GATED``: silu(A G) * (A B). A transposed operand lies in memory as k x m, or n x k.
    """

    BM: int
    BK: int
    BN: int = 0
    PARTS: int = 1
    TMA: bool = False
    BARRIER: bool = False
    POLLS: int = 0
    CUT: bool = False
    ADDS: bool = False
    GROUPED: bool = False
    SILU: bool = False
    GATED: bool = False
    A_TRANSPOSED: bool = False
    B_TRANSPOSED: bool = False


class AttentionSizes(NamedTuple):
    """Heads are those of all batches; ``scale`` holds log2(e) too."""

    heads: int
    kv_heads: int
    queries: int
    keys: int
    head_dim: int
    value_dim: int
    scale: float


class AttentionBuild(NamedTuple):
    """Attention's constants: its tile, and powers of two that hold the vectors of Q and K, and of V.

    In a decode step a power of two, ``ROWS``, holds the rows that share keys, and ``AT_ONCE`` pieces of a head are
    added up together.
    """

    BM: int
    BN: int
    D: int
    DV: int
    CAUSAL: bool
    TMA: bool
    BARRIER: bool = False
    ROWS: int = 1
    AT_ONCE: int = 1


@triton.jit
def _wait(finished, due, polls=0):
    """Until so many tiles are finished, or so often was asked (0: for ever); nothing they wrote is read here."""
    tl.inline_asm_elementwise(
        "{ .reg .pred p; .reg .s32 seen, left; mov.s32 left, $3; "
        "again: ld.relaxed.gpu.global.s32 seen, [$1]; sub.s32 left, left, 1; setp.lt.s32 p, seen, $2; "
        "setp.ne.and.s32 p, left, 0, p; @p bra again; mov.s32 $0, seen; }",
        "=r,l,r,r", [finished, due, polls], dtype=tl.int32, is_pure=False, pack=1,
    )  # fmt: skip


@triton.jit
def _tick(finished, tiles):
    """One tile more is finished; the last of all sets the counter back, for the next launch."""
    tl.inline_asm_elementwise(
        "{ .reg .pred p; .reg .b32 seen; mov.u32 seen, %tid.x; setp.eq.u32 p, seen, 0; "
        "@p atom.relaxed.gpu.global.add.u32 seen, [$1], 1; add.u32 seen, seen, 1; "
        "setp.eq.and.u32 p, seen, $2, p; @p st.relaxed.gpu.global.u32 [$1], 0; mov.b32 $0, seen; }",
        "=r,l,r", [finished, tiles], dtype=tl.int32, is_pure=False, pack=1,
    )  # fmt: skip


@triton.jit
def _k_step(first, steps, start, direction, step):
    """The k step of a block: from ``start`` on, round at either end."""
    at = start + direction * step
    at = tl.where(at >= first + steps, at - steps, at)
    return tl.where(at < first, at + steps, at)


@triton.jit
def _matrix(x, height, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr, TMA: tl.constexpr):
    """A matrix in blocks of ROWS x COLUMNS: a descriptor already, or made of a pointer."""
    if TMA:
        matrix = x
    else:
        line: tl.constexpr = 1024 // x.dtype.element_ty.primitive_bitwidth
        pitch = (width + line - 1) // line * line
        matrix = tl.make_tensor_descriptor(x, [height, width], [pitch, 1], [ROWS, COLUMNS])
    return matrix


@triton.jit
def _operand(x, height, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr, TMA: tl.constexpr, TRANSPOSED: tl.constexpr):
    """As `_matrix`, of one that may lie in memory transposed."""
    if TRANSPOSED:
        matrix = _matrix(x, width, height, COLUMNS, ROWS, TMA)
    else:
        matrix = _matrix(x, height, width, ROWS, COLUMNS, TMA)
    return matrix


@triton.jit
def _matrices(x, count, height, width, stored, ROWS: tl.constexpr, COLUMNS: tl.constexpr, TMA: tl.constexpr):
    """Several matrices of one size, one behind the other, as `_matrix`; in memory a row has ``stored`` columns."""
    if TMA:
        matrices = x
    else:
        line: tl.constexpr = 1024 // x.dtype.element_ty.primitive_bitwidth
        pitch = (stored + line - 1) // line * line
        stride = height.to(tl.int64) * pitch
        matrices = tl.make_tensor_descriptor(x, [count, height, width], [stride, pitch, 1], [1, ROWS, COLUMNS])
    return matrices


@triton.jit
def _put(c, row, col, tile, PARTS: tl.constexpr, ADDS: tl.constexpr):
    """Store a tile in so many parts, side by side; shared memory holds one of them beside the stages."""
    if PARTS > 1:
        HALF: tl.constexpr = tile.shape[1] // 2
        left, right = tl.split(tl.permute(tl.reshape(tile, (tile.shape[0], 2, HALF)), (0, 2, 1)))
        _put(c, row, col, left, PARTS // 2, ADDS)
        _put(c, row, col + HALF, right, PARTS // 2, ADDS)
    else:
        if ADDS:
            tile += c.load([row, col]).to(tl.float32)
        c.store([row, col], tile.to(c.dtype))


@triton.jit
def _put_rows(c, width, row, end, col, tile, PARTS: tl.constexpr, ADDS: tl.constexpr):
    """As `_put`, only the rows before ``end``: below are those of another product."""
    if PARTS > 1:
        HALF: tl.constexpr = tile.shape[1] // 2
        left, right = tl.split(tl.permute(tl.reshape(tile, (tile.shape[0], 2, HALF)), (0, 2, 1)))
        _put_rows(c, width, row, end, col, left, PARTS // 2, ADDS)
        _put_rows(c, width, row, end, col + HALF, right, PARTS // 2, ADDS)
    else:
        line: tl.constexpr = 1024 // c.dtype.element_ty.primitive_bitwidth
        rm, rn = row + tl.arange(0, tile.shape[0]), col + tl.arange(0, tile.shape[1])
        at = c + rm[:, None].to(tl.int64) * ((width + line - 1) // line * line) + rn[None, :]
        inside = (rm < end)[:, None] & (rn < width)[None, :]
        if ADDS:
            tile += tl.load(at, mask=inside, other=0.0).to(tl.float32)
        tl.store(at, tile.to(c.dtype.element_ty), mask=inside)


@triton.jit
def _leave(partial, tile):
    """Store what a piece of a tile found."""
    rm, rn = tl.arange(0, tile.shape[0]), tl.arange(0, tile.shape[1])
    tl.store(partial + rm[:, None] * tile.shape[1] + rn[None, :], tile)


@triton.jit
def _all_there(arrived, pieces):
    """Whether this was the last of the pieces of a tile; it sets the counter back, for the next launch."""
    tl.debug_barrier()  # what all threads stored comes before the counter
    last = tl.atomic_add(arrived, 1, sem="acq_rel") == pieces - 1
    if last:
        tl.store(arrived, 0)
    return last


@triton.jit
def _sum(partial, pieces, stride, part, BM: tl.constexpr, BN: tl.constexpr, WIDTH: tl.constexpr):
    """WIDTH columns of the sum of all pieces of a tile, always in one order."""
    rm, rn = tl.arange(0, BM), part * WIDTH + tl.arange(0, WIDTH)
    at = partial + rm[:, None] * BN + rn[None, :]
    tile = tl.load(at)
    for piece in range(1, pieces):
        tile += tl.load(at + piece * stride.to(tl.int64) * (BM * BN))
    return tile


@triton.jit
def _silu(x):
    """x times its sigmoid, 0.5 + 0.5 tanh(x / 2): one tangent takes half the time of an exponential and a reciprocal.

    The tangent is right to 2**-11, so the result is to 2**-12 of x; values of 16 bits are rounded to 2**-9 or 2**-12.
    """
    half = 0.5 * x
    return half + half * tl.inline_asm_elementwise(
        "tanh.approx.f32 $0, $1;", "=f,f", [half], dtype=tl.float32, is_pure=True, pack=1
    )


@triton.jit
def _left(a, row, at_k, TRANSPOSED: tl.constexpr):
    """A tile of A."""
    return a.load([at_k, row]).T if TRANSPOSED else a.load([row, at_k])


@triton.jit
def _right(b, group, at_k, col, BK: tl.constexpr, BN: tl.constexpr, GROUPED: tl.constexpr, TRANSPOSED: tl.constexpr):
    """A tile of B, of one of several if ``GROUPED``."""
    if GROUPED:
        tile = b.load([group, at_k, col]).reshape(BK, BN)
    elif TRANSPOSED:
        tile = b.load([col, at_k]).T
    else:
        tile = b.load([at_k, col])
    return tile


@triton.jit
def _tile_of(entry, groups, BM: tl.constexpr, BN: tl.constexpr, GROUPED: tl.constexpr):
    """Its first row and column; and of a tile of several products the end of its rows, and which product it is."""
    row, end, group = tl.load(entry) * BM, 0, 0
    if GROUPED:
        place = groups.places + 3 * tl.load(entry)
        row, end, group = tl.load(place), tl.load(place + 1), tl.load(place + 2)
    return row, tl.load(entry + 1) * BN, end, group


@triton.jit(do_not_specialize=["first", "steps"])
def gemm_kernel(a, b, gate, c, groups, walk, sizes, first, steps, BUILD: tl.constexpr):
    """C = A B, or C += A B over the k steps from ``first`` on, or what `ProductBuild` says.

    Who brings the last piece of a tile that is cut adds them up.
    """
    BM: tl.constexpr = BUILD.BM
    BN: tl.constexpr = BUILD.BN
    BK: tl.constexpr = BUILD.BK
    PARTS: tl.constexpr = BUILD.PARTS
    ADDS: tl.constexpr = BUILD.ADDS
    GROUPED: tl.constexpr = BUILD.GROUPED
    GATED: tl.constexpr = BUILD.GATED
    A_TRANSPOSED: tl.constexpr = BUILD.A_TRANSPOSED
    B_TRANSPOSED: tl.constexpr = BUILD.B_TRANSPOSED
    TMA: tl.constexpr = BUILD.TMA
    m, n, k = sizes.m, sizes.n, sizes.k
    a = _operand(a, m, k, BM, BK, TMA, A_TRANSPOSED)
    b = _matrices(b, groups.count, k, n, n, BK, BN, TMA) if GROUPED else _operand(b, k, n, BK, BN, TMA, B_TRANSPOSED)
    if GATED:
        gate = _operand(gate, k, n, BK, BN, TMA, B_TRANSPOSED)
    c = _matrix(c, m, n, BM, BN // PARTS, TMA)
    mine = walk.begins + tl.program_id(0)
    count = tl.load(walk.begins + tl.num_programs(0))
    for at in tl.range(tl.load(mine), tl.load(mine + 1), flatten=not GATED):
        entry = walk.tiles + 6 * at
        row, col, end, group = _tile_of(entry, groups, BM, BN, GROUPED)
        start, direction = tl.load(entry + 2), tl.load(entry + 3)
        if BUILD.BARRIER:
            _wait(walk.finished, tl.load(entry + 5), BUILD.POLLS)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        if GATED:
            gates = tl.zeros((BM, BN), dtype=tl.float32)
        for step in range(steps):
            at_k = _k_step(first, steps, start, direction, step) * BK
            left = _left(a, row, at_k, A_TRANSPOSED)
            acc = tl.dot(left, _right(b, group, at_k, col, BK, BN, GROUPED, B_TRANSPOSED), acc)
            if GATED:
                gates = tl.dot(left, _right(gate, group, at_k, col, BK, BN, False, B_TRANSPOSED), gates)
        if GATED:
            acc = _silu(gates) * acc
        if BUILD.SILU:
            acc = _silu(acc)
        if GROUPED:
            if row + BM <= end:
                _put(c, row, col, acc, PARTS, ADDS)
            else:
                _put_rows(groups.rows_of_c, n, row, end, col, acc, PARTS, ADDS)
        else:
            _put(c, row, col, acc, PARTS, ADDS)
        if BUILD.BARRIER:
            _tick(walk.finished, count)
    if BUILD.CUT:
        WIDTH: tl.constexpr = BN // PARTS
        cut = walk.piece_begins + tl.program_id(0)
        for at in range(tl.load(cut), tl.load(cut + 1)):
            entry = walk.pieces + 9 * at
            row, col, end, group = _tile_of(entry, groups, BM, BN, GROUPED)
            start, direction, turn = tl.load(entry + 2), tl.load(entry + 3), tl.load(entry + 4)
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            for step in range(turn, turn + tl.load(entry + 5)):
                at_k = _k_step(first, steps, start, direction, step) * BK
                right = _right(b, group, at_k, col, BK, BN, GROUPED, B_TRANSPOSED)
                acc = tl.dot(_left(a, row, at_k, A_TRANSPOSED), right, acc)
            number, of, stride = tl.load(entry + 6), tl.load(entry + 7), tl.load(entry + 8)
            sums = walk.partial + number.to(tl.int64) * (BM * BN)
            _leave(sums + (at - number).to(tl.int64) * (BM * BN), acc)
            if _all_there(walk.arrived + number, of):
                for part in tl.static_range(PARTS):
                    tile = _sum(sums, of, stride, part, BM, BN, WIDTH)
                    if BUILD.SILU:
                        tile = _silu(tile)
                    if GROUPED:
                        _put_rows(groups.rows_of_c, n, row, end, col + part * WIDTH, tile, 1, ADDS)
                    else:
                        _put(c, row, col + part * WIDTH, tile, 1, ADDS)


@triton.jit
def attention_kernel(q, k, v, o, walk, sizes, BUILD: tl.constexpr):
    """O = softmax(Q K^T) V with online softmax.

    A tile row is a Q tile, a tile column a head, batch by batch; k are the KV tiles that the Q tile sees. As many
    heads of Q as it takes share one of K and V. Causal: the last query sees all keys.
    """
    BM: tl.constexpr = BUILD.BM
    BN: tl.constexpr = BUILD.BN
    D: tl.constexpr = BUILD.D
    DV: tl.constexpr = BUILD.DV
    TMA: tl.constexpr = BUILD.TMA
    CAUSAL: tl.constexpr = BUILD.CAUSAL
    heads, kv_heads, queries, keys = sizes.heads, sizes.kv_heads, sizes.queries, sizes.keys
    head_dim, value_dim, scale = sizes.head_dim, sizes.value_dim, sizes.scale
    q = _matrices(q, heads, queries, head_dim, head_dim, BM, D, TMA)
    k = _matrices(k, kv_heads, keys, head_dim, head_dim, BN, D, TMA)
    v = _matrices(v, kv_heads, keys, value_dim, value_dim, BN, DV, TMA)
    o = _matrices(o, heads, queries, value_dim, value_dim, BM, DV, TMA)
    rn, first = tl.arange(0, BN), walk.begins + tl.program_id(0)
    for at in range(tl.load(first), tl.load(first + 1)):
        entry = walk.tiles + 6 * at
        top, head = tl.load(entry) * BM, tl.load(entry + 1)
        start, direction, seen = tl.load(entry + 2), tl.load(entry + 3), tl.load(entry + 4)
        if BUILD.BARRIER:
            _wait(walk.finished, tl.load(entry + 5))
        kv = head // (heads // kv_heads)
        mine = q.load([head, top, 0]).reshape(BM, D)
        last = top + keys - queries + tl.arange(0, BM)
        whole = keys // BN  # from here on tiles have keys that are not seen
        if CAUSAL:
            whole = tl.minimum(whole, (top + keys - queries + 1) // BN)
        most = tl.full((BM,), float("-inf"), dtype=tl.float32)
        total = tl.zeros((BM,), dtype=tl.float32)
        acc = tl.zeros((BM, DV), dtype=tl.float32)
        for turn in range(seen):
            step = _k_step(0, seen, start, direction, turn)
            scores = tl.dot(mine, k.load([kv, step * BN, 0]).reshape(BN, D).T)
            if step >= whole:  # a finite penalty: a tile that a row does not see at all must not make it 0/0
                visible = (step * BN + rn < keys)[None, :]
                if CAUSAL:
                    visible = visible & (last[:, None] >= (step * BN + rn)[None, :])
                scores = tl.where(visible, scores, -1.0e6)
            new_most = tl.maximum(most, tl.max(scores, 1) * scale)
            weights = tl.exp2(scores * scale - new_most[:, None])
            shrink = tl.exp2(most - new_most)
            total = total * shrink + tl.sum(weights, 1)
            values = v.load([kv, step * BN, 0]).reshape(BN, DV)
            acc = tl.dot(weights.to(values.dtype), values, acc * shrink[:, None])
            most = new_most
        o.store([head, top, 0], (acc / total[:, None]).to(o.dtype).reshape(1, BM, DV))
        if BUILD.BARRIER:
            _tick(walk.finished, tl.load(walk.begins + tl.num_programs(0)))


@triton.jit
def end_of_case(mark):
    """A launch that separates one case from the next in a profile."""
    tl.store(mark, 1)
