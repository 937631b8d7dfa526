r"""The line bound of two products in a row: what a cell of the hidden matrix costs, stored or held.

Theorem 7 (`pebble.bounds.lines`) holds for any set of products in a box, and those of :math:`H = \mathrm{act}(A B)` and
:math:`Y = H D` are one in a box :math:`m \times f \times (k + l)` (`pebble.bounds.chain`): a value of :math:`A` or
:math:`Y` has a line of :math:`f` products, one of :math:`B` or :math:`D` of :math:`m`, a cell of :math:`H` of :math:`k`
*first* products, which complete it, and :math:`l` *second* ones, which read it. All first products of a cell come
before the second ones, and nothing is computed twice. What is new is what such a cell is charged.

**Moves of a cell.** Let :math:`s` segments hold first products of the cell, and :math:`j` further ones second products
only. It begins free and need not end in slow memory.

- Between two of the :math:`s` it is held over a cut or it leaves and returns: a store and a load, since it changes.
  Together at least :math:`(s - 1) \min(2, \rho)`.
- Before each of the :math:`j` it is held over the cut in front of it, or is loaded. If it is loaded at all, it has been
  stored once after it was complete. With :math:`t` loads: :math:`(j - t) \rho + t + [t > 0]`, so at least :math:`\min(j
  \rho, j + 1)`.

These moves are all different: the stores of the first kind come before an update that changes the cell, the last one
after all updates. An activation is one more operation between the two, in place: leaving it out is a relaxation. *If
partial sums of the cell are merged*, the segments with first products and the one with the last merge are joined by
accumulators that are held or return, as in Theorem 7; where the last merge is in none of the :math:`s` segments, that
is one more gap at :math:`\min(2, \rho)`, and one segment with second products less is paid for, which is at most
:math:`\rho`.

**Products of a cell.** The :math:`j` segments have at most :math:`l` of the :math:`k + l` products, the other
:math:`s` the rest; all but the last of the :math:`s` have first products only, at most :math:`k`. With
:math:`\mathrm{E}(L, n)` the least sum of :math:`c \ln c` over :math:`n` positive whole numbers that add up to
:math:`L`, the cell has at least :math:`\mathrm{E}(k + l, s + j)`. Let :math:`q` be :math:`(k + l) / (s + j)` rounded
down. If :math:`j q \ge l`, it has more: :math:`\mathrm{E}(J, j) + \mathrm{E}(k + l - J, s)` is convex in :math:`J`, the
products of the :math:`j` segments, and does not increase up to :math:`J = j q`, so with :math:`J \le l` it is least at
:math:`l`, and the cell has :math:`\mathrm{E}(k, s) + \mathrm{E}(l, j)`.

**Theorem 8.** *For* :math:`1 \le \rho \le 2` *Theorem 7 holds for the chain when a cell of* :math:`H` *is charged the
least over* :math:`n \ge 1` *of the two*

.. math::

   \rho (n - 1 - j_n) + \min(j_n \rho, j_n + 1) + \mu\, \mathrm{E}(k + l, n), \qquad
   j_n = \min\big(n - 1, \lfloor (l - 1) / \lfloor (k + l) / n \rfloor \rfloor\big),

   \min_s \big[ (s - 1) \rho + \mu\, \mathrm{E}(k, s) \big]
   + \min_{j \ge 1} \big[ \min(j \rho, j + 1) + \mu\, \mathrm{E}(l, j) \big].

*Proof.* With :math:`n = s + j` and :math:`j q < l` the first is at most what the cell is charged at :math:`s, j`: the
moves do not increase with :math:`j` for a given :math:`n`, since :math:`\min(j \rho, j + 1)` grows by at most
:math:`\rho`, and :math:`j \le j_n`. With :math:`j q \ge l` the second is, for :math:`j \ge 1` as :math:`l \ge 1`.
:math:`\Box` At :math:`\rho = 1` a cell that is held and one that is stored are charged alike, and the first of the two
is the line of an input without its first load. In the first minimum only those :math:`n` need be looked at whose
:math:`n - 1 + \mu\, \mathrm{E}(k + l, n)` is below the least so far: what is left out is at most the charge, and it is
convex in :math:`n`.

**A gated chain** has gate and up cells, :math:`2 f` columns in the box. A value of :math:`A` has a line of :math:`2 f`,
a gate's cell is a cell as above, in which :math:`H` takes its place after the elementwise product, and an up cell has
:math:`k` products, begins free and ends nowhere. Or forget the up cells: what is left is a schedule of the gate's
chain, and every up weight is loaded besides.

**Separate kernels** are two products, each from empty fast memory, with :math:`H` an output of the one and an input of
the other: Theorem 7 for each, added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pebble.bounds.base import Theorem
from pebble.bounds.chain import Chain
from pebble.bounds.lines import LOG_BITS, PRICE_BITS, Cut, Lines, Problem, parts_below, parts_near

THEOREM = Theorem("Theorem 8", __name__)
_PRICES = (1.0, 1.15, 1.3, 1.5, 1.75)
_MANY = 1000  # mu (k + l), about the segments that touch a cell, beyond which it is charged as at a price of 1
_ALONE = 1.4  # mu (k + l) up to which one segment is the cheapest: ln 2 of it is a move
_ONE = 1 << PRICE_BITS


class Cell(Protocol):
    """A cell of H, charged the least of two kinds of lives."""

    @property
    def length(self) -> int:
        """All products, or the work, of one."""

    def mixed(self, cut: Cut, n: int) -> int:
        """The charge in n segments, in some of which first and second products meet."""

    def apart(self, cut: Cut) -> int:
        """The charge where no segment has both."""


def least_charge(cell: Cell, cut: Cut, floor: Lines, start: int) -> tuple[int, int]:
    """The least charge of a cell, and in how many segments: 0 where no segment has both kinds of products.

    ``floor`` is below what the cell is charged in n segments, and least at ``start``.
    """
    most = floor.most(cut.segments)
    best, at = cell.mixed(cut, start), start
    if most > 1:
        best, at = min((best, at), (cell.apart(cut), 0))
    # the true floor is convex in n, and what it is rounded by is less than this
    slack = 4 * cut.mu * cell.length
    for step in (1, -1):
        n = start + step
        while 1 <= n <= most and floor.charge(cut, n) <= best + slack:
            best, at = min((best, at), (cell.mixed(cut, n), n))
            n += step
    return best, at


@dataclass(frozen=True)
class Hidden:
    """Cells of H, charged as Theorem 8 says."""

    name: str  #: what they are called
    count: int  #: how many
    k: int  #: first products of each
    l: int  #: second products of each

    @property
    def length(self) -> int:
        """All products of one."""
        return self.k + self.l

    def mixed(self, cut: Cut, n: int) -> int:
        """2^192 times the charge in n segments, in some of which first and second products meet, rounded down."""
        later = min(n - 1, (self.l - 1) // (self.length // n))
        moves = (n - 1 - later) * cut.rho + min(later * cut.rho, (later + 1) * _ONE)
        return (moves << LOG_BITS) + cut.mu * parts_below(self.length, n)

    def least(self, cut: Cut) -> tuple[int, int]:
        """2^192 times the charge, rounded down, and in how many segments it is: 0 where no segment has both kinds."""
        if not _ONE <= cut.rho <= 2 * _ONE:
            raise ValueError("the theorem is about prices from 1 to 2")
        floor = Lines(self.name, 1, self.length, first=0)
        start = floor.least(cut)[1]
        if cut.mu * self.length > _MANY * _ONE:
            return floor.least(cut)
        return least_charge(self, cut, floor, start)

    def apart(self, cut: Cut) -> int:
        """2^192 times the charge where no segment has both first and second products, rounded down."""
        first = Lines(self.name, 1, self.k, first=0, again=2).least(cut)[0]
        stored = Lines(self.name, 1, self.l, first=2).least(cut)[0]
        held = Lines(self.name, 1, self.l, first=0, again=2).least(cut)[0] + (cut.rho << LOG_BITS)
        return first + min(stored, held)

    def rough(self, segments: int, mu: float, rho: float) -> tuple[float, float]:
        """The charge in floating point, about, and E there."""
        if mu * self.length > _MANY:
            return Lines(self.name, 1, self.length, first=0).rough(segments, mu, rho)
        most = min(segments, self.length)
        # about where the moves that one segment more costs are what it saves: rho, or where cells are stored less
        held, stored = (int(mu * self.length / price) for price in (rho, (rho * self.k + self.l) / self.length))
        found = []
        for n in {max(1, min(most, at + step)) for at in {held, stored} for step in (-1, 0, 1, 2)}:
            later = min(n - 1, (self.l - 1) // (self.length // n))
            entropy = parts_near(self.length, n)
            found.append((rho * (n - 1 - later) + min(later * rho, later + 1) + mu * entropy, entropy))
        if most > 1 and mu * self.length > _ALONE:
            first = Lines(self.name, 1, self.k, first=0, again=2).rough(segments, mu, rho)
            back = Lines(self.name, 1, self.l, first=2).rough(segments, mu, rho)
            kept, entropy = Lines(self.name, 1, self.l, first=0, again=2).rough(segments, mu, rho)
            second = min(back, (kept + rho, entropy))
            found.append((first[0] + second[0], first[1] + second[1]))
        return min(found)


def chain_problems(chain: Chain, own_input: bool = True) -> tuple[Problem, ...]:
    """The ways to apply Theorem 8 to a chain whose H has all its cells; none where a mask leaves some out.

    Without an ``own_input``, A is computed by another part of the workload: that it is loaded once is not certain.
    """
    m, k, f, l = chain.m, chain.k, chain.f, chain.l
    if chain.cells != m * f:
        return ()
    loaded = int(own_input)
    outputs, cells = Lines("Y", m * l, f, again=2), Hidden(chain.hidden, m * f, k, l)
    plain = (Lines("A", m * k, f, loaded), Lines("B and D", (k + l) * f, m), outputs, cells)
    if not chain.gated:
        return (Problem("chain", plain, m * f * (k + l), prices=_PRICES, theorem=THEOREM),)
    both = (
        Lines("A", m * k, 2 * f, loaded),
        Lines("B and D", (2 * k + l) * f, m),
        outputs,
        cells,
        Lines("up cells", m * f, k, first=0, again=2),
    )
    return (
        Problem("gated chain", both, m * f * (2 * k + l), prices=_PRICES, theorem=THEOREM),
        Problem("gate's chain", plain, m * f * (k + l), chain.up_weights, _PRICES, theorem=THEOREM),
    )


def kernel_problems(chain: Chain) -> tuple[Problem, ...]:
    """Theorem 7 for each of two kernels with H in slow memory between them; none where a mask leaves cells out."""
    m, k, f, l, cells = chain.m, chain.k, chain.f, chain.l, chain.cells
    if cells != m * f:
        return ()
    columns = chain.streams * f
    first = [Lines("A", m * k, columns), Lines("B", k * columns, m), Lines(chain.hidden, cells, k, again=2)]
    if chain.gated:
        first.append(Lines("up cells", cells, k, first=0, again=2))
    second = Problem.product(m, l, f)
    return (
        Problem("first kernel", tuple(first), m * columns * k),
        Problem("second kernel", second.kinds, second.work),
    )
