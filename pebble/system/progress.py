"""Bars for who waits in front of a terminal or a notebook; nothing anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pebble.errors import InputError

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

Update = Callable[[str, int, int], None]
"""Called with what is done, how many of it, and of how many (0: not known)."""


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    return "ipykernel" in sys.modules


def watched() -> bool:
    """Whether somebody sees a bar."""
    return in_notebook() or (sys.stderr is not None and sys.stderr.isatty())


def stderr_bar(text: str = "{task.description}", place: int = 0) -> Bar:
    """Text, bar, count and time on standard error, gone when done; ``place`` is where among them the text stands."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns: list[ProgressColumn] = [BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
    columns.insert(place, TextColumn(text))
    return Bar(*columns, console=Console(stderr=not in_notebook()), transient=True)


@contextmanager
def bar() -> Iterator[Update]:
    """A bar while the body runs, by tqdm where it is installed, else by rich."""
    if find_spec("tqdm") is not None:
        line: Any = import_module("tqdm.auto").tqdm(leave=False)

        def draw(what: str, done: int, total: int) -> None:
            line.total, line.n = total or None, done
            line.set_description_str(what)

        try:
            yield draw
        finally:
            line.close()
        return
    with stderr_bar("{task.description:<34}") as rich_bar:
        task = rich_bar.add_task("", total=None)
        yield lambda what, done, total: rich_bar.update(task, description=what, completed=done, total=total or None)


@contextmanager
def shown(progress: object) -> Iterator[Update | None]:
    """A bar where one was asked for and somebody sees it; None where not, or where the caller has a function.

    Raises
    ------
    InputError
        ``progress`` is neither True, False, None nor a function.
    """
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise InputError(f"progress: got {repr(progress)[:40]}, expected True, False or a function.")
    if callable(progress) or progress is False or not watched():
        yield None
        return
    with bar() as update:
        yield update


def counting(update: Update | None) -> Callable[[int], Callable[[str], None]]:
    """A bar's update for work that says how many things there are, then which of them is done."""

    def start(total: int) -> Callable[[str], None]:
        done = 0

        def tell(name: str) -> None:
            nonlocal done
            done += 1
            if update is not None:
                update(name, done, total)

        return tell

    return start
