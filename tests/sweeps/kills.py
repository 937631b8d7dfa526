"""Run a sweep again and again, each time killed somewhere, until it is complete; `test_kills` compares what it leaves.

    python tests/sweeps/kills.py FOLDER KILLS SEED

Children of this process are killed as by ``kill -9``: at a random time, before or after any statement to the store, or
by the loss of a worker process while the sweep goes on. Writes one JSON line: how many were killed, of which kind.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import duckdb  # noqa: F401  # before the forks, which then begin at once

import pebble
import pebble.sweeps.sweep as room
from pebble.sweeps.runner import Ended, Local
from pebble.sweeps.store import SweepStore
from pebble.sweeps.work import answer

SWEEP: dict[str, Any] = {
    "workloads": [{"family": "gemm", "m": [64, 128, 192, 256], "n": 128, "k": [64, 128]}],
    "machines": ["a40"],
    "tiles": ["32x32x32", "64x32x32"],
    "orders": ["row", "hilbert", "snake"],
}
TASKS = 4 * 2 * 2 * 3
KINDS = ("time", "statement", "time", "statement", "worker")
LOST = 7  # exit status: complete, though it lost workers


class Here:
    """A runner in this very process: what is killed is then the client alone, a hundred times in seconds."""

    def __init__(self, jobs: int) -> None:
        self._ended: list[Ended] = []

    def free(self) -> int:
        return 2 - len(self._ended)

    def begin(self, key: int, message: bytes) -> None:
        self._ended.append(Ended(key, answer(message)))

    def ended(self) -> list[Ended]:
        result, self._ended = self._ended, []
        return result

    def close(self) -> None:
        pass


class Counted:
    """A connection that ends the process before or after its n-th statement."""

    def __init__(self, connection: Any, point: int) -> None:
        self._connection, self._left = connection, point

    def execute(self, *arguments: Any) -> Any:
        self._step()
        result = self._connection.execute(*arguments)
        self._step()
        return result

    def _step(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def close(self) -> None:
        self._connection.close()


def child(store: Path, kind: str, draw: random.Random, seconds: float) -> None:
    """The sweep, with what will end it; a child process."""
    lost: list[int] = []
    if kind == "worker":
        _lose_workers(draw, lost)
    else:
        room.Local = Here
    if kind == "time":
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process, wherever it is
        signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.001, seconds))
    elif kind == "statement":
        point = draw.randrange(1, 60)
        opened = SweepStore.__init__

        def counted(self: Any, *arguments: Any) -> None:
            opened(self, *arguments)
            self._connection = Counted(self._connection, point)

        SweepStore.__init__ = counted
    pebble.sweep(SWEEP, store, resume=True, jobs=2, retries=20)
    os._exit(LOST if lost else 0)


def _lose_workers(draw: random.Random, lost: list[int]) -> None:
    """One worker process is killed now and then; ``lost`` gets their ids."""
    runners: list[Local] = []
    made = Local.__init__

    def seen(self: Local, jobs: int) -> None:
        made(self, jobs)
        runners.append(self)

    Local.__init__ = seen

    def lose() -> None:
        for _ in range(2):
            time.sleep(draw.uniform(0.3, 1.5))
            for process in runners[:1] and draw.sample(runners[0].processes, min(1, len(runners[0].processes))):
                process.process.kill()
                lost.append(process.process.pid)

    threading.Thread(target=lose, daemon=True).start()


def run(store: Path, kind: str, draw: random.Random, seconds: float) -> int:
    """One child; the status it ended with."""
    seed = draw.random()
    pid = os.fork()
    if pid == 0:
        try:
            child(store, kind, random.Random(seed), seconds)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main() -> None:
    folder, kills, draw = Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3]))
    pebble.workload("gemm", m=64, n=64, k=64)
    room.Local = Here
    pebble.sweep(SWEEP, folder / "first.duckdb")  # also loads the compiled loops, before the forks
    began = time.perf_counter()
    pebble.sweep(SWEEP, folder / "undisturbed.duckdb")
    seconds = time.perf_counter() - began
    room.Local = Local
    died = dict.fromkeys(KINDS, 0)
    stores = 0
    while sum(died.values()) < kills:
        store = folder / f"killed-{stores}.duckdb"
        stores += 1
        status = 1
        while status != 0:
            kind = KINDS[sum(died.values()) % len(KINDS)]
            status = run(store, kind, draw, seconds)
            if status == 1:
                sys.exit(f"a run failed that was to be killed by {kind}")
            died[kind] += status != 0
            status = 0 if status == LOST else status  # the sweep outlived its workers
    print(json.dumps({"died": died, "stores": stores}))


if __name__ == "__main__":
    main()
