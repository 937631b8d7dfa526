"""The store: one writer, whole transactions, data only; and what is asked of it afterwards."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

duckdb = pytest.importorskip("duckdb", reason="the extra `sweep` is not installed")

import pebble  # noqa: E402
from pebble.cli import main  # noqa: E402
from pebble.cli import sweep as command  # noqa: E402
from pebble.errors import InputError  # noqa: E402
from pebble.sweeps import sweep as room  # noqa: E402
from pebble.sweeps.columns import COLUMNS, NAMES, SAME_EACH_RUN  # noqa: E402
from pebble.sweeps.runner import Ended, receive, send  # noqa: E402
from pebble.sweeps.store import MOST_STORE_BYTES, SweepStore  # noqa: E402
from tests.sweeps.kills import Here  # noqa: E402
from tests.sweeps.small import SWEEP, TASKS, exported  # noqa: E402

pytestmark = pytest.mark.usefixtures("in_this_process")


def test_a_store_that_exists_is_refused_without_resume(store: Path) -> None:
    with pytest.raises(InputError, match="add resume"):
        pebble.sweep(SWEEP, store)
    again = pebble.sweep(SWEEP, store, resume=True)
    assert again.stored == TASKS and again.computed == 0 and again.complete


def test_resume_computes_what_is_missing_and_more_may_be_asked(store: Path, tmp_path: Path) -> None:
    more = {**SWEEP, "orders": ["row", "column", "snake", "hilbert"]}
    grown = pebble.sweep(more, store, resume=True)
    assert (grown.stored, grown.computed, grown.tasks) == (TASKS, TASKS // 3, TASKS * 4 // 3)
    pebble.sweep(more, tmp_path / "at-once.duckdb")
    assert exported(store) == exported(tmp_path / "at-once.duckdb")


def test_what_fails_is_tried_again_and_then_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Losing(Here):
        """Loses its worker whenever a batch has this order."""

        def begin(self, key: int, message: bytes) -> None:
            if b'"schedule":"snake"' in message:
                lost.append(len(json.loads(message)["tasks"]))
                self._ended.append(Ended(key, None, "its worker process ended early"))
            else:
                super().begin(key, message)

    lost: list[int] = []
    monkeypatch.setattr(room, "Local", Losing)
    path = tmp_path / "r.duckdb"
    result = pebble.sweep(SWEEP, path, retries=2)
    assert result.statuses == {"done": TASKS * 2 // 3, "refused": 0, "failed": TASKS // 3}
    assert lost == [3] * 4 + [1] * 8  # together first, then alone, so that the others are not lost with it
    columns = ["reason", "schedule", "attempts", "workload"]
    assert set(pebble.results(path, filters={"status": "failed"}, columns=columns).values) == {
        ("its worker process ended early.", "snake", 3, f"gemm m={m} n=64 k=64 bf16") for m in (64, 128)
    }
    monkeypatch.setattr(room, "Local", Here)  # what failed is asked again
    assert pebble.sweep(SWEEP, path, resume=True).statuses["done"] == TASKS // 3
    pebble.sweep(SWEEP, tmp_path / "well.duckdb")
    assert exported(path) == exported(tmp_path / "well.duckdb")


def test_a_pipe_carries_no_message_that_is_too_long() -> None:
    pipe = io.BytesIO()
    send(pipe, b"12345")
    assert receive(io.BytesIO(pipe.getvalue()), 5) == b"12345"
    assert receive(io.BytesIO(pipe.getvalue()), 4) is None
    assert receive(io.BytesIO(pipe.getvalue()[:-1]), 5) is None


def test_two_sweeps_into_one_store_are_refused(store: Path) -> None:
    with SweepStore(store, resume=True):
        with pytest.raises(InputError, match="another sweep of this process"):
            pebble.sweep(SWEEP, store, resume=True)
        with pytest.raises(InputError, match="a sweep of this process writes it"):
            pebble.results(store)
        other = subprocess.run(
            [sys.executable, "-c", f"import pebble; pebble.sweep({SWEEP!r}, {str(store)!r}, resume=True)"],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
        )
    assert other.returncode != 0 and f"process {os.getpid()} uses it" in other.stderr
    assert pebble.sweep(SWEEP, store, resume=True).stored == TASKS


def test_one_of_two_that_begin_at_once_is_refused(tmp_path: Path) -> None:
    refused: list[InputError] = []

    def begin() -> None:
        try:
            pebble.sweep(SWEEP, tmp_path / "r.duckdb")
        except InputError as error:
            refused.append(error)

    threads = [threading.Thread(target=begin) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 1
    assert len(pebble.results(tmp_path / "r.duckdb").values) == TASKS


def test_rows_are_written_all_or_none(store: Path) -> None:
    before = exported(store)
    with SweepStore(store, resume=True) as opened, pytest.raises(duckdb.Error):
        opened.write([{"task_id": "a"}, {"task_id": "b", "sms": "no number"}])
    assert exported(store) == before


@pytest.mark.parametrize("what", ["text", "empty", "other", "view", "schema"])
def test_what_is_no_store_is_refused(tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.duckdb"
    if what == "text":
        path.write_bytes(b"nothing of the kind" * 1000)
    elif what == "empty":
        path.write_bytes(b"")
    else:
        with duckdb.connect(str(path)) as connection:
            if what != "other":
                schema = "999" if what == "schema" else "1"
                connection.execute(f"create table about as select 'schema' as key, '{schema}' as value")
                columns = ", ".join(f"null::{c.type} as {c.name}" for c in COLUMNS)
                kind = "view" if what == "view" else "table"
                connection.execute(f"create {kind} results as select {columns}")
    assert main(["results", str(path)]) == 2
    assert "no store of `pebble sweep`" in (error := capsys.readouterr().err) or "no DuckDB file" in error


@pytest.mark.parametrize("what", ["cut", "overwritten"])
def test_a_damaged_store_is_told_in_a_sentence(store: Path, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    content, spec = store.read_bytes(), set()
    for at in range(4096, len(content), len(content) // 12):
        damaged = content[:at] + (b"" if what == "cut" else b"\xff" * 300 + content[at + 300 :])
        for arguments in (["results", str(store)], ["results", str(store), "--where", "sms > 0"]):
            store.write_bytes(damaged)
            code = main(arguments)
            error = capsys.readouterr().err
            assert (code, len(error.splitlines())) in ((0, 0), (2, 1)) and "another process" not in error
            spec.add("damaged" in error)
        store.write_bytes(damaged)
        with suppress(InputError):  # and no other
            pebble.sweep(SWEEP, store, resume=True)
    assert True in spec


def test_a_store_that_is_too_large_is_refused_before_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "r.duckdb"
    with open(path, "wb") as file:
        file.truncate(MOST_STORE_BYTES + 1)  # a hole: it takes no room
    with pytest.raises(InputError, match="larger than 64 GiB"):
        pebble.results(path)
    with pytest.raises(InputError, match="larger than 64 GiB"):
        pebble.sweep(SWEEP, path, resume=True)


def test_a_store_of_another_version_takes_no_more(store: Path) -> None:
    with duckdb.connect(str(store)) as connection:
        connection.execute("update about set value = '0.0.1' where key = 'version'")
    with pytest.raises(InputError, match=r"holds answers of pebble 0.0.1"):
        pebble.sweep(SWEEP, store, resume=True)


def test_a_sweep_that_cannot_begin_leaves_no_store(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected tcp://|needs Dask"):
        pebble.sweep(SWEEP, tmp_path / "r.duckdb", cluster="nowhere")
    assert list(tmp_path.iterdir()) == []


def test_results_are_filtered_sorted_and_queried(store: Path) -> None:
    rows = pebble.results(store, filters={"machine": "a4*", "schedule": "row"}, sort=["-flops"]).rows()
    assert [row["machine"] for row in rows] == ["a40", "a40"] and "m=128" in rows[0]["workload"]
    assert len(pebble.results(store, where="ratio_to_lower_bound >= 1", limit=5).values) == 5
    spec = pebble.results(store, sql="select machine, count(*) as n from results group by 1 order by 1;").rows()
    assert spec == [{"machine": "a2", "n": 6}, {"machine": "a40", "n": 6}]
    assert "12 done" in pebble.results(store).summary()


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_csv('/etc/passwd')", "select * from read_text('{here}/secret')", "drop table results",
        "attach '{here}/other.duckdb'", "copy results to '{here}/x.csv'", "select nothing from results",
        "select 1); copy results to '{here}/x.csv'; select (1", "set enable_external_access = true", "install httpfs",
    ],
)  # fmt: skip
def test_a_query_reaches_nothing_but_the_store(store: Path, query: str) -> None:
    (store.parent / "secret").write_text("secret")
    before = sorted(store.parent.iterdir())
    with pytest.raises(InputError):
        pebble.results(store, sql=query.format(here=store.parent))
    assert sorted(store.parent.iterdir()) == before


def test_an_export_has_what_is_the_same_in_each_run(store: Path) -> None:
    head = exported(store).decode().splitlines()[0].split(",")
    assert tuple(head) == SAME_EACH_RUN
    parquet = store.with_suffix(".parquet")
    pebble.results(store, export=parquet, timings=True)
    with duckdb.connect() as connection:
        table = connection.execute(f"select * from '{parquet}'")
        assert tuple(column[0] for column in table.description) == NAMES
        rows = table.fetchall()
    assert [row[0] for row in rows] == sorted(row[0] for row in rows) and len(rows) == TASKS


def test_the_command_line(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "s.toml"
    file.write_text('workloads = [{ family = "gemm", m = 64, n = 64, k = 64 }]\nmachines = "a40"\norders = "row"\n')
    assert main(["sweep", str(file), "--store", str(tmp_path / "new.duckdb"), "--json"]) == 0
    spec = json.loads(capsys.readouterr().out)
    assert spec["tasks"] == spec["done_tasks"] == 1 and spec["complete"]
    assert main(["sweep", str(file), "--store", str(tmp_path / "new.txt")]) == 2
    assert "ends in .duckdb or .db" in capsys.readouterr().err
    assert main(["results", str(store), "--json", "--limit", "2"]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 2
    assert main(["results", str(store), "--filter", "machine=a2", "--columns", "schedule,dram_bytes"]) == 0
    assert capsys.readouterr().out.count("snake") == 2
    sorted_by = ["--sort", "-flops", "--columns", "flops"]
    assert main(["results", str(store), *sorted_by, "--json", "--limit", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [{"flops": 2 * 128 * 64 * 64}]
    for wrong in (["--filter", "machine"], ["--columns", "x"], ["--limit", "0"], ["--sql", "x", "--where", "y"]):
        assert main(["results", str(store), *wrong]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_log_is_told_how_far_how_fast_and_how_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.toml"
    file.write_text(
        'workloads = [{ family = "gemm", m = 64, n = 64, k = 64 }]\nmachines = ["a40", "a2"]\norders = "row"\n'
    )
    assert main(["sweep", str(file), "--store", str(tmp_path / "quiet.duckdb")]) == 0
    assert capsys.readouterr().err == ""  # it ends before there is anything to tell
    monkeypatch.setattr(command, "_LINE_SECONDS", 0.0)
    assert main(["sweep", str(file), "--store", str(tmp_path / "told.duckdb")]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"pebble: 1 of 2 tasks, [0-9,.]+ a second, \d+ (s|min) left", lines[0])
    assert re.fullmatch(r"pebble: 2 of 2 tasks, [0-9,.]+ a second, 0 s left", lines[1])
    assert [command._duration(seconds) for seconds in (99, 600, 11_100)] == ["99 s", "10 min", "3 h 5 min"]


@pytest.mark.parametrize(("module", "least"), [("duckdb", "1.2"), ("distributed", "2024.8")])
def test_what_is_not_installed_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, least: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=f"pip install '{module}>={least}'"):
        pebble.sweep(SWEEP, tmp_path / "r.duckdb", cluster="local:1")
