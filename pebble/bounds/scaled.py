r"""Products whose operands have formats of their own, with block scales: MXFP8, MXFP4, NVFP4, fp8 with blocks of 128.

A value of :math:`A` takes :math:`u_A` and one of :math:`B` takes :math:`u_B`, held or moved, where a value of a format
with block scales counts its bits and its share of the scale of a *full* block, rounded down to 1/32 byte: 4 bits and 8
bits for 32 values are 4.25. The other widths are those of :mod:`pebble.bounds.box`.

**Theorem B8.** *Theorems B1 and B3 hold with* :math:`u_A` *for* :math:`w` *of values of* :math:`A` *and* :math:`u_B`
*for those of* :math:`B`; *Theorem B4 with* :math:`u_A, u_B, u_D` *of values of* :math:`A, B` *and* :math:`D` *and with
the bits of a complete cell of* :math:`H`.

*Proof.* None of these theorems uses that inputs of two kinds have one width: with :math:`a, b, c` values touched,
segments touch :math:`u_A a + u_B b + p' c`, the least of which is that of three numbers with the product :math:`u_A u_B
p' v^2` and limits of their own, and lines are charged kind by kind. It remains to show that scales may be counted by
shares. A scale is an input, used wherever a value of its block is. A segment that touches :math:`a` values touches
their scales, one for each full block's number of them at least. And of a block's values, touched in :math:`s_1, s_2,
\ldots` segments, the scale is touched in :math:`\max s_i` of these, so in the mean of them at least; what a line is
charged rises with :math:`s`, in proportion to the width. Blocks that an end cuts short have larger shares.
:math:`\Box` Compulsory traffic counts every scale exactly.
A scale of :math:`H` is not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pebble.bounds.box import Box
from pebble.bounds.chain import Chain
from pebble.bounds.chain_lines import ChainWidths, chain_problems
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
    """What values take, in units: of each input with its scales, a partial sum, a complete output; units of a byte."""

    inputs: Mapping[str, int]
    partial: int
    written: int
    units: int
    hidden: tuple[int, int] = (0, 0)  #: a complete cell of an intermediate, and one before; 0 where there is none

    def to_json(self) -> dict[str, int]:
        """Plain data for ``--json``."""
        cells = {"hidden": self.hidden[0], "partial_hidden": self.hidden[1]} if self.hidden[0] else {}
        return {**self.inputs, **cells, "partial": self.partial, "written": self.written}


@dataclass(frozen=True)
class ScaledProof(SingleClaim):
    """Theorem B8 on a product, or on two in a row: a proof by segments or by lines whose numbers are units."""

    inner: Segments | LineBound
    widths: ScaledWidths

    rank, theorem = 1, THEOREM
    method = "accounting with a width for each operand"

    @property
    def form(self) -> str:
        """Which of the boxes it is about."""
        return self.inner.form

    def claim(self) -> dict[str, Any]:
        """That of the proof, and what it counts in."""
        return {**self.inner.claim(), "units_of_a_byte": self.widths.units}

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
        return {**self.inner.to_json(), "units_of_a_byte": self.widths.units, "widths_units": self.widths.to_json()}

    @property
    def argument(self) -> str:
        """Of the inequality on what moves: that of the theorem for one width."""
        return self.inner.argument

    def text(self, traffic: Mapping[str, int]) -> str:
        """The sum, in units."""
        w = self.widths
        each = ", ".join(f"one of {name} ${taken}$" for name, taken in w.inputs.items())
        cells = (
            f"A complete cell of $H$ takes ${w.hidden[0]}$, and before that ${w.hidden[1]}$. " if w.hidden[0] else ""
        )
        units = rf"""All numbers below count ${w.units}$ units for a byte: of these a value takes, with its share of a
        full block's scale, in place of $w$: {each}. A partial sum takes ${w.partial}$ and a complete output
        ${w.written}$. {cells}"""
        if isinstance(self.inner, LineBound):
            if self.inner.problem.weights is not None:
                alpha, beta = self.inner.problem.weights
                units += f"Products of the first kind count ${alpha}$ of work, of the second ${beta}$. "
            return self.inner.arithmetic(units) + self._in_bytes()
        piece, h = self.inner.piece, self.inner.segments
        touched = f"""{units}There are $h = {number(h)}$ segments. With ${piece.charges[1]}$ units counted for a cell
        they touch at least ${number(self.inner.touched)}$, and ${number(piece.initialised)}$ are initialised free."""
        held = rf"{number(self.inner.held)} - {number(piece.initialised)}"
        return f"""
        ## Arithmetic

        {touched}

        $$ {number(self.inner.touched)} - {held} = {number(self.inner.elements)}
        """ + self._in_bytes()

    def _in_bytes(self) -> str:
        units, total = number(self.widths.units), number(self.inner.elements)
        return f"""
        ${total}$ units are ${number(self.bytes)}$ bytes, ${units}$ to a byte, rounded up.
        """


def scaled_product_uses(m: int, n: int, k: int, widths: ScaledWidths) -> list[Use]:
    """Theorem B8 on C (m x n) := A (m x k) B (k x n)."""
    (a, b), p, written = widths.inputs.values(), widths.partial, widths.written
    kinds = Lines("A", m * k, n, a, a, a), Lines("B", k * n, m, b, b, b), Lines("C", m * n, k, written, 2 * p, p)
    pieces = [
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
    return [*pieces, ByLines(LineProblem("product", kinds, m * n * k))]


def scaled_network_uses(chain: Chain, widths: ScaledWidths) -> list[Use]:
    """Theorem B8 on H := act(A B), Y := H D; products count alike, or about as the roots of what A and Y take."""
    (x, w), (complete, hidden) = widths.inputs.values(), widths.hidden
    numbers = ChainWidths(x, w, w, complete, hidden, widths.partial, widths.written)
    return [
        ByLines(problem)
        for weights in ((1, 1), (5, 7), (1, 2), (1, 3))
        for problem in chain_problems(chain, weights=weights, numbers=numbers)
    ]


def scaled_bound(
    uses: Iterable[Use], widths: ScaledWidths, own: Widths, capacity_bytes: int, least_bytes: int, values: LowerBound
) -> LowerBound:
    """The best of compulsory traffic and Theorem B8, in bytes.

    Parameters
    ----------
    uses : iterable of Use
        The theorem in its forms, in units.
    widths : ScaledWidths
    own : Widths
        What partial sums and complete outputs take, in bytes, as certificates tell it.
    capacity_bytes : int
        S.
    least_bytes : int
        What surely moves, scales exactly.
    values : LowerBound
        What counting values proves.
    """
    units, p, written = widths.units, widths.partial, widths.written
    found = best_of(uses, Goal(units * capacity_bytes, units * least_bytes))
    assert found is None or isinstance(found, Segments | LineBound)  # nothing else proves anything of such operands
    proof = None if found is None else ScaledProof(found, widths)
    each = ", ".join(f"one of {name} ${taken}$" for name, taken in widths.inputs.items())
    cells, again = "", "Values may be computed again."
    if widths.hidden[0]:
        again = again if values.recompute else ""
        cells = f"A complete cell of $H$ takes ${widths.hidden[0]}$ and one before that ${widths.hidden[1]}$."
    game = rf"""
        ## The game

        The game is after Hong and Kung (1981). In units of $1/{units}$ byte a value takes, its share of a full block's
        scale included: {each}; scales are inputs. A complete output takes $w_o = {written}$ units, a partial sum $p =
        {p}$, held, stored or loaded.
        {cells} At most $S$ bytes are held at any moment. {again}
        """
    bound = WeightedBound(own, (KernelBound(proof, least_bytes, 1),), values, game=game)
    instance = {**values.instance, "capacity_bytes": capacity_bytes}
    return LowerBound(values.elements, bound.bytes, values.capacity, bound, values.recompute, instance=instance)
