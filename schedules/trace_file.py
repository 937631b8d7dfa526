"""Traces in files, so that any order or kernel can be judged: CSV for people and NPZ for long ones.

CSV: comment lines say what the operands are, then one touch a line, in order::

    # pebble trace 1
    # operand A rows=8192 cols=8192 tile_rows=128 tile_cols=64 element_bytes=2
    # operand C rows=8192 cols=8192 tile_rows=128 tile_cols=128 element_bytes=2
    # sms 108
    operand,row,col,op,sm
    A,0,0,r,0
    C,0,0,w,0

``row`` and ``col`` count tiles from 0; ``op`` is r or w; ``sm`` is the SM of the touch, or the column is left out.
``copies=N`` and a column ``copy`` name equal matrices (heads). Rows of an operand are padded to whole 128-byte lines
and a touch reads or writes all lines of its tile, so a tile must be whole lines wide unless it is the only one in its
row; give narrower accesses as tiles of one line.

NPZ: arrays ``operand`` (uint8, an index), ``row``, ``col``, ``op`` (0 read, 1 write), and if known ``sm`` and ``copy``,
all of the same length; ``names`` (text), and ``shapes``, one row for each name: copies, rows, cols, tile_rows,
tile_cols, element_bytes. ``sms`` is optional. No pickled objects. `pebble.schedules.trace_write` writes both.
"""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.files import faults, lines_of, shown
from pebble.schedules.layout import Layout
from pebble.schedules.trace import Trace, TraceChunk

MAX_CSV_TOUCHES = 20_000_000
MAX_NPZ_TOUCHES = 400_000_000
_MAX_SMS = 100_000
FIELDS = ("rows", "cols", "tile_rows", "tile_cols", "element_bytes")
_CHUNK = 1 << 20
_SHAPE_LIMIT = 2**31


def _layout(names: list[str], shapes: list[dict[str, int]], where: str) -> Layout:
    layout = Layout()
    if not names or len(set(names)) != len(names) or len(names) > 255:
        raise InputError(f"{where}: got the operands {names}, expected 1 to 255 different names.")
    for name, shape in zip(names, shapes, strict=True):
        for key in ("copies", *FIELDS):
            value = shape.get(key, 1 if key == "copies" else 0)
            if not 1 <= value <= _SHAPE_LIMIT:
                raise InputError(f"{where}: operand {name}: got {key}={value}, expected a whole number from 1 to 2^31.")
        layout.add(
            name, shape["rows"], shape["cols"], min(shape["tile_rows"], shape["rows"]),
            min(shape["tile_cols"], shape["cols"]), shape["element_bytes"], shape.get("copies", 1),
        )  # fmt: skip
    return layout


def _trace(
    layout: Layout,
    operand: NDArray[np.int64],
    row: NDArray[np.int64],
    col: NDArray[np.int64],
    copy: NDArray[np.int64],
    op: NDArray[np.uint8],
    sm: NDArray[np.int32] | None,
    sms: int,
    where: str,
) -> Trace:
    shapes = layout.shapes()
    if len(operand) == 0:
        raise InputError(f"{where}: got no touch at all, expected at least one.")
    limits = np.array([(s.copies, *s.grid) for s in shapes], np.int64)
    first = np.array([s.first for s in shapes], np.int64)
    if int(operand.min()) < 0 or int(operand.max()) >= len(shapes):
        raise InputError(f"{where}: got operand {int(operand.max())}, expected an index into {layout.names}.")
    for name, value, limit in (("copy", copy, limits[operand, 0]), ("row", row, limits[operand, 1]),
                               ("col", col, limits[operand, 2])):  # fmt: skip
        wrong = np.flatnonzero((value < 0) | (value >= limit))
        if len(wrong):
            at = int(wrong[0])
            of, most = layout.names[operand[at]], int(limit[at]) - 1
            raise InputError(
                f"{where}: touch {at + 1}: got {name} {int(value[at])} of operand {of}, expected 0 to {most}."
            )
    if op.max() > 1:
        raise InputError(f"{where}: got op {int(op.max())}, expected 0 (read) or 1 (write).")
    if sm is not None:
        highest = int(sm.max())
        if int(sm.min()) < 0 or highest >= _MAX_SMS:
            raise InputError(f"{where}: got sm {int(sm.min())} to {highest}, expected 0 to {_MAX_SMS - 1}.")
        sms = max(sms, highest + 1)
    ids = (first[operand] + (copy * limits[operand, 1] + row) * limits[operand, 2] + col).astype(np.int32)
    none: NDArray[np.int64] = np.empty(0, np.int64)

    def chunks() -> Iterator[TraceChunk]:
        for start in range(0, len(ids), _CHUNK):
            part = slice(start, start + _CHUNK)
            source = None if sm is None else (lambda part=part: sm[part])
            yield TraceChunk(ids[part], op[part], none, 0, source)

    return Trace(
        tuple(layout.names), layout.tile_lines(), layout.tile_operand(), len(ids), chunks, operands=shapes,
        sms=sms if sm is not None else 0,
    )  # fmt: skip


def read_trace(path: str | Path) -> Trace:
    """Read a trace; the format is in the module's docstring.

    Raises
    ------
    InputError
        The file cannot be read, or one sentence with the line or touch of the mistake.
    """
    path = Path(path)
    where = f"trace {shown(path)!r}"
    try:
        with faults(path, "trace ", "read", "; expected a .csv or .npz file"):
            return _read_npz(path, where) if path.suffix.lower() == ".npz" else _read_csv(path, where)
    except UnicodeDecodeError:
        raise InputError(f"{where}: it is not UTF-8 text, expected CSV; NPZ files end in .npz.") from None


