"""Screens that answer one question say one thing: how many are as fast, how far the best is from the limit."""

from __future__ import annotations

import re

import pytest

from pebble.cli import main

CASES = [
    "gemm -m 1000 -n 1537 -k 515 --gpu a100 --dtype fp32",
    "gemm -m 2048 -n 1024 -k 1024 --gpu h20 --dtype fp8",
    "gemm -m 16 -n 2048 -k 2048 --gpu h200",  # one column of tiles: many orders are one walk
    "gemm -m 1024 -n 1024 -k 1024 --gpu mi300x",
    "ffn --tokens 512 --d-model 384 --hidden 1024 --gated --gpu b200",
    "attention --queries 512 --keys 700 --head-dim 64 --heads 8 --kv-heads 2 --causal --gpu h100",
    "attention --queries 1 --keys 2048 --head-dim 128 --heads 16 --kv-heads 2 --batch 3 --gpu 4090",
    "grouped --rows 256,17,1000 -n 512 -k 256 --gpu a40",
]


def screen(words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, code: int = 0) -> str:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(words.split()) == code
    out, err = capsys.readouterr()
    return " ".join((err if code else out).split())


@pytest.mark.parametrize("case", CASES)
def test_advise_compare_and_time(
    case: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    advised, compared, timed = (
        screen(f"{command} {case}", capsys, monkeypatch) for command in ("advise", "compare", "time")
    )
    fast = [re.findall(r"; (\d+ others? (?:is|are) within 1%)", text) for text in (compared, timed)]
    assert fast[0] == fast[1]
    used = re.findall(r"use (\S+): .*?modelled", compared) + re.findall(r"timed with tile \S+: ([^,\s]+),", timed)
    assert len(used) == 2 and used[0] == used[1]
    over = re.findall(r"proved; ([\d.]+) times that in time", compared), re.findall(r"([\d.]+) in time", advised)
    assert over[0] == over[1]
    first = re.findall(r" x floor .*?-{9,} .*? ([\d,.]+) (\d+\.\d\d) ", timed)
    assert any(row[1] == over[0][0] for row in first), (over, first)
    limits = [re.search(r"limit at least ([\d.,]+ \w+) \(([\w-]+)\) and ([\d.,]+ \w+)", t) for t in (advised, compared)]
    assert limits[0] and limits[1] and limits[0].groups() == limits[1].groups()
    assert f", {limits[0][2]}: no launch of this kernel is faster" in timed


@pytest.mark.parametrize("case", [case for case in CASES if "grouped" not in case])
def test_tile_tells_the_same_kernel(
    case: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    advised, told = (screen(f"{command} {case}", capsys, monkeypatch) for command in ("advise", "tile --explain"))
    used = re.search(r"use (\S+), (\d+) stages, (\d+) warps,.* order (\S+) expect", advised)
    assert used is not None
    tile, stages, warps, order = used.groups()
    assert f": tile {tile}, {stages} stages, {warps} warps," in told and f" {order} " in told
    timed = screen(f"time {case} --schedules {order}", capsys, monkeypatch)
    for waves, last in re.findall(r"its waves (\d+), the last of (\d+) blocks", timed):
        said = re.search(r" ([\d, +]+) blocks on (\d+) SMs, (\d+) on each: ([\d,]+) waves?, the last (\d+)%", told)
        assert said is not None and said[4] == waves
        assert abs(int(last) / int(said[2]) / int(said[3]) - int(said[5]) / 100) < 0.0051


def test_nothing_is_said_to_bind_where_a_peak_is_not_known(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = "gemm -m 2048 -n 2048 -k 2048 --gpu gb10"  # its file has no peak of operations
    for command in ("compare", "bound"):
        said = screen(f"{command} {shape}", capsys, monkeypatch)
        assert "by DRAM alone" in said and "DRAM-bound" not in said
    for command in ("advise", "time"):
        said = screen(f"{command} {shape}", capsys, monkeypatch, code=2)
        assert "has no boost_clock and no throughput.bf16" in said and "dram_bandwidth" not in said


def test_what_is_tiny_is_not_called_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    tiny = "gemm -m 7 -n 5 -k 3 --gpu 4090"
    assert main(f"compare {tiny}".split()) == 0
    screen = capsys.readouterr().out
    assert " kB  x bound" in screen and " 2.2 " in screen and " 0.0 " not in screen
    assert main(f"compare {tiny} --explain".split()) == 0
    assert "total kB" in capsys.readouterr().out
    assert main(f"time {tiny}".split()) == 0
    screen = capsys.readouterr().out
    floor = float(screen.split("proved floor")[1].split()[0])
    assert floor == pytest.approx(1.41e-4, rel=0.01) and ", 0 TFLOPS" not in screen


def test_no_word_of_times_where_there_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "gemm", "-m", "500", "-n", "777", "-k", "300", "--dtype", "fp32", "--gpu", "gb10"]) == 0
    trust = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("trust"))
    assert trust == "trust     bytes by a measured cache model; `pebble machines gb10 --explain`"
