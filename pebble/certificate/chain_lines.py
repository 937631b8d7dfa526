"""The line theorem for H = act(A B) and Y = H D: what a cell of H is charged.

A cell has k first products, which complete it, and then l second ones, which read it. Let s segments have first
products of it and j further ones second products only. It begins free and need not be stored. Between two of the s it
is held over a cut or stored and loaded again: 2 or rho each. Before each of the j it is held over the cut before it or
loaded, and if it is loaded at all it was stored once after its last update: for t loads (j - t) rho + t + [t > 0]. All
these moves are different. So for 1 <= rho <= 2 it moves, or takes room, for at least

    (s - 1) rho + min(j rho, j + 1).

Its products have sum c ln c >= E(k + l, s + j). The j segments have at most l products in all. If j q >= l, with q the
whole part of (k + l) / (s + j), then E(J, j) + E(k + l - J, s), convex in their number J, does not rise up to J = j q,
so the cell has E(k, s) + E(l, j) at least. Otherwise j <= (l - 1) / q, and the moves are the fewest at the largest j.
So the charge is at least the least of

    mixed, for n = s + j: (n - 1 - j) rho + min(j rho, j + 1) + mu E(k + l, n), j = min(n - 1, (l - 1) div q),
    apart: min over s of (s - 1) rho + mu E(k, s), plus min over j >= 1 of min(j rho, j + 1) + mu E(l, j).

Both are looked through here. Mixed is at least n - 1 + mu E(k + l, n), which is convex in n: once that is no less than
the least so far, and no longer falls, no further n matters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .lines import BITS, Lines, entropy
from .reading import RefusedError, integer

MANY = 1000  # mu (k + l) beyond which a cell is charged n - 1 + mu E(k + l, n)
MAX_STEPS = 20_000

Bounds = tuple[Fraction, Fraction]  # a number from below and above


@dataclass(frozen=True)
class Hidden:
    """Cells of H."""

    count: int
    k: int  #: first products of each
    l: int  #: second products of each

    def prove(self, claimed: Any, h: int, mu: Fraction, rho: Fraction, at: str) -> Fraction:
        """What a cell is charged, from below: ``claimed`` is the n where it is least, 0 for apart."""
        length = self.k + self.l
        if not 1 <= rho <= 2:
            raise RefusedError(at, "this theorem is about prices rho from 1 to 2")
        if mu * length > MANY:
            return Lines(1, length, 0).prove(claimed, h, mu, Fraction(1), at)
        most = min(h, length)
        found = self._all(most, mu, rho, at)
        mine = found.get(integer(claimed, at, 0, most))
        if mine is None or any(high < mine[0] for _, high in found.values()):
            raise RefusedError(at, "a cell is charged less elsewhere")
        return min(low for low, _ in found.values())

    def _all(self, most: int, mu: Fraction, rho: Fraction, at: str) -> dict[int, Bounds]:
        """The charges that may be least: apart as 0, and mixed by n."""
        found = {0: self._apart(most, mu, rho, at)} if most > 1 else {}
        before: Fraction | None = None  # the floor at the last n, from above
        for n in range(1, most + 1):
            if n > MAX_STEPS:
                raise RefusedError(at, f"more than {MAX_STEPS} segments would have to be looked at")
            parts = entropy(self.k + self.l, n)
            floor, above = _charge(Fraction(n - 1), mu, parts)
            if before is not None and floor >= max(before, min(high for _, high in found.values())):
                break
            before = above
            later = min(n - 1, (self.l - 1) // ((self.k + self.l) // n))
            found[n] = _charge((n - 1 - later) * rho + min(later * rho, Fraction(later + 1)), mu, parts)
        return found

    def _apart(self, most: int, mu: Fraction, rho: Fraction, at: str) -> Bounds:
        firsts = _least(lambda s: _charge((s - 1) * rho, mu, entropy(self.k, s)), min(most, self.k), at)
        held = _least(lambda j: _charge(j * rho, mu, entropy(self.l, j)), min(most, self.l), at)
        stored = _least(lambda j: _charge(Fraction(j + 1), mu, entropy(self.l, j)), min(most, self.l), at)
        return firsts[0] + min(held[0], stored[0]), firsts[1] + min(held[1], stored[1])


def _charge(moves: Fraction, mu: Fraction, parts: tuple[int, int]) -> Bounds:
    low, high = (moves + mu * Fraction(x, 1 << BITS) for x in parts)
    return low, high


def _least(charge: Callable[[int], Bounds], most: int, at: str) -> Bounds:
    """The least of a convex function on 1..most, from below and above: until it surely does not fall any more."""
    low, high = charge(1)
    for s in range(2, most + 1):
        if s > MAX_STEPS:
            raise RefusedError(at, f"more than {MAX_STEPS} segments would have to be looked at")
        below, above = charge(s)
        if below >= high:
            break
        low, high = min(low, below), min(high, above)
    return low, high
