"""Lower bounds: the theorems, and the arithmetic that takes a proof of the geometry to the claimed number.

Cut a schedule into h segments. A value touched in a segment was held at its start (at most S at each of h - 1 cuts),
or is loaded in it, or is a cell begun in it (once in all). So

    loads + stores >= sum of values touched - (h - 1) S - cells begun that need not be stored.

Workloads made of parts (groups of products, a transformer layer): fix a part and cut by its work. A value that its
operations touch may then also be an operand that another part computes and that was completed in the segment (once in
all), and its results may be used by another part instead of being stored. So

    loads + stores >= sum of values touched - (h - 1) S - cells begun and not stored - operands that another part
    computes.

A load of a value that one part computes and another uses belongs to the first while the value is incomplete, to the
second afterwards; every other transfer belongs to the part whose weight, input or output it moves. No transfer counts
twice, so the parts add up, each with all of S. This needs every value computed once where a part uses what another
computes.

All numbers but h and the proofs of the geometry are recomputed from the statement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

from .chain_lines import Hidden
from .geometry import MAX_LEAVES, Box, prove_by_means, prove_redone, prove_touched
from .lines import MAX_KERNEL, Kind, Lines, by_lines, read_times
from .passes import prove_passes, row_and_column
from .priced_lines import Units, by_prices
from .reading import RefusedError, array, choice, equal, fields, fraction, integer, tagged
from .statement import Piece, Workload, strict_stores
from .tied import prove_tied

MAX_SEGMENTS = 2**128
REDONE = ("recompute, cut by second products", "recompute, cut by distinct products")
LineForms = dict[str, tuple[Sequence[Kind], int, int]]  # by name: kinds of values, products, what moves besides


@dataclass(frozen=True)
class Part:
    """One application of the theorem: products in a box, cells begun and not stored, and what moves besides."""

    box: Box
    products: int
    cells: int
    more: int = 0


def check_lower(workload: Workload, claim: dict[str, Any], at: str) -> str:
    """Check one claim of a lower bound and say it in a sentence."""
    fields(claim, at, ("claim", "game", "capacity_elements", "elements", "bytes", "proof"))
    game = fields(claim["game"], f"{at}.game", ("recompute", "kernels"))
    redo = choice(game["recompute"], f"{at}.game.recompute", ("allowed", "forbidden")) == "allowed"
    separate = choice(game["kernels"], f"{at}.game.kernels", ("fused", "separate")) == "separate"
    if separate and not workload.apart:
        raise RefusedError(f"{at}.game.kernels", f"a {workload.family} is one kernel")
    if separate and redo and workload.pieces:
        raise RefusedError(f"{at}.game", "kernel by kernel is about a layer whose values are computed once")
    capacity = integer(claim["capacity_elements"], f"{at}.capacity_elements", 3)
    proof, where = claim["proof"], f"{at}.proof"
    if workload.pieces:
        elements, total = (_kernel_by_kernel if separate else _added)(workload, redo, capacity, proof, where)
    else:
        group, hidden = (_separate if separate else _fused)(workload, redo, capacity, proof, where)
        elements = workload.groups * group
        total = workload.bytes_of(elements, hidden)
    equal(claim["elements"], elements, f"{at}.elements", "elements moved, at least")
    equal(claim["bytes"], total, f"{at}.bytes", "bytes moved, at least")
    how = "whether or not values are computed again"
    if workload.linked:
        how = f"{'kernel by kernel' if separate else 'fused in any way'}, recomputation {game['recompute']}"
    return (
        f"every schedule of {workload.label} that holds at most {capacity:,} values moves at least "
        f"{elements:,} elements, {total:,} bytes ({how})"
    )


def _added(whole: Workload, redo: bool, capacity: int, proof: Any, at: str) -> tuple[int, int]:
    """Elements and bytes of all parts together."""
    among = ("compulsory",) if redo and whole.linked else ("compulsory", "parts")
    elements = whole.compulsory
    if _stated(proof, at, among) == "parts":
        fields(proof, at, ("theorem", "parts"))
        elements = 0
        for piece, one, where in _each(whole, proof["parts"], f"{at}.parts"):
            least = piece.least
            match _stated(one, where, ("compulsory", "segments", "lines")):
                case "segments":
                    least = _by_form(piece.workload, capacity, one, where, piece.taken)
                case "lines":  # no first load and no last store of what is handed over
                    least = _by_lines(piece.workload, capacity, one, where, line_forms(piece.workload)) - piece.taken
            elements += piece.count * least
    return elements, whole.bytes_of(elements)


def _kernel_by_kernel(whole: Workload, redo: bool, capacity: int, proof: Any, at: str) -> tuple[int, int]:
    """Elements and bytes, when each part is a kernel that starts from empty memory."""
    _stated(proof, at, ("kernel by kernel",))
    fields(proof, at, ("theorem", "kernels"))
    elements = total = 0
    for piece, one, where in _each(whole, proof["kernels"], f"{at}.kernels"):
        group, hidden = _fused(piece.workload, False, capacity, one, where)
        elements += piece.count * group
        total += piece.workload.bytes_of(piece.count * group, hidden)
    return elements, total


def _each(whole: Workload, proof: Any, at: str) -> list[tuple[Piece, Any, str]]:
    told = array(proof, at, len(whole.pieces), len(whole.pieces))
    return [(piece, one, f"{at}[{i}]") for i, (piece, one) in enumerate(zip(whole.pieces, told, strict=True))]


def _stated(proof: Any, at: str, among: tuple[str, ...]) -> str:
    """The theorem of a proof; that every operand moves needs no further word."""
    theorem = tagged(proof, at, "theorem", among)
    if theorem == "compulsory":
        fields(proof, at, ("theorem",))
    return theorem


def _fused(workload: Workload, redo: bool, capacity: int, proof: Any, at: str) -> tuple[int, int]:
    """Elements of one group, and transfers of intermediates that are certain."""
    spilled = 0 if redo else strict_stores(workload, capacity)
    certain = 2 * spilled * workload.groups
    among: tuple[str, ...] = ("compulsory", "segments", "lines")
    if workload.apart:
        among = (*among, "passes", "priced lines", *REDONE)
    if workload.streams == 2 and not redo:
        among = (*among, "tied segments")
    theorem = _stated(proof, at, among)
    if theorem == "tied segments":
        return _tied(workload, capacity, proof, at), 0
    if theorem == "compulsory":
        # a stored score is loaded again: both moves come on top
        return workload.compulsory // workload.groups + 2 * spilled, certain
    if theorem in ("segments", "lines", "passes", "priced lines"):
        if redo and workload.linked:
            raise RefusedError(f"{at}.theorem", "this theorem is about schedules that compute nothing again")
        if theorem == "passes":
            fields(proof, at, ("theorem", "cuttings"))
            vectors = row_and_column(workload, *_chain(workload)[:4])
            again = prove_passes(*vectors, capacity, proof["cuttings"], f"{at}.cuttings")
            return workload.compulsory // workload.groups + again, certain
        if theorem == "priced lines":
            return by_prices(_chain(workload), workload.streams, Units(1, 1, 1, 1), capacity, proof, at), certain
        if theorem == "lines":
            return _by_lines(workload, capacity, proof, at, line_forms(workload)), certain
        return _by_form(workload, capacity, proof, at) + spilled, certain
    _, k, f, *_ = _chain(workload)
    more = k * f if workload.streams == 2 else 0  # the up weights, which the gate's chain does not have
    rule = _cut_by_second if theorem == REDONE[0] else _cut_by_distinct
    return rule(*_chain(workload), capacity, proof, at) + more, certain


def _separate(workload: Workload, redo: bool, capacity: int, proof: Any, at: str) -> tuple[int, int]:
    """All intermediates go through slow memory: stored by one kernel, loaded by the next, from empty memory."""
    m, k, f, l, cells = _chain(workload)
    crossing = 2 * cells * workload.groups
    streams = workload.streams
    tied = ("tied segments",) if streams == 2 else ()
    theorem = _stated(proof, at, ("kernel by kernel", "segments", *tied))
    if theorem == "tied segments":
        return _tied(workload, capacity, proof, at) + cells, crossing
    if theorem == "segments":
        return _by_form(workload, capacity, proof, at) + cells, crossing
    fields(proof, at, ("theorem", "kernels"))
    first = Part(Box(m, streams * f, k), streams * cells * k, (streams - 1) * cells)
    second = Part(Box(m, l, f), cells * l, 0)
    compulsory = (m * k + streams * k * f + cells, cells + f * l + m * l)
    total = 0
    parts = zip((first, second), compulsory, array(proof["kernels"], f"{at}.kernels", 2, 2), strict=True)
    for number, (part, least, kernel) in enumerate(parts):
        where = f"{at}.kernels[{number}]"
        match _stated(kernel, where, ("compulsory", "segments", "lines")):
            case "segments":
                total += by_segments(part, capacity, kernel, where)
            case "lines":
                total += _by_lines(workload, capacity, kernel, where, kernel_lines(workload, number))
            case _:
                total += least
    return total, crossing


def _tied(workload: Workload, capacity: int, proof: Any, at: str) -> int:
    total = prove_tied(*_chain(workload)[:4], proof, at)
    h: int = proof["segments"]
    return ceil(total - (h - 1) * capacity)


def _by_form(workload: Workload, capacity: int, proof: Any, at: str, taken: int = 0) -> int:
    """By the theorem in the form that the proof names; ``taken`` values are begun or completed free besides."""
    forms = _parts(workload)
    part = forms[choice(proof.get("form"), f"{at}.form", tuple(forms))]
    return by_segments(part, capacity, proof, at, ("form",)) - taken


def _by_lines(workload: Workload, capacity: int, proof: Any, at: str, forms: LineForms) -> int:
    """By the line theorem, in the form that the proof names."""
    if not forms:
        raise RefusedError(f"{at}.theorem", f"this theorem is not about such a {workload.family}")
    kinds, work, more = forms[choice(proof.get("form"), f"{at}.form", tuple(forms))]
    return by_lines(kinds, work, capacity, proof, at) + more


def line_forms(workload: Workload) -> LineForms:
    """The ways to apply the line theorem to a workload: the kinds of its values, its products, what moves besides."""
    size = workload.size
    if workload.family == "gemm":
        m, n, k = size["m"], size["n"], size["k"]
        # C += A B: each cell is loaded once before its first update
        cells = Lines(m * n, k, 2 if workload.option["accumulate_into"] else 1, again=2)
        return {"product": ([Lines(m * k, n), Lines(k * n, m), cells], m * n * k, 0)}
    if workload.linked and not workload.pieces:
        return _chain_lines(workload)
    if workload.family != "conv2d" or size["kernel"] > MAX_KERNEL:
        return {}
    channels, images = size["out_channels"], size["batch"] * size["in_channels"]
    pixels, taps = workload.operands["Y"].elements // channels, workload.operands["W"].elements // channels
    kinds: list[Kind] = [
        Lines(positions * images, pairs * channels, overlap=pairs)
        for pairs, positions in read_times(size["height"], size["width"], size["kernel"], size["stride"])
    ]
    kinds += [Lines(channels * taps, pixels), Lines(channels * pixels, taps, again=2)]
    return {"convolution": (kinds, pixels * channels * taps, 0)}


def _chain_lines(workload: Workload) -> LineForms:
    """Two products in a row: nothing where a mask leaves cells out, since lines then differ in length."""
    if not workload.apart:
        return {"latent": _latent_lines(workload)}
    m, k, f, l, cells = _chain(workload)
    if cells != m * f:
        return {}
    outputs, hidden = Lines(m * l, f, again=2), Hidden(cells, k, l)
    plain: list[Kind] = [Lines(m * k, f), Lines((k + l) * f, m), outputs, hidden]
    if workload.streams == 1:
        return {"chain": (plain, cells * (k + l), 0)}
    # gate and up columns side by side; the up cells begin free and end nowhere
    both: list[Kind] = [Lines(m * k, 2 * f), Lines((2 * k + l) * f, m), outputs, hidden]
    both.append(Lines(cells, k, 0, again=2))
    return {"gated chain": (both, cells * (2 * k + l), 0), "gate's chain": (plain, cells * (k + l), k * f)}


def _latent_lines(workload: Workload) -> tuple[list[Kind], int, int]:
    """Of the keys that all queries see, others loaded besides; a value of both products stands for a line of each."""
    m, k, f, l = workload.latent_sides
    late = workload.size["queries"] - 1 if workload.option["causal"] else 0
    f -= late
    inputs = [Lines(m * k, f), Lines(l * f, 2 * m, overlap=2), Lines((k - l) * f, m)]
    return [*inputs, Lines(m * l, f, again=2), Hidden(m * f, k, l)], m * f * (k + l), late * k


def kernel_lines(workload: Workload, number: int) -> LineForms:
    """The line theorem for one of two kernels with H in slow memory between them."""
    m, k, f, l, cells = _chain(workload)
    if cells != m * f:
        return {}
    if number == 1:
        return {"second kernel": ([Lines(cells, l), Lines(f * l, m), Lines(m * l, f, again=2)], cells * l, 0)}
    columns = workload.streams * f
    kinds = [Lines(m * k, columns), Lines(k * columns, m), Lines(cells, k, again=2)]
    if workload.streams == 2:
        kinds.append(Lines(cells, k, 0, again=2))
    return {"first kernel": (kinds, m * columns * k, 0)}


def _chain(workload: Workload) -> tuple[int, int, int, int, int]:
    """m, k, f, l and the cells of H, for H = act(A B), Y = H D with A m x k, B k x f, D f x l; of one group.

    What is proved of a chain charges B and D apart, so it is refused for a workload where they are one matrix.
    """
    size = workload.size
    if not workload.apart:
        raise RefusedError("statement.workload.family", "this theorem is about two products with operands of their own")
    if workload.family == "ffn":
        m, f = size["tokens"], size["hidden"]
        return m, size["d_model"], f, size["d_out"], m * f
    return workload.rows_of_group, size["head_dim"], size["keys"], size["value_dim"], workload.pairs


def _parts(workload: Workload) -> dict[str, Part]:
    """The ways to apply the theorem to a workload, by name."""
    size = workload.size
    if workload.family == "gemm":
        m, n, k = size["m"], size["n"], size["k"]
        # C += A B begins no cell free: every cell is loaded once more
        return {"product": Part(Box(m, n, k), m * n * k, 0, m * n if workload.option["accumulate_into"] else 0)}
    if workload.family == "conv2d":
        pixels = workload.operands["Y"].elements // size["out_channels"]
        taps = workload.operands["W"].elements // size["out_channels"]
        overlap = ((size["kernel"] + size["stride"] - 1) // size["stride"]) ** 2
        box = Box(pixels, size["out_channels"], taps, overlap)
        return {"convolution": Part(box, pixels * size["out_channels"] * taps, 0)}
    if not workload.apart:  # a value (j, t) of the latent is met at t and, where it is a value too, at k + t
        m, k, f, l = workload.latent_sides
        return {"latent": Part(Box(f, m, k + l, 2), workload.pairs * (k + l), workload.pairs)}
    m, k, f, l, cells = _chain(workload)
    # a product of A B is a triple (i, j, t), one of H D a triple (i, j, k + q): one box
    plain = Part(Box(m, f, k + l), cells * (k + l), cells)
    if workload.streams == 1:
        return {"chain": plain}
    # the up cells are further columns of the box; or: forget them, and load each up weight
    both = Part(Box(m, 2 * f, k + l), m * f * (2 * k + l), 2 * m * f)
    return {"gated chain": both, "gate's chain": Part(plain.box, plain.products, plain.cells, k * f)}


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


def by_segments(part: Part, capacity: int, proof: Any, at: str, besides: tuple[str, ...] = ()) -> int:
    """What the theorem says of one part; ``besides`` are further keys of the proof."""

    def prove(products: int, share: Any, where: str) -> Fraction:
        return prove_touched(part.box, products, share, where)

    touched, h = _touched(part.products, proof, at, prove, besides)
    # the values touched are a count: round up
    return ceil(touched) - (h - 1) * capacity - part.cells + part.more


def _cut_by_second(m: int, k: int, f: int, l: int, cells: int, capacity: int, proof: Any, at: str) -> int:
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


def _cut_by_distinct(m: int, k: int, f: int, l: int, cells: int, capacity: int, proof: Any, at: str) -> int:
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
        kept = bound - Fraction(v, k)
        if kept < capacity:
            raise RefusedError(f"{where}.touched", "too few for more segments to cost nothing")
        _prove_kept(box, k, v, kept, share["leaves"], f"{where}.leaves")
        return bound

    touched, h = _touched(work, proof, at, prove)
    return ceil(touched) - (h - 1) * capacity - cells


def _prove_kept(box: Box, k: int, start: int, kept: Fraction, proof: Any, at: str) -> None:
    """Values touched less v / k are at least ``kept`` for every v from ``start`` to twice that."""
    end = 2 * start
    for number, leaf in enumerate(array(proof, at, 1, MAX_LEAVES)):
        where = f"{at}[{number}]"
        fields(leaf, where, ("to", "multipliers"))
        to = integer(leaf["to"], f"{where}.to", start, end)
        for v in (start, to):  # with the multipliers fixed, the bound is concave in v
            prove_by_means(kept + Fraction(v, k), box.least(v), Fraction(v * v), leaf["multipliers"], where)
        start = to
    equal(start, end, at, "end of the last leaf")
