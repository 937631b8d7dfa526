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
        busiest = row["pipes_ms"][row["busiest"]]
        assert busiest == max(row["pipes_ms"].values()) and min(row["lost_ms"].values()) >= 0
        assert busiest + sum(row["lost_ms"].values()) == pytest.approx(row["modelled_ms"])


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


def test_a_partial_last_wave_and_fill_and_drain_are_losses(capsys: pytest.CaptureFixture[str]) -> None:
    tile = ("--tile", "128x128x64", "--schedules", "row", "--sms", "132")
    full, ragged = (
        run(capsys, "time", "gemm", "-m", "16896", "-n", str(columns), "-k", "4096", *CHIP, *tile)["schedules"][0]
        for columns in (128 * 4, 128 * 4 + 1)  # 132 tile rows: four full waves, and a fifth
    )
    assert full["waves"] == 4 and full["lost_ms"]["last_wave"] == 0
    assert ragged["waves"] == 5 and ragged["lost_ms"]["last_wave"] == 0
    short = run(capsys, "time", "gemm", "-m", "6784", "-n", str(128 * 4), "-k", "4096", *CHIP, *tile)["schedules"][0]
    assert short["waves"] == 2  # 53 x 4 tiles: 52 of the second wave's 132 SMs rest, too few to cut its tiles
    resting = (short["modelled_ms"] - short["lost_ms"]["fill_and_drain"]) / 2 * 52 / 132
    assert short["lost_ms"]["last_wave"] == pytest.approx(resting, rel=0.1)


def test_attention_says_what_its_program_saves(capsys: pytest.CaptureFixture[str]) -> None:
    attention = ("attention", "--queries", "4096", "--keys", "4096", "--head-dim", "128", "--heads", "16")
    result = run(capsys, "time", *attention, "--gpu", "h20")
    ping_pong, plain = result["programs"]
    assert (ping_pong["name"], plain["name"]) == ("ping-pong", "one after the other")
    assert ping_pong["modelled_ms"] == result["schedules"][0]["modelled_ms"] < 0.9 * plain["modelled_ms"]
    assert ping_pong["dram_bytes"] == plain["dram_bytes"]
    assert plain["lost_ms"]["waits"] > ping_pong["lost_ms"]["waits"]
    assert main(["time", *attention, "--gpu", "h20"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "two warp groups take turns" in text and "in which its busiest resource, tensor cores, rests" in text
    assert not run(capsys, "time", *attention, "--gpu", "a100-sxm4-40gb")["programs"]
    assert not run(capsys, "time", *attention, *CHIP, "--tile", "64x64")["programs"]


def test_promoted_sums_cost_time(capsys: pytest.CaptureFixture[str]) -> None:
    fp8 = ("gemm", "-m", "4096", "-n", "4096", "-k", "4096", "--dtype", "fp8", "--tile", "128x128x128")
    times = [
        run(capsys, "time", *fp8, *CHIP, "--schedules", "row", *more)["schedules"][0]
        for more in ((), ("--promote-every", "4"), ("--promote-every", "1"))
    ]
    promoted = [row["pipes_ms"]["vector pipes"] for row in times]
    assert promoted[0] == 0 and promoted[2] == pytest.approx(4 * promoted[1])
    assert times[0]["modelled_ms"] < times[1]["modelled_ms"] < times[2]["modelled_ms"]


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
        ((*CHIP, "--promote-every", "4"), "expected products of fp8"),
        ((*CHIP, "--dtype", "fp8", "--promote-every", "0"), "expected a whole number from 1"),
        ((*CHIP, "--dtype", "fp8", "--promote-every", "4", "--sweep", "m=4"), "expected one workload at one size"),
    ],
)
def test_wrong_input_is_one_sentence(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str) -> None:
    assert main(["time", *GEMM, *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
