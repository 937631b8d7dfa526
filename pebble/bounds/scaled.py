r"""A product whose operands have formats of their own, with block scales: MXFP8, MXFP4, NVFP4.

A value of :math:`A` takes :math:`u_A` and one of :math:`B` takes :math:`u_B`, held or moved, where a value of a format
with block scales counts its bits and its share of the scale of a *full* block: 4 bits and 8 bits for 32 values are
4.25. The other widths are those of :mod:`pebble.bounds.box`.

**Theorem B8.** *Theorems B1 and B3 hold with* :math:`u_A` *for* :math:`w` *of values of* :math:`A` *and* :math:`u_B`
*for those of* :math:`B`.

*Proof.* Neither theorem uses that inputs of two kinds have one width: with :math:`a, b, c` values touched, segments
touch :math:`u_A a + u_B b + p' c`, the least of which is that of three numbers with the product :math:`u_A u_B p' v^2`
and limits of their own, and lines are charged kind by kind. It remains to show that scales may be counted by shares. A
scale is an input, used wherever a value of its block is. A segment that touches :math:`a` values touches their scales,
one for each full block's number of them at least. And of a block's values, touched in :math:`s_1, s_2, \ldots`
segments, the scale is touched in :math:`\max s_i` of these, so in the mean of them at least; what a line is charged
rises with :math:`s`, in proportion to the width. Blocks that the end of :math:`k` cuts short have larger shares.
:math:`\Box` Compulsory traffic counts every scale exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pebble.bounds.box import Box
from pebble.bounds.line_search import ByLines, LineBound
from pebble.bounds.lines import LineProblem, Lines
from pebble.bounds.numbers import number
from pebble.bounds.proofs import LowerBound, SingleClaim, Theorem
from pebble.bounds.segments import Piece, Segments
from pebble.bounds.uses import Goal, Use, best_of
from pebble.bounds.weighted import KernelBound, WeightedBound
from pebble.units import ceil_div
from pebble.workloads.widths import Widths

THEOREM = Theorem("Theorem B8", __name__)


class ScaledWidths(NamedTuple):
    """What values take, in units: of A and B with their scales, a partial sum, a complete output; units of a byte."""

    a: int
    b: int
    partial: int
    written: int
    units: int


@dataclass(frozen=True)
class ScaledProof(SingleClaim):
    """Theorem B8 on a product: a proof by segments or by lines whose numbers are units."""

    inner: Segments | LineBound
    widths: ScaledWidths

    form, rank, theorem = "product", 1, THEOREM
    method = "accounting with a width for each operand"

    @property
    def segments(self) -> int:
        """How many the schedule is cut into."""
        return self.inner.segments

    @property
    def products(self) -> int:
        """Multiply-adds."""
        return self.inner.products

    @property
    def elements(self) -> int:
        """Units moved at least."""
        return self.inner.elements

    @property
    def bytes(self) -> int:
        """Bytes moved at least."""
        return ceil_div(self.inner.elements, self.widths.units)

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {**self.inner.to_json(), "units_of_a_byte": self.widths.units, "widths_units": self.widths._asdict()}

    @property
    def argument(self) -> str:
        """Of the inequality on what moves: that of the theorem for one width."""
        return self.inner.argument

    def text(self, traffic: Mapping[str, int]) -> str:
        """The sum, in units."""
        w = self.widths
        units = rf"""All numbers below count ${w.units}$ units for a byte: a value of $A$ takes ${w.a}$ of them and one
        of $B$ ${w.b}$, each with its share of a full block's scale, in place of $w$; a partial sum takes ${w.partial}$
        and a complete output ${w.written}$. """
        if isinstance(self.inner, LineBound):
            return self.inner.arithmetic(units)
        piece, h = self.inner.piece, self.inner.segments
        touched = f"""{units}There are $h = {number(h)}$ segments. With ${piece.charges[1]}$ units counted for a cell
        they touch at least ${number(self.inner.touched)}$, and ${number(piece.initialised)}$ are initialised free."""
        held = rf"{number(self.inner.held)} - {number(piece.initialised)}"
        return f"""
        ## Arithmetic

        {touched}

        $$ {number(self.inner.touched)} - {held} = {number(self.inner.elements)}
        """


def scaled_bound(
    sides: tuple[int, int, int], widths: ScaledWidths, capacity_bytes: int, least_bytes: int, values: LowerBound
) -> LowerBound:
    """The best of compulsory traffic and Theorem B8, in bytes.

    Parameters
    ----------
    sides : tuple of int
        m, n and k, in values.
    widths : ScaledWidths
    capacity_bytes : int
        S.
    least_bytes : int
        What surely moves, scales exactly.
    values : LowerBound
        What counting values proves.
    """
    m, n, k = sides
    a, b, p, written, units = widths
    kinds = Lines("A", m * k, n, a, a, a), Lines("B", k * n, m, b, b, b), Lines("C", m * n, k, written, 2 * p, p)
    uses: list[Use] = [
        Piece(
            "product",
            ScaledProof.method,
            Box(m, n, k),
            (m * n * k,),
            initialised=(charge - written) * m * n,
            whole_numbers=False,
            widths=Widths(a, p, p, written),
            charges=(0, charge),
            kinds=(Box(m, n, k).weighed(a, b, charge),),
        )
        for charge in sorted({written, (written + p) // 2, p})
    ]
    found = best_of(
        [*uses, ByLines(LineProblem("product", kinds, m * n * k))], Goal(units * capacity_bytes, units * least_bytes)
    )
    proof = None if found is None else ScaledProof(found, widths)  # type: ignore[arg-type]
    game = rf"""
        ## The game

        A value of $A$ takes ${a}$ units of $1/{units}$ byte, one of $B$ ${b}$, its share of a full block's scale
        included; scales are inputs. A complete output takes $w_o = {written}$ units, a partial sum $p = {p}$, held,
        stored or loaded. At most $S$ bytes are held at any moment. Values may be computed again.
        """
    own = Widths(1, ceil_div(p, units), ceil_div(p, units), ceil_div(written, units))
    kernel = KernelBound(proof, least_bytes, 1)
    bound = WeightedBound(own, (kernel,), values, game=game)
    instance = {**values.instance, "capacity_bytes": capacity_bytes}
    return LowerBound(values.elements, bound.bytes, values.capacity, bound, values.recompute, instance=instance)
