"""Ctrl-C, a full disk and a curious reader in the middle of a sweep: what is stored is kept, and told in a sentence."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

duckdb = pytest.importorskip("duckdb", reason="the extra `sweep` is not installed")

import pebble  # noqa: E402
from pebble.cli import main  # noqa: E402
from pebble.errors import InputError  # noqa: E402
from pebble.sweeps import sweep as room  # noqa: E402
from pebble.sweeps.runner import Ended  # noqa: E402
from pebble.sweeps.store import SweepStore, reading  # noqa: E402
from tests.sweeps.kills import Here  # noqa: E402
from tests.sweeps.small import SWEEP, TASKS, exported  # noqa: E402

pytestmark = [pytest.mark.posix, pytest.mark.usefixtures("in_this_process")]


def test_an_interrupted_sweep_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(Here):
        def ended(self) -> list[Ended]:
            if len(answered) == 2:
                raise KeyboardInterrupt
            answered.extend(result := super().ended()[:1])
            self._ended = []
            return result

    answered: list[Ended] = []
    monkeypatch.setattr(room, "Local", Interrupted)
    best = pebble.sweep(SWEEP, tmp_path / "r.duckdb")
    assert not best.complete and best.computed == 6
    monkeypatch.setattr(room, "Local", Here)
    assert pebble.sweep(SWEEP, tmp_path / "r.duckdb", resume=True).computed == TASKS - 6


class Disturbed:
    """A connection at which something happens before a statement that begins so."""

    def __init__(self, connection: Any, statement: str, happens: Callable[[], None]) -> None:
        self._connection, self._statement, self._happens = connection, statement, happens

    def execute(self, statement: str, *arguments: Any) -> Any:
        if statement.startswith(self._statement):
            self._happens()
        return self._connection.execute(statement, *arguments)

    def close(self) -> None:
        self._connection.close()


@contextmanager
def disturbed(statement: str, happens: Callable[[], None]) -> Iterator[None]:
    """Stores that are opened have a `Disturbed` connection."""
    opened = SweepStore.__init__

    def begin(self: Any, *arguments: Any) -> None:
        opened(self, *arguments)
        self._connection = Disturbed(self._connection, statement, happens)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SweepStore, "__init__", begin)
        yield


def ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def ctrl_c_is_heard() -> Iterator[None]:
    """A shell starts what runs in its background with SIGINT ignored, and tests with it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c_is_heard")
def test_ctrl_c_while_the_store_writes_keeps_the_batch(tmp_path: Path) -> None:
    with disturbed("INSERT", ctrl_c):
        result = pebble.sweep(SWEEP, tmp_path / "r.duckdb")
    assert not result.complete and result.computed > 0
    assert pebble.sweep(SWEEP, tmp_path / "r.duckdb", resume=True).stored == result.computed


@pytest.mark.usefixtures("ctrl_c_is_heard")
@pytest.mark.parametrize("statement", ["ATTACH", "COPY", "DETACH"])
def test_ctrl_c_while_a_snapshot_is_made_ends_the_sweep(tmp_path: Path, statement: str) -> None:
    with disturbed(statement, ctrl_c):
        assert not pebble.sweep(SWEEP, tmp_path / "r.duckdb").complete
    assert [path.name for path in tmp_path.iterdir()] == ["r.duckdb"]
    assert pebble.sweep(SWEEP, tmp_path / "r.duckdb", resume=True).complete


@pytest.mark.parametrize("statement", ["ATTACH", "COPY", "DETACH"])
def test_a_snapshot_that_cannot_be_made_ends_nothing(tmp_path: Path, statement: str) -> None:
    def full() -> None:
        raise duckdb.IOException('IO Error: Could not write file "next": No space left on device')

    with disturbed(statement, full):
        assert pebble.sweep(SWEEP, tmp_path / "r.duckdb").complete
    assert [path.name for path in tmp_path.iterdir()] == ["r.duckdb"]


