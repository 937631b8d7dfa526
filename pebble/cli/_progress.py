"""A bar on the terminal while schedules are simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pebble.reports.kernel_compare import Progress


@contextmanager
def schedules_bar() -> Iterator[Callable[[int], Progress]]:
    """What `compare` takes as ``progress``, as a bar on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description:<28}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:

        def start(total: int) -> Progress:
            task = bar.add_task("compiling the simulator", total=total)
            return lambda name: bar.update(task, advance=1, description=name)

        yield start
