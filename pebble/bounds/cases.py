r"""Cases of the shares: two products in a row, with prices that change from segment to segment.

In Theorem 10 (`pebble.bounds.lagrangian`) what a segment is charged depends on how many of its products are second
ones, its kind. A value does not know in which order kinds come, so it is charged as if they came in the order that is
cheapest for it, and a gap over several cuts pays for two of them at most. Here the order is known: every segment and
every cut has prices of its own, and a value held over several cuts pays for each. What that costs is that a segment's
numbers of first and second products are not known when its prices are set. So a proof distinguishes *cases*, each with
all prices of its own.

**Cases.** Cut the schedule after :math:`n_1, n_1 + n_2, \ldots` products into :math:`h` segments, :math:`\sum n_t =
V`. Let :math:`v_t` of the :math:`n_t` be first ones. Whatever the schedule is, :math:`0 \le v_t \le n_t`, and all
:math:`v_t` add up to :math:`V_1`. A case is a *box*, whole numbers :math:`l_t \le v_t \le u_t` for each :math:`t`.
Begin with the one of all :math:`v`. Any box may be parted at a number of any :math:`v_t` into two that cover it. A box
with :math:`\sum l_t > V_1` or :math:`\sum u_t < V_1` has no schedule, and in any other :math:`l_t` may be raised to
:math:`V_1 - \sum_{s \ne t} u_s` and :math:`u_t` lowered to :math:`V_1 - \sum_{s \ne t} l_s`. A schedule is in one of
the boxes that are left.

**Prices.** Of a case: :math:`\rho_t \ge 0` for room at the cut after segment :math:`t < h`; for each segment
:math:`\mu_t \ge 0` of the entropy of all its products, :math:`\mu'_t > 0` and :math:`\mu''_t > 0` of those of its first
and of its second ones, and numbers of any sign, :math:`\alpha_t^A, \alpha_t^B, \alpha_t^C` for a first product on a
line of :math:`A`, of :math:`B` and of a cell, :math:`\alpha_t^D, \alpha_t^Y, \alpha_t^E` for a second one on a line of
:math:`D`, of :math:`Y` and of a cell.

**Moves.** Let segments :math:`t_1 < t_2 < \ldots` touch a value. Between two of them, :math:`s` and :math:`t`, it is
held over all cuts from that after :math:`s` to that before :math:`t`, which costs :math:`R_{st} = \rho_s + \ldots +
\rho_{t-1}` for each unit of its width, or it leaves and returns in :math:`n` moves. These are those of Theorem 10, with
the same widths, and as there they are different for different gaps, also where partial sums are merged. So

- a value of :math:`A, B, D` costs :math:`w`, and :math:`w \min(1, R)` for each gap;
- one of :math:`Y` costs :math:`w_o`, and :math:`p \min(2, R)` for each gap;
- a cell of :math:`H` costs :math:`p_H \min(2, R)` for each gap between segments with first products; and for the later
  ones either :math:`w R` each, since it is held over all of them, or :math:`w` once, since it is stored complete, and
  :math:`w \min(1, R)` each.

All first products of a cell come before its second ones: of the segments with first products only the last may have
second ones.

**Products.** For the :math:`c` on the lines of segment :math:`t`, Theorem 7 says of its first products, on :math:`A`,
:math:`B` and cells, that :math:`\sum c \ln c \le v_t \ln v_t`; of its second ones the same with :math:`n_t - v_t`; and
of all together, where a cell has the sum of both, :math:`\sum c \ln c \le n_t \ln n_t`. Along each direction
:math:`\sum c` is :math:`v_t` or :math:`n_t - v_t`.

**Theorem 15.** *A chain without recomputation moves at least the least, over the boxes that are left, of*

.. math:: \sum_{\text{values}} M - S \sum_t \rho_t - \sum_t \max \big( \psi_t(l_t),\ \psi_t(u_t) \big), \qquad
          \psi_t(v) = \mu_t n_t \ln n_t + \mu'_t v \ln v + \mu''_t (n_t - v) \ln (n_t - v)
                      + (\alpha_t^A + \alpha_t^B + \alpha_t^C)\, v + (\alpha_t^D + \alpha_t^Y + \alpha_t^E)(n_t - v),

*with any prices for each box, where* :math:`M` *is the least that a value may cost: over all sets of segments that
touch it, and all real* :math:`c > 0` *in these that add up to its line, its moves and room as above and*
:math:`\mu_t c \ln c + \mu'_t c \ln c + \alpha_t c` *for its first products in a segment, with* :math:`\mu''_t` *for
second ones, and for a cell* :math:`\mu_t (c + c') \ln (c + c')` *where a segment has both.*

*Proof.* Take the box of the schedule. At each cut :math:`S` at most is held, so what is moved and :math:`S \sum \rho_t`
are no less than what the values cost in moves and room. Add to the left :math:`\mu_t (n_t \ln n_t - \sum c \ln c) \ge
0`, the same with :math:`\mu'_t` and :math:`\mu''_t`, and :math:`\alpha (v_t - \sum c) = 0` or :math:`\alpha (n_t - v_t
- \sum c) = 0` for each direction. On the right of what results every value has its :math:`M` or more: its whole numbers
:math:`c` are real ones. The segments have taken off :math:`\psi_t(v_t)`, which is convex in :math:`v_t`, so the larger
of the two ends is no less. :math:`\Box`

No history is left out: the parts that a value has in a set of segments are any real numbers, and all sets are looked
through.

**What a value is charged.** For every :math:`\theta`, :math:`c` products on a line at :math:`\mu c \ln c + \alpha c`
cost at least :math:`\theta c + e(\theta)` with :math:`e(\theta) = - \mu \exp((\theta - \alpha) / \mu - 1)`, the least
of :math:`\mu c \ln c + (\alpha - \theta) c` over real :math:`c`. So a line of :math:`L` in a set of segments costs
at least its gaps, :math:`\theta L` and the sum of :math:`e_t(\theta)`, and any :math:`\theta` for each set proves a
bound; the best one is sharp. First and second products of a cell have a :math:`\theta` each. Where they meet in a
segment, :math:`C \ln C \ge z C - \exp(z - 1)` for any :math:`z`: there both are charged :math:`z \mu_t` for each
product, more than the others, and :math:`\mu_t \exp(z - 1)` is taken off, again sharp for the best :math:`z`; and
since :math:`C \ln C \ge c \ln c + c' \ln c'` they cost no less than if they did not meet and had :math:`\mu_t + \mu'_t`
and :math:`\mu_t + \mu''_t`, which settles most sets.

**A gated chain** as in Theorem 10.

**Rounding.** Prices are whole multiples of :math:`2^{-64}`. What values are charged is added up in whole multiples of
:math:`2^{-128}`, with exp rounded upwards; logarithms of :math:`\psi` are rounded upwards too.

Source: this project. Han (1978) for the entropies; weak duality of linear programs for the prices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

OFFSETS = ("a", "b", "cells", "d", "y", "again")  #: of a product on a line of A, B, a cell; D, Y, a cell
MOST_SEGMENTS = 8  #: sets of more are too many to look through

Box = tuple[tuple[int, int], ...]  #: the least and the most first products of each segment


class Prices(NamedTuple):
    """All prices of a case, in whole multiples of 2^-64: a number for each segment, of room one less."""

    room: tuple[int, ...]  #: rho, at the cut after a segment
    both: tuple[int, ...]  #: mu, of the entropy of all products
    first: tuple[int, ...]  #: mu', of that of first ones
    second: tuple[int, ...]  #: mu'', of that of second ones
    a: tuple[int, ...]  #: of a first product on a line of A
    b: tuple[int, ...]  #: on a line of B
    cells: tuple[int, ...]  #: on a cell
    d: tuple[int, ...]  #: of a second product on a line of D
    y: tuple[int, ...]  #: on a line of Y
    again: tuple[int, ...]  #: on a cell

    def of(self, field: str) -> tuple[int, ...]:
        """The prices of a field by its name."""
        result: tuple[int, ...] = self[self._fields.index(field)]
        return result


class Parting(NamedTuple):
    """A box is parted: in the first part a segment has so many first products at most, in the second more."""

    segment: int
    most: int


Tree = Sequence[Parting | Prices]  #: a parting, its first part and all of it, its second part; boxes left out but empty


def hull(box: Box, total: int) -> Box | None:
    """The same box, no larger than its numbers of sum ``total`` need; None where there are none."""
    least, most = sum(low for low, _ in box), sum(high for _, high in box)
    if not least <= total <= most:
        return None
    return tuple((max(low, total - (most - high)), min(high, total - (least - low))) for low, high in box)


def boxes(tree: Tree, sizes: Sequence[int], total: int) -> Iterator[tuple[Box, Prices]]:
    """Every case of a tree, and its prices.

    Raises
    ------
    ValueError
        The tree leaves a case out, has too many, or parts a box where it has no part.
    """
    left = [tuple((0, size) for size in sizes)]
    for node in tree:
        box = None
        while left and box is None:
            box = hull(left.pop(), total)
        if box is None:
            raise ValueError("the tree has more cases than there are")
        if isinstance(node, Prices):
            yield box, node
            continue
        low, high = box[node.segment]
        if not low <= node.most < high:
            raise ValueError(f"segment {node.segment + 1} is parted at {node.most}, outside of {low} to {high - 1}")
        for part in ((node.most + 1, high), (low, node.most)):
            left.append((*box[: node.segment], part, *box[node.segment + 1 :]))
    if any(hull(box, total) is not None for box in left):
        raise ValueError("the tree leaves a case out")
