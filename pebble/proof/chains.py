"""The proof of a chain's bound: where values may be computed again, and where a gate ties cells together."""

from __future__ import annotations

from fractions import Fraction

from pebble.bounds import Recomputed, Tied
from pebble.proof.shares import recomputed_shares
from pebble.proof.text import decimal, number, signed, tail


def recomputed_text(proof: Recomputed) -> str:
    """The theorem for schedules that may compute values of H and Y again."""
    chain, h, shares = proof.chain, proof.segments, recomputed_shares(proof)
    more, cells = chain.up_weights, 0 if proof.by_second else chain.cells
    what = "products of $H D$" if proof.by_second else "distinct products"
    touched = sum((s.segments * s.touched for s in shares), Fraction(0))
    if proof.by_second:
        why = r"""For $e$ cells touched the bracket is linear in $v_1$ between $0$ and $k e$; both ends are bounded for
        every $e \ge v_2 / l$."""
    else:
        why = f"""Segments have a share of the products of a schedule without recomputation; the last may have up to
        twice as many. Each keeps at least $S$, so further segments do not lower the bound; and all cells take part in
        ${number(chain.l)}$ products of $H D$ each."""
    text = rf"""
        ## Segments

        Delete every operation whose result no stored output depends on; then each product of $H D$ is done once. For
        one cell of $H$ join two segments that touch it when the later one uses a copy carried over from the earlier
        (held at the cut, or loaded). There are at most as many segments as carried copies and components, and each
        component completes the cell on its own, so it contains at least $k = {number(chain.k)}$ distinct products. With
        $v_1$ distinct products of $A B$ in a segment, cells touched are in all at most held, loaded and $\sum v_1 / k$:

        $$ Q \ge \sum_s \Big[ X(v_{{1,s}}, v_{{2,s}}) - \frac{{v_{{1,s}}}}{{k}} \Big] - (h - 1) S

        Cut by {what} into $h = {number(h)}$ segments. {why}

        ## Arithmetic
        """
    for s in shares:
        text += f"""
        ${number(s.segments)}$ segments of $v = {number(s.products)}$ touch at least ${number(s.touched)}$ values each
        (multipliers in the certificate).
        """
    text += rf"""
        $$ Q \ge {number(touched)} - {number(h - 1)} \cdot {number(proof.capacity)}{tail(cells, more)}
        \quad\Rightarrow\quad Q \ge {number(proof.elements)}
        """
    if more:
        text += f"""
        The up weights, which the gate's chain does not have, are loaded besides: ${number(more)}$.
        """
    return text


def tied_text(proof: Tied) -> str:
    """The theorem that ties gate and up cells together by their elementwise products."""
    cut = proof.cut
    weight, tau, phi = cut.weight_of_multiplies, cut.weight_of_down, cut.least_per_segment
    return rf"""
        ## Segments

        Cut the schedule into $h = {number(cut.segments)}$ segments of equal work. A value touched in a segment was held
        when it began (at most $S$ at each cut), is loaded in it, or is an accumulator begun in it. Gate and up cells,
        $2 m f = {number(2 * proof.chain.cells)}$, are begun free and need not be stored, so they are subtracted. The
        elementwise product of a gate and an up cell is done in one segment, which touches both. With $T$ cells touched
        in a segment, $e$ of them gate cells, $v_1$ multiply-adds of gate and up, $v_2$ of down, and $M$ elementwise
        products,

        $$ X \ge T + v_1 G(T; \min(m, 2f)) + v_2 G(e; \min(m, f)), \qquad M \le \min(e, T - e)

        where $G(e; p)$ is $2 / \sqrt{{e}}$ up to $p^2$ and $1/p + p/e$ beyond (Loomis and Whitney, and the sides of the
        box).

        ## Arithmetic

        With $\lambda = {decimal(weight)}$ and $\tau = {signed(tau)}$ every segment has $X - \lambda M + \tau v_2 \ge
        \varphi = {number(phi)}$. The checker proves it on boxes of $T$ and $e$, in whole numbers. All $M$ add up to $m
        f$ and all $v_2$ to $m f l$, so

        $$ Q \ge h \varphi + (\lambda - 2 - \tau l)\, m f - (h - 1) S \quad\Rightarrow\quad Q \ge
        {number(proof.elements)}
        """
