"""Numbers and units as Nsight Compute prints them: thousands in either style, units scaled per row."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

_NOTHING = frozenset({"", "-", "n/a", "na", "nan", "inf", "-inf", "none", "(!) n/a", "(!) nan"})
_SPACES = re.compile(r"[\s'’_\u00a0\u202f]")
_AMERICAN = re.compile(r"[+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)?(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_EUROPEAN = re.compile(r"[+-]?(?:[0-9]{1,3}(?:\.[0-9]{3})+|[0-9]+)?(?:,[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_EITHER = re.compile(r"[+-]?[0-9]{1,3}[.,][0-9]{3}")  # 27.595: 27,595 or a little over 27
_TUPLE = re.compile(r"\(?\s*([0-9.,]+)\s*[,;x]\s*([0-9.,]+)\s*[,;x]\s*([0-9.,]+)\s*\)?")
_PREFIXES = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15, "ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30}
_WHOLE = ("byte", "ns", "sector", "inst", "request", "cycle", "")  # units of counts that have no parts
_SCALED = ("byte", "bytes", "b", "hz", "sector", "sectors", "inst", "request", "requests", "cycle", "cycles", "flop")
_NANOSECONDS = {
    **dict.fromkeys(("ns", "nsecond", "nseconds"), 1.0),
    **dict.fromkeys(("us", "usecond", "useconds", "µs"), 1e3),
    **dict.fromkeys(("ms", "msecond", "mseconds"), 1e6),
    **dict.fromkeys(("s", "second", "seconds", "sec"), 1e9),
}


def is_european(texts: Iterable[str]) -> bool | None:
    """Whether a file writes 27.595.520 and 65,77; by what can be read one way only, None where nothing can.

    Examples
    --------
    >>> is_european(["27.595.520", "65,77", "1.000"]), is_european(["27,595,520"]), is_european(["1.000"])
    (True, False, None)
    """
    balance = 0
    for text in texts:
        plain = _SPACES.sub("", text)
        if not any(mark in plain for mark in ".,") or _EITHER.fullmatch(plain):
            continue
        balance += bool(_EUROPEAN.fullmatch(plain)) - bool(_AMERICAN.fullmatch(plain))
    return balance > 0 if balance else None


def point_or_thousands(text: str) -> str:
    """The mark of a number such as 27.595, which may be read either way; empty where it is none.

    Examples
    --------
    >>> point_or_thousands("27.595"), point_or_thousands("27,595"), point_or_thousands("27.59")
    ('.', ',', '')
    """
    return text[-4] if _EITHER.fullmatch(text) else ""


def read_number(text: str, european: bool = False) -> float | None:
    """A finite number, or None for n/a and for what is none.

    Parameters
    ----------
    text : str
        ``53,261,312``, ``27.595.520``, ``65,77``, ``1.5e3``; of a list ``32.00; 32.00`` the sum.
    european : bool
        How to read what may be read either way, such as ``27.595``.

    Examples
    --------
    >>> read_number("53,261,312"), read_number("27.595.520"), read_number("65,77"), read_number("n/a")
    (53261312.0, 27595520.0, 65.77, None)
    >>> read_number("4.194"), read_number("4.194", european=True), read_number("32.00; 4.00")
    (4.194, 4194.0, 36.0)
    """
    if ";" in text:
        parts = [read_number(part, european) for part in text.split(";") if part.strip()]
        known = [part for part in parts if part is not None]
        return sum(known) if known and len(known) == len(parts) else None
    plain = _SPACES.sub("", text)
    if plain.lower() in _NOTHING or not any(digit.isascii() and digit.isdigit() for digit in plain):
        return None
    american, other = bool(_AMERICAN.fullmatch(plain)), bool(_EUROPEAN.fullmatch(plain))
    if not american and not other:
        return None
    thousands, point = ".," if other and (european or not american) else ",."
    try:
        value = float(plain.replace(thousands, "").replace(point, "."))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def read_sides(text: str) -> tuple[int, int, int] | None:
    """A grid or block such as ``(32, 32, 1)``; None where it is none.

    Examples
    --------
    >>> read_sides("(4,096, 1, 1)"), read_sides("(32, 32, 1)"), read_sides("n/a")
    ((4096, 1, 1), (32, 32, 1), None)
    """
    result = _TUPLE.fullmatch(text.strip().replace(", ", ";")) or _TUPLE.fullmatch(text.strip())
    if result is None:
        return None
    sides = [re.sub("[.,]", "", side) for side in result.groups()]
    if not all(side and len(side) <= 12 for side in sides):
        return None
    x, y, z = (int(side) for side in sides)
    return (x, y, z) if min(x, y, z) >= 1 else None


def read_unit(text: str) -> tuple[float, str]:
    """The factor to the base unit, and the base unit: byte, ns, hz, sector ...; rates are per second.

    Examples
    --------
    >>> read_unit("Kbyte"), read_unit("usecond"), read_unit("Gbyte/s"), read_unit("%"), read_unit("Ghz")
    ((1000.0, 'byte'), (1000.0, 'ns'), (1000000000.0, 'byte/s'), (1.0, '%'), (1000000000.0, 'hz'))
    >>> read_unit("cycle/nsecond")
    (1000000000.0, 'hz')
    """
    above, slash, below = text.strip().partition("/")
    if not slash:
        plain = above.lower()
        if plain in _NANOSECONDS:
            return _NANOSECONDS[plain], "ns"
        return _scaled(plain, above)
    factor, unit = _scaled(above.strip().lower(), above.strip())
    per = below.strip().lower()
    if per in _NANOSECONDS:
        factor *= 1e9 / _NANOSECONDS[per]
        return factor, "hz" if unit == "cycle" else f"{unit}/s"
    return factor, f"{unit}/{per}"


def _scaled(plain: str, text: str) -> tuple[float, str]:
    """A unit without its prefix."""
    if plain in _SCALED:
        return 1.0, _singular(plain)
    for prefix, factor in _PREFIXES.items():
        if plain.startswith(prefix) and plain.removeprefix(prefix) in _SCALED:
            return factor, _singular(plain.removeprefix(prefix))
    return 1.0, text


def is_whole(metric: str, unit: str) -> bool:
    """Whether a metric is a sum of whole things, in a unit that is not scaled.

    Examples
    --------
    >>> is_whole("dram__bytes_read.sum", "byte"), is_whole("dram__bytes_read.sum", "Mbyte"), is_whole("x.pct", "%")
    (True, False, False)
    """
    factor, base = read_unit(unit)
    return metric.endswith(".sum") and factor == 1 and base in _WHOLE


def _singular(unit: str) -> str:
    return "byte" if unit == "b" else unit.removesuffix("s")
