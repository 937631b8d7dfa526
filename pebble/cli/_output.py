"""Printing: JSON on stdout alone, or plain text that fits the terminal."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from pebble.reports.base import Report, header

_command: list[str] = []


def set_command(words: Sequence[str]) -> None:
    """The command line that is being answered, for the documents."""
    _command[:] = words


def print_json(document: dict[str, Any]) -> None:
    """One JSON document on stdout, which says the schema, the program's version and the command."""
    json.dump({**header(shlex.join(_command)), **document}, sys.stdout, indent=2)
    sys.stdout.write("\n")


def print_report(report: Report, **more: Any) -> None:
    """The document of an answer."""
    print_json({**header("", report.machine), **report.document(), **more, "command": shlex.join(_command)})


def width() -> int:
    """Columns to use: the terminal's, 100 when there is none."""
    return max(40, shutil.get_terminal_size((100, 24)).columns)


def say(text: str, indent: str = "") -> None:
    """Print text wrapped to the terminal, continuation lines indented."""
    print(textwrap.fill(text, width(), initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False))


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A plain table: the first ``left`` columns to the left, numbers to the right.

    Columns that do not fit the terminal move to a second line of their row.
    """
    cells = [list(headers), *[list(row) for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headers))]
    room = width()
    if sum(widths) + 2 * (len(widths) - 1) <= room:
        justify = [str.ljust if i < left else str.rjust for i in range(len(headers))]
        lines = ["  ".join(j(cell, w) for j, cell, w in zip(justify, row, widths, strict=True)) for row in cells]
        return "\n".join([lines[0].rstrip(), "-" * min(room, len(lines[0])), *(line.rstrip() for line in lines[1:])])
    out = []
    for row in cells[1:]:
        out.append(row[0])
        rest = [f"{h} {c}" for h, c in zip(headers[1:], row[1:], strict=True) if c]
        out.append(textwrap.fill("; ".join(rest), room, initial_indent="    ", subsequent_indent="    "))
    return "\n".join(out)
