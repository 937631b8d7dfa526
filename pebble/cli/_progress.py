"""What is being done, and how far it is, while it takes its time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pebble.reports import simulated_orders
from pebble.system.clock import stderr_bar
from pebble.tuning import Progress, silent


@contextmanager
def stages(of: str) -> Iterator[Callable[[str], object]]:
    """A function that says what begins: with the seconds since on a terminal, else (the log of a job) in a line."""
    if not sys.stderr.isatty():
        yield lambda stage: print(f"pebble: {of}: {stage}", file=sys.stderr, flush=True)
        return
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import TextColumn, TimeElapsedColumn
    from rich.table import Column

    seconds = TimeElapsedColumn(Column(min_width=7))
    what = TextColumn("{task.description}", table_column=Column())  # which may take a second line
    with Bar(seconds, what, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def tell(stage: str) -> None:
            bar.reset(task, description=stage)

        yield tell


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
        yield silent
        return
    with stderr_bar("{task.description:<34}") as bar:
        task = bar.add_task("simulating", total=None)

        def show(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total or None)

        yield show
