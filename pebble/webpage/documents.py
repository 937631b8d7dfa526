"""The files of a page: each is read within limits, and known by the keys that it has; the workload that a document is
about, made again from its plain data; and certificates, checked while the page is made.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pebble
from pebble.errors import InputError, PebbleError
from pebble.families import DTYPES, FAMILIES
from pebble.reports.verify import verify
from pebble.system.files import check_path, read_bytes, shown
from pebble.workloads.workload import Workload

MAX_FILES = 64
MAX_FILE_BYTES = 16 * 2**20
MAX_ROWS = 20_000
MAX_STORE_ROWS = 200_000  # the page shows questions, of which each has many rows
_STORES = (".duckdb", ".db")
_LONGEST_TEXT = 400
_MOST_VALUES = 2_000_000
_CSV_COLUMNS = {"family", "tile", "order", "execution", "dram_bytes", "dram_read_bytes", "dram_write_bytes"}

# kind -> the keys by which a document is known; the first that fits says what it is
KINDS: dict[str, tuple[str, ...]] = {
    "certificate": ("format", "statement", "claims"),
    "ncu": ("measured", "schedules", "workload"),
    "tune": ("best", "best_daily", "schedules", "search"),
    "curve": ("capacities_bytes", "lower_bound_bytes", "schedules"),
    "compare": ("workload", "schedules"),
    "simulate": ("workload", "schedule", "dram_bytes", "kernel"),
    "solve": ("instance", "capacity", "variant", "moves"),
    "replay": ("instance", "capacity", "legal", "cost"),
    "bound": ("workload", "capacity", "lower_bound"),
    "verify": ("verified", "proved"),
    "audit": ("target", "graph", "operations", "between"),
    "results": ("store", "columns", "rows"),
}


@dataclass(frozen=True)
class Document:
    """A file that was read.

    Attributes
    ----------
    name : str
        Of the file, without its folder.
    kind : str
        A key of ``KINDS``, or ``measured``.
    data : mapping
        Its content; for ``measured`` the rows of a CSV file under ``rows``.
    text : str
        As it was written.
    """

    name: str
    kind: str
    data: Mapping[str, Any]
    text: str


def read_documents(paths: list[str | Path]) -> list[Document]:
    """Read files, JSON or CSV.

    Raises
    ------
    InputError
        None, or too many; one that is too large, unreadable, or none of the known documents.
    """
    if not 1 <= len(paths) <= MAX_FILES:
        raise InputError(f"report: got {len(paths)} files, expected 1 to {MAX_FILES}, as `pebble ... --json` prints.")
    return [read_document(check_path("report", path)) for path in paths]


def read_document(path: str | Path) -> Document:
    """Read one file; errors as for `read_documents`."""
    if Path(path).suffix.lower() in _STORES:
        return _read_store(path)
    content = read_bytes(path, "report: ", MAX_FILE_BYTES)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"report: {shown(path)} is not text, expected JSON as `pebble ... --json` prints.") from None
    name = Path(path).name
    if name.lower().endswith(".csv"):
        return Document(name, "measured", {"rows": _measured_rows(text, path)}, text)
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise InputError(f"report: {shown(path)} is not JSON, expected what `pebble ... --json` prints.") from None
    if isinstance(data, dict):
        for kind, keys in KINDS.items():
            if all(key in data for key in keys):
                _check_size(data, path)
                return Document(name, kind, data, text)
    commands = "compare, curve, bound, solve, replay, simulate, tune, audit or results"
    raise InputError(
        f"report: {shown(path)} is no document that a page shows; expected what {commands} print with --json, a "
        "certificate, or measured rows (.csv)."
    )


def _read_store(path: str | Path) -> Document:
    """The rows of a store of a sweep, through the front door, as the room of sweeps need not be there."""
    result = pebble.results(path, limit=MAX_STORE_ROWS + 1).to_dict()
    if len(result["rows"]) > MAX_STORE_ROWS:
        raise InputError(
            f"report: {shown(path)}: got over {MAX_STORE_ROWS:,} rows, expected at most that many; choose some with "
            "`pebble results STORE --where CONDITION --json`."
        )
    made = result.get("snapshot_time")
    name = Path(path).name if made is None else f"{Path(path).name}, a snapshot of {made}"
    return Document(name, "results", result, "")


def _no_constant(name: str) -> float:
    raise ValueError(name)


def _check_size(data: Mapping[str, Any], path: str | Path) -> None:
    """Refuse lists that would make a page nobody can open, and numbers that are none."""
    waiting: list[Any] = [data]
    count = 0
    while waiting:
        value = waiting.pop()
        count += 1
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"report: {shown(path)}: got a number that is not finite, expected finite numbers.")
        if isinstance(value, int) and abs(value) >= 10**30:
            raise InputError(f"report: {shown(path)}: got a number of over 30 digits, expected smaller ones.")
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        if count > _MOST_VALUES:
            raise InputError(f"report: {shown(path)}: it has over {_MOST_VALUES:,} values, too many for a page.")
    for key in ("schedules", "rows"):
        rows = data.get(key)
        if isinstance(rows, list) and len(rows) > MAX_ROWS:
            raise InputError(f"report: {shown(path)}: got {len(rows):,} {key}, expected at most {MAX_ROWS:,}.")


def _measured_rows(text: str, path: str | Path) -> list[dict[str, str]]:
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""))
        missing = _CSV_COLUMNS - set(reader.fieldnames or ())
        if missing:
            raise InputError(
                f"report: {shown(path)}: measured rows need the columns {', '.join(sorted(missing))}; see "
                "benchmarks/hardware."
            )
        rows = []
        for row in reader:
            rows.append({key: value or "" for key, value in row.items() if isinstance(key, str)})
            if len(rows) > MAX_ROWS:
                raise InputError(f"report: {shown(path)}: got over {MAX_ROWS:,} rows, expected at most that many.")
    except csv.Error as error:
        raise InputError(f"report: {shown(path)}: not CSV: {error}.") from None
    return rows


def _is_size(value: object) -> bool:
    """Whether it is a number that can stand on a log axis, or 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value == 0 or 1e-9 <= value <= 1e30


