"""Lower bounds: the theorems, and the arithmetic that takes a proof of the geometry to the claimed number.

The theorems are in `theorems`; all numbers but h and the proofs of the geometry are recomputed from the statement.

Workloads made of parts (groups of products, a transformer layer): fix a part and cut by its work. A value that its
operations touch may then also be an operand that another part computes and that was completed in the segment (once in
all), and its results may be used by another part instead of being stored. So

    loads + stores >= sum of values touched - (h - 1) S - cells initialised and not stored - operands that another part
    computes.

A load of a value that one part computes and another uses belongs to the first while the value is incomplete, to the
second afterwards; every other transfer belongs to the part whose weight, input or output it moves. No transfer counts
twice, so the parts add up, each with all of S. This needs every value computed once where a part uses what another
computes.

In bytes, any theorem on the part alone holds, less what is handed over: in a schedule of all parts keep the values of
one, load what is handed to it when that is complete and store what it hands on when that is. This is a schedule of the
part alone, and what it moves besides are transfers that belong to the part. Where a part has outputs and hands cells
on, both count as the narrower: a schedule in widths is one in narrower widths, and each output is stored complete once,
which is as much more as it is wider.

In the backward pass of a network the second layer hands dH to the first, where it becomes dZ; H, unless that is what
was saved, begins free where it is computed, as if it were handed over. The values of gate and up that were saved are
read by the second layer besides. Or the middle, dH and what reads dZ, is bounded as one.
"""

from __future__ import annotations

from typing import Any

from .reading import RefusedError, array, choice, equal, fields, integer, tagged
from .scaled import by_formats
from .statement import ALIKE, FFN_BACKWARD, ClaimedWidths, Piece, Workload, chain_of, read_widths, strict_stores
from .theorems import HANDED_OVER, IN_BYTES, ONE_KERNEL, REDONE, KernelClaim, fused_theorems


def _game(workload: Workload, claim: dict[str, Any], at: str) -> tuple[bool, bool, str]:
    """Whether values may be computed again, whether kernels are separate, and both in words."""
    game = fields(claim["game"], f"{at}.game", ("recompute", "kernels"))
    redo = choice(game["recompute"], f"{at}.game.recompute", ("allowed", "forbidden")) == "allowed"
    separate = choice(game["kernels"], f"{at}.game.kernels", ("fused", "separate")) == "separate"
    if separate and not workload.separate_operands:
        raise RefusedError(f"{at}.game.kernels", f"a {workload.family} is one kernel")
    how = "whether or not values are computed again"
    if workload.linked:
        how = f"{'kernel by kernel' if separate else 'fused in any way'}, recomputation {game['recompute']}"
    return redo, separate, how


def check_lower(workload: Workload, claim: dict[str, Any], at: str) -> str:
    """Check one claim of a lower bound and say it in a sentence."""
    fields(claim, at, ("claim", "game", "capacity_elements", "elements", "bytes", "proof"))
    if workload.formats:
        raise RefusedError(f"{at}.claim", f"values of a {workload.family} differ in width: it is counted in bytes")
    redo, separate, how = _game(workload, claim, at)
    if separate and redo and workload.pieces:
        raise RefusedError(f"{at}.game", "kernel by kernel is about a layer whose values are computed once")
    capacity = integer(claim["capacity_elements"], f"{at}.capacity_elements", 3)
    proof, where = claim["proof"], f"{at}.proof"
    if workload.pieces and not (workload.family == FFN_BACKWARD and _of_the_middle(proof)):
        elements, total = (_kernel_by_kernel if separate else _added)(workload, redo, capacity, proof, where)
    else:
        group, hidden = (_separate if separate else _fused)(workload, redo, capacity, proof, where)
        elements = workload.groups * group
        total = workload.bytes_of(elements, hidden)
    equal(claim["elements"], elements, f"{at}.elements", "elements moved, at least")
    equal(claim["bytes"], total, f"{at}.bytes", "bytes moved, at least")
    return (
        f"every schedule of {workload.label} that holds at most {capacity:,} values moves at least "
        f"{elements:,} elements, {total:,} bytes ({how})"
    )


