"""What the projections of a nest's points prove.

At each point of the box of all indices one value of each operand is met, and one cell of the output. Points of a
segment, v of them, have an entropy of ln v. Write them in coordinates, told in an order, the i-th with at most L_i
values given those before. What the value of an access determines in this way, it *fixes*. Entropy falls under maps, so

    sum over what access a fixes of H(Z_i | before) <= ln (values met by a),

and for weights p_a and theta, with u_i what the accesses that fix i leave of theta,

    theta ln v <= sum p_a ln (values met by a) + sum u_i ln L_i.

An array's values x_j are at least those that each of its accesses meets, over R for the output where R points have one
product. With x >= P (1 + ln x / P), P the weights of all accesses of the array,

    sum x_j >= sum P_j (1 - ln R_j P_j) + theta ln v - sum u_i ln L_i,

of which segments of equal work, less the S values held at each cut, less operands that enter as sums, make a bound.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, prod
from typing import Any

from .lines import BITS, logarithm
from .nests import Nest
from .reading import RefusedError, array, choice, fields, fraction, integer

MAX_SEGMENTS = 2**128


def _coordinates(nest: Nest, first: list[str]) -> tuple[list[int], list[set[int]]]:
    """Most values of each coordinate, and those that each access fixes."""
    members = {name for window in nest.windows for _, name in window}
    plain = [name for name in nest.inner if name not in members]
    limits = [nest.inner[name] for name in plain]
    fixed = [{n for n, name in enumerate(plain) if name in access.alone} for access in nest.accesses]
    for window, lead in zip(nest.windows, first, strict=True):
        (a, y), (b, r) = window
        low_y, low_r, unit, two = range(len(limits), len(limits) + 4)
        high_y, high_r = ceil(Fraction(nest.inner[y], b)), ceil(Fraction(nest.inner[r], a))
        limits += [min(b, nest.inner[y]), min(a, nest.inner[r])]
        if lead == "sum":
            limits += [high_y + high_r - 1, min(high_y, high_r)]
        else:
            limits += [high_y, high_r] if lead == "left" else [high_r, high_y]
        for access, known in zip(nest.accesses, fixed, strict=True):
            if y in access.alone:
                known.add(low_y)
            if r in access.alone:
                known.add(low_r)
            determined = [n for n, met in (("left", y in access.alone), ("right", r in access.alone)) if met]
            if window in access.sums:
                known.update((low_y, low_r))
                determined.append("sum")
            if len(determined) > 1:
                known.update((unit, two))
            elif determined:
                known.add(unit if determined[0] == lead else two)
    return limits, fixed


def by_projections(nest: Nest, capacity: int, proof: Any, at: str) -> int:
    """What one group moves at least."""
    fields(proof, at, ("theorem", "first", "segments", "theta", "weights", "touched"))
    if nest.symmetry < 1:
        raise RefusedError(f"{at}.theorem", "points of this nest may share products: every operand moves, no more")
    count = len(nest.windows)
    first = [
        choice(word, f"{at}.first[{n}]", ("left", "right", "sum"))
        for n, word in enumerate(array(proof["first"], f"{at}.first", count, count))
    ]
    limits, fixed = _coordinates(nest, first)
    points = prod(nest.inner.values())
    h = integer(proof["segments"], f"{at}.segments", 1, min(points, MAX_SEGMENTS))
    theta = fraction(proof["theta"], f"{at}.theta")
    spec = array(proof["weights"], f"{at}.weights", len(fixed), len(fixed))
    weights = [fraction(p, f"{at}.weights[{n}]") for n, p in enumerate(spec)]
    together: dict[str, Fraction] = {}
    for access, p in zip(nest.accesses, weights, strict=True):
        together[access.array] = together.get(access.array, Fraction(0)) + p
    fixed_part = Fraction(0)
    for name, p in together.items():
        if p:
            r = nest.symmetry if name == nest.output else 1
            above = logarithm(r * p.numerator)[1] - logarithm(p.denominator)[0]
            fixed_part += p * (1 - Fraction(above, 1 << BITS))
    for n, limit in enumerate(limits):
        left = theta - sum((p for p, known in zip(weights, fixed, strict=True) if n in known), Fraction(0))
        if left > 0:
            fixed_part -= left * Fraction(logarithm(limit)[1], 1 << BITS)
    share, longer = divmod(points, h)
    total = Fraction(0)
    for v, times in ((share, h - longer), (share + 1, longer)):
        v -= nest.symmetry - 1
        if v > 0:
            total += times * (fixed_part + theta * Fraction(logarithm(v)[0], 1 << BITS))
    touched = integer(proof["touched"], f"{at}.touched", 0)
    if touched > ceil(total):
        raise RefusedError(f"{at}.touched", "the weights do not prove that so many values are touched")
    return touched - (h - 1) * capacity - nest.gone
