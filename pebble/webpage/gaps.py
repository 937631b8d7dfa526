"""The gap table: what each schedule moves, over what every one must move."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.units import format_capacity
from pebble.webpage.documents import Document, Fields
from pebble.webpage.shapes import setting

_MOVED = ("dram_bytes", "cost_bytes", "worst_dram_bytes", "bytes")
_BOUNDS = {
    "lower_bound": "proved bound: no schedule moves less",
    "chip_bound": "proved bound: nothing this chip runs moves less",
    "cache_only_bound": "proved bound for a memory of the cache's size alone",
    "separate_kernels_bound": "proved bound if every intermediate goes through DRAM",
    "upper_bound": "best legal schedule known, under explicit control",
}
_OF_A_KERNEL = "proved bound: no order of this kernel moves less"
_MEMORIES = {  # what each bound is for, where a kernel is simulated
    "lower_bound": "for {}: the cache and what its blocks keep",
    "chip_bound": "for {}: all on-chip stores",
    "cache_only_bound": "for {} alone",
}
_BEST_IS_SIMULATED = "best schedule known, a simulated order"


@dataclass(frozen=True)
class Bar:
    """A line of the table.

    Attributes
    ----------
    name, kind, detail : str
        ``kind`` is ``bound``, ``explicit`` (a schedule under explicit control) or ``order`` (a simulated one).
    moved : float
        Bytes, or values where a document has no bytes.
    ratio : float or None
        Over the proved lower bound.
    """

    name: str
    kind: str
    detail: str
    moved: float
    ratio: float | None


@dataclass(frozen=True)
class GapTable:
    """What one document says of bounds and schedules.

    Attributes
    ----------
    title, where, unit : str
    bars : tuple of Bar
        Bounds first, then schedules, the one that moves least first.
    notes : tuple of str
    """

    title: str
    where: str
    unit: str
    bars: tuple[Bar, ...]
    notes: tuple[str, ...]


def gap_table(document: Document) -> GapTable:
    """The table of a document of compare, simulate, tune or bound.

    Raises
    ------
    InputError
        A key that has not the type it should have.
    """
    fields = Fields(document.data, document.name)
    unit = "bytes"
    if document.kind == "bound" and "bytes" not in fields.part("lower_bound"):
        unit = "elements"
    results = [(key, fields.part(key)) for key in _BOUNDS if key in fields]
    bounds = [(key, part) for key, part in results if unit in part]
    least = next((part.number(unit) for key, part in bounds if key == "lower_bound"), None)
    bars: list[Bar] = []
    if "exact" in fields:  # a tile game that a solver played
        least = fields.part("exact").number("lower_bound")
        bars.append(Bar(_BOUNDS["lower_bound"], "bound", fields.part("exact").text("stop_reason", "solver"), least, 1))
    tiles = _tiles(document, fields)
    orders = [_order(row, least, len(tiles) > 1) for row in _schedules(document, fields)]
    simulated = {(bar.name, bar.moved) for bar in orders if bar.kind == "order"}
    simulates = document.kind in ("compare", "simulate") and "kernel" in fields
    for key, part in bounds:
        text, traffic, what, kind = part.text("method", ""), part.number(unit), _BOUNDS[key], "bound"
        if simulates and key in _MEMORIES and "capacity_bytes" in part:
            what = _OF_A_KERNEL if key == "lower_bound" else what
            memory = _MEMORIES[key].format(format_capacity(part.whole("capacity_bytes")))
            if key == "cache_only_bound" and (least is None or traffic > least):
                memory += ": a schedule that also keeps values on the SMs may move less"
            text = f"{memory}; {text}"
        if key == "upper_bound":
            text, kind = part.text("schedule", ""), "explicit"
            if (text, traffic) in simulated:
                what, kind = _BEST_IS_SIMULATED, "order"
        bars.append(Bar(what, kind, text, traffic, _over(traffic, least)))
    return GapTable(
        f"{document.kind}: {fields.part('workload').text('label', document.name)}",
        setting(fields, tiles),
        unit,
        (*bars, *sorted(orders, key=lambda bar: bar.moved)),
        tuple(fields.texts("notes")),
    )


def _schedules(document: Document, fields: Fields) -> list[Fields]:
    if document.kind in ("compare", "tune"):
        return fields.parts("schedules")
    return [fields] if document.kind == "simulate" else []


def _tiles(document: Document, fields: Fields) -> list[str]:
    """The tiles of the schedules, each once; none where rows name no tile."""
    if document.kind not in ("compare", "tune"):
        return []
    return list(dict.fromkeys(row.text("tile") for row in fields.parts("schedules") if "tile" in row))


def traffic_of(row: Fields) -> float:
    """What a schedule of a document moves, in bytes."""
    return row.number(next((key for key in _MOVED if key in row), "dram_bytes"))


def _order(row: Fields, least: float | None, with_tile: bool) -> Bar:
    traffic = traffic_of(row)
    parts = [f"tile {row.text('tile')}"] if with_tile and "tile" in row else []
    if "dram_read_bytes" in row and "dram_write_bytes" in row:
        parts.append(f"{row.number('dram_read_bytes') / 1e6:,.1f} MB read")
        parts.append(f"{row.number('dram_write_bytes') / 1e6:,.1f} MB written")
    if "l2_hit_rate" in row:
        parts.append(f"{row.number('l2_hit_rate'):.1%} of lines hit")
    if "words" in row:
        parts.append(row.text("words"))
    kind = "explicit" if "cost_bytes" in row else "order"  # between L2 and SMs schedules are counted, not simulated
    return Bar(row.text("name", row.text("schedule", "")), kind, ", ".join(parts), traffic, _over(traffic, least))


def _over(traffic: float, least: float | None) -> float | None:
    return traffic / least if least else None
