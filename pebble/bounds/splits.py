r"""Segment bounds when P SMs with S values each share the work, however they share it.

**Accounting.** SM p does v_p of the V products. Cut its own sequence, by work, into h_p segments. A value touched in a
segment of p was held by p at its start (at most S at each of the h_p - 1 cuts), or entered p in it (loaded or copied
from another SM), or is a cell begun in it. A cell is begun once in all; where r partial sums of it are begun, each
merge on an SM puts two of them in one segment, and each merge in slow memory (an atomic add) is one more store, so the
count stays what it is with one. Summed over all SMs and segments, with L loads, W stores and R values copied,

    L + W + R >= sum over p of f(v_p) - (cells begun that are not stored),
    f(v) = max over h of [ h x(v / h) - (h - 1) S ],  f(0) = 0,                                                   (5)

where x(v) is concave, grows, x(0) = 0, and h x(v / h) stands for floor and ceil shares (x linear between whole v).

**Any split: f(a) + f(b) >= f(a + b), so the least of (5) is f(V): all work on one SM.** Let h be best for a + b and
alpha = h a / (a + b), h_a = ceil(alpha), h_b = ceil(h - alpha). Since x is concave with x(0) = 0, h x(v / h) does not
fall as h grows, so h_a x(a / h_a) >= alpha x((a + b) / h), and likewise for b. Cuts: h_a + h_b - 2 <= h - 1. Add up.
So what P memories save over one of S is nothing that this accounting sees, unless the load must be balanced.

**No SM does more than c products.** Then (5) >= V times the least f(u) / u over 0 < u <= c. That least is found with a
certificate: on an interval [u, w], f >= f^h for any one h, and f^h is concave, so f^h(t) / t is at least the smaller of
its values at the ends. A geometric grid, each interval with the better h of its two ends, and below the first point
whose best h is 1 the ratio x(u) / u, which falls as u grows.

**Groups that share nothing** (attention heads): products of different groups touch different values. A share of v
products of several groups touches at least x(v) (x is subadditive), as long as v is at most the work of one group; the
grid uses only such h. With no limit on c each group is a problem of its own with all of S, and the bounds add.

**Tiny problems.** x over whole numbers is larger but not concave: there the least over all splits is computed.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from pebble.bounds.chain import best_segments
from pebble.bounds.segments import FRACTION_BITS, touched_real_scaled, touched_whole

_TINY = 160  # products for which every split is tried
_GRID = Fraction(102, 100)


def cheapest_split(value: list[int], parts: int, most: int) -> int:
    """Min over r_1 + ... + r_parts = len(value) - 1, each at most ``most``, of the sum of value[r].

    Raises
    ------
    ValueError
        ``parts * most`` is too small.

    Examples
    --------
    >>> cheapest_split([0, 5, 6, 6], 2, 2)
    11
    """
    total = len(value) - 1
    if parts * most < total:
        raise ValueError("the parts cannot hold it")
    top = min(most, total)
    row: list[int | None] = [value[r] if r <= top else None for r in range(total + 1)]
    for _ in range(min(parts, max(total, 1)) - 1):
        nexts: list[int | None] = []
        for t in range(total + 1):
            options = [old + value[r] for r in range(min(top, t) + 1) if (old := row[t - r]) is not None]
            nexts.append(min(options, default=None))
        row = nexts
    found = row[total]
    assert found is not None
    return found


@lru_cache(maxsize=256)
def _whole(rows: int, cols: int, depth: int, work: int, capacity: int) -> tuple[int, ...]:
    """f(v) with whole-number geometry for v = 0 .. work."""
    x = [touched_whole(v, rows, cols, depth) for v in range(work + 1)]
    found = [0]
    for v in range(1, work + 1):
        best = 0
        for h in range(1, v + 1):
            share, longer = divmod(v, h)
            best = max(best, (h - longer) * x[share] + (longer * x[share + 1] if longer else 0) - (h - 1) * capacity)
        found.append(best)
    return tuple(found)


def least_over_splits(
    rows: int,
    cols: int,
    depth: int,
    work: int,
    capacity: int,
    sms: int,
    most: int | None = None,
    group_work: int | None = None,
) -> int:
    """The least of (5) over the splits of the work among SMs.

    Parameters
    ----------
    rows, cols, depth : int
        The box of one group's products; its three projections are the values.
    work : int
        Products in all, V.
    capacity : int
        S, values that one SM holds.
    sms : int
        P.
    most : int, optional
        c, products of the busiest SM, at least V / P; None allows any split.
    group_work : int, optional
        Products of one of several equal groups that share no values; by default there is one group.

    Returns
    -------
    int
        A lower bound on loads + stores + values copied, plus cells begun and not stored.

    Examples
    --------
    >>> least_over_splits(8192, 8192, 8192, 2**39, 229376, 108)
    2295985962
    >>> least_over_splits(64, 64, 64, 2**18, 10**6, 8, most=2**15) # eight SMs of 32^3 products each
    24576
    """
    group = work if group_work is None else group_work
    groups = work // group
    if most is None or most >= work:
        one, _ = best_segments(lambda v: touched_real_scaled(v, rows, cols, depth), group, capacity)
        best = groups * one
        if group <= _TINY:
            best = max(best, groups * cheapest_split(list(_whole(rows, cols, depth, group, capacity)), sms, group))
        return best
    best = least_over_splits(rows, cols, depth, work, capacity, sms, None, group_work)
    rate = _least_rate(rows, cols, depth, group, capacity, most)
    best = max(best, -(-rate.numerator * work // rate.denominator))
    if groups == 1 and work <= _TINY:
        best = max(best, cheapest_split(list(_whole(rows, cols, depth, work, capacity)), sms, most))
    return best


def busiest_sm(rows: int, cols: int, depth: int, work: int, capacity: int, sms: int) -> int:
    """Words in and out of the SM that does the most, for one GEMM: f(ceil(V / P)), under any split.

    Every cell begun at an SM, or what it was merged into, leaves it again, so what enters or leaves is at least f(v);
    f grows, and the busiest SM does at least ceil(V / P).
    """
    share = -(-work // sms)
    best, _ = best_segments(lambda v: touched_real_scaled(v, rows, cols, depth), share, capacity)
    return max(best, _whole(rows, cols, depth, share, capacity)[-1]) if share <= _TINY else best


@lru_cache(maxsize=256)
def _least_rate(rows: int, cols: int, depth: int, group: int, capacity: int, most: int) -> Fraction:
    """A number that f(u) / u is not below for any whole u from 1 to ``most``."""

    def total(v: int, h: int) -> int:
        share, longer = divmod(v, h)
        short = touched_real_scaled(share, rows, cols, depth)
        return (h - longer) * short + (longer * touched_real_scaled(share + 1, rows, cols, depth) if longer else 0)

    def rate(v: int, h: int) -> Fraction:
        return Fraction(total(v, h) - ((h - 1) * capacity << FRACTION_BITS), v << FRACTION_BITS)

    def best_h(v: int) -> int:
        found = best_segments(lambda u: touched_real_scaled(u, rows, cols, depth), v, capacity)[1] if v <= group else 0
        if v > group:  # shares of at most one group: h >= v / group; concave in h, so its best is found from there
            low, high = -(-v // group), v
            price = capacity << FRACTION_BITS
            while low < high:
                middle = (low + high) // 2
                if total(v, middle + 1) - total(v, middle) > price:
                    low = middle + 1
                else:
                    high = middle
            found = low
        return found

    upper = most
    upper_h = best_h(upper)
    worst = rate(upper, upper_h)
    while upper > 1 and upper_h > 1:
        lower = max(1, min(upper - 1, int(upper / _GRID)))
        lower_h = best_h(lower)
        # shares at the upper end must fit in a group as well
        choices = (upper_h, max(lower_h, -(-upper // group)))
        worst = min(worst, max(min(rate(lower, h), rate(upper, h)) for h in choices))
        upper, upper_h = lower, lower_h
    return worst
