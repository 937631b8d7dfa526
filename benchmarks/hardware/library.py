"""The one table format of measurements: its columns, and reading and writing them. Standard library only."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).parent

SHAPE_COLUMNS = {
    "gemm": ("m", "n", "k"),
    "ffn": ("tokens", "d_model", "hidden", "gated"),
    "attention": ("queries", "keys", "head_dim", "heads", "kv_heads", "batch", "causal"),
    "cyclic-read": ("footprint_bytes",),
}
KERNEL_COLUMNS = ("dtype", "tile", "stages", "blocks_per_sm", "order", "execution", "launch")
MEASURED_COLUMNS = (
    "dram_read_bytes", "dram_write_bytes", "dram_bytes", "l2_read_sectors", "milliseconds", "bytes_per_second",
)  # fmt: skip
COLUMNS = (
    "date", "chip", "source", "family", *(name for names in SHAPE_COLUMNS.values() for name in names),
    *KERNEL_COLUMNS, *MEASURED_COLUMNS, "tool", "note",
)  # fmt: skip
EXECUTIONS = ("waves", "free")
LAUNCHES = ("persistent", "block-per-tile", "library", "")

Row = dict[str, str]


def check_row(row: Row) -> None:
    """Refuse a row that no reader could use.

    Raises
    ------
    ValueError
        A column missing or unknown, a shape that does not belong to the family, or nothing measured.
    """
    if set(row) != set(COLUMNS):
        raise ValueError(f"columns: got {sorted(set(row) ^ set(COLUMNS))} too many or missing, expected {COLUMNS}.")
    if row["family"] not in SHAPE_COLUMNS:
        raise ValueError(f"family: got {row['family']!r}, expected one of {', '.join(SHAPE_COLUMNS)}.")
    for family, names in SHAPE_COLUMNS.items():
        for name in names:
            if (row[name] != "") != (family == row["family"]):
                raise ValueError(f"{name}: got {row[name]!r} in a row of family {row['family']}.")
            if row[name]:
                int(row[name])
    if row["execution"] not in EXECUTIONS or row["launch"] not in LAUNCHES:
        raise ValueError(f"execution, launch: got {row['execution']!r}, {row['launch']!r}.")
    if not any(row[name] for name in MEASURED_COLUMNS):
        raise ValueError("nothing was measured.")
    for name in MEASURED_COLUMNS:
        if row[name]:
            float(row[name])


def read_rows(paths: Sequence[str | Path] = ()) -> Iterator[Row]:
    """Rows of these files, each checked; by default of every file of the library."""
    for path in paths or sorted(HERE.glob("*.csv")):
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                check_row(row)
                yield row


class Writer:
    """Writes rows as they come, so that a run that is cut short loses nothing."""

    def __init__(self, path: str | Path) -> None:
        self._file = open(path, "w", newline="")  # noqa: SIM115 - closed by the process's end, flushed at each row
        self._csv = csv.DictWriter(self._file, COLUMNS, lineterminator="\n", restval="")
        self._csv.writeheader()

    def write(self, rows: Iterable[dict[str, object]]) -> None:
        """Check and write rows; values that are missing stay empty."""
        for row in rows:
            text = {name: str(row.get(name, "")) for name in COLUMNS} | {
                name: str(value) for name, value in row.items() if name not in COLUMNS
            }
            check_row(text)
            self._csv.writerow(text)
        self._file.flush()


def shape_name(row: Row) -> str:
    """The problem in short, such as ``8192x8192x8192``."""
    values = [row[name] for name in SHAPE_COLUMNS[row["family"]]]
    if row["family"] == "ffn":
        return "x".join(values[:3]) + (" gated" if values[3] == "1" else "")
    if row["family"] == "attention":
        queries, keys, dim, heads, kv_heads, batch, causal = values
        return f"{queries}x{keys}x{dim} heads {heads}/{kv_heads} batch {batch}" + (" causal" if causal == "1" else "")
    return "x".join(values)
