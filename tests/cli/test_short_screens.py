"""`compare` and `bound` fit a screen, say first what to run, and rank as `advise` does."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import pebble.reports.ranking as ranking
import pebble.tuning.worth as worth
from pebble.cli import main
from pebble.families import workload
from pebble.reports.ranking import rank_orders
from pebble.tuning.worth import SAME

SHAPES = [
    "gemm -m 1k -n 1536 -k 512",
    "ffn --tokens 512 --d-model 384 --hidden 1024 --gated",
    "attention --queries 1 --keys 2048 --head-dim 128 --heads 8 --kv-heads 2",
    "attention --queries 512 --keys 512 --head-dim 64 --heads 4 --causal",
    "grouped --rows 256,17,1000 -n 512 -k 256",
    "gemm -m 256 -n 384 -k 128 --batch 12",
    "latent-attention --queries 256 --keys 256 --heads 8 --causal",
    "latent-attention --queries 1 --keys 1024 --heads 64",
]


def run(words: str, capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    assert main(words.split()) == code
    return capsys.readouterr().out


def document(words: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    result = json.loads(run(f"{words} --json", capsys))
    assert isinstance(result, dict)
    return result


@pytest.mark.parametrize("where", ["--gpu h100", "--gpu a40", "--cache 1MiB --sms 16"])
@pytest.mark.parametrize("shape", SHAPES)
def test_compare_is_short(
    shape: str, where: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    lines = run(f"compare {shape} {where}", capsys).splitlines()
    assert len(lines) <= 25 and all(len(line) <= 100 for line in lines)
    first = [line.split()[0] for line in lines if not line.startswith(" ") and line]
    assert ("use" in first) is where.startswith("--gpu") and "limit" in first and "trust" in first


@pytest.mark.parametrize(
    ("command", "most"), [("time", 25), ("tile", 16), ("tune --time-limit 0.5", 25)], ids=["time", "tile", "tune"]
)
@pytest.mark.parametrize("shape", ["gemm -m 1k -n 1k -k 1k", "ffn --tokens 512 --d-model 384 --hidden 1024 --gated"])
def test_others_are_short_and_say_how_to_see_the_rest(
    command: str, most: int, shape: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, *options = command.split()
    words = " ".join([name, shape, "--gpu", "h100", *options])
    monkeypatch.setenv("COLUMNS", "100")
    lines = run(words, capsys).splitlines()
    assert len(lines) <= most and all(len(line) <= 100 for line in lines)
    assert "note:" not in "\n".join(lines) and "--explain" in lines[-1]
    explained = run(f"{words} --explain", capsys)
    assert len(explained.splitlines()) > most and "note: " in explained


def test_curve_is_of_common_orders(capsys: pytest.CaptureFixture[str]) -> None:
    shape = "curve gemm -m 512 -n 768 -k 256 --cache 256KiB --sms 16 --points 4"
    few, every = run(shape, capsys), run(f"{shape} --all", capsys)
    assert "hilbert" not in few and "hilbert" in every and "more schedules with --all" in few
    rows = [line.split() for line in few.splitlines() if line.startswith(("row", "grouped-8"))]
    assert rows and all(row in [line.split() for line in every.splitlines()] for row in rows)
    assert len(document(shape, capsys)["schedules"]) > len(rows) + 5


def test_time_simulates_few_of_many_orders_and_all_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    wide = "time ffn --tokens 4k --d-model 4k --hidden 11008 --gpu h100"
    few = re.findall(r"of (\d+) timed with tile", " ".join(run(wide, capsys).split()))
    assert few and int(few[0]) < 20
    named = ",".join(re.findall(r"^(separate:\S+|row-fused\S+)", run(wide, capsys), re.MULTILINE))
    assert "separate:row" in named.split(",")  # the slowest
    assert not re.findall(r"more schedules", run(f"{wide} --schedules {named}", capsys))


@pytest.mark.parametrize(
    "words",
    [
        "gemm -m 8192 -n 8192 -k 8192 --gpu h100",
        "ffn --tokens 8192 --d-model 4096 --hidden 11008 --cache 40MiB",
        "attention --queries 4096 --keys 4096 --head-dim 128 --heads 8 --kv-heads 2 --causal --gpu a100",
        "gemm -m 400 -n 400 -k 10 --cache 400el",
        "llama-3-8b:layer --tokens 512 --gpu gb10",
    ],
)
def test_bound_is_short_and_explains_on_request(
    words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    lines = run(f"bound {words}", capsys).splitlines()
    assert len(lines) <= 12 and all(len(line) <= 100 for line in lines)
    assert any(line.startswith("lower bound") for line in lines)
    assert any(line.startswith("proof") and ("on paper" in line or "by Coq" in line) for line in lines)
    more = run(f"bound {words} --explain", capsys)
    assert "published bounds" in more and "proof  " in more


@pytest.mark.parametrize(
    "words",
    [
        "scaled-gemm -m 16 -n 512 -k 512 --dtype-b nvfp4 --cache 32KiB",
        "scaled-ffn --tokens 64 --d-model 128 --hidden 256 --dtype-x mxfp8 --dtype-w mxfp4 --gpu a100-sxm4-40gb",
    ],
)
def test_values_of_several_formats_are_told_in_bytes(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    short, long = run(f"bound {words}", capsys), run(f"bound {words} --explain", capsys)
    assert "upper bound" in short and "capacity" in short
    assert "elements" not in short + long and "values on chip" not in long
    assert "in values, each one whatever its format:" in long


@pytest.mark.parametrize("gpu", ["h100", "a40"])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_verdict_is_that_of_advise(shape: str, gpu: str, capsys: pytest.CaptureFixture[str]) -> None:
    advised = document(f"advise {shape} --gpu {gpu}", capsys)
    compared = document(f"compare {shape} --gpu {gpu}", capsys)
    verdict, times = compared["verdict"], {row["name"]: row for row in compared["schedules"]}
    assert verdict["limit"]["dram_bytes"] == compared["lower_bound"]["bytes"] <= verdict["dram_bytes"]
    key = "sustained_ms" if advised["expect"]["joules"] is not None else "single_ms"
    expected = advised["expect"]["sustained_ms"]
    least = min(row[key] for row in compared["schedules"] if row[key] is not None)
    assert expected <= SAME * least  # as fast as any, as far as the model can tell
    assert verdict["order"] == advised["kernel"]["order"] and verdict[key] == pytest.approx(expected)
    assert verdict["dram_bytes"] == advised["expect"]["dram_bytes"]
    assert verdict["order"] in times and times[verdict["order"]][key] == pytest.approx(verdict[key])
    assert verdict["moves_least"]["dram_bytes"] == min(row["dram_bytes"] for row in compared["schedules"])
    assert f"{verdict['order']}" in run(f"compare {shape} --gpu {gpu}", capsys)


def test_one_simulation_counts_and_times_alike(capsys: pytest.CaptureFixture[str]) -> None:
    for shape in SHAPES[:2]:
        compared = document(f"compare {shape} --gpu h100", capsys)["schedules"]
        spec = document(f"time {shape} --gpu h100", capsys)
        timed = {row["name"]: row for row in spec["schedules"]}
        assert spec["verdict"]["order"] == document(f"compare {shape} --gpu h100", capsys)["verdict"]["order"]
        for row in compared:
            for key in ("dram_bytes", "single_ms", "sustained_ms", "joules"):
                assert row[key] == pytest.approx(timed[row["name"]][key])


def test_where_all_would_take_long_the_common_ones_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    ffn = workload("ffn", tokens=512, d_model=384, hidden=1024)
    every = rank_orders(ffn, gpu="h100")
    assert every.left_out == 0 and every.complete
    monkeypatch.setattr(ranking, "_MOST_LINES", 1.0)
    monkeypatch.setattr(worth, "LIMIT", 1.0)
    few = rank_orders(ffn, gpu="h100")
    assert few.complete and few.left_out > 0 and len(few.orders) < len(every.orders)
    names = {name for order in few.orders for name in order.alike}
    assert {"separate:row", "separate:grouped-8", "row-fused-16"} <= names
    assert few.best.seconds == pytest.approx(every.best.seconds, rel=SAME - 1)


def test_an_interrupt_shows_what_is_done(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    simulate = ranking.time_schedule

    def interrupted(*arguments: Any, **options: Any) -> Any:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(arguments[1].name)
        return simulate(*arguments, **options)

    monkeypatch.setattr(ranking, "time_schedule", interrupted)
    monkeypatch.setattr("pebble.system.parallel.cores", lambda: 1)
    text = run(f"compare {SHAPES[1]} --gpu h100", capsys, 130)
    assert all(name in text for name in done) and "interrupted after 2 of" in text
