r"""The line theorem for two products in a row, with prices that change with what a segment does.

H = act(A B) and Y = H D have m f k *first* products, of A B, and m f l *second* ones, of H D. Nothing is computed
twice; a cell may be added up in several accumulators that are merged later. Cut the schedule into h segments of V / h
products each, rounded down or up, V being all of them. A segment with v products, v2 of them second ones, is of *kind*
i if v2 is in the i-th of some ranges that cover 0 .. ceil(V / h). Each kind has prices: r >= 0 of a unit of room at the
cut before such a segment, mu > 0 and nu > 0 of the entropy of first and of second products, and of any sign a_A, a_B,
a_C of each first product, on its line of A, of B, and of the cell, and a_D, a_Y, a_E of each second one.

*Moves.* Let t_1 < t_2 < ... be the segments that touch a value. Just before t_q, q >= 2, an input is held over the
cut, or it is loaded between that cut and its use: at a width of w it costs w min(1, r) or more, with r of t_q's kind,
besides its first load. Of a cell, look at the accumulator that has its last product before t_q, or what that is merged
into. Before t_q it is held over the cut, or it is only in slow memory: stored after its last touch, which lies in
t_(q-1) or between t_(q-1) and t_q, and loaded before its next one. Such gaps begin at different times for different q,
so these moves differ. The cell is not complete in them, as t_q has products that add to it: that costs p min(2, r) for
Y and pH min(2, r) for H. So an output costs wo, its last store, and this for each q >= 2; a cell of H and an up cell
(which begins free and ends nowhere) this alone. A cell of H is complete before its second products: all segments that
have second ones only come after the last that has first ones. Before each of them it, or what it is made of, is held at
w or more (w <= pH), or it is loaded; before the first such load it was stored after the last first product. So they
cost the sum of w r, or w and the sum of w min(1, r).

*Products.* The first products of a segment on lines of A, of B and of cells, c on each, have sum c ln c <= v1 ln v1
over all lines together, for the entropy of one coordinate given the two others, added up over the three, is no more
than that of all three; so do the second ones on lines of D, of Y and of cells, with v2. And along each direction c adds
up to v1, or v2. At all cuts with what is before them at most S is held. So with v1 = v - v2 and

    G = max over kinds, v and v2 of r S + mu v1 ln v1 + nu v2 ln v2 + (a_A + a_B + a_C) v1 + (a_D + a_Y + a_E) v2

    moves >= sum over values of [what it costs + sum over its touches of mu c ln c + a c (or nu)] - h G + S min r,

since the first segment has no cut before it. G is convex in v2, so the ends of a kind's range, as far as v, suffice.

*What a value is charged* is the least bracket over all ways to share its L products among segments of any kinds. One
segment: mu L ln L + a L and what is certain. More: for every theta, with the c adding up to L,

    sum of mu c ln c + a c  >=  theta L + sum of E,    E = min over real c > 0 of mu c ln c + (a - theta) c
                                                         = -mu exp((theta - a) / mu - 1).

With gaps g before n of the touches, and E of the others, this is theta L + (others) + n M with M = min (g + E) over
kinds: linear in n, so one theta is good for a range of n whose two ends it bounds. Two ranges cover all n here: up to
the n at which the greatest such bound is least, and after it.

A cell of H has first and second products. Either no segment has both, or the last of those with first ones has, of kind
i: then one touch of each is of kind i, and it has no gap as far as second products go.

A gated chain has 2 f columns of gate and up in its first product, and up cells. Or forget these: the gate's chain
moves so much, and every up weight is loaded besides.

*Arithmetic.* All is whole multiples of 2^-256, with logarithms from both sides and exp from above, so that what is
added is never too high. Floats look for theta, and for the n that parts the ranges: any are good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from math import ceil, exp, floor, isfinite, log
from typing import Any, NamedTuple

from .lines import BITS, logarithm
from .reading import RefusedError, array, choice, fields, fraction, integer

PRICE = 64  #: bits of a price after the point
ANY = 128  #: and of theta
SUM = BITS + PRICE  #: and of what is added up
MAX_PRICE = 2**32
MAX_KINDS = 64
MAX_SEGMENTS = 2**128
FORMS = {1: ("chain",), 2: ("gated chain", "gate's chain")}
LINES = ("A", "B", "cells", "D", "Y", "cells again")
_DIGITS = Context(prec=64)
_LARGEST = 300  # what exp is taken of: e^300 products are more than there are
_SMALLEST = -150  # e^-150 is less than 2^-192
_STEPS = 8  # to the best theta, at most
_NEAR = 44  # bits that floats know of it
_EXACT = 80  # bits after the point to which what is charged is as high as it can be


class Units(NamedTuple):
    """What values take, in one unit."""

    read: int  #: w
    hidden: int  #: pH, no less
    partial: int  #: p
    written: int  #: wo


class Touch(NamedTuple):
    """What a value is charged for a touch in a segment of one kind, in multiples of 2^-64."""

    gap: int  #: to be there
    entropy: int  #: mu or nu
    product: int  #: a

    def whole(self, length: int) -> int:
        """2^256 (mu L ln L + a L), from below: all L products in one segment."""
        return self.entropy * length * logarithm(length)[0] + (self.product * length << BITS)

    def many(self, theta: int, at: str) -> int:
        """2^192 exp((theta - a) / mu - 1), from above: products of a touch, where they pay 2^-128 theta each.

        The quotient x, at most 300, is rounded at its 64th digit, exp is rounded correctly to as many: both together
        change it by less than 10^-60 of itself, and 2^-192 of it is added.
        """
        over, under = theta - ((self.product + self.entropy) << (ANY - PRICE)), self.entropy << (ANY - PRICE)
        if over < _SMALLEST * under:
            return 1
        if over > _LARGEST * under:
            raise RefusedError(at, "a value would be touched by more products than there are")
        above, below = _DIGITS.exp(_DIGITS.divide(Decimal(over), Decimal(under))).as_integer_ratio()
        found = (above << BITS) // below
        return found + (found >> BITS) + 2


class Value(NamedTuple):
    """The bound at one theta, in multiples of 2^-256 but the slopes, of 2^-192: others + n times each."""

    theta: int
    others: int
    each: int
    slope: int
    steeper: int

    def of(self, n: int) -> int:
        """The bound for n touches with a gap."""
        return self.others + n * self.each

    def rise(self, n: int) -> int:
        """How fast that rises with theta."""
        return self.slope - n * self.steeper


@dataclass(frozen=True)
class Share:
    """L products, shared among n touches with a gap and others without: one of any kind, one of a given kind."""

    length: int
    touches: tuple[Touch, ...]
    at: str
    free: bool = False  #: there is a touch of any kind
    fixed: int | None = None  #: the kind of a touch

    @cached_property
    def _rough(self) -> list[tuple[float, float, float]]:
        return [(t.gap / 2**PRICE, t.entropy / 2**PRICE, t.product / 2**PRICE) for t in self.touches]

    def least(self, low: int, high: int, rough: bool = False) -> int | None:
        """2^256 times the least over n from low to high, from below; None where there is no such n.

        ``rough``: perhaps less, and sooner.
        """
        if low > high:
            return None
        middle = min(high, max(low - 1, self._middle()))
        found = []
        if middle >= low:
            found.append(self._within(low, middle, middle, rough))
        if middle < high:
            found.append(self._within(middle + 1, high, middle + 1, rough))
        return min(found)

    def _within(self, low: int, high: int, n: int, rough: bool) -> int:
        """The same, all with one theta: about the best for n."""
        values = [self._value(int(self._best(n) * 2**ANY))] if rough else self._near(n)
        return max(min(value.of(low), value.of(high)) for value in values)

    def _value(self, theta: int) -> Value:
        many = [touch.many(theta, self.at) for touch in self.touches]
        worth = [-touch.entropy * c for touch, c in zip(self.touches, many, strict=True)]
        each, again = min((x + (t.gap << BITS), i) for i, (x, t) in enumerate(zip(worth, self.touches, strict=True)))
        others, slope = theta * self.length << (SUM - ANY), self.length << BITS
        if self.free:
            least, first = min((x, i) for i, x in enumerate(worth))
            others, slope = others + least, slope - many[first]
        if self.fixed is not None:
            others, slope = others + worth[self.fixed], slope - many[self.fixed]
        return Value(theta, others, each, slope, many[again])

    def _near(self, n: int) -> list[Value]:
        """Values near the best theta for n, which is where two tangents to them meet."""
        rough, step = self._best(n), 1 / (1 << _NEAR)
        size = max(abs(rough), min(mu for _, mu, _ in self._rough))
        while True:
            left, right = (self._value(int(x * 2**ANY)) for x in (rough - step * size, rough + step * size))
            if step >= 1 or (left.rise(n) >= 0 >= right.rise(n)):
                break
            step *= 2**11
        found = [left, right]
        for _ in range(_STEPS):
            up, down = left.rise(n), right.rise(n)
            if up <= 0 or down >= 0:
                break
            # heights are multiples of 2^-256, slopes of 2^-192, theta of 2^-128
            meet = ((right.of(n) - left.of(n) << ANY + BITS - SUM) + up * left.theta - down * right.theta) // (
                up - down
            )
            if not left.theta < meet < right.theta:
                break
            value = self._value(meet)
            found.append(value)
            if left.of(n) + (up * (meet - left.theta) >> ANY + BITS - SUM) - value.of(n) < 1 << SUM - _EXACT:
                break
            left, right = (value, right) if value.rise(n) > 0 else (left, value)
        return found

    def _best(self, n: int) -> float:
        """About the best theta for n: it halves where the products of all touches are too few or too many."""
        share = log(self.length)
        low = min(a + mu * (1 + share - log(n + 2)) for _, mu, a in self._rough)
        high = max(a + mu * (1 + share) for _, mu, a in self._rough)
        while low < (middle := (low + high) / 2) < high:
            if self._few(middle, n):
                low = middle
            else:
                high = middle
        return high

    def _few(self, theta: float, n: int) -> bool:
        products = [exp(max(_SMALLEST, min(_LARGEST, (theta - a) / mu - 1))) for _, mu, a in self._rough]
        worth = [-mu * c for (_, mu, _), c in zip(self._rough, products, strict=True)]
        total: float = 0
        if n:
            total += n * products[min(range(len(worth)), key=lambda i: self._rough[i][0] + worth[i])]
        if self.free:
            total += products[min(range(len(worth)), key=worth.__getitem__)]
        if self.fixed is not None:
            total += products[self.fixed]
        return total < self.length

    def _middle(self) -> int:
        """About the n at which the bound for the best theta is least: where a touch with a gap costs nothing more."""
        if any(gap == 0 for gap, _, _ in self._rough):
            return MAX_SEGMENTS
        theta, each = min((a + mu * (1 + log(gap / mu)), gap / mu) for gap, mu, a in self._rough)
        others: float = 0
        products = [(mu, exp(max(_SMALLEST, min(_LARGEST, (theta - a) / mu - 1)))) for _, mu, a in self._rough]
        if self.free:
            others += max((mu * c, c) for mu, c in products)[1]
        if self.fixed is not None:
            others += products[self.fixed][1]
        found = (self.length - others) / each
        return floor(found) if isfinite(found) else 0


@dataclass(frozen=True)
class Segments:
    """Segments of one kind."""

    first: int  #: second products, from
    last: int  #: to
    room: int  #: r, and so on, in multiples of 2^-64
    entropies: tuple[int, int]
    products: dict[str, int]

    def touch(self, line: str, moves: int, width: int) -> Touch:
        """Of a value of such a width, which costs so many moves to leave and return."""
        second = line in LINES[3:]
        return Touch(width * min(moves << PRICE, self.room), self.entropies[second], self.products[line])

    def kept(self, line: str, width: int) -> Touch:
        """Of a value that is held."""
        return self.touch(line, 0, 0)._replace(gap=width * self.room)

    def most(self, v: int, capacity: int) -> int | None:
        """2^256 times the largest that G is for segments of v products, from above; None where there are none."""
        if self.first > v:
            return None
        sums = [sum(self.products[line] for line in lines) for lines in (LINES[:3], LINES[3:])]
        found = []
        for second in {self.first, min(self.last, v)}:
            total = self.room * capacity << BITS
            for count, mu, more in zip((v - second, second), self.entropies, sums, strict=True):
                if count:
                    total += mu * count * logarithm(count)[1] + (more * count << BITS)
            found.append(total)
        return max(found)


def by_prices(
    chain: tuple[int, int, int, int, int], streams: int, units: Units, capacity: int, proof: Any, at: str
) -> int:
    """What a chain moves at least, in units, as the proof says; ``chain``: m, k, f, l and the cells of H.

    None of these may be left out by a mask.
    """
    m, k, f, l, cells = chain
    if cells != m * f:
        raise RefusedError(f"{at}.theorem", "this theorem is not about a mask")
    fields(proof, at, ("theorem", "form", "segments", "kinds", *(("least",) if "least" in proof else ())))
    form = choice(proof["form"], f"{at}.form", FORMS[streams])
    more = units.read * k * f if form == "gate's chain" else 0
    proved = prove_priced((m, k, f, l), form, units, capacity, proof, at) + more
    if "least" not in proof:
        return proved
    # who wrote the proof may have found a theta that is not quite the best
    least = integer(proof["least"], f"{at}.least", 0)
    if least > proved:
        raise RefusedError(f"{at}.least", f"these prices prove {proved:,}, not {least:,}")
    return least


def prove_priced(sizes: tuple[int, int, int, int], form: str, units: Units, capacity: int, proof: Any, at: str) -> int:
    """What the theorem says of m, k, f and l, in units; up weights that a form leaves out are not counted.

    Notes
    -----
    An exp for each kind and each of some tens of thetas for each kind: a fraction of a second for ten kinds.
    """
    m, k, f, l = sizes
    if units.hidden < units.read:
        raise RefusedError(at, "this theorem is about partial sums that are no narrower than what they end as")
    gated = form == "gated chain"
    columns = 2 * f if gated else f
    work = m * (columns * k + f * l)
    h = integer(proof["segments"], f"{at}.segments", 1, min(work, MAX_SEGMENTS))
    small, longest = work // h, -(-work // h)
    kinds = _kinds(proof["kinds"], longest, f"{at}.kinds")
    w, hidden, p, written = units

    def charged(line: str, length: int, certain: int, moves: int, width: int) -> int:
        touches = tuple(kind.touch(line, moves, width) for kind in kinds)
        return (certain << SUM) + _least(
            min(t.whole(length) for t in touches),
            Share(length, touches, at, free=True).least(1, min(h, length) - 1),
        )

    first = charged("cells", k, 0, 2, hidden)  # what an up cell is charged too
    total = m * k * charged("A", columns, w, 1, w)
    total += k * columns * charged("B", m, w, 1, w)
    total += f * l * charged("D", m, w, 1, w)
    total += m * l * charged("Y", f, written, 2, p)
    total += m * f * (_hidden(kinds, (k, l), first, units, h, at) + (first if gated else 0))
    most = [found for kind in kinds for v in (small, longest) if (found := kind.most(v, capacity)) is not None]
    total -= h * max(most)
    total += min(kind.room for kind in kinds) * capacity << BITS
    return ceil(Fraction(total, 1 << SUM))


def _hidden(kinds: Sequence[Segments], products: tuple[int, int], first: int, units: Units, h: int, at: str) -> int:
    """2^256 times what a cell of H is charged, from below; ``first``: its first products by themselves."""
    k, l = products
    added = tuple(kind.touch("cells", 2, units.hidden) for kind in kinds)
    # kept all the time, or stored once and loaded, or held, each time
    ways = (
        (0, tuple(kind.kept("cells again", units.read) for kind in kinds)),
        (units.read << SUM, tuple(kind.touch("cells again", 1, units.read) for kind in kinds)),
    )
    apart = [
        certain
        + _least(
            min(t.whole(l) + (t.gap << BITS) for t in touches),
            Share(l, touches, at).least(2, min(h, l)),
        )
        for certain, touches in ways
    ]

    def together(i: int, rough: bool) -> int:
        """The same where a segment of kind i has first and second products."""
        before = Share(k, added, at, free=True, fixed=i).least(0, min(h, k) - 2, rough)
        here = _least(added[i].whole(k), None if before is None else before + (added[i].gap << BITS))
        later = [ways[0][1][i].whole(l)]
        for certain, touches in ways:
            after = Share(l, touches, at, fixed=i).least(1, min(h, l) - 1, rough)
            later += [] if after is None else [certain + after]
        return here + min(later)

    best = first + min(apart)
    for low, i in sorted((together(i, True), i) for i in range(len(kinds))):
        if low >= best:  # and so are all that follow
            break
        best = min(best, together(i, False))
    return best


def _least(one: int, other: int | None) -> int:
    return one if other is None else min(one, other)


def _kinds(told: Any, longest: int, at: str) -> list[Segments]:
    """The kinds of a proof, whose ranges follow each other and end at the longest segment."""
    found: list[Segments] = []
    start = 0
    for number, one in enumerate(array(told, at, 1, MAX_KINDS)):
        where = f"{at}[{number}]"
        fields(one, where, ("to", "room", "first", "second", *LINES))
        end = integer(one["to"], f"{where}.to", start, longest)
        entropies = tuple(_price(one[key], f"{where}.{key}") for key in ("first", "second"))
        for key, price in zip(("first", "second"), entropies, strict=True):
            if price == 0:
                raise RefusedError(f"{where}.{key}", "an entropy has a price above 0")
        products = {line: _price(one[line], f"{where}.{line}", True) for line in LINES}
        room = _price(one["room"], f"{where}.room")
        found.append(Segments(start, end, room, (entropies[0], entropies[1]), products))
        start = end + 1
    if start != longest + 1:
        raise RefusedError(at, f"the last range does not end at {longest} products")
    return found


def _price(told: Any, at: str, signed: bool = False) -> int:
    """2^64 times a price."""
    price = fraction(told, at, signed)
    if (1 << PRICE) % price.denominator or abs(price) >= MAX_PRICE:
        raise RefusedError(at, f"a price is a whole multiple of 2^-{PRICE} below 2^32")
    return int(price * (1 << PRICE))
