"""Predicted against measured: rows of counters beside what the given documents predict for the same launch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pebble.webpage.documents import Document, Fields

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
