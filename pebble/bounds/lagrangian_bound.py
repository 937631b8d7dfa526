"""What Theorem 10 (`pebble.bounds.lagrangian`) proves on an instance, for the checker and for a reader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pebble.bounds.lagrangian import LagrangianChain, Multipliers, Shares
from pebble.bounds.line_search import GATED
from pebble.bounds.lines import MULTIPLIER_BITS
from pebble.bounds.numbers import number
from pebble.bounds.proofs import InWidths, Theorem
from pebble.workloads.widths import ALIKE, Widths

THEOREM = Theorem("Theorem 10", "pebble.bounds.lagrangian")
METHOD = "Lagrangian line accounting"
METHOD_IN_BYTES = "Lagrangian line accounting in bytes"
_KEYS = ("A", "B", "cells", "D", "Y", "cells again")


@dataclass(frozen=True)
class ChainBound(InWidths):
    """What is proved of two products in a row."""

    problem: LagrangianChain

    @property
    def widths(self) -> Widths:
        """What its values take."""
        return self.problem.widths

    @property
    def products(self) -> int:
        """Multiply-adds."""
        return self.problem.work

    @property
    def form(self) -> str:
        """Which of the workload's boxes it is about."""
        return self.problem.form


@dataclass(frozen=True)
class LagrangianBound(ChainBound):
    """Theorem 10 on an instance."""

    METHODS = (METHOD, METHOD_IN_BYTES)
    rank = 3

    capacity: int  #: S, in units of the widths, as all that follows
    segments: int  #: h
    kinds: tuple[Multipliers, ...]
    shares: Shares
    elements: int  #: moved at least
    theorem: Theorem = THEOREM  #: what it rests on

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        in_bytes = {} if self.problem.widths == ALIKE else {"form": self.form, "unit_bytes": self.unit}
        return {
            **in_bytes,
            "products": self.problem.work,
            "segments": self.segments,
            "held_at_cuts": (self.segments - 1) * self.capacity,
            "shares": [share / (1 << MULTIPLIER_BITS) for share in self.shares],
            "kinds": [
                {
                    "second_products_to": kind.to,
                    "room_before": kind.before / (1 << MULTIPLIER_BITS),
                    "room_after": kind.after / (1 << MULTIPLIER_BITS),
                }
                for kind in self.kinds
            ],
            "added_elements": self.problem.added,
        }

    def claim(self) -> dict[str, Any]:
        """h, and the multipliers as exact fractions; the checker finds what values are charged itself."""
        return {
            "theorem": "priced lines",
            "form": self.form,
            "segments": self.segments,
            "shares": dict(zip(("one", "two"), map(_fraction, self.shares), strict=True)),
            "kinds": [_kind_json(kind) for kind in self.kinds],
            "least": self.elements,
        }

    argument = ""  #: it names the numbers of the instance, so it is told of each

    def text(self, traffic: Mapping[str, int]) -> str:
        """The argument, the multipliers, and the sum."""
        problem, h = self.problem, number(self.segments)
        first, second = problem.products
        single, two = (share / (1 << MULTIPLIER_BITS) for share in self.shares)
        widths = ""
        if problem.widths != ALIKE:
            widths = rf"""
        Widths are in units of {self.unit} bytes, as all that follows, where $S = {number(self.capacity)}$: an input
        and a complete cell take $w = {problem.read}$, a partial sum of $H$ takes $p_H = {problem.hidden}$, one of the
        output $p = {problem.partial}$, and a complete output $w_o = {problem.written}$.
        """
        return rf"""
        ## Segments and their kinds

        There are ${number(first)}$ first multiply-adds, of $H = A B$, and ${number(second)}$ second ones, of $Y = H D$.
        Cut the schedule into $h = {h}$ segments of equal numbers of them, up to one. A segment with $v_1$ first and
        $v_2$ second ones is of kind $i$ if $v_2$ is in the $i$-th of the ranges below. Each kind has multipliers $\rho$
        of room at the cut before it and $\sigma$ at the cut after it, $\mu$ and $\nu$ of the entropies of its first and
        second multiply-adds, and one for each of these on its line of $A$, of $B$, of $D$, of $Y$ and on its cell. A
        unit of room at a cut costs the $\sigma$ of the segment before it and the $\rho$ of the one after it. {widths}
        Follow a value through the segments $t_1 < t_2 < \ldots$ that touch it. From one to the next it is held over the
        cut after the one and that before the other, or it has left and returns in $n$ moves: a load, or for a partial
        sum a store and a load. With the $\sigma$ of the one and the $\rho$ of the other that is $\min(n, \sigma + \rho)
        \ge \min(\tau_n, \sigma) + \min(n - \tau_n, \rho)$ at a width of one, where $\tau_1 = {single:.4f}$ and
        $\tau_2 = {two:.4f}$, besides the first load of an input and the last store of an output. A cell of $H$ begins
        free. From its last first multiply-add on it is held each time, $w (\sigma + \rho)$, or stored once, $w$, and
        $w$ times this with $n = 1$. At most $S$ is held at a cut.

        Let $c$ be the multiply-adds of a segment on one line. Over the lines of $A$, of $B$ and cells $\sum c \ln c \le
        v_1 \ln v_1$, since the entropies of each coordinate of one of them given the other two add up to at most that
        of all three; and along each direction $\sum c = v_1$. The same holds for second ones. With all multipliers
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

        Second multiply-adds of a segment, and the multipliers of room before and after it ($\mu$, $\nu$ and the others
        are in the certificate as exact fractions):
        {"".join(_kind(kind) for kind in self.kinds)}
        $$ Q \ge {number(self.elements)}
        """


def _kind_json(kind: Multipliers) -> dict[str, Any]:
    """One kind: its range, and its multipliers as exact fractions."""
    multipliers = [_fraction(multiplier) for multiplier in kind[1:]]
    return {"to": kind.to, **dict(zip(("before", "after", "first", "second", *_KEYS), multipliers, strict=True))}


def _fraction(multiplier: int) -> str:
    """A multiple of 2^-64."""
    return str(Fraction(multiplier, 1 << MULTIPLIER_BITS))


def _kind(kind: Multipliers) -> str:
    before, after = kind.before / (1 << MULTIPLIER_BITS), kind.after / (1 << MULTIPLIER_BITS)
    return rf"""
        up to ${number(kind.to)}$: $\rho = {before:.4f}$, $\sigma = {after:.4f}$
        """
