"""Work side by side: the answers of one thread, the first error, and nothing left behind."""

from __future__ import annotations

import signal
import threading
import time

import pytest

import pebble
from pebble.families.gemm import GemmFamily
from pebble.system import parallel
from pebble.system.parallel import check_wanted, each, reserve


def workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "pebble-each"]


def until_asked_to_stop() -> None:
    while True:
        check_wanted()
        time.sleep(0.001)


@pytest.mark.parametrize("jobs", [1, 2, 7])
def test_every_answer_once(jobs: int) -> None:
    assert sorted(each(lambda x: x * x, range(40), jobs)) == [(i, i * i) for i in range(40)]
    assert list(each(abs, [], jobs)) == []


def test_answers_come_as_soon_as_they_are_there() -> None:
    second_is_out = threading.Event()
    answers = each(lambda i: i or second_is_out.wait(60), [0, 1], 2)
    assert next(answers) == (1, 1)
    second_is_out.set()
    assert list(answers) == [(0, True)]


def test_an_error_ends_the_rest() -> None:
    def work(i: int) -> None:
        if i == 1:
            raise ZeroDivisionError
        until_asked_to_stop()

    with pytest.raises(ZeroDivisionError):
        list(each(work, range(9), 2))
    for thread in workers():
        thread.join(60)
        assert not thread.is_alive()


def test_inside_a_worker_there_are_no_more_threads() -> None:
    result = dict(each(lambda _: {threading.get_ident()} | {i for _, i in each(lambda _: threading.get_ident(), "ab")},
                      range(4), 2))  # fmt: skip
    assert all(len(threads) == 1 for threads in result.values())
    check_wanted()  # outside, work is always wanted


def test_memory_is_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "memory_allowance", lambda: 10)
    lock, running, most = threading.Lock(), [0], [0]

    def work(size: int) -> None:
        reserve(size)
        with lock:
            running[0] += size
            most[0] = max(most[0], running[0])
        time.sleep(0.002)
        with lock:
            running[0] -= size

    list(each(work, [4] * 20, 8))
    assert most[0] in (4, 8)
    most[0] = 0
    list(each(work, [11] * 4, 4))  # one that needs more than there is runs alone
    assert most[0] == 11
    reserve(10**15)  # outside nothing waits


GEMM = pebble.Gemm(1024, 1024, 512)


@pytest.mark.parametrize("policy", ["partitions-2:oldest-of-8", "lru", "partitions-2", "fifo"])
def test_reports_are_the_same_on_any_number_of_cores(monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    results = []
    for cores in (1, 3):
        monkeypatch.setattr(parallel, "cores", lambda cores=cores: cores)
        compared = pebble.compare(GEMM, cache="2MiB", sms=16, policy=policy)
        curve = pebble.curve(GEMM, "row,hilbert", cache="2MiB", sms=16, policy=policy, points=9)
        results.append((compared.to_dict(), curve.to_dict()))
    assert results[0] == results[1]


def test_ctrl_c_keeps_what_is_done_and_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "cores", lambda: 3)
    honest = GemmFamily.simulate

    def simulate(self, workload, schedule, *rest):
        if schedule.name != "hilbert":
            until_asked_to_stop()
        return honest(self, workload, schedule, *rest)

    monkeypatch.setattr(GemmFamily, "simulate", simulate)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = pebble.compare(
            GEMM, ["row", "hilbert", "morton"], gpu="h100-sxm5-80gb", policy="hardware",
            progress=lambda total: lambda name: threading.Timer(0.05, signal.raise_signal, [signal.SIGINT]).start(),
        )  # fmt: skip
    finally:
        signal.signal(signal.SIGINT, before)
    assert [t.order for t in result.orders] == ["hilbert"] and not result.complete
    assert "interrupted after 1 schedule" in result.notes[-1]
    for thread in workers():
        thread.join(60)
        assert not thread.is_alive()
