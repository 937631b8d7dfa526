"""What ``ncu --csv`` printed: the table, found among the program's own output, and its two pages. Details has one row
per launch and metric; raw has a row of units, then one row per launch.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from dataclasses import dataclass, field

from pebble.counters.profile import Draft, Style
from pebble.errors import InputError
from pebble.system.files import shown

_DELIMITERS = ",;\t"
_MOST_JOINED = 60  # lines of one record: a rule's description may have several
NO_HEADER = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
    "Device", "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value",
)  # fmt: skip # the long layout's columns, for a table whose header was cut off


@dataclass
class CsvTable:
    """Rows under one header; a report may hold several, one after another."""

    header: list[str]
    rows: list[list[str]] = field(default_factory=list)
    broken: int = 0  #: rows that could not be read, or not to their end
    open_end: bool = False  #: the file ends without an end of line, and its cells have no quotes

    @property
    def is_long(self) -> bool:
        """One row a metric, not one a launch."""
        return "Metric Name" in self.header


def decode(content: bytes) -> str:
    """Text of a report: UTF-8 or, as PowerShell redirects, UTF-16; what is neither is replaced."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", "replace")
    return content.decode("utf-8-sig", "replace")


def read_tables(path: str, content: bytes) -> tuple[list[CsvTable], list[str]]:
    """The tables of a report, and the lines beside them.

    Raises
    ------
    InputError
        No table at all.
    """
    tables: list[CsvTable] = []
    remarks: list[str] = []
    delimiter, bare = ",", False  # a table whose cells are not quoted, as a spreadsheet saves it
    lines = decode(content).replace("\0", "").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for record, whole in _records(lines):
        result = _header(record)
        if result is not None:
            delimiter, header = result
            bare = not record.startswith('"')
            tables.append(CsvTable(header))
            continue
        is_row = record.startswith('"') or (bare and (record[:1].isdigit() or record.startswith(delimiter)))
        cells = _cells(record, delimiter) if is_row else None
        if cells is None or len(cells) < 2:
            remarks.append(record)
        elif not tables and _is_bare_row(cells):
            tables.append(CsvTable(list(NO_HEADER), [cells]))
        elif not tables:
            remarks.append(record)
        elif whole:
            tables[-1].rows.append(cells)
        else:
            tables[-1].rows.append(cells[:-1])  # its last cell is cut off, and a number cut off is another number
    if tables and bare and lines[-1].strip():
        tables[-1].open_end = True
    if not tables:
        raise InputError(
            f"{shown(path)}: there is no table of Nsight Compute in it{_what_it_says(remarks)}; expected a .ncu-rep, "
            "or what `ncu --csv` or `ncu --import FILE.ncu-rep --csv --page raw` prints."
        )
    return tables, remarks


def _what_it_says(lines: list[str]) -> str:
    """What ncu says when it profiled nothing."""
    for line in lines:
        if line.startswith("==ERROR==") or "No kernels were profiled" in line:
            return f" ({line.strip('= ')[:160]})"
    return ""


def _records(lines: list[str]) -> Iterator[tuple[str, bool]]:
    """Lines, those that a quoted cell spans joined; and whether all quotes are closed."""
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if not line.strip():
            continue
        if line[:1] in ('"', "\ufeff") and line.count('"') % 2:
            quotes, end = line.count('"'), at
            while quotes % 2 and end < len(lines) and end < at + _MOST_JOINED and not lines[end].startswith('"'):
                quotes += lines[end].count('"')
                end += 1
            if quotes % 2 == 0:
                yield "\n".join([line, *lines[at:end]]).lstrip("\ufeff"), True
                at = end
                continue
            yield line.lstrip("\ufeff"), False
            continue
        yield line.lstrip("\ufeff"), True


def _cells(record: str, delimiter: str) -> list[str] | None:
    try:
        rows = list(csv.reader([record.replace("\n", " ")], delimiter=delimiter))
    except csv.Error:
        return None
    return [cell.strip() for cell in rows[0]] if rows else None


def _header(record: str) -> tuple[str, list[str]] | None:
    """The delimiter and the columns, if this is a header."""
    if "Kernel Name" not in record:
        return None
    for delimiter in _DELIMITERS:
        cells = _cells(record, delimiter)
        if cells and "Kernel Name" in cells and "ID" in cells:
            return delimiter, cells
    return None


def _is_bare_row(cells: list[str]) -> bool:
    """A row of the long layout, told by its metric."""
    at = NO_HEADER.index("Metric Name")
    return len(cells) > at + 2 and "__" in cells[at] and cells[0].isdigit() and " " not in cells[at]


_SECTIONLESS = "Command line profiler metrics"


def read_long(table: CsvTable, style: Style) -> list[Draft]:
    """The launches of a long table; rows of rules have no metric and are passed over."""
    at = {name: number for number, name in enumerate(table.header)}
    ident_at, name_at, value_at = at["ID"], at["Metric Name"], at.get("Metric Value")
    unit_at, section_at = at.get("Metric Unit"), at.get("Section Name")
    drafts: dict[tuple[str, ...], Draft] = {}
    for row in table.rows:
        if len(row) <= max(name_at, ident_at) or not row[ident_at].isdigit():
            table.broken += 1
            continue

        def cell(column: int | None, row: list[str] = row) -> str:
            return row[column] if column is not None and column < len(row) else ""

        key = tuple(cell(at.get(column)) for column in ("ID", "Process ID"))
        draft = drafts.get(key)
        if draft is None:
            draft = drafts[key] = Draft(cell(ident_at), cell(at.get("Kernel Name")))
            draft.set_base({column: cell(number) for column, number in at.items() if number < name_at})
        name, section = cell(name_at), cell(section_at)
        if not name:
            continue
        if value_at is None or value_at >= len(row):
            table.broken += 1
            continue
        bare = "__" in name or section in ("", _SECTIONLESS)
        draft.add(name if bare else f"{section}: {name}", cell(value_at), cell(unit_at), style)
    return list(drafts.values())


BASE = frozenset({
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream", "Block Size",
    "Grid Size", "Device", "CC",
})  # fmt: skip


def read_wide(table: CsvTable, style: Style) -> tuple[list[Draft], list[str]]:
    """The launches of a wide table, and notes."""
    notes = []
    header, rows = table.header, table.rows
    units = [""] * len(header)
    ident = header.index("ID")
    metrics = [number for number, name in enumerate(header) if name and name not in BASE]
    if rows and ident < len(rows[0]) and not rows[0][ident]:
        units = (rows[0] + units)[: len(header)]
        rows = rows[1:]
    elif metrics:
        notes.append("the row of units is missing; every number is taken in base units (byte, ns, hz)")
    drafts = []
    for row in rows:
        if ident >= len(row) or not row[ident].isdigit():
            table.broken += 1
            continue
        table.broken += len(row) < len(header)
        draft = Draft(row[ident], "")
        draft.set_base({name: cell for name, cell in zip(header, row, strict=False) if name in BASE})
        for number in metrics:
            if number < len(row):
                draft.add(header[number], row[number], units[number], style)
        drafts.append(draft)
    return drafts, notes