class Fields:
    """A part of a document whose keys are checked as they are read, so that a wrong one is one sentence.

    Examples
    --------
    >>> Fields({"bytes": 3}, "c.json").whole("bytes")
    3
    """

    def __init__(self, data: object, where: str) -> None:
        if not isinstance(data, Mapping):
            raise InputError(f"report: {where}: got {repr(data)[:40]}, expected an object.")
        self._data: Mapping[str, Any] = data
        self.where = where

    def __contains__(self, key: str) -> bool:
        return self._data.get(key) is not None

    def _read(self, key: str, good: Callable[[Any], bool], expected: str) -> Any:
        value = self._data.get(key)
        if not good(value):
            raise InputError(f"report: {shown(self.where)}: {key}: got {repr(value)[:40]}, expected {expected}.")
        return value

    def text(self, key: str, otherwise: str | None = None) -> str:
        """A text, cut where it is very long."""
        if otherwise is not None and key not in self:
            return otherwise
        result: str = self._read(key, lambda v: isinstance(v, str), "a text")
        return result if len(result) <= _LONGEST_TEXT else result[: _LONGEST_TEXT - 3] + "..."

    def number(self, key: str) -> int | float:
        """A number that is not negative."""
        result: int | float = self._read(key, _is_size, "0, or a number from 1e-9 to 1e30")
        return result

    def whole(self, key: str) -> int:
        """A whole number that is not negative."""
        result: int = self._read(key, lambda v: type(v) is int and v >= 0, "a whole number from 0")
        return result

    def maybe(self, key: str) -> int | float | None:
        """A number, or None where there is none."""
        return self.number(key) if key in self else None

    def part(self, key: str) -> Fields:
        """An object inside."""
        return Fields(self._data.get(key), f"{self.where}: {key}")

    def parts(self, key: str) -> list[Fields]:
        """The objects of a list."""
        values = self._read(key, lambda v: isinstance(v, list), "a list")
        return [Fields(value, f"{self.where}: {key} {i + 1}") for i, value in enumerate(values)]

    def numbers(self, key: str) -> list[int | float]:
        """A list of numbers that are not negative."""

        def good(values: Any) -> bool:
            return isinstance(values, list) and all(map(_is_size, values))

        results: list[int | float] = self._read(key, good, "a list of numbers from 0")
        return results

    def texts(self, key: str) -> list[str]:
        """A list of texts; empty where there is none."""
        if key not in self:
            return []
        values = self._read(key, lambda v: isinstance(v, list) and all(isinstance(x, str) for x in v), "texts")
        return [value[:_LONGEST_TEXT] for value in values]

    @property
    def plain(self) -> Mapping[str, Any]:
        """What was read."""
        return self._data


