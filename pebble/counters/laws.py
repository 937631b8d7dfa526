"""The law that a counter follows over several sizes: a power of the tokens, or which of the usual growths.

A straight line through the logarithms, by least squares: its slope is the power, what the counters lie off it says how
well they follow one. Counters of a layer grow as the tokens. Those of a sweep over square products, M = N = K, grow as
the square (stores) and the cube (loads, FMA instructions), and tell the bytes of a value and the side of a tile.

Of a sweep over N the growths 1, N, N log N, N^2, N^2 log N, N^3 are tried, each with the constant that fits best. One
that is off by more than `ALLOWED` at any size is none. Where none is left, any power of N is tried, and from five sizes
on a growth beside a constant part, such as the launch of a kernel. What fits nearly as well as the best is listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, expm1, inf, log, sqrt
from typing import NamedTuple

from pebble.counters.quantities import SECTOR_BYTES
from pebble.errors import InputError

FOLLOWS = 0.1  # off a power, of a counter that follows it
_EXACT = 0.03  # of a power, from a whole one
_NEAR = 0.02  # of bytes of a value and sides of a tile, from whole ones
_POWERS = {"store_sectors": 2, "load_sectors": 3, "fma_instructions": 3}  # of square products


class Law(NamedTuple):
    """A counter as a power of the tokens."""

    counter: str
    power: float
    tokens: float  #: geometric mean of the lengths
    there: float  #: of the counter, on the line
    spread: float  #: relative, off the line; 0 of two lengths, which always lie on one
    lengths: int  #: that it rests on

    @property
    def follows(self) -> bool:
        """Whether three lengths or more lie on it."""
        return self.lengths > 2 and self.spread <= FOLLOWS

    def per(self, power: int) -> float:
        """The counter over a whole power of the tokens."""
        return self.there / self.tokens**power

    @property
    def text(self) -> str:
        """In words."""
        name = self.counter.replace("_", " ").replace("fma", "FMA")
        if abs(self.power) <= _EXACT and self.spread <= FOLLOWS:
            return f"{name} do not change with the tokens"
        if self.lengths < 3:
            return f"{name} grew as the tokens to the power of {self.power:.2f} between two lengths"
        if not self.follows:
            return f"{name} follow no power of the tokens"
        return f"{name} grow as the tokens to the power of {self.power:.2f}"


def laws_of(tokens: Sequence[int], per_token: Mapping[str, Sequence[float]]) -> tuple[Law, ...]:
    """The law of each counter.

    Parameters
    ----------
    tokens : sequence of int
        Two different ones or more.
    per_token : mapping of str to sequence of float
        The logarithm of each counter over the tokens.

    Examples
    --------
    >>> (law,) = laws_of((256, 512, 1024), {"store_sectors": [log(m / 8) for m in (256, 512, 1024)]})
    >>> round(law.power, 6), law.text
    (2.0, 'store sectors grow as the tokens to the power of 2.00')
    """
    results = []
    for counter, values in per_token.items():
        line = _line([log(m) for m in tokens], values)
        spread = sqrt(sum(item**2 for item in line.off) / max(1, len(line.off) - 2))
        there = exp(line.middle)
        results.append(Law(counter, line.slope + 1, there, exp(line.mean) * there, spread, len(set(tokens))))
    return tuple(results)


class _Line(NamedTuple):
    """A straight line through points, and what they lie off it."""

    slope: float
    middle: float  #: mean of x
    mean: float  #: mean of y
    off: tuple[float, ...]
    wide: float  #: sum of squares of x about its mean


def _line(across: Sequence[float], values: Sequence[float]) -> _Line:
    """By least squares."""
    middle, mean = sum(across) / len(across), sum(values) / len(values)
    wide = sum((x - middle) ** 2 for x in across)
    slope = sum((x - middle) * y for x, y in zip(across, values, strict=True)) / wide
    off = tuple(y - mean - slope * (x - middle) for x, y in zip(across, values, strict=True))
    return _Line(slope, middle, mean, off, wide)


ALLOWED = 0.1  # off a law, at any size, of a sweep that follows it
_AS_WELL, _SAME = 2.0, 0.005  # times the residual of the best, and relative: told apart by no measurement
_LEAST_SIZES, _SIZES_OF_TWO = 3, 5  # of a law of one constant; of one with a constant part
_GROWTHS = {"1": (0, 0), "N": (1, 0), "N log2 N": (1, 1), "N^2": (2, 0), "N^2 log2 N": (2, 1), "N^3": (3, 0)}


@dataclass(frozen=True)
class Growth:
    """One law, fitted.

    Attributes
    ----------
    name : str
        ``N^2``, ``N log2 N``, ``N^2.81``; ``1`` of what does not change.
    constant : float
        What it is multiplied by, in the unit of the values.
    offset : float
        What is added, in the same unit.
    worst, residual : float
        How far the values are off it: the most, relative, and the root of the mean square.
    """

    name: str
    constant: float
    offset: float
    worst: float
    residual: float

    def formula(self, unit: str = "") -> str:
        """With its constants."""
        said = f"{self.constant:.4g} {unit}".rstrip()
        said += "" if self.name == "1" else f" x {self.name}"
        return f"{self.offset:.4g} {unit}".rstrip() + f" + {said}" if self.offset else said


@dataclass(frozen=True)
class Sweep:
    """What values over several sizes follow.

    Attributes
    ----------
    sizes : tuple of int
    laws : tuple of Growth
        Those that fit, the best first; none, one, or several that the values do not tell apart.
    best : Growth
        That which comes nearest, whether it fits or not.
    power, power_error : float
        Of the straight line through the logarithms, and its standard error.
    """

    sizes: tuple[int, ...]
    laws: tuple[Growth, ...]
    best: Growth
    power: float
    power_error: float

    @property
    def over(self) -> str:
        """The sizes, in words."""
        return f"{len(self.sizes)} sizes, {min(self.sizes):,} to {max(self.sizes):,}"

    def text(self, unit: str = "") -> str:
        """In words: the law, those that fit alike, or that none does."""
        if not self.laws:
            best = "a constant" if self.best.name == "1" else self.best.name
            return f"no law fits: the best, {best}, is off by up to {self.best.worst:.0%}"
        power = f"power {round(self.power, 2) + 0.0:.2f} +- {self.power_error:.2f}"  # which is no -0
        said = [f"{law.formula(unit)} (off by up to {law.worst:.1%})" for law in self.laws]
        return f"{'ambiguous: ' * (len(said) > 1)}{', or '.join(said)}; {power}"


def fit_law(sizes: Sequence[int], values: Sequence[float]) -> Sweep:
    """The law that values follow over sizes.

    Parameters
    ----------
    sizes : sequence of int
        N, three different ones or more, above zero.
    values : sequence of float
        Above zero.

    Raises
    ------
    InputError
        Too few sizes, or a size or value that is not above zero.

    Examples
    --------
    >>> fit_law((256, 512, 1024, 2048), [3.0 * n**2 for n in (256, 512, 1024, 2048)]).text("ns")
    '3 ns x N^2 (off by up to 0.0%); power 2.00 +- 0.00'
    >>> fit_law((256, 512, 1024), (900.0, 90.0, 70000.0)).laws
    ()
    """
    if len(set(sizes)) < _LEAST_SIZES:
        raise InputError(
            f"law: got {len(set(sizes))} different sizes, expected {_LEAST_SIZES} or more: two lie on any power."
        )
    if min(sizes) < 2 or not all(0 < value < inf for value in values):
        raise InputError("law: expected sizes of 2 or more, and values above zero.")
    logs = [log(value) for value in values]
    line = _line([log(n) for n in sizes], logs)
    error = sqrt(sum(item**2 for item in line.off) / max(1, len(line.off) - 2) / line.wide)
    plain = [_plain_growth(name, sizes, logs) for name in _GROWTHS]
    any_power = _grown(f"N^{line.slope:.2f}", exp(line.mean - line.slope * line.middle), 0.0, line.off)
    beside = [law for name in _GROWTHS if (law := _growth_beside_a_part(name, sizes, values)) is not None]
    laws = _as_well(plain) or _as_well([any_power, *beside])
    best = min(plain, key=lambda law: law.worst)
    return Sweep(tuple(sizes), laws, laws[0] if laws else best, line.slope, error)


def _as_well(laws: Sequence[Growth]) -> tuple[Growth, ...]:
    """The laws that fit, the best first, without those that fit notably worse than it."""
    fitting = sorted((law for law in laws if law.worst <= ALLOWED), key=lambda law: law.residual)
    return tuple(law for law in fitting if law.residual <= max(_AS_WELL * fitting[0].residual, _SAME))


def _grows(name: str, n: int) -> float:
    power, logarithm = _GROWTHS[name]
    return float(n) ** power * (log(n) / log(2) if logarithm else 1.0)


def _grown(name: str, constant: float, offset: float, off: Sequence[float]) -> Growth:
    """A law by how far the logarithms of the values lie off its own."""
    residual = sqrt(sum(item**2 for item in off) / len(off))
    return Growth(name, constant, offset, expm1(min(700.0, max(map(abs, off)))), residual)


def _plain_growth(name: str, sizes: Sequence[int], logs: Sequence[float]) -> Growth:
    off = [value - log(_grows(name, n)) for n, value in zip(sizes, logs, strict=True)]
    mean = sum(off) / len(off)
    return _grown(name, exp(mean), 0.0, [item - mean for item in off])


def _growth_beside_a_part(name: str, sizes: Sequence[int], values: Sequence[float]) -> Growth | None:
    """With a constant part, by least squares of relative errors; None where there is none above zero."""
    if name == "1" or len(set(sizes)) < _SIZES_OF_TWO:
        return None
    ones = [1 / value for value in values]
    grown = [_grows(name, n) / value for n, value in zip(sizes, values, strict=True)]
    aa, ab, bb = (
        sum(x * y for x, y in zip(*pair, strict=True)) for pair in ((ones, ones), (ones, grown), (grown, grown))
    )
    a, b = sum(ones), sum(grown)
    determinant = aa * bb - ab * ab
    if determinant <= 1e-12 * aa * bb:
        return None
    offset, constant = (a * bb - b * ab) / determinant, (aa * b - ab * a) / determinant
    if offset <= 0 or constant <= 0:
        return None
    return _grown(
        name, constant, offset,
        [log(value / (offset + constant * _grows(name, n))) for n, value in zip(sizes, values, strict=True)],
    )  # fmt: skip


def square_products(laws: Sequence[Law]) -> str:
    """What laws of square products M = N = K say of values and tiles, in words; empty where they are not such."""
    by = {law.counter: law for law in laws}
    if (
        "store_sectors" not in by
        or len(by) < 2
        or not all(law.follows and abs(law.power - _POWERS[law.counter]) <= _EXACT for law in laws)
    ):
        return ""
    said = "square products, M = N = K = tokens"
    size = by["store_sectors"].per(2) * SECTOR_BYTES
    whole = next((b for b in (1, 2, 4, 8) if abs(size / b - 1) <= _NEAR), None)
    if whole is None:
        return said
    said += f", {whole} byte{'s' * (whole > 1)} stored a result"
    if "load_sectors" in by:
        side = 2 * whole / (SECTOR_BYTES * by["load_sectors"].per(3))
        said += f", loads as by tiles of side {side:.0f}" if side >= 4 and abs(side / round(side) - 1) <= _NEAR else ""
    return said
