"""Printing: JSON on stdout alone, or plain text that fits the terminal; and what is being done, and how far it is,
while it takes its time.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pebble.reports.report import Report, header
from pebble.system.clock import stderr_bar

if TYPE_CHECKING:  # which load all that simulates
    from pebble.reports import simulated_orders
    from pebble.tuning import Progress

_SHORTEST_NAMES = {1: 30, 2: 12}  # characters left of one name, or of each of two, before a column of `keep` goes

_command: list[str] = []


def set_command(words: Sequence[str]) -> None:
    """The command line that is being answered, for the documents."""
    _command[:] = words


def print_json(document: dict[str, Any], indent: int | None = 2) -> None:
    """One JSON document on stdout, which says the schema, the program's version and the command."""
    json.dump({**header(shlex.join(_command)), **document}, sys.stdout, indent=indent)
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


def tell(text: str) -> None:
    """Print text on stderr: wrapped on a terminal, in a log, which others read by lines, as it is; paths stay whole."""
    if sys.stderr.isatty():
        text = textwrap.fill(text, width(), subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
    print(text, file=sys.stderr, flush=True)


def say_command(head: str, command: str, indent: str) -> None:
    """Print a command behind a head; a shell takes it as it stands, on several lines too; options keep their values."""
    paired = re.sub(r" (--?[a-z][\w-]*) (?=[^\s-])", " \\1\xa0", command)
    lines = textwrap.wrap(
        paired, width() - 2, initial_indent=head, subsequent_indent=indent, break_on_hyphens=False,
        break_long_words=False,
    )  # fmt: skip
    print(" \\\n".join(lines).replace("\xa0", " "))


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1, keep: Sequence[str] = ()) -> str:
    """A plain table: the first ``left`` columns to the left, numbers to the right.

    Where the terminal is too narrow, columns are left out, the last first, and a line below names them; a row stays
    one line. Those of ``keep`` go at the very end, the last of them first, and only where shortened names make no room
    for them. A file or a pipe without a stated width (``COLUMNS``) gets all columns.
    """
    cells = [list(headers), *[list(row) for row in rows]]
    space = width() if sys.stdout.isatty() or os.environ.get("COLUMNS") else sys.maxsize
    widths = [max(len(row[i]) for row in cells) for i in range(len(headers))]
    shown = list(range(len(headers)))
    columns = sorted((i for i in shown[1:] if headers[i] in keep), key=lambda i: keep.index(headers[i]))
    # what goes first: numbers from the right, then further columns of text
    others = sorted((i for i in shown[1:] if i not in columns), key=lambda i: (i >= left, i))
    least = min(2, len(shown))
    while others and len(shown) > least and _across(widths, shown) > space:
        shown.remove(others.pop())
    cut = [min(width, _SHORTEST_NAMES.get(left, 12)) if i < left else width for i, width in enumerate(widths)]
    while columns and len(shown) > least and _across(cut, shown) > space:
        shown.remove(columns.pop())
    for i in sorted((i for i in shown if i < left), key=lambda i: -widths[i]):
        widths[i] = max(cut[i], widths[i] - max(0, _across(widths, shown) - space))
    if (over := _across(widths, shown) - space) > 0:
        widest = max(shown, key=lambda i: widths[i])
        widths[widest] = max(4, widths[widest] - over)
    lines = ["  ".join(_cell(row[i], widths[i], i < left) for i in shown) for row in cells]
    out = [lines[0].rstrip(), "-" * min(space, len(lines[0])), *(line.rstrip() for line in lines[1:])]
    hidden = [headers[i] for i in range(len(headers)) if i not in shown]
    if hidden:
        text = f"left out at {space} columns: {', '.join(hidden)} (a wider terminal shows them)"
        out.append(textwrap.fill(text, space, subsequent_indent="  ", break_on_hyphens=False))
    return "\n".join(out)


def _across(widths: Sequence[int], shown: Sequence[int]) -> int:
    return sum(widths[i] for i in shown) + 2 * (len(shown) - 1)


def _cell(text: str, space: int, left: bool) -> str:
    text = text if len(text) <= space else text[: space - 3] + "..."
    return text.ljust(space) if left else text.rjust(space)


@contextmanager
def stages(of: str) -> Iterator[Callable[[str], object]]:
    """A function that says what begins: with the seconds since on a terminal, else (the log of a job) in a line."""
    if not sys.stderr.isatty():
        yield lambda stage: tell(f"pebble: {of}: {stage}")
        return
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import TextColumn, TimeElapsedColumn
    from rich.table import Column

    seconds = TimeElapsedColumn(Column(min_width=7))
    what = TextColumn("{task.description}", table_column=Column())  # which may take a second line
    with Bar(seconds, what, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        yield lambda stage: bar.reset(task, description=stage)


@contextmanager
def schedules_bar() -> Iterator[Callable[[int], simulated_orders.Progress]]:
    """What `compare` takes as ``progress``, as a bar on standard error."""
    with stderr_bar("{task.description:<28}") as bar:

        def start(total: int) -> simulated_orders.Progress:
            task = bar.add_task("simulating", total=total)
            return lambda name: bar.update(task, advance=1, description=name)

        yield start


@contextmanager
def search_bar() -> Iterator[Progress]:
    """What `tune` and `tile` take as ``progress``: a bar on standard error where that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda what, done, total: None
        return
    with stderr_bar("{task.description:<34}") as bar:
        task = bar.add_task("simulating", total=None)

        def show(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total or None)

        yield show
