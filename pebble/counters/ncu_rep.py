"""``.ncu-rep``: through NVIDIA's ``ncu-report`` package, in a process of its own, which a damaged file may end."""

from __future__ import annotations

import mmap
from typing import Any

from pebble.counters.base import Draft
from pebble.counters.container import Container, read_container
from pebble.errors import InputError, PebbleError
from pebble.system.files import faults, shown
from pebble.system.isolation import Library, StoppedError, call

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
