"""The line theorem in bytes: what a value takes over a cut, and what it costs to leave and return, by its width.

An input takes w, held or loaded. A cell that two segments update one after the other is begun and not complete in
between: a partial sum, which takes p (of the output) or p_H (of H) over a cut, and twice that to leave and return. A
complete output is stored at w_o, and loaded at w_o first if it is added to. So the line theorem holds with bytes for
moves and S in bytes.

A cell of H has k first products and then l second ones; s segments hold first ones, and j further ones second ones
only. In front of each of the j it is complete: held at w, or loaded at w, and if it is ever loaded it was stored at w.
For 1 <= rho <= 2 it moves, or takes room, for at least

    (s - 1) rho p_H + w min(j rho, j + 1).

For a given n = s + j that does not rise with j, since p_H >= w. Its products are as in the line theorem of chains, so
the charge is at least the least of

    mixed, for n = s + j: (n - 1 - j) rho p_H + w min(j rho, j + 1) + mu E(k + l, n), j = min(n - 1, (l - 1) div q),
    apart: min over s of (s - 1) rho p_H + mu E(k, s), plus min over j >= 1 of w min(j rho, j + 1) + mu E(l, j).

Of many segments: one of them at most has both kinds, and (a + b) ln(a + b) >= a ln a + b ln b. So with j' = j or j + 1
segments that have second products the charge is also at least

    split: min over s of (s - 1) rho p_H + mu E(k, s), plus min over j' of (j' - 1) w + mu E(l, j'),

and at least (n - 1) w + mu E(k + l, n) for some n.

A product of A B may count alpha of work and one of H D beta, and segments are equal in work, but for max(alpha, beta) -
1 that the last product of one may go beyond. Take a product of a segment of work W at random, by work: with K the sum
of x ln x over the works x of its products, W times its entropy is W ln W - K, and W times that of one coordinate given
the others is the sum of t ln t over the works t of the lines, less K. Where all products of a line count x, t ln t is x
c ln c + c x ln x, and the second terms of a direction add up to K. So

    sum over A, B of alpha c ln c + sum over D, Y of beta c ln c + sum over H of t ln t <= W ln W:

mu alpha and mu beta take the place of mu, and k and l above are the works of a cell's first and second products, since
works are whole numbers too.

Bytes are counted in units of the greatest common divisor of all widths, in which S is rounded down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd
from typing import Any, Protocol

from .chain_lines import MANY, MAX_STEPS, Bounds, _charge, _least
from .lines import Kind, Lines, by_lines, entropy
from .reading import RefusedError, array, choice, integer

MAX_WEIGHT = 1024


class Widths(Protocol):
    """Bytes of a value."""

    @property
    def read(self) -> int:
        """Of an input."""

    @property
    def hidden(self) -> int:
        """Of a partial sum of an intermediate."""

    @property
    def partial(self) -> int:
        """Of a partial sum of the output."""

    @property
    def written(self) -> int:
        """Of a complete output."""


@dataclass(frozen=True)
class WideHidden:
    """Cells of H, with what they take in units."""

    count: int
    k: int  #: work of the first products of each
    l: int  #: work of the second products of each
    complete: int  #: w
    partial: int  #: p_H, no less

    def prove(self, claimed: Any, h: int, mu: Fraction, rho: Fraction, at: str) -> Fraction:
        """What a cell is charged, from below: ``claimed`` is the n where that is, 0 for apart, s and j' for split."""
        length, w = self.k + self.l, self.complete
        if not 1 <= rho <= 2:
            raise RefusedError(at, "this theorem is about prices rho from 1 to 2")
        if self.partial < w:
            raise RefusedError(at, "this theorem is about partial sums that are no narrower than what they end as")
        if mu * length > MANY * w:
            if type(claimed) is not list:
                return Lines(1, length, 0, w, w).prove(claimed, h, mu, rho, at)
            s, j = array(claimed, at, 2, 2)
            firsts = Lines(1, self.k, 0, 2 * self.partial, self.partial).prove(s, h, mu, rho, f"{at}[0]")
            return firsts + Lines(1, self.l, 0, w, w).prove(j, h, mu, rho, f"{at}[1]")
        most = min(h, length)
        found = self._all(most, mu, rho, at)
        mine = found.get(integer(claimed, at, 0, most))
        if mine is None or any(high < mine[0] for _, high in found.values()):
            raise RefusedError(at, "a cell is charged less elsewhere")
        return min(low for low, _ in found.values())

    def _all(self, most: int, mu: Fraction, rho: Fraction, at: str) -> dict[int, Bounds]:
        """The charges that may be least: apart as 0, and mixed by n."""
        length, w = self.k + self.l, self.complete
        found = {0: self._apart(most, mu, rho, at)} if most > 1 else {}
        least = min((high for _, high in found.values()), default=None)  # so far, from above
        before: Fraction | None = None  # the floor at the last n, from above
        for n in range(1, most + 1):
            if n > MAX_STEPS:
                raise RefusedError(at, f"more than {MAX_STEPS} segments would have to be looked at")
            parts = entropy(length, n)
            # no charge is below this floor, which is convex: once it does not fall and is no less, nothing follows
            floor, above = _charge(Fraction(w * (n - 1)), mu, parts)
            if before is not None and least is not None and floor >= max(before, least):
                break
            before = above
            later = min(n - 1, (self.l - 1) // (length // n))
            moves = (n - 1 - later) * rho * self.partial + w * min(later * rho, Fraction(later + 1))
            found[n] = _charge(moves, mu, parts)
            least = found[n][1] if least is None else min(least, found[n][1])
        return found

    def _apart(self, most: int, mu: Fraction, rho: Fraction, at: str) -> Bounds:
        w, first = self.complete, rho * self.partial
        firsts = _least(lambda s: _charge((s - 1) * first, mu, entropy(self.k, s)), min(most, self.k), at)
        held = _least(lambda j: _charge(j * rho * w, mu, entropy(self.l, j)), min(most, self.l), at)
        stored = _least(lambda j: _charge(Fraction(w * (j + 1)), mu, entropy(self.l, j)), min(most, self.l), at)
        return firsts[0] + min(held[0], stored[0]), firsts[1] + min(held[1], stored[1])


def unit_of(widths: Widths) -> int:
    """The greatest common divisor of all widths."""
    return gcd(widths.read, widths.hidden, widths.partial, widths.written)


def product_in_bytes(form: tuple[Sequence[Kind], int, int], widths: Widths, capacity: int, proof: Any, at: str) -> int:
    """Bytes that one product moves at least; ``form``: the kinds of values, products, and values loaded besides.

    A value that returns at one move is an input; at two a cell, of the output if any move is certain.
    """
    kinds, work, more = form
    unit, wide = unit_of(widths), []
    for kind in kinds:
        if not isinstance(kind, Lines):
            raise RefusedError(at, "no theorem in bytes is about such values")
        if kind.again == 1:
            w = widths.read // unit
            wide.append(replace(kind, first=w * kind.first, again=w, room=w))
        else:
            partial = (widths.partial if kind.first else widths.hidden) // unit
            first = kind.first * widths.written // unit
            wide.append(replace(kind, first=first, again=2 * partial, room=partial))
    return unit * by_lines(wide, work, capacity // unit, proof, at) + widths.read * more


def chain_in_bytes(
    chain: tuple[int, int, int, int, int], streams: int, widths: Widths, capacity: int, proof: Any, at: str
) -> int:
    """Bytes that a chain moves at least; ``chain``: m, k, f, l and the cells of H, none left out by a mask."""
    m, k, f, l, cells = chain
    if cells != m * f:
        raise RefusedError(f"{at}.theorem", "this theorem is not about a mask")
    form = choice(proof.get("form"), f"{at}.form", ("chain",) if streams == 1 else ("gated chain", "gate's chain"))
    told = array(proof.get("work_weights"), f"{at}.work_weights", 2, 2)
    alpha, beta = (integer(x, f"{at}.work_weights[{i}]", 1, MAX_WEIGHT) for i, x in enumerate(told))
    unit = unit_of(widths)
    w, hidden, p, written = (x // unit for x in (widths.read, widths.hidden, widths.partial, widths.written))
    columns = 2 * f if form == "gated chain" else f
    kinds: list[Kind] = [
        Lines(m * k, columns, w, w, w, weight=alpha),
        Lines(k * columns, m, w, w, w, weight=alpha),
        Lines(f * l, m, w, w, w, weight=beta),
        Lines(m * l, f, written, 2 * p, p, weight=beta),
        WideHidden(cells, alpha * k, beta * l, w, hidden),
    ]
    if form == "gated chain":  # an up cell has first products only, begins free and ends nowhere
        kinds.append(Lines(cells, alpha * k, 0, 2 * hidden, hidden))
    work = alpha * m * columns * k + beta * m * f * l
    rest = {key: value for key, value in proof.items() if key != "work_weights"}
    more = widths.read * k * f if form == "gate's chain" else 0
    return unit * by_lines(kinds, work, capacity // unit, rest, at, max(alpha, beta)) + more
