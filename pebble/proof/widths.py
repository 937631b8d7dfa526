"""Certificates of bounds in bytes: the numbers that prove what a segment of some work touches."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

from pebble.bounds import LowerBound, PricedBytes, Wide
from pebble.bounds.wide_lines import LineBytes, Weighted
from pebble.bounds.wide_passes import PassBytes
from pebble.bounds.widths import Bytes
from pebble.proof.lines import line_sum, lines_json
from pebble.proof.passes import pass_bytes_proof, passes_json
from pebble.proof.priced import priced_bytes_proof, priced_json
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
            "kernels": [_kernel(one) for one, _, _ in proof.kernels],
        },
    }


def _kernel(proof: Bytes | LineBytes | PassBytes | PricedBytes | None) -> dict[str, Any]:
    """What the checker needs of one kernel."""
    if proof is None:
        return {"theorem": "compulsory"}
    if isinstance(proof, PassBytes):
        return passes_json(proof.found)
    if isinstance(proof, PricedBytes):
        return priced_json(proof.found)
    if isinstance(proof, Bytes):
        return _segments(proof)
    problem = proof.found.problem
    weights = {"work_weights": list(problem.weights)} if isinstance(problem, Weighted) else {}
    return lines_json(proof.found) | weights


def _segments(proof: Bytes) -> dict[str, Any]:
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


_SEGMENTS = r"""
        ## Segments

        Cut the schedule into $h$ segments. A cell that a segment updates was begun in it (once in all), or it was a
        partial sum when the segment began: held, or loaded in it. An intermediate cell that a segment only reads was
        held or loaded complete. At each cut at most $S$ bytes are held, and every output is stored complete. So every
        touched value counts its width, what is begun free is taken off once, and $(h - 1) S$ for what is held:

        $$ Q \ge \sum_s x(W_s) - (h - 1) S - \text{begun} + \text{moved besides}

        where $x(W)$ is the least number of bytes that work $W$ touches, by the inequality of Loomis and Whitney (1949)
        for values weighed by their widths, $x y z \ge W^2 P$, and the sides of the box.
        """

_LINES = r"""
        ## Segments and lines

        Cut the schedule into $h$ segments of equal work, and follow a value through the $s$ segments that touch it.
        Between two that follow each other an input is held over a cut, where it takes $w$ bytes, or loaded again for
        $w$. A cell that is updated on both sides of a cut is begun and not complete: it takes $p$ (or $p_H$) there, or
        is stored and loaded again for twice that. Besides, an input is loaded once for $w$ and an output stored once
        for $w_o$; call what is certain $a$. At most $S$ bytes are held at each cut. So with a price $\rho$ of a byte at
        a cut, and $g = w \min(1, \rho)$, $p \min(2, \rho)$ or $p_H \min(2, \rho)$,

        $$ Q + \rho (h - 1) S \ge \sum_{\text{values}} \big( a + (s - 1) g \big).

        The multiply-adds that use one value are its line. For one segment of $v$ multiply-adds, let $c$ be how many of
        them are on each line, over the lines of all operands. Take one of the $v$ at random: the entropies of each of
        its three coordinates given the other two add up to at most that of all three, $\ln v$, and so $\sum c \ln c \le
        v \ln v$. A line of $L$ that is touched in $s$ segments has $\sum c \ln c \ge \mathrm{E}(L, s)$, its value
        for parts as equal as whole numbers allow. For every $\mu \ge 0$ therefore

        $$ Q \ge \sum_{\text{values}} \min_s \big[ a + (s - 1) g + \mu\, \mathrm{E}(L, s) \big]
        - \mu \sum_i v_i \ln v_i - \rho (h - 1) S.

        A cell of an intermediate that is read later has $k$ first products and then $l$ second ones. In front of a
        segment with second ones only it is complete, and held or loaded at $w$; if it is loaded, it was stored at $w$.
        With first products in $s$ segments and second ones only in $j$ further ones its bracket is $(s - 1) \rho\, p_H
        + w \min(j \rho, j + 1)$ and $\mu$ times the least $\sum c \ln c$: $\mathrm{E}(k + l, s + j)$ as long as the
        $j$ segments can have as many products as the others, $\mathrm{E}(k, s) + \mathrm{E}(l, j)$ where they cannot.
        Touched by many segments, it has $\mathrm{E}(k, s) + \mathrm{E}(l, j')$ for $j'$ segments with second products,
        of which $j' - 1$ are paid for. A product of the first kind may count $\alpha$ of work and one of the second
        $\beta$: taken at random by work, the same entropies give $\sum \alpha\, c \ln c$ on lines of inputs of the
        first, $\sum \beta\, c \ln c$ on those of the second and of outputs, and $\sum t \ln t$ for the works $t$ on
        those of intermediate cells, in all $W \ln W$ at most in a segment of work $W$. So $\mu \alpha$ and $\mu
        \beta$ take the place of $\mu$, and $k$ and $l$ are the works of the first and the second products of a cell.
        """


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
    ]
    theorems = {type(one) for one, _, _ in proof.kernels}
    blocks += [_SEGMENTS] if Bytes in theorems else []
    blocks += [_LINES] if LineBytes in theorems else []
    blocks += [_kernel_text(one, least, count) for one, least, count in proof.kernels]
    terms = " + ".join(rf"{number(c)} \cdot {number(n if one is None else one.bytes)}" for one, n, c in proof.kernels)
    return [
        *blocks,
        rf"""
        ## Result

        $$ Q \ge {terms} = {number(bound.bytes)}
        """,
    ]


def _kernel_text(proof: Bytes | LineBytes | PassBytes | PricedBytes | None, least: int, count: int) -> str:
    if isinstance(proof, PassBytes):
        return pass_bytes_proof(proof)
    if isinstance(proof, PricedBytes):
        return priced_bytes_proof(proof)
    if isinstance(proof, LineBytes):
        unit = f"Bytes are counted in units of ${proof.unit}$, which divides every width, here and in $Q$: $S$ is "
        unit = f"{unit}${number(proof.found.capacity)}$ of them. " if proof.unit > 1 else ""
        problem = proof.found.problem
        if isinstance(problem, Weighted):
            alpha, beta = problem.weights
            unit += f"Products of the first kind count ${alpha}$ of work, of the second ${beta}$. "
        return f"""
        ## Arithmetic

        {unit}{line_sum(proof.found)}
        """
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