def _of_the_middle(proof: Any) -> bool:
    """Whether a proof is about the middle of a backward pass, which uses what one part hands to the other."""
    return type(proof) is dict and proof.get("theorem") in ("segments", "lines")


def check_bytes(workload: Workload, claim: dict[str, Any], at: str) -> str:
    """Check one claim of a lower bound in bytes, where partial sums have a width of their own."""
    fields(claim, at, ("claim", "game", "widths_bytes", "capacity_bytes", "bytes", "proof"))
    redo, separate, how = _game(workload, claim, at)
    widths = read_widths(workload, claim["widths_bytes"], f"{at}.widths_bytes")
    if separate and workload.family == "layer":
        raise RefusedError(f"{at}.game.kernels", "no theorem in bytes is about a layer kernel by kernel")
    if redo and workload.linked and not workload.formats:
        raise RefusedError(f"{at}.game.recompute", "these theorems are about schedules that compute nothing again")
    capacity = integer(claim["capacity_bytes"], f"{at}.capacity_bytes", 3)
    proof, where = claim["proof"], f"{at}.proof"
    fields(proof, where, ("theorem", "kernels"))
    choice(proof["theorem"], f"{where}.theorem", ("segments in bytes",))
    whole = workload.family == FFN_BACKWARD and type(proof["kernels"]) is list and len(proof["kernels"]) == 1
    if workload.formats:
        (item,) = array(proof["kernels"], f"{where}.kernels", 1, 1)
        moved = by_formats(workload, widths, capacity, redo, item, f"{where}.kernels[0]")
    elif whole:  # of its middle
        moved = KernelClaim(workload, widths, capacity).moves(proof["kernels"][0], f"{where}.kernels[0]", ("lines",))
    else:
        kernels = kernels_of(workload, widths, capacity, separate)
        moved = _kernels_added(workload, widths, kernels, proof["kernels"], f"{where}.kernels")
    equal(claim["bytes"], moved, f"{at}.bytes", "bytes moved, at least")
    single = workload.formats and not workload.linked
    inner = "" if single else f" ({widths.hidden} of an intermediate)"
    return (
        f"every schedule of {workload.label} in {capacity:,} bytes of fast memory, where a partial sum takes "
        f"{widths.partial} bytes{inner}, moves at least {moved:,} bytes ({how})"
    )


def _kernels_added(
    workload: Workload, widths: ClaimedWidths, kernels: list[tuple[KernelClaim, int]], proof: Any, at: str
) -> int:
    """Bytes of all kernels, parts or groups; a part that is handed values, or hands them on, has these free."""
    spec = array(proof, at, len(kernels), len(kernels))
    linked = workload.linked and bool(workload.pieces)
    total = 0
    for number, ((requested, count), item) in enumerate(zip(kernels, spec, strict=True)):
        moved = requested.moves(item, f"{at}[{number}]", IN_BYTES)
        if linked:
            piece = workload.pieces[number]
            if item["theorem"] == "compulsory":
                moved = widths.read * piece.least + (widths.written - widths.read) * piece.written
            else:
                wider = widths.written - requested.widths.written  # of complete outputs
                moved += wider * piece.written - widths.read * piece.taken
        total += count * moved
    return total


def kernels_of(
    workload: Workload, widths: ClaimedWidths, capacity: int, separate: bool
) -> list[tuple[KernelClaim, int]]:
    """What is bounded by itself, and how many equal ones there are."""
    if workload.pieces:  # each by itself; what is handed on is an intermediate
        claims = []
        for piece in workload.pieces:
            of = widths if piece.written or not workload.linked else widths.handing_on
            of = widths.narrower if piece.hands_on else of
            claims.append((KernelClaim(piece.workload, of, capacity), piece.count))
        return claims
    if not separate:
        return [(KernelClaim(workload, widths, capacity), workload.groups)]
    inside = KernelClaim(workload, widths.handing_on, capacity, 0), KernelClaim(workload, widths, capacity, 1)
    return [(requested, workload.groups) for requested in inside]


