"""Lower bounds in bytes: room and transfers count the width of each value, and a partial sum has one of its own.

An input takes w bytes, and so does a cell of H that is complete; a complete output takes w_o. A cell that is begun and
not complete takes p (of the output) or p_H (of H). Cut a schedule into h segments. A cell that a segment updates was
begun in it (once in all), or was unfinished when the segment began: held, then it took p of the S bytes, or it is
loaded, for p. A cell of H that a segment only reads was held or loaded at w at least. So

    bytes moved >= sum of (w a + w b + p c) - (h - 1) S - (p - w_o) outputs + moved besides,

and any p' from w_o to p may stand for p, any q from w to p_H for p_H.

One product: Loomis and Whitney bound w a + w b + p' c for the products of a segment.

A chain, cut by work that counts a product of A B as alpha and one of H D as beta: with e cells of H touched, e1 of them
by A B, what counts is X = w (a + b) + w d + p' y + w e + (q - w) e1. For mu = alpha v1 / W let
T1 = w (a + b) / mu + q e1 and T2 = (w d + p' y) / (1 - mu) + w e. Then X >= mu T1 + (1 - mu) T2 >= min(T1, T2), and T1
has W / alpha products of A B in its box, T2 W / beta of H D in its own; in both e >= W / (alpha k + beta l), which
limits e, so e1 in T1 only if q = w and e stands for e1 there. Segments end at whole products, so their work is that
share of the whole rounded down or up, less max(alpha, beta) - 1.

With q for every cell of H begun; of a gated network gate and up are the columns of one product, or the up cells are
forgotten and each up weight is loaded.

The line theorem in bytes is in `wide_lines`, that of passes in `passes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, gcd
from typing import Any

from .geometry import prove_by_means
from .lower import MAX_SEGMENTS, LineForms, _chain, _parts, kernel_lines, line_forms
from .passes import prove_passes, row_and_column
from .priced_lines import Units, by_prices
from .reading import RefusedError, array, choice, equal, fields, fraction, integer, tagged
from .statement import Widths, Workload, read_widths
from .wide_lines import chain_in_bytes, product_in_bytes

MAX_WEIGHT = 1024
Limits = tuple[Fraction, Fraction, Fraction]


@dataclass(frozen=True)
class Use:
    """Limits and product of the three numbers that a unit of work touches, for each kind; and what is constant."""

    kinds: tuple[tuple[Limits, Fraction], ...]
    weights: tuple[int, ...]
    work: int
    taken: int  #: bytes begun free and not stored
    added: int = 0  #: bytes moved besides


def check_bytes(workload: Workload, claim: dict[str, Any], at: str) -> str:
    """Check one claim of a lower bound in bytes and say it in a sentence."""
    fields(claim, at, ("claim", "game", "widths_bytes", "capacity_bytes", "bytes", "proof"))
    game = claim["game"]
    fields(game, f"{at}.game", ("recompute", "kernels"))
    redo = choice(game["recompute"], f"{at}.game.recompute", ("allowed", "forbidden")) == "allowed"
    separate = choice(game["kernels"], f"{at}.game.kernels", ("fused", "separate")) == "separate"
    widths = read_widths(workload, claim["widths_bytes"], f"{at}.widths_bytes")
    if workload.family == "layer":
        raise RefusedError(f"{at}.claim", "no theorem in bytes is about a layer")
    if separate and not workload.linked:
        raise RefusedError(f"{at}.game.kernels", f"a {workload.family} is one kernel")
    if redo and workload.linked:
        raise RefusedError(f"{at}.game.recompute", "these theorems are about schedules that compute nothing again")
    capacity = integer(claim["capacity_bytes"], f"{at}.capacity_bytes", 3)
    kernels = _kernels(workload, widths, separate)
    fields(claim["proof"], f"{at}.proof", ("theorem", "kernels"))
    choice(claim["proof"]["theorem"], f"{at}.proof.theorem", ("segments in bytes",))
    total = 0
    proofs = array(claim["proof"]["kernels"], f"{at}.proof.kernels", len(kernels), len(kernels))
    for number, (kernel, proof) in enumerate(zip(kernels, proofs, strict=True)):
        total += kernel.count * kernel.moves(widths, capacity, proof, f"{at}.proof.kernels[{number}]")
    equal(claim["bytes"], total, f"{at}.bytes", "bytes moved, at least")
    how = "whether or not values are computed again"
    if workload.linked:
        how = f"{'kernel by kernel' if separate else 'fused in any way'}, recomputation forbidden"
    return (
        f"every schedule of {workload.label} in {capacity:,} bytes of fast memory, where a partial sum takes "
        f"{widths.partial} bytes ({widths.hidden} of an intermediate), moves at least {total:,} bytes ({how})"
    )


@dataclass(frozen=True)
class Kernel:
    """What is bounded by itself: a product, or a chain; how many equal ones there are, and what surely moves."""

    workload: Workload
    least: int
    count: int
    lines: LineForms  #: ways to apply the line theorem
    product: tuple[int, int, int, int, int, int] | None = None  #: rows, cols, depth, products, cells begun, stored
    partial: int = 0  #: bytes of an unfinished cell of that product; 0 for those of the workload
    written: int = 0  #: and of a complete one

    def moves(self, widths: Widths, capacity: int, proof: Any, at: str) -> int:
        """Bytes of one of them, as the proof says."""
        theorem = tagged(proof, at, "theorem", ("compulsory", "segments", "lines", "passes", "priced lines"))
        if theorem == "compulsory":
            fields(proof, at, ("theorem",))
            return self.least
        if theorem in ("passes", "priced lines"):
            if not self.workload.linked or self.product is not None:
                raise RefusedError(f"{at}.theorem", "this theorem is about two products in one kernel")
            if theorem == "priced lines":
                return _by_prices(self.workload, widths, capacity, proof, at)
            return self.least + _by_passes(self.workload, widths, capacity, proof, at)
        if theorem == "lines" and self.workload.linked and self.product is None:
            return chain_in_bytes(_chain(self.workload), self.workload.streams, widths, capacity, proof, at)
        if theorem == "lines":
            if not self.lines:
                raise RefusedError(f"{at}.theorem", f"this theorem is not about such a {self.workload.family}")
            form = self.lines[choice(proof.get("form"), f"{at}.form", tuple(self.lines))]
            inside = Widths(widths.read, widths.hidden, self.partial or widths.partial, self.written or widths.written)
            return product_in_bytes(form, inside, capacity, proof, at)
        charges = ("hidden_cell_bytes", "output_cell_bytes", "work_weights")
        fields(proof, at, ("theorem", "form", *charges, "segments", "shares"))
        return _by_segments(self._use(widths, proof, at), capacity, proof, at)

    def _use(self, widths: Widths, proof: Any, at: str) -> Use:
        where = f"{at}.output_cell_bytes"
        if self.product is not None:
            rows, cols, depth, products, begun, stored = self.product
            p = integer(proof["output_cell_bytes"], where, self.written, self.partial)
            choice(proof["form"], f"{at}.form", ("",))
            taken = begun * p - stored * self.written
            return _product(proof, at, (rows, cols, depth, 1), products, widths.read, p, taken)
        p = integer(proof["output_cell_bytes"], where, widths.written, widths.partial)
        forms = _parts(self.workload)
        form = choice(proof["form"], f"{at}.form", tuple(forms))
        if not self.workload.linked:
            part = forms[form]
            box = part.box
            cells = box.rows * box.cols
            taken = cells * (p - widths.written)
            sides = (box.rows, box.cols, box.depth, box.overlap)
            return _product(proof, at, sides, part.products, widths.read, p, taken, part.more * widths.written)
        return _chain_use(self.workload, widths, form, p, proof, at)


def _by_passes(workload: Workload, widths: Widths, capacity: int, proof: Any, at: str) -> int:
    """Bytes beyond those that surely move, counted in units of the greatest common divisor of all widths."""
    fields(proof, at, ("theorem", "cuttings"))
    unit = gcd(widths.read, widths.hidden, widths.partial, widths.written)
    w, p = widths.read // unit, widths.partial // unit
    rows, columns = row_and_column(workload, *_chain(workload)[:4])
    rows = rows._replace(values=(w * rows.values[0], p * rows.values[1]))
    columns = columns._replace(values=(w * columns.values[0], 0))
    return unit * prove_passes(rows, columns, capacity // unit, proof["cuttings"], f"{at}.cuttings", w)


def _by_prices(workload: Workload, widths: Widths, capacity: int, proof: Any, at: str) -> int:
    """Bytes, counted in units of the greatest common divisor of all widths."""
    unit = gcd(widths.read, widths.hidden, widths.partial, widths.written)
    units = Units(*(x // unit for x in (widths.read, widths.hidden, widths.partial, widths.written)))
    return unit * by_prices(_chain(workload), workload.streams, units, capacity // unit, proof, at)


def _kernels(workload: Workload, widths: Widths, separate: bool) -> list[Kernel]:
    if workload.pieces:  # a group of products, each by itself
        return [Kernel(p.workload, _compulsory(p.workload), p.count, line_forms(p.workload)) for p in workload.pieces]
    groups = workload.groups
    if not separate:
        lines = {} if workload.linked else line_forms(workload)
        return [Kernel(workload, _compulsory(workload) // groups, groups, lines)]
    m, k, f, l, cells = _chain(workload)
    w, streams, output = widths.read, workload.streams, (widths.partial, widths.written)
    first = (m, streams * f, k, streams * cells * k, streams * cells, cells)
    last = (m, l, f, cells * l, m * l, m * l)
    least = w * (m * k + streams * k * f + cells), w * (cells + f * l) + widths.written * m * l
    return [
        Kernel(workload, least[0], groups, kernel_lines(workload, 0), first, widths.hidden, w),
        Kernel(workload, least[1], groups, kernel_lines(workload, 1), last, *output),
    ]


def _compulsory(workload: Workload) -> int:
    """Bytes that every schedule moves."""
    return sum(o.elements * o.moves * o.width for o in workload.operands.values())


def _product(
    proof: Any, at: str, sides: tuple[int, int, int, int], work: int, w: int, p: int, taken: int, added: int = 0
) -> Use:
    rows, cols, depth, overlap = sides
    equal(proof["hidden_cell_bytes"], 0, f"{at}.hidden_cell_bytes", "bytes of a cell of an intermediate")
    _weights(proof, at, 1, 1)
    limits = Fraction(w, overlap * cols), Fraction(w, rows), Fraction(p, depth)
    return Use(((limits, Fraction(w * w * p, overlap)),), (1,), work, taken, added)


def _chain_use(workload: Workload, widths: Widths, form: str, p: int, proof: Any, at: str) -> Use:
    m, k, f, l, cells = _chain(workload)
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
    told = array(proof["work_weights"], f"{at}.work_weights", count, count)
    return tuple(integer(x, f"{at}.work_weights[{i}]", 1, most) for i, x in enumerate(told))


def _by_segments(use: Use, capacity: int, proof: Any, at: str) -> int:
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
        told = array(share["kinds"], f"{where}.kinds", len(use.kinds), len(use.kinds))
        least = []
        for i, ((limits, product), kind) in enumerate(zip(use.kinds, told, strict=True)):
            inside = f"{where}.kinds[{i}]"
            fields(kind, inside, ("bytes", "multipliers"))
            bound = fraction(kind["bytes"], f"{inside}.bytes")
            of_work = (limits[0] * work, limits[1] * work, limits[2] * work)
            prove_by_means(bound, of_work, product * work * work, kind["multipliers"], inside)
            least.append(bound)
        total += count * min(least)
    return ceil(total) - (h - 1) * capacity - use.taken + use.added
