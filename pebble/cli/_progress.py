"""A bar on the terminal while many things are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pebble.reports.kernel_compare import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


def stderr_bar(text: str = "{task.description}", place: int = 0) -> Bar:
    """Text, bar, count and time on standard error, gone when done; ``place`` is where among them the text stands."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns: list[ProgressColumn] = [BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
    columns.insert(place, TextColumn(text))
    return Bar(*columns, console=Console(stderr=True), transient=True)


@contextmanager
def schedules_bar() -> Iterator[Callable[[int], Progress]]:
    """What `compare` takes as ``progress``, as a bar on standard error."""
    with stderr_bar("{task.description:<28}") as bar:

        def start(total: int) -> Progress:
            task = bar.add_task("simulating", total=total)
            return lambda name: bar.update(task, advance=1, description=name)

        yield start
