r"""Two matrix products in a row, :math:`H = \mathrm{act}(A B)` and :math:`Y = H D`: FFN, gated FFN and attention.

:math:`A` is :math:`m \times k`, :math:`B` :math:`k \times f`, :math:`D` :math:`f \times l`. :math:`Y` must end in slow
memory, :math:`H` need not.

**One box.** Let a multiply-add of the first product be a point :math:`(i, j, t)` with :math:`t < k`, and one of the
second a point :math:`(i, j, k + q)`. They fill a box :math:`m \times f \times (k + l)`, and *all* values are
projections of it: :math:`(i, t)` is a value of :math:`A` or :math:`Y`, :math:`(j, t)` one of :math:`B` or :math:`D`,
:math:`(i, j)` a cell of :math:`H`. So Theorem 1 holds for any mix of the two products, with the cells of :math:`H`
initialised and not stored.

**Theorem 2.** *Without recomputation,* :math:`Q \ge \sum_s x(v_s) - (h - 1) S - (\text{cells of } H)`.

Nothing is lost in the cut by all products. Let a segment do :math:`v_1` and :math:`v_2` of them. The least values it
touches are the minimum over :math:`e \ge \max(v_1 / k, v_2 / l)` of :math:`e + (v_1 + v_2) G(e)`, where :math:`G(e)` is
the least :math:`a + b` with :math:`a b \ge 1 / e`, :math:`a \ge 1 / f`, :math:`b \ge 1 / m`: the same function for both
products. It depends on :math:`v_1 + v_2`, except that the limit on :math:`e` is weakest at the even split; and every
weighting of the products allows segments that are all even.

**In bytes** values take widths as in `pebble.bounds.box`, and one product may touch more than the other.

**Theorem B2.** *A chain, cut by work that counts a product of* :math:`A B` *as* :math:`\alpha` *and one of* :math:`H D`
*as* :math:`\beta`, *whole numbers. For every* :math:`q` *from* :math:`w` *to* :math:`p_H`, *without recomputation,*

.. math:: Q \ge \sum_s \min\{x_1(W_s), x_2(W_s)\} - (h - 1) S - q\,(\text{cells of } H) - (p - w_o)\,
          (\text{outputs}),

*where* :math:`W_s` *is the whole work over* :math:`h`, *rounded down or up, less* :math:`\max(\alpha, \beta) - 1`,
*and* :math:`x_1(W)` *and* :math:`x_2(W)` *are the least*

- :math:`w a + w b + q e` *with* :math:`a b e \ge v^2`, :math:`a \ge v / f`, :math:`b \ge v / m` *for* :math:`v = W /
  \alpha`; *if* :math:`q = w`, *also with* :math:`e \ge W / (\alpha k + \beta l)`;
- :math:`w d + p y + w e` *with* :math:`d y e \ge v^2`, :math:`d \ge v / m`, :math:`y \ge v / f` *for* :math:`v = W /
  \beta`, *and* :math:`e \ge W / (\alpha k + \beta l)`.

*Proof.* Let a segment do :math:`v_1` and :math:`v_2` products and :math:`W' = \alpha v_1 + \beta v_2`. It touches
:math:`e` cells of :math:`H`, :math:`e_1 \le e` of them with products of :math:`A B`. By the accounting a cell that is
carried into a segment costs :math:`p_H \ge q` where :math:`A B` updates it and :math:`w` where it is only read, and the
segment in which it is initialised is one that updates it: :math:`q` comes off once. So what counts is :math:`X = w(a +
b) + w d + p y + w e + (q - w) e_1`, and :math:`Q \ge \sum_s X_s - (h - 1) S - q\,mf - (p - w_o)\,ml`. Since :math:`v_1
\le k e` and :math:`v_2 \le l e`, :math:`e \ge W' / (\alpha k + \beta l)`. Let :math:`\mu = \alpha v_1 / W'`, and

.. math:: T_1 = w (a + b) / \mu + q e_1, \qquad T_2 = (w d + p y) / (1 - \mu) + w e.

The numbers :math:`a / \mu, b / \mu, e_1` satisfy the conditions of :math:`x_1(W')`, for :math:`v_1 / \mu = W' /
\alpha`; likewise :math:`d / (1 - \mu), y / (1 - \mu), e` those of :math:`x_2`. And :math:`X - \mu T_1 - (1 - \mu) T_2 =
\mu (w e - q e_1) + (q - w) e_1 \ge (1 - \mu) (q - w) e_1 \ge 0`, so :math:`X \ge \min(T_1, T_2)`. For :math:`q = w` put
:math:`e` for :math:`e_1` in :math:`T_1`; the difference is then 0. (If :math:`\mu` is 0 or 1 one of the two is not
needed.) Cut after the product with which the work reaches :math:`\lceil s V / h \rceil` of the whole :math:`V`: it goes
beyond by :math:`\max(\alpha, \beta) - 1` at most, so segment :math:`s` has :math:`W_s` at least, and :math:`x_1` and
:math:`x_2` grow. :math:`\Box`

At widths and weights of 1, :math:`x_1` and :math:`x_2` are the box above: Theorem 2.

**A gated chain** has two first products, gate and up, that share :math:`A`: two cells for each :math:`(i, j)`, the
gate's, in which :math:`H` takes its place after the elementwise product, and the up cell. (Which of the two :math:`H`
takes over makes no difference: at that moment both are in fast memory, and afterwards one is useless.) Number the up
cells :math:`f, \ldots, 2 f - 1`: the products fill a box :math:`m \times 2 f \times (k + l)` but for the second product
of the up cells, and :math:`2 m f` cells are initialised free. Or forget the up cells: the moves of all other values are
a schedule of the plain chain, and each of the :math:`k f` up weights is loaded besides. `pebble.bounds.gated` says more
where fast memory is large.

**Separate kernels.** One kernel writes all of :math:`H`, the next reads it from an empty fast memory, which keeps
nothing in between: two boxes, :math:`m \times f \times k` (:math:`2 f` columns when gated, of whose cells half are
stored) and :math:`m \times l \times f`, whose bounds add. Theorem 2 holds too, with the stores of :math:`H` on top. If
fast memory does keep up to :math:`S` values from one kernel to the next, the sum falls by at most :math:`S`; the second
form stays. Recomputation cannot help: :math:`H` is stored, and only one completion of each of its cells is useful.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from pebble.bounds.box import Box
from pebble.bounds.proofs import COMPULSORY, ONCE, SingleClaim, Theorem, all_names
from pebble.bounds.segments import Piece, Segments
from pebble.bounds.uses import Goal, GroupProof, Use
from pebble.workloads.widths import ALIKE, Widths

THEOREM = Theorem("Theorem 2", __name__)
CHECKED = Theorem("Theorem 2", __name__, "Products.chain_segment_bound")  # no gate, no mask
IN_BYTES = Theorem("Theorem B2", __name__)
METHOD = "segment accounting for a chain, equation (3)"
GATED = "segment accounting for a gated chain"
METHOD_IN_BYTES = "segment accounting in bytes for a chain"
PROJECTED = "equation (3) for the gate's chain, and the up weights"
SEPARATE = "segment accounting, equation (2), kernel by kernel"
SEPARATE_LINES = "line accounting, kernel by kernel"


@dataclass(frozen=True)
class Chain:
    """H = act(A B) and Y = H D, of one group: A is m x k, B is k x f, D is f x l."""

    m: int  #: rows of A and Y
    k: int  #: depth of the first product
    f: int  #: columns of H
    l: int  #: columns of Y
    cells: int  #: of H, m f without a mask
    gated: bool = False  #: H is made of two products, gate and up
    hidden: str = "H"  #: what the cells are called

    @property
    def streams(self) -> int:
        """First products: 2 when gated."""
        return 2 if self.gated else 1

    @cached_property
    def second(self) -> Box:
        """The box of the second product alone."""
        return Box(self.m, self.f, self.l)

    @property
    def up_weights(self) -> int:
        """Values of the up weights, which the gate's chain does not have."""
        return self.k * self.f if self.gated else 0

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The boxes of Theorem 2."""
        m, k, f, l, cells = self.m, self.k, self.f, self.l, self.cells
        box, products = Box(m, f, k + l), (cells * k, cells * l)
        if not self.gated:
            theorem = CHECKED if cells == m * f else THEOREM
            return (Piece("chain", METHOD, box, products, cells, theorem=theorem),)
        return (
            Piece("gated chain", GATED, Box(m, 2 * f, k + l), (2 * cells * k, cells * l), 2 * cells, theorem=THEOREM),
            Piece("gate's chain", PROJECTED, box, products, cells, self.up_weights, theorem=THEOREM),
        )

    def pieces_at(self, widths: Widths) -> tuple[Piece, ...]:
        """The uses of Theorem B2 that are worth trying; in the classic game those of Theorem 2."""
        if widths == ALIKE:
            return self.pieces
        return tuple(
            self._weighed(piece, widths, q, p, weights)
            for piece in self.pieces
            for q in sorted({widths.read, widths.hidden})
            for p in sorted({widths.written, widths.partial})
            # whole numbers whose ratio is about sqrt(q / p): with these the two products weigh what they touch
            for weights in sorted({(1, 1), {2: (5, 7), 4: (1, 2)}.get(p // q, (1, 1))})
        )

    def _weighed(self, piece: Piece, widths: Widths, q: int, p: int, weights: tuple[int, int]) -> Piece:
        """Theorem B2 with two charges and weights."""
        (m, f, k, l), w, (alpha, beta) = (self.m, self.f, self.k, self.l), widths.read, weights
        deep = Fraction(w, alpha * k + beta * l)
        first, second = Box(m, piece.box.cols, k).weighed(w, w, q, alpha), Box(f, m, l).weighed(w, p, w, beta)
        kinds = (
            replace(first, limits=(*first.limits[:2], deep if q == w else Fraction(0))),
            replace(second, limits=(*second.limits[:2], deep)),
        )
        return replace(
            piece,
            method=METHOD_IN_BYTES,
            initialised=q * piece.initialised + (p - widths.written) * m * l,
            added=w * piece.added,
            whole_numbers=False,
            theorem=IN_BYTES,
            widths=widths,
            charges=(q, p),
            kinds=kinds,
            weights=weights,
        )

    @property
    def kernels(self) -> tuple[tuple[Piece, int], ...]:
        """The boxes of the two kernels, and the compulsory traffic of each."""
        m, k, f, l, cells, streams = self.m, self.k, self.f, self.l, self.cells, self.streams
        box, initialised = Box(m, streams * f, k), (streams - 1) * cells
        first = Piece("", SEPARATE, box, (streams * cells * k, 0), initialised, cells=streams * cells)
        second = Piece("", SEPARATE, Box(m, l, f), (cells * l, 0))
        return (first, m * k + streams * k * f + cells), (second, cells + f * l + m * l)


@dataclass(frozen=True)
class ChainSegments(Use):
    """Theorem 2 with each of its boxes, in bytes B2."""

    chain: Chain
    widths: Widths = ALIKE
    counts_touched = True

    @property
    def about(self) -> tuple[Piece, ...]:
        """The boxes."""
        return self.chain.pieces_at(self.widths)

    def proofs(self, goal: Goal) -> Iterator[Segments]:
        """Of each box."""
        return (proof for piece in self.about for proof in piece.proofs(goal))

    def weighted(self, widths: Widths) -> tuple[ChainSegments]:
        """With the charges and weights that are worth trying."""
        return (replace(self, widths=widths),)


@dataclass(frozen=True)
class Kernels(SingleClaim):
    """Two kernels with H in slow memory between them: of each, Theorem 1 or 7 or its compulsory traffic."""

    method: str  #: what the bound is called
    kernels: tuple[GroupProof, ...]  #: Theorem 1 or 7 for each
    least: tuple[int, ...]  #: compulsory traffic of each

    @property
    def theorem(self) -> Theorem:
        """What the bounds of the kernels rest on; that they add up is proved on paper."""
        pairs = zip(self.kernels, self.least, strict=True)
        used = (kernel.theorem if kernel.elements > least else COMPULSORY for kernel, least in pairs)
        return Theorem(f"{all_names(used)}, kernel by kernel", __name__)

    @property
    def elements(self) -> int:
        """Values moved at least."""
        return sum(max(kernel.elements, least) for kernel, least in zip(self.kernels, self.least, strict=True))

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        parts = zip(self.kernels, self.least, strict=True)
        return {"kernels": [{**kernel.to_json(), "compulsory": least} for kernel, least in parts]}

    def claim(self) -> dict[str, Any]:
        """That of each kernel."""
        parts = zip(self.kernels, self.least, strict=True)
        entries = [ONCE if kernel.elements <= least else kernel.claim() for kernel, least in parts]
        return {"theorem": "kernel by kernel", "kernels": entries}
