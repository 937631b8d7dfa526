"""``sweep``: compute what a store lacks of a plan, batch by batch, whatever ends early."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

from pebble import __version__
from pebble.errors import InputError, check_flag
from pebble.reports.options import spelled_out
from pebble.reports.report import Report
from pebble.reports.target import check_options, whole
from pebble.sweeps.axes import read_axes
from pebble.sweeps.columns import DONE, FAILED, REFUSED, AnswerError, read_answer
from pebble.sweeps.plan import plan_of
from pebble.sweeps.runner import Cluster, Local, Runner
from pebble.sweeps.store import SweepStore, UnwritableError
from pebble.sweeps.task import Batch, Task
from pebble.sweeps.work import task_fields
from pebble.system.clock import interrupts_wait
from pebble.system.files import shown
from pebble.system.parallel import cores

MOST_JOBS = 1024
_MOST_RETRIES = 100


@dataclass(frozen=True)
class Progress:
    """Where a sweep is."""

    tasks: int  #: of the plan
    stored: int  #: that the store had
    computed: int  #: since
    seconds: float  #: since

    @property
    def rate(self) -> float:
        """Tasks in a second."""
        return self.computed / self.seconds if self.seconds else 0.0

    @property
    def seconds_left(self) -> float | None:
        """At that rate; None before the first is there."""
        return (self.tasks - self.stored - self.computed) / self.rate if self.computed else None


@dataclass(frozen=True, repr=False)
class Sweep(Report):
    """What a sweep did.

    Attributes
    ----------
    store : str
        The file that has the results.
    tasks, stored : int
        Of the plan, and those of them that the store had already.
    statuses : mapping of str to int
        Of those computed now: how many were ``done``, ``refused`` (the question has no answer) and ``failed``.
    seconds : float
    complete : bool
        False when it was interrupted.
    """

    store: str
    tasks: int
    stored: int
    statuses: Mapping[str, int]
    seconds: float
    complete: bool = True

    question = "sweep"
    old_names = (("kept", "stored"),)

    @property
    def computed(self) -> int:
        """Tasks that were computed now."""
        return sum(self.statuses.values())

    @property
    def rate(self) -> float:
        """Tasks in a second."""
        return self.computed / self.seconds if self.seconds else 0.0

    def summary(self) -> str:
        text = ", ".join(f"{count:,} {status}" for status, count in self.statuses.items() if count)
        left = "" if self.complete else f"; interrupted, {self.tasks - self.stored - self.computed:,} are missing"
        stored = f", {self.stored:,} were there" if self.stored else ""
        return (
            f"{self.store}: {self.tasks:,} task{'s' * (self.tasks != 1)}{stored}, {self.computed:,} computed"
            f"{f' ({text})' if text else ''} in {self.seconds:.1f} s, {self.rate:,.1f} a second{left}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """One row."""
        return [
            {
                "store": self.store,
                "tasks": self.tasks,
                "kept_tasks": self.stored,
                **{f"{status}_tasks": count for status, count in self.statuses.items()},
                "seconds": round(self.seconds, 3),
                "tasks_per_second": round(self.rate, 3),
                "complete": self.complete,
            }
        ]

    def document(self) -> dict[str, Any]:
        return self.rows()[0]


class _Submitted(NamedTuple):
    batch: Batch
    attempt: int


class _Work:
    """What is left to do, what runs, and what becomes of what fails."""

    def __init__(self, batches: Sequence[Batch], store: SweepStore, retries: int) -> None:
        self.left = deque(_Submitted(batch, 1) for batch in batches)
        self.running: dict[int, _Submitted] = {}
        self.statuses = {DONE: 0, REFUSED: 0, FAILED: 0}
        self._store, self._retries, self._key = store, retries, 0

    def feed(self, runner: Runner) -> None:
        """Give the runner what it would take."""
        for _ in range(min(runner.free(), len(self.left))):
            requested = self.left.popleft()
            self._key += 1
            self.running[self._key] = requested
            runner.begin(self._key, requested.batch.message(__version__))

    def end(self, key: int, content: bytes | None, reason: str) -> None:
        """Keep what came back; ask once more for what failed, each task alone, or record why it did."""
        requested = self.running.pop(key)
        tasks = requested.batch.tasks
        try:
            if content is None:
                raise AnswerError(reason)
            rows = read_answer(content, len(tasks), __version__)
        except AnswerError as error:
            rows = [{"status": FAILED, "reason": f"{error}.", "seconds": 0.0} for _ in tasks]
        again = requested.attempt <= self._retries
        stored = []
        for single, task, row in zip(requested.batch.singles(), tasks, rows, strict=True):
            if row["status"] == FAILED and again:
                self.left.append(_Submitted(single, requested.attempt + 1))
            else:
                stored.append(_full(task, row, requested.attempt))
        if stored:
            with interrupts_wait():  # what is stored is counted
                self._store.write(stored)
                for row in stored:
                    self.statuses[row["status"]] += 1

    def run(self, runner: Runner, started: float) -> Iterator[float]:
        """Do all that is left; after every batch, with what is done published, the seconds since the start."""
        self._store.publish()
        while self.left or self.running:
            self.feed(runner)
            for ended in runner.ended():
                self.end(*ended)
                self._store.publish()
                yield time.monotonic() - started

    @property
    def computed(self) -> int:
        return sum(self.statuses.values())


def _full(task: Task, row: Mapping[str, Any], attempts: int) -> dict[str, Any]:
    spec = task_fields(task.question)
    return {**row, **spec, "task_id": task.id, "kind": task.kind, "task": task.text, "attempts": attempts}


class ClusterOptions(TypedDict, total=False):
    """Who may reach a cluster: the address its scheduler listens on, and the files of its TLS."""

    host: str | None
    tls_ca: str | None
    tls_cert: str | None
    tls_key: str | None


@spelled_out(ClusterOptions)
def sweep(
    source: str | Path | Mapping[str, Any],
    store: str | Path,
    *,
    resume: bool = False,
    jobs: int | str | None = None,
    cluster: str | None = None,
    retries: int | str = 2,
    progress: Callable[[Progress], None] | None = None,
    **secured: Unpack[ClusterOptions],
) -> Sweep:
    """Compute every combination of workloads, machines, caches, orders, tiles and solvers, into one store.

    Parameters
    ----------
    source : str, Path or mapping
        A sweep file (`pebble.sweeps.axes`), or a mapping with its keys: ``{"workloads": ["llama-3-8b:*"],
        "tokens": 512, "machines": "all"}``.
    store : str or Path
        A file that ends in ``.duckdb``; it must not exist, unless ``resume``.
    resume : bool
        Compute only what the store lacks. Tasks that failed are computed again.
    jobs : int, optional
        Processes of this computer; by default one a core.
    cluster : str, optional
        Compute on a Dask cluster instead: ``"tcp://HOST:PORT"``, ``"tls://HOST:PORT"``, a scheduler file ending in
        ``.json``, ``"dask"`` for what Dask's own configuration names, or ``"local:N"`` for N Dask processes here.
    retries : int
        How often a task that failed is begun again before its failure is recorded.
    progress : callable, optional
        Called with a `Progress` after every batch.
    host : str, optional
        With ``"local:N"``: the address that the scheduler listens on (127.0.0.1); any other needs TLS.
    tls_ca, tls_cert, tls_key : str, optional
        Files in PEM: the authority, this computer's certificate and its key.

    Returns
    -------
    Sweep
        With ``complete`` False when interrupted by KeyboardInterrupt; the store has all that was done.

    Raises
    ------
    InputError
        A plan, store or cluster that cannot be used; or the disk is full: what was stored before is kept.
    UnknownNameError
        A name that no registry knows.
    """
    started = time.monotonic()
    check_flag("resume", resume)
    retries = whole("--retries", retries, 0, _MOST_RETRIES)
    workers = cores() if jobs is None else whole("--jobs", jobs, 1, MOST_JOBS)
    check_options(secured, ClusterOptions.__optional_keys__, "sweep")
    if cluster is None and any(secured.values()):
        raise InputError("--host, --tls-ca, --tls-cert, --tls-key: expected --cluster with them.")
    if cluster is not None and jobs is not None:
        raise InputError("--jobs: got it with --cluster, which has workers of its own; write --cluster local:N.")
    plan = plan_of(read_axes(source))
    with SweepStore(store, resume) as opened:
        done = opened.done() & plan.ids
        work = _Work(plan.batches(done), opened, retries)
        complete = True
        runner: Runner | None = None
        try:
            if work.left:
                runner = _runner(min(workers, len(work.left)), cluster, secured)
                for seconds in work.run(runner, started):
                    if progress is not None:
                        progress(Progress(len(plan.tasks), len(done), work.computed, seconds))
        except KeyboardInterrupt:
            complete = False
        except UnwritableError as error:
            stored = f"{len(done) + work.computed:,} of {len(plan.tasks):,} tasks are kept"
            raise UnwritableError(error.path, error.why, stored) from None
        finally:
            if runner is not None:
                runner.close()
    seconds = time.monotonic() - started
    return Sweep(shown(store), len(plan.tasks), len(done), work.statuses, seconds, complete)


def _runner(workers: int, cluster: str | None, secured: ClusterOptions) -> Runner:
    """Processes of this computer, or a cluster."""
    if cluster is None:
        return Local(workers)
    files = (secured.get("tls_ca"), secured.get("tls_cert"), secured.get("tls_key"))
    return Cluster(cluster, secured.get("host"), files)
