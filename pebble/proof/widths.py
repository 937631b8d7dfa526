"""Certificates of bounds in bytes: the numbers that prove what a segment of some work touches."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

from pebble.bounds import LowerBound, Wide
from pebble.bounds.widths import Bytes
from pebble.proof.shares import NotCertifiedError, least_sum
from pebble.proof.text import number


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
            kinds.append((touched, {"bytes": str(touched), "multipliers": [str(p) for p in multipliers]}))
        total += count * min(touched for touched, _ in kinds)
        shares.append({"work": work, "segments": count, "kinds": [told for _, told in kinds]})
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


def wide_blocks(label: str, bound: LowerBound, proof: Wide) -> list[str]:
    """Statement, game, argument and arithmetic of a bound in bytes, as text with formulas."""
    w, capacity = proof.widths, number(bound.instance["capacity_bytes"])
    blocks = [
        rf"""
        # A lower bound on the data movement of {label}

        ## Statement

        Every schedule of `{label}` in $S = {capacity}$ bytes of fast memory moves at least $Q = {number(bound.bytes)}$
        bytes.
        """,
        rf"""
        ## The game

        An input takes $w = {w.read}$ bytes, held or moved, and so does an intermediate cell that is complete. A
        complete output takes $w_o = {w.written}$. A cell that is begun and not complete is a partial sum: one of the
        output takes $p = {w.partial}$ bytes, an intermediate one $p_H = {w.hidden}$, held, stored or loaded. At most
        $S$ bytes are held at any moment. {"Values may be computed again." if bound.recompute else ""}
        """,
        r"""
        ## Segments

        Cut the schedule into $h$ segments. A cell that a segment updates was begun in it (once in all), or it was a
        partial sum when the segment began: held, or loaded in it. An intermediate cell that a segment only reads was
        held or loaded complete. At each cut at most $S$ bytes are held, and every output is stored complete. So every
        touched value counts its width, what is begun free is taken off once, and $(h - 1) S$ for what is held:

        $$ Q \ge \sum_s x(W_s) - (h - 1) S - \text{begun} + \text{moved besides}

        where $x(W)$ is the least number of bytes that work $W$ touches, by the inequality of Loomis and Whitney (1949)
        for values weighed by their widths, $x y z \ge W^2 P$, and the sides of the box.
        """,
    ]
    blocks += [_kernel_text(one, least, count) for one, least, count in proof.kernels]
    terms = " + ".join(rf"{number(c)} \cdot {number(n if one is None else one.bytes)}" for one, n, c in proof.kernels)
    return [
        *blocks,
        rf"""
        ## Result

        $$ Q \ge {terms} = {number(bound.bytes)}
        """,
    ]


def _kernel_text(proof: Bytes | None, least: int, count: int) -> str:
    if proof is None:
        return f"""
        ## What surely moves

        ${number(count)}$ times: every input is read and every output written, ${number(least)}$ bytes.
        """
    use = proof.use
    counts = f"A partial sum of the output counts ${use.partial}$ bytes"
    counts += f", an intermediate cell ${use.hidden}$ where it is updated." if use.hidden else "."
    if len(use.weights) > 1:
        weights = " and ".join(f"${x}$" for x in use.weights)
        counts += f""" A multiply-add of the first and the second product counts as {weights} of work; a segment touches
        the least of what its work would touch as either alone, since what it touches is at least their mean."""
    text = f"""
        ## Arithmetic

        {counts} There are $h = {number(proof.segments)}$ segments.
        """
    for share in _kernel(proof)["shares"]:
        touched = min(Fraction(kind["bytes"]) for kind in share["kinds"])
        text += f"""
        ${number(share["segments"])}$ segments of work ${number(share["work"])}$ touch at least ${number(touched)}$
        bytes each (multipliers in the certificate).
        """
    held = rf"{number(proof.segments - 1)} \cdot {number(proof.capacity)}"
    return (
        text
        + rf"""
        $$ {number(proof.touched)} - {held} - {number(use.taken)} + {number(use.added)} = {number(proof.bytes)}
        """
    )
