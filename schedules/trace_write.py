"""Writing traces, in the formats of `pebble.schedules.trace_file`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.files import check_output, faults
from pebble.schedules.trace import OperandTiles, Trace
from pebble.schedules.trace_file import FIELDS, MAX_CSV_TOUCHES, MAX_NPZ_TOUCHES


def _places(shapes: tuple[OperandTiles, ...], ids: NDArray[np.int32]) -> NDArray[np.int64]:
    """(operand, row, col, copy) of each touch."""
    first = np.array([s.first for s in shapes], np.int64)
    order = np.argsort(first)
    at = order[np.searchsorted(first[order], ids, side="right") - 1]
    rows, cols = (np.array([s.grid[i] for s in shapes], np.int64)[at] for i in (0, 1))
    inside = ids - first[at]
    operand = np.array([s.operand for s in shapes], np.int64)[at]
    return np.stack([operand, inside // cols % rows, inside % cols, inside // (rows * cols)])


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
    if not trace.operands or [s.operand for s in trace.operands] != list(range(len(trace.operand_names))):
        raise InputError("trace: got a trace whose operands have no shapes, expected one that pebble made.")
    limit = MAX_CSV_TOUCHES if suffix == ".csv" else MAX_NPZ_TOUCHES
    if trace.touches > limit:
        raise InputError(f"trace: got {trace.touches} touches, expected at most {limit} in a {suffix} file.")
    with faults(path, "trace ", "written"):
        _write_csv(trace, path) if suffix == ".csv" else _write_npz(trace, path)


def _write_csv(trace: Trace, path: Path) -> None:
    names = trace.operand_names
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("# pebble trace 1\n")
        for s in trace.operands:
            copies = f" copies={s.copies}" if s.copies > 1 else ""
            fields = " ".join(f"{key}={getattr(s, key)}" for key in FIELDS)
            file.write(f"# operand {names[s.operand]} {fields}{copies}\n")
        file.write(f"# sms {trace.sms}\n" if trace.sms else "")
        file.write("operand,row,col,op,sm,copy\n" if trace.sms else "operand,row,col,op,copy\n")
        for chunk in trace.chunks():
            operand, row, col, copy = _places(trace.operands, chunk.ids).tolist()
            sms = [f"{v}," for v in chunk.sm.tolist()] if chunk.sm is not None else [""] * len(row)
            ops = ["w" if op else "r" for op in chunk.ops.tolist()]
            file.writelines(
                f"{names[o]},{r},{c},{op},{sm}{at}\n"
                for o, r, c, op, sm, at in zip(operand, row, col, ops, sms, copy, strict=True)
            )


def _write_npz(trace: Trace, path: Path) -> None:
    chunks = list(trace.chunks())
    places = np.concatenate([_places(trace.operands, chunk.ids).astype(np.int32) for chunk in chunks], axis=1)
    shapes = [[s.copies, *(getattr(s, key) for key in FIELDS)] for s in trace.operands]
    arrays = {
        "operand": places[0].astype(np.uint8),
        "row": places[1],
        "col": places[2],
        "copy": places[3],
        "op": np.concatenate([chunk.ops for chunk in chunks]),
        "names": np.array(trace.operand_names),
        "shapes": np.array(shapes, np.int64),
        "sms": np.array(trace.sms),
    }
    if trace.sms:
        arrays["sm"] = np.concatenate([chunk.sm for chunk in chunks])
    np.savez_compressed(path, **arrays)
