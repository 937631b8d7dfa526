r"""The line theorem for two products in a row by cases: prices that change from segment to segment.

H = act(A B) and Y = H D have V1 *first* products, of A B, and *second* ones, of H D; nothing is computed twice. Cut the
schedule into segments of n_1, n_2, ... products, V in all. Of the n_t of a segment v_t are first ones; the v_t, whole
numbers from 0 to n_t, add up to V1, whatever the schedule is. A *box* is a lowest and a highest v_t for each t. The
proof begins with the box of all v and parts it, and parts of it, at a number of one v_t, into v_t <= x and v_t > x. So
every schedule is in one of the boxes in the end. Those without any v of sum V1 are left out; of the others a v_t is at
least V1 less the highest of all others, and at most V1 less the lowest of all others.

*Prices*, for each box others: r_t >= 0 of a unit of room at the cut after segment t; g_t >= 0 of the entropy of all its
products, p_t > 0 and q_t > 0 of those of its first and its second ones; and numbers of any sign, a_t of each first
product for each of its lines, on A, on B and on the cell, and likewise of each second one, on D, on Y and on the cell.

*Moves.* What a value does between two segments s < t that touch it, if none between them does, is told in
`.lagrangian_lines`: it is held over all cuts from that after s to that before t, at R = r_s + ... + r_(t-1) a unit, or
it has one move in this gap, or two, that no other gap has. So an input costs w, and w min(1, R) for each gap; a cell of
Y wo, and p min(2, R) for each; a cell of H and an up cell pH min(2, R) for each gap between first products; and from
its last first product on a cell of H is *kept*, w R in each gap, or *stored*, w once and w min(1, R) in each gap. The
segments with second products only come after all with first ones.

*Products.* In a segment the first products have sum c ln c <= v ln v, over their lines of A, of B and cells together;
the second ones sum c ln c <= (n - v) ln(n - v); and all together n ln n, where a cell has all its products in one c.
Along each direction c adds up to v, or to n - v. At each cut S at most is held. With all prices

    moves >= sum over values of [what it costs + sum over its segments of (g_t + p_t) c ln c + a_t c, or q_t]
             - S sum r_t - sum of max over v in the box of F_t(v),
    F_t(v) = g_t n ln n + p_t v ln v + q_t (n - v) ln(n - v) + (sum of a_t of first lines) v
             + (sum of a_t of second lines) (n - v),

which is convex in v, so that the ends of the box suffice. Where a cell has c first and d second products in a segment,
it is charged g_t (c + d) ln(c + d).

What a value is charged: `.case_charges`. Logarithms of F are rounded upwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil
from typing import Any

from .case_charges import POINT, SUM, Shape, Tariff, charged
from .lagrangian_lines import FORMS, Units
from .lines import BITS, logarithm
from .reading import RefusedError, array, choice, fields, integer

MOST_SEGMENTS = 8
MOST_NODES = 20_000
FIRST, SECOND = ("a", "b", "cells"), ("d", "y", "again")
ENTROPIES = ("both", "first", "second")
_LARGEST = 1 << POINT + 32  # of a price


def by_cases(
    chain: tuple[int, int, int, int, int], streams: int, units: Units, capacity: int, proof: Any, at: str
) -> int:
    """What a chain moves at least, in units, as the proof says; ``chain``: m, k, f, l and the cells of H."""
    m, k, f, l, cells = chain
    if cells != m * f:
        raise RefusedError(f"{at}.theorem", "this theorem is not about a mask")
    fields(proof, at, ("theorem", "form", "sizes", "cases"), ("least",))
    form = choice(proof["form"], f"{at}.form", FORMS[streams])
    if units.hidden < units.read or units.partial < units.written:
        raise RefusedError(at, "this theorem is about partial sums that are no narrower than what they end as")
    columns = 2 * f if form == "gated chain" else f
    more = units.read * k * f if form == "gate's chain" else 0
    sizes = [
        integer(size, f"{at}.sizes[{number}]", 1)
        for number, size in enumerate(array(proof["sizes"], f"{at}.sizes", 1, MOST_SEGMENTS))
    ]
    first, second = m * columns * k, m * f * l
    if sum(sizes) != first + second:
        raise RefusedError(f"{at}.sizes", f"the segments have {sum(sizes):,} products, expected {first + second:,}")
    shape = Shape(m, k, f, l, columns, units)
    known: dict[str, int] = {}
    results = []
    for box, item, where in _cases(proof["cases"], sizes, first, f"{at}.cases"):
        prices = read_prices(item, len(sizes), where)
        key = repr(item)
        if key not in known:
            known[key] = charged(shape, prices, where)
        results.append(_in_box(known[key], prices, sizes, box, capacity) + more)
    proved = min(results)
    if "least" not in proof:
        return proved
    # who wrote the proof may have found a theta that is not quite the best
    least = integer(proof["least"], f"{at}.least", 0)
    if least > proved:
        raise RefusedError(f"{at}.least", f"these cases prove {proved:,}, not {least:,}")
    return least


Ends = list[tuple[int, int]]


def _within(box: Ends, total: int) -> Ends | None:
    """A box without the v that no others complete to the total; None where there are none left."""
    low, high = sum(one for one, _ in box), sum(other for _, other in box)
    if total < low or total > high:
        return None
    return [(max(one, total - high + other), min(other, total - low + one)) for one, other in box]


def _cases(stated: Any, sizes: list[int], total: int, at: str) -> Iterator[tuple[Ends, Any, str]]:
    """The boxes in which all partings end, and what is said of each."""
    waiting: list[Ends] = [[(0, size) for size in sizes]]
    for number, item in enumerate(array(stated, at, 1, MOST_NODES)):
        where = f"{at}[{number}]"
        box = None
        while box is None:
            if not waiting:
                raise RefusedError(where, "there is no case left that it could be about")
            box = _within(waiting.pop(), total)
        if type(item) is not dict or "segment" not in item:
            yield box, item, where
            continue
        fields(item, where, ("segment", "most"))
        t = integer(item["segment"], f"{where}.segment", 1, len(sizes)) - 1
        low, high = box[t]
        if low == high:
            raise RefusedError(f"{where}.segment", "this segment has but one number of first products here")
        x = integer(item["most"], f"{where}.most", low, high - 1)
        waiting += [[*box[:t], (x + 1, high), *box[t + 1 :]], [*box[:t], (low, x), *box[t + 1 :]]]
    if any(_within(box, total) is not None for box in waiting):
        raise RefusedError(at, "a case is left out")


def read_prices(item: Any, h: int, at: str) -> Tariff:
    """The prices of a case, each in its range."""
    fields(item, at, ("room", *ENTROPIES, *FIRST, *SECOND))
    lowest = {"room": 0, "both": 0, "first": 1, "second": 1}
    result = {}
    for name in item:
        size = h - (name == "room")
        row = array(item[name], f"{at}.{name}", size, size)
        low = lowest.get(name, -_LARGEST)
        result[name] = [integer(price, f"{at}.{name}[{t}]", low, _LARGEST) for t, price in enumerate(row)]
    return Tariff(result.pop("room"), result)


def _in_box(total: int, prices: Tariff, sizes: list[int], box: Ends, capacity: int) -> int:
    """What is proved in a box, in units; ``total``: 2^128 times what values are charged."""
    result = Fraction(total, 1 << SUM) - Fraction(sum(prices.room) * capacity, 1 << POINT)
    for t, (size, ends) in enumerate(zip(sizes, box, strict=True)):
        result -= max(_taken(prices, t, size, v) for v in ends)
    return ceil(result)


def _taken(prices: Tariff, t: int, size: int, first: int) -> Fraction:
    """F_t, from above."""
    second, total = size - first, 0
    for entropy, count in (("both", size), ("first", first), ("second", second)):
        if count:
            total += prices.of[entropy][t] * count * logarithm(count)[1]
    for lines, count in ((FIRST, first), (SECOND, second)):
        total += sum(prices.of[line][t] for line in lines) * count << BITS
    return Fraction(total, 1 << BITS + POINT)
