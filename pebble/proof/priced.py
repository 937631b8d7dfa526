"""The proof by prices of kinds of segments for a reader, with the numbers of the instance filled in."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from pebble.bounds import PricedBound, PricedBytes
from pebble.bounds.lines import PRICE_BITS
from pebble.bounds.priced import Price
from pebble.proof.lines import GATED
from pebble.proof.text import number

_KEYS = ("A", "B", "cells", "D", "Y", "cells again")


def priced_json(proof: PricedBound) -> dict[str, Any]:
    """The proof in the checker's terms."""
    return {
        "theorem": "priced lines",
        "form": proof.form,
        "segments": proof.segments,
        "shares": dict(zip(("one", "two"), (_fraction(share) for share in proof.shares), strict=True)),
        "kinds": [_kind_json(kind) for kind in proof.kinds],
        "least": proof.elements,
    }


def _kind_json(kind: Price) -> dict[str, Any]:
    """One kind: its range, and its prices as exact fractions."""
    prices = [_fraction(price) for price in kind[1:]]
    return {"to": kind.to, **dict(zip(("before", "after", "first", "second", *_KEYS), prices, strict=True))}


def _fraction(price: int) -> str:
    """A multiple of 2^-64."""
    return str(Fraction(price, 1 << PRICE_BITS))


def priced_proof(proof: PricedBound, unit: int = 1) -> str:
    """The argument, the prices, and the sum."""
    problem, h = proof.problem, number(proof.segments)
    first, second = problem.products
    one, two = (share / (1 << PRICE_BITS) for share in proof.shares)
    widths = ""
    if len({problem.read, problem.hidden, problem.partial, problem.written}) > 1 or unit > 1:
        widths = rf"""
        Widths are in units of {unit} bytes, as all that follows, where $S = {number(proof.capacity)}$: an input and a
        complete cell take $w = {problem.read}$, a partial sum of $H$ takes $p_H = {problem.hidden}$, one of the output
        $p = {problem.partial}$, and a complete output $w_o = {problem.written}$.
        """
    return rf"""
        ## Segments and their kinds

        There are ${number(first)}$ first multiply-adds, of $H = A B$, and ${number(second)}$ second ones, of $Y = H D$.
        Cut the schedule into $h = {h}$ segments of equal numbers of them, up to one. A segment with $v_1$ first and
        $v_2$ second ones is of kind $i$ if $v_2$ is in the $i$-th of the ranges below. Each kind has prices $\rho$ of
        room at the cut before it and $\sigma$ at the cut after it, $\mu$ and $\nu$ of the entropies of its first and
        second multiply-adds, and one for each of these on its line of $A$, of $B$, of $D$, of $Y$ and on its cell. A
        unit of room at a cut costs the $\sigma$ of the segment before it and the $\rho$ of the one after it.
        {widths}
        Follow a value through the segments $t_1 < t_2 < \ldots$ that touch it. From one to the next it is held over the
        cut after the one and that before the other, or it has left and returns in $n$ moves: a load, or for a partial
        sum a store and a load. With the $\sigma$ of the one and the $\rho$ of the other that is $\min(n, \sigma + \rho)
        \ge \min(\tau_n, \sigma) + \min(n - \tau_n, \rho)$ at a width of one, where $\tau_1 = {one:.4f}$ and $\tau_2 =
        {two:.4f}$, besides the first load of an input and the last store of an output. A cell of $H$ begins free. From
        its last first multiply-add on it is held each time, $w (\sigma + \rho)$, or stored once, $w$, and $w$ times
        this with $n = 1$. At most $S$ is held at a cut.

        Let $c$ be the multiply-adds of a segment on one line. Over the lines of $A$, of $B$ and cells $\sum c \ln c \le
        v_1 \ln v_1$, since the entropies of each coordinate of one of them given the other two add up to at most that
        of all three; and along each direction $\sum c = v_1$. The same holds for second ones. With all prices
        therefore

        $$ Q \ge \sum_{{\text{{values}}}} M - h\, G + S \Big( \min_i \rho_i + \min_i \sigma_i \Big),

        where $G$ is the most that a segment takes off,

        $$ (\rho + \sigma) S + \mu v_1 \ln v_1 + \nu v_2 \ln v_2 + (\alpha^A + \alpha^B + \alpha^C)\, v_1 + (\alpha^D +
        \alpha^Y + \alpha^E)\, v_2,

        and $M$ the least that a value is charged, its moves and $\mu c \ln c + \alpha c$ for each of its parts, however
        its multiply-adds are split over kinds of segments. For every $\theta$ a part is charged $\theta c - \mu
        e^{{(\theta - \alpha) / \mu - 1}}$ or more, so that for each number of parts a good $\theta$ gives a bound.
        {GATED.get(problem.form, "")}
        ## Arithmetic

        Second multiply-adds of a segment, and the prices of room before and after it ($\mu$, $\nu$ and the others are
        in the certificate as exact fractions):
        {"".join(_kind(kind) for kind in proof.kinds)}
        $$ Q \ge {number(proof.elements)}
        """


def _kind(kind: Price) -> str:
    before, after = kind.before / (1 << PRICE_BITS), kind.after / (1 << PRICE_BITS)
    return rf"""
        up to ${number(kind.to)}$: $\rho = {before:.4f}$, $\sigma = {after:.4f}$
        """


def priced_bytes_proof(proof: PricedBytes) -> str:
    """The same with values at their widths."""
    return priced_proof(proof.found, proof.unit)
