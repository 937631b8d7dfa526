r"""The line bound in bytes: every value at its own width, a partial sum at the width of its accumulator.

The game is that of `pebble.bounds.widths`: an input and a complete cell of :math:`H` take :math:`w` bytes, held or
moved, a complete output :math:`w_o`, a partial sum of the output :math:`p` and one of :math:`H` :math:`p_H`, none of
them narrower than what it ends as. Theorems 7 and 8 (`pebble.bounds.lines`, `pebble.bounds.chain_lines`) follow each
value through the segments that touch it. All they need to know is what it takes while it is held over a cut, and what
it costs to leave and return.

**Which width.** A cell that two segments update one after the other is *between its first update and its last*: it is
begun, and it is not complete. So in the gap it is a partial sum: held over a cut it takes :math:`p` of the :math:`S`
bytes there; otherwise it is stored and loaded at :math:`p`, since the update before the gap changed it and the one
after it needs it. Accumulators that are merged later are partial sums until they are. Its last store, complete, and for
:math:`C \mathrel{+}= A B` the load before its first update, move :math:`w_o` each, and are none of these.

**Theorem B3.** *For all whole* :math:`h`, *all* :math:`\rho \ge 0` *and* :math:`\mu \ge 0`, *and with* :math:`S` *in
bytes, the bytes moved are at least the right side of Theorem 7, where a value is charged* :math:`\min_s [a + (s - 1) g
+ \mu\, \mathrm{E}(L, \min(R s, L))]` *with*

- *an input:* :math:`a = w`, :math:`g = w \min(1, \rho)`;
- *an output:* :math:`a = w_o` (:math:`2 w_o` *if it is added to*), :math:`g = p \min(2, \rho)`;
- *a cell of* :math:`H` *that only products of* :math:`A B` *touch (an up cell):* :math:`a = 0`, :math:`g = p_H \min(2,
  \rho)`; *where a kernel stores* :math:`H` *it is an output of that kernel with* :math:`p_H` *and* :math:`w`.

*Proof.* A cut falls between two moves, so at each of the :math:`h - 1` cuts the widths of what is held are at most
:math:`S` in all, and a value that stays in fast memory through a gap is held at one cut at least: :math:`\rho` times
its width then. By the above that is :math:`w` for an input and :math:`p` (:math:`p_H`) for a cell. What leaves and
returns costs :math:`w`, or :math:`2 p`. These moves, first loads and last stores are all different. So

.. math:: \text{bytes} + \rho (h - 1) S \ge \sum_{\text{values}} \big( a + (s - 1) g \big),

and what Theorem 7 says of products is about products, not about widths. :math:`\Box` As there, it holds with
recomputation where every cell is an output: the accumulators that are met on the way back from a stored output are
partial sums until the update that completes it. The whole of :math:`p - w_o` that B1 takes off for every output is not
taken off here: a cell that one segment begins and completes is charged :math:`w_o`, no more.

*A kernel that rounds* a partial sum when it spills it moves :math:`2 w_o` for it, no less than its charge if
:math:`\rho p \le 2 w_o`. So at :math:`\rho = 1`, where products are charged, the theorem holds for accumulators up to
twice as wide as outputs even if their spilled copies are rounded.

**Weighted products.** In a chain the values of :math:`Y` are wide while they are carried, those of :math:`A` are not: a
product of :math:`H D` may touch more bytes than one of :math:`A B`. Let it count :math:`\beta`, and one of :math:`A B`
:math:`\alpha`, whole numbers, and cut the schedule by this *work*: after the product with which it reaches
:math:`\lceil i V / h \rceil` of the whole :math:`V`. A segment then has :math:`\lceil V / h \rceil + \max(\alpha,
\beta) - 1` at most, which we call :math:`\bar v`. Take a product of a segment of work :math:`W` at random, with
probabilities like their work: with :math:`K = \sum \omega \ln \omega` over the works :math:`\omega` of all its
products,

.. math:: W\, \mathrm{H}(X Y Z) = W \ln W - K, \qquad W\, \mathrm{H}(X \mid Y Z) = \sum_{\text{lines}} t \ln t - K

for the works :math:`t` on the lines of one direction, and likewise for the others; the three add up to no more than the
whole. On the lines of :math:`A` and :math:`Y` all products count alike, :math:`t = \omega c`, so that :math:`\sum t \ln
t = \sum \omega c \ln c + K` there, and on those of :math:`B` and :math:`D` too. What is left is

.. math:: \sum_{A, B} \alpha\, c \ln c + \sum_{D, Y} \beta\, c \ln c + \sum_H t \ln t \le W \ln W .

**Theorem B4.** *For* :math:`1 \le \rho \le 2`, *whole* :math:`\alpha, \beta \ge 1`, *and all* :math:`h` *and*
:math:`\mu \ge 0`, *a chain moves at least*

.. math:: \sum_{\text{values}} \text{charges} - \mu V \ln \bar v - \rho (h - 1) S

*bytes without recomputation, where the values of* :math:`A, B, D, Y` *are charged as in B3, but with* :math:`\mu
\alpha` *or* :math:`\mu \beta` *for* :math:`\mu`, *up cells with the work of their products for* :math:`L`, *and a cell
of* :math:`H`, *with* :math:`k` *the work of its first products and* :math:`l` *that of its second ones, is charged the
larger of two numbers. The one is the least over* :math:`n \ge 1` *of the two*

.. math::

   \rho\, p_H (n - 1 - j_n) + w \min(j_n \rho, j_n + 1) + \mu\, \mathrm{E}(k + l, n), \qquad
   j_n = \min\big(n - 1, \lfloor (l - 1) / \lfloor (k + l) / n \rfloor \rfloor\big),

   \min_s \big[ (s - 1) \rho\, p_H + \mu\, \mathrm{E}(k, s) \big]
   + \min_{j \ge 1} \big[ w \min(j \rho, j + 1) + \mu\, \mathrm{E}(l, j) \big],

*and the other is*

.. math:: \min_s \big[ (s - 1) \rho\, p_H + \mu\, \mathrm{E}(k, s) \big]
          + \min_j \big[ (j - 1) w + \mu\, \mathrm{E}(l, j) \big].

*Proof.* The works :math:`W_i` of the segments add up to :math:`V`, so :math:`\sum W_i \ln W_i \le V \ln \bar v`; with
:math:`\alpha = \beta = 1` they are the shares of Theorem 7. (A segment without products changes nothing.) As in Theorem
7 that pays for what the values have, and the inequality on moves is that of B3. It remains to charge a cell of
:math:`H`. Let :math:`s` segments hold first products of it and :math:`j` further ones second products only. In the
:math:`s - 1` gaps between the former a first product is still to come: it is a partial sum, :math:`p_H \min(2, \rho) =
\rho\, p_H` each. All first products come before all second ones, so at the cut in front of each of the :math:`j` the
cell is complete; it is held there at :math:`w` or wider, or loaded at :math:`w`, and if it is ever loaded then, it was
stored once, complete, at :math:`w`. So it costs at least

.. math:: M(s, j) = (s - 1) \rho\, p_H + w \min(j \rho, j + 1).

*Merged partial sums:* if the last merge is in none of the :math:`s` segments, there is one more gap at :math:`\rho\,
p_H`, and one segment with second products less is paid for, at most :math:`\rho w \le \rho\, p_H`. With :math:`n = s +
j` fixed, :math:`M` does not increase with :math:`j`: a step takes :math:`\rho\, p_H` off and adds :math:`\rho w` at
most. The works of the cell in its segments are positive whole numbers that add up to :math:`k + l`, at most :math:`l`
of it in the :math:`j`. As in Theorem 8, with :math:`q = \lfloor (k + l) / n \rfloor`, their :math:`\sum t \ln t` is at
least :math:`\mathrm{E}(k + l, n)`, and if :math:`j q \ge l` even :math:`\mathrm{E}(k, s) + \mathrm{E}(l, j)`. So where
:math:`j q < l`, that is :math:`j \le j_n`, the first line is no more than the charge, and elsewhere the second is. The
other number: one segment at most has both kinds of products, of works :math:`a` and :math:`b` say, and :math:`(a + b)
\ln (a + b) \ge a \ln a + b \ln b`. So the cell has at least :math:`\mathrm{E}(k, s) + \mathrm{E}(l, j')`, where
:math:`j'`, the segments with second products, are :math:`j` or :math:`j + 1`; and :math:`M(s, j) \ge (s - 1) \rho\, p_H
+ w j`. :math:`\Box` At one width and weight the first number is Theorem 8. Where many segments touch a cell, the first
is replaced by :math:`\min_n [(n - 1) w + \mu\, \mathrm{E}(k + l, n)]`, which is less, and the second is the larger;
elsewhere the second is left out. A gated chain has gate and up cells side by side, or forgets the up cells and loads
the up weights besides, as in Theorem 8.

**Units.** All widths, and so all that is held or moved, are multiples of their greatest common divisor :math:`g`. Bytes
are counted in units of :math:`g`, and :math:`S` is rounded down to such a multiple. So values of one width are counted
one by one: it is the theorem without widths then, number for number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import gcd, log
from typing import Any

from pebble.bounds.base import Theorem
from pebble.bounds.chain import Chain
from pebble.bounds.chain_lines import least_charge
from pebble.bounds.line_search import LineBound, line_bound
from pebble.bounds.lines import LOG_BITS, PRICE_BITS, Cut, Kind, Lines, Problem, ln_above, parts_below, parts_near
from pebble.units import ceil_div
from pebble.workloads.widths import Widths

ONE_PRODUCT = Theorem("Theorem B3", __name__)
CHAIN = Theorem("Theorem B4", __name__)
METHOD = "line accounting in bytes"
_PRICES = (1.0, 1.15, 1.3, 1.5, 1.75)
_MANY = 1000  # mu (k + l) / w, about the segments that touch a cell, beyond which first and second products are apart
_ONE = 1 << PRICE_BITS


@dataclass(frozen=True)
class WideHidden:
    """Cells of H, charged as Theorem B4 says; widths in units."""

    name: str  #: what they are called
    count: int  #: how many
    k: int  #: work of the first products of each
    l: int  #: work of the second products of each
    complete: int  #: w, what it takes once its first products are done
    partial: int  #: p_H, what it takes before, no less

    @property
    def length(self) -> int:
        """Work of all products of one."""
        return self.k + self.l

    def floor(self) -> Lines:
        """The line of a value that is charged less in every case."""
        return Lines(self.name, 1, self.length, first=0, again=self.complete, room=self.complete)

    def firsts(self) -> Lines:
        """Its first products: it begins free, and a partial sum leaves and returns at twice its width."""
        return Lines(self.name, 1, self.k, first=0, again=2 * self.partial, room=self.partial)

    def seconds(self, first: int, again: int) -> Lines:
        """Its second products, at ``first`` and ``again`` of its complete widths."""
        w = self.complete
        return Lines(self.name, 1, self.l, first * w, again * w, w)

    def mixed(self, cut: Cut, n: int) -> int:
        """2^192 times the charge in n segments, in some of which first and second products meet, rounded down."""
        later = min(n - 1, (self.l - 1) // (self.length // n))
        read = self.complete * min(later * cut.rho, (later + 1) * _ONE)
        moves = self.partial * (n - 1 - later) * cut.rho + read
        return (moves << LOG_BITS) + cut.mu * parts_below(self.length, n)

    def apart(self, cut: Cut) -> int:
        """2^192 times the charge where no segment has both first and second products, rounded down."""
        stored = self.seconds(2, 1).least(cut)[0]
        held = self.seconds(0, 2).least(cut)[0] + ((self.complete * cut.rho) << LOG_BITS)
        return self.firsts().least(cut)[0] + min(stored, held)

    def least(self, cut: Cut) -> tuple[int, int | tuple[int, int]]:
        """2^192 times the charge, rounded down, and in how many segments it is.

        0 segments stand for first and second products in different ones; two numbers for each by itself, of many.
        """
        if not _ONE <= cut.rho <= 2 * _ONE:
            raise ValueError("the theorem is about prices from 1 to 2")
        if self.partial < self.complete:
            raise ValueError("the theorem is about partial sums that are no narrower than what they end as")
        floor = self.floor()
        lowest, start = floor.least(cut)
        if cut.mu * self.length > _MANY * self.complete * _ONE:
            (first, s), (second, j) = self.firsts().least(cut), self.seconds(0, 1).least(cut)
            return (first + second, (s, j)) if first + second > lowest else (lowest, start)
        return least_charge(self, cut, floor, start)

    def rough(self, segments: int, mu: float, rho: float) -> tuple[float, float]:
        """The charge in floating point, about, and E there."""
        w, p = self.complete, self.partial
        first = self.firsts().rough(segments, mu, rho)
        if mu * self.length > _MANY * w:
            back = self.seconds(0, 1).rough(segments, mu, rho)
            return first[0] + back[0], first[1] + back[1]
        most = min(segments, self.length)
        # about where the moves that one segment more costs are what it saves, all held, or cells stored and loaded
        prices = (rho * p, (rho * p * self.k + w * self.l) / self.length, w)
        found = []
        for n in {
            max(1, min(most, int(mu * self.length / price) + step)) for price in prices for step in (-1, 0, 1, 2)
        }:
            later = min(n - 1, (self.l - 1) // (self.length // n))
            entropy = parts_near(self.length, n)
            found.append((rho * p * (n - 1 - later) + w * min(later * rho, later + 1) + mu * entropy, entropy))
        if most > 1:
            back = self.seconds(2, 1).rough(segments, mu, rho)
            kept, entropy = self.seconds(0, 2).rough(segments, mu, rho)
            second = min(back, (kept + w * rho, entropy))
            found.append((first[0] + second[0], first[1] + second[1]))
        return min(found)


@dataclass(frozen=True)
class Weighted(Problem):
    """Theorem B4: a chain cut by work; ``work`` counts it."""

    weights: tuple[int, int] = (1, 1)  #: alpha and beta
    multiply_adds: int = 0  #: of both products

    @property
    def products(self) -> int:
        """Multiply-adds."""
        return self.multiply_adds

    def longest(self, segments: int) -> int:
        """The most work that a segment may have."""
        return ceil_div(self.work, segments) + max(self.weights) - 1

    def entropy_above(self, segments: int) -> int:
        """2^128 V ln of that, rounded up."""
        if max(self.weights) == 1:
            return super().entropy_above(segments)
        return self.work * ln_above(self.longest(segments))

    def entropy_near(self, segments: int) -> float:
        """About the same in floating point."""
        if max(self.weights) == 1:
            return super().entropy_near(segments)
        return self.work * log(self.longest(segments))


@dataclass(frozen=True)
class LineBytes:
    """Theorem B3 or B4 on an instance."""

    found: LineBound  #: Theorem 7 or 8 with values charged by their widths, in units
    unit: int  #: g, bytes of a unit

    @property
    def theorem(self) -> Theorem:
        """What it rests on."""
        return CHAIN if isinstance(self.found.problem, Weighted) else ONE_PRODUCT

    @property
    def bytes(self) -> int:
        """Bytes moved, at least."""
        return self.unit * self.found.elements

    @property
    def segments(self) -> int:
        """How many there are, h."""
        return self.found.segments

    @property
    def products(self) -> int:
        """Multiply-adds."""
        return self.found.problem.products

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``; what it counts is in units."""
        problem = self.found.problem
        weights = {"work_weights": list(problem.weights)} if isinstance(problem, Weighted) else {}
        return {"form": self.found.form, "unit_bytes": self.unit, **weights, **self.found.to_json()}