def _read_csv(path: Path, where: str) -> Trace:
    names: list[str] = []
    shapes: list[dict[str, int]] = []
    sms, number = 0, 0
    with path.open(encoding="utf-8-sig", newline="") as file:
        columns: list[str] = []
        lines = lines_of(file, where)
        for line in lines:
            number += 1
            text = line.strip()
            if text.startswith("#"):
                words = text[1:].split()
                if words[:1] == ["operand"]:
                    names.append(_second(words, where, number))
                    shapes.append(_shape(words[2:], where, number))
                elif words[:1] == ["sms"]:
                    sms = _number(_second(words, where, number), where, number)
            elif text:
                columns = [word.strip().lower() for word in text.split(",")]
                break
        missing = [c for c in ("operand", "row", "col", "op") if c not in columns]
        if missing:
            raise InputError(f"{where}, line {number}: the columns {', '.join(missing)} are missing; got {columns}.")
        index = {name: i for i, name in enumerate(names)}
        wanted = [(c, columns.index(c)) for c in ("operand", "row", "col", "op", "sm", "copy") if c in columns]
        found: dict[str, list[int]] = {c: [] for c, _ in wanted}
        for cells in csv.reader(lines):
            number += 1
            if not cells or cells[0].lstrip().startswith("#"):
                continue
            for column, at in wanted:
                cell = cells[at].strip() if at < len(cells) else ""
                if column == "operand":
                    if cell not in index:
                        raise InputError(f"{where}, line {number}: got operand {cell!r}, expected one of {names}.")
                    found[column].append(index[cell])
                elif column == "op":
                    if cell.lower() not in ("r", "w"):
                        raise InputError(f"{where}, line {number}: got op {cell!r}, expected r or w.")
                    found[column].append(int(cell.lower() == "w"))
                else:
                    found[column].append(_number(cell, where, number))
            if len(found["op"]) > MAX_CSV_TOUCHES:
                raise InputError(f"{where}: got more than {MAX_CSV_TOUCHES} touches, expected NPZ for long traces.")
    arrays = {column: np.array(values, np.int64) for column, values in found.items()}
    count = len(arrays["op"])
    sm = arrays["sm"].astype(np.int32) if "sm" in arrays else None
    copy = arrays.get("copy", np.zeros(count, np.int64))
    layout = _layout(names, shapes, where)
    op = arrays["op"].astype(np.uint8)
    return _trace(layout, arrays["operand"], arrays["row"], arrays["col"], copy, op, sm, sms, where)


def _second(words: list[str], where: str, line: int) -> str:
    if len(words) < 2:
        raise InputError(f"{where}, line {line}: got {' '.join(words)!r}, expected a value after it.")
    return words[1]


def _number(text: str, where: str, line: int) -> int:
    if not text.isdecimal() or len(text) > 10 or int(text) >= _SHAPE_LIMIT:
        raise InputError(f"{where}, line {line}: got {text[:40]!r}, expected a whole number from 0 below 2^31.")
    return int(text)


def _shape(words: list[str], where: str, line: int) -> dict[str, int]:
    shape = {}
    for word in words:
        key, _, value = word.partition("=")
        if key not in ("copies", *FIELDS):
            raise InputError(f"{where}, line {line}: got {word[:40]!r}, expected {', '.join(FIELDS)} or copies.")
        shape[key] = _number(value, where, line)
    return shape


def _read_npz(path: Path, where: str) -> Trace:
    try:
        with np.load(path, allow_pickle=False) as file:
            data = {name: file[name] for name in file.files}
    except (ValueError, zipfile.BadZipFile, EOFError) as error:
        raise InputError(f"{where}: it is not an NPZ file of plain arrays: {error}.") from None
    missing = [name for name in ("operand", "row", "col", "op", "names", "shapes") if name not in data]
    if missing:
        raise InputError(f"{where}: the arrays {', '.join(missing)} are missing; it has {', '.join(sorted(data))}.")
    touched = [name for name in ("operand", "row", "col", "op", "sm", "copy") if name in data]
    count = len(np.atleast_1d(data["op"]))
    for name in touched:
        array = data[name]
        if array.ndim != 1 or len(array) != count or not np.issubdtype(array.dtype, np.integer):
            raise InputError(f"{where}: got {name} of type {array.dtype}{array.shape}, expected {count} integers.")
    if count > MAX_NPZ_TOUCHES:
        raise InputError(f"{where}: got {count} touches, expected at most {MAX_NPZ_TOUCHES}.")
    names = [str(name) for name in np.atleast_1d(data["names"])]
    shapes = np.atleast_2d(data["shapes"])
    if shapes.shape != (len(names), 6) or not np.issubdtype(shapes.dtype, np.integer):
        raise InputError(f"{where}: got shapes of shape {shapes.shape}, expected integers of shape ({len(names)}, 6).")
    rows = [dict(zip(("copies", *FIELDS), (int(v) for v in row), strict=True)) for row in shapes]
    whole = {name: data[name].astype(np.int64) for name in touched}
    op = whole["op"]
    if count and (op.min() < 0 or op.max() > 1):
        raise InputError(f"{where}: got op {int(op.min())} to {int(op.max())}, expected 0 (read) or 1 (write).")
    sm = whole["sm"].astype(np.int32) if "sm" in whole else None
    sms = int(data["sms"]) if "sms" in data and data["sms"].ndim == 0 else 0
    copy = whole.get("copy", np.zeros(count, np.int64))
    layout = _layout(names, rows, where)
    return _trace(layout, whole["operand"], whole["row"], whole["col"], copy, op.astype(np.uint8), sm, sms, where)
