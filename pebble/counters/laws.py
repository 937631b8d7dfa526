"""The power of the tokens that a counter follows, over several lengths.

A straight line through the logarithms, by least squares: its slope is the power, what the counters lie off it says how
well they follow one. Counters of a layer grow as the tokens. Those of a sweep over square products, M = N = K, grow as
the square (stores) and the cube (loads, FMA instructions), and tell the bytes of a value and the side of a tile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log, sqrt
from typing import NamedTuple

from pebble.counters.quantities import SECTOR_BYTES

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
    across = [log(m) for m in tokens]
    middle = sum(across) / len(across)
    wide = sum((x - middle) ** 2 for x in across)
    results = []
    for counter, values in per_token.items():
        mean = sum(values) / len(values)
        slope = sum((x - middle) * y for x, y in zip(across, values, strict=True)) / wide
        off = [y - mean - slope * (x - middle) for x, y in zip(across, values, strict=True)]
        spread = sqrt(sum(item**2 for item in off) / max(1, len(off) - 2))
        results.append(Law(counter, slope + 1, exp(middle), exp(mean + middle), spread, len(set(tokens))))
    return tuple(results)


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
