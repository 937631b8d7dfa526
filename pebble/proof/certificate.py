"""Whole certificates: a statement and claims about it, checked before they are handed out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

from pebble.bounds import (
    Compulsory,
    Kernels,
    LineBound,
    LowerBound,
    Parts,
    PassBound,
    PricedBound,
    Proof,
    Recomputed,
    Segments,
    Sum,
    Tied,
    Wide,
)
from pebble.certificate import FORMAT, VERSION, RefusedError, check
from pebble.certificate.statement import read_workload
from pebble.certificate.tied import CELL_BITS
from pebble.families.schedules import Explicit
from pebble.proof.lines import lines_json
from pebble.proof.passes import passes_json
from pebble.proof.priced import priced_json
from pebble.proof.shares import NotCertifiedError, Share, recomputed_shares, segment_shares
from pebble.proof.upper import upper_claim
from pebble.proof.widths import bytes_claim
from pebble.system.files import check_path, write_text
from pebble.workloads.base import Workload

_DERIVED = {"name", "flops", "compulsory_elements", "compulsory_bytes"}


class Answer(Protocol):
    """What is proved and known of a workload: what a certificate and a proof are written of."""

    @property
    def lower(self) -> LowerBound: ...
    @property
    def separate(self) -> LowerBound | None: ...
    @property
    def upper(self) -> Explicit | None: ...


def workload_statement(workload: Workload) -> dict[str, Any]:
    """What certificates say of a workload: what determines it, no more."""
    return {key: value for key, value in workload.to_json().items() if key not in _DERIVED}


def bound_certificate(workload: Workload, found: Answer) -> dict[str, Any]:
    """The certificate of what `pebble bound` says of a workload.

    Parameters
    ----------
    workload : Workload
    found : Answer
        Its lower bound, its best schedule if there is one, and the bound for separate kernels if there is one.

    Raises
    ------
    NotCertifiedError
        A number could not be proved: report it, it may be wrong.

    Notes
    -----
    Some milliseconds. The certificate has passed the checker.
    """
    told = workload_statement(workload)
    claims = [claim for bound in (found.lower, found.separate) if bound is not None for claim in lower_claims(bound)]
    if found.upper is not None and (claim := upper_claim(read_workload(told, "workload"), found.upper)) is not None:
        claims.append(claim)
    return checked({"format": FORMAT, "version": VERSION, "statement": {"workload": told}, "claims": claims})


def lower_claims(bound: LowerBound) -> list[dict[str, Any]]:
    """The claim of a lower bound; where a theorem in bytes proves more than counting values, both."""
    if isinstance(bound.proof, Wide):
        return [lower_claim(bound.proof.values), bytes_claim(bound, bound.proof)]
    return [lower_claim(bound)]


def lower_claim(bound: LowerBound) -> dict[str, Any]:
    """The claim of a lower bound with its proof.

    Raises
    ------
    NotCertifiedError
        The numbers do not add up to the bound, or the checker does not know its theorem.
    """
    recompute, kernels = "allowed" if bound.recompute else "forbidden", "separate" if bound.separate else "fused"
    return {
        "claim": "lower bound",
        "game": {"recompute": recompute, "kernels": kernels},
        "capacity_elements": bound.capacity,
        "elements": bound.elements,
        "bytes": bound.bytes,
        "proof": _proof(bound.proof),
    }


def _proof(proof: Proof) -> dict[str, Any]:
    """A proof in the checker's terms."""
    match proof:
        case Compulsory():
            return {"theorem": "compulsory"}
        case Segments():
            return {"theorem": "segments", "form": proof.piece.form, **segments_json(proof, segment_shares(proof))}
        case LineBound():
            return lines_json(proof)
        case PassBound():
            return passes_json(proof)
        case PricedBound():
            return priced_json(proof)
        case Kernels():
            parts = zip(proof.kernels, proof.least, strict=True)
            return {"theorem": "kernel by kernel", "kernels": [_kernel(kernel, least) for kernel, least in parts]}
        case Parts():
            return {
                "theorem": "parts",
                "parts": [{"theorem": "compulsory"} if found is None else _proof(found) for found in proof.segments],
            }
        case Sum():
            return {"theorem": "kernel by kernel", "kernels": [_proof(kernel.proof) for kernel in proof.kernels]}
        case Recomputed():
            cut = "second" if proof.by_second else "distinct"
            return {"theorem": f"recompute, cut by {cut} products", **segments_json(proof, recomputed_shares(proof))}
        case Tied():
            return _tied(proof)
    raise NotCertifiedError(f"certificate: the checker does not know the theorem {proof.method!r}; please report it.")


def segments_json(proof: Segments | Recomputed, shares: Sequence[Share]) -> dict[str, Any]:
    """h, and the shares of the work."""
    return {"segments": proof.segments, "shares": [share.to_json() for share in shares]}


def _kernel(kernel: Segments | LineBound, least: int) -> dict[str, Any]:
    if kernel.elements <= least:
        return {"theorem": "compulsory"}
    if isinstance(kernel, LineBound):
        return lines_json(kernel)
    return {"theorem": "segments", **segments_json(kernel, segment_shares(kernel))}


def _tied(proof: Tied) -> dict[str, Any]:
    """The parameters of the bound, and the edges of the boxes from which it was found, in the checker's units."""
    cells = proof.chain.cells
    edges = zip(proof.first_edges, (2 * cells, cells), strict=True)
    units = [[*(int(Fraction(x) * 2**CELL_BITS) for x in found[:-1]), last << CELL_BITS] for found, last in edges]
    return {
        "theorem": "tied segments",
        "segments": proof.cut.segments,
        "lambda": str(proof.cut.weight_of_multiplies),
        "tau": str(proof.cut.weight_of_down),
        "phi": str(proof.cut.least_per_segment),
        "cells": units[0],
        "gate_cells": units[1],
    }


def checked(document: dict[str, Any], folder: Path | None = None) -> dict[str, Any]:
    """The certificate itself, if the checker accepts it."""
    try:
        check(json.loads(json.dumps(document)), folder)
    except RefusedError as error:
        raise NotCertifiedError(
            f"certificate: the checker refuses what was found at {error.step}: {error.why}; please report it."
        ) from None
    return document


def write_certificate(document: dict[str, Any], path: str | Path) -> None:
    """Write a certificate as JSON.

    Raises
    ------
    InputError
        The file cannot be written.
    """
    check_path("--certificate", path)
    write_text(path, json.dumps(document, indent=1) + "\n", "--certificate: ")
