"""Lower bounds: the theorems, and the arithmetic that takes a proof of the geometry to the claimed number.

Cut a schedule into h segments. A value touched in a segment was held at its start (at most S at each of h - 1 cuts),
or is loaded in it, or is a cell begun in it (once in all). So

    loads + stores >= sum of values touched - (h - 1) S - cells begun that need not be stored.

All numbers but h and the proofs of the geometry are recomputed from the statement.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .geometry import MAX_LEAVES, Box, prove_by_means, prove_redone, prove_touched
from .reading import RefusedError, array, choice, equal, fields, fraction, integer
from .statement import Workload
from .tied import prove_tied

MAX_SEGMENTS = 2**128


@dataclass(frozen=True)
class Part:
    """One application of the theorem: products in a box, cells begun and not stored, and what moves besides."""

    box: Box
    products: int
    cells: int
    more: int = 0


def check_lower(workload: Workload, claim: dict[str, Any], at: str) -> str:
    """Check one claim of a lower bound and say it in a sentence.

    Raises
    ------
    RefusedError
        The first step that fails.
    """
    fields(claim, at, ("claim", "game", "capacity_elements", "elements", "bytes", "proof"))
    game = fields(claim["game"], f"{at}.game", ("recompute", "kernels"))
    redo = choice(game["recompute"], f"{at}.game.recompute", ("allowed", "forbidden")) == "allowed"
    separate = choice(game["kernels"], f"{at}.game.kernels", ("fused", "separate")) == "separate"
    if separate and workload.family not in ("ffn", "attention"):
        raise RefusedError(f"{at}.game.kernels", f"a {workload.family} is one kernel")
    capacity = integer(claim["capacity_elements"], f"{at}.capacity_elements", 3)
    rule = _separate if separate else _fused
    group, hidden = rule(workload, redo, capacity, claim["proof"], f"{at}.proof")
    elements = workload.groups * group
    equal(claim["elements"], elements, f"{at}.elements", "elements moved, at least")
    equal(claim["bytes"], workload.bytes_of(elements, hidden), f"{at}.bytes", "bytes moved, at least")
    if workload.family in ("gemm", "conv2d"):
        how = "whether or not values are computed again"
    else:
        how = f"{'kernel by kernel' if separate else 'fused in any way'}, recomputation {game['recompute']}"
    return (
        f"every schedule of {workload.label} that holds at most {capacity:,} values moves at least "
        f"{elements:,} elements, {claim['bytes']:,} bytes ({how})"
    )


def _theorem(proof: Any, at: str, among: tuple[str, ...]) -> str:
    if type(proof) is not dict:
        raise RefusedError(at, "expected an object")
    return choice(proof.get("theorem"), f"{at}.theorem", among)


def _fused(workload: Workload, redo: bool, capacity: int, proof: Any, at: str) -> tuple[int, int]:
    """Elements of one group, and transfers of intermediates that are certain."""
    least = workload.compulsory // workload.groups
    spilled = 0 if redo else strict_stores(workload, capacity)
    among: tuple[str, ...] = ("compulsory", "segments")
    if workload.family in ("ffn", "attention"):
        among = (*among, "recompute, cut by second products", "recompute, cut by distinct products")
    if workload.option.get("gated") and not redo:
        among = (*among, "tied segments")
    theorem = _theorem(proof, at, among)
    if theorem == "tied segments":
        return _tied(workload, capacity, proof, at), 0
    if theorem == "compulsory":
        fields(proof, at, ("theorem",))
        # a stored score is loaded again: both moves come on top
        return least + 2 * spilled, 2 * spilled * workload.groups
    if theorem == "segments":
        if redo and workload.family in ("ffn", "attention"):
            raise RefusedError(f"{at}.theorem", "this theorem is about schedules that compute nothing again")
        part = _parts(workload)[_form(workload, proof, at)]
        return _segments(part, capacity, proof, at, ("form",)) + spilled, 2 * spilled * workload.groups
    m, k, f, l, cells = _chain(workload)
    more = k * f if workload.option.get("gated") else 0  # the up weights, which the gate's chain does not have
    rule = _cut_by_second if theorem == "recompute, cut by second products" else _cut_by_distinct
    return rule(m, k, f, l, cells, capacity, proof, at) + more, 2 * spilled * workload.groups


def _separate(workload: Workload, redo: bool, capacity: int, proof: Any, at: str) -> tuple[int, int]:
    """All intermediates go through slow memory: stored by one kernel, loaded by the next, from empty memory."""
    m, k, f, l, cells = _chain(workload)
    crossing = 2 * cells * workload.groups
    tied = ("tied segments",) if workload.option.get("gated") else ()
    theorem = _theorem(proof, at, ("kernel by kernel", "segments", *tied))
    if theorem == "tied segments":
        return _tied(workload, capacity, proof, at) + cells, crossing
    if theorem == "segments":
        part = _parts(workload)[_form(workload, proof, at)]
        return _segments(part, capacity, proof, at, ("form",)) + cells, crossing
    fields(proof, at, ("theorem", "kernels"))
    streams = 2 if workload.option.get("gated") else 1
    first = Part(Box(m, streams * f, k), streams * cells * k, (streams - 1) * cells)
    second = Part(Box(m, l, f), cells * l, 0)
    least = (m * k + streams * k * f + cells, cells + f * l + m * l)
    total = 0
    parts = zip((first, second), least, array(proof["kernels"], f"{at}.kernels", 2, 2), strict=True)
    for number, (part, compulsory, kernel) in enumerate(parts):
        where = f"{at}.kernels[{number}]"
        if _theorem(kernel, where, ("compulsory", "segments")) == "compulsory":
            fields(kernel, where, ("theorem",))
            total += compulsory
        else:
            total += _segments(part, capacity, kernel, where)
    return total, crossing


def _tied(workload: Workload, capacity: int, proof: Any, at: str) -> int:
    m, k, f, l, _ = _chain(workload)
    total = prove_tied(m, k, f, l, proof, at)
    return _whole(total - (proof["segments"] - 1) * capacity)


def _form(workload: Workload, proof: Any, at: str) -> str:
    return choice(proof.get("form"), f"{at}.form", tuple(_parts(workload)))


def _chain(workload: Workload) -> tuple[int, int, int, int, int]:
    """m, k, f, l and the cells of H, for H = act(A B), Y = H D with A m x k, B k x f, D f x l; of one group."""
    size = workload.size
    if workload.family == "ffn":
        m, f = size["tokens"], size["hidden"]
        return m, size["d_model"], f, size["d_out"], m * f
    return workload.rows, size["head_dim"], size["keys"], size["value_dim"], workload.pairs


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
    m, k, f, l, cells = _chain(workload)
    # a product of A B is a triple (i, j, t), one of H D a triple (i, j, k + q): one box
    plain = Part(Box(m, f, k + l), cells * (k + l), cells)
    if not workload.option.get("gated"):
        return {"chain": plain}
    # the up cells are further columns of the box; or: forget them, and load each up weight
    both = Part(Box(m, 2 * f, k + l), m * f * (2 * k + l), 2 * m * f)
    return {"gated chain": both, "gate's chain": Part(plain.box, plain.products, plain.cells, k * f)}


def _shares(work: int, segments: int, proofs: list[Any], at: str) -> list[tuple[int, int, Any, str]]:
    """(products, how many segments, proof, where): the floor and, where it does not divide, the ceiling."""
    small, longer = divmod(work, segments)
    wanted = [(small, segments - longer)] + ([(small + 1, longer)] if longer else [])
    equal(len(proofs), len(wanted), at, "sizes of segments")
    found = []
    for number, ((products, count), proof) in enumerate(zip(wanted, proofs, strict=True)):
        where = f"{at}[{number}]"
        if type(proof) is not dict:
            raise RefusedError(where, "expected an object")
        equal(proof.get("products"), products, where, "products in a segment")
        equal(proof.get("segments"), count, where, "segments of this size")
        found.append((products, count, proof, where))
    return found


def _segments(part: Part, capacity: int, proof: Any, at: str, besides: tuple[str, ...] = ()) -> int:
    fields(proof, at, ("theorem", "segments", "shares", *besides))
    h = integer(proof["segments"], f"{at}.segments", 1, min(part.products, MAX_SEGMENTS))
    shares = array(proof["shares"], f"{at}.shares", 1, 2)
    touched = Fraction(0)
    for products, count, share, where in _shares(part.products, h, shares, f"{at}.shares"):
        touched += count * prove_touched(part.box, products, share, where)
    return _whole(touched) - (h - 1) * capacity - part.cells + part.more


def _whole(touched: Fraction) -> int:
    """The values touched are a count: round up."""
    return -(-touched.numerator // touched.denominator)


def _cut_by_second(m: int, k: int, f: int, l: int, cells: int, capacity: int, proof: Any, at: str) -> int:
    """Cells touched are at most held + loaded + (distinct products of A B) / k. For v products of H D in a segment
    and e cells touched, values touched less that are linear in the products of A B, from 0 to k e: at least
    e + v G(e), as in one product of m x f x l, or (v + k e) G(e)."""
    fields(proof, at, ("theorem", "segments", "shares"))
    h = integer(proof["segments"], f"{at}.segments", 1, min(cells * l, MAX_SEGMENTS))
    touched = Fraction(0)
    shares = array(proof["shares"], f"{at}.shares", 1, 2)
    for v, count, share, where in _shares(cells * l, h, shares, f"{at}.shares"):
        fields(share, where, ("products", "segments", "touched", "multipliers", "leaves"))
        bound = fraction(share["touched"], f"{where}.touched")
        if v:
            prove_by_means(bound, Box(m, f, l).least(v), Fraction(v * v), share["multipliers"], where)
            prove_redone(m, f, k, l, v, bound, share["leaves"], f"{where}.leaves")
        elif bound:
            raise RefusedError(where, "a segment without products may touch nothing")
        touched += count * bound
    return _whole(touched - (h - 1) * capacity)


def _cut_by_distinct(m: int, k: int, f: int, l: int, cells: int, capacity: int, proof: Any, at: str) -> int:
    """End segments at P + 1 distinct products, as often as needed for h segments to make V, then at P, and the last
    at P to 2 P. Each touches values less cells excused (v / k): kept(v) at least, less l / k for all cells at the end.
    kept >= kept(P) >= S from P to 2 P, proved on intervals at whose ends a concave bound is looked at; so segments
    beyond h cost nothing, and what is left is the bound without recomputation."""
    fields(proof, at, ("theorem", "segments", "shares"))
    work = cells * (k + l)
    h = integer(proof["segments"], f"{at}.segments", 1, min(work, MAX_SEGMENTS))
    touched, box = Fraction(0), Box(m, f, k + l)
    proofs = array(proof["shares"], f"{at}.shares", 1, 2)
    for number, (v, count, share, where) in enumerate(_shares(work, h, proofs, f"{at}.shares")):
        if number:
            touched += count * prove_touched(box, v, share, where)
            continue
        fields(share, where, ("products", "segments", "touched", "leaves"))
        bound = fraction(share["touched"], f"{where}.touched")
        kept = bound - Fraction(v, k)
        if kept < capacity:
            raise RefusedError(f"{where}.touched", "too few for more segments to cost nothing")
        _prove_kept(box, k, v, kept, share["leaves"], f"{where}.leaves")
        touched += count * bound
    return _whole(touched) - (h - 1) * capacity - cells


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


def strict_stores(workload: Workload, capacity: int) -> int:
    """Scores of a group that a strict softmax must store.

    When the last score of a row enters its sum, all scores of the row are computed and none is used; beside the sum
    at most S - 1 are held.
    """
    if workload.family != "attention" or not workload.option["strict"]:
        return 0
    queries, keys = workload.size["queries"], workload.size["keys"]
    over = max(0, keys + 1 - capacity)  # of the last query, which sees all keys
    if not workload.option["causal"]:
        return workload.sharing * queries * over
    rows = min(queries, over)  # over, over - 1, ...: one key less for each query before
    return workload.sharing * (rows * (2 * over - rows + 1) // 2)
