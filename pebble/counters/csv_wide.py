"""``ncu --csv --page raw``: a row of units, then one row per launch, one column per metric."""

from __future__ import annotations

from pebble.counters.base import Draft, Style
from pebble.counters.text import Table

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
