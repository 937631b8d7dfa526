"""``.ncu-rep``: whether the file is whole and the command line that made it; and its launches, read through NVIDIA's
``ncu-report`` package in a process of its own, which a damaged file may end.

NVIDIA's reader takes what it can of a file that is cut off, and does not give the command line. The frame is simple:
the four bytes NVR and 0, then records of a length (32 bits, little-endian) and a protocol-buffer message. The first is
the file's; each further one heads a block: field 5 is the length of the payload that follows it, field 3 describes the
session, and in that field 11 begins with the command line.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from typing import Any

from pebble.counters.profile import Container, Draft
from pebble.errors import InputError, PebbleError
from pebble.system.files import faults, shown
from pebble.system.isolation import Library, StoppedError, call

MAGIC = b"NVR\0"
_SESSION, _PAYLOAD, _COMMAND = 3, 5, 11
_VARINT, _DOUBLE, _TEXT, _FLOAT = 0, 1, 2, 5


class _BrokenError(Exception):
    """The bytes are no such message."""


def read_container(content: bytes | mmap.mmap) -> Container:
    """The frame of a file; one that is damaged is not whole.

    Examples
    --------
    >>> read_container(MAGIC + bytes([2, 0, 0, 0, 8, 7])), read_container(b"NVR").whole
    (Container(whole=True, command=''), False)
    """
    command = ""
    try:
        at = _record(content, len(MAGIC)) if content[: len(MAGIC)] == MAGIC else -1
        while 0 <= at < len(content):
            end = _record(content, at)
            head = content[at + 4 : end]
            payload = 0
            for number, value in _fields(head):
                if number == _PAYLOAD and isinstance(value, int):
                    payload = value
                elif number == _SESSION and isinstance(value, bytes):
                    command = command or _command(value)
            at = end + payload
        return Container(at == len(content), command)
    except _BrokenError:
        return Container(False, command)


def _record(content: bytes | mmap.mmap, at: int) -> int:
    """Where a record ends."""
    end = at + 4 + int.from_bytes(content[at : at + 4], "little")
    if at + 4 > len(content) or end > len(content):
        raise _BrokenError
    return end


def _command(session: bytes) -> str:
    for number, value in _fields(session):
        if number == _COMMAND and isinstance(value, bytes):
            result = re.search(rb"[ -~]*\bncu(?:\.exe)?\b[ -~]*", value)
            return result[0].decode("ascii") if result else ""
    return ""


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protocol-buffer message."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        if kind == _TEXT:
            size, at = _varint(message, at)
        elif kind in (_DOUBLE, _FLOAT):
            size = 8 if kind == _DOUBLE else 4
        else:
            raise _BrokenError
        if at + size > len(message):
            raise _BrokenError
        yield key >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            raise _BrokenError
        value |= (message[at] & 127) << shift
        at += 1
        if message[at - 1] < 128:
            return value, at
    raise _BrokenError


_MOST_LAUNCHES = 100_000
Raw = dict[str, Any]


def read_ncu_rep(path: str) -> tuple[list[Draft], Container, list[str]]:
    """The launches of a report, its frame, and notes.

    Raises
    ------
    InputError
        The package is not installed, or cannot read the file.
    """
    where = shown(path)
    try:
        raw: list[Raw] | str = call(Library.NCU, "pebble.counters.ncu_rep:load", path)
    except StoppedError:  # pragma: no cover - nothing stops it
        raise
    except PebbleError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{where}: NVIDIA's reader ended while it read it; the file is damaged or cut off.") from None
    except Exception as error:
        raise InputError(f"{where}: NVIDIA's reader refuses it: {str(error)[:160] or type(error).__name__}.") from None
    if isinstance(raw, str):
        raise InputError(f"{where}: {raw}")
    drafts, damaged = [], 0
    for number, launch in enumerate(raw):
        draft = Draft(str(number), str(launch["kernel"]))
        for name, value, unit in launch["metrics"]:
            draft.put(name, value, unit)
        damaged += launch["damaged"]
        drafts.append(draft)
    container = _frame(path)
    notes = [f"{damaged} metrics could not be read"] if damaged else []
    if not container.whole:
        notes.append("the file is damaged or cut off: launches or metrics may be missing")
    return drafts, container, notes


def _frame(path: str) -> Container:
    """The frame of a file, which may be larger than memory."""
    with faults(path, "report: ", "read"), open(path, "rb") as file:
        try:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return read_container(content)
        except ValueError:  # an empty file
            return read_container(b"")


def load(path: str) -> list[Raw] | str:
    """In the worker: plain data of every launch, or what is wrong."""
    try:
        import ncu_report
    except ImportError:
        return (
            "reading .ncu-rep files needs NVIDIA's package: run `pip install ncu-report`, or give what "
            "`ncu --import FILE.ncu-rep --csv --page raw` prints."
        )
    try:
        context = ncu_report.load_report(path)
    except Exception as error:
        return f"NVIDIA's reader refuses it: {str(error)[:160].strip().rstrip('.') or type(error).__name__}."
    if context is None:
        return "NVIDIA's reader refuses it; the file is damaged, cut off, or of a newer version."
    results: list[Raw] = []
    for number in range(context.num_ranges()):
        held = context.range_by_idx(number)
        for action in range(min(held.num_actions(), _MOST_LAUNCHES - len(results))):
            results.append(_launch(held.action_by_idx(action)))
    return results


def _launch(action: Any) -> Raw:
    metrics, damaged = [], 0
    for name in action.metric_names():
        try:
            metric = action.metric_by_name(name)
            value, unit = metric.value(), str(metric.unit() or "")
        except Exception:
            damaged += 1
            continue
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            continue
        metrics.append((str(name), value if isinstance(value, str) else float(value), unit))
    return {"kernel": action.name(action.NameBase_DEMANGLED) or action.name(), "metrics": metrics, "damaged": damaged}
