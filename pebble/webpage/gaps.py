"""The tables of a page: what each schedule moves over what every one must move, counters beside what is predicted for
the same launch, and for every question of a sweep the order that moves least.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pebble.errors import InputError
from pebble.system.files import shown
from pebble.units import format_capacity
from pebble.webpage.documents import MAX_ROWS, Document, Fields, setting

_TRAFFIC_KEYS = ("dram_bytes", "cost_bytes", "off_chip_bytes", "worst_dram_bytes", "bytes")
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
    traffic : float
        Bytes, or values where a document has no bytes.
    ratio : float or None
        Over the proved lower bound.
    """

    name: str
    kind: str
    detail: str
    traffic: float
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
    simulated = {(bar.name, bar.traffic) for bar in orders if bar.kind == "order"}
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
        (*bars, *sorted(orders, key=lambda bar: bar.traffic)),
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
    return row.number(next((key for key in _TRAFFIC_KEYS if key in row), "dram_bytes"))


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
    if "off_chip_bytes" in row:  # a dataflow
        parts.append(row.text("detail"))
        parts += [f"H is handed over {row.text('handover')}"] if "handover" in row else []
        crossings = (("shared_bytes", "through the shared buffer"), ("copied_bytes", "from core to core"))
        parts += [f"{row.number(key) / 1e6:,.1f} MB {way}" for key, way in crossings if row.number(key)]
    # between L2 and SMs, and on scratchpads, schedules are counted, not simulated
    kind = "explicit" if "cost_bytes" in row or "off_chip_bytes" in row else "order"
    return Bar(row.text("name", row.text("schedule", "")), kind, ", ".join(parts), traffic, _over(traffic, least))


def _over(traffic: float, least: float | None) -> float | None:
    return traffic / least if least else None


_SHAPE = (
    "m", "n", "k", "tokens", "d_model", "hidden", "queries", "keys", "head_dim", "heads", "kv_heads", "batch",
)  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """One launch: bytes that counters read, and bytes that a document predicts."""

    name: str
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """Predicted over measured, minus 1."""
        return self.predicted / self.measured - 1


def pairs(documents: Iterable[Document]) -> tuple[list[Pair], int]:
    """Launches that were measured and predicted, the worst first; and how many measured rows nothing predicts.

    A row belongs to a compare document of the same machine, shape, type and tile, and to its schedule of that name; a
    row of ``free`` to what that schedule moves without a barrier.
    """
    documents = list(documents)
    compared = [Fields(d.data, d.name) for d in documents if d.kind == "compare" and "kernel" in d.data]
    results: list[Pair] = []
    alone = 0
    for document in documents:
        if document.kind == "ncu":
            results += _profiled(Fields(document.data, document.name))
        for row in document.data["rows"] if document.kind == "measured" else ():
            pair = _pair(row, compared)
            if pair is None:
                alone += 1
            else:
                results.append(pair)
    return sorted(results, key=lambda p: -abs(p.error)), alone


def _profiled(fields: Fields) -> list[Pair]:
    """A launch that a profiler measured, beside the order that comes nearest to it: which it ran is not known."""
    measured = fields.part("measured").number("dram_bytes")
    if not measured or "nearest" not in fields:
        return []
    name, execution = (fields.part("nearest").text(key, "") for key in ("name", "execution"))
    label = f"{fields.part('workload').text('label', '')}, profiled; nearest order: {name}, {execution}"
    return [
        Pair(label, measured, row.number("dram_read_bytes") + row.number("dram_write_bytes"))
        for row in fields.parts("schedules")
        if (row.text("name", ""), row.text("execution", "")) == (name, execution)
    ]


def _pair(row: Mapping[str, str], compared: list[Fields]) -> Pair | None:
    measured = _number(row["dram_bytes"]) or _number(row["dram_read_bytes"]) + _number(row["dram_write_bytes"])
    if not measured:
        return None
    for fields in compared:
        if not _same_launch(row, fields):
            continue
        key = "free_dram_bytes" if row["execution"] == "free" else "dram_bytes"
        if fields.part("kernel").text("execution", "") == row["execution"]:
            key = "dram_bytes"
        elif key == "dram_bytes":
            continue
        for schedule in fields.parts("schedules"):
            if schedule.text("name", "") == row["order"] and key in schedule:
                label = fields.part("workload").text("label", "")
                return Pair(f"{label}, {row['order']}, {row['execution']}", measured, schedule.number(key))
    return None


