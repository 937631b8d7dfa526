"""Certificates of bounds in bytes: the numbers that prove what a segment of some work touches."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

from pebble.bounds import LowerBound, Wide
from pebble.bounds.widths import Bytes
from pebble.proof.shares import NotCertifiedError, least_sum


def bytes_claim(bound: LowerBound, proof: Wide) -> dict[str, Any]:
    """The claim of a lower bound in bytes with its proof.

    Raises
    ------
    NotCertifiedError
        The numbers do not add up to the bound.
    """
    recompute, kernels = "allowed" if bound.recompute else "forbidden", "separate" if bound.separate else "fused"
    return {
        "claim": "lower bound in bytes",
        "game": {"recompute": recompute, "kernels": kernels},
        "widths_bytes": {"partial_hidden": proof.widths.hidden, "partial_output": proof.widths.partial},
        "capacity_bytes": bound.instance["capacity_bytes"],
        "bytes": bound.bytes,
        "proof": {
            "theorem": "segments in bytes",
            "kernels": [{"theorem": "compulsory"} if one is None else _kernel(one) for one, _, _ in proof.kernels],
        },
    }


def _kernel(proof: Bytes) -> dict[str, Any]:
    use, shares, total = proof.use, [], Fraction(0)
    for work, count in use.shares(proof.segments):
        kinds = []
        for kind in use.kinds:
            limits = [limit * work for limit in kind.limits]
            touched, multipliers = least_sum(limits, kind.product * work * work)
            kinds.append({"bytes": touched, "multipliers": [str(p) for p in multipliers]})
        total += count * min(kind["bytes"] for kind in kinds)
        told = [{**kind, "bytes": str(kind["bytes"])} for kind in kinds]
        shares.append({"work": work, "segments": count, "kinds": told})
    if ceil(total) != proof.touched:
        raise NotCertifiedError(
            f"certificate: the bound announces {proof.touched:,} bytes touched in {proof.segments:,} segments, the "
            f"proofs found give {ceil(total):,}; one of them has a mistake, please report it."
        )
    return {
        "theorem": "segments",
        "form": use.form,
        "hidden_cell_bytes": use.hidden,
        "output_cell_bytes": use.partial,
        "work_weights": list(use.weights),
        "segments": proof.segments,
        "shares": shares,
    }
