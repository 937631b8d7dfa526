r"""A gated FFN with large fast memory: the elementwise product ties gate and up cells together.

In `pebble.bounds.chain` a segment may work on gate and down alone, or on up alone. But :math:`H_{ij} =
\mathrm{act}(G_{ij})\, U_{ij}` is one operation, in one segment, and it touches both cells. Let a segment do :math:`v_1`
products of gate and up and :math:`v_2` of down, touch :math:`T` cells, :math:`e` of them gate cells, and do :math:`M`
of the :math:`m f` elementwise products. Then

.. math:: X \ge T + v_1 G(T; \min(m, 2 f)) + v_2 G(e; \min(m, f)), \qquad v_1 \le k T, \quad v_2 \le l e, \quad
   M \le \min(e, T - e),

where :math:`G(e; p)` is :math:`2 / \sqrt e` up to :math:`p^2` and :math:`1 / p + p / e` beyond. The :math:`M` add up to
:math:`m f` and the :math:`v_2` to :math:`m f l`. So, with :math:`\varphi` the least :math:`X - \lambda M + \tau v_2` of
a segment of :math:`P` or :math:`P + 1` products,

**Theorem 4.** *For every* :math:`\lambda` *in* :math:`[0, 1]` *and every* :math:`\tau`, *without recomputation,*
:math:`Q \ge h \varphi + (\lambda - 2 - \tau l)\, m f - (h - 1) S`.

:math:`\varphi` is a minimum over the two numbers :math:`T` and :math:`e` (for given :math:`T` and :math:`e` it is
linear in :math:`v_2`: an end of its range). It is bounded from below by branch and bound: in a box of :math:`T` and
:math:`e`, cells count at their least, prices at their least, which is at the largest :math:`T` and :math:`e`, and the
range of :math:`v_2` is the largest. What is reported is the least bound over all boxes, never the value at a point. The
arithmetic is floating point with fewer than 50 operations per box, none of which loses more than a few units in the
last place of the terms' sum: the margin of :math:`10^{-9}` covers that a thousandfold.

**In bytes** values take widths as in `pebble.bounds.box`: :math:`w` an input or a complete cell of :math:`H`, no less a
partial sum of :math:`H`, :math:`p` a partial sum of an output, :math:`w_o` a complete output. Cut the schedule by work
that counts a product of gate and up as :math:`\alpha` and one of down as :math:`\beta`, whole numbers.

**Theorem B10.** *For every* :math:`p'` *from* :math:`w_o` *to* :math:`p`, *whole* :math:`\alpha, \beta \ge 1`,
:math:`\lambda` *in* :math:`[0, w]` *and every* :math:`\tau`, *with* :math:`\varphi` *the least*

.. math:: w\,T + w\,v_1\, G(T; \min(m, 2 f)) + v_2\, G'(e) - \lambda M + \tau v_2, \qquad
   G'(e) = 2 \sqrt{w p' / e} \quad (w\,G(e; \min(m, f)) \text{ where } p' = w),

*of a segment whose work* :math:`\alpha v_1 + \beta v_2` *is that of all over* :math:`h`, *rounded down or up and less
or more by at most* :math:`\max(\alpha, \beta) - 1`, *a schedule without recomputation moves at least*

.. math:: h \varphi + (\lambda - 2 w - \tau l)\, m f - (p' - w_o)\, m l - (h - 1) S.

*Proof.* A cell that a segment touches was held or loaded for :math:`w` at least, or is initialised in it: :math:`w`
comes off once for each of :math:`2 m f`. An output counts :math:`p'`, and :math:`p' - w_o` comes off once (Theorem
B1). The :math:`d` values of the down weights and :math:`y` outputs of a segment have :math:`d\,y\,e \ge v_2^2`, so
:math:`w d + p' y \ge 2 v_2 \sqrt{w p' / e}`. The rest is as for Theorem 4; a cut comes after the product with which
the work reaches its share. :math:`\Box` With widths of 1 and :math:`\alpha = \beta = 1` this is Theorem 4.

:math:`h, \lambda` and :math:`\tau` are chosen for the workload, whatever :math:`S` is, so the bound falls as :math:`S`
grows. It matters where :math:`S` exceeds about :math:`k^2`, and then tends to :math:`(\sqrt 2 k + l)^2 m f / S`, in
bytes to :math:`(\sqrt 2\, w k + \sqrt{w p}\, l)^2 m f / S` less :math:`(p - w_o)\, m l`.

**Which** :math:`h` **to look at.** At a point where all segments are alike, :math:`M = m f / h` and :math:`v_2 = m f l
/ h`, the weights cancel, so :math:`h X - 2 m f - (h - 1) S` at any such point is at least what :math:`h` can prove:
most :math:`h` need not be looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from pebble.bounds.chain import Chain
from pebble.bounds.gated_search import Cut, Segment, Tied, best_cut
from pebble.bounds.numbers import decimal, number, signed
from pebble.bounds.proofs import InWidths, Theorem
from pebble.bounds.uses import Goal, Use
from pebble.certificate.gated import CELL_BITS
from pebble.workloads.widths import ALIKE, Widths

THEOREM = Theorem("Theorem 4", __name__)
IN_BYTES = Theorem("Theorem B10", __name__)
METHOD = "segment accounting for a gated chain, with the elementwise product"
METHOD_IN_BYTES = "segment accounting in bytes for a gated chain, with the elementwise product"


@dataclass(frozen=True)
class GatedBound(InWidths):
    """Theorem 4 on an instance, in bytes B10."""

    METHODS = (METHOD, METHOD_IN_BYTES)
    rank = 0
    form, argument = "", ""

    tied: Tied  #: the two products, gated
    capacity: int  #: S, in units of the widths, as all that follows
    cut: Cut  #: h, lambda, tau and phi
    on_top: int = 0  #: stores of H that are certain and not counted by the theorem
    called: str = ""  #: what the bound is called, where that says more

    @property
    def method(self) -> str:
        """What the bound is called."""
        return self.called or self.METHODS[self.widths != ALIKE]

    @property
    def widths(self) -> Widths:
        """What its values take."""
        return self.tied.widths

    @property
    def theorem(self) -> Theorem:
        """What it rests on."""
        return THEOREM if self.widths == ALIKE else IN_BYTES

    @property
    def elements(self) -> int:
        """Values moved at least, or units of their widths."""
        return math.ceil(self.cut.bound(self.tied, self.capacity)) + self.on_top

    @property
    def segments(self) -> int:
        """How many there are, h."""
        return self.cut.segments

    @property
    def products(self) -> int:
        """Multiply-adds."""
        chain = self.tied.chain
        return chain.cells * (2 * chain.k + chain.l)

    @property
    def first_edges(self) -> tuple[list[float], list[float]]:
        """Edges of the boxes of all cells, and of gate cells, where the search for phi starts."""
        cells, gate_cells = Segment(self.tied, self.cut.segments).edges()
        return cells.tolist(), gate_cells.tolist()

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        h, tied = self.segments, self.tied
        return {
            **({} if self.widths == ALIKE else {"unit_bytes": self.unit, **self._counts}),
            "segments": h,
            "share_products": self.products // h,
            "lambda": str(self.cut.weight_of_multiplies),
            "tau": str(self.cut.weight_of_down),
            "phi": str(self.cut.least_per_segment),
            "held_at_cuts": (h - 1) * self.capacity,
            "cells_begun_and_not_stored": tied.taken_off,
            "added_elements": self.on_top,
        }

    @property
    def _counts(self) -> dict[str, Any]:
        """What cells and products count, in bytes, as a certificate has it."""
        tied, unit = self.tied, self.unit
        return {
            "output_cell_bytes": unit * tied.output,
            "work_weights": list(tied.weights),
        }

    def claim(self) -> dict[str, Any]:
        """The parameters of the bound, and the edges of the boxes from which it was found, in the checker's units."""
        cells, cut = self.tied.chain.cells, self.cut
        edges = zip(self.first_edges, (2 * cells, cells), strict=True)
        units = [[*(int(Fraction(x) * 2**CELL_BITS) for x in result[:-1]), last << CELL_BITS] for result, last in edges]
        return {
            "theorem": "tied segments",
            **({} if self.widths == ALIKE else self._counts),
            "segments": cut.segments,
            "lambda": str(cut.weight_of_multiplies),
            "tau": str(cut.weight_of_down),
            "phi": str(cut.least_per_segment),
            "cells": units[0],
            "gate_cells": units[1],
        }

    def text(self, traffic: Mapping[str, int]) -> str:
        """The segments, and the sum."""
        cut, tied = self.cut, self.tied
        weight, tau, phi = cut.weight_of_multiplies, cut.weight_of_down, cut.least_per_segment
        if self.widths == ALIKE:
            work, touched, off = "work", _TOUCHED, "2 m f"
            taken = (
                f"Gate and up cells, $2 m f = {number(tied.taken_off)}$, are initialised free and need not be stored"
            )
        else:
            (w, _, _, written), (alpha, beta) = self.widths.in_units, tied.weights
            work = rf"work, ${alpha}$ for a product of gate and up and ${beta}$ for one of down"
            of = rf"{w}\, " if w > 1 else ""
            touched = rf"""X \ge {of}T + {of}v_1 G(T) + 2 v_2 \sqrt{{{w * tied.output} / e}}, \qquad
        M \le \min(e, T - e)

        where $G(T)$ is $2 / \sqrt{{T}}$ at least (Loomis and Whitney for the box of either kind)."""
            off = number(tied.taken_off)
            taken = f"""Room and moves count units of ${self.unit}$ bytes, also in $Q$; an output counts ${tied.output}$
            while it is a partial sum. Cells are initialised free and only outputs are stored, ${written}$ each: that is
            ${off}$ in all"""
        return rf"""
        ## Segments

        Cut the schedule into $h = {number(cut.segments)}$ segments of equal {work}. A value touched in a segment was
        held when it began (at most $S$ at each cut), is loaded in it, or is an accumulator initialised in it. {taken},
        so they are subtracted. The elementwise product of a gate and an up cell is done in one segment, which touches
        both. With $T$ cells touched in a segment, $e$ of them gate cells, $v_1$ multiply-adds of gate and up, $v_2$ of
        down, and $M$ elementwise products,

        $$ {touched}

        ## Arithmetic

        With $\lambda = {decimal(weight)}$ and $\tau = {signed(tau)}$ every segment has $X - \lambda M + \tau v_2 \ge
        \varphi = {number(phi)}$. The checker proves it on boxes of $T$ and $e$, in whole numbers. All $M$ add up to $m
        f$ and all $v_2$ to $m f l$, so

        $$ Q \ge h \varphi + (\lambda - \tau l)\, m f - {off} - (h - 1) S \quad\Rightarrow\quad Q \ge
        {number(self.elements)}
        """