def _same_launch(row: Mapping[str, str], fields: Fields) -> bool:
    workload, kernel = fields.part("workload"), fields.part("kernel")
    machine = fields.part("machine").text("sku", "") if "machine" in fields else ""
    return (
        row["family"] == workload.text("family", "")
        and row.get("chip", "") == machine
        and row["tile"] == kernel.text("tile", "")
        and row.get("dtype", "") == workload.text("dtype", "")
        and all(not row.get(key) or _number(row[key]) == (workload.maybe(key) or 0) for key in _SHAPE)
    )


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if 0 <= value < 1e30 else 0.0


_QUESTION = ("workload", "machine", "cache_bytes", "sms", "tile", "policy", "execution")


@dataclass(frozen=True)
class SweptQuestion:
    """All orders of one workload in one place.

    Attributes
    ----------
    workload, where : str
    orders : int
        How many were simulated.
    best, worst : str
        The order that moves least, and the one that moves most.
    best_bytes, worst_bytes : float
    ratio : float or None
        The best over the proved bound.
    ties : int
        How many orders move as little as the best, itself among them.
    """

    workload: str
    where: str
    orders: int
    best: str
    best_bytes: float
    worst: str
    worst_bytes: float
    ratio: float | None
    ties: int


@dataclass(frozen=True)
class Solved:
    """One game.

    Attributes
    ----------
    workload, where : str
    lower, upper : float or None
        What is proved, and what the cheapest pebbling found costs.
    """

    workload: str
    where: str
    lower: float | None
    upper: float | None


@dataclass(frozen=True)
class Swept:
    """One store: its questions, those that leave most to gain first, its games, and how its rows ended."""

    title: str
    questions: tuple[SweptQuestion, ...]
    solved: tuple[Solved, ...]
    statuses: dict[str, int]


def swept(document: Document) -> Swept:
    """What the rows of a store say.

    Raises
    ------
    InputError
        A value that has not the type it should have, or more questions than a page shows.
    """
    rows = Fields(document.data, document.name).parts("rows")
    groups: dict[tuple[str, ...], list[Fields]] = {}
    for row in rows:
        if "dram_bytes" in row and "workload" in row:
            groups.setdefault(tuple(str(row.plain.get(key) or "") for key in _QUESTION), []).append(row)
    statuses = Counter(row.text("status", "done") for row in rows)
    result = sorted((_question(group) for group in groups.values()), key=lambda a: -(a.ratio or 0))
    solved = [_solved(row) for row in rows if "workload" in row and "lower_bound_cost" in row]
    if len(result) + len(solved) > MAX_ROWS:
        raise InputError(
            f"report: {shown(document.name)}: got {len(result) + len(solved):,} questions, expected at most "
            f"{MAX_ROWS:,}; choose some with `pebble results STORE --where CONDITION --json`."
        )
    return Swept(document.name, tuple(result), tuple(solved), dict(statuses))


def _solved(row: Fields) -> Solved:
    place = [f"{row.whole('capacity_pebbles')} pebbles"] if "capacity_pebbles" in row else []
    place += [row.text(key) for key in ("variant", "solver") if key in row]
    return Solved(row.text("workload"), ", ".join(place), row.maybe("lower_bound_cost"), row.maybe("upper_bound_cost"))


def _question(rows: Iterable[Fields]) -> SweptQuestion:
    ordered = sorted(rows, key=lambda row: row.number("dram_bytes"))
    best, worst = ordered[0], ordered[-1]
    place = [best.text("machine")] if "machine" in best else []
    if "cache_bytes" in best:
        place.append(f"cache {best.number('cache_bytes') / 2**20:.4g} MiB")
    place += [f"tile {best.text('tile')}"] if "tile" in best else []
    place += [best.text(key) for key in ("policy", "execution") if key in best]
    return SweptQuestion(
        best.text("workload"), ", ".join(place), len(ordered), best.text("schedule", "?"), best.number("dram_bytes"),
        worst.text("schedule", "?"), worst.number("dram_bytes"), best.maybe("ratio_to_lower_bound"),
        sum(row.number("dram_bytes") == best.number("dram_bytes") for row in ordered),
    )  # fmt: skip
