r"""The pass bound in bytes: whole vectors, each value at its own width.

The game is that of `pebble.bounds.widths`: an input and a complete cell of :math:`H` take :math:`w` bytes, held or
moved, a partial sum of the output :math:`p`, one of :math:`H` :math:`p_H \ge w`. Theorem 9 (`pebble.bounds.passes`)
counts gaps of values between segments in which their row or column has a whole cell. In bytes a gap of a value of
:math:`A, B` or :math:`D` takes :math:`w` while it is held, and :math:`w` to load again. Accumulators of :math:`Y` are
updated before and after each of theirs, so that they are partial sums in it (`pebble.bounds.wide_lines` says why): they
take :math:`p` while held, and are stored and loaded at :math:`p`. A cell that is not whole takes :math:`w` at least
where it is held over a cut, partial or complete, and :math:`2 w` at least where it is stored and loaded.

**Theorem B5.** *Theorem 9 holds in bytes, with* :math:`w k` *and* :math:`p l` *for the* :math:`k` *and* :math:`l`
*values of a row,* :math:`w c` *for the* :math:`c` *of a column,* :math:`S` *in bytes, and*

.. math:: \zeta = \lceil \max(w k + p l,\; w c) / w \rceil .

*Proof.* Let :math:`F` and :math:`E` be the bytes of inputs loaded again, :math:`M` :math:`p` for each round trip of an
accumulator, :math:`N` :math:`w` for each cell that makes one. What moves beyond compulsory traffic is :math:`F + E + 2
M + 2 N` at least. All cuts have room for :math:`q S` bytes, so that for the kinds chosen, say all three, and cuts by
columns,

.. math:: [w c\, (q L - f) - F] + [w k (U - z / \zeta) - E] + [p l (U - z / \zeta) - M] + \omega [w z - N] \le q S .

With :math:`\omega = (w k + p l) / \zeta w`, which is 1 at most by the choice of :math:`\zeta`, :math:`z` drops out: the
moves of these kinds are :math:`b - \omega N` at least. Two such brackets are added, and :math:`2 N` makes up for both
:math:`\omega`. The other sets of kinds, and cuts by rows, where :math:`\omega = c / \zeta`, are alike. :math:`\Box`

**Units.** As for the line bound, bytes are counted in units of the greatest common divisor of all widths.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pebble.bounds.base import Theorem
from pebble.bounds.passes import Grid, PassBound, pass_bound
from pebble.bounds.wide_lines import unit_of
from pebble.workloads.widths import Widths

THEOREM = Theorem("Theorem B5", __name__)
METHOD = "pass accounting in bytes"


@dataclass(frozen=True)
class PassBytes:
    """Theorem B5 on an instance."""

    found: PassBound  #: Theorem 9 with values at their widths, in units
    unit: int  #: bytes of a unit
    surely: int  #: bytes that move in any case
    products: int  #: multiply-adds, of either product
    theorem: Theorem = THEOREM  #: what it rests on

    @property
    def bytes(self) -> int:
        """Bytes moved, at least."""
        return self.surely + self.unit * self.found.again

    @property
    def segments(self) -> int:
        """How many there are where the least is proved."""
        return 1 + self.found.cuts[0]

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``; what it counts is in units."""
        told = self.found.to_json()
        del told["compulsory"]
        return {"form": "passes", "unit_bytes": self.unit, **told}


def grid_in_bytes(grid: Grid, widths: Widths) -> Grid:
    """Rows, columns and cells with what their values take, in units of `unit_of`."""
    unit = unit_of(widths)
    w, p = widths.read // unit, widths.partial // unit
    return replace(grid, k=w * grid.k, l=p * grid.l, column=w * grid.column, cell=w)


def pass_bytes(grid: Grid, widths: Widths, capacity: int, surely: int, products: int) -> tuple[PassBytes, ...]:
    """Theorem B5 for a memory of ``capacity`` bytes: some milliseconds; none where it proves nothing.

    Parameters
    ----------
    grid : Grid
        Of one group, in values.
    widths : Widths
    capacity : int
        S, bytes.
    surely : int
        Bytes that move in any case: each input once, each output once.
    products : int
        Multiply-adds of the group.
    """
    unit = unit_of(widths)
    found = pass_bound(grid_in_bytes(grid, widths), capacity // unit)
    return () if found is None else (PassBytes(found, unit, surely, products),)
