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
tile_cols, element_bytes. ``sms`` is optional. No pickled objects.
"""

from __future__ import annotations

import csv
import zipfile
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.system.files import check_output, check_path, faults, lines_of, shown
from pebble.traces.layout import Layout, OperandTiles
from pebble.traces.trace import Trace, chunked

MAX_CSV_TOUCHES = 20_000_000
MAX_NPZ_TOUCHES = 400_000_000
_VERSION = "1"  # of CSV files
_MAX_SMS = 100_000
_MAX_NAMES = 255
_SHAPE_LIMIT = 2**31
_FIELDS = ("rows", "cols", "tile_rows", "tile_cols", "element_bytes")
_REQUIRED = ("operand", "row", "col", "op")
_COLUMNS = (*_REQUIRED, "sm", "copy")


class _Content(NamedTuple):
    """What a file says: operands with their shapes, the columns, and the number of SMs."""

    names: list[str]
    shapes: list[dict[str, int]]
    columns: dict[str, NDArray[np.int64]]
    sms: int


def read_trace(path: str | Path) -> Trace:
    """Read a trace; the format is in the module's docstring.

    Raises
    ------
    InputError
        The file cannot be read, or one sentence with the line or touch of the mistake.
    """
    path = Path(check_path("trace", path))
    where = f"trace {shown(path)!r}"
    try:
        with faults(path, "trace ", "read", "; expected a .csv or .npz file"):
            if path.suffix.lower() == ".npz":
                return _trace(_read_npz(path, where), where)
            with path.open(encoding="utf-8-sig", newline="") as file:
                return _trace(_read_csv(file, where), where)
    except UnicodeDecodeError:
        raise InputError(f"{where}: it is not UTF-8 text, expected CSV; NPZ files end in .npz.") from None


def _layout(content: _Content, where: str) -> Layout:
    names = content.names
    if not names or len(set(names)) != len(names) or len(names) > _MAX_NAMES:
        raise InputError(f"{where}: got the operands {names}, expected 1 to {_MAX_NAMES} different names.")
    layout = Layout()
    for name, shape in zip(names, content.shapes, strict=True):
        for key in ("copies", *_FIELDS):
            value = shape.get(key, 1 if key == "copies" else 0)
            if not 1 <= value <= _SHAPE_LIMIT:
                raise InputError(f"{where}: operand {name}: got {key}={value}, expected a whole number from 1 to 2^31.")
        rows, cols, tile_rows, tile_cols, width = (shape[key] for key in _FIELDS)
        added = layout.add(
            name, rows, cols, min(tile_rows, rows), min(tile_cols, cols), width, shape.get("copies", 1)
        )  # fmt: skip
        if added.shares_lines:
            raise InputError(
                f"{where}: {name} would be touched {tile_cols} values ({tile_cols * width} bytes) wide, expected a "
                "multiple of 128 bytes; give narrower accesses as tiles of one line."
            )
    return layout


def _trace(content: _Content, where: str) -> Trace:
    layout = _layout(content, where)
    operand, row, col, op = (content.columns[name] for name in _REQUIRED)
    if len(operand) == 0:
        raise InputError(f"{where}: got no touch at all, expected at least one.")
    copy = content.columns.get("copy", np.zeros(len(operand), np.int64))
    limits = np.array([(s.copies, *s.grid) for s in layout.operands], np.int64)
    first = np.array([s.first for s in layout.operands], np.int64)
    if int(operand.min()) < 0 or int(operand.max()) >= len(layout.names):
        raise InputError(f"{where}: got operand {int(operand.max())}, expected an index into {layout.names}.")
    for i, (name, value) in enumerate((("copy", copy), ("row", row), ("col", col))):
        limit = limits[operand, i]
        wrong = np.flatnonzero((value < 0) | (value >= limit))
        if len(wrong):
            at = int(wrong[0])
            of, most = layout.names[operand[at]], int(limit[at]) - 1
            raise InputError(
                f"{where}: touch {at + 1}: got {name} {int(value[at])} of operand {of}, expected 0 to {most}."
            )
    if op.min() < 0 or op.max() > 1:
        raise InputError(f"{where}: got op {int(op.min())} to {int(op.max())}, expected 0 (read) or 1 (write).")
    sm = content.columns.get("sm")
    highest = -1 if sm is None else int(sm.max())
    if sm is not None and (int(sm.min()) < 0 or highest >= _MAX_SMS):
        raise InputError(f"{where}: got sm {int(sm.min())} to {highest}, expected 0 to {_MAX_SMS - 1}.")
    sms = 0 if sm is None else max(content.sms, highest + 1)
    ids = (first[operand] + (copy * limits[operand, 1] + row) * limits[operand, 2] + col).astype(np.int32)
    source = chunked(ids, op.astype(np.uint8), None if sm is None else sm.astype(np.int32))
    lines, of_tile = layout.tile_lines(), layout.tile_operand()
    return Trace(tuple(layout.names), lines, of_tile, len(ids), source, tuple(layout.operands), sms)


def _read_csv(file: TextIO, where: str) -> _Content:
    content = _Content([], [], {}, 0)
    number, sms = 0, 0
    names: list[str] = []
    lines = lines_of(file, where)
    for line in lines:
        number += 1
        text = line.strip()
        if text.startswith("#"):
            words = text[1:].split()
            if words[:2] == ["pebble", "trace"] and words[2:] != [_VERSION]:
                got = " ".join(words[2:])[:40]
                raise InputError(
                    f"{where}, line {number}: got a trace of version {got!r}, expected {_VERSION}, which pebble reads."
                )
            if words[:1] == ["operand"]:
                content.names.append(_second(words, where, number))
                content.shapes.append(_shape(words[2:], where, number))
            elif words[:1] == ["sms"]:
                sms = _number(_second(words, where, number), where, number)
        elif text:
            names = [word.strip().lower() for word in text.split(",")]
            break
    missing = [c for c in _REQUIRED if c not in names]
    if missing:
        raise InputError(f"{where}, line {number}: the columns {', '.join(missing)} are missing; got {names}.")
    index = {name: i for i, name in enumerate(content.names)}
    wanted = [(c, names.index(c)) for c in _COLUMNS if c in names]
    result: dict[str, list[int]] = {c: [] for c, _ in wanted}
    for cells in csv.reader(lines):
        number += 1
        if not cells or cells[0].lstrip().startswith("#"):
            continue
        for column, at in wanted:
            cell = cells[at].strip() if at < len(cells) else ""
            if column == "operand":
                if cell not in index:
                    raise InputError(f"{where}, line {number}: got operand {cell!r}, expected one of {content.names}.")
                result[column].append(index[cell])
            elif column == "op":
                if cell.lower() not in ("r", "w"):
                    raise InputError(f"{where}, line {number}: got op {cell!r}, expected r or w.")
                result[column].append(int(cell.lower() == "w"))
            else:
                result[column].append(_number(cell, where, number))
        if len(result["op"]) > MAX_CSV_TOUCHES:
            raise InputError(f"{where}: got more than {MAX_CSV_TOUCHES} touches, expected NPZ for long traces.")
    arrays = {column: np.array(values, np.int64) for column, values in result.items()}
    return content._replace(columns=arrays, sms=sms)


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
        if key not in ("copies", *_FIELDS):
            raise InputError(f"{where}, line {line}: got {word[:40]!r}, expected {', '.join(_FIELDS)} or copies.")
        shape[key] = _number(value, where, line)
    return shape


def _read_npz(path: Path, where: str) -> _Content:
    try:
        with np.load(path, allow_pickle=False) as file:
            data = {name: file[name] for name in file.files}
    except (ValueError, zipfile.BadZipFile, EOFError) as error:
        raise InputError(f"{where}: it is not an NPZ file of plain arrays: {error}.") from None
    missing = [name for name in (*_REQUIRED, "names", "shapes") if name not in data]
    if missing:
        raise InputError(f"{where}: the arrays {', '.join(missing)} are missing; it has {', '.join(sorted(data))}.")
    touched = {name: data[name] for name in _COLUMNS if name in data}
    count = len(np.atleast_1d(data["op"]))
    for name, array in touched.items():
        if array.ndim != 1 or len(array) != count or not np.issubdtype(array.dtype, np.integer):
            raise InputError(f"{where}: got {name} of type {array.dtype}{array.shape}, expected {count} integers.")
    if count > MAX_NPZ_TOUCHES:
        raise InputError(f"{where}: got {count} touches, expected at most {MAX_NPZ_TOUCHES}.")
    names = [str(name) for name in np.atleast_1d(data["names"])]
    shapes = np.atleast_2d(data["shapes"])
    if shapes.shape != (len(names), 6) or not np.issubdtype(shapes.dtype, np.integer):
        raise InputError(f"{where}: got shapes of shape {shapes.shape}, expected integers of shape ({len(names)}, 6).")
    rows = [dict(zip(("copies", *_FIELDS), (int(v) for v in row), strict=True)) for row in shapes]
    sms = int(data["sms"]) if "sms" in data and data["sms"].ndim == 0 else 0
    return _Content(names, rows, {name: array.astype(np.int64) for name, array in touched.items()}, sms)


def write_trace(trace: Trace, path: str | Path) -> None:
    """Write a trace; the suffix gives the format, .csv or .npz.

    Raises
    ------
    InputError
        Another suffix, a trace without shapes, or one that is too long.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    check_output(path, "--write-trace", (".csv", ".npz"))
    if not trace.operands:
        raise InputError("trace: got a trace whose operands have no shapes, expected one that pebble made.")
    limit = MAX_CSV_TOUCHES if suffix == ".csv" else MAX_NPZ_TOUCHES
    if trace.touches > limit:
        raise InputError(f"trace: got {trace.touches} touches, expected at most {limit} in a {suffix} file.")
    with faults(path, "trace ", "written"):
        _write_csv(trace, path) if suffix == ".csv" else _write_npz(trace, path)


