"""The exact-solver libraries, each in a process of its own.

OR-Tools and highspy each carry a version of HiGHS, and whichever is loaded second into one process fails
(google/or-tools#5246). So neither is loaded into the caller's process, which may have either already: a worker process
per library calls it. A process can also be ended at any moment, whatever the library is doing. A worker that has
answered waits for the next call; it ends when its caller does.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import queue
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from pkgutil import resolve_name
from typing import IO, Any

from pebble.errors import PebbleError


class Library(StrEnum):
    """What is loaded in a worker."""

    ORTOOLS = "ortools"
    HIGHS = "highs"
    EXACT = "exact"
    NCU = "ncu-report"  # of NVIDIA, which a damaged file may bring down


class StoppedError(Exception):
    """``call`` ended its worker, as it was asked to."""


_POLL_SECONDS = 0.05
_GRACE_SECONDS = 0.3  # for a worker to end by itself at the time limit, with its last bound
_idle: dict[Library, list[_Worker]] = {}
_lock = threading.Lock()
_here: Library | None = None  # in a worker: what it may load
_answers: IO[bytes] | None = None
_answering = threading.Lock()


class _Worker:
    def __init__(self, library: Library) -> None:
        root = str(Path(__file__).parents[3])  # also where pebble is run without being installed
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "pebble.system.isolation", library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([root, *filter(None, sys.path)])},
            start_new_session=True,  # Ctrl-C is for the caller
        )
        self.said: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True, name=f"pebble-{library}").start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        try:
            while True:
                self.said.put(pickle.load(self.process.stdout))
        except Exception as error:  # the end of the stream, or half a message
            self.said.put(("end", error))

    def ask(self, request: bytes) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):  # it has ended, which its answer says
            self.process.stdin.write(request)
            self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()


def call(
    library: Library,
    function: str,
    *arguments: object,
    hear: Callable[..., object] = lambda *message: None,
    until: Callable[[], bool] = lambda: False,
) -> Any:
    """Call a function, ``"module:name"``, where its library can be loaded; arguments and answer can be pickled.

    Parameters
    ----------
    hear : callable
        Called in this thread with each message that the function gives to `say`.
    until : callable
        When it gives True, the worker is ended.

    Raises
    ------
    StoppedError
        ``until`` gave True.
    PebbleError
        The worker ended by itself. What the function raises is raised here.
    """
    if library is _here:
        return _function(function)(*arguments)
    with _lock:
        waiting = _idle.get(library)
        worker = waiting.pop() if waiting else None
    if worker is None or worker.process.poll() is not None:
        worker = _Worker(library)
    try:
        worker.ask(pickle.dumps((function, arguments)))
        while True:
            if until():
                raise StoppedError
            try:
                kind, content = worker.said.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                continue
            if kind == "said":
                hear(*content)
            elif kind == "end":
                raise PebbleError(
                    f"{library}: its process ended early (exit status {worker.process.wait()}), perhaps for want of "
                    "memory; use another --solver, or a smaller problem."
                )
            else:
                break
    except BaseException:
        worker.kill()
        raise
    with _lock:
        _idle.setdefault(library, []).append(worker)
    if kind == "raised":
        raise content
    return content


def say(*message: object) -> None:
    """In a worker: a message to whom called the function that runs."""
    _answer("said", message)


def solve_in_worker(library: Library, solver: str, best: Any, until: Callable[[], bool] = lambda: False) -> str:
    """Run a solver, a function of an incumbent, in a worker; what it reports there reaches the incumbent here.

    ``solver`` is ``"module:name"``; ``until`` ends the worker too, when it gives True. Returns why the solver stopped.
    """
    out_of_time: float | None = None

    def over() -> bool:
        nonlocal out_of_time
        if best.stop.is_set() or until():
            return True
        if best.seconds_left:  # where the bounds meet, the worker knows it and ends by itself
            return False
        out_of_time = out_of_time or time.monotonic()
        return time.monotonic() > out_of_time + _GRACE_SECONDS

    methods = {"offer": best.offer, "raise_lower": best.raise_lower, "add_details": best.add_details}

    def hear(method: str, *arguments: object) -> None:
        methods[method](*arguments)

    try:
        reason = call(library, "pebble.system.isolation:_solve_here", solver, best, hear=hear, until=over)
    except StoppedError:
        return "proved optimal" if best.closed else "stopped"
    assert isinstance(reason, str)
    return reason


def _solve_here(solver: str, best: Any) -> str:
    """In a worker: run a solver on the copy of an incumbent, and repeat what it reports."""

    def forwarded(name: str, method: Callable[..., object]) -> Callable[..., object]:
        def report(*arguments: object) -> object:
            done = method(*arguments)
            if done is not False or name == "raise_lower":  # a second proof of a bound is news as well
                say(name, *arguments)
            return done

        return report

    best.offer = forwarded("offer", best.offer)
    best.raise_lower = forwarded("raise_lower", best.raise_lower)
    reason: str = _function(solver)(best)
    if best.details:
        say("add_details", best.details)
    return reason


def _function(name: str) -> Callable[..., Any]:
    result: Callable[..., Any] = resolve_name(name)
    return result


def _answer(kind: str, content: object) -> None:
    assert _answers is not None, "say() is for workers"
    message = pickle.dumps((kind, content))
    with _answering:
        _answers.write(message)
        _answers.flush()


def _picklable(error: BaseException) -> BaseException:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError("".join(traceback.format_exception(error)))
    return error


def serve(library: Library) -> None:
    """Answer requests from standard input until it ends, which ends the process at once."""
    global _here, _answers
    _here = library
    _answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    requests: queue.SimpleQueue[tuple[str, tuple[object, ...]]] = queue.SimpleQueue()

    def listen() -> None:
        try:
            while True:
                requests.put(pickle.load(sys.stdin.buffer))
        finally:
            os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        function, arguments = requests.get()
        try:
            _answer("returned", _function(function)(*arguments))
        except BaseException as error:
            _answer("raised", _picklable(error))


def _end_all() -> None:
    with _lock:
        for workers in _idle.values():
            while workers:
                workers.pop().kill()


atexit.register(_end_all)
if sys.platform != "win32":  # the workers are the parent's
    os.register_at_fork(after_in_child=_idle.clear)
