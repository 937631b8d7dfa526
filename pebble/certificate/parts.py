"""Workloads made of parts: groups of matrix products, a transformer layer. The bounds of the parts add up.

Fix a part and cut the schedule by its work into h segments. A value that its operations touch in a segment was held at
the segment's start (at most S at each of h - 1 cuts), or is loaded in it before it is touched, or is a cell begun in
it (once in all), or is an operand that another part computes and that was completed in it (once in all). So

    loads + stores >= sum of values touched - (h - 1) S - cells begun and not stored - operands that another part
    computes.

A load of a value that one part computes and another uses belongs to the first while the value is incomplete, to the
second afterwards; every other transfer belongs to the part whose weight, input or output it moves. No transfer counts
twice, so the parts add up, each with all of S. This needs every value computed once where a part uses what another
computes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from .lower import Part, _fused, _parts, _segments
from .reading import RefusedError, array, choice, equal, fields, flag, integer
from .schedules import _moved
from .statement import MAX_DIMENSION, WIDTHS, Operand, Workload, read_workload
from .upper import Moved, check_claim

MAX_GROUPS = 4096
_LAYER = ("tokens", "d_model", "hidden", "heads", "kv_heads", "head_dim", "value_dim")


@dataclass(frozen=True)
class Piece:
    """One part, or several equal ones.

    Attributes
    ----------
    name : str
    workload : Workload
        What it computes, as a workload of its own.
    forms : dict
        The ways to apply the theorem to it, by name.
    least : int
        Values of the whole that it alone moves: weights, inputs and outputs.
    count : int
    alone : int
        How many of the part its workload holds (groups of heads).
    """

    name: str
    workload: Workload
    forms: dict[str, Part]
    least: int
    count: int
    alone: int = 1


@dataclass(frozen=True)
class Whole:
    """A workload of parts: what it moves at least, its parts, and whether they use each other's results."""

    workload: Workload
    label: str
    pieces: tuple[Piece, ...]
    linked: bool


def read_whole(value: dict[str, Any], at: str) -> Whole:
    """The workload of a statement whose family is one of `FAMILIES`."""
    return FAMILIES[value["family"]](value, at)


def _widths(value: dict[str, Any], at: str) -> tuple[int, int]:
    wide_in = WIDTHS[choice(value["dtype"], f"{at}.dtype", WIDTHS)]
    return wide_in, WIDTHS[choice(value["out_dtype"], f"{at}.out_dtype", WIDTHS)]


def _grouped(value: dict[str, Any], at: str) -> Whole:
    fields(value, at, ("family", "dtype", "out_dtype", "rows", "n", "k", "accumulate_into"))
    n, k = (integer(value[x], f"{at}.{x}", 1, MAX_DIMENSION) for x in "nk")
    entries = array(value["rows"], f"{at}.rows", 1, MAX_GROUPS)
    rows = [integer(m, f"{at}.rows[{i}]", 1, MAX_DIMENSION) for i, m in enumerate(entries)]
    adds = flag(value["accumulate_into"], f"{at}.accumulate_into")
    wide_in, wide_out = _widths(value, at)
    types = {"dtype": value["dtype"], "out_dtype": value["out_dtype"], "accumulate_into": adds}
    pieces = []
    for m, count in Counter(rows).items():
        one = read_workload({"family": "gemm", "m": m, "n": n, "k": k, **types}, at)
        pieces.append(Piece(f"m={m}", one, _parts(one), one.compulsory, count))
    operands = {
        "A": Operand(sum(rows) * k, wide_in, 1),
        "B": Operand(len(rows) * k * n, wide_in, 1),
        "C": Operand(sum(rows) * n, wide_out, 2 if adds else 1),
    }
    size = {"groups": len(rows), "n": n, "k": k}
    whole = Workload("grouped", size, {"accumulate_into": adds}, operands, wide_in, wide_out)
    label = f"grouped rows={','.join(map(str, rows))} n={n} k={k}" + (" accumulate_into" if adds else "")
    return Whole(whole, label, tuple(pieces), False)


def _layer(value: dict[str, Any], at: str) -> Whole:
    fields(value, at, ("family", "dtype", "out_dtype", "gated", *_LAYER))
    size = {name: integer(value[name], f"{at}.{name}", 1, MAX_DIMENSION) for name in _LAYER}
    gated = flag(value["gated"], f"{at}.gated")
    wide_in, wide_out = _widths(value, at)
    t, d, f = size["tokens"], size["d_model"], size["hidden"]
    heads, shared, key, val = (size[x] for x in ("heads", "kv_heads", "head_dim", "value_dim"))
    inner = {"dtype": value["dtype"], "out_dtype": value["dtype"]}
    width = (heads + shared) * key + shared * val
    qkv = read_workload({"family": "gemm", "m": t, "n": width, "k": d, **inner, "accumulate_into": False}, at)
    told = {"queries": t, "keys": t, "head_dim": key, "value_dim": val, "heads": heads, "kv_heads": shared, "batch": 1}
    attention = read_workload({"family": "attention", **told, **inner, "causal": True, "softmax": "online"}, at)
    out = read_workload({"family": "gemm", "m": t, "n": d, "k": heads * val, **inner, "accumulate_into": False}, at)
    types = {"dtype": value["dtype"], "out_dtype": value["out_dtype"]}
    told = {"tokens": t, "d_model": d, "hidden": f, "d_out": d}
    mlp = read_workload({"family": "ffn", **told, **types, "gated": gated}, at)
    # what is not the whole's own: results that another part uses, operands that another part computes
    taken = {
        "qkv": t * width,
        "attention": attention.compulsory // attention.groups,
        "o": t * heads * val + t * d,
        "mlp": t * d,
    }
    own = {"qkv": t * d + d * width, "attention": 0, "o": heads * val * d, "mlp": mlp.compulsory - t * d}
    pieces = tuple(
        Piece(name, one, _less(_parts(one), taken[name]), own[name], one.groups, one.groups)
        for name, one in (("qkv", qkv), ("attention", attention), ("o", out), ("mlp", mlp))
    )
    operands = {
        "X": Operand(t * d, wide_in, 1),
        "weights": Operand(d * width + heads * val * d + (3 if gated else 2) * d * f, wide_in, 1),
        "Y": Operand(t * d, wide_out, 1),
    }
    whole = Workload("layer", size, {"gated": gated}, operands, wide_in, wide_out)
    return Whole(whole, whole.label, pieces, True)


