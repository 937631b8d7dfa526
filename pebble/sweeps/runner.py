"""Who computes batches: processes of this computer, which are sent JSON and send JSON through pipes; or a Dask
cluster, one that runs already or processes of this computer.

Another runner (`pebble.sweeps.runner`) has the same four methods.

A Dask cluster runs code that its clients send, by design: who reaches its scheduler can run anything on its workers.
So a scheduler started here listens on this computer alone unless it is told otherwise, and then only under TLS. What
comes back is bytes, taken by Dask's own formats without pickle, and checked like any answer.
"""

from __future__ import annotations

import ipaddress
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

from pebble.errors import InputError
from pebble.sweeps.columns import MOST_ANSWER_BYTES
from pebble.sweeps.work import answer
from pebble.system.files import read_bytes, shown
from pebble.system.parallel import cores

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


_CONNECT_SECONDS = 20
_CLOSE_SECONDS = 0.3
_AHEAD = 2  # batches for each thread of a worker, so that none waits for the client
_LOOPBACK = "127.0.0.1"
_KILL = signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL  # Windows ends a process by any signal
_EXPECTED = "tcp://HOST:PORT, tls://HOST:PORT, a scheduler file that ends in .json, dask, or local:N"


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise InputError(
            "--cluster needs Dask, which is not installed; run `pip install 'distributed>=2024.8'`, or leave it out: "
            "processes of this computer need no Dask."
        ) from None
    return distributed


def is_loopback(host: str) -> bool:
    """Whether an address is this computer's own, which no other reaches.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def security(files: tuple[str | None, str | None, str | None]) -> Any:
    """Dask's security object for an authority, a certificate and a key; None without.

    Raises
    ------
    InputError
        Some of the three are missing, or are no files.
    """
    options = ("--tls-ca", "--tls-cert", "--tls-key")
    if not any(files):
        return None
    for option, file in zip(options, files, strict=True):
        if not file:
            raise InputError(f"{option} missing: expected all of {', '.join(options)}, or none of them.")
        if b"-----BEGIN" not in read_bytes(file, f"{option}: ", 2**20):
            raise InputError(f"{option}: {shown(file)}: got a file without a PEM block, expected one in PEM.")
    ca, cert, key = files
    return _distributed().Security(
        require_encryption=True,
        tls_ca_file=ca,
        **{f"tls_{role}_{what}": file for role in ("client", "scheduler", "worker") for what, file in
           (("cert", cert), ("key", key))},
    )  # fmt: skip


def _address(file: str) -> str:
    """The address in a scheduler file, which Dask's deployers write."""
    try:
        result = json.loads(read_bytes(file, "--cluster: ", 2**20))["address"]
    except (ValueError, TypeError, KeyError, RecursionError):
        result = None
    if not isinstance(result, str) or not result.startswith(("tcp://", "tls://")):
        raise InputError(f"--cluster: {shown(file)}: it is no scheduler file, expected JSON with an address.")
    return result