def unit_of(widths: Widths) -> int:
    """The greatest common divisor of all widths, in bytes."""
    return reduce(gcd, (widths.read, widths.hidden, widths.partial, widths.written))


def problem_in_bytes(problem: Problem, widths: Widths) -> Problem:
    """Theorem B3: Theorem 7 with every value at its width, in units of `unit_of`.

    A value that returns at one move is an input; at two a cell, of the output if any move is certain.
    """
    unit = unit_of(widths)
    w, written = widths.read // unit, widths.written // unit

    def wide(kind: Kind) -> Lines:
        if not isinstance(kind, Lines):
            raise TypeError(f"a kind of value: got {type(kind).__name__}, expected lines of one product")
        if kind.again == 1:
            return replace(kind, first=w * kind.first, again=w, room=w)
        p = (widths.partial if kind.first else widths.hidden) // unit
        return replace(kind, first=written * kind.first, again=2 * p, room=p)

    return replace(problem, kinds=tuple(map(wide, problem.kinds)), added=problem.added * w)


def chain_in_bytes(chain: Chain, widths: Widths, weights: tuple[int, int] = (1, 1)) -> tuple[Weighted, ...]:
    """Theorem B4, each way to apply it, in units of `unit_of`; none where a mask leaves cells of H out."""
    m, k, f, l, (alpha, beta) = chain.m, chain.k, chain.f, chain.l, weights
    if chain.cells != m * f:
        return ()
    unit = unit_of(widths)
    w, p, hidden = (width // unit for width in (widths.read, widths.partial, widths.hidden))

    def problem(form: str, streams: int, added: int) -> Weighted:
        kinds: list[Kind] = [
            Lines("A", m * k, streams * f, w, w, w, weight=alpha),
            Lines("B", streams * k * f, m, w, w, w, weight=alpha),
            Lines("D", f * l, m, w, w, w, weight=beta),
            Lines("Y", m * l, f, widths.written // unit, 2 * p, p, weight=beta),
            WideHidden(chain.hidden, m * f, alpha * k, beta * l, w, hidden),
        ]
        if streams == 2:
            kinds.append(Lines("up cells", m * f, alpha * k, 0, 2 * hidden, hidden))
        first, second = m * f * k * streams, m * f * l
        work = alpha * first + beta * second
        return Weighted(form, tuple(kinds), work, added * w, _PRICES, weights, first + second)

    if not chain.gated:
        return (problem("chain", 1, 0),)
    return problem("gated chain", 2, 0), problem("gate's chain", 1, chain.up_weights)


def chain_line_bytes(chain: Chain, widths: Widths, capacity: int) -> tuple[LineBytes, ...]:
    """Theorem B4 for a memory of ``capacity`` bytes: some hundredths of a second.

    Products count alike, or so that they weigh what is carried of A and of Y: about as the roots of their widths.
    """
    ratio = {2: (5, 7), 4: (1, 2)}.get(widths.partial // widths.read, (1, 1))
    problems = [one for weights in sorted({(1, 1), ratio}) for one in chain_in_bytes(chain, widths, weights)]
    return _found(problems, unit_of(widths), capacity)


def line_bytes(problems: Sequence[Problem], widths: Widths, capacity: int) -> tuple[LineBytes, ...]:
    """Theorem B3 for a memory of ``capacity`` bytes, each way to apply it: some milliseconds each."""
    return _found([problem_in_bytes(problem, widths) for problem in problems], unit_of(widths), capacity)


def _found(problems: Sequence[Problem], unit: int, capacity: int) -> tuple[LineBytes, ...]:
    return tuple(LineBytes(line_bound(problem, capacity // unit, METHOD), unit) for problem in problems)
