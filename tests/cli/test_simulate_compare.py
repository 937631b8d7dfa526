"""``pebble simulate`` and ``pebble compare`` as a user runs them."""

import json
from pathlib import Path
from typing import Any

import pytest

from pebble.cli import main

CUBE = ("gemm", "-m", "1024", "-n", "1024", "-k", "1024")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_simulate_contract(capsys: pytest.CaptureFixture[str]) -> None:
    result = run(
        capsys, "simulate", "gemm", "-m", "8192", "-n", "8192", "-k", "8192", "--schedule", "grouped-8",
        "--tile", "128x128x64", "--sms", "108", "--cache", "40MiB", "--policy", "lru",
    )  # fmt: skip
    assert result["dram_read_bytes"] == 1_860_173_824
    assert result["dram_write_bytes"] == 134_217_728
    assert result["accesses_lines"] == 135_266_304
    assert result["hits_lines"] == result["accesses_lines"] - result["dram_read_bytes"] // 128
    assert result["by_operand"]["C"] == {"read_bytes": 0, "write_bytes": 134_217_728}
    reads = sum(traffic["read_bytes"] for traffic in result["by_operand"].values())
    assert reads == result["dram_read_bytes"]


def test_accumulate_reads_c_once(capsys: pytest.CaptureFixture[str]) -> None:
    common = ("simulate", *CUBE, "--schedule", "row", "--sms", "16", "--cache", "4MiB")
    plain, added = run(capsys, *common), run(capsys, *common, "--accumulate-into")
    assert added["by_operand"]["C"]["read_bytes"] == added["by_operand"]["C"]["write_bytes"] == 2 * 1024**2
    assert plain["by_operand"]["C"]["read_bytes"] == 0


def test_compare_contract(capsys: pytest.CaptureFixture[str]) -> None:
    result = run(capsys, "compare", *CUBE, "--gpu", "a2")
    assert len(result["schedules"]) == 28
    totals = [s["dram_bytes"] for s in result["schedules"]]
    assert totals == sorted(totals)
    tied = [s["name"] for s in result["schedules"] if s["dram_bytes"] == totals[0]]
    assert result["best_order"] == {"name": tied[0], "dram_bytes": totals[0], "tied": tied}
    for s in result["schedules"]:
        assert s["dram_bytes"] == s["dram_read_bytes"] + s["dram_write_bytes"]
        assert s["ratio_to_lower_bound"] == s["dram_bytes"] / result["lower_bound"]["bytes"] >= 1
        assert 0 <= s["l2_hit_rate"] <= 1
        assert s["tile"] == result["kernel"]["tile"] == "64x128x64"
    assert result["lower_bound"]["what"] == "trace"
    assert result["chip_bound"]["capacity_bytes"] > result["lower_bound"]["capacity_bytes"]
    assert result["cache_only_bound"]["bytes"] >= result["lower_bound"]["bytes"]
    assert result["lower_bound"]["bytes"] <= result["upper_bound"]["bytes"] <= totals[0]
    assert any("cache model of NVIDIA A2 (guess): lru" in note for note in result["notes"])
    assert any("a counter read when the kernel ends does not see" in note for note in result["notes"])
    assert all("lru_dram_bytes" not in s for s in result["schedules"])  # the chip's own model is that LRU


def answer(document: dict[str, Any]) -> dict[str, Any]:
    """All but the words of the command line."""
    return {key: value for key, value in document.items() if key != "command"}


