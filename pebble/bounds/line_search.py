r"""At which segments and multipliers the line bound is taken: for each :math:`h` the best :math:`\mu`; the best of all.

For given :math:`h` and :math:`\rho` the right side of Theorem 7 is concave in :math:`\mu`, and the memory enters it
through :math:`\rho (h - 1) S` alone. So the best :math:`\mu` is found once for each :math:`h`, whatever :math:`S` is,
and the bound is the largest of lines that fall as :math:`S` grows. The search is in floating point; what it finds is
evaluated exactly.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache
from math import isqrt
from typing import Any

from pebble.bounds.box import shares_of
from pebble.bounds.lines import BITS, MULTIPLIER_BITS, Cut, LineProblem
from pebble.bounds.numbers import number
from pebble.bounds.proofs import InWidths, Theorem
from pebble.bounds.uses import Goal, Use
from pebble.units import ceil_div
from pebble.workloads.widths import ALIKE, Widths

METHOD = "line accounting"
METHOD_IN_BYTES = "line accounting in bytes"
_MOST_PRODUCTS = 2**100  # of any workload
_STRIDES = (16, 1), (4, 1), (1, 3)  # of the search for h, and so many steps without gain end it
_STEPS = 24  # of the search for mu, at most
_CLOSE = 1e-7  # of the bound: what a better mu may still gain when the search for it ends
_SMALLEST_MU, _LARGEST_MU = 1e-18, 64.0


@dataclass(frozen=True)
class LineBound(InWidths):
    """Theorem 7 or 8 on an instance, in bytes B3 or B4."""

    METHODS = (METHOD, METHOD_IN_BYTES)
    rank = 1

    problem: LineProblem  #: kinds of values, products, and what moves besides
    capacity: int  #: S, in units of the widths, as all that follows
    cut: Cut  #: h, mu and rho
    minima: tuple[Any, ...]  #: for each kind the number of segments at which it is charged least
    elements: int  #: moved at least

    @property
    def widths(self) -> Widths:
        """What its values take."""
        return self.problem.widths

    @property
    def products(self) -> int:
        """Multiply-adds."""
        return self.problem.products

    @property
    def theorem(self) -> Theorem:
        """What it rests on."""
        return self.problem.theorem

    @property
    def form(self) -> str:
        """Which of the workload's boxes it is about."""
        return self.problem.form

    @property
    def segments(self) -> int:
        """How many there are, h."""
        return self.cut.segments

    @property
    def shares(self) -> tuple[tuple[int, int], ...]:
        """(products of a segment, how many segments have so many)."""
        return shares_of(self.problem.work, self.segments)

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        h, work, weights = self.segments, self.problem.work, self.problem.weights
        spec = {} if self.problem.widths == ALIKE else {"form": self.form, "unit_bytes": self.unit}
        return {
            **spec,
            **({"work_weights": list(weights)} if weights else {}),
            "products": work,
            "segments": h,
            "share_multiply_adds": work // h,
            "share_products": [work // h, ceil_div(work, h)],
            "held_at_cuts": (h - 1) * self.capacity,
            "mu": f"{self.cut.mu}/{1 << MULTIPLIER_BITS}",
            "rho": f"{self.cut.rho}/{1 << MULTIPLIER_BITS}",
            "segments_of_a_value": {kind.name: at for kind, at in zip(self.problem.kinds, self.minima, strict=True)},
            "added_elements": self.problem.added,
        }

    def claim(self) -> dict[str, Any]:
        """h, the multipliers, and for each kind where its charge is least."""
        mu, rho = (str(Fraction(multiplier, 1 << MULTIPLIER_BITS)) for multiplier in (self.cut.mu, self.cut.rho))
        minima = [list(at) if isinstance(at, tuple) else at for at in self.minima]
        fields = {"theorem": "lines", "form": self.form, "segments": self.segments, "mu": mu, "rho": rho}
        weights = {"work_weights": list(self.problem.weights)} if self.problem.weights else {}
        return {**fields, "minima": minima, **weights}

    @property
    def argument(self) -> str:
        """What holds for all instances in bytes, told once for several kernels."""
        return _IN_BYTES

    def text(self, traffic: Mapping[str, int]) -> str:
        """The argument, the charge of each kind of values, and the sum."""
        if self.problem.widths == ALIKE:
            return self._argument() + self.arithmetic()
        unit = f"Bytes are counted in units of ${self.unit}$, which divides every width, here and in $Q$: $S$ is "
        unit = f"{unit}${number(self.capacity)}$ of them. " if self.unit > 1 else ""
        if self.problem.weights is not None:
            alpha, beta = self.problem.weights
            unit += f"Products of the first kind count ${alpha}$ of work, of the second ${beta}$. "
        return self.arithmetic(unit)

    def _argument(self) -> str:
        h, problem, cut = number(self.segments), self.problem, self.cut
        known = {kind.argument for kind in problem.kinds if kind.argument}
        besides = "".join(known) + (GATED.get(self.form, "") if known else "")
        return rf"""
        ## Segments and lines

        Cut the schedule into $h = {h}$ segments of equal work, ${number(problem.work)}$ multiply-adds in all. Follow a
        value through the $s$ segments that touch it: between two that follow each other it is held over a cut, or it
        leaves fast memory and returns, which costs $b$ moves, 1 for an input and 2 for an accumulator (a store and a
        load); $a$ moves are certain, the first load of an input and the last store of an output. At most $S$ values are
        held at each cut. With a multiplier $\rho = {number(Fraction(cut.rho, 1 << MULTIPLIER_BITS))}$ of a place at a
        cut,

        $$ Q + \rho (h - 1) S \ge \sum_{{\text{{values}}}} \big( a + (s - 1) \min(b, \rho) \big).

        The multiply-adds that use one value are its line. For one segment of $v$ multiply-adds, let $c$ be how many of
        them are on each line, over the lines of all operands. Take one of the $v$ at random: the entropies of each of
        its three coordinates given the other two add up to at most that of all three, $\ln v$, and so $\sum c \ln c \le
        v \ln v$. A line of $L$ that is touched in $s$ segments has $\sum c \ln c \ge \mathrm{{E}}(L, s)$, its value
        for parts as equal as whole numbers allow. For every $\mu \ge 0$ therefore

        $$ Q \ge \sum_{{\text{{values}}}} \min_s \big[ a + (s - 1) \min(b, \rho) + \mu\, \mathrm{{E}}(L, s) \big]
        - \mu \sum_i v_i \ln v_i - \rho (h - 1) S.
        {besides}"""

    def arithmetic(self, before: str = "") -> str:
        """The multipliers, the charge of each kind of values, and the sum."""
        problem, cut, weighted = self.problem, self.cut, self.problem.weights is not None
        charged, rows = Fraction(0), ""
        for kind, at in zip(problem.kinds, self.minima, strict=True):
            charge = Fraction(kind.least(cut)[0], 1 << BITS)
            charged += kind.count * charge
            rows += rf"""
        ${number(kind.count)}$ {kind.text(at, weighted)}, at least ${number(charge)}$ each.
        """
        entropy = Fraction(cut.mu * problem.entropy_above(self.segments), 1 << BITS)
        held = Fraction(cut.rho, 1 << MULTIPLIER_BITS) * (self.segments - 1) * self.capacity
        mu = f"1 / {number(Fraction(1 << MULTIPLIER_BITS, cut.mu))}" if cut.mu else "0"  # small where lines are long
        more = f" + {number(problem.added)}" if problem.added else ""
        return rf"""
        ## Arithmetic

        {before}With $\mu = {mu}$ the bracket, which is convex in $s$, is least at:
        {rows}
        $$ Q \ge {number(charged)} - {number(entropy)} - {number(held)}{more}
        \quad\Rightarrow\quad Q \ge {number(self.elements)}

        {BY_CHECKER}"""


BY_CHECKER = r"""(a count of moves is a whole number, so it is rounded up; $\mu$ and $\rho$ are in the certificate as
        exact fractions, and the checker bounds the logarithms by a series).
        """
GATED = {
    "gated chain": r"""
        The columns of gate and up stand side by side. $H$ takes the place of the gate's cell; an up cell has first
        products only, begins free and ends nowhere.
        """,
    "gated middle": r"""
        The columns of gate and up stand side by side. $dG$ takes the place of $dH$; an up cell begins when that is
        complete, ends nowhere, and between two segments is held or loaded, at one move.
        """,
    "gate's middle": """
        The up cells are left out: every up weight is loaded and its gradient stored besides, which is added at the end.
        """,
    "gate's chain": """
        The up cells are left out: what is left is a schedule of the gate's chain, and every up weight is loaded
        besides, which is added at the end.
        """,
}

_IN_BYTES = r"""
        ## Segments and lines

        Cut the schedule into $h$ segments of equal work, and follow a value through the $s$ segments that touch it.
        Between two that follow each other an input is held over a cut, where it takes $w$ bytes, or loaded again for
        $w$. A cell that is updated on both sides of a cut is initialised and not complete: it takes $p$ (or $p_H$)
        there, or is stored and loaded again for twice that. Besides, an input is loaded once for $w$ and an output
        stored once for $w_o$; call what is certain $a$. At most $S$ bytes are held at each cut. So with a multiplier
        $\rho$ of a byte at a cut, and $g = w \min(1, \rho)$, $p \min(2, \rho)$ or $p_H \min(2, \rho)$,

        $$ Q + \rho (h - 1) S \ge \sum_{\text{values}} \big( a + (s - 1) g \big).

        The multiply-adds that use one value are its line. For one segment of $v$ multiply-adds, let $c$ be how many of
        them are on each line, over the lines of all operands. Take one of the $v$ at random: the entropies of each of
        its three coordinates given the other two add up to at most that of all three, $\ln v$, and so $\sum c \ln c \le
        v \ln v$. A line of $L$ that is touched in $s$ segments has $\sum c \ln c \ge \mathrm{E}(L, s)$, its value
        for parts as equal as whole numbers allow. For every $\mu \ge 0$ therefore

        $$ Q \ge \sum_{\text{values}} \min_s \big[ a + (s - 1) g + \mu\, \mathrm{E}(L, s) \big]
        - \mu \sum_i v_i \ln v_i - \rho (h - 1) S.

        A cell of an intermediate that is read later has $k$ first products and then $l$ second ones. In front of a
        segment with second ones only it is complete, and held or loaded at $w$; if it is loaded, it was stored at $w$.
        With first products in $s$ segments and second ones only in $j$ further ones its bracket is $(s - 1) \rho\, p_H
        + w \min(j \rho, j + 1)$ and $\mu$ times the least $\sum c \ln c$: $\mathrm{E}(k + l, s + j)$ as long as the
        $j$ segments can have as many products as the others, $\mathrm{E}(k, s) + \mathrm{E}(l, j)$ where they cannot.
        Touched by many segments, it has $\mathrm{E}(k, s) + \mathrm{E}(l, j')$ for $j'$ segments with second products,
        of which $j' - 1$ are paid for. A product of the first kind may count $\alpha$ of work and one of the second
        $\beta$: taken at random by work, the same entropies give $\sum \alpha\, c \ln c$ on lines of inputs of the
        first, $\sum \beta\, c \ln c$ on those of the second and of outputs, and $\sum t \ln t$ for the works $t$ on
        those of intermediate cells, in all $W \ln W$ at most in a segment of work $W$. So $\mu \alpha$ and $\mu
        \beta$ take the place of $\mu$, and $k$ and $l$ are the works of the first and the second products of a cell.
        """


@dataclass(frozen=True)
class ByLines(Use):
    """Theorem 7 of a group, a part or a kernel, in bytes B3."""

    problem: LineProblem

    @property
    def about(self) -> tuple[LineProblem]:
        """The kinds of its values."""
        return (self.problem,)

    def proofs(self, goal: Goal) -> tuple[LineBound]:
        """With the best h and multipliers."""
        return (line_bound(self.problem, goal.capacity),)

    def weighted(self, widths: Widths) -> tuple[ByLines]:
        """With every value at its width."""
        return (ByLines(self.problem.at(widths)),)

    def on_sms(self) -> tuple[ByLines]:
        """At a multiplier of room of 1: a partial sum that leaves costs one move."""
        return (ByLines(replace(self.problem, multipliers=(1.0,))),)


def line_bound(problem: LineProblem, capacity: int) -> LineBound:
    """Theorem 7 or 8 with about the best h, mu and rho: a few milliseconds for any size.

    Parameters
    ----------
    problem : Problem
    capacity : int
        S, in what the widths count: values, or bytes.
    """
    capacity //= problem.widths.unit
    best: tuple[int, Cut, tuple[Any, ...]] | None = None
    at = _first_guess(problem, capacity)
    for rho in problem.multipliers:
        cut, at = _best_segments(problem, capacity, rho, at)
        total, minima = problem.value(capacity, cut)
        if best is not None and total <= best[0]:
            break
        best = total, cut, minima
    assert best is not None
    total, cut, minima = best
    return LineBound(problem, capacity, cut, minima, -((-total) >> BITS))


def _first_guess(problem: LineProblem, capacity: int) -> int:
    """Where in the list the best h is about: segments of S^1.5 products, or of slabs as deep as the shortest line."""
    shortest = min(kind.length for kind in problem.kinds)
    products = max(isqrt(capacity**3), capacity**2 // shortest)
    return bisect_right(_segment_counts(), max(1, problem.work // products)) - 1


def _best_segments(problem: LineProblem, capacity: int, rho: float, start: int) -> tuple[Cut, int]:
    """The best h for one rho, and where it is: up and down the list, the same for every S, in smaller steps."""
    numbers = _segment_counts()

    def value(at: int) -> float:
        return best_mu(problem, numbers[at], rho)[0] - rho * (numbers[at] - 1) * capacity

    last = bisect_right(numbers, problem.work) - 1
    best = min(last, start)
    for stride, patience in _STRIDES:
        for step in (stride, -stride):
            at, idle = best + step, 0
            while idle < patience and 0 <= at <= last:
                best, idle = (at, 0) if value(at) > value(best) else (best, idle + 1)
                at += step
    mu = best_mu(problem, numbers[best], rho)[1]
    return Cut(numbers[best], int(mu * (1 << MULTIPLIER_BITS)), int(rho * (1 << MULTIPLIER_BITS))), best


@cache
def _segment_counts() -> tuple[int, ...]:
    """The numbers of segments that are looked at: each larger than the one before by 1/16 of it, 1 at least."""
    results = [1]
    while results[-1] < _MOST_PRODUCTS:
        results.append(results[-1] + max(1, results[-1] // 16))
    return tuple(results)


@lru_cache(maxsize=4096)
def best_mu(problem: LineProblem, segments: int, rho: float) -> tuple[float, float]:
    """The right side but for the room at the cuts, at its largest, and mu there.

    It is concave and made of straight pieces: where the tangents at two sides of the top meet is tried next, and it is
    the top if it lies on both.
    """
    if segments == 1:  # nothing is held or moved again, whatever mu is
        return problem.rough(1, 0.0, rho)[0], 0.0

    def at(mu: float) -> tuple[float, float, float]:
        return (mu, *problem.rough(segments, mu, rho))

    low = high = at(min(1.0, rho) * (segments / problem.work) ** (1 / 3))  # where all lines are cut alike
    factor = 1.25
    while high[2] > 0 and high[0] < _LARGEST_MU:
        low, high, factor = high, at(high[0] * factor), factor * factor
    while low[2] <= 0 and low[0] > _SMALLEST_MU:
        low, high, factor = at(low[0] / factor), low, factor * factor
    for step in range(_STEPS):
        (mu, value, slope), (far, other, falls) = low, high
        if slope <= falls:
            break
        meet = mu + (other - value - falls * (far - mu)) / (slope - falls)
        top = value + slope * (meet - mu)
        # every third time half way, so that neither side stays for long
        middle = at(meet if step % 3 < 2 and mu < meet < far else (mu + far) / 2)
        low, high = (middle, high) if middle[2] > 0 else (low, middle)
        if top - max(low[1], high[1]) <= _CLOSE * abs(top):
            break
    return max((low[1], low[0]), (high[1], high[0]))