_TOUCHED = r"""X \ge T + v_1 G(T; \min(m, 2f)) + v_2 G(e; \min(m, f)), \qquad M \le \min(e, T - e)

        where $G(e; p)$ is $2 / \sqrt{e}$ up to $p^2$ and $1/p + p/e$ beyond (Loomis and Whitney, and the sides of the
        box)."""


@dataclass(frozen=True)
class ByElementwiseProduct(Use):
    """Theorem 4 of a gated chain, in bytes B10; parameters as in `gated_bound`."""

    chain: Chain
    on_top: int = 0
    method: str = ""
    variants: tuple[Tied, ...] = ()
    first_of_equals = True

    def proofs(self, goal: Goal) -> Iterator[GatedBound]:
        """Where it proves no less than the others."""
        least = goal.least
        for tied in self.variants or (Tied(self.chain),):
            unit = tied.widths.unit
            bound = gated_bound(tied, goal.capacity // unit, -(-least // unit), self.on_top, self.method)
            if bound is not None:
                least = bound.bytes
                yield bound

    def weighted(self, widths: Widths) -> tuple[ByElementwiseProduct]:
        """With the charges and weights that are worth trying."""
        return (replace(self, variants=Tied(self.chain).weighted(widths)),)


def gated_bound(tied: Tied, capacity: int, floor: int, on_top: int = 0, called: str = "") -> GatedBound | None:
    """The best h for a capacity, if it proves ``floor`` at least; None for a small problem.

    Parameters
    ----------
    tied : Tied
        A gated chain, and what is charged.
    capacity : int
        S, in units of the widths.
    floor : int
        What is proved already, in the same: less is of no use.
    on_top, called
        As in `GatedBound`.

    Returns
    -------
    GatedBound or None
        Some milliseconds, and some hundredths of a second for each h that is looked at, once per problem.
    """
    cut = best_cut(tied, capacity, floor - on_top)
    return None if cut is None else GatedBound(tied, capacity, cut, on_top, called)
