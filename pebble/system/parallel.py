"""All of a machine: how much memory one table may take, so that what is too large is refused in a sentence before it is
made; and the same work on many things, on all cores.

The caller gets each answer as soon as it is there. When he stops asking (an error, Ctrl-C), work that has not begun is
dropped, and work that has begun ends at its next `check_wanted`; nobody waits for it.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar, cast

from pebble.errors import InputError

MEMORY_BYTES = 4 << 30
_LITTLE = 16 << 20  # bytes that are there anyhow: to ask the system takes longer than to look at such a table


def memory_allowance() -> int:
    """Bytes that one search, trace or cache may fill: `MEMORY_BYTES`, or half of what is free if that is less."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return min(MEMORY_BYTES, int(line.split()[1]) * 512)
    except (OSError, ValueError):
        pass
    return MEMORY_BYTES


def check_memory(what: str, count: int, of: str, bytes_each: int, advice: str) -> None:
    """Refuse what does not fit: ``count`` things ``of`` a kind, each about ``bytes_each`` bytes, all kept at once.

    Raises
    ------
    InputError
        More than `memory_allowance`; the message begins with ``what`` and ends with ``advice`` on how to need fewer.

    Examples
    --------
    >>> check_memory("trace", 10**12, "tiles", 64, "use larger tiles")
    Traceback (most recent call last):
    ...
    pebble.errors.InputError: trace: got 1,000,000,000,000 tiles to keep, about 64,000 GB of memory, ...
    """
    needed = count * bytes_each
    if needed <= _LITTLE or (needed <= MEMORY_BYTES and needed <= memory_allowance()):
        return
    most = memory_allowance() // bytes_each
    raise InputError(
        f"{what}: got {count:,} {of} to keep, about {needed / 1e9:,.0f} GB of memory, expected at most "
        f"{most:,}; {advice}."
    )


_POLL_SECONDS = 0.1
Item = TypeVar("Item")
Answer = TypeVar("Answer")


class NotWantedError(BaseException):
    """Nobody waits for this work any more; like an interrupt, it is no error of the work."""


class _Workers:
    """What the threads of one `each` share."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.reserved: dict[int, int] = {}  # bytes, by thread
        self.changed = threading.Condition()

    def reserve(self, size: int) -> None:
        me = threading.get_ident()
        with self.changed:
            # one that already holds something never waits: two such could wait for each other
            while me not in self.reserved and self.reserved and self.total + size > memory_allowance():
                check_wanted()
                self.changed.wait(_POLL_SECONDS)
            self.reserved[me] = self.reserved.get(me, 0) + size

    @property
    def total(self) -> int:
        """Bytes that are reserved."""
        return sum(self.reserved.values())

    def release(self) -> None:
        with self.changed:
            self.reserved.pop(threading.get_ident(), None)
            self.changed.notify_all()


class _Thread(threading.local):
    """What a thread knows: whose work it does, if it does any."""

    workers: _Workers | None = None


_here = _Thread()


def check_wanted() -> None:
    """Leave work that nobody waits for; to be called every few milliseconds by what may run in `each`.

    Raises
    ------
    NotWantedError
        The caller of `each` has stopped asking.
    """
    workers = _here.workers
    if workers is not None and workers.stop.is_set():
        raise NotWantedError


def reserve(size: int) -> None:
    """Wait until ``size`` bytes fit in the `memory_allowance` beside what runs in other threads of `each`.

    Work that runs alone never waits.
    """
    workers = _here.workers
    if workers is not None:
        workers.reserve(size)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def each(
    work: Callable[[Item], Answer],
    items: Sequence[Item],
    jobs: int | None = None,
    over: Callable[[], bool] | None = None,
) -> Iterator[tuple[int, Answer]]:
    """Do some work on each of some things, side by side.

    Parameters
    ----------
    work : callable
        Of one thing; it must not share what it changes.
    items : sequence
        They are begun in their order.
    jobs : int, optional
        Threads; by default one a core. With one, or inside another `each`, everything runs in the caller's thread.
    over : callable, optional
        Asked while answers are waited for: once it is true there are no more, and what has begun is left.

    Yields
    ------
    (int, answer)
        The index of a thing and its answer, in the order in which answers come.

    Raises
    ------
    Exception
        What ``work`` raises.

    Examples
    --------
    >>> sorted(each(abs, [-3, 2], jobs=2))
    [(0, 3), (1, 2)]
    """
    threads = min(cores() if jobs is None else jobs, len(items))
    if not items or _here.workers is not None or (threads <= 1 and over is None):
        for index, item in enumerate(items):
            yield index, work(item)
        return
    workers, left = _Workers(), iter(range(len(items)))
    answers: queue.SimpleQueue[tuple[int, Answer | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        _here.workers = workers
        for index in left:  # one `next` at a time: a range's iterator is whole under Python's lock
            if workers.stop.is_set():
                return
            try:
                answers.put((index, work(items[index]), None))
            except BaseException as error:
                answers.put((index, None, error))
            finally:
                workers.release()

    for _ in range(max(1, threads)):
        threading.Thread(target=run, daemon=True, name="pebble-each").start()
    try:
        for _ in items:
            while True:  # a wait without end is not interrupted by a signal that another thread receives
                if over is not None and over():
                    return
                try:
                    index, answer, error = answers.get(timeout=_POLL_SECONDS)
                    break
                except queue.Empty:
                    pass
            if error is not None:
                raise error
            yield index, cast(Answer, answer)  # there is one, as there is no error
    finally:
        workers.stop.set()