def _added(whole: Workload, redo: bool, capacity: int, proof: Any, at: str) -> tuple[int, int]:
    """Elements and bytes of all parts together."""
    among = ("compulsory",) if redo and whole.linked else ("compulsory", "parts")
    elements = whole.compulsory
    if tagged(proof, at, "theorem", among) == "compulsory":
        fields(proof, at, ("theorem",))
    else:
        fields(proof, at, ("theorem", "parts"))
        elements = 0
        for piece, item, where in _each(whole, proof["parts"], f"{at}.parts"):
            known = HANDED_OVER if piece.taken else ONE_KERNEL
            least = KernelClaim(piece.workload, ALIKE, capacity).moves(item, where, known)
            # its own weights, inputs and outputs; or no first load and no last store of what is handed over
            least = piece.least if item["theorem"] == "compulsory" else least - piece.taken
            elements += piece.count * least
    return elements, whole.bytes_of(elements)


def _kernel_by_kernel(whole: Workload, redo: bool, capacity: int, proof: Any, at: str) -> tuple[int, int]:
    """Elements and bytes, when each part is a kernel that starts from empty memory."""
    tagged(proof, at, "theorem", ("kernel by kernel",))
    fields(proof, at, ("theorem", "kernels"))
    elements = total = 0
    for piece, item, where in _each(whole, proof["kernels"], f"{at}.kernels"):
        group, hidden = _fused(piece.workload, False, capacity, item, where)
        elements += piece.count * group
        total += piece.workload.bytes_of(piece.count * group, hidden)
    return elements, total


def _each(whole: Workload, proof: Any, at: str) -> list[tuple[Piece, Any, str]]:
    spec = array(proof, at, len(whole.pieces), len(whole.pieces))
    return [(piece, item, f"{at}[{i}]") for i, (piece, item) in enumerate(zip(whole.pieces, spec, strict=True))]


def _fused(workload: Workload, redo: bool, capacity: int, proof: Any, at: str) -> tuple[int, int]:
    """Elements of one group, and transfers of intermediates that are certain."""
    spilled = 0 if redo else strict_stores(workload, capacity)
    theorem = tagged(proof, at, "theorem", fused_theorems(workload, redo))
    if redo and workload.linked and theorem not in ("compulsory", *REDONE):
        raise RefusedError(f"{at}.theorem", "this theorem is about schedules that compute nothing again")
    # a stored score is loaded again: both moves come on top, but for loads that a theorem charges
    on_top = {"compulsory": 2 * spilled, "segments": spilled}.get(theorem, 0)
    return KernelClaim(workload, ALIKE, capacity).moves(proof, at, (theorem,)) + on_top, 2 * spilled * workload.groups


def in_one_memory(workload: Workload, capacity: int, proof: Any, at: str) -> int:
    """Elements of one group in a single memory, fused, nothing computed again."""
    return _fused(workload, False, capacity, proof, at)[0]


def _separate(workload: Workload, redo: bool, capacity: int, proof: Any, at: str) -> tuple[int, int]:
    """All intermediates go through slow memory: stored by one kernel, loaded by the next, from empty memory."""
    cells = chain_of(workload)[4]
    crossing = 2 * cells * workload.groups
    gated = ("tied segments",) if workload.streams == 2 else ()
    theorem = tagged(proof, at, "theorem", ("kernel by kernel", "segments", *gated))
    if theorem != "kernel by kernel":
        return KernelClaim(workload, ALIKE, capacity).moves(proof, at, (theorem,)) + cells, crossing
    fields(proof, at, ("theorem", "kernels"))
    spec = array(proof["kernels"], f"{at}.kernels", 2, 2)
    total = 0
    for number, item in enumerate(spec):
        total += KernelClaim(workload, ALIKE, capacity, number).moves(item, f"{at}.kernels[{number}]", ONE_KERNEL)
    return total, crossing
