r"""The segment bound of any product of operands: how few values points of a box meet, by their projections.

**The game** is that of `pebble.bounds.box`: at each point of a box of indices one value of each operand is multiplied
with the others and added to one cell of the output, in any order. With three operands or more it is about the nest *as
written*: a contraction by pairs keeps intermediates and is another computation, which may move less.

**Entropy.** Let a segment do the points of a set :math:`V` of the box, and let :math:`x_j` be the values that it
touches of array :math:`j`. Draw a point of :math:`V` at random, all alike: its entropy is :math:`\ln |V|`. Describe
points by coordinates :math:`Z_1, \ldots, Z_d`, each a function of the point, that together determine it, where
:math:`Z_i` takes at most :math:`L_i` values given the coordinates before. Let :math:`h_i = \mathrm{H}(Z_i \mid Z_1,
\ldots, Z_{i-1})`, so :math:`\sum h_i = \ln |V|` and :math:`h_i \le \ln L_i`. Say that an access *fixes* coordinate
:math:`i` if the value that it meets determines :math:`Z_i` given the coordinates before. Let :math:`F_a` be what
access :math:`a` fixes, and :math:`\varphi_a` the value that it meets.

**Lemma.** :math:`\mathrm{H}(\varphi_a) \ge \sum_{i \in F_a} h_i`. *Proof.* With :math:`Z_{<i}` for the coordinates
before :math:`i`, :math:`\mathrm{H}(\varphi_a) \ge \sum_i \mathrm{I}(\varphi_a; Z_i \mid Z_{<i})` by the chain rule, and
for :math:`i` in :math:`F_a` the term is :math:`\mathrm{H}(Z_i \mid Z_{<i}) - \mathrm{H}(Z_i \mid Z_{<i}, \varphi_a) =
h_i`. :math:`\Box`

*Plain indices* are coordinates in any order, and an access fixes those that it has: this is the discrete inequality of
Loomis and Whitney as Finner (1992) has it. *A window* :math:`a y + b r`, its factors without a common divisor, fixes
the remainders :math:`y \bmod b` and :math:`r \bmod a` and the sum of the quotients :math:`y'` and :math:`r'` of
:math:`y` by :math:`b` and of :math:`r` by :math:`a`, since :math:`a y + b r = a (y \bmod b) + b (r \bmod a) + a b (y' +
r')`. Remainders are coordinates; of :math:`y', r', y' + r'` any one may come first, and then any other determines the
rest: a window that fixes the sum alone fixes the first coordinate if that is the sum, else the second. Each order is an
application of the theorem. (These are the flags of subspaces by which Brascamp and Lieb's inequality is proved on
lattices with constant 1; Christ, Demmel, Knight, Scanlon and Yelick 2013 have the exponents of any homomorphisms.)

**Exponents.** Give access :math:`a` a weight :math:`p_a \ge 0`, let :math:`\theta \ge 0`, and let :math:`u_i =
\max(0, \theta - \sum_{a : i \in F_a} p_a)`. The Lemma gives

.. math:: \theta \ln |V| \le \sum_a p_a \mathrm{H}(\varphi_a) + \sum_i u_i \ln L_i,

which is Hoelder's and Brascamp and Lieb's :math:`|V| \le \prod |\varphi_a(V)|^{s_a} \prod L_i^{u_i / \theta}` with
:math:`s_a = p_a / \theta`, exponents of their linear program. An array may be met by several accesses: :math:`A A^T`
meets :math:`A` twice, and :math:`x_A` counts each of its values once. One cell may stand for :math:`R` cells of the box
(below). So :math:`\mathrm{H}(\varphi_a) \le \ln(R_j x_j)` for every access of array :math:`j`. With :math:`P_j` the
weights of its accesses together, and because :math:`x \ge P (1 + \ln(x / P))` for all :math:`x, P > 0`,

.. math:: \sum_j x_j \ge t(|V|) := \sum_j P_j \big(1 - \ln(R_j P_j)\big) + \theta \ln |V| - \sum_i u_i \ln L_i.

The best weights are the values themselves, :math:`P_j = x_j`, of the tile that touches least; any others are valid.

**Theorem 11.** *For every whole* :math:`h`, *with shares* :math:`v_s` *of all points over* :math:`h`, *rounded down or
up, and any weights,*

.. math:: Q \ge \sum_{s=1}^{h} t(v_s - (R - 1)) - (h - 1) S - (\text{operands summed first}).

*Proof.* The accounting of Theorem 1, with the values touched as above. *Symmetry:* where indices can be renamed so that
each operand is met in the same values, as :math:`i` and :math:`j` in :math:`C_{ij} = \sum_k A_{ik} A_{jk}`, up to
:math:`R` points have one product and up to :math:`R` cells one value, and a program need make one of each. Count a
product that is made for all points that have it, and a value of the output for all cells that have it: the points of
a segment are then closed under these renamings, so they meet the same values of operands, and :math:`R` times as many
cells at most. Products are whole, so a segment misses up to :math:`R - 1` points of its share. *Summed first:* an index
of one operand alone is summed over before anything is multiplied, since that is less work. The sums are then the
operand; each is completed in one segment, once in all, and enters there free (Theorem 6), which takes as many values
off; this holds where nothing is computed twice. Every cell is stored, so otherwise it holds with recomputation too.
:math:`\Box`

Where points may share a product in another way (a window whose indices no other operand tells apart), only compulsory
traffic is proved.

**Rounding.** Weights are multiples of :math:`2^{-20}`; logarithms are rounded to the safe side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp, log
from typing import Any

import numpy as np

from pebble.bounds.box import shares_of
from pebble.bounds.lines import LOG_BITS, ln_above, ln_below
from pebble.bounds.numbers import number, tail
from pebble.bounds.proofs import Theorem
from pebble.bounds.uses import Goal, InValues, Use
from pebble.workloads.nest import Coordinates

THEOREM = Theorem("Theorem 11", __name__)
METHOD = "segment accounting for the projections of the nest as written"
WEIGHT_BITS = 20  # of the fractional part of a weight
_LARGEST_EXPONENT = 300.0  # of what is still a float
_STEPS = 60  # of the search over the number of segments
_NEWTON_STEPS = 60
_SMALLEST = 1e-250  # slack that is still divided by


@dataclass(frozen=True)
class Projections(Use):
    """What the theorem is told of a nest.

    Attributes
    ----------
    order : tuple of str
        What comes first of each window.
    coordinates : Coordinates
    arrays : tuple of int
        Of each access, operands in turn and the output last: which array it meets.
    points : int
    symmetry : int
        R.
    taken : int
        Operands summed first: values that enter free.
    """

    order: tuple[str, ...]
    coordinates: Coordinates
    arrays: tuple[int, ...]
    points: int
    symmetry: int = 1
    taken: int = 0

    counts_touched = True

    def overlap(self, array: int) -> int:
        """R of the output; 1 of operands."""
        return self.symmetry if array == self.arrays[-1] else 1

    def touched(self, weights: Weights, points: int) -> int:
        """2^(128 + 20) times t(points), rounded down."""
        if points < 1:
            return 0
        unit, sums = 1 << WEIGHT_BITS, dict[int, int]()
        for array, p in zip(self.arrays, weights.accesses, strict=True):
            sums[array] = sums.get(array, 0) + p
        total = weights.theta * ln_below(points)
        for array, p in sums.items():
            if p:
                total += p * ((1 << LOG_BITS) + ln_below(unit) - ln_above(p * self.overlap(array)))
        for n, limit in enumerate(self.coordinates.limits):
            covered = (p for p, fixed in zip(weights.accesses, self.coordinates.fixed, strict=True) if n in fixed)
            total -= max(0, weights.theta - sum(covered)) * ln_above(limit)
        return total

    def proofs(self, goal: Goal) -> tuple[ByProjections]:
        """With about the best segments and weights."""
        return (self.bound(goal.capacity),)

    def bound(self, capacity: int) -> ByProjections:
        """The theorem with about the best number of segments and weights."""
        best = ByProjections(self, capacity, 1, self.weights(self.points))
        low, high = 0.0, log(self.points)
        ratio = (5**0.5 - 1) / 2
        spots = [high - ratio * (high - low), low + ratio * (high - low)]
        values = [self._rough(exp(at), capacity) for at in spots]
        for _ in range(_STEPS):
            if values[0] < values[1]:
                low, spots[0], values[0] = spots[0], spots[1], values[1]
                spots[1] = low + ratio * (high - low)
                values[1] = self._rough(exp(spots[1]), capacity)
            else:
                high, spots[1], values[1] = spots[1], spots[0], values[0]
                spots[0] = high - ratio * (high - low)
                values[0] = self._rough(exp(spots[0]), capacity)
            if exp(low) > exp(high) * (1 - 1e-7) or exp(high) - exp(low) < 0.3:
                break
        middle = exp((low + high) / 2)
        for h in {max(1, min(self.points, int(middle) + step)) for step in (-1, 0, 1, 2)}:
            share = self.points // h - self.symmetry + 1
            if share >= 1:
                result = ByProjections(self, capacity, h, self.weights(share))
                best = max(best, result, key=lambda proof: proof.elements)
        return best

    def _rough(self, h: float, capacity: int) -> float:
        return h * least_touched(self, log(max(1.0, self.points / h)))[0] - (h - 1) * capacity

    def weights(self, points: int) -> Weights:
        """About the best for segments of so many points."""
        _, theta, accesses = least_touched(self, log(points))
        unit = 1 << WEIGHT_BITS
        return Weights(round(theta * unit), tuple(round(p * unit) for p in accesses))


@dataclass(frozen=True)
class Weights:
    """theta, and p of each access, in units of 2^-20."""

    theta: int
    accesses: tuple[int, ...]


@lru_cache(maxsize=4096)
def least_touched(problem: Projections, log_points: float) -> tuple[float, float, tuple[float, ...]]:
    """About the least sum of x_j for so many points, theta, and the weight of each access.

    The dual of the exponents' program is a tile: sides w_i from 0 to ln L_i that add up to the logarithm of the points;
    ln x_j is at least the sum of w_i over what an access of the array fixes, less ln R_j. The least sum of the x_j is
    found by an interior-point method; the multipliers of these inequalities are the weights.
    """
    limits = np.array([log(limit) for limit in problem.coordinates.limits])
    sides = [n for n, limit in enumerate(problem.coordinates.limits) if limit > 1]
    kinds = sorted(set(problem.arrays))
    d, arrays, accesses = len(sides), len(kinds), len(problem.arrays)
    if not d or log_points < 1e-9:
        return float(arrays), 0.0, (0.0,) * accesses
    top = limits[sides]
    goal = min(log_points, float(top.sum()) * (1 - 1e-9))
    # rows of G z >= b: sides from below and above, then the values of each access
    rows, rest = np.zeros((2 * d + accesses, d + arrays)), np.zeros(2 * d + accesses)
    rows[:d, :d], rows[d : 2 * d, :d], rest[d : 2 * d] = np.eye(d), -np.eye(d), -top
    for a, (array, fixed) in enumerate(zip(problem.arrays, problem.coordinates.fixed, strict=True)):
        rows[2 * d + a, [n for n, side in enumerate(sides) if side in fixed]] = -1
        rows[2 * d + a, d + kinds.index(array)] = 1
        rest[2 * d + a] = -log(problem.overlap(array))
    start = top * goal / top.sum()
    met = np.array([[-rows[2 * d + a, :d] @ start + rest[2 * d + a] for a in range(accesses)]])[0]
    own = np.array([max(met[a] for a in range(accesses) if problem.arrays[a] == kind) for kind in kinds])
    scale = float(own.max())
    z = np.concatenate([start, own - scale + 1])
    rest[2 * d :] -= scale
    multipliers, theta = _interior(rows, rest, z, d)
    factor = exp(min(scale, _LARGEST_EXPONENT))
    return float(np.exp(z[d:]).sum()) * factor, theta * factor, tuple(float(p) * factor for p in multipliers[2 * d :])


def _interior(rows: Any, rest: Any, z: Any, d: int) -> tuple[Any, float]:
    """Minimise the sum of e^z over the arrays, the sum of the sides kept; z is moved, the multipliers are returned.

    Primal and dual steps of Newton's method, as Boyd and Vandenberghe (2004), 11.7, have them.
    """
    size = len(z)
    equality = np.concatenate([np.ones(d), np.zeros(size - d)])
    slack, theta = rows @ z - rest, 0.0
    multipliers = 1 / slack
    for _ in range(_NEWTON_STEPS):
        gap = float(multipliers @ slack)
        if slack.min() < _SMALLEST:
            break
        target = gap / len(rest) / 10
        values = np.concatenate([np.zeros(d), np.exp(z[d:])])
        residual = values - rows.T @ multipliers - theta * equality
        if gap < 1e-10 and float(np.abs(residual).max()) < 1e-10:
            break
        system = np.zeros((size + 1, size + 1))
        system[:size, :size] = np.diag(values) + (rows.T * (multipliers / slack)) @ rows
        system[size, :size] = system[:size, size] = equality
        centred = values - rows.T @ (target / slack) - theta * equality
        try:
            result = np.linalg.solve(system, np.concatenate([-centred, [0.0]]))
        except np.linalg.LinAlgError:
            break
        step = result[:size]
        change = rows @ step
        turn = target / slack - multipliers - multipliers / slack * change
        reach = min(1.0, 1 / max(1e-9, float(np.abs(step).max())))
        for at, delta in ((slack, change), (multipliers, turn)):
            falling = delta < 0
            reach = min(reach, float((0.99 * at[falling] / -delta[falling]).min(initial=1.0)))
        z += reach * step
        multipliers = multipliers + reach * turn
        theta -= reach * float(result[size])
        slack = rows @ z - rest
    return multipliers, theta


@dataclass(frozen=True)
class ByProjections(InValues):
    """Theorem 11 on an instance."""

    problem: Projections
    capacity: int  #: S
    segments: int  #: h
    weights: Weights
    method: str = METHOD
    theorem: Theorem = THEOREM

    @property
    def products(self) -> int:
        """Points."""
        return self.problem.points

    @property
    def shares(self) -> tuple[tuple[int, int], ...]:
        """(points of a segment at least, how many segments have so many)."""
        less = self.problem.symmetry - 1
        return tuple((max(0, v - less), count) for v, count in shares_of(self.problem.points, self.segments))

    @property
    def touched(self) -> int:
        """Touched in all segments, at least; a count, so rounded up."""
        total = sum(count * self.problem.touched(self.weights, v) for v, count in self.shares)
        return -((-total) >> (LOG_BITS + WEIGHT_BITS))

    @property
    def elements(self) -> int:
        """Moved at least."""
        return self.touched - (self.segments - 1) * self.capacity - self.problem.taken

    @property
    def exponents(self) -> tuple[float, ...]:
        """s of each access, of the exponents' program."""
        theta = self.weights.theta
        return tuple(p / theta if theta else 0.0 for p in self.weights.accesses)

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "segments": self.segments,
            "share_points": self.problem.points // self.segments,
            "exponents": [round(s, 6) for s in self.exponents],
            "constant": "proved here: 1 in the inequality of projections, weights of this instance in the sum",
            "symmetric_points": self.problem.symmetry,
            "touched": self.touched,
            "held_at_cuts": (self.segments - 1) * self.capacity,
            "summed_first": self.problem.taken,
        }

    def claim(self) -> dict[str, Any]:
        """h, the weights, and what all segments touch."""
        theta, *accesses = (str(Fraction(p, 1 << WEIGHT_BITS)) for p in (self.weights.theta, *self.weights.accesses))
        return {
            "theorem": "projections",
            "first": list(self.problem.order),
            "segments": self.segments,
            "theta": theta,
            "weights": accesses,
            "touched": self.touched,
        }

    def text(self, traffic: Mapping[str, int]) -> str:
        """The inequality with its exponents, and the sum."""
        problem, (small, count) = self.problem, self.shares[0]
        together = dict.fromkeys(problem.arrays, 0.0)
        for array, s in zip(problem.arrays, self.exponents, strict=True):
            together[array] += s
        out, factor = problem.arrays[-1], f"{problem.symmetry}\\," * (problem.symmetry > 1)
        names = {array: rf"({factor}x_C)" if array == out else f"x_{{{array + 1}}}" for array in together}
        powers = r"\,".join(f"{names[array]}^{{{s:.4f}}}" for array, s in together.items() if s > 5e-5)
        limits = [
            max(0.0, 1 - sum(s for s, f in zip(self.exponents, problem.coordinates.fixed, strict=True) if n in f))
            for n in range(len(problem.coordinates.limits))
        ]
        powers += "".join(
            rf"\,{number(limit)}^{{{u:.4f}}}"
            for limit, u in zip(problem.coordinates.limits, limits, strict=True)
            if u > 5e-5 and limit > 1
        )
        symmetric = ""
        if problem.symmetry > 1:
            symmetric = f"""
        Up to $R = {problem.symmetry}$ points have one product and as many cells one value: a product counts for all its
        points, a value of the output for all its cells.
        """
        summed = ""
        if problem.taken:
            summed = f"""
        Operands are summed over indices of their own first; the ${number(problem.taken)}$ sums enter free, once each.
        """
        total = f"{number(self.touched)} - {number(self.segments - 1)} \\cdot {number(self.capacity)}"
        return rf"""
        ## Segments

        Cut the schedule into $h = {number(self.segments)}$ segments of equal work, ${number(count)}$ of them with
        ${number(small)}$ points at least. A value that a segment touches was held when it began (at most $S$ at each of
        $h - 1$ cuts), or is loaded in it, or is a cell initialised in it, which is stored at the end.
        {symmetric}{summed}
        ## Projections

        With $x_j$ the values of the $j$-th array that $v$ points meet, and $x_C$ the cells, the inequality of Hölder,
        Brascamp and Lieb with exponents of its linear program (rounded here; the certificate has fractions) says

        $$ v \le {powers}

        and by $x \ge P (1 + \ln(x / P))$ with the weights $P$ of the certificate all segments touch at least
        ${number(self.touched)}$ values.

        ## Arithmetic

        $$ Q \ge {total}{tail(problem.taken, 0)} = {number(self.elements)}
        """
