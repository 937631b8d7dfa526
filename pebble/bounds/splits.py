r"""Segment bounds when P SMs with S values each share the work, however they share it.

**Accounting.** SM :math:`p` does :math:`v_p` of the :math:`V` products. Cut its own sequence, by work, into :math:`h_p`
segments. A value touched in a segment of :math:`p` was held by :math:`p` at its start (at most :math:`S` at each of the
:math:`h_p - 1` cuts), or entered :math:`p` in it (loaded or copied from another SM), or is a cell initialised in it. A
cell is initialised once in all; where :math:`r` partial sums of it are initialised, each merge on an SM puts two of
them in one segment, and each merge in slow memory (an atomic add) is one more store, so the count stays what it is with
one. Summed over all SMs and segments:

**Theorem 5.** *With* :math:`L` *loads,* :math:`W` *stores and* :math:`R` *values copied,*

.. math:: L + W + R \ge \sum_p f(v_p) - (\text{cells initialised that are not stored}), \qquad
   f(v) = \max_h \; [ h\, x(v / h) - (h - 1) S ], \quad f(0) = 0,

where :math:`x(v)` is concave, grows, :math:`x(0) = 0`, and :math:`h\,x(v / h)` stands for floor and ceil shares
(:math:`x` linear between whole :math:`v`).

**Any split:** :math:`f(a) + f(b) \ge f(a + b)`, so the least is :math:`f(V)`: all work on one SM. Let :math:`h` be best
for :math:`a + b` and :math:`\alpha = h a / (a + b)`, :math:`h_a = \lceil \alpha \rceil`, :math:`h_b = \lceil h - \alpha
\rceil`. Since :math:`x` is concave with :math:`x(0) = 0`, :math:`h\,x(v / h)` does not fall as :math:`h` grows, so
:math:`h_a x(a / h_a) \ge \alpha\, x((a + b) / h)`, and likewise for :math:`b`. Cuts: :math:`h_a + h_b - 2 \le h - 1`.
Add up. So what P memories save over one of :math:`S` is nothing that this accounting sees, unless the load must be
balanced.

**No SM does more than** :math:`c` **products.** Then the sum is at least :math:`V` times the least :math:`f(u) / u`
over :math:`0 < u \le c`. That least is found with a certificate: on an interval :math:`[u, w]`, :math:`f \ge f^h` for
any one :math:`h`, and :math:`f^h` is concave, so :math:`f^h(t) / t` is at least the smaller of its values at the ends.
A geometric grid, each interval with the better :math:`h` of its two ends, and below the first point whose best
:math:`h` is 1 the ratio :math:`x(u) / u`, which falls as :math:`u` grows.

**Certificate.** With fixed multipliers the least that a segment touches is bounded by a concave function
(`pebble.bounds.shares`), so on an interval of :math:`u` one :math:`h` and three multipliers prove :math:`f(u) \ge
\lambda u` from its two ends. `rate_leaves` cuts :math:`(0, c]` into few such intervals: from the top down, each with
the least :math:`h` that will do there, as far as it reaches.

**The program is the formula.** The least of :math:`\sum f(v_p)` within the limit, on any number of SMs, is a linear
program whose dual is one price per product, :math:`f(u) \ge \lambda u` for all :math:`u \le c`: the best is :math:`\min
f(u) / u`. With P SMs equal shares are one split, so the least is at most :math:`P f(\lceil V / P \rceil)`, and no
program over splits proves more; in tests that is above the bound by less than 0.01 %.

**Groups that share nothing** (attention heads): products of different groups touch different values. A share of
:math:`v` products of several groups touches at least :math:`x(v)` (:math:`x` is subadditive), as long as :math:`v` is
at most the work of one group; the grid uses only such :math:`h`. With no limit on :math:`c` each group is a problem of
its own with all of :math:`S`, and the bounds add.

**Tiny problems.** :math:`x` over whole numbers is larger but not concave: there the least over all splits is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, NamedTuple

from pebble.bounds.box import FRACTION_BITS, Box, best_segments, sum_of_shares
from pebble.bounds.shares import least_sum, proved
from pebble.units import ceil_div

TINY = 160  # products for which every split is tried
_GRID = Fraction(102, 100)
_FEW_BITS = 48  # of multipliers; their error enters the result squared
_MOST_LEAVES = 4096


def cheapest_split(value: list[int], sms: int, most: int) -> int:
    """Min over r_1 + ... + r_parts = len(value) - 1, each at most ``most``, of the sum of value[r].

    Raises
    ------
    ValueError
        ``sms * most`` is too small.

    Examples
    --------
    >>> cheapest_split([0, 5, 6, 6], 2, 2)
    11
    """
    total = len(value) - 1
    if sms * most < total:
        raise ValueError("the parts cannot hold it")
    top = min(most, total)
    row: list[int | None] = [value[r] if r <= top else None for r in range(total + 1)]
    for _ in range(min(sms, max(total, 1)) - 1):
        nexts: list[int | None] = []
        for t in range(total + 1):
            options = [old + value[r] for r in range(min(top, t) + 1) if (old := row[t - r]) is not None]
            nexts.append(min(options, default=None))
        row = nexts
    result = row[total]
    assert result is not None
    return result


@lru_cache(maxsize=256)
def _whole(box: Box, work: int, capacity: int) -> tuple[int, ...]:
    """f(v) with whole-number geometry for v = 0 .. work."""
    x = [box.touched_whole(v) for v in range(work + 1)]
    return tuple(
        max((sum_of_shares(x.__getitem__, v, h) - (h - 1) * capacity for h in range(1, v + 1)), default=0)
        for v in range(work + 1)
    )


def least_over_splits(box: Box, work: int, capacity: int, sms: int, most: int | None = None, groups: int = 1) -> int:
    """The least of Theorem 5 over the splits of the work among SMs.

    Parameters
    ----------
    box : Box
        Of one group's products.
    work : int
        Products of one group.
    capacity : int
        S, values that one SM holds.
    sms : int
        P.
    most : int, optional
        c, products of the busiest SM, at least 1 / P of all; None allows any split.
    groups : int
        Equal groups that share no values.

    Returns
    -------
    int
        A lower bound on loads + stores + values copied, plus cells initialised and not stored.

    Examples
    --------
    >>> least_over_splits(Box(8192, 8192, 8192), 2**39, 229376, 108)
    2295985962
    >>> least_over_splits(Box(64, 64, 64), 2**18, 10**6, 8, most=2**15) # eight SMs of 32^3 products each
    24576
    """
    best = groups * best_segments(box.touched, work, capacity)[0]
    if work <= TINY:
        best = max(best, least_over_whole(box, work, capacity, sms, most, groups))
    if most is None or most >= groups * work:
        return best
    rate = _least_rate(box, work, capacity, most)
    return max(best, ceil_div(rate.numerator * groups * work, rate.denominator))


def least_over_whole(box: Box, work: int, capacity: int, sms: int, most: int | None = None, groups: int = 1) -> int:
    """The same over whole numbers of values, for problems of at most `TINY` products; all splits are tried."""
    # groups share nothing; a limit is one on all of them together
    limit = work if most is None or groups > 1 else min(most, work)
    return groups * cheapest_split(list(_whole(box, work, capacity)), sms, limit)


def busiest_sm(box: Box, work: int, capacity: int, sms: int) -> int:
    """Words in and out of the SM that does the most, for one GEMM: f(ceil(V / P)), under any split.

    Every cell initialised at an SM, or what it was merged into, leaves it again, so what enters or leaves is at least
    f(v); f grows, and the busiest SM does at least ceil(V / P).
    """
    share = ceil_div(work, sms)
    best, _ = best_segments(box.touched, share, capacity)
    return max(best, _whole(box, share, capacity)[-1]) if share <= TINY else best


@lru_cache(maxsize=256)
def _least_rate(box: Box, group: int, capacity: int, most: int) -> Fraction:
    """A number that f(u) / u is not below for any whole u from 1 to ``most``."""

    def rate(v: int, h: int) -> Fraction:
        return Fraction(sum_of_shares(box.touched, v, h) - ((h - 1) * capacity << FRACTION_BITS), v << FRACTION_BITS)

    def best_h(v: int) -> int:
        # shares of at most one group: h >= v / group
        return best_segments(box.touched, v, capacity, ceil_div(v, group))[1]

    upper = most
    upper_h = best_h(upper)
    worst = rate(upper, upper_h)
    while upper > 1 and upper_h > 1:
        lower = max(1, min(upper - 1, int(upper / _GRID)))
        lower_h = best_h(lower)
        # shares at the upper end must fit in a group as well
        choices = (upper_h, max(lower_h, ceil_div(upper, group)))
        worst = min(worst, max(min(rate(lower, h), rate(upper, h)) for h in choices))
        upper, upper_h = lower, lower_h
    return worst


class Leaf(NamedTuple):
    """From where the leaf before ends, or 0, up to so many products of an SM: what proves a rate there."""

    to: int
    segments: int
    multipliers: tuple[Fraction, ...]

    def to_json(self) -> dict[str, Any]:
        """As certificates write it."""
        return {"to": self.to, "segments": self.segments, "multipliers": [str(p) for p in self.multipliers]}


def least_rate(box: Box, work: int, capacity: int, most: int, groups: int = 1) -> tuple[Fraction, tuple[Leaf, ...]]:
    """What an SM moves for each of its products, at least, with its proof; as much as `least_over_splits` says of all.

    Parameters are those of `least_over_splits`. The rate times all products, rounded up, is that bound, or less by
    some millionths where the proof would have too many leaves.

    Examples
    --------
    >>> rate, leaves = least_rate(Box(8192, 8192, 8192), 2**39, 262144, 2**32)
    >>> [(leaf.to, leaf.segments) for leaf in leaves]
    [(34089916, 1), (642175631, 2), (1704410851, 9), (2983952492, 18), (3908622192, 27), (4294967296, 32)]
    """
    total = groups * work
    wanted = _least_rate(box, work, capacity, most) * total
    whole = -(-wanted.numerator // wanted.denominator)
    for lost in (0, 1, *(whole >> bits for bits in range(32, 8, -4))):
        rate = _just_above(whole - lost - 1, total)
        leaves = rate_leaves(box, capacity, most, rate)
        if leaves:
            return rate, leaves
    return Fraction(0), (Leaf(most, 1, (Fraction(1),) * 3),)


def _just_above(elements: int, total: int) -> Fraction:
    """A short fraction that times ``total`` is a little more than so many elements."""
    bits = total.bit_length() + 40
    return Fraction((max(elements, 0) << bits) // total + 1, 1 << bits)


def rate_leaves(box: Box, capacity: int, most: int, rate: Fraction) -> tuple[Leaf, ...]:
    """Leaves that prove a rate for every u up to ``most``, in ascending order; none where it takes too many."""

    def proves(h: int, multipliers: tuple[Fraction, ...], v: int) -> bool:
        def touched(u: int) -> Fraction:
            return proved(box.limits(u), Fraction(u * u, box.overlap), multipliers) if u else Fraction(0)

        size, longer = divmod(v, h)
        total = (h - longer) * touched(size) + (longer * touched(size + 1) if longer else 0)
        return total - (h - 1) * capacity >= rate * v

    def good_at(v: int, h: int) -> bool:
        return proves(h, _multipliers(box, v // h), v)

    leaves: list[Leaf] = []
    upper = most
    while upper:
        if len(leaves) == _MOST_LEAVES:
            return ()
        best = best_segments(box.touched, upper, capacity)[1]
        h = _first(partial(good_at, upper), 1, best)
        multipliers = _multipliers(box, upper // h)
        if not proves(h, multipliers, upper):
            return ()
        lower = 0 if h == 1 else _first(partial(proves, h, multipliers), 1, upper)
        if lower == upper:
            return ()
        leaves.append(Leaf(upper, h, multipliers))
        upper = lower
    return tuple(reversed(leaves))


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The least number from which on something holds up to ``high``; ``high`` itself is not asked."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _multipliers(box: Box, u: int) -> tuple[Fraction, ...]:
    """Short multipliers that prove nearly all that u products touch."""
    _, best = least_sum(box.limits(u), Fraction(u * u, box.overlap))
    return tuple(Fraction(round(p * (1 << _FEW_BITS)), 1 << _FEW_BITS) for p in best)
