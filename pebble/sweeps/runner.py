"""Who computes batches: processes of this computer. They are sent JSON and send JSON, through pipes.

Another runner (`pebble.sweeps.cluster`) has the same four methods.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from pebble.sweeps.columns import MOST_ANSWER_BYTES

POLL_SECONDS = 0.1
_LENGTH_BYTES = 8


class Ended(NamedTuple):
    """A batch that ended: what came back, or why nothing did."""

    key: int
    content: bytes | None
    reason: str = ""


class Runner(Protocol):
    """What computes batches."""

    def free(self) -> int:
        """How many more batches it would take now."""

    def begin(self, key: int, message: bytes) -> None:
        """Take a batch; `ended` will name its key once."""

    def ended(self) -> list[Ended]:
        """Batches that have ended since; waits `POLL_SECONDS` at most."""

    def close(self) -> None:
        """Drop what runs, at once."""


def send(pipe: IO[bytes], content: bytes) -> None:
    """Write a message: its length, then itself."""
    pipe.write(len(content).to_bytes(_LENGTH_BYTES, "big") + content)
    pipe.flush()


def receive(pipe: IO[bytes], most: int) -> bytes | None:
    """Read a message; None at the end of the pipe, or where the message is longer than ``most``."""
    head = pipe.read(_LENGTH_BYTES)
    length = int.from_bytes(head, "big")
    if len(head) < _LENGTH_BYTES or length > most:
        return None
    content = pipe.read(length)
    return content if len(content) == length else None


class _Process:
    """A worker process; it ends when its pipe does, that is at the latest with this process."""

    def __init__(self, said: queue.SimpleQueue[tuple[_Process, bytes | None]]) -> None:
        root = str(Path(__file__).parents[2])  # also where pebble is run without being installed
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "pebble.sweeps.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([root, *filter(None, sys.path)])},
            start_new_session=True,  # Ctrl-C is for the caller
        )
        self.key: int | None = None
        self._said = said
        threading.Thread(target=self._listen, daemon=True, name="pebble-sweep").start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        content: bytes | None = b""
        while content is not None:
            try:
                content = receive(self.process.stdout, MOST_ANSWER_BYTES)
            except (OSError, ValueError):
                content = None
            self._said.put((self, content))

    def ask(self, key: int, message: bytes) -> None:
        assert self.process.stdin is not None
        self.key = key
        with suppress(OSError):  # it has ended, which its answer says
            send(self.process.stdin, message)

    def kill(self) -> int:
        self.process.kill()
        status = self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()
        return status


class Local:
    """Worker processes on this computer.

    Parameters
    ----------
    jobs : int
        How many; each computes one batch at a time.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._said: queue.SimpleQueue[tuple[_Process, bytes | None]] = queue.SimpleQueue()
        self.processes: list[_Process] = []

    def free(self) -> int:
        """How many more batches it would take now."""
        return self._jobs - sum(process.key is not None for process in self.processes)

    def begin(self, key: int, message: bytes) -> None:
        """Give a batch to a process that waits, or to a new one."""
        waiting = next((process for process in self.processes if process.key is None), None)
        if waiting is None:
            waiting = _Process(self._said)
            self.processes.append(waiting)
        waiting.ask(key, message)

    def ended(self) -> list[Ended]:
        """Batches that have ended since; a process that ended takes its batch with it."""
        try:
            process, content = self._said.get(timeout=POLL_SECONDS)
        except queue.Empty:
            return []
        key, process.key = process.key, None
        reason = ""
        if content is None:
            if process in self.processes:
                self.processes.remove(process)
            process.kill()
            reason = "its worker process ended early, perhaps for want of memory"
        return [] if key is None else [Ended(key, content, reason)]

    def close(self) -> None:
        """End all processes."""
        for process in self.processes:
            process.kill()
        self.processes.clear()