class Cluster:
    """A Dask cluster.

    Parameters
    ----------
    where : str
        See `pebble.sweep`.
    host : str, optional
        What a scheduler started here listens on.
    files : (str or None, str or None, str or None)
        TLS: authority, certificate, key.

    Raises
    ------
    InputError
        No such cluster, or one that would be open to others without TLS.
    """

    def __init__(self, where: str, host: str | None, files: tuple[str | None, str | None, str | None]) -> None:
        self._cluster: Any = None
        self._futures: dict[int, Any] = {}
        self._done: queue.SimpleQueue[int] = queue.SimpleQueue()
        name, _, count = where.partition(":")
        local = name == "local"
        if host and not local:
            raise InputError("--host: got it with a cluster that runs already, expected --cluster local:N.")
        secured = security(files)
        distributed = _distributed()
        if local:
            address = self._start(count, host or _LOOPBACK, secured)
        elif where == "dask":
            import dask

            address = dask.config.get("scheduler-address", None)
            if not address:
                raise InputError("--cluster dask: Dask's configuration has no scheduler-address, expected one.")
        elif where.endswith(".json"):
            address = _address(where)
        elif where.startswith(("tcp://", "tls://")):
            address = where
        else:
            raise InputError(f"--cluster: got {where[:80]!r}, expected {_EXPECTED}.")
        if str(address).startswith("tls://") and secured is None:
            theirs = distributed.Security().get_connection_args("client")  # of Dask's own configuration
            if theirs.get("ssl_context") is None:
                raise InputError(
                    f"--cluster: {str(address)[:80]} takes TLS alone; expected --tls-ca, --tls-cert and --tls-key."
                )
        try:
            self._client = distributed.Client(
                address,
                security=secured,
                timeout=_CONNECT_SECONDS,
                set_as_default=False,
                deserializers=["dask", "msgpack"],
            )
        except Exception as error:  # of every kind: refused, timed out, another protocol, no certificate
            self._stop()
            reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            raise InputError(f"--cluster: {str(address)[:80]} cannot be reached: {reason}.") from None

    def _start(self, count: str, host: str, secured: Any) -> Any:
        workers = cores()
        if count:
            if not count.isdecimal() or not 1 <= int(count[:9]) <= 1024:
                raise InputError(f"--cluster: got local:{count[:20]}, expected local:N with N from 1 to 1024.")
            workers = int(count)
        if not is_loopback(host) and secured is None:
            raise InputError(
                f"--host: got {host[:80]}, which other computers may reach, without TLS; expected --tls-ca, --tls-cert "
                f"and --tls-key with it, or {_LOOPBACK}: who reaches a Dask scheduler can run code here."
            )
        self._cluster = _distributed().LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host=host,
            protocol="tcp://" if secured is None else "tls://",
            dashboard_address=f"{_LOOPBACK}:0",  # what it serves there is for this computer, whatever the host
            worker_dashboard_address=f"{_LOOPBACK}:0",
            security=secured,
            silence_logs=50,
        )
        return self._cluster.scheduler_address

    def free(self) -> int:
        """How many more batches it would take now; one at least waits at a scheduler that has no workers yet."""
        try:
            threads = sum(int(count) for count in self._client.nthreads().values())
        except (OSError, RuntimeError, ValueError):
            raise InputError("--cluster: the scheduler is gone; add --resume to go on with another.") from None
        return max(1, _AHEAD * threads) - len(self._futures)

    def begin(self, key: int, message: bytes) -> None:
        """Submit a batch."""
        future = self._client.submit(answer, message, key=f"pebble-sweep-{os.getpid()}-{key}", pure=False)
        self._futures[key] = future
        future.add_done_callback(lambda _: self._done.put(key))

    def ended(self) -> list[Ended]:
        """Batches that have ended since."""
        try:
            key = self._done.get(timeout=POLL_SECONDS)
        except queue.Empty:
            if self._client.status != "running":
                raise InputError("--cluster: the scheduler is gone; add --resume to go on with another.") from None
            return []
        future = self._futures.pop(key)
        if future.status != "finished":
            return [Ended(key, None, "its worker on the cluster ended early, perhaps for want of memory")]
        try:
            return [Ended(key, future.result(timeout=_CONNECT_SECONDS))]
        except Exception as error:  # whatever a cluster of others sends is a failure of the task alone
            return [Ended(key, None, f"its answer could not be read: {type(error).__name__}")]

    def close(self) -> None:
        """Leave the cluster; one that was started here is ended. Nobody waits long for it."""
        if self._futures and self._cluster is not None:
            self._kill()
        closing = threading.Thread(target=self._close, daemon=True, name="pebble-sweep")
        closing.start()
        closing.join(_CLOSE_SECONDS if self._futures else None)

    def _kill(self) -> None:
        """End the processes that were started here, whatever they compute: Dask would wait for it."""
        self._cluster.shutdown_on_close = False  # or the end of this process waits
        for nanny in self._cluster.workers.values():
            with suppress(AttributeError, OSError, TypeError):
                os.kill(nanny.process.pid, _KILL)

    def _close(self) -> None:
        with suppress(Exception):
            self._client.cancel(list(self._futures.values()), force=True)
        with suppress(Exception):
            self._client.close(timeout=_CLOSE_SECONDS)
        self._stop()

    def _stop(self) -> None:
        if self._cluster is not None:
            with suppress(Exception):
                self._cluster.close(timeout=_CLOSE_SECONDS)
