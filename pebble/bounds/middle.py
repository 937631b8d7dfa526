r"""The middle of a backward pass: cells that one product completes and two others read.

:math:`dZ := dY\,V^T` has :math:`m \times f` cells of :math:`l` multiply-adds each. Then :math:`dX := dZ\,W^T` and
:math:`dW := X^T dZ`, both of depth :math:`k`: a cell is read :math:`2 k` times. In a network :math:`V` is :math:`W_1`
and :math:`W` is :math:`W_0`; in attention :math:`dS := dO\,V^T`, :math:`dQ := dS\,K` and :math:`dK := dS^T Q`. An
elementwise product completes the cell in its place, and it need never be in slow memory.

**One box.** Let the multiply-add of :math:`dZ_{ij}` with :math:`dY_{it} V_{jt}` be the point :math:`(i, j, t)`, that of
:math:`dX_{it}` with :math:`dZ_{ij} W_{tj}` the point :math:`(i, j, l + t)` and that of :math:`dW_{tj}` the point
:math:`(i, j, l + k + t)`. They fill a box :math:`m \times f \times (l + 2 k)` (a mask leaves columns of it out), and
every value is a projection of it, each a different one: :math:`(i, t)` is one of :math:`dY`, :math:`dX` or :math:`X`,
:math:`(j, t)` one of :math:`V`, :math:`W` or :math:`dW`, and :math:`(i, j)` a cell.

**Theorem 14.** *Without recomputation Theorem 2 holds for this box, with the cells of* :math:`dZ` *initialised and not
stored, and Theorem 8 with lines of* :math:`f` *products for* :math:`dY, X` *and* :math:`dX`, *of* :math:`m` *for*
:math:`V, W` *and* :math:`dW`, *those of* :math:`dX` *and* :math:`dW` *being outputs, and with cells of* :math:`l`
*first and* :math:`2 k` *second products. What surely moves of other values comes on top.*

*Proof.* Both theorems speak of points of a box, of values that are its projections, and of cells that are complete when
their first products are done, whatever reads them afterwards. :math:`\Box` On top come the other gradient, which is
stored once, and what the forward pass saved, which is read once; in attention :math:`dV` and the statistics of rows.

**Gate and up.** Of a gated network :math:`dG` takes the place of :math:`dH`, and a further cell :math:`dU` begins,
free, when that is complete. Number these cells :math:`f, \ldots, 2 f - 1`: the products fill a box :math:`m \times 2 f
\times (l + 2 k)` but for the first products of these, :math:`2 m f` cells begin free, and a line of :math:`X` or
:math:`dX` has :math:`2 f`. In a gap between two segments a cell of :math:`dU` is complete: it is held, or loaded again,
at one move. Or forget these cells: what is left is a schedule of the gate's products, and the up weights are loaded and
their gradients stored besides, once each.

**Theorem B9.** *In bytes Theorem B4 holds with these lines and cells, products counting alike; a cell of* :math:`dU`
*has* :math:`a = 0` *and* :math:`b` *and a footprint of* :math:`w`; *what surely moves besides counts its own width.*

*Proof.* As there: :math:`dZ` is an intermediate whose partial sums take :math:`p_H`, :math:`dX` and :math:`dW` are
outputs with partial sums of :math:`p`, and what is read takes :math:`w`. :math:`\Box`
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pebble.bounds.backward import MULTIPLIERS, InValues
from pebble.bounds.box import Box
from pebble.bounds.chain import METHOD
from pebble.bounds.chain_lines import Hidden
from pebble.bounds.line_search import LineBound, line_bound
from pebble.bounds.lines import LineProblem, Lines, ValueKind
from pebble.bounds.proofs import Theorem
from pebble.bounds.segments import Piece
from pebble.bounds.uses import Goal, Use
from pebble.workloads.backward import STATISTIC_BYTES
from pebble.workloads.widths import ALIKE, Widths

THEOREM = Theorem("Theorem 14", __name__)
IN_BYTES = Theorem("Theorem B9", __name__)


@dataclass(frozen=True)
class Middle:
    """dZ := dY V^T, then dX := dZ W^T and dW := X^T dZ, of one group.

    Attributes
    ----------
    m, f, l, k : int
        dY is m x l, V is f x l, X is m x k and W is k x f, in values.
    cells : int
        Of dZ: m f without a mask.
    names : tuple of str
        What dY, V, X, W and dZ are called.
    read, stored, statistics : int
        Values that surely move besides: inputs, outputs, and inputs in fp32.
    gated : bool
        W and dZ are those of gate and up, side by side.
    """

    m: int
    f: int
    l: int
    k: int
    cells: int
    names: tuple[str, str, str, str, str]
    read: int = 0
    stored: int = 0
    statistics: int = 0
    gated: bool = False

    def added(self, widths: Widths = ALIKE) -> int:
        """What surely moves besides, in units of the widths."""
        w, _, _, written = widths.in_units
        wide = 1 if widths == ALIKE else STATISTIC_BYTES // widths.unit
        return w * self.read + written * self.stored + wide * self.statistics

    @property
    def forms(self) -> tuple[tuple[str, int, int], ...]:
        """The ways to see it: what each is called, its columns, and up weights that it leaves out."""
        if not self.gated:
            return (("middle", self.f, 0),)
        return ("gated middle", 2 * self.f, 0), ("gate's middle", self.f, self.k * self.f)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The boxes of Theorem 14."""
        depth = self.l + 2 * self.k
        return tuple(
            Piece(
                form,
                METHOD,
                Box(self.m, columns, depth),
                (self.cells * (self.l + 2 * self.k * columns // self.f),),
                self.cells * columns // self.f,
                self.added() + 2 * left_out,
                theorem=THEOREM,
            )
            for form, columns, left_out in self.forms
        )

    def problems(self, widths: Widths = ALIKE) -> tuple[LineProblem, ...]:
        """The lines of Theorem 14, in bytes B9; none where a mask leaves cells out."""
        if self.cells != self.m * self.f:
            return ()
        return tuple(self._problem(widths, *form) for form in self.forms)

    def _problem(self, widths: Widths, form: str, columns: int, left_out: int) -> LineProblem:
        m, f, l, k = self.m, self.f, self.l, self.k
        w, hidden, p, written = widths.in_units
        above, across, rows, cols, cell = self.names
        kinds: list[ValueKind] = [Lines(above, m * l, f, w, w, w), Lines(across, f * l, m, w, w, w)]
        for name, count, length in ((rows, m * k, columns), (cols, k * columns, m)):
            kinds += [Lines(name, count, length, w, w, w), Lines(f"d{name}", count, length, written, 2 * p, p)]
        kinds.append(Hidden(cell, m * f, l, 2 * k, w, hidden))
        if columns > f:
            kinds.append(Lines("up cells", m * f, 2 * k, 0, w, w))
        return LineProblem(
            form,
            tuple(kinds),
            m * (f * l + 2 * k * columns),
            self.added(widths) + (w + written) * left_out,
            MULTIPLIERS,
            theorem=THEOREM if widths == ALIKE else IN_BYTES,
            widths=widths,
        )


@dataclass(frozen=True)
class MiddleLines(Use):
    """Theorem 14 by lines, in each of its forms; in bytes B9."""

    middle: Middle
    widths: Widths = ALIKE

    @property
    def about(self) -> tuple[LineProblem, ...]:
        """The forms."""
        return self.middle.problems(self.widths)

    def proofs(self, goal: Goal) -> Iterator[LineBound]:
        """Of each form."""
        return (line_bound(problem, goal.capacity) for problem in self.about)

    def weighted(self, widths: Widths) -> tuple[MiddleLines, ...]:
        """With every value at its width."""
        return (replace(self, widths=widths),)


def middle_uses(middle: Middle) -> tuple[Use, ...]:
    """Theorem 14 by segments, in values, and by lines."""
    return *map(InValues, middle.pieces), MiddleLines(middle)
