"""Columns of a table for a reader: a short name with a large unit, and the number in it."""

from __future__ import annotations

from collections.abc import Mapping

from pebble.units import format_ratio

_NAMES: Mapping[str, str] = {
    "name": "order",
    "dram_bytes": "MB",
    "cost_bytes": "cost MB",
    "sustained_ms": "ms",
    "single_ms": "ms alone",
    "modelled_ms": "ms alone",
    "floor_ms": "ms at least",
    "least_time_us": "ms at least",
    "time_floor_us": "ms at least",
    "lower_bound_bytes": "MB at least",
    "ratio_to_lower_bound": "x bound",
    "ratio_to_optimum": "x optimum",
    "over_pooled": "x pooled",
}
_UNITS = (("_bytes", " MB", 1e6), ("_us", " ms", 1e3), ("_ms", " ms", 1.0))  # of a key, of a reader, and their ratio


def in_large_unit(key: str, value: float) -> tuple[str, float]:
    """The name of a column that has a key with a unit, and a value of it in the unit of the name.

    Examples
    --------
    >>> in_large_unit("dram_bytes", 1_500_000), in_large_unit("l2_us", 20), in_large_unit("stages", 3)
    (('MB', 1.5), ('l2 ms', 0.02), ('stages', 3))
    """
    for ending, unit, ratio in _UNITS:
        if key.endswith(ending):
            return _NAMES.get(key, key.removesuffix(ending).replace("_", " ") + unit), value / ratio
    return _NAMES.get(key, key.replace("_", " ")), value


def for_reader(key: str, value: object) -> tuple[str, str]:
    """The name of a column and what stands in it.

    Examples
    --------
    >>> for_reader("ratio_to_lower_bound", 3.479), for_reader("dram_bytes", 1704206336), for_reader("floor_ms", None)
    (('x bound', '3.48'), ('MB', '1,704.2'), ('ms at least', '-'))
    """
    if value is None or isinstance(value, bool):
        return in_large_unit(key, 0)[0], {True: "yes", False: "no", None: "-"}[value]
    if not isinstance(value, int | float):
        return in_large_unit(key, 0)[0], str(value)
    name, number = in_large_unit(key, value)
    if key.endswith("_bytes"):
        return name, f"{number:,.1f}" if number >= 0.1 else f"{number:,.3g}"
    if key.endswith(("_us", "_ms")):
        return name, f"{number:,.4g}"
    if isinstance(number, int):
        return name, f"{number:,}"
    return name, format_ratio(number, ".2f") if key.startswith("ratio_") else format_ratio(number)