def workload_of(fields: Fields) -> Workload:
    """The workload; InputError where the family or a dimension is none."""
    spec: Mapping[str, Any] = fields.part("workload").plain
    family = FAMILIES.get(str(spec.get("family")))
    if family is None:
        raise InputError(
            f"report: {fields.where}: got the family {str(spec.get('family'))[:40]!r}, expected a known one."
        )
    names = [p.name for p in (*family.parameters, *DTYPES)]
    return family.read({name: spec[name] for name in names if spec.get(name) not in (None, False)})


def title_of(documents: Sequence[Document]) -> str:
    """What documents are about: the first two subjects, and how many more there are."""
    subjects = list(dict.fromkeys(map(_subject, documents)))
    named, others = subjects[:2], len(subjects) - 2
    return "; ".join(named) + (f"; and {others} more" if others > 0 else "")


def _subject(document: Document) -> str:
    """The workload, of a named model its name alone, or the game of a document; else the document's name."""
    fields = Fields(document.data, document.name)
    if isinstance(document.data.get("workload"), Mapping):
        return fields.part("workload").text("label", document.name).partition(" (")[0]
    return fields.text("target" if document.kind == "audit" else "instance", document.name)


def setting(fields: Fields, tiles: Sequence[str] = ()) -> str:
    """Machine, kernel and cache in a line; ``tiles`` are the schedules' own, if they name any."""
    parts = []
    if "machine" in fields:
        parts.append(fields.part("machine").text("name", "a machine"))
    if "kernel" in fields:
        kernel = fields.part("kernel")
        if "sms" in kernel:
            tile = kernel.text("tile", "?") if not tiles else tiles[0] if len(tiles) == 1 else ""
            parts += [f"tile {tile}" if tile else f"{len(tiles)} tiles", f"{kernel.whole('sms')} SMs"]
        if "cache_bytes" in kernel:
            parts.append(f"cache {kernel.whole('cache_bytes') / 2**20:.4g} MiB")
        parts += [kernel.text(key) for key in ("policy", "execution") if key in kernel]
    return ", ".join(parts)


MAX_CHECKED_BYTES = 4 * 2**20


@dataclass(frozen=True)
class Listed:
    """A certificate on the page.

    Attributes
    ----------
    name : str
        Of the file.
    verdict : str
        ``verified``, ``refused`` or ``not checked``.
    sentences : tuple of str
        What it proves, or why not.
    link : str
        A ``data:`` address of its text; empty where there is none to save.
    """

    name: str
    verdict: str
    sentences: tuple[str, ...]
    link: str


def listed(document: Document) -> Listed:
    """A certificate, checked by the stand-alone checker; or what ``pebble verify --json`` said of one.

    Raises
    ------
    InputError
        A verdict that is none.
    """
    fields = Fields(document.data, document.name)
    if document.kind == "verify":
        proved = fields.texts("proved")
        accepted = document.data["verified"] is True
        why = f"refused at {fields.text('step', '?')}: {fields.text('why', '?')}"
        # its word only: what was checked is not here
        return Listed(document.name, "not checked", tuple(proved) if accepted else (why,), "")
    link = "data:application/json;base64," + base64.b64encode(document.text.encode()).decode()
    if len(document.text) > MAX_CHECKED_BYTES:
        return Listed(document.name, "not checked", ("it is large: run `pebble verify` on it",), link)
    try:
        return Listed(document.name, "verified", verify(dict(document.data)).proved, link)
    except PebbleError as error:
        return Listed(document.name, "refused", (str(error),), link)