def test_a_store_that_is_written_is_read_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.duckdb"
    read = [sys.executable, "-m", "pebble", "results", str(path), "--json"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    link = tmp_path / "link.duckdb"
    with SweepStore(path) as store:
        link.symlink_to(path)
        store.write([{"task_id": "a", "status": "done"}])
        assert main(["results", str(path)]) == 2  # it has no snapshot yet
        assert "wait until it has ended" in capsys.readouterr().err
        store.publish()
        store.write([{"task_id": "b", "status": "done"}])
        store._took = 1e6
        store.publish()  # is not due
        other = subprocess.run(read, env=environment, capture_output=True, text=True, check=True)
        assert json.loads(other.stdout)["rows_by_status"] == {"done": 1}
        assert json.loads(other.stdout)["snapshot_time"].endswith("+00:00")
        store._took = 0.0
        store.publish()
        assert main(["results", str(link)]) == 0
        text = " ".join(capsys.readouterr().out.split())  # wherever its lines are broken
        assert re.search(r", a snapshot of 2\S+ while a sweep writes it: 2 done", text)
    link.unlink()
    result = pebble.results(path)
    assert result.snapshot_time is None and result.counts == {"done": 2}
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_sweep_left_of_snapshots_goes(store: Path) -> None:
    store.with_name("r.duckdb.snapshot").write_bytes(b"old")
    store.with_name(".r.duckdb.snapshot").mkdir()
    with SweepStore(store, resume=True), pytest.raises(InputError, match="wait until it has ended"):
        pebble.results(store)  # and not what is old
    assert list(store.parent.iterdir()) == [store]


@pytest.mark.parametrize("kind", [RuntimeError, duckdb.InterruptException])
def test_a_query_that_ctrl_c_ended_is_an_interrupt(store: Path, kind: type[Exception]) -> None:
    with pytest.raises(KeyboardInterrupt), reading(store):
        raise kind("Query interrupted")  # as DuckDB says it
    with pytest.raises(RuntimeError, match="another"), reading(store):
        raise RuntimeError("another")


@pytest.mark.parametrize("most", [20_000, 600_000])
def test_a_full_disk_is_told_in_a_sentence_and_leaves_no_store(tmp_path: Path, most: int) -> None:
    path = tmp_path / "r.duckdb"
    code = (
        f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))\n"
        f"from pebble.sweeps.store import SweepStore; SweepStore({str(path)!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
    )
    assert "UnwritableError: store" in done.stderr and "it cannot be written" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_in_a_sweep_is_told_in_a_sentence(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, path, commits = tmp_path / "s.toml", tmp_path / "full.duckdb", []
    file.write_text(
        'workloads = [{ family = "gemm", m = [64, 128], n = 64, k = 64 }]\nmachines = ["a40", "a2"]\n'
        'orders = ["row", "column", "snake"]\n'
    )

    def full() -> None:
        commits.append(None)
        if len(commits) == 3:
            why = f'Could not write file "{path}.wal": No space left on device'
            raise duckdb.TransactionException(f"TransactionContext Error: Failed to commit: {why}")

    with disturbed("COMMIT", full):
        assert main(["sweep", str(file), "--store", str(path)]) == 2
    assert capsys.readouterr().err == (
        f"pebble: store {path}: it cannot be written (the disk is full); 6 of 12 tasks are kept; add --resume once it "
        "can be.\n"
    )
    assert pebble.sweep(SWEEP, path, resume=True).stored == 6
    assert exported(path) == exported(store)


def test_what_was_written_before_a_disk_was_full_is_kept(tmp_path: Path) -> None:
    path, most = tmp_path / "r.duckdb", 2_000_000
    code = (
        f"import os, resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))\n"
        "from pebble.sweeps.store import SweepStore, UnwritableError\n"
        f"with SweepStore({str(path)!r}) as store:\n"
        "    for i in range(1000):\n"
        "        print(i, flush=True)\n"
        "        try: store.write([{'task_id': str(i), 'status': 'done', 'reason': os.urandom(50_000).hex()}])\n"
        "        except UnwritableError: break\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    written = int(done.stdout.split()[-1])
    assert 0 < written < 999
    with SweepStore(path, resume=True) as again:
        assert again.done() == {str(i) for i in range(written)}
