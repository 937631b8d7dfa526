"""A search by time, energy and effort: what is ranked, what is told of it, and that no clock decides."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from typing import Any

import pytest

import pebble
from pebble.cli import main
from pebble.errors import InputError, UnknownNameError
from pebble.families import kernel_family
from pebble.reports.kernel_time import Timing
from pebble.reports.tune import tune
from pebble.reports.tuned import Beyond
from pebble.system.clock import Clock
from pebble.tuning import Candidate, Condition, measure
from tests.tuning.test_tune import CHIP, SMALL

DECODE = ["attention", "--queries", "1", "--keys", "4096", "--head-dim", "128", "--heads", "8", "--kv-heads", "8"]


def test_a_schedule_that_takes_less_time_is_named_though_it_moves_no_less(capsys: pytest.CaptureFixture[str]) -> None:
    by_bytes = ["tune", *DECODE, "--gpu", "h100-sxm5-80gb", "--objective", "bytes"]
    assert main([*by_bytes, "--json"]) == 0
    times = json.loads(capsys.readouterr().out)["modelled_time"]
    fastest, best = times["fastest"], times["best"]
    assert fastest["modelled_ms"] < 0.7 * best["modelled_ms"] and fastest["dram_bytes"] >= best["dram_bytes"]
    for item in (fastest, best):  # the command that times schedules says the same
        timed = pebble.time(
            pebble.Attention(1, 4096, 128, heads=8), item["name"], gpu="h100-sxm5-80gb", tile=item["tile"]
        )
        assert isinstance(timed, Timing)
        assert timed.orders[0].time.seconds * 1e3 == pytest.approx(item["modelled_ms"])
    assert main(by_bytes) == 0
    text = " ".join(capsys.readouterr().out.split())
    told = f"the fastest that was simulated takes {fastest['sustained_ms'] * 1e3:.3g} us sustained"
    assert told in text
    assert main([*by_bytes[:-2], "--json"]) == 0  # ranked by time, that one is the best
    document = json.loads(capsys.readouterr().out)
    assert document["objective"] == "time" and document["best"]["name"].startswith("split-kv")
    assert document["modelled_time"]["best"]["sustained_ms"] <= fastest["sustained_ms"] * 1.001


def test_of_those_that_move_the_same_the_fastest_is_the_best() -> None:
    tiles = "128x128x32,128x64x32,64x64x32"
    result = tune(pebble.Gemm(256, 1152, 640), objective="bytes", robust="waves", gpu="a40", tile=tiles)
    ties = [s for s in result.schedules if s.worst.dram_bytes == result.best.worst.dram_bytes]
    seconds = {}
    for tie in {s.kernel.tile: s for s in reversed(ties)}.values():
        timed = pebble.time(result.workload, tie.name, gpu="a40", tile=tie.kernel.tile)
        assert isinstance(timed, Timing)
        seconds[tie.kernel.tile] = timed.orders[0].time.seconds
    assert len(seconds) > 1 and min(seconds, key=lambda tile: seconds[tile]) == result.best.kernel.tile
    assert result.times is not None and result.times.fastest.seconds == result.times.best.seconds


def test_no_time_is_told_without_rates_or_for_an_execution_that_has_none() -> None:
    assert tune(SMALL, robust="waves", **CHIP).times is None
    small = pebble.Gemm(512, 512, 256)
    assert tune(small, robust="persistent", gpu="h100-sxm5-80gb").times is None
    result = tune(small, robust="free", gpu="h100-sxm5-80gb")
    assert result.times is not None and result.times.execution == "free"
    assert result.times.fastest.seconds <= result.times.best.seconds


@pytest.mark.parametrize(("there", "claims"), [(100, True), (90, True), (116, False)])
def test_a_gain_is_told_with_the_execution_that_takes_it_back(
    there: int, claims: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = tune(SMALL, robust="waves", **CHIP)
    assert result.baseline is not None
    without = Beyond("without a barrier (free)", there, 100)
    monkeypatch.setattr("pebble.cli.tune.tune", lambda *_, **__: replace(result, beyond=(without,)))
    assert main(["tune", "gemm", "-m", "64", "-n", "64", "-k", "64", "--cache", "1MiB"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert ("but 16% more without a barrier (free)" in text) != claims
    assert "tiles tried: 128x128x64; another may move less" in text


def test_a_note_says_where_exponentials_are_overlapped(capsys: pytest.CaptureFixture[str]) -> None:
    attention = ["attention", "--queries", "512", "--keys", "512", "--head-dim", "128", "--heads", "4"]
    for words in (
        ["--schedules", "fa2,fa3", "--explain"],
        ["--sweep", "keys=256,512"],
        ["--beside", "gemm -m 64 -n 64 -k 64"],
    ):
        assert main(["time", *attention, "--gpu", "h20", *words]) == 0
        assert (
            "exponentials are timed beside products in the exported kernel's own tile on Hopper, elsewhere after them"
            in " ".join(capsys.readouterr().out.split())
        )
    assert main(["time", "gemm", "-m", "64", "-n", "64", "-k", "64", "--gpu", "h20", "--explain"]) == 0
    assert "exponentials" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("objective", "sku"), [("time", "h200-sxm-141gb"), ("energy", "h200-sxm-141gb"), ("time", "a40")]
)
def test_ranked_by_time_or_energy_the_best_is_no_worse_than_a_named_schedule(objective: str, sku: str) -> None:
    workload = pebble.Gemm(3072, 2560, 1024)
    result = tune(workload, objective=objective, robust="waves", gpu=sku)
    family, config = kernel_family(workload), result.best.kernel.config
    least = result.objective
    assert least.name == objective and result.to_dict()["objective"] == objective
    for order in family.all_schedules(workload, config.tile):
        candidate = Candidate(order, config)
        value = least.value(candidate, Condition(), measure(family, workload, candidate))
        assert result.best.worst_value <= value * least.tie
    values = [s.worst_value for s in result.schedules]
    assert values[0] <= least.tie * min(values)
    assert result.times is not None
    again = result.times.best
    seconds = (
        again.ranked_seconds
        if objective == "time"
        else None
        if again.sustained is None
        else again.sustained.total_joules
    )
    assert seconds == pytest.approx(result.best.worst_value, rel=0.02)  # wave by wave, and by its bytes


def test_what_is_not_modelled_is_refused_as_an_objective() -> None:
    for options in ({"gpu": "a40"}, {"gpu": "h200", "sms": 12}):
        with pytest.raises(InputError, match="joules are modelled"):
            tune(SMALL, objective="energy", **options)
    with pytest.raises(InputError, match="got time with cache"):
        tune(SMALL, objective="time", **CHIP)
    with pytest.raises(InputError, match="only these have a time"):
        tune(SMALL, objective="time", robust="persistent", gpu="h100")
    with pytest.raises(UnknownNameError, match="objective"):
        tune(SMALL, objective="speed", gpu="h100")
    assert tune(pebble.Gemm(512, 512, 256), robust="persistent", gpu="h100").objective.name == "bytes"


def test_what_is_searched_does_not_depend_on_how_busy_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = tune(SMALL, gpu="h100", sms=12, time_limit=600)
    slowly = measure

    def slow(*given: Any, **named: Any) -> Any:
        time.sleep(0.01)
        return slowly(*given, **named)

    monkeypatch.setattr("pebble.tuning.search.measure", slow)
    again = tune(SMALL, gpu="h100", sms=12, time_limit=600)
    assert plain.counts == again.counts and not plain.ended and not again.ended
    assert [s.name for s in plain.schedules] == [s.name for s in again.schedules]


def test_where_effort_is_short_many_are_simulated_in_one_way_and_the_best_in_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plainly: Any = measure
    under: list[str] = []

    def noted(family: Any, workload: Any, candidate: Candidate, condition: Condition, *more: Any) -> Any:
        under.append(condition.name)
        return plainly(family, workload, candidate, condition, *more)

    monkeypatch.setattr("pebble.tuning.search.measure", noted)
    monkeypatch.setattr("pebble.tuning.search.EFFORT_LINES", 3_000)
    result = tune(SMALL, gpu="h100", sms=12, time_limit=600)
    assert len(result.executions) == 3 and not result.ended and result.baseline
    counts = [under.count(name) for name in result.executions]
    assert counts[0] > max(counts[1:]) and min(counts) >= 1
    first = [i for i, name in enumerate(under) if name != under[0]]
    assert first[0] >= 4, "the early ones are simulated in one way before everything is looked at"


def test_where_time_is_short_fewer_executions_are_ranked_by_and_a_note_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    plainly, over, answered = measure, threading.Event(), threading.Event()

    class Stopped(Clock):
        """Three seconds are over as soon as an execution other than the first is begun."""

        passed = property(lambda self: 3.0 * over.is_set())  # type: ignore[assignment]

    def slow(family: Any, workload: Any, candidate: Candidate, condition: Condition, *more: Any) -> Any:
        if condition.name != "waves":
            over.set()
            answered.wait(600)
        return plainly(family, workload, candidate, condition, *more)

    monkeypatch.setattr("pebble.tuning.search.measure", slow)
    monkeypatch.setattr("pebble.reports.tune.Clock", Stopped)
    result = tune(SMALL, gpu="h100", sms=12, time_limit=3)
    assert not answered.is_set()
    answered.set()  # nobody waited for what is under way
    assert result.executions == ("waves",) and result.ended
    assert any("no time was left to rank by waves@90, free" in note for note in result.notes)
