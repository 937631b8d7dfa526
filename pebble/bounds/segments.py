"""Uses of the segment theorems on a workload, in values and in bytes, and what they prove (`pebble.bounds.box`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any

from pebble.bounds.box import Box, Least, best_segments, rounded_up, shares_of, sum_of_shares
from pebble.bounds.numbers import decimal, number, tail
from pebble.bounds.proofs import NotCertifiedError, SingleClaim, Theorem, spilled_text
from pebble.bounds.shares import Share, least_sum, segment_shares, total
from pebble.bounds.uses import Goal, Use
from pebble.units import ceil_div
from pebble.workloads.widths import ALIKE, Widths

THEOREM = Theorem("Theorem 1", "pebble.bounds.box")
CHECKED = replace(THEOREM, coq="Products.gemm_segment_bound")  # of one product, nothing moved besides
IN_BYTES = Theorem("Theorem B1", "pebble.bounds.box")
METHOD = "segment accounting, equation (2)"
METHOD_IN_BYTES = "segment accounting in bytes"
STRICT = "equation (3), and the scores that a strict softmax must store"


@dataclass(frozen=True)
class Piece(Use):
    """One use of a theorem: what a workload does in a box, what is initialised free and taken off, what is added."""

    form: str  #: which of the workload's boxes it is, as certificates name it
    method: str  #: what its bound is called
    box: Box  #: what the products fill
    products: tuple[int, ...]  #: points of the box, by matrix product
    initialised: int = 0  #: values, or bytes, initialised free that need not be stored: taken off
    added: int = 0  #: moves that are certain besides
    whole_numbers: bool = True  #: small segments are bounded over whole numbers too
    theorem: Theorem = THEOREM  #: what its bound rests on
    cells: int = 0  #: that are initialised; 0 for all of the box
    widths: Widths = ALIKE  #: what values take
    charges: tuple[int, int] = (0, 1)  #: q and p, what counts for a cell of H where it is updated, and of the output
    kinds: tuple[Least, ...] = ()  #: a segment touches the least of these: one for each product, else that of the box
    weights: tuple[int, ...] = (1,)  #: work of a multiply-add, by matrix product

    counts_touched = True

    @classmethod
    def product(cls, m: int, n: int, k: int, initialised: int = 0, added: int = 0) -> Piece:
        """All of a matrix product, m x n x k."""
        theorem = THEOREM if initialised or added else CHECKED
        return cls("product", METHOD, Box(m, n, k), (m * n * k,), initialised, added, theorem=theorem)

    @property
    def multiply_adds(self) -> int:
        """Points of the box, in all."""
        return sum(self.products)

    @property
    def work(self) -> int:
        """What all of them count."""
        if len(self.weights) == 1:
            return self.weights[0] * self.multiply_adds
        return sum(weight * count for weight, count in zip(self.weights, self.products, strict=True))

    @property
    def slack(self) -> int:
        """What a segment may miss of its share, since products are whole."""
        return max(self.weights) - 1

    def at(self, widths: Widths) -> tuple[Piece, ...]:
        """The uses of Theorem B1 that are worth trying, of one product: its cells may count less than they take."""
        box, w, p, written = self.box, widths.read, widths.partial, widths.written
        initialised = self.cells or box.rows * box.cols

        def use(p: int) -> Piece:
            return replace(
                self,
                method=METHOD_IN_BYTES,
                initialised=p * initialised - written * (initialised - self.initialised),
                added=written * self.added,
                whole_numbers=False,
                theorem=IN_BYTES,
                widths=widths,
                charges=(0, p),
                kinds=(box.weighed(w, w, p),),
            )

        return tuple(use(charge) for charge in sorted({written, (written + p) // 2, p}))

    def proofs(self, goal: Goal) -> tuple[Segments]:
        """With the best h; scores that are spilled come on top."""
        return (self.bound(goal.capacity, goal.spilled, STRICT if goal.spilled else None),)

    def weighted(self, widths: Widths) -> tuple[Piece, ...]:
        """Those of `at`."""
        return self.at(widths)

    def touched(self, work: int) -> int:
        """2^100 times what a segment of so much work touches at least, rounded down."""
        if not self.kinds:
            return self.box.touched(work)
        return min(kind.touched(work) for kind in self.kinds)

    def bound(self, capacity: int, on_top: int = 0, method: str | None = None) -> Segments:
        """The theorem with the best h; ``on_top`` further moves are certain, and then it may have a name of its own."""
        touched: Callable[[int], int] = self.touched
        if self.slack:
            touched = lambda work: self.touched(work - self.slack)  # noqa: E731
        if self.widths == ALIKE:
            terms, h = self.box.bound(self.work, capacity, self.whole_numbers)
        else:
            _, h = best_segments(touched, self.work, capacity)
            terms = rounded_up(sum_of_shares(touched, self.work, h)) - (h - 1) * capacity
        return Segments(method or self.method, self, capacity, h, terms, on_top)


@dataclass(frozen=True)
class Segments(SingleClaim):
    """Theorem 1 or 2 on an instance, in bytes B1 or B2."""

    method: str  #: what the bound is called
    piece: Piece  #: the box and what is taken off
    capacity: int  #: S, values or bytes, as all that follows
    segments: int  #: h
    terms: int  #: sum of x(v_s) less (h - 1) S
    on_top: int = 0  #: stores of intermediates that are certain and not counted by the theorem

    rank = 0

    @property
    def theorem(self) -> Theorem:
        """What it rests on; what is added on top is proved on paper."""
        return self.piece.theorem.on_paper if self.on_top else self.piece.theorem

    @property
    def form(self) -> str:
        """Which of the workload's boxes it is about."""
        return self.piece.form

    @property
    def held(self) -> int:
        """Held at the cuts, at most."""
        return (self.segments - 1) * self.capacity

    @property
    def touched(self) -> int:
        """Touched in all segments, at least."""
        return self.terms + self.held

    @property
    def elements(self) -> int:
        """Moved at least."""
        return self.terms - self.piece.initialised + self.piece.added + self.on_top

    @property
    def bytes(self) -> int:
        """Bytes moved at least, where values have widths."""
        return self.elements

    @property
    def products(self) -> int:
        """Multiply-adds."""
        return self.piece.multiply_adds

    @property
    def shares(self) -> tuple[tuple[int, int], ...]:
        """(work of a segment at least, how many segments have so much)."""
        piece = self.piece
        return tuple((max(0, v - piece.slack), count) for v, count in shares_of(piece.work, self.segments))

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        piece, box, h = self.piece, self.piece.box, self.segments
        if piece.widths != ALIKE:
            return {
                "form": piece.form,
                "segments": h,
                "work_weights": list(piece.weights),
                "share_work": piece.work // h,
                "hidden_cell_bytes": piece.charges[0],
                "output_cell_bytes": piece.charges[1],
                "held_at_cuts_bytes": self.held,
                "touched_bytes": self.touched,
                "begun_and_not_stored_bytes": piece.initialised,
                "added_bytes": piece.added,
            }
        return {
            "box": [box.rows, box.cols, box.depth],
            "products": piece.work,
            # weight of the first product in a cut: all products weigh the same
            "theta": str(Fraction(piece.products[0], piece.work)),
            "segments": h,
            "share_multiply_adds": piece.work // h,
            "share_products": [piece.work // h, ceil_div(piece.work, h)],
            "held_at_cuts": self.held,
            "segment_terms": self.terms,
            "cells_begun_and_not_stored": piece.initialised,
            "added_elements": piece.added + self.on_top,
        }

    @cached_property
    def _proved(self) -> list[Share]:
        piece = self.piece
        return segment_shares(piece.box, self.shares, self.touched, piece.whole_numbers)

    def claim(self) -> dict[str, Any]:
        """h, and the shares of the work, each with the multipliers that prove it."""
        if self.piece.widths != ALIKE:
            return self._claim_in_bytes()
        form = {"form": self.form} if self.form else {}
        shares = [share.to_json() for share in self._proved]
        return {"theorem": "segments", **form, "segments": self.segments, "shares": shares}

    def _claim_in_bytes(self) -> dict[str, Any]:
        piece, shares, total = self.piece, [], Fraction(0)
        for work, count in self.shares:
            proofs = [least_sum(*kind.at(work)) for kind in piece.kinds]
            total += count * min(touched for touched, _ in proofs)
            entries = [{"bytes": str(touched), "multipliers": [str(p) for p in result]} for touched, result in proofs]
            shares.append({"work": work, "segments": count, "kinds": entries})
        if ceil(total) != self.touched:
            raise NotCertifiedError(
                f"certificate: the bound announces {self.touched:,} bytes touched in {self.segments:,} segments, the "
                f"proofs found give {ceil(total):,}; one of them has a mistake, please report it."
            )
        return {
            "theorem": "segments",
            "form": piece.form,
            "hidden_cell_bytes": piece.charges[0],
            "output_cell_bytes": piece.charges[1],
            "work_weights": list(piece.weights),
            "segments": self.segments,
            "shares": shares,
        }

    @property
    def argument(self) -> str:
        """What holds for all instances in bytes, told once for several kernels."""
        return _IN_BYTES

    def text(self, traffic: Mapping[str, int]) -> str:
        """The segments, how few values each touches, and the sum."""
        if self.piece.widths != ALIKE:
            return self._arithmetic_in_bytes()
        return _segments_text(self) + self.geometry() + spilled_text(self.on_top, "stored")

    def geometry(self) -> str:
        """How few values each segment touches, and the sum."""
        return _geometry_text(self.piece.box, self._proved) + _arithmetic_text(self, self._proved)

    def _arithmetic_in_bytes(self) -> str:
        piece, (hidden, partial) = self.piece, self.piece.charges
        counts = f"A partial sum of the output counts ${partial}$ bytes"
        counts += f", an intermediate cell ${hidden}$ where it is updated." if hidden else "."
        if len(piece.weights) > 1:
            weights = " and ".join(f"${x}$" for x in piece.weights)
            counts += f""" A multiply-add of the first and the second product counts as {weights} of work; a segment
        touches the least of what its work would touch as either alone, since what it touches is at least their mean."""
        text = f"""
        ## Arithmetic

        {counts} There are $h = {number(self.segments)}$ segments.
        """
        for share in self.claim()["shares"]:
            touched = min(Fraction(kind["bytes"]) for kind in share["kinds"])
            text += f"""
        ${number(share["segments"])}$ segments of work ${number(share["work"])}$ touch at least ${number(touched)}$
        bytes each (multipliers in the certificate).
        """
        held = rf"{number(self.segments - 1)} \cdot {number(self.capacity)}"
        return (
            text
            + rf"""
        $$ {number(self.touched)} - {held} - {number(piece.initialised)} + {number(piece.added)} = {number(self.bytes)}
        """
        )


_IN_BYTES = r"""
        ## Segments

        Cut the schedule into $h$ segments. A cell that a segment updates was initialised in it (once in all), or it was
        a partial sum when the segment began: held, or loaded in it. An intermediate cell that a segment only reads was
        held or loaded complete. At each cut at most $S$ bytes are held, and every output is stored complete. So every
        touched value counts its width, what is initialised free is taken off once, and $(h - 1) S$ for what is held:

        $$ Q \ge \sum_s x(W_s) - (h - 1) S - \text{initialised} + \text{moved besides}

        where $x(W)$ is the least number of bytes that work $W$ touches, by the inequality of Loomis and Whitney (1949)
        for values weighed by their widths, $x y z \ge W^2 P$, and the sides of the box.
        """


def _segments_text(proof: Segments) -> str:
    piece, h = proof.piece, number(proof.segments)
    initialised = (
        " A cell of $H$ initialised and never stored enters free: subtract the number of these cells."
        if piece.initialised
        else ""
    )
    more = " What is loaded besides in any case is added at the end." if piece.added else ""
    return rf"""
        ## Segments

        Cut the schedule into $h = {h}$ segments, each with a fixed share of the ${number(piece.work)}$ multiply-adds. A
        value is touched in a segment if an operation of the segment reads or updates it. Then it was in fast memory
        when the segment began, or is loaded in it, or is an accumulator initialised in it (once in all). The first
        segment begins empty, and at each of the $h - 1$ cuts at most $S$ values are held. Every output initialised free
        is stored at the end, so beginnings of outputs are paid for by stores.{initialised}{more} Hence

        $$ Q \ge \sum_{{s=1}}^{{h}} x(v_s) - (h - 1) S{tail(piece.initialised, piece.added)}

        where $x(v)$ is the least number of values that any $v$ multiply-adds touch.
        """


def _geometry_text(box: Box, shares: list[Share]) -> str:
    """The inequalities, and for each size of segment the multipliers that turn them into a number."""
    overlap = f"{number(box.overlap)} " if box.overlap > 1 else ""
    text = rf"""
        ## Geometry

        The multiply-adds are points of a box of ${number(box.rows)} \times {number(box.cols)} \times
        {number(box.depth)}$, and the values they touch are its projections: $a$ along the columns, $b$ along the rows,
        $c$ along the depth. By the inequality of Loomis and Whitney (1949), and because one value meets only so many
        others,

        $$ v^2 \le {overlap}a\,b\,c, \qquad v \le {number(box.overlap * box.cols)}\,a, \qquad v \le
        {number(box.rows)}\,b, \qquad v \le {number(box.depth)}\,c.
        """
    if box.overlap > 1:
        text += f"""
        One input value is met at up to $R = {box.overlap}$ places along the columns, hence the factor.
        """
    return text + "".join(_share_text(box, share) for share in shares)


def _share_text(box: Box, share: Share) -> str:
    v, touched = share.products, number(int(share.touched))
    head = f"For the ${number(share.segments)}$ segments of $v = {number(v)}$ multiply-adds:"
    if share.whole_numbers:
        return rf"""
        {head} no whole numbers with $a + b + c = {number(int(share.touched) - 1)}$ satisfy all of these (for each $a$
        the best $b$ and $c$ are as equal as the limits allow), so $x(v) \ge {touched}$.
        """
    rounded = share.rounded_from is not None
    bound = number(share.touched if share.rounded_from is None else share.rounded_from)
    weighed = [
        (name, Fraction(ceil(limit)) if rounded else limit, p)
        for name, limit, p in zip("abc", box.limits(v), share.multipliers, strict=True)
        if p > 0
    ]
    if not weighed:
        root = f"3 (v^2{f' / {box.overlap}' if box.overlap > 1 else ''})^{{1/3}}"
        text = rf"""
        {head} by the arithmetic and geometric mean,

        $$ a + b + c \ge 3 (a b c)^{{1/3}} \ge {root} \ge {bound}
        """
    else:
        limits = " and ".join(rf"${name} \ge {number(limit)}$ with ${decimal(p)}$" for name, limit, p in weighed)
        sides = " + ".join(rf"{decimal(p)}\,{name}_{{\min}}" for name, _, p in weighed)
        text = rf"""
        {head} weigh the limit{"s" if len(weighed) > 1 else ""} {limits}, and what is left of each value by the
        arithmetic and geometric mean:

        $$ a + b + c \ge {sides} + 3 \Big(\prod_x (1 - p_x)\, a b c\Big)^{{1/3}} \ge {bound}
        """
    if rounded:
        text += rf"""
        Values are counted, so $x(v) \ge {touched}$.
        """
    return text


def _arithmetic_text(proof: Segments, shares: list[Share]) -> str:
    piece, sum_touched = proof.piece, number(total(shares))
    terms = " + ".join(rf"{number(s.segments)} \cdot {number(s.touched)}" for s in shares)
    result = number(proof.elements - proof.on_top)
    return rf"""
        ## Arithmetic

        $$ \sum_s x(v_s) \ge {terms} \quad\Rightarrow\quad \sum_s x(v_s) \ge {sum_touched}

        (a count of values is a whole number, so the sum is rounded up; the exact fractions are in the certificate).

        $$ Q \ge {sum_touched} - {number(proof.segments - 1)} \cdot
        {number(proof.capacity)}{tail(piece.initialised, piece.added)} = {result}
        """
