"""Certificates for lower bounds: from the number of segments to the multipliers of each inequality."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pebble.bounds.base import LowerBound
from pebble.bounds.chain import box_bound
from pebble.bounds.ffn_gated import _Segment
from pebble.certificate.geometry import LARGEST_WHOLE, Box
from pebble.certificate.lower import Part, _chain, _parts
from pebble.certificate.statement import Workload as Statement
from pebble.certificate.tied import CELL_BITS
from pebble.errors import PebbleError
from pebble.proof.multipliers import counted_share, kept_leaves, least_sum, redone_leaves, share, text


class NotCertifiedError(PebbleError):
    """A number that was announced could not be proved: the bound, or the writer of certificates, has a mistake."""

    exit_code = 5


def lower_claim(statement: Statement, bound: LowerBound) -> dict[str, Any]:
    """The claim of a lower bound with its proof.

    Parameters
    ----------
    statement : Statement
        The workload as the checker reads it.
    bound : LowerBound
        Of that workload, with the certificate that `pebble.bounds` gives.

    Raises
    ------
    NotCertifiedError
        The numbers do not add up to the bound.
    """
    told = bound.certificate
    separate = bool(told.get("separate_kernels"))
    recompute = "allowed" if told.get("recompute") == "allowed" else "forbidden"
    if statement.family in ("gemm", "conv2d"):
        recompute = "allowed"  # only one completion of each cell is useful: the stronger claim
    elements, size = bound.elements, bound.bytes
    proof = _proof(statement, told, elements // statement.groups)
    if proof is None:
        elements, size, proof = _strongest(statement, told["capacity_elements"], separate)
    return {
        "claim": "lower bound",
        "game": {"recompute": recompute, "kernels": "separate" if separate else "fused"},
        "capacity_elements": told["capacity_elements"],
        "elements": elements,
        "bytes": size,
        "proof": proof,
    }


def _strongest(statement: Statement, capacity: int, separate: bool) -> tuple[int, int, dict[str, Any]]:
    """The best that the checker's theorems prove of a chain, where the bound's own theorem is none of them."""
    cells = _chain(statement)[4]
    proof: dict[str, Any] = {"theorem": "compulsory"}
    best = statement.compulsory, statement.bytes_of(statement.compulsory), proof
    stores = 0
    if separate:
        best, stores = (0, 0, proof), cells
    for form, part in _parts(statement).items():
        touched, h = box_bound(part.box.rows, part.box.cols, part.box.depth, part.products, capacity)
        elements = statement.groups * (touched - part.cells + part.more + stores)
        if elements > best[0]:
            shares = _shares(part, h, touched + (h - 1) * capacity)
            proof = {"theorem": "segments", "form": form, "segments": h, "shares": shares}
            best = elements, statement.bytes_of(elements, 2 * stores * statement.groups), proof
    return best


def _proof(statement: Statement, told: Any, target: int) -> dict[str, Any] | None:
    """The proof of the theorem that gave the bound; None where the checker does not know it."""
    capacity = told["capacity_elements"]
    if "kernels" in told:
        return {"theorem": "kernel by kernel", "kernels": _kernels(statement, told["kernels"], capacity)}
    if str(told["theorem"]).startswith("compulsory"):
        return {"theorem": "compulsory"}
    m, k, f, l, cells = _chain(statement) if statement.family in ("ffn", "attention") else (0, 0, 0, 0, 0)
    if told.get("cut_by") == "products of H D":
        shares = [_redone(m, k, f, l, v, n) for v, n in _sizes(cells * l, told["segments"])]
        return {"theorem": "recompute, cut by second products", "segments": told["segments"], "shares": shares}
    if told.get("cut_by") == "distinct products":
        return _distinct(m, k, f, l, cells, told["segments"])
    if "phi" in told:
        return _tied(m, k, f, l, told)
    for form, part in _parts(statement).items():
        boxes = [part.box.rows, part.box.cols, part.box.depth]
        if "box" in told and (told["box"] != boxes or told["products"] != part.products):
            continue
        wanted = told["segment_terms"] if "segment_terms" in told else target - part.more
        shares = _shares(part, told["segments"], wanted + (told["segments"] - 1) * capacity)
        return {"theorem": "segments", "form": form, "segments": told["segments"], "shares": shares}
    raise NotCertifiedError(
        "certificate: no theorem of the checker has the parameters of this bound; please report it."
    )


def _kernels(statement: Statement, told: Sequence[Any], capacity: int) -> list[dict[str, Any]]:
    proofs: list[dict[str, Any]] = []
    streams = 2 if statement.option.get("gated") else 1
    cells = _chain(statement)[4]
    for number, kernel in enumerate(told):
        rows, cols, depth = kernel["box"]
        begun = (streams - 1) * cells if number == 0 else 0
        h = kernel["segments"]
        if kernel["segment_terms"] - begun <= kernel["compulsory"]:
            proofs.append({"theorem": "compulsory"})
        else:
            part = Part(Box(rows, cols, depth), kernel["products"], begun)
            shares = _shares(part, h, kernel["segment_terms"] + (h - 1) * capacity)
            proofs.append({"theorem": "segments", "segments": h, "shares": shares})
    return proofs


def _sizes(work: int, segments: int) -> list[tuple[int, int]]:
    small, longer = divmod(work, segments)
    return [(small, segments - longer)] + ([(small + 1, longer)] if longer else [])


def _total(shares: list[dict[str, Any]]) -> int:
    touched = sum((s["segments"] * Fraction(s["touched"]) for s in shares), Fraction(0))
    return -(-touched.numerator // touched.denominator)


def _kinds(part: Part, h: int) -> list[list[dict[str, Any]]]:
    """Proofs over the reals, and with counts: two ways to the sum over all segments."""
    sizes = _sizes(part.products, h)
    product = {v: Fraction(v * v, part.box.overlap) for v, _ in sizes}
    real = [share(part.box.least(v), product[v], v, n) for v, n in sizes]
    counted = [_count(part.box, v, n, counted_share(part.box.least(v), product[v], v, n)) for v, n in sizes]
    return [real, counted]


def _count(box: Box, v: int, n: int, rounded: dict[str, Any]) -> dict[str, Any]:
    """Looked through whole numbers where that is quick, since it can prove one or two more."""
    if not 0 < v <= 4096 or rounded["touched"] > LARGEST_WHOLE // 4:
        return rounded
    total = least_whole(box, v, rounded["touched"])
    if total == rounded["touched"]:
        return rounded
    return {"products": v, "segments": n, "touched": total, "whole_numbers": True}


def least_whole(box: Box, v: int, start: int) -> int:
    """The least whole a + b + c that v products may touch, at least ``start``."""
    low_a, low_b, low_c = (-(-x.numerator // x.denominator) for x in box.least(v))
    total = start
    while True:
        for a in range(low_a, total - low_b - low_c + 1):
            rest = total - a
            b = min(max(rest // 2, low_b), rest - low_c)
            if box.overlap * a * b * (rest - b) >= v * v:
                return total
        total += 1


def _shares(part: Part, h: int, wanted: int) -> list[dict[str, Any]]:
    """The proofs whose sum is the one that was announced."""
    kinds = _kinds(part, h)
    totals = [_total(shares) for shares in kinds]
    if wanted not in totals:
        raise NotCertifiedError(
            f"certificate: the bound announces {wanted:,} values touched in {h:,} segments, the proofs found give "
            f"{' or '.join(f'{t:,}' for t in totals)}; one of them has a mistake, please report it."
        )
    return kinds[totals.index(wanted)]


def _redone(m: int, k: int, f: int, l: int, v: int, count: int) -> dict[str, Any]:
    kept, multipliers = least_sum(Box(m, f, l).least(v), Fraction(v * v))
    redone, leaves = redone_leaves(m, f, k, l, v)
    bound = min(kept, redone)
    return {
        "products": v,
        "segments": count,
        "touched": text(bound),
        "multipliers": [text(p) for p in multipliers],
        "leaves": leaves,
    }


def _tied(m: int, k: int, f: int, l: int, told: Any) -> dict[str, Any]:
    """The parameters of the bound, and the edges of the boxes from which it was found."""
    segment = _Segment(m, k, f, l, m * f * (2 * k + l) // told["segments"])
    low = segment.products / (segment.k + segment.l) * (1 - 1e-9)
    cells = np.geomspace(low, 2 * segment.cells, 25)
    gate_cells = np.append(0.0, np.geomspace(low / 64, segment.cells, 24))
    return {
        "theorem": "tied segments",
        "segments": told["segments"],
        **{name: told[name] for name in ("lambda", "tau", "phi")},
        "cells": _units(cells, 2 * m * f),
        "gate_cells": _units(gate_cells, m * f),
    }


def _units(edges: NDArray[np.float64], last: int) -> list[int]:
    """Edges in the checker's units, the last one exact."""
    found = [int(Fraction(float(x)) * 2**CELL_BITS) for x in edges[:-1]]
    return [*found, last << CELL_BITS]


def _distinct(m: int, k: int, f: int, l: int, cells: int, h: int) -> dict[str, Any]:
    (small, count), *longer = _sizes(cells * (k + l), h)
    found = kept_leaves(m, f, k, l, small)
    if found is None:
        raise NotCertifiedError("certificate: no intervals found that prove the bound with recomputation; report it.")
    bound, leaves = found
    shares: list[dict[str, Any]] = [{"products": small, "segments": count, "touched": text(bound), "leaves": leaves}]
    for v, n in longer:
        shares.append(share(Box(m, f, k + l).least(v), Fraction(v * v), v, n))
    return {"theorem": "recompute, cut by distinct products", "segments": h, "shares": shares}