def _places(trace: Trace, ids: NDArray[np.int32]) -> NDArray[np.int64]:
    """(operand, row, col, copy) of each touch."""
    first = np.array([s.first for s in trace.operands], np.int64)
    at = np.searchsorted(first, ids, side="right") - 1
    rows, cols = (np.array([s.grid[i] for s in trace.operands], np.int64)[at] for i in (0, 1))
    inside = ids - first[at]
    return np.stack([at, inside // cols % rows, inside % cols, inside // (rows * cols)])


def _sizes(s: OperandTiles) -> tuple[int, ...]:
    """The values of `_FIELDS`."""
    return s.rows, s.cols, s.tile_rows, s.tile_cols, s.element_bytes


def _names(trace: Trace) -> list[str]:
    """A name for each operand that is laid out; where several shapes share one, the later ones are numbered."""
    results: list[str] = []
    for s in trace.operands:
        name = trace.operand_names[s.operand]
        results.append(name if name not in results else f"{name}.{len(results)}")
    if len(results) > _MAX_NAMES:
        raise InputError(f"trace: got matrices of {len(results)} shapes, expected at most {_MAX_NAMES} in a file.")
    return results


def _write_csv(trace: Trace, path: Path) -> None:
    names = _names(trace)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"# pebble trace {_VERSION}\n")
        for name, s in zip(names, trace.operands, strict=True):
            copies = f" copies={s.copies}" if s.copies > 1 else ""
            fields = " ".join(f"{key}={value}" for key, value in zip(_FIELDS, _sizes(s), strict=True))
            file.write(f"# operand {name} {fields}{copies}\n")
        file.write(f"# sms {trace.sms}\n" if trace.sms else "")
        file.write("operand,row,col,op,sm,copy\n" if trace.sms else "operand,row,col,op,copy\n")
        for chunk in trace.chunks_alone():
            operand, row, col, copy = _places(trace, chunk.ids).tolist()
            sms = [f"{v}," for v in chunk.sm.tolist()] if chunk.sm is not None else [""] * len(row)
            ops = ["w" if op else "r" for op in chunk.ops.tolist()]
            file.writelines(
                f"{names[o]},{r},{c},{op},{sm}{at}\n"
                for o, r, c, op, sm, at in zip(operand, row, col, ops, sms, copy, strict=True)
            )


def _write_npz(trace: Trace, path: Path) -> None:
    chunks = list(trace.chunks_alone())
    places = np.concatenate([_places(trace, chunk.ids).astype(np.int32) for chunk in chunks], axis=1)
    arrays = {
        "operand": places[0].astype(np.uint8),
        "row": places[1],
        "col": places[2],
        "copy": places[3],
        "op": np.concatenate([chunk.ops for chunk in chunks]),
        "names": np.array(_names(trace)),
        "shapes": np.array([[s.copies, *_sizes(s)] for s in trace.operands], np.int64),
        "sms": np.array(trace.sms),
    }
    if trace.sms:
        arrays["sm"] = np.concatenate([chunk.sm for chunk in chunks])
    np.savez_compressed(path, **arrays)
