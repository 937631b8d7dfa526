"""``pebble time``: what it prints is what the model says; two workloads, many sizes, and wrong input."""

import json
from pathlib import Path
from typing import Any

import pytest

import pebble
from pebble.cli import main

GEMM = ("gemm", "-m", "512", "-n", "512", "-k", "256")
CHIP = ("--gpu", "h100-sxm5-80gb")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("execution", ["waves", "free", "persistent", "dynamic-5", "split-k-2", "stream-k"])
def test_each_schedule_has_a_time_above_the_floor_and_the_fastest_comes_first(
    capsys: pytest.CaptureFixture[str], execution: str
) -> None:
    result = run(capsys, "time", *GEMM, *CHIP, "--schedules", "row,hilbert", "--execution", execution)
    times = [row["modelled_ms"] for row in result["schedules"]]
    assert times == sorted(times)
    for row in result["schedules"]:
        parts = ("compute_ms", "shared_ms", "l2_ms", "dram_ms")
        assert row["modelled_ms"] > max(row["floor_ms"], *(row[part] for part in parts))
        assert sum(row["binds"].values()) == (row["waves"] or 1)


def test_the_front_door_gives_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    document = run(capsys, "time", *GEMM, *CHIP, "--schedules", "row")
    result = pebble.time(pebble.Gemm(512, 512, 256), "row", gpu="h100-sxm5-80gb")
    assert result.rows() == document["schedules"]
    assert "by the model" in result.summary()


def test_the_text_shows_floor_and_times(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["time", *GEMM, *CHIP, "--schedules", "row", "--explain"]) == 0
    text = capsys.readouterr().out
    assert "by the model, of 1 timed with tile 64x64x64: row" in " ".join(text.split())
    assert "proved floor" in text and "binds in waves" in text and "estimates" in text


def test_short_times_are_in_microseconds_and_equal_rows_told_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["time", "gemm", "-m", "77", "-n", "131", "-k", "1009", "--gpu", "mi300x", "--explain"]) == 0
    text = capsys.readouterr().out
    assert "modelled us" in text and "0.000" not in text
    assert "row and 27 more" in text and "the same: row, row+sawtooth, column" in text
    shared = next(line for line in text.splitlines() if line.startswith("row and")).split()
    assert "-" in shared  # what its tensor cores read from shared memory is not known
    assert main(["time", *GEMM, *CHIP, "--schedules", "row"]) == 0
    assert " - " not in capsys.readouterr().out


def test_side_by_side(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    figure = tmp_path / "beside.svg"
    result = run(
        capsys, "time", "attention", "--queries", "1", "--keys", "512", "--head-dim", "64", "--heads", "8", *CHIP,
        "--beside", "gemm -m 256 -n 512 -k 256", "--beside-sms", "4,64", "--figure", str(figure),
    )  # fmt: skip
    assert [split["second_sms"] for split in result["splits"]] == [4, 64]
    assert result["in_turn_ms"] == pytest.approx(sum(alone["modelled_ms"] for alone in result["alone"]))
    assert result["gain"] == pytest.approx(result["in_turn_ms"] / result["best"]["modelled_ms"])
    for split in result["splits"]:
        assert split["modelled_ms"] == max(split["first_ms"], split["second_ms"])
    assert figure.stat().st_size > 1000
    assert main(["time", *GEMM, *CHIP, "--beside", "gemm -m 256 -n 512 -k 256", "--beside-sms", "66"]) == 0
    assert "one after the other" in capsys.readouterr().out


def test_a_sweep_says_up_to_where_dram_binds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    figure = tmp_path / "sweep.png"
    command = ["time", "ffn", "--tokens", "1", "--d-model", "1024", "--hidden", "2048", "--gpu", "a40", "--sweep",
               "tokens=16,1024", "--schedules", "separate:row", "--figure", str(figure)]  # fmt: skip
    result = run(capsys, *command)
    assert [step["tokens"] for step in result["steps"]] == [16, 1024]
    assert result["steps"][0]["floor_binds"] == "DRAM-bound"
    assert result["steps"][1]["floor_binds"] == "compute-bound"
    assert figure.stat().st_size > 1000
    assert main([*command[:-4], "--schedules", "separate:row"]) == 0
    assert "floor is" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--cache", "1MiB", "--sms", "8"), "expected --gpu or --machine"),
        ((*CHIP, "--execution", "stream-k", "--beside", "gemm -m 1 -n 1 -k 1"), "only a product by itself"),
        (("--gpu", "gb10"), "has no boost_clock"),
        ((*CHIP, "--sweep", "m=x"), "expected a whole number"),
        ((*CHIP, "--sweep", "m"), "expected NAME=VALUE"),
        ((*CHIP, "--sweep", "q=4"), "unknown size"),
        ((*CHIP, "--sweep", "m=4", "--beside", "gemm -m 1 -n 1 -k 1"), "expected one of them"),
        ((*CHIP, "--beside-sms", "4"), "expected --beside"),
        ((*CHIP, "--beside", "foo"), "unknown workload"),
        ((*CHIP, "--beside", "gemm 4"), "expected an option"),
        ((*CHIP, "--beside", "gemm -m 64 -n 64 -k 64", "--beside-sms", "132"), "expected 1 to 131"),
        ((*CHIP, "--beside", "gemm -m 64 -n 64 -k 64", "--execution", "waves"), "expected free"),
        ((*CHIP, "--beside", "gemm -m 64 -n 64 -k 64 --dtype fp8"), "expected one type"),
        ((*CHIP, "--figure", "x.svg"), "expected --beside or --sweep"),
    ],
)
def test_wrong_input_is_one_sentence(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str) -> None:
    assert main(["time", *GEMM, *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
