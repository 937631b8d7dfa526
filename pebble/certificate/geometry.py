"""How few values v products can touch: the inequalities, each proved by numbers that the certificate brings.

A set of v triples in a box rows x cols x depth touches a values (row, depth), b values (col, depth) and c values
(row, col). With an overlap R, one value of the first kind stands for up to R pairs (row, depth); R = 1 but for
convolutions. Then

    R a b c >= v^2 (Loomis and Whitney),   a >= v / (R cols),   b >= v / rows,   c >= v / depth.                (*)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

from .reading import RefusedError, array, choice, equal, fields, fraction, integer

LARGEST_WHOLE = 100_000
MAX_LEAVES = 64


@dataclass(frozen=True)
class Box:
    """The box of (*), and the overlap."""

    rows: int
    cols: int
    depth: int
    overlap: int = 1

    def least(self, v: int) -> tuple[Fraction, Fraction, Fraction]:
        """The separate limits on a, b and c in (*)."""
        return Fraction(v, self.overlap * self.cols), Fraction(v, self.rows), Fraction(v, self.depth)


def prove_touched(box: Box, v: int, proof: Any, at: str) -> Fraction:
    """A number t that a + b + c reaches under (*), with its proof.

    Parameters
    ----------
    box : Box
    v : int
        Products of the segment.
    proof : object
        ``touched``: t; and one of

        - ``multipliers``, three in [0, 1]: a + b + c = sum p x + sum (1 - p) x >= sum p limit + 3 cbrt(product of
          (1 - p) v^2 / R), by the arithmetic and geometric mean;
        - the same with ``counts_at_least``: t is that number rounded up, since a, b, c are whole numbers, and for the
          same reason their limits are rounded up;
        - ``whole_numbers`` true: no whole a, b, c with a + b + c = t - 1 satisfy (*); checked where a b c is largest.
    """
    if type(proof) is dict and "whole_numbers" in proof:
        fields(proof, at, ("products", "segments", "touched", "whole_numbers"))
        equal(proof["whole_numbers"], True, at, "whole_numbers")
        total = integer(proof["touched"], f"{at}.touched", 0, LARGEST_WHOLE)
        _none_below(box, v, total, at)
        return Fraction(total)
    fields(proof, at, ("products", "segments", "touched", "multipliers"), ("counts_at_least",))
    limits: tuple[Fraction, ...] = box.least(v)
    if "counts_at_least" not in proof:
        bound = fraction(proof["touched"], f"{at}.touched")
        prove_by_means(bound, limits, Fraction(v * v, box.overlap), proof["multipliers"], at)
        return bound
    limits = tuple(Fraction(ceil(x)) for x in limits)
    bound = fraction(proof["counts_at_least"], f"{at}.counts_at_least")
    prove_by_means(bound, limits, Fraction(v * v, box.overlap), proof["multipliers"], at)
    equal(proof["touched"], ceil(bound), at, "touched")
    return Fraction(ceil(bound))


def prove_by_means(bound: Fraction, limits: tuple[Fraction, ...], product: Fraction, proof: Any, at: str) -> None:
    """a + b + c >= bound, given the three limits and a b c >= product, by three multipliers."""
    values = [fraction(x, f"{at}.multipliers[{i}]") for i, x in enumerate(array(proof, f"{at}.multipliers", 3, 3))]
    if any(p > 1 for p in values):
        raise RefusedError(f"{at}.multipliers", "got a multiplier above 1")
    rest, scale = bound, product
    for p, limit in zip(values, limits, strict=True):
        rest -= p * limit
        scale *= 1 - p
    if rest > 0 and rest**3 > 27 * scale:
        raise RefusedError(at, "the multipliers do not prove the number of values touched")


def _none_below(box: Box, v: int, total: int, at: str) -> None:
    """No whole a + b + c = total - 1 satisfies (*)."""
    result = _most_equal(box, v, total - 1)
    if result is not None and _enough(box, v, result):
        a, b, c = result
        raise RefusedError(at, f"{v} products may touch {a} + {b} + {c} values, less than {total}")


def least_whole(box: Box, v: int) -> int:
    """The least whole a + b + c that (*) allows, for few products: every sum from the least limits up is looked at."""
    total = sum(map(ceil, box.least(v)))
    while (result := _most_equal(box, v, total)) is None or not _enough(box, v, result):
        total += 1
    return total


def _enough(box: Box, v: int, values: tuple[int, int, int]) -> bool:
    a, b, c = values
    return box.overlap * a * b * c >= v * v


def _most_equal(box: Box, v: int, total: int) -> tuple[int, int, int] | None:
    """Whole a, b, c of this sum within their limits whose product is largest: as equal as the limits allow.

    (One taken from a number that is above its limit and larger by two or more than another, given to that other, makes
    a larger product.)
    """
    low, middle, high = sorted(map(ceil, box.least(v)))
    if low + middle + high > total:
        return None
    third = max(high, -(-total // 3))
    second = max(middle, -(-(total - third) // 2))
    return total - third - second, second, third


def prove_redone(m: int, f: int, k: int, l: int, v: int, bound: Fraction, proof: Any, at: str) -> None:
    """(v + k e) G(e) >= bound for every e >= v / l, leaf by leaf.

    G(e) is the least a + b with a b >= 1 / e, a >= 1 / f, b >= 1 / m. It is at least 2 / sqrt e; and with p the
    smaller of m and f, at least 1 / p + p / e where e >= p^2. A leaf is an interval of e with the rule that proves it:

    ====================  ===============================================================================
    ``mean``              2 (v + k e) / sqrt e >= 4 sqrt(v k)
    ``falling``           2 (v + k e) / sqrt e falls up to e = v / k: its value at the end
    ``rising``            it rises from there: its value at the start
    ``side-mean``         e >= p^2: v / p + k p + (k e / p + v p / e) >= v / p + k p + 2 sqrt(v k)
    ``side-rising``       e >= p^2 and k e^2 >= p^2 v: rises, its value at the start
    ====================  ===============================================================================
    """
    p, start = min(m, f), Fraction(v, l)
    leaves = array(proof, at, 1, MAX_LEAVES)
    for number, leaf in enumerate(leaves):
        where = f"{at}[{number}]"
        fields(leaf, where, ("to", "rule"))
        rule = choice(leaf["rule"], f"{where}.rule", ("mean", "falling", "rising", "side-mean", "side-rising"))
        last = number + 1 == len(leaves)
        if last != (leaf["to"] is None):
            raise RefusedError(f"{where}.to", "the last leaf, and no other, goes on for ever (null)")
        end = None if last else fraction(leaf["to"], f"{where}.to")
        if end is not None and end < start:
            raise RefusedError(f"{where}.to", "the leaf ends before it starts")
        fixed = Fraction(v, p) + k * p
        if rule == "mean":
            good = bound**2 <= 16 * v * k
        elif rule == "falling":
            good = end is not None and k * end <= v and end > 0 and bound**2 * end <= 4 * (v + k * end) ** 2
        elif rule == "rising":
            good = k * start >= v and bound**2 * start <= 4 * (v + k * start) ** 2
        elif rule == "side-mean":
            good = start >= p * p and (bound <= fixed or (bound - fixed) ** 2 <= 4 * v * k)
        else:
            rises = start >= p * p and k * start**2 >= p * p * v
            good = rises and bound <= fixed + k * start / p + v * p / start
        if not good:
            raise RefusedError(where, f"the rule {rule} does not prove the number of values touched on this leaf")
        if end is not None:
            start = end
