"""The segment theorems: how few values, or bytes, the segments of a schedule touch.

Cut a schedule into h segments. A value touched in a segment was held at its start (at most S at each of h - 1 cuts),
or is loaded in it, or is a cell initialised in it (once in all). So

    loads + stores >= sum of values touched - (h - 1) S - cells initialised that need not be stored.

In bytes an input takes w, and so does a cell of H that is complete; a complete output takes w_o. A cell that is
initialised and not complete takes p (of the output) or p_H (of H). Cut a schedule into h segments. A cell that a
segment updates was initialised in it (once in all), or was unfinished when the segment began: held, then it took p of
the S bytes, or it is loaded, for p. A cell of H that a segment only reads was held or loaded at w at least. So

    bytes moved >= sum of (w a + w b + p c) - (h - 1) S - (p - w_o) outputs + moved besides,

and any p' from w_o to p may stand for p, any q from w to p_H for p_H.

One product: Loomis and Whitney bound w a + w b + p' c for the products of a segment.

A chain, cut by work that counts a product of A B as alpha and one of H D as beta: with e cells of H touched, e1 of them
by A B, what counts is X = w (a + b) + w d + p' y + w e + (q - w) e1. For mu = alpha v1 / W let
T1 = w (a + b) / mu + q e1 and T2 = (w d + p' y) / (1 - mu) + w e. Then X >= mu T1 + (1 - mu) T2 >= min(T1, T2), and T1
has W / alpha products of A B in its box, T2 W / beta of H D in its own; in both e >= W / (alpha k + beta l), which
limits e, so e1 in T1 only if q = w and e stands for e1 there. Segments end at whole products, so their work is that
share of the whole rounded down or up, less max(alpha, beta) - 1.

Two products that share an input, dA += dC B and dB += A dC: with mu the share of the first, what a segment touches is
mu ((p' a1 + w b1) / mu + w c) + (1 - mu) ((w a2 + p' b2) / (1 - mu) + w c), so the lesser of the two brackets at least,
and each satisfies the inequalities of the box of both for all products of the segment.

With q for every cell of H initialised; of a gated network gate and up are the columns of one product, or the up cells
are forgotten and each up weight is loaded.

With recomputation (last) cells are followed through the segments that touch them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any

from .geometry import MAX_LEAVES, Box, prove_by_means, prove_redone, prove_touched
from .reading import RefusedError, array, choice, equal, fields, fraction, integer
from .statement import (
    ATTENTION_BACKWARD,
    FFN_BACKWARD,
    GEMM_BACKWARD,
    ClaimedWidths,
    Workload,
    besides_middle,
    chain_of,
    middle_of,
)

MAX_SEGMENTS = 2**128
MAX_WEIGHT = 1024
USE_FIELDS = ("theorem", "form", "hidden_cell_bytes", "output_cell_bytes", "work_weights", "segments", "shares")
Limits = tuple[Fraction, Fraction, Fraction]


@dataclass(frozen=True)
class SegmentTerm:
    """One application of the theorem: products in a box, cells initialised and not stored, and what moves besides."""

    box: Box
    products: int
    cells: int
    more: int = 0
    initialised: int = 0  #: cells initialised, stored or not; 0 for all of the box


@dataclass(frozen=True)
class Use:
    """Limits and product of the three numbers that a unit of work touches, for each kind; and what is constant."""

    kinds: tuple[tuple[Limits, Fraction], ...]
    weights: tuple[int, ...]
    work: int
    taken: int  #: bytes initialised free and not stored
    added: int = 0  #: bytes moved besides


def parts_of(workload: Workload) -> dict[str, SegmentTerm]:
    """The ways to apply the theorem to a workload, by name."""
    size = workload.size
    if workload.family == "gemm":
        m, n, k = size["m"], size["n"], size["k"]
        # C += A B begins no cell free: every cell is loaded once more
        return {"product": SegmentTerm(Box(m, n, k), m * n * k, 0, m * n if workload.option["accumulate_into"] else 0)}
    if workload.family == GEMM_BACKWARD:
        # dA += dC B is a triple (i, j, t), dB += A dC a triple (i, j, k + t): one box; all cells are stored
        m, n, k = size["m"], size["n"], size["k"]
        forms = {"backward": SegmentTerm(Box(m, n, 2 * k), 2 * m * n * k, 0)}
        if workload.option.get("again"):  # C += A B beside them: a value of B is met twice, cells of C need no store
            forms["recomputed"] = SegmentTerm(Box(2 * n, m, 2 * k, 2), 3 * m * n * k, m * n)
        return forms
    if workload.family in (FFN_BACKWARD, ATTENTION_BACKWARD):
        return _middle_of_backward(workload)
    if workload.family == "conv2d":
        pixels = workload.operands["Y"].elements // size["out_channels"]
        taps = workload.operands["W"].elements // size["out_channels"]
        overlap = ((size["kernel"] + size["stride"] - 1) // size["stride"]) ** 2
        box = Box(pixels, size["out_channels"], taps, overlap)
        return {"convolution": SegmentTerm(box, pixels * size["out_channels"] * taps, 0)}
    if not workload.separate_operands:
        # a value (j, t) of the latent is met at t and, where it is a value too, at k + t
        m, k, f, l = workload.latent_sides
        return {"latent": SegmentTerm(Box(f, m, k + l, 2), workload.pairs * (k + l), workload.pairs)}
    m, k, f, l, cells = chain_of(workload)
    # a product of A B is a triple (i, j, t), one of H D a triple (i, j, k + q): one box
    plain = SegmentTerm(Box(m, f, k + l), cells * (k + l), cells)
    if workload.streams == 1:
        return {"chain": plain}
    # the up cells are further columns of the box; or: forget them, and load each up weight
    both = SegmentTerm(Box(m, 2 * f, k + l), m * f * (2 * k + l), 2 * m * f)
    return {"gated chain": both, "gate's chain": SegmentTerm(plain.box, plain.products, plain.cells, k * f)}


def _middle_of_backward(workload: Workload) -> dict[str, SegmentTerm]:
    """dZ += dY W1^T is a triple (i, j, t), dX += dZ W0^T is (i, j, e + t), dW0 += X^T dZ is (i, j, e + d + t): one box.

    Of gate and up, further columns are cells that begin when dZ is complete; or they are forgotten, each up weight is
    loaded and its gradient stored.
    """
    (m, f, l, k, cells), more = middle_of(workload), besides_middle(workload)
    plain = SegmentTerm(Box(m, f, l + 2 * k), cells * (l + 2 * k), cells, more)
    if workload.streams == 1:
        return {"middle": plain}
    both = SegmentTerm(Box(m, 2 * f, l + 2 * k), cells * (l + 4 * k), 2 * cells, more)
    return {"gated middle": both, "gate's middle": replace(plain, more=more + 2 * k * f)}


def kernel_part(workload: Workload, number: int) -> SegmentTerm:
    """One of two kernels with H in slow memory between them."""
    m, k, f, l, cells = chain_of(workload)
    if number == 1:
        return SegmentTerm(Box(m, l, f), cells * l, 0)
    streams = workload.streams
    return SegmentTerm(Box(m, streams * f, k), streams * cells * k, (streams - 1) * cells, initialised=streams * cells)


def _touched(
    work: int, proof: Any, at: str, prove: Callable[[int, Any, str], Fraction], besides: tuple[str, ...] = ()
) -> tuple[Fraction, int]:
    """Values touched in all segments, each share proved by ``prove(products, share, where)``; and h.

    A share is (how many segments of) one size: the floor of work / h and, where it does not divide, the ceiling.
    """
    fields(proof, at, ("theorem", "segments", "shares", *besides))
    h = integer(proof["segments"], f"{at}.segments", 1, min(work, MAX_SEGMENTS))
    shares = array(proof["shares"], f"{at}.shares", 1, 2)
    small, longer = divmod(work, h)
    wanted = [(small, h - longer)] + ([(small + 1, longer)] if longer else [])
    equal(len(shares), len(wanted), f"{at}.shares", "sizes of segments")
    total = Fraction(0)
    for number, ((products, count), share) in enumerate(zip(wanted, shares, strict=True)):
        where = f"{at}.shares[{number}]"
        if type(share) is not dict:
            raise RefusedError(where, "expected an object")
        equal(share.get("products"), products, where, "products in a segment")
        equal(share.get("segments"), count, where, "segments of this size")
        total += count * prove(products, share, where)
    return total, h


def by_segments(part: SegmentTerm, capacity: int, proof: Any, at: str, besides: tuple[str, ...] = ()) -> int:
    """What the theorem says of one part; ``besides`` are further keys of the proof."""

    def prove(products: int, share: Any, where: str) -> Fraction:
        return prove_touched(part.box, products, share, where)

    touched, h = _touched(part.products, proof, at, prove, besides)
    # the values touched are a count: round up
    return ceil(touched) - (h - 1) * capacity - part.cells + part.more


def use_of(workload: Workload, number: int | None, widths: ClaimedWidths, proof: Any, at: str) -> Use:
    """The theorem with widths, in the form and with the charges that a proof names."""
    fields(proof, at, USE_FIELDS)
    p = integer(proof["output_cell_bytes"], f"{at}.output_cell_bytes", widths.written, widths.partial)
    forms = parts_of(workload) if number is None else {"": kernel_part(workload, number)}
    form = choice(proof["form"], f"{at}.form", tuple(forms))
    if workload.linked and number is None:
        return _chain_use(workload, widths, form, p, proof, at)
    part = forms[form]
    equal(proof["hidden_cell_bytes"], 0, f"{at}.hidden_cell_bytes", "bytes of a cell of an intermediate")
    if workload.family == GEMM_BACKWARD:
        return _shared_use(part.box, part.products, widths, p, _weights(proof, at, 2, 1))
    _weights(proof, at, 1, 1)
    return product_use(part, (widths.read, widths.read), p, widths.written)


def product_use(part: SegmentTerm, inputs: tuple[int, int], p: int, written: int) -> Use:
    """Of one product, whose values of A and of B take so much, and whose cells count ``p``."""
    box, (a, b) = part.box, inputs
    initialised = part.initialised or box.rows * box.cols
    limits = Fraction(a, box.overlap * box.cols), Fraction(b, box.rows), Fraction(p, box.depth)
    taken = initialised * p - (initialised - part.cells) * written
    kind = limits, Fraction(a * b * p, box.overlap)
    return Use((kind,), (1,), part.products, taken, part.more * written)


def _shared_use(box: Box, products: int, widths: ClaimedWidths, p: int, weights: tuple[int, ...]) -> Use:
    """What a segment touches is a mean of what its work would touch as dA += dC B alone, and as dB += A dC alone."""
    w, outputs = widths.read, (box.rows + box.cols) * box.depth // 2
    kinds = [
        ((Fraction(a, box.cols), Fraction(b, box.rows), Fraction(w, box.depth)), Fraction(w * w * p))
        for a, b in ((p, w), (w, p))
    ]
    return Use(tuple(kinds), weights, products, (p - widths.written) * outputs)


def _chain_use(workload: Workload, widths: ClaimedWidths, form: str, p: int, proof: Any, at: str) -> Use:
    m, k, f, l, cells = chain_of(workload)
    w = widths.read
    q = integer(proof["hidden_cell_bytes"], f"{at}.hidden_cell_bytes", w, widths.hidden)
    alpha, beta = _weights(proof, at, 2, MAX_WEIGHT)
    streams = 2 if form == "gated chain" else 1
    more = w * k * f if form == "gate's chain" else 0
    deep = Fraction(w, alpha * k + beta * l)
    first = Fraction(w, alpha * streams * f), Fraction(w, alpha * m), deep if q == w else Fraction(0)
    second = Fraction(w, beta * m), Fraction(p, beta * f), deep
    kinds = (first, Fraction(w * w * q, alpha * alpha)), (second, Fraction(w * p * w, beta * beta))
    taken = q * streams * cells + (p - widths.written) * m * l
    return Use(kinds, (alpha, beta), streams * cells * k * alpha + cells * l * beta, taken, more)


def _weights(proof: Any, at: str, count: int, most: int) -> tuple[int, ...]:
    spec = array(proof["work_weights"], f"{at}.work_weights", count, count)
    return tuple(integer(x, f"{at}.work_weights[{i}]", 1, most) for i, x in enumerate(spec))


def by_use(use: Use, capacity: int, proof: Any, at: str) -> int:
    h = integer(proof["segments"], f"{at}.segments", 1, min(use.work, MAX_SEGMENTS))
    small, longer = divmod(use.work, h)
    slack = max(use.weights) - 1
    wanted = [(small, h - longer)] + ([(small + 1, longer)] if longer else [])
    shares = array(proof["shares"], f"{at}.shares", len(wanted), len(wanted))
    total = Fraction(0)
    for number, ((work, count), share) in enumerate(zip(wanted, shares, strict=True)):
        where, work = f"{at}.shares[{number}]", max(0, work - slack)
        fields(share, where, ("work", "segments", "kinds"))
        equal(share["work"], work, f"{where}.work", "work of a segment, at least")
        equal(share["segments"], count, f"{where}.segments", "segments of this size")
        spec = array(share["kinds"], f"{where}.kinds", len(use.kinds), len(use.kinds))
        least = []
        for i, ((limits, product), kind) in enumerate(zip(use.kinds, spec, strict=True)):
            inside = f"{where}.kinds[{i}]"
            fields(kind, inside, ("bytes", "multipliers"))
            bound = fraction(kind["bytes"], f"{inside}.bytes")
            of_work = (limits[0] * work, limits[1] * work, limits[2] * work)
            prove_by_means(bound, of_work, product * work * work, kind["multipliers"], inside)
            least.append(bound)
        total += count * min(least)
    return ceil(total) - (h - 1) * capacity - use.taken + use.added


def cut_by_second(m: int, k: int, f: int, l: int, cells: int, capacity: int, proof: Any, at: str) -> int:
    """Cells touched are at most held + loaded + (distinct products of A B) / k. For v products of H D in a segment
    and e cells touched, values touched less that are linear in the products of A B, from 0 to k e: at least
    e + v G(e), as in one product of m x f x l, or (v + k e) G(e)."""

    def prove(v: int, share: Any, where: str) -> Fraction:
        fields(share, where, ("products", "segments", "touched", "multipliers", "leaves"))
        bound = fraction(share["touched"], f"{where}.touched")
        if v:
            prove_by_means(bound, Box(m, f, l).least(v), Fraction(v * v), share["multipliers"], where)
            prove_redone(m, f, k, l, v, bound, share["leaves"], f"{where}.leaves")
        elif bound:
            raise RefusedError(where, "a segment without products may touch nothing")
        return bound

    touched, h = _touched(cells * l, proof, at, prove)
    return ceil(touched - (h - 1) * capacity)


def cut_by_distinct(m: int, k: int, f: int, l: int, cells: int, capacity: int, proof: Any, at: str) -> int:
    """End segments at P + 1 distinct products, as often as needed for h segments to make V, then at P, and the last
    at P to 2 P. Each touches values less cells excused (v / k): kept(v) at least, less l / k for all cells at the end.
    kept >= kept(P) >= S from P to 2 P, proved on intervals at whose ends a concave bound is looked at; so segments
    beyond h cost nothing, and what is left is the bound without recomputation."""
    box, work = Box(m, f, k + l), cells * (k + l)

    def prove(v: int, share: Any, where: str) -> Fraction:
        if v * proof["segments"] > work:  # a longer one
            return prove_touched(box, v, share, where)
        fields(share, where, ("products", "segments", "touched", "leaves"))
        bound = fraction(share["touched"], f"{where}.touched")
        resident = bound - Fraction(v, k)
        if resident < capacity:
            raise RefusedError(f"{where}.touched", "too few for more segments to cost nothing")
        _prove_resident(box, k, v, resident, share["leaves"], f"{where}.leaves")
        return bound

    touched, h = _touched(work, proof, at, prove)
    return ceil(touched) - (h - 1) * capacity - cells


def _prove_resident(box: Box, k: int, start: int, resident: Fraction, proof: Any, at: str) -> None:
    """Values touched less v / k are at least ``resident`` for every v from ``start`` to twice that."""
    end = 2 * start
    for number, leaf in enumerate(array(proof, at, 1, MAX_LEAVES)):
        where = f"{at}[{number}]"
        fields(leaf, where, ("to", "multipliers"))
        to = integer(leaf["to"], f"{where}.to", start, end)
        for v in (start, to):  # with the multipliers fixed, the bound is concave in v
            prove_by_means(resident + Fraction(v, k), box.least(v), Fraction(v * v), leaf["multipliers"], where)
        start = to
    equal(start, end, at, "end of the last leaf")
