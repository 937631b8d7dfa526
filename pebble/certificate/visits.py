"""Loads and drops of one operand of a product: what every slice of the other two is owed for the room that it takes.

Stream one of A, B and C: a slice is a column of B and C, a row of A and C, or a column of A with a row of B. It uses
each of the M streamed values once: a grid of R / u rows (cells of C; of C streamed, values of A) by K / v columns,
whose values take u and v. When a streamed value is loaded or dropped beside a others, of z each, all slices together
hold S - z (a + 1) at most: a slice that holds t then is owed t z / (S - z (a + 1)) of twice the loads, as drops are as
many. With q of its products done a slice has partial values that take

    min(K, R, 2 sqrt(u v q), 2 sqrt(u v (M - q)))

(a row done and one not initialised: all columns; a column done and one not initialised: all rows; none done: r rows and
c columns initialised with r c >= q; else all initialised, and the same of those not done). What of these is not held is
in a gap, of columns at its own price, of rows that are cells at twice that. So with gaps a and b layer s, of a + b < s
<= min(K, R + a), is held while q and M - q are at least (s - 1)^2 / (4 u v), rounded down, plus 1.

At a moment of a layer let mu streamed values be in memory, D1 + D2 = M - mu not, D1 of them used by the slice. With s'
= S / z, d drops and as many loads as the numbers at both ends require are owed, beside mu held at the end,

    h(mu, d) = -ln(1 - d / (s' - mu))   for d <= (s' - mu) / 2,     ln(4 d / (s' - mu))   for d <= s' / 2,
               ln(s' / (s' - mu)) + 2 d / s' - 1 + ln 2   beyond,   0   for d <= 0,

the least over the number where it began and the least number since. Backwards in time it is the same, so layer s is
owed h(mu, D1 - q) + h(mu, D2 - q), half of it in loads. Gaps choose between layers: of those of numbers that differ by
R one is held; a round costs 1 for each, or 2 without such a change. What a slice moves is at least the least over mu
and D1 of the sum over s <= min(K, R) of min(2, w(s), 1 + w(s + R)); with C streamed of min(1, w(s)), w not halved,
since each event moves, as wide as an output at least, but for one of the two of each cell.

The least is proved on cells of mu and D1, halved until it holds. In a cell h is bounded by its value at the least mu
and d, a slope in d, the lesser of those at both ends, and one in mu; a layer then has the least of linear functions,
concave in mu and D1, so the corners of the cell decide; and concave in s, so both ends of a strip of layers do.
Lengths are whole parts of s', rounded against the claim.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, isqrt
from typing import Any, NamedTuple

from .lines import BITS as LOG_BITS
from .lines import logarithm
from .reading import RefusedError, choice, fields, fraction
from .statement import ClaimedWidths, Workload

SHARES = 2048
STRIPS = 16
STRIP_SHARES = 40
HALVINGS = 5
MAX_CELLS = 2500
_BITS = 96
_UNIT = 1 << _BITS


@lru_cache(maxsize=4 * SHARES + 1)
def _ln(n: int) -> tuple[int, int]:
    """2^96 ln n from below and above."""
    low, high = logarithm(n)
    return low >> (LOG_BITS - _BITS), -(-high >> (LOG_BITS - _BITS))


class Grid(NamedTuple):
    """A slice: its products, and what its rows and columns take."""

    slices: int
    certain: int  #: what surely moves besides
    products: int
    rows: int  #: R
    columns: int  #: K
    pair: int  #: u v
    streamed: int  #: z
    whole: bool  #: owed in full
    cells: bool  #: whether rows are cells, whose gaps cost two moves


def _grid(workload: Workload, widths: ClaimedWidths, streamed: str) -> Grid:
    m, n, k = (workload.size[name] for name in ("m", "n", "k"))
    w, _, p, o = widths.in_units
    stores = o * m * n * (2 if workload.option["accumulate_into"] else 1)
    if streamed == "A":
        return Grid(n, w * k * n + stores, m * k, p * m, w * k, p * w, w, False, True)
    if streamed == "B":
        return Grid(m, w * m * k + stores, k * n, p * n, w * k, p * w, w, False, True)
    return Grid(k, w * (m * k + k * n) + stores - 2 * o * m * n, m * n, w * m, w * n, w * w, o, True, False)


class _Strip(NamedTuple):
    layers: int
    ends: tuple[tuple[int, int], ...]  #: q at the first and the last layer, and of those that R further follow

    @property
    def divisible(self) -> bool:
        return self.layers > 1


@dataclass(frozen=True)
class _Proof:
    """What a slice is asked to move in a memory."""

    grid: Grid
    capacity: int
    wanted: int  #: 2^96 times it

    @property
    def products(self) -> int:
        return self.grid.products * self.grid.streamed * SHARES // self.capacity

    def begins(self, s: int) -> int:
        """Products done before layer s is there, in parts, from above."""
        over, under = (s - 1) ** 2 + 4 * self.grid.pair, 4 * self.grid.pair * self.capacity
        return -(-over * self.grid.streamed * SHARES // under)

    def strip(self, first: int, last: int, follow: bool) -> _Strip:
        further = (0, self.grid.rows) if follow else (0,)
        return _Strip(last + 1 - first, tuple((self.begins(first + r), self.begins(last + r)) for r in further))

    def runs(self) -> Iterator[tuple[int, int, bool]]:
        """Layers from, to, and whether others follow R further on."""
        grid = self.grid
        highest = min(grid.columns, isqrt(2 * grid.pair * grid.products) + 1)
        while highest and (highest - 1) ** 2 // (4 * grid.pair) + 1 > grid.products // 2:
            highest -= 1
        own = min(highest, grid.rows)
        followed = max(0, min(own, highest - grid.rows)) if grid.cells else 0
        for low, high, follow in ((1, followed, True), (followed + 1, own, False)):
            if low > high:
                continue
            size, grown = high + 1 - low, self.begins(high + (grid.rows if follow else 0)) - self.begins(low)
            many = min(STRIPS, grown // STRIP_SHARES + 1)
            for i in range(many):
                first, end = low + size * i // many, low + size * (i + 1) // many
                if first < end:
                    yield first, end - 1, follow

    def holds(self, cell: tuple[int, int, int, int]) -> bool:
        """Whether it moves so much wherever mu and D1 are in a cell."""
        sums = [0, 0, 0, 0]
        for first, last, follow in self.runs():
            self.add(sums, cell, first, last, follow, HALVINGS)
        return min(sums) >= 2 * self.wanted

    def add(
        self, sums: list[int], cell: tuple[int, int, int, int], first: int, last: int, follow: bool, more: int
    ) -> None:
        """Add twice what a strip has at each corner."""
        strip = self.strip(first, last, follow)
        ends = [self.owed(cell, *q) for q in strip.ends]
        early, late = strip.ends[0]
        behind = self.products - cell[1] - cell[3]
        bent = any(d > early and d - late < 2 * (late - early) for d in (cell[2], behind))
        if more and strip.divisible and bent and min(ends[0][1]) < (2 if follow else 1) * _UNIT:
            middle = (first + last) // 2
            self.add(sums, cell, first, middle, follow, more - 1)
            self.add(sums, cell, middle + 1, last, follow, more - 1)
            return
        for end in (0, 1):
            for corner in range(4):
                least = min(2 * _UNIT if follow else _UNIT, ends[0][end][corner])
                if follow:
                    least = min(least, _UNIT + ends[1][end][corner])
                sums[corner] += strip.layers * least

    def owed(self, cell: tuple[int, int, int, int], early: int, late: int) -> tuple[list[int], list[int]]:
        """What the first and the last layer of a strip have at the corners, from below."""
        low, high, x, y = cell
        behind = self.products - high - y  # the least D2
        here = _bounds(SHARES - low, x - late, y - early)
        there = _bounds(SHARES - low, behind - late, self.products - low - x - early)
        last = []
        for mu in (low, high):
            for d in (x, y):
                owed = here[0] + here[1] * (d - x) + here[2] * (mu - low)
                owed += there[0] + there[1] * (self.products - mu - d - behind) + there[2] * (mu - low)
                last.append(owed)
        gain = (here[1] + there[1]) * (late - early)
        parts = 1 if self.grid.whole else 2
        return [(owed + gain) // parts for owed in last], [owed // parts for owed in last]


def _bounds(capacity: int, least: int, most: int) -> tuple[int, int, int]:
    """h, its slope in d and its slope in mu, from below, for d from least to most and s' - mu = room or less."""
    if least <= 0:
        return 0, 0, 0

    def slope(d: int) -> int:
        return _UNIT // min(max(capacity - d, d), SHARES // 2) if 2 * d > capacity else _UNIT // (capacity - d)

    by_mu = (
        min(_UNIT // capacity, _UNIT // (capacity - least) + -_UNIT // capacity)
        if 2 * least < capacity
        else _UNIT // capacity
    )
    if 2 * least <= capacity:
        h = _ln(capacity)[0] - _ln(capacity - least)[1]
    elif 2 * least <= SHARES:
        h = _ln(4 * least)[0] - _ln(capacity)[1]
    else:
        h = _ln(2 * SHARES)[0] - _ln(capacity)[1] + (2 * least - SHARES) * _UNIT // SHARES
    return h, min(slope(least), slope(most)), by_mu


def by_visits(workload: Workload, widths: ClaimedWidths, capacity: int, proof: Any, at: str) -> int:
    """What the theorem says with the streamed operand of the proof, if a slice moves what the proof says."""
    fields(proof, at, ("theorem", "streamed", "slice_at_least"))
    if workload.family != "gemm":
        raise RefusedError(f"{at}.theorem", f"this theorem is about one product, not about a {workload.family}")
    grid = _grid(workload, widths, choice(proof["streamed"], f"{at}.streamed", ("A", "B", "C")))
    stated = fraction(proof["slice_at_least"], f"{at}.slice_at_least")
    claim = _Proof(grid, capacity // widths.unit, ceil(stated * _UNIT))
    _prove(claim, f"{at}.slice_at_least")
    return widths.unit * (grid.certain + ceil(grid.slices * stated))


def _prove(claim: _Proof, at: str) -> None:
    """All mu and D1, those with D1 <= D2, which is the same exchanged."""
    products, held = claim.products, min(SHARES, claim.products + 1)
    size = 1 << max(held, products // 2 + 1).bit_length()
    cells, seen = [(0, size, 0, size)], 0
    while cells:
        low, high, x, y = cell = cells.pop()
        if low >= held or 2 * x > products - low:
            continue
        seen += 1
        if claim.holds(cell):
            continue
        if seen > MAX_CELLS or (high - low, y - x) == (1, 1):
            where = f"{low} / {SHARES} of what fits is held and {x} are used and dropped"
            raise RefusedError(at, f"it could not be proved that a slice moves so much where {where}")
        mean, middle = (low + high) // 2, (x + y) // 2
        long = high - low >= y - x
        cells += [(low, mean, x, y), (mean, high, x, y)] if long else [(low, high, x, middle), (low, high, middle, y)]
