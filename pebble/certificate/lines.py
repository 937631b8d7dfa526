"""The line theorem: what moves at least when values are followed through h segments of equal work.

A value touched in s segments has s - 1 gaps between them. In each it is held over a cut, where it takes ``footprint``,
or it leaves and returns, which costs ``again``: 1 for an input, 2 for an accumulator; ``first`` moves are certain. The
capacity at the h - 1 cuts is (h - 1) S in all. So for every multiplier rho >= 0 of capacity

    moves + rho (h - 1) S >= sum over values of first + (s - 1) min(again, rho footprint).

The products on the lines that a segment of v products touches have sum c ln c <= v ln v, over the lines of all three
directions: the entropies of one coordinate given the two others add up to no more than that of all three. A line of L
products in p parts has sum c ln c >= E(L, p), which has the parts L / p rounded down and up; a value that stands for R
parallel lines has at most R s parts in s segments. So for every mu >= 0

    moves >= sum over values of min over s of [first + (s - 1) min(again, rho footprint) + mu E(L, min(R s, L))]
             - mu sum of v ln v - rho (h - 1) S.

In the classic game moves and capacity count values, and a footprint is 1. In bytes an input takes w, held or loaded; a
cell that two segments update one after the other is initialised and not complete in between: a partial sum, which takes
p (of the output) or p_H (of H) over a cut, and twice that to leave and return; a complete output is stored at w_o, and
loaded at w_o first if it is added to. Bytes are counted in units of the greatest common divisor of all widths, in which
S is rounded down.

The bracket is convex in s, so an s is the best if neither neighbour is better; s is at most h and L. Logarithms are
bounded on both sides by a series in whole multiples of 2^-192.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any, NamedTuple, Protocol

from .reading import RefusedError, array, choice, fields, fraction, integer
from .statement import ALIKE, ClaimedWidths

BITS = 192
MAX_KERNEL = 64  # positions of a kernel that are counted one by one
_TERMS = 64  # of a series whose terms fall ninefold: what is left out is below 2^-192


@lru_cache(maxsize=1024)
def logarithm(n: int) -> tuple[int, int]:
    """2^192 ln n from below and above, for a whole n >= 1.

    With n = 2^e f, 1 <= f < 2 and y = (f - 1) / (f + 1) <= 1/3, ln n = e ln 2 + 2 (y + y^3 / 3 + y^5 / 5 + ...), and
    ln 2 is the same series at y = 1/3. Each term is rounded down twice at most, so it is short by less than 3 units.
    """
    halvings = n.bit_length() - 1
    whole = 1 << halvings
    two, rest = _series(1, 3), _series(n - whole, n + whole)
    low = halvings * two + rest
    return low, low + (halvings + 1) * 8 * _TERMS if n > 1 else 0


def _series(over: int, under: int) -> int:
    """2^192 times 2 (y + y^3 / 3 + ...) at y = over / under <= 1/3, rounded down by less than 6 * 64 + 1 units."""
    power = (over << BITS) // under
    square = power * power >> BITS
    total = 0
    for i in range(_TERMS):
        total += power // (2 * i + 1)
        power = power * square >> BITS
    return 2 * total


def entropy(length: int, segments: int) -> tuple[int, int]:
    """2^192 E(L, p), from below and above."""
    small, larger = divmod(length, segments)
    low = high = 0
    for size, count in ((small, segments - larger), (small + 1, larger)):
        if count:
            below, above = logarithm(size)
            low, high = low + count * size * below, high + count * size * above
    return low, high


class ValueKind(Protocol):
    """Values of one kind."""

    @property
    def count(self) -> int:
        """How many there are."""

    def prove(self, claimed: Any, h: int, mu: Fraction, rho: Fraction, at: str) -> Fraction:
        """What one of them is charged, from below; ``claimed`` says where that is."""


@dataclass(frozen=True)
class Lines:
    """Values of one kind, whose lines have the same length."""

    count: int
    length: int  #: L, products of each
    first: int = 1  #: moves that are certain
    again: int = 1  #: moves to leave and return
    footprint: int = 1  #: what it takes in fast memory
    overlap: int = 1  #: R, parallel lines that it stands for
    weight: int = 1  #: work of one of its products

    def prove(self, claimed: Any, h: int, mu: Fraction, rho: Fraction, at: str) -> Fraction:
        """What one of them is charged, from below: ``claimed`` is an s where the charge is least."""
        most = min(self.length, h)
        s = integer(claimed, at, 1, most)
        gap = min(Fraction(self.again), rho * self.footprint)

        def charge(s: int) -> tuple[Fraction, Fraction]:
            bounds = entropy(self.length, min(self.overlap * s, self.length))
            low, high = (self.first + (s - 1) * gap + self.weight * mu * Fraction(x, 1 << BITS) for x in bounds)
            return low, high

        low, high = charge(s)
        for other in (s - 1, s + 1):
            if 1 <= other <= most and charge(other)[0] < high:
                raise RefusedError(at, f"a value touched in {other} segments may be charged less than in {s}")
        return low


class Form(NamedTuple):
    """One way to apply the theorem to a workload."""

    kinds: Sequence[ValueKind]  #: of its values
    work: int  #: products, or what they count
    more: int = 0  #: values loaded besides, in units
    heaviest: int = 1  #: what a product counts at most

    def at(self, widths: ClaimedWidths, where: str) -> Form:
        """The same of one product with values at their widths.

        A value that returns at one move is an input; at two a cell, of the output if any move is certain.
        """
        w, hidden, partial, written = widths.in_units
        weighted: list[ValueKind] = []
        for kind in self.kinds if widths != ALIKE else ():
            if not isinstance(kind, Lines):
                raise RefusedError(where, "no theorem in bytes is about such values")
            p = w if kind.again == 1 else partial if kind.first else hidden
            first = kind.first * (w if kind.again == 1 else written)
            weighted.append(replace(kind, first=first, again=kind.again * p, footprint=p))
        return self._replace(kinds=weighted, more=w * self.more) if weighted else self


def by_lines(
    forms: dict[str, Form], widths: ClaimedWidths, capacity: int, proof: Any, at: str, besides: Sequence[str] = ()
) -> int:
    """What the theorem says in the form that the proof names, in values or bytes.

    Parameters
    ----------
    forms : dict of Form
        With values at their widths.
    widths : Widths
    capacity : int
        S, values or bytes.
    proof : object
        ``form``, ``segments``, ``mu``, ``rho``, and for each kind the s of its minimum.
    besides : sequence of str
        Further keys that it may have.
    """
    fields(proof, at, ("theorem", "form", "segments", "mu", "rho", "minima"), besides)
    kinds, work, more, heaviest = forms[choice(proof["form"], f"{at}.form", tuple(forms))]
    h = integer(proof["segments"], f"{at}.segments", 1, work)
    mu, rho = fraction(proof["mu"], f"{at}.mu"), fraction(proof["rho"], f"{at}.rho")
    minima = array(proof["minima"], f"{at}.minima", len(kinds), len(kinds))
    total = -rho * (h - 1) * (capacity // widths.unit)
    small, larger = divmod(work, h)
    if heaviest == 1:
        for size, count in ((small, h - larger), (small + 1, larger)):
            if count:
                total -= mu * count * size * Fraction(logarithm(size)[1], 1 << BITS)
    else:  # products that count more than one end a segment up to so much later: none has more than this
        longest = small + bool(larger) + heaviest - 1
        total -= mu * work * Fraction(logarithm(longest)[1], 1 << BITS)
    for number, (kind, claimed) in enumerate(zip(kinds, minima, strict=True)):
        total += kind.count * kind.prove(claimed, h, mu, rho, f"{at}.minima[{number}]")
    return widths.unit * (ceil(total) + more)


def read_times(height: int, width: int, kernel: int, stride: int) -> list[tuple[int, int]]:
    """For a convolution: (pairs of a pixel and a tap, positions of an image that so many pairs read), ascending.

    A position y is read by the outputs o with o stride <= y < o stride + kernel.
    """
    result: dict[int, int] = {}
    rows, columns = (_read_along(extent, kernel, stride) for extent in (height, width))
    for y, at_y in rows.items():
        for x, at_x in columns.items():
            result[y * x] = result.get(y * x, 0) + at_y * at_x
    return sorted(result.items())


def _read_along(extent: int, kernel: int, stride: int) -> dict[int, int]:
    """Positions along one direction by how many outputs read them; those that none reads are left out."""
    last = (extent - kernel) // stride  # the last output
    if stride >= kernel:  # windows do not overlap, however far apart they are
        return {1: (last + 1) * kernel}
    result: dict[int, int] = {}

    def add(first: int, end: int, times: int = 1) -> None:
        for position in range(first, end):
            low, high = max(0, (position - kernel) // stride + 1), min(last, position // stride)
            if high >= low:
                result[high - low + 1] = result.get(high - low + 1, 0) + times

    end = last * stride + kernel
    # the outer `kernel` positions on either side see fewer outputs; between them it goes on with period `stride`
    periods = max(0, (end - 2 * kernel - stride) // stride)
    if periods < 2:
        add(0, end)
    else:
        add(0, kernel)
        add(kernel, kernel + stride, periods)
        add(kernel + periods * stride, end)
    return result
