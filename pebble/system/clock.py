"""A command's time, its Ctrl-C, and its bars: time and Ctrl-C count from when it begins, and both leave what is known
by then; bars are for who waits in front of a terminal or a notebook.
"""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from pebble.errors import InputError, PebbleError

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


_PATIENCE_SECONDS = 2.0
_POLL_SECONDS = 0.05
Answer = TypeVar("Answer")


class OutOfTimeError(PebbleError):
    """Work was left unfinished, because its time was over or somebody asked to stop."""

    exit_code = 3


def check_seconds(what: str, value: object) -> float:
    """A number of seconds, more than 0; InputError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise InputError(f"{what}: got {repr(value)[:40]}, expected seconds, more than 0.")
    return value


class Clock:
    """The time that a command was given: ``seconds`` from ``started`` on, or until ``stop`` is set."""

    def __init__(self, seconds: float, stop: threading.Event | None = None) -> None:
        self.seconds = check_seconds("time limit", seconds)
        self.started = time.monotonic()
        self.stop = stop or threading.Event()

    @property
    def passed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def why_over(self, share: float = 1.0) -> str | None:
        """Why no more should be done, or None; for what may take only a share of the time."""
        if self.stop.is_set():
            return "interrupted"
        return f"time limit of {self.seconds:g} s" if self.passed >= share * self.seconds else None

    def finish(self, work: Callable[[], Answer], limited: bool = True) -> Answer:
        """Do some work in a thread of its own, which is left behind when the time is over.

        Parameters
        ----------
        work : callable
            Whose answer is returned.
        limited : bool
            False: only a request to stop ends it.

        Raises
        ------
        OutOfTimeError
            The time was over first. What the work raises is raised here.
        """
        answer: Future[Answer] = Future()

        def run() -> None:
            try:
                answer.set_result(work())
            except BaseException as error:
                answer.set_exception(error)

        threading.Thread(target=run, daemon=True, name="pebble-work").start()
        while not wait([answer], _POLL_SECONDS).done:
            if self.stop.is_set() or (limited and self.passed >= self.seconds):
                raise OutOfTimeError(f"{self.why_over() or 'time limit'}.")
        return answer.result()


@contextmanager
def interruptible(stop: threading.Event) -> Iterator[None]:
    """Turn the first Ctrl-C into a request to stop with what is known; one that comes later interrupts for good."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    requested = math.inf

    def ask(_number: int, _frame: object) -> None:
        nonlocal requested
        if time.monotonic() > requested + _PATIENCE_SECONDS:  # a terminal or a shell may send one signal twice
            raise KeyboardInterrupt
        requested = min(requested, time.monotonic())
        stop.set()

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Let a Ctrl-C wait until the work within is done: what is short, and would be lost or left by half."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return

    requested: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: requested.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if requested:
            before(*requested[0])


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
