"""Tables in files: ``.csv`` and ``.npy`` for any program, ``.json`` with all that a table was made for.

- ``.csv``: a line of column names, then a row a block; lines that begin with ``#`` are comments. ``row,col`` are
  enough; ``k_start``, ``k_direction``, ``wave`` with ``slot``, and ``phase,product,first,steps,adds`` may be there.
- ``.npy``: an array of whole numbers with 2, 4, 6 or 11 columns: row and col; with k_start and k_direction; with wave
  and slot before these; all, in the order of `pebble.schedules.tables.COLUMNS`.
- ``.json``: what `table_document` makes, or a plain list of ``[row, col]``.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from pebble.errors import InputError
from pebble.schedules.tables.own import Columns, ColumnTable, FixedTable, OwnSchedule
from pebble.schedules.tables.registry import KERNELS
from pebble.schedules.tables.table import COLUMNS, TILE_COLUMNS, Launch, TileTable
from pebble.schedules.tile import TileShape
from pebble.system.files import read_bytes, shown

FORMAT = "pebble tile table"
SUFFIXES = (".csv", ".npy", ".json")
_NPY = {2: ("row", "col"), 4: TILE_COLUMNS[2:], 6: TILE_COLUMNS, len(COLUMNS): COLUMNS}
_TOGETHER = (("wave", "slot"), ("row", "col"), ("phase", "product", "first", "steps", "adds"))
_MOST = 2**31 - 1


def read_table(path: str | Path, sawtooth: bool = False) -> OwnSchedule:
    """The schedule in a file.

    Raises
    ------
    InputError
        It cannot be read, or is no table; the message says what was expected.
    """
    content, where = read_bytes(path, "schedule "), shown(path)
    suffix = Path(path).suffix.lower()
    if suffix == ".json":
        document = _json(content, where)
        if isinstance(document, dict):
            if sawtooth:
                raise InputError(
                    f"{where}: got +sawtooth with a table that says its k directions, expected it without."
                )
            return FixedTable(read_document(document, where))
        columns = _array(document, where)
    else:
        columns = _csv(content, where) if suffix == ".csv" else _npy(content, where)
    return ColumnTable(where + "+sawtooth" * sawtooth, columns, sawtooth)


def write_csv(table: TileTable, comments: tuple[str, ...] = ()) -> str:
    """A table as the text of a .csv file; ``comments`` are lines before it."""
    columns = TILE_COLUMNS if table.plain else COLUMNS
    out = io.StringIO()
    out.writelines(f"# {line}\n" for line in comments)
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(columns)
    rows.writerows(table.entries[:, : len(columns)].tolist())
    return out.getvalue()


def npy_bytes(table: TileTable) -> bytes:
    """A table as the content of a .npy file."""
    out = io.BytesIO()
    np.save(out, table.entries[:, : len(TILE_COLUMNS) if table.plain else len(COLUMNS)])
    return out.getvalue()


def table_document(table: TileTable) -> dict[str, Any]:
    """A table as plain data for a .json file, with what it is for; `read_document` reads it back."""
    workload = {"family": table.workload.family, **table.workload.values()}
    launch = dataclasses.asdict(table.launch) | {"tile": str(table.launch.tile)}
    columns = TILE_COLUMNS if table.plain else COLUMNS
    return {
        "format": FORMAT, "name": table.name, "workload": workload, "launch": launch, "columns": list(columns),
        "rows": table.entries[:, : len(columns)].tolist(),
    }  # fmt: skip


def read_document(document: dict[str, Any], where: str) -> TileTable:
    """A table from the document that `table_document` made.

    Raises
    ------
    InputError
        Not such a document.
    """
    expected = "expected a table that `pebble export` or `pebble tune --save` wrote"
    try:
        if document.get("format") != FORMAT:
            raise KeyError("format")
        about, launch = dict(document["workload"]), dict(document["launch"])
        workload = KERNELS[about.pop("family")].shape(**about)
        made = Launch(**(launch | {"tile": TileShape.parse(launch["tile"])}))
        columns = _named(tuple(document["columns"]), document["rows"], where)
        name = str(document["name"])
    except KeyError as error:
        raise InputError(f"{where}: {error} is missing or unknown, {expected}.") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{where}: {str(error)[:120]}; {expected}.") from None
    return ColumnTable(name, columns).table(workload, made, made.order_params)


def _json(content: bytes, where: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        got = "bytes that are no text" if isinstance(error, UnicodeDecodeError) else f"no JSON ({str(error)[:80]})"
        raise InputError(
            f"{where}: got {got}, expected [[row, col], ...], or what `pebble export SCHEDULE WORKLOAD --format json` "
            "writes."
        ) from None


def _array(rows: Any, where: str) -> Columns:
    """Columns of an array that names none."""
    try:
        result = np.asarray(rows)
    except ValueError:
        result = np.empty(0)
    if result.ndim != 2 or result.shape[1] not in _NPY or not len(result) or result.dtype.kind not in "iu":
        kind = {"i": "whole numbers", "u": "whole numbers", "f": "numbers with a fraction"}.get(
            result.dtype.kind, "values"
        )
        shape = " x ".join(map(str, result.shape))
        what = f"{shape} {kind}" if result.size else "no rows"
        raise InputError(
            f"{where}: got {what}, expected whole numbers in 2 columns (row, col), 4 (and k_start, k_direction), "
            f"6 (wave, slot before these) or {len(COLUMNS)}."
        )
    return _named(_NPY[result.shape[1]], result, where)


def _npy(content: bytes, where: str) -> Columns:
    try:
        result = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError, OSError, KeyError):
        raise InputError(f"{where}: it is not a .npy file of numbers.") from None
    if not isinstance(result, np.ndarray):
        raise InputError(f"{where}: got an archive of arrays, expected one array (.npy).")
    return _array(result, where)


def _csv(content: bytes, where: str) -> Columns:
    text = content.decode("utf-8-sig", "replace")
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    rows = list(csv.reader(lines))
    names = tuple(cell.strip().lower() for cell in rows[0]) if rows else ()
    if not names or not set(names) <= set(COLUMNS):
        strange = next((name for name in names if name not in COLUMNS), "")
        got = "no line" if not names else f"the column {strange[:40]!a}"
        if not text.isprintable() and any(not letter.isprintable() and not letter.isspace() for letter in text):
            got = "bytes that are no text"
        raise InputError(
            f"{where}: got {got}, expected a first line of column names: row,col and, if wanted, k_start, k_direction, "
            f"wave, slot, or all of {', '.join(COLUMNS)}."
        )
    return _named(names, rows[1:], where)


def _named(names: tuple[str, ...], rows: Any, where: str) -> Columns:
    """Columns by name, whole numbers, the ones that belong together all there."""
    if len(set(names)) < len(names) or not set(names) <= set(COLUMNS):
        raise InputError(
            f"{where}: got the columns {', '.join(names)[:120]}, expected each once of {', '.join(COLUMNS)}."
        )
    for group in _TOGETHER:
        missing = [name for name in group if name not in names]
        if missing and (group == ("row", "col") or len(missing) < len(group)):
            raise InputError(f"{where}: the column {missing[0]} is missing; {', '.join(group)} belong together.")
    if not len(rows):
        raise InputError(
            f"{where}: got no tiles, expected one for each block: in .csv a line such as 0,0 below row,col, in .json "
            "[[0, 0], ...]."
        )
    values = np.empty((len(rows), len(names)), np.int64)
    if isinstance(rows, np.ndarray):
        values[:] = rows
    else:
        for at, row in enumerate(rows):
            try:
                values[at] = [int(cell) for cell in row]
            except (ValueError, TypeError, OverflowError):
                got = ",".join(map(str, row)) if isinstance(row, list) else repr(row)
                raise InputError(
                    f"{where}: row {at} is {got[:60]!r}, expected {len(names)} whole numbers ({', '.join(names)})."
                ) from None
    if np.abs(values).max() > _MOST:
        raise InputError(f"{where}: got a number beyond {_MOST}, expected tiles, steps and waves.")
    return {name: values[:, i] for i, name in enumerate(names)}