def test_partitioned_chips_have_one_lru_as_another_column(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = (*CUBE, "--gpu", "h100-sxm5-80gb", "--tile", "128x128", "--schedules", "row,hilbert")
    result = run(capsys, "compare", *kernel)
    assert answer(result) == answer(run(capsys, "compare", *kernel, "--policy", "hardware"))
    assert result["kernel"]["policy"] == "partitions-2:oldest-of-8"
    assert any("in each of 2 partitions, a line at home in one and copied" in note for note in result["notes"])
    alone = run(capsys, "compare", *kernel, "--policy", "lru")
    assert any("2 L2 partitions" in note for note in alone["notes"])
    expected = {s["name"]: s["dram_bytes"] for s in alone["schedules"]}
    assert {s["name"]: s["lru_dram_bytes"] for s in result["schedules"]} == expected
    assert result["lower_bound"] == alone["lower_bound"]  # what can be held does not depend on copies
    assert all("lru_dram_bytes" not in s for s in alone["schedules"])
    for arguments, header in ((kernel, True), ((*kernel, "--policy", "lru"), False)):
        assert main(["compare", *arguments, "--all"]) == 0
        assert ("LRU MB" in capsys.readouterr().out) is header


def test_free_running_blocks_are_a_column_beside_waves(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = (*CUBE, "--gpu", "h100-sxm5-80gb", "--schedules", "row,hilbert")
    result, free = run(capsys, "compare", *kernel), run(capsys, "compare", *kernel, "--execution", "free")
    assert {s["name"]: s["free_dram_bytes"] for s in result["schedules"]} == {
        s["name"]: s["dram_bytes"] for s in free["schedules"]
    }
    assert any(note.startswith("free MB: if blocks run free") for note in result["notes"])
    bare = run(capsys, "compare", *CUBE, "--cache", "1MiB", "--sms", "16", "--schedules", "row")
    assert "free_dram_bytes" not in bare["schedules"][0]
    assert main(["compare", *kernel, "--all"]) == 0
    assert "free MB" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["simulate", "curve"])
def test_the_chips_own_model_is_the_default(capsys: pytest.CaptureFixture[str], command: str) -> None:
    arguments = [command, *CUBE, "--gpu", "h20", "--schedule" if command == "simulate" else "--schedules", "row"]
    arguments += ["--points", "4"] if command == "curve" else []
    result = run(capsys, *arguments)
    assert answer(result) == answer(run(capsys, *arguments, "--policy", "hardware"))
    assert result["kernel"]["policy"] == "partitions-2:oldest-of-8"
    assert run(capsys, *arguments, "--policy", "lru")["kernel"]["policy"] == "lru"


def test_without_a_machine_nothing_is_known_of_the_sm(capsys: pytest.CaptureFixture[str]) -> None:
    huge = ("-m", "512", "-n", "512", "-k", "512", "--tile", "512x512")
    result = run(capsys, "compare", "gemm", *huge, "--cache", "40MiB", "--sms", "132", "--schedules", "row")
    assert result["kernel"]["policy"] == "lru"
    assert result["kernel"]["stages"] == 1
    assert result["kernel"]["fit"] is None


def test_a_kernel_that_cannot_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    problem = ["gemm", "-m", "1024", "-n", "1024", "-k", "512", "--gpu", "h100-sxm5-80gb"]
    kernel = ["compare", *problem, "--schedules", "row", "--tile", "512x512"]
    assert main(kernel) == 2
    message = capsys.readouterr().err
    assert "1 MiB of fp32 accumulators" in message
    assert "of which an SM has 256 KiB" in message
    assert "--allow-infeasible" in message
    result = run(capsys, *kernel, "--allow-infeasible")
    assert result["kernel"]["fit"]["limits_broken"] == ["registers_per_sm", "registers_per_thread"]
    assert any("cannot run this kernel" in note for note in result["notes"])
    for option, value, says in (
        ("--stages", "9", "--stages: got 9 stages"), ("--blocks-per-sm", "40", "--blocks-per-sm"),
        ("--sms", "133", "at most the 132"), ("--policy", "chiplets-2+llc-1GiB", "expected none"),
    ):  # fmt: skip
        tile = "16x16x16" if option == "--blocks-per-sm" else "128x128"
        assert main([*kernel[:-1], tile, option, value]) == 2
        assert says in capsys.readouterr().err
        assert run(capsys, *kernel[:-1], tile, option, value, "--allow-infeasible")["notes"]


def test_decode_cuts_the_tile(capsys: pytest.CaptureFixture[str]) -> None:
    result = run(
        capsys, "compare", "llama-3-8b:qkv", "--tokens", "1", "--gpu", "a40", "--tile", "128x128", "--schedules", "row"
    )
    assert result["schedules"][0]["tile"] == "1x128x64"
    assert any("cut short to 1x128x64" in note for note in result["notes"])
    assert result["schedules"][0]["ratio_to_lower_bound"] < 1.05


@pytest.mark.parametrize("suffix", ["pdf", "svg", "png"])
def test_figure_is_written_and_reproducible(capsys: pytest.CaptureFixture[str], tmp_path: Path, suffix: str) -> None:
    files = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    for file in files:
        arguments = ("compare", *CUBE, "--gpu", "a40", "--schedules", "row,morton,grouped-8+sawtooth")
        assert main([*arguments, "--figure", str(file)]) == 0
        assert capsys.readouterr().err == f"figure: {file}\n"
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].stat().st_size > 5000
    if suffix == "svg":
        text = files[0].read_text()
        assert "grouped-8+sawtooth" in text
        assert "proved bound" in text


def test_table_fits_a_narrow_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    assert main(["compare", *CUBE, "--cache", "1MiB", "--sms", "8", "--all"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 50
    assert "thunderkittens-8+sawtooth" in out
    assert "left out at 50 columns:" in out


def test_a_pipe_gets_every_column(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["compare", *CUBE, "--gpu", "a100-sxm4-40gb", "--all"]) == 0
    out = capsys.readouterr().out
    head = next(line for line in out.splitlines() if line.startswith("schedule"))
    assert head.endswith("free MB  LRU MB")
    assert "left out at" not in out


def test_equal_schedules_under_control_are_one_row(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "ffn-backward", "--tokens", "256", "--d-model", "128", "--hidden", "512", "--cache", "16KiB"]
    assert main(words) == main([*words, "--explain"]) == 0
    short, long = capsys.readouterr().out.split("\nffn-backward ")
    assert "layer by layer and 1 more" in short and "product by product" not in short
    assert long.count("layer by layer, product by product: one after the other") == 1
    assert len(run(capsys, *words)["schedules"]) == 4
