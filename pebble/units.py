"""Whole numbers and sizes: division and roots rounded the safe way; ``40MiB``, ``228KiB``, ``6MB``, ``8192el``.

A bare number is never a size.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from pebble.errors import InputError, check_text

_BYTES = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}
_SIZE = re.compile(r"\s*([+-]?[0-9][0-9_]*(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")
_EXPECTED = "expected a number with a unit such as 40MiB, 228KiB, 6MB or 8192el (MB = 10^6 bytes, MiB = 2^20 bytes)"
MAX_SIZE = 2**60


def ceil_div(a: int, b: int) -> int:
    """Smallest whole number not below a / b."""
    return -(-a // b)


def ceil_sqrt(x: int) -> int:
    """Smallest whole number whose square is at least x."""
    return isqrt(x - 1) + 1 if x > 0 else 0


def floor_cbrt(x: int) -> int:
    """Largest whole number whose cube is at most x."""
    if x < 1:
        return 0
    # Newton's method falls to the root from any guess above it; a floating-point root of the leading bits is near
    shift = max(0, (x.bit_length() - 100) // 3)
    guess = int(((x >> 3 * shift) + 1) ** (1 / 3) * (1 + 1e-9) + 1) << shift
    while True:
        better = (2 * guess + x // (guess * guess)) // 3
        if better >= guess:
            return guess
        guess = better


def ceil_cbrt(x: int) -> int:
    """Smallest whole number whose cube is at least x."""
    root = floor_cbrt(x)
    return root if root**3 == x else root + 1


@dataclass(frozen=True)
class Size:
    """A capacity as the user gave it: in bytes, or in elements (values), never both.

    Attributes
    ----------
    bytes : int or None
        Bytes, when the unit was a byte unit.
    elements : int or None
        Values, when the unit was ``el``.
    text : str
        The text as given.
    """

    bytes: int | None
    elements: int | None
    text: str

    def to_elements(self, element_bytes: int) -> int:
        """Number of values of ``element_bytes`` bytes each that fit."""
        if self.elements is not None:
            return self.elements
        assert self.bytes is not None
        return self.bytes // element_bytes

    def to_bytes(self, element_bytes: int) -> int:
        """Bytes, taking ``element_bytes`` for each value when the size was given in elements."""
        if self.bytes is not None:
            return self.bytes
        assert self.elements is not None
        return self.elements * element_bytes


def parse_size(text: str, what: str = "size") -> Size:
    """Read a size with a unit.

    Parameters
    ----------
    text : str
        For example ``"40MiB"``. Fractions are accepted when they are whole bytes (``"1.5KiB"``).
    what : str
        The name of the quantity, for the message.

    Raises
    ------
    InputError
        No unit, unknown unit, not a positive whole number of bytes or elements, or above 2^60.

    Examples
    --------
    >>> parse_size("40MiB").bytes
    41943040
    >>> parse_size("8192el").elements
    8192
    """
    match = _SIZE.fullmatch(check_text(what, text, "a size with a unit such as '40MiB'"))
    if match is None:
        raise InputError(f"{what}: got {text!r}, {_EXPECTED}.")
    number, unit = match.group(1).replace("_", ""), match.group(2)
    if not unit:
        raise InputError(f"{what}: got {text!r} without a unit, {_EXPECTED}.")
    is_elements = unit.lower() in ("el", "elements")
    scale = 1 if is_elements else _BYTES.get(unit.upper())
    if scale is None:
        raise InputError(f"{what}: got {text!r} with the unknown unit {unit!r}, {_EXPECTED}.")
    if re.fullmatch("[KMGT]i?b", unit):
        raise InputError(
            f"{what}: got {text!r}, where {unit} may mean bits; expected bytes such as {number}{unit[:-1]}B."
        )
    value = Fraction(number) * scale
    if value.denominator != 1:
        whole = "elements" if is_elements else "bytes"
        raise InputError(f"{what}: got {text!r}, which is not a whole number of {whole}; {_EXPECTED}.")
    amount = int(value)
    if amount <= 0:
        raise InputError(f"{what}: got {text!r}, expected more than zero, such as 40MiB.")
    if amount > MAX_SIZE:
        raise InputError(f"{what}: got {text!r}, expected at most 2^60; check the unit.")
    return Size(None, amount, text) if is_elements else Size(amount, None, text)


def format_ratio(value: float, spec: str = ".4g") -> str:
    """A ratio for a person to read; 1 only where it is 1, so that what is close to optimal is not called optimal.

    Examples
    --------
    >>> format_ratio(1.23456), format_ratio(1.0000321), format_ratio(0.99999, ".2f"), format_ratio(1.0)
    ('1.235', '1.00003', '0.99999', '1')
    """
    text, digits = format(value, spec), 3
    while float(text) == 1 != value:
        text, digits = f"{value:.{digits}f}", digits + 1
    return text


def format_bytes(count: int | float) -> str:
    """Bytes for a person to read: decimal above a megabyte, as traffic is quoted, else plain.

    Examples
    --------
    >>> format_bytes(492_400_000)
    '492.4 MB'
    """
    for limit, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= limit * (10 if unit == "GB" else 1):
            return f"{count / limit:,.1f} {unit}"
    return f"{count:,.0f} B"


def counted(count: int, what: str) -> str:
    """``1 wave``, ``2 waves``."""
    return f"{count} {what}{'s' * (count != 1)}"


def column_of_bytes(largest: int | float) -> tuple[float, str]:
    """What a table divides its bytes by, and the name of that: megabytes, unless all would be next to none.

    Examples
    --------
    >>> column_of_bytes(492_400_000), column_of_bytes(2176)
    ((1000000.0, 'MB'), (1000.0, 'kB'))
    """
    return (1e6, "MB") if largest >= 1e6 else (1e3, "kB")


def format_seconds(seconds: float, longer: float | None = None) -> str:
    """A time for a person to read, in the unit of the ``longer`` one that stands next to it.

    Examples
    --------
    >>> format_seconds(0.00012), format_seconds(0.00012, longer=0.0078), format_seconds(2.5), format_seconds(7.8e-9)
    ('120 us', '0.12 ms', '2.5 s', '7.8 ns')
    """
    longest = max(seconds, longer or 0)
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")):
        if longest >= scale or unit == "ns":
            value = seconds / scale
            return f"{value:.3g} {unit}" if value < 1000 else f"{value:,.0f} {unit}"
    raise AssertionError


def format_capacity(count: int) -> str:
    """Capacity bytes for a person to read, in binary units, as caches are quoted.

    Examples
    --------
    >>> format_capacity(41943040)
    '40 MiB'
    """
    for limit, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if count >= limit:
            return f"{count / limit:.2f}".rstrip("0").rstrip(".") + f" {unit}"
    return f"{count} B"
