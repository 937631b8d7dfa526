r"""The visit bound: what one operand of a product must move when it does not fit and many slices of it are due.

The other theorems cut a schedule into segments. This one looks at every load and every drop of one operand, the
*streamed* one, and asks how much of each *slice* of the other two lies in fast memory just then. It gains where the
streamed operand exceeds the memory by up to two times or so, and there are many slices.

**Setting.** :math:`C := A B`, :math:`m \times k` by :math:`k \times n`. Stream :math:`A`: a slice is a column
:math:`j` of :math:`B` and :math:`C`, and uses each value of :math:`A` once. Its products are a grid: its *rows* are
the :math:`m` cells :math:`C_{ij}`, its *columns* the :math:`k` values :math:`B_{lj}`. Stream :math:`B`: a slice is a
row of :math:`C` and :math:`A`. Stream :math:`C`: a slice is a step :math:`l` of the depth, a column of :math:`A` and a
row of :math:`B`. Widths are those of `pebble.bounds.box`, in the classic game all 1: a value of the streamed operand
takes :math:`z` (:math:`w` of :math:`A` and :math:`B`, :math:`w_o` of :math:`C`), one of a row of a slice :math:`u`
(:math:`p` for a cell, else :math:`w`), one of a column :math:`w`. Let a slice have :math:`R = u` (rows), :math:`K = w`
(columns) and :math:`M` products, one with each streamed value.

*A clean schedule.* Leave out what serves nothing: updates that no stored output depends on, loads of what is dropped
unused. Then no product is done twice (`pebble.bounds.lines`), a loaded accumulator is updated or merged before it
leaves, and an output is stored and dropped at once when it is complete. All is dropped at the end. Nothing of this
costs a move or room.

**Events.** An event is a load or a drop that changes how many streamed values are in fast memory, from :math:`a` to
:math:`a + 1` or back. (Of :math:`C`: how many cells have an accumulator there.) While there are :math:`a + 1`, all
slices together hold :math:`S - z (a + 1)` at most. Let slice :math:`j` hold :math:`\sigma_j`. With :math:`f(a) = 1 /
(S / z - a - 1)` an event has :math:`z \ge \sum_j \sigma_j f(a)`. There are as many loads as drops, so the loads of the
streamed operand are :math:`\frac12 \sum_j \sum_e \sigma_j(e) f(a_e)` at least. A cell of :math:`C` that is in fast
memory :math:`s` times is stored and loaded :math:`s - 1` times, at :math:`p \ge w_o`, and stored at the end: :math:`2
w_o s - w_o` at least. So where :math:`C` is streamed it moves :math:`\sum_j \sum_e \sigma_j(e) f(a_e) - w_o m n` at
least.

**One slice.** Let :math:`q` of its products be done. A value of it is *partial* if some of its products are done and
some are not. If a row is done and another not initialised, all columns are partial: :math:`K`. If a column is done and
another not initialised, all rows are: :math:`R`. If no row and no column is done, those that are initialised are
partial, and
:math:`r` rows and :math:`c` columns have :math:`r c \ge q`, so they take :math:`u r + w c \ge 2 \sqrt{u w q}`.
Otherwise all are initialised, those not done are partial, and take :math:`2 \sqrt{u w (M - q)}`.

A partial value that is not in fast memory is in a *gap*: an input that is loaded again, :math:`w`; a cell whose last
accumulator left, changed since it came, and returns: stored and loaded, :math:`2 p`. Let all columns of the grid that
ever have a gap take :math:`a` and all rows :math:`b`, each counted as often as it has one. Moves of the slice besides
first loads and last stores are :math:`a + 2 b` (:math:`a + b` where :math:`C` is streamed). At any time

.. math:: \sigma \ge \min \big( K - a,\; R - b,\; \lceil 2 \sqrt{u w q} \rceil - a - b,\;
          \lceil 2 \sqrt{u w (M - q)} \rceil - a - b \big).

With :math:`q_s = \lfloor (s - 1)^2 / 4 u w \rfloor + 1`, the least :math:`q` with :math:`2 \sqrt{u w q} > s - 1`, this
says: :math:`\sigma` is at least the number of *layers* :math:`s = a + b + 1, \ldots, \min(K + b, R + a)` with
:math:`q_s \le q \le M - q_s`. A layer is there for an interval of time, of :math:`M - 2 q_s` products, each with a
streamed value of its own; those of larger :math:`s` lie inside.

**One layer.** Take any moment while the innermost layer is there. Let :math:`\mu` streamed values be in fast memory.
Of those that are not, let the slice have used :math:`D_1`, and :math:`D_2` not yet: :math:`D_1 + D_2 = M - \mu`. Since
the layer began it has used at least :math:`d = D_1 - q_s` of the first; each was dropped since. Let the number of
streamed values be :math:`a` when it began, and :math:`\nu \le \min(a, \mu)` where it was least since. Then there were
:math:`2 d + \mu - a` events at least; each number between :math:`\nu` and :math:`a` was passed downwards, between
:math:`\nu` and :math:`\mu` upwards, and the others, :math:`2 (d - a + \nu)` at least, had :math:`f \ge 1 / (S' -
\nu)`, with :math:`S' = S / z`. Since :math:`\sum_{b \le i < a} f(i) \ge \ln \frac{S' - b}{S' - a}`, they have

.. math:: \sum f \ge \ln \frac{S' - \nu}{S' - a} + \ln \frac{S' - \nu}{S' - \mu}
          + \frac{2 \max(0, d - a + \nu)}{S' - \nu} .

The least over :math:`a` is at :math:`a - \nu = \min(d, (S' - \nu) / 2)`, and then over :math:`\nu` at :math:`\nu =
\mu` if :math:`d \le (S' - \mu) / 2`, at :math:`S' - 2 d` if :math:`d` is larger and at most :math:`S' / 2`, at 0
beyond (with :math:`y = d / (S' - \nu)` it falls in :math:`\nu` while :math:`y < 1/2` and rises after):

.. math:: h_\mu(d) = \begin{cases} 0 & d \le 0 \\ -\ln(1 - d / (S' - \mu)) & d \le (S' - \mu) / 2 \\
          \ln (4 d / (S' - \mu)) & d \le S' / 2 \\ -\ln(1 - \mu / S') + 2 d / S' - 1 + \ln 2 & \text{beyond.}
          \end{cases}

From that moment on it is the same backwards in time, with :math:`D_2` and loads: the layer has :math:`h_\mu(D_1 - q_s)
+ h_\mu(D_2 - q_s)` at least.

**Which gaps are worth their price.** Let :math:`w(s)` be that, halved where :math:`A` or :math:`B` is streamed, for
:math:`s \le K` and :math:`2 q_s \le M`, and else 0. It falls as :math:`s` grows. The slice moves, beyond first loads
and last stores,

.. math:: a + 2 b + \sum_{s = a + b + 1}^{\min(K, R + a)} w(s) .

For one :math:`a + b` this is concave in :math:`b`: least at :math:`a = 0` or at :math:`b = 0`. With :math:`a = 0` each
gap costs 2 and removes one layer, the sum is at least :math:`\sum \min(2, w(s))` over :math:`s \le \min(K, R)`. With
:math:`b = 0` layers :math:`a + 1` to :math:`a + R` are left: one of each class of numbers that differ by multiples of
:math:`R`, and :math:`a` is how often the classes have moved on by :math:`R`, all together. So

**Theorem 12.** *With the first loads and last stores of the two operands of slices, what moves is at least*

.. math:: \text{slices} \cdot \min_{\mu, D_1} \sum_{s=1}^{\min(K, R)} \min \big( 2,\; w(s),\; 1 + w(s + R) \big),

*over* :math:`\mu, D_1 \ge 0` *with* :math:`\mu + D_1 \le M`, *where* :math:`A` *or* :math:`B` *is streamed; where*
:math:`C` *is, with* :math:`\min(1, w(s))`, *and less* :math:`w_o m n`. *For* :math:`C \mathrel{+}= A B` *the first
load of each cell comes on top.* :math:`\Box`

**Theorem B6.** *The same in bytes*, since all of this is said in widths.

It holds with recomputation and for any order of sums, since a clean schedule has neither; not with atomic adds, where
a cell makes a gap for one store.

The minimum is proved by `pebble.bounds.visit_search`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt
from typing import Any

from pebble.bounds.numbers import number
from pebble.bounds.proofs import InWidths, Theorem
from pebble.workloads.widths import ALIKE, Widths

THEOREM = Theorem("Theorem 12", __name__)
IN_BYTES = Theorem("Theorem B6", __name__)
METHOD = "visit accounting"
METHOD_IN_BYTES = "visit accounting in bytes"
BITS = 64  # of the fractional part of what a slice moves


@dataclass(frozen=True)
class Slices:
    """The slices of a product when one operand is streamed, in units of the widths."""

    streamed: str  #: the operand
    count: int  #: slices
    certain: int  #: what surely moves besides: of C streamed, less w_o m n
    products: int  #: M
    rows: int  #: R
    columns: int  #: K
    square: int  #: u w
    width: int  #: z
    doubled: bool  #: whether layers count in full: C is streamed, so that each event moves
    spills: bool  #: whether a gap of a row costs two moves

    def first(self, s: int) -> tuple[int, int]:
        """(s - 1)^2 / 4 u w + 1, as a numerator and a denominator: q_s is this, rounded down."""
        return (s - 1) ** 2 + 4 * self.square, 4 * self.square

    @property
    def layers(self) -> int:
        """The largest s whose layer can be there at all."""
        s = min(self.columns, isqrt(2 * self.square * self.products) + 1)
        while s > 0 and 2 * ((s - 1) ** 2 // (4 * self.square) + 1) > self.products:
            s -= 1
        return s

    @property
    def most(self) -> int:
        """No slice is proved to move more than this."""
        return min(self.columns, self.rows) * (2 if self.spills and self.columns > self.rows else 1)


@dataclass(frozen=True)
class Product:
    """What a product tells the theorem: C := A B, or C += A B."""

    m: int
    n: int
    k: int
    accumulate: bool = False
    widths: Widths = ALIKE

    def at(self, widths: Widths) -> Product:
        """The same with every value at its width."""
        return replace(self, widths=widths)

    def slices(self) -> tuple[Slices, ...]:
        """With A, B or C streamed."""
        (m, n, k), (w, _, p, written) = (self.m, self.n, self.k), self.widths.in_units
        inputs, outputs = w * k * (m + n), written * m * n * (2 if self.accumulate else 1)
        return (
            Slices("A", n, w * k * n + outputs, m * k, p * m, w * k, p * w, w, False, True),
            Slices("B", m, w * m * k + outputs, n * k, p * n, w * k, p * w, w, False, True),
            Slices("C", k, inputs + outputs - 2 * written * m * n, m * n, w * m, w * n, w * w, written, True, False),
        )  # fmt: skip


@dataclass(frozen=True)
class VisitBound(InWidths):
    """Theorem 12 on an instance, in bytes B6."""

    METHODS = (METHOD, METHOD_IN_BYTES)
    rank = 4

    product: Product
    capacity: int  #: S, in units of the widths, as all that follows
    slices: Slices
    least: int  #: 2^64 times what a slice moves at least besides

    @property
    def widths(self) -> Widths:
        """What its values take."""
        return self.product.widths

    @property
    def theorem(self) -> Theorem:
        """What it rests on."""
        return THEOREM if self.widths == ALIKE else IN_BYTES

    @property
    def elements(self) -> int:
        """Moved at least."""
        return self.slices.certain - (-self.slices.count * self.least >> BITS)

    @property
    def form(self) -> str:
        """What it is about."""
        return "product"

    @property
    def products(self) -> int:
        """Multiply-adds."""
        return self.slices.count * self.slices.products

    @property
    def segments(self) -> int:
        """The schedule is not cut."""
        return 1

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        fields = {"streamed": self.slices.streamed, "slices": self.slices.count, "surely_moved": self.slices.certain}
        spec = {} if self.widths == ALIKE else {"form": self.form, "unit_bytes": self.unit}
        return {
            **spec,
            "segments": 1,
            "share_multiply_adds": self.products,
            **fields,
            "slice_at_least": f"{self.least}/{1 << BITS}",
        }

    def claim(self) -> dict[str, Any]:
        """The streamed operand and what a slice moves; the checker goes through all mu and D_1 itself."""
        return {"theorem": "visits", "streamed": self.slices.streamed, "slice_at_least": f"{self.least}/{1 << BITS}"}

    argument = ""  #: it names the streamed operand, so it is told of each instance

    def text(self, traffic: Mapping[str, int]) -> str:
        """The argument, what a slice moves, and the sum."""
        s, per_slice = self.slices, number(Fraction(self.least, 1 << BITS))
        kind, rows, columns = {
            "A": ("column", "cells of $C$", "values of $B$"),
            "B": ("row", "cells of $C$", "values of $A$"),
            "C": ("step of the depth", "values of $A$", "values of $B$"),
        }[s.streamed]
        units = "" if self.widths == ALIKE else f" Room and moves count units of ${self.unit}$ bytes, also in $Q$."
        halves = "the sum over its layers" if s.doubled else "half the sum over its layers"
        charge = r"\min(1, w)" if not s.spills else r"\min(2, w(s), 1 + w(s + R))"
        return rf"""
        ## Loads and drops of one operand

        Stream ${s.streamed}$: a slice is a {kind}, {number(s.count)} of them, with {rows} and {columns}, which take $R
        = {number(s.rows)}$ and $K = {number(s.columns)}$.{units} It uses each of the $M = {number(s.products)}$ values
        of ${s.streamed}$ once. Whenever one of these is loaded or dropped while $a + 1$ are in fast memory, all slices
        together hold at most $S - {s.width} (a + 1)$ there, $S = {number(self.capacity)}$. So each load or drop pays
        for what the slices hold, and a slice that holds $\sigma$ is owed $\sigma / (S / {s.width} - a - 1)$.

        While $q$ of its products are done, the values of a slice that are initialised and not done take at least
        $\min(K, R, 2 \sqrt{{{s.square} q}}, 2 \sqrt{{{s.square} (M - q)}})$; each is held, or leaves and returns at a
        price. Count what is held in layers $s = 1, 2, \ldots$: layer $s$ is there from $q_s \approx s^2 / {
            4 * s.square
        }$ products done until $q_s$ are left. At a moment inside, let $\mu$ values of ${s.streamed}$ be in fast
        memory, and $D_1 + D_2 = M - \mu$ not, of which the slice has used $D_1$. Those were dropped, these must be
        loaded: with $h_\mu(d)$ the least that $d$ drops are owed by one layer, it is owed $h_\mu(D_1 - q_s) + h_\mu(D_2
        - q_s)$.

        ## Arithmetic

        What leaves and returns may spare layers, each at its price. A slice moves, besides first loads and last
        stores, {halves} of these, $w(s)$, at the price where that is less: the sum of ${charge}$. For all $\mu$ and
        $D_1$ this is at least ${per_slice}$. With what surely moves, {number(s.certain)}:

        $$ Q \ge {number(s.certain)} + {number(s.count)} \cdot {per_slice} \quad\Rightarrow\quad Q \ge
        {number(self.elements)}
        """