def _less(forms: dict[str, Part], taken: int) -> dict[str, Part]:
    return {name: Part(p.box, p.products, p.cells + taken, p.more) for name, p in forms.items()}


FAMILIES = {"grouped": _grouped, "layer": _layer}


def check_lower_of_parts(whole: Whole, claim: dict[str, Any], at: str) -> str:
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
    capacity = integer(claim["capacity_elements"], f"{at}.capacity_elements", 3)
    proof = claim["proof"]
    if type(proof) is not dict:
        raise RefusedError(f"{at}.proof", "expected an object")
    if separate:
        if not whole.linked or redo:
            raise RefusedError(f"{at}.game", "kernel by kernel is about a layer whose values are computed once")
        elements, total = _kernel_by_kernel(whole, capacity, proof, f"{at}.proof")
    else:
        among = ("compulsory",) if redo and whole.linked else ("compulsory", "parts")
        theorem = choice(proof.get("theorem"), f"{at}.proof.theorem", among)
        if theorem == "compulsory":
            fields(proof, f"{at}.proof", ("theorem",))
            elements = whole.workload.compulsory
        else:
            elements = _added(whole, capacity, proof, f"{at}.proof")
        total = whole.workload.bytes_of(elements)
    equal(claim["elements"], elements, f"{at}.elements", "elements moved, at least")
    equal(claim["bytes"], total, f"{at}.bytes", "bytes moved, at least")
    how = "whether or not values are computed again"
    if whole.linked:
        how = f"{'kernel by kernel' if separate else 'fused in any way'}, recomputation {game['recompute']}"
    return (
        f"every schedule of {whole.label} that holds at most {capacity:,} values moves at least {elements:,} elements, "
        f"{total:,} bytes ({how})"
    )


def _each(whole: Whole, proof: Any, at: str) -> list[tuple[Piece, Any, str]]:
    told = array(proof, at, len(whole.pieces), len(whole.pieces))
    return [(piece, one, f"{at}[{i}]") for i, (piece, one) in enumerate(zip(whole.pieces, told, strict=True))]


def _added(whole: Whole, capacity: int, proof: Any, at: str) -> int:
    fields(proof, at, ("theorem", "parts"))
    total = 0
    for piece, one, where in _each(whole, proof["parts"], f"{at}.parts"):
        if type(one) is not dict:
            raise RefusedError(where, "expected an object")
        if choice(one.get("theorem"), f"{where}.theorem", ("compulsory", "segments")) == "compulsory":
            fields(one, where, ("theorem",))
            total += piece.count * piece.least
        else:
            form = choice(one.get("form"), f"{where}.form", tuple(piece.forms))
            total += piece.count * _segments(piece.forms[form], capacity, one, where, ("form",))
    return total


def _kernel_by_kernel(whole: Whole, capacity: int, proof: Any, at: str) -> tuple[int, int]:
    fields(proof, at, ("theorem", "kernels"))
    equal(proof["theorem"], "kernel by kernel", f"{at}.theorem", "theorem")
    elements = total = 0
    for piece, one, where in _each(whole, proof["kernels"], f"{at}.kernels"):
        group, hidden = _fused(piece.workload, False, capacity, one, where)
        elements += piece.workload.groups * group
        total += piece.workload.bytes_of(piece.workload.groups * group, hidden)
    return elements, total


def check_upper_of_parts(whole: Whole, claim: dict[str, Any], at: str) -> str:
    """Check one claim of an upper bound, the parts in turn through slow memory; errors as for lower ones."""
    fields(claim, at, ("claim", "capacity_elements", "elements", "bytes", "moved", "schedule"))
    capacity = integer(claim["capacity_elements"], f"{at}.capacity_elements", 3)
    schedule = fields(claim["schedule"], f"{at}.schedule", ("kind", "parts"))
    equal(schedule["kind"], "parts", f"{at}.schedule.kind", "kind")
    loads: dict[str, int] = {}
    stores: dict[str, int] = {}
    peak = total = 0
    for piece, one, where in _each(whole, schedule["parts"], f"{at}.schedule.parts"):
        moved = _moved(piece.workload, capacity, one, where)
        times, peak = piece.count // piece.alone, max(peak, moved.peak)
        for into, part in ((loads, moved.loads), (stores, moved.stores)):
            for name, number in part.items():
                into[f"{piece.name}.{name}"] = times * number
                operand = piece.workload.operands.get(name)
                total += times * number * (operand.width if operand is not None else piece.workload.in_width)
    moved = Moved(loads, stores, peak)
    check_claim(claim["moved"], moved, f"{at}.moved")
    equal(claim["elements"], moved.elements, f"{at}.elements", "elements moved")
    equal(claim["bytes"], total, f"{at}.bytes", "bytes moved")
    return (
        f"a schedule of {whole.label} holds at most {moved.peak:,} values and moves {moved.elements:,} elements, "
        f"{total:,} bytes"
    )
