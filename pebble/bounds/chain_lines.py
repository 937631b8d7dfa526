r"""The line bound of two products in a row: what a cell of the hidden matrix costs, stored or held.

Theorem 7 (`pebble.bounds.lines`) holds for any set of products in a box, and those of :math:`H = \mathrm{act}(A B)` and
:math:`Y = H D` are one in a box :math:`m \times f \times (k + l)` (`pebble.bounds.chain`): a value of :math:`A` or
:math:`Y` has a line of :math:`f` products, one of :math:`B` or :math:`D` of :math:`m`, a cell of :math:`H` of *first*
products, which complete it, and *second* ones, which read it. All first products of a cell come before the second ones,
and nothing is computed twice. What is new is what such a cell is charged. A value takes a width, as in Theorem B3: an
input and a complete cell of :math:`H` take :math:`w`, a partial sum of :math:`H` takes :math:`p_H \ge w`, one of
:math:`Y` takes :math:`p`, a complete output :math:`w_o`. In the classic game all are 1.

**Moves of a cell.** Let :math:`s` segments hold first products of the cell, and :math:`j` further ones second products
only. It begins free and need not end in slow memory.

- Between two of the :math:`s` a first product is still to come: it is a partial sum. It is held over a cut, or it
  leaves and returns, a store and a load, since it changes. For :math:`\rho \le 2` together at least :math:`(s - 1)
  \rho\, p_H`.
- Before each of the :math:`j` it is complete: held over the cut in front of it, at :math:`w` or wider, or loaded. If it
  is loaded at all, it has been stored once after it was complete. With :math:`t` loads: :math:`w ((j - t) \rho + t + [t
  > 0])`, so at least :math:`w \min(j \rho, j + 1)`.

These moves are all different: the stores of the first kind come before an update that changes the cell, the last one
after all updates. So it costs at least

.. math:: M(s, j) = (s - 1) \rho\, p_H + w \min(j \rho, j + 1).

An activation is one more operation between the two, in place: leaving it out is a relaxation. *If partial sums of the
cell are merged*, the segments with first products and the one with the last merge are joined by accumulators that are
held or return, as in Theorem 7; where the last merge is in none of the :math:`s` segments, that is one more gap at
:math:`\rho\, p_H`, and one segment with second products less is paid for, which is at most :math:`\rho w`.

**Weighted products.** In a chain the values of :math:`Y` are wide while they are carried, those of :math:`A` are not: a
product of :math:`H D` may touch more bytes than one of :math:`A B`. Let it count :math:`\beta`, and one of :math:`A B`
:math:`\alpha`, whole numbers (both 1 in the classic game), and cut the schedule by this *work*: after the product with
which it reaches :math:`\lceil i V / h \rceil` of the whole :math:`V`. A segment then has :math:`\lceil V / h \rceil +
\max(\alpha, \beta) - 1` at most, which we call :math:`\bar v`. Take a product of a segment of work :math:`W` at random,
with probabilities like their work: with :math:`K = \sum \omega \ln \omega` over the works :math:`\omega` of all its
products,

.. math:: W\, \mathrm{H}(X Y Z) = W \ln W - K, \qquad W\, \mathrm{H}(X \mid Y Z) = \sum_{\text{lines}} t \ln t - K

for the works :math:`t` on the lines of one direction, and likewise for the others; the three add up to no more than the
whole. On the lines of :math:`A` and :math:`Y` all products count alike, :math:`t = \omega c`, so that :math:`\sum t \ln
t = \sum \omega c \ln c + K` there, and on those of :math:`B` and :math:`D` too. What is left is

.. math:: \sum_{A, B} \alpha\, c \ln c + \sum_{D, Y} \beta\, c \ln c + \sum_H t \ln t \le W \ln W .

**Theorem 8**, *in bytes* **Theorem B4**. *For* :math:`1 \le \rho \le 2`, *whole* :math:`\alpha, \beta \ge 1`, *and all*
:math:`h` *and* :math:`\mu \ge 0`, *a chain without recomputation moves at least*

.. math:: \sum_{\text{values}} \text{charges} - \mu V \ln \bar v - \rho (h - 1) S

*(with* :math:`\alpha = \beta = 1` *the sum of* :math:`v_i \ln v_i` *for* :math:`V \ln \bar v` *), where the values of*
:math:`A, B, D, Y` *are charged as in Theorems 7 and B3, but with* :math:`\mu \alpha` *or* :math:`\mu \beta` *for*
:math:`\mu`, *up cells with the work of their products for* :math:`L`, *and a cell of* :math:`H`, *with* :math:`k` *the
work of its first products and* :math:`l` *that of its second ones, is charged the larger of two numbers. The one is the
least over* :math:`n \ge 1` *of the two*

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
:math:`H`. The works of the cell in its segments are positive whole numbers that add up to :math:`k + l`, at most
:math:`l` of it in the :math:`j`. With :math:`\mathrm{E}(L, n)` the least sum of :math:`c \ln c` over :math:`n` positive
whole numbers that add up to :math:`L`, it has at least :math:`\mathrm{E}(k + l, s + j)`. Let :math:`q` be :math:`(k +
l) / (s + j)` rounded down. If :math:`j q \ge l`, it has more: :math:`\mathrm{E}(J, j) + \mathrm{E}(k + l - J, s)` is
convex in :math:`J`, the work in the :math:`j` segments, and does not increase up to :math:`J = j q`, so with :math:`J
\le l` it is least at :math:`l`, and the cell has :math:`\mathrm{E}(k, s) + \mathrm{E}(l, j)`: the second line is no
more than its charge, for :math:`j \ge 1` as :math:`l \ge 1`. If :math:`j q < l`, that is :math:`j \le j_n` with
:math:`n = s + j`, the first line is: for a given :math:`n`, :math:`M` does not increase with :math:`j`, since a step
takes :math:`\rho\, p_H` off and adds :math:`\rho w` at most. The other number: one segment at most has both kinds of
products, of works :math:`a` and :math:`b` say, and :math:`(a + b) \ln (a + b) \ge a \ln a + b \ln b`. So the cell has
at least :math:`\mathrm{E}(k, s) + \mathrm{E}(l, j')`, where :math:`j'`, the segments with second products, are
:math:`j` or :math:`j + 1`; and :math:`M(s, j) \ge (s - 1) \rho\, p_H + w j`. :math:`\Box`

In the first line only those :math:`n` need be looked at whose :math:`(n - 1) w + \mu\, \mathrm{E}(k + l, n)` is below
the least so far: what is left out is at most the charge, and it is convex in :math:`n`. Where many segments touch a
cell, its least stands for the first number, which is more, and the second is the larger; elsewhere the second is left
out.

**A gated chain** has gate and up cells, :math:`2 f` columns in the box. A value of :math:`A` has a line of :math:`2 f`,
a gate's cell is a cell as above, in which :math:`H` takes its place after the elementwise product, and an up cell has
first products, begins free and ends nowhere. Or forget the up cells: what is left is a schedule of the gate's chain,
and every up weight is loaded besides.

**Separate kernels** are two products, each from empty fast memory, with :math:`H` an output of the one and an input of
the other: Theorem 7 for each, added.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from pebble.bounds.chain import Chain
from pebble.bounds.line_search import ByLines, LineBound, line_bound
from pebble.bounds.lines import (
    LOG_BITS,
    MULTIPLIER_BITS,
    Cut,
    LineProblem,
    Lines,
    ValueKind,
    entropy_below,
    entropy_near,
)
from pebble.bounds.numbers import number
from pebble.bounds.proofs import Theorem
from pebble.bounds.uses import Goal, Use
from pebble.workloads.widths import ALIKE, Widths

THEOREM = Theorem("Theorem 8", __name__)
IN_BYTES = Theorem("Theorem B4", __name__)
_MULTIPLIERS = (1.0, 1.15, 1.3, 1.5, 1.75)
_MANY = 1000  # mu (k + l) / w, about the segments that touch a cell, beyond which first and second products are apart
_ALONE = 1.4  # mu (k + l) / w up to which one segment is the cheapest: ln 2 of it is a move
_ONE = 1 << MULTIPLIER_BITS


@dataclass(frozen=True)
class Hidden:
    """Cells of H, charged as Theorem 8 says; widths in units."""

    name: str  #: what they are called
    count: int  #: how many
    k: int  #: first products of each, or their work
    l: int  #: second products of each, or their work
    complete: int = 1  #: w, what it takes once its first products are done
    partial: int = 1  #: p_H, what it takes before, no less

    @property
    def length(self) -> int:
        """All products of one, or their work."""
        return self.k + self.l

    def floor(self) -> Lines:
        """The line of a value that is charged less in every case."""
        return Lines(self.name, 1, self.length, first=0, again=self.complete, footprint=self.complete)

    def firsts(self) -> Lines:
        """Its first products: it begins free, and a partial sum leaves and returns at twice its width."""
        return Lines(self.name, 1, self.k, first=0, again=2 * self.partial, footprint=self.partial)

    def seconds(self, first: int, again: int) -> Lines:
        """Its second products, at ``first`` and ``again`` of its complete widths."""
        w = self.complete
        return Lines(self.name, 1, self.l, first * w, again * w, w)

    def mixed(self, cut: Cut, n: int) -> int:
        """2^192 times the charge in n segments, in some of which first and second products meet, rounded down."""
        later = min(n - 1, (self.l - 1) // (self.length // n))
        read = self.complete * min(later * cut.rho, (later + 1) * _ONE)
        moves = self.partial * (n - 1 - later) * cut.rho + read
        return (moves << LOG_BITS) + cut.mu * entropy_below(self.length, n)

    def disjoint(self, cut: Cut) -> int:
        """2^192 times the charge where no segment has both first and second products, rounded down."""
        stored = self.seconds(2, 1).least(cut)[0]
        held = self.seconds(0, 2).least(cut)[0] + ((self.complete * cut.rho) << LOG_BITS)
        return self.firsts().least(cut)[0] + min(stored, held)

    def least(self, cut: Cut) -> tuple[int, int | tuple[int, int]]:
        """2^192 times the charge, rounded down, and in how many segments it is.

        0 segments stand for first and second products in different ones; two numbers for each by itself, of many.
        """
        if not _ONE <= cut.rho <= 2 * _ONE:
            raise ValueError("the theorem is about multipliers from 1 to 2")
        if self.partial < self.complete:
            raise ValueError("the theorem is about partial sums that are no narrower than what they end as")
        floor = self.floor()
        lowest, start = floor.least(cut)
        if cut.mu * self.length > _MANY * self.complete * _ONE:
            (first, s), (second, j) = self.firsts().least(cut), self.seconds(0, 1).least(cut)
            return (first + second, (s, j)) if first + second > lowest else (lowest, start)
        most = floor.most(cut.segments)
        best, at = self.mixed(cut, start), start
        if most > 1:
            best, at = min((best, at), (self.disjoint(cut), 0))
        # the true floor is convex in n, and what it is rounded by is less than this
        slack = 4 * cut.mu * self.length
        for step in (1, -1):
            n = start + step
            while 1 <= n <= most and floor.charge(cut, n) <= best + slack:
                best, at = min((best, at), (self.mixed(cut, n), n))
                n += step
        return best, at

    def rough(self, segments: int, mu: float, rho: float) -> tuple[float, float]:
        """The charge in floating point, about, and E there."""
        w, p, length = self.complete, self.partial, self.length
        if mu * length > _MANY * w:
            first, back = self.firsts().rough(segments, mu, rho), self.seconds(0, 1).rough(segments, mu, rho)
            return max((first[0] + back[0], first[1] + back[1]), self.floor().rough(segments, mu, rho))
        most = min(segments, length)
        # about where the moves that one segment more costs are what it saves, all held, or cells stored and loaded
        multipliers = {rho * p, (rho * p * self.k + w * self.l) / length, *((w,) if p > w else ())}
        results = []
        for n in {
            max(1, min(most, int(mu * length / multiplier) + step))
            for multiplier in multipliers
            for step in (-1, 0, 1, 2)
        }:
            later = min(n - 1, (self.l - 1) // (length // n))
            entropy = entropy_near(length, n)
            results.append((rho * p * (n - 1 - later) + w * min(later * rho, later + 1) + mu * entropy, entropy))
        if most > 1 and mu * length > _ALONE * w:
            first, back = self.firsts().rough(segments, mu, rho), self.seconds(2, 1).rough(segments, mu, rho)
            resident, entropy = self.seconds(0, 2).rough(segments, mu, rho)
            second = min(back, (resident + w * rho, entropy))
            results.append((first[0] + second[0], first[1] + second[1]))
        return min(results)

    @property
    def argument(self) -> str:
        """What such a cell is charged."""
        return _ARGUMENT

    def text(self, at: int | tuple[int, int], weighted: bool) -> str:
        """How many there are, and the segments in which they are charged least."""
        where = f"in $n = {at}$ segments" if at else "with no segment that has both first and second products of it"
        if isinstance(at, tuple):
            where = f"$s = {at[0]}$ and $j' = {at[1]}$"
        products = f"${number(self.k)}$ first and ${number(self.l)}$ second products"
        if weighted:
            products = f"first products of work ${number(self.k)}$ in all and second ones of ${number(self.l)}$"
        return f"cells of {self.name} with {products}: {where}"


_ARGUMENT = r"""
        A cell of an intermediate has first products, $k$ in number, which complete it, and then $l$ second ones, which
        read it. It begins free and need not be stored. With first products in $s$ segments and second ones only in $j$
        further ones, it is held over cuts, or stored and loaded again between the $s$ (2 moves each), or stored once
        and loaded before each of the $j$: its bracket is $(s - 1) \rho + \min(j \rho, j + 1)$ and $\mu$ times the
        least $\sum c \ln c$, which is $\mathrm{E}(k + l, s + j)$ as long as the $j$ segments can have as many
        products as the others, and $\mathrm{E}(k, s) + \mathrm{E}(l, j)$ where they cannot. Touched by many segments,
        it has $\mathrm{E}(k, s) + \mathrm{E}(l, j')$ for $j'$ segments with second products, of which $j' - 1$ are
        paid for.
        """


class ChainWidths(NamedTuple):
    """What values of a chain take, in one unit: A, B, D, a cell of H complete and not, one of Y not and complete."""

    a: int
    b: int
    d: int
    complete: int
    hidden: int
    partial: int
    written: int

    @classmethod
    def of(cls, widths: Widths) -> ChainWidths:
        """Where inputs and complete cells have one width."""
        w, hidden, p, written = widths.in_units
        return cls(w, w, w, w, hidden, p, written)


def chain_problems(
    chain: Chain,
    widths: Widths = ALIKE,
    weights: tuple[int, int] = (1, 1),
    own_input: bool = True,
    numbers: ChainWidths | None = None,
) -> tuple[LineProblem, ...]:
    """The ways to apply Theorem 8 to a chain whose H has all its cells; none where a mask leaves some out.

    Parameters
    ----------
    chain : Chain
    widths : Widths
        What values take; B4 where that is not all one. In the classic game products count alike.
    weights : tuple of int
        alpha and beta, what first and second products count.
    own_input : bool
        False: A is computed by another part of the workload, so that it is loaded once is not certain.
    numbers : ChainWidths, optional
        Where inputs have widths of their own; ``widths`` are then those of the game of values.
    """
    m, k, f, l, cells = chain.m, chain.k, chain.f, chain.l, chain.cells
    if cells != m * f:
        return ()
    alike, (alpha, beta) = widths.uniform and numbers is None, weights
    a, b, d, w, hidden, p, written = numbers or ChainWidths.of(widths)

    def problem(form: str, streams: int, added: int = 0) -> LineProblem:
        inputs: tuple[Lines, ...] = (
            Lines("B", streams * k * f, m, b, b, b, weight=alpha),
            Lines("D", f * l, m, d, d, d, weight=beta),
        )
        if alike:
            inputs = (Lines("B and D", (streams * k + l) * f, m),)
        kinds: list[ValueKind] = [
            Lines("A", m * k, streams * f, a * own_input, a, a, weight=alpha),
            *inputs,
            Lines("Y", m * l, f, written, 2 * p, p, weight=beta),
            Hidden(chain.hidden, cells, alpha * k, beta * l, w, hidden),
        ]
        if streams == 2:
            kinds.append(Lines("up cells", cells, alpha * k, 0, 2 * hidden, hidden))
        first, second = cells * k * streams, cells * l
        return LineProblem(
            form,
            tuple(kinds),
            alpha * first + beta * second,
            added * b,
            _MULTIPLIERS,
            theorem=THEOREM if alike else IN_BYTES,
            widths=widths,
            weights=None if alike else weights,
            multiply_adds=first + second,
        )

    if not chain.gated:
        return (problem("chain", 1),)
    return problem("gated chain", 2), problem("gate's chain", 1, chain.up_weights)


def weighed_problems(chain: Chain, widths: Widths) -> tuple[LineProblem, ...]:
    """The uses of Theorem B4 that are worth trying.

    Products count alike, or so that they weigh what is carried of A and of Y: about as the roots of their widths.
    """
    ratio = {2: (5, 7), 4: (1, 2)}.get(widths.partial // widths.read, (1, 1))
    return tuple(problem for weights in sorted({(1, 1), ratio}) for problem in chain_problems(chain, widths, weights))


@dataclass(frozen=True)
class ChainLines(Use):
    """Theorem 8 in each of its forms, in bytes B4; of nothing where a mask leaves cells out."""

    chain: Chain
    widths: Widths = ALIKE

    @property
    def about(self) -> tuple[LineProblem, ...]:
        """The forms."""
        return chain_problems(self.chain) if self.widths == ALIKE else weighed_problems(self.chain, self.widths)

    def proofs(self, goal: Goal) -> Iterator[LineBound]:
        """Of each form."""
        return (line_bound(problem, goal.capacity) for problem in self.about)

    def weighted(self, widths: Widths) -> tuple[ChainLines]:
        """With the weights that are worth trying."""
        return (replace(self, widths=widths),)

    def on_sms(self) -> tuple[Use, ...]:
        """Of each form at a multiplier of room of 1."""
        return tuple(use for problem in self.about for use in ByLines(problem).on_sms())


def kernel_problems(chain: Chain) -> tuple[LineProblem, ...]:
    """Theorem 7 for each of two kernels with H in slow memory between them; none where a mask leaves cells out."""
    m, k, f, l, cells = chain.m, chain.k, chain.f, chain.l, chain.cells
    if cells != m * f:
        return ()
    columns = chain.streams * f
    first = [Lines("A", m * k, columns), Lines("B", k * columns, m), Lines(chain.hidden, cells, k, again=2)]
    if chain.gated:
        first.append(Lines("up cells", cells, k, first=0, again=2))
    second = LineProblem.product(m, l, f)
    return (
        LineProblem("first kernel", tuple(first), m * columns * k),
        LineProblem("second kernel", second.kinds, second.work),
    )
