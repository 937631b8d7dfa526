"""Sweeps on Dask: the same answers; nothing open to others unless told, and then under TLS alone."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("duckdb", reason="the extra `sweep` is not installed")
distributed = pytest.importorskip("distributed", reason="the extra `sweep` is not installed")

import pebble  # noqa: E402
from pebble.errors import InputError  # noqa: E402
from pebble.sweeps import runner as room  # noqa: E402
from pebble.sweeps import sweep as sweeping  # noqa: E402
from tests.sweeps.kills import SWEEP, TASKS, Here  # noqa: E402

NO_FILES = (None, None, None)


@pytest.mark.parametrize(
    ("where", "host", "told"),
    [
        ("nowhere", None, "expected tcp://HOST:PORT"),
        ("local:0", None, "N from 1 to 1024"),
        ("local:x", None, "N from 1 to 1024"),
        ("local:1", "0.0.0.0", "which other computers may reach, without TLS"),
        ("local:1", "head.example", "which other computers may reach, without TLS"),
        ("tcp://127.0.0.1:9", "127.0.0.1", "runs already"),
        ("tls://127.0.0.1:9", None, "takes TLS alone; expected tls_ca"),
        ("dask", None, "has no scheduler-address"),
        ("gone.json", None, "cannot be read"),
    ],
)
def test_what_is_no_cluster_is_refused(where: str, host: str | None, told: str) -> None:
    with pytest.raises(InputError, match=told):
        room.Cluster(where, host, NO_FILES)


def test_a_scheduler_file_is_data(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    for content in ("[]", "{", '{"address": 3}', '{"address": "inproc://x"}', "[" * 100_000):
        file.write_text(content)
        with pytest.raises(InputError, match="it is no scheduler file"):
            room.Cluster(str(file), None, NO_FILES)


def test_tls_takes_three_files_in_pem(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("nothing")
    with pytest.raises(InputError, match="tls_cert missing"):
        room.security((str(_pem(tmp_path)), None, None))
    with pytest.raises(InputError, match="without a PEM block"):
        room.security((str(file),) * 3)


def _pem(folder: Path) -> Path:
    (folder / "x.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    return folder / "x.pem"


def _exports(store: Path) -> tuple[bytes, bytes]:
    results = []
    for ending in (".csv", ".parquet"):
        pebble.results(store, export=store.with_suffix(ending))
        results.append(store.with_suffix(ending).read_bytes())
    return results[0], results[1]


@pytest.fixture
def undisturbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, bytes]:
    with monkeypatch.context() as here:
        here.setattr(sweeping, "Local", Here)
        pebble.sweep(SWEEP, tmp_path / "here.duckdb")
    return _exports(tmp_path / "here.duckdb")


@pytest.mark.slow
def test_two_dask_workers_give_the_same_bytes(tmp_path: Path, undisturbed: tuple[bytes, bytes]) -> None:
    result = pebble.sweep(SWEEP, tmp_path / "dask.duckdb", cluster="local:2")
    assert result.statuses["done"] == TASKS
    assert _exports(tmp_path / "dask.duckdb") == undisturbed


@pytest.mark.slow
def test_a_cluster_that_runs_already_and_its_lost_worker(tmp_path: Path, undisturbed: tuple[bytes, bytes]) -> None:
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster:
        (tmp_path / "s.json").write_text(json.dumps({"address": cluster.scheduler_address}))
        killed: list[int] = []

        def kill(_: object) -> None:
            if not killed:
                killed.append(next(iter(cluster.workers.values())).process.pid)
                subprocess.run(["kill", "-9", str(killed[0])], check=True)

        store = tmp_path / "dask.duckdb"
        assert pebble.sweep(SWEEP, store, cluster=str(tmp_path / "s.json"), progress=kill).complete
    assert killed and _exports(store) == undisturbed


@pytest.mark.slow
def test_a_scheduler_that_goes_is_told_and_resumed_from(tmp_path: Path, undisturbed: tuple[bytes, bytes]) -> None:
    store = tmp_path / "dask.duckdb"
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        pytest.raises(InputError, match="the scheduler is gone; add resume"),
    ):
        pebble.sweep(SWEEP, store, cluster=cluster.scheduler_address, progress=lambda _: cluster.close())
    result = pebble.sweep(SWEEP, store, cluster="local:1", resume=True)
    assert result.stored + result.computed == TASKS and 0 < result.stored < TASKS
    assert _exports(store) == undisturbed


def _certificates(folder: Path) -> tuple[str, str, str]:
    """An authority and a certificate of its own, made by openssl."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    for words in (
        ["req", "-x509", *key, "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem"],
        ["req", *key, "-subj", "/CN=sweep", "-keyout", "me.key", "-out", "me.csr"],
        ["x509", "-req", "-in", "me.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "me.pem"],
    ):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)
    return str(folder / "ca.pem"), str(folder / "me.pem"), str(folder / "me.key")


@pytest.mark.slow
def test_under_tls_those_without_a_certificate_stay_outside(
    tmp_path: Path, undisturbed: tuple[bytes, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_CONNECT_SECONDS", 3)
    ca, cert, key = _certificates(tmp_path)
    (tmp_path / "others").mkdir()
    secured = room.security((ca, cert, key))
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0", protocol="tls://", security=secured
    ) as cluster:
        address = cluster.scheduler_address
        assert address.startswith("tls://127.0.0.1:")
        for files in (NO_FILES, _certificates(tmp_path / "others")):  # none, and those of another authority
            with pytest.raises(InputError, match=r"cannot be reached|takes TLS alone"):
                room.Cluster(address, None, files)
            with pytest.raises(InputError, match="cannot be reached"):
                room.Cluster(address.replace("tls", "tcp"), None, NO_FILES)
        store = tmp_path / "dask.duckdb"
        pebble.sweep(SWEEP, store, cluster=address, tls_ca=ca, tls_cert=cert, tls_key=key)
    assert _exports(store) == undisturbed


@pytest.mark.slow
def test_a_scheduler_started_here_listens_on_this_computer_alone() -> None:
    cluster = room.Cluster("local:1", None, NO_FILES)
    try:
        scheduler = cluster._cluster.scheduler
        addresses = [scheduler.listeners[0].listen_address, *(worker for worker in scheduler.workers)]
        assert all(address.startswith("tcp://127.0.0.1:") for address in addresses)
        assert [stored.getsockname()[0] for stored in scheduler.http_server._sockets.values()] == ["127.0.0.1"]
    finally:
        cluster.close()


@pytest.mark.slow
def test_an_answer_that_is_no_bytes_is_not_unpickled() -> None:
    cluster = room.Cluster("local:1", None, NO_FILES)
    try:
        cluster._futures[1] = future = cluster._client.submit(complex, 1, 2, pure=False)  # travels as a pickle
        future.add_done_callback(lambda _: cluster._done.put(1))
        results: list[room.Ended] = []
        while not results:
            results = cluster.ended()
        assert results[0].content is None and "could not be read" in results[0].reason
    finally:
        cluster.close()
