"""The two pages of ``ncu --csv``: details, one row per launch and metric; and raw, a row of units, then one
row per launch, one column per metric.
"""

from __future__ import annotations

from pebble.counters.base import Draft, Style
from pebble.counters.text import Table

_SECTIONLESS = "Command line profiler metrics"


def read_long(table: Table, style: Style) -> list[Draft]:
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


def read_wide(table: Table, style: Style) -> tuple[list[Draft], list[str]]:
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
