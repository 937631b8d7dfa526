"""``pebble simulate`` and ``pebble compare`` as a user runs them."""

import json
from pathlib import Path

import pytest

from pebble.cli import main

CUBE = ("gemm", "-m", "1024", "-n", "1024", "-k", "1024")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_simulate_contract(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(
        capsys, "simulate", "gemm", "-m", "8192", "-n", "8192", "-k", "8192", "--schedule", "grouped-8",
        "--tile", "128x128x64", "--sms", "108", "--cache", "40MiB", "--policy", "lru",
    )  # fmt: skip
    assert found["dram_read_bytes"] == 1_860_173_824
    assert found["dram_write_bytes"] == 134_217_728
    assert found["accesses_lines"] == 135_266_304
    assert found["hits_lines"] == found["accesses_lines"] - found["dram_read_bytes"] // 128
    assert found["by_operand"]["C"] == {"read_bytes": 0, "write_bytes": 134_217_728}
    reads = sum(moved["read_bytes"] for moved in found["by_operand"].values())
    assert reads == found["dram_read_bytes"]


def test_accumulate_reads_c_once(capsys: pytest.CaptureFixture[str]) -> None:
    common = ("simulate", *CUBE, "--schedule", "row", "--sms", "16", "--cache", "4MiB")
    plain, added = run(capsys, *common), run(capsys, *common, "--accumulate-into")
    assert added["by_operand"]["C"]["read_bytes"] == added["by_operand"]["C"]["write_bytes"] == 2 * 1024**2
    assert plain["by_operand"]["C"]["read_bytes"] == 0


def test_compare_contract(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "compare", *CUBE, "--gpu", "a2")
    assert len(found["schedules"]) == 28
    totals = [s["dram_bytes"] for s in found["schedules"]]
    assert totals == sorted(totals)
    tied = [s["name"] for s in found["schedules"] if s["dram_bytes"] == totals[0]]
    assert found["best_order"] == {"name": tied[0], "dram_bytes": totals[0], "tied": tied}
    for s in found["schedules"]:
        assert s["dram_bytes"] == s["dram_read_bytes"] + s["dram_write_bytes"]
        assert s["ratio_to_lower_bound"] == s["dram_bytes"] / found["lower_bound"]["bytes"] >= 1
        assert 0 <= s["l2_hit_rate"] <= 1
        assert s["tile"] == "128x128x64"
    assert found["lower_bound"]["what"] == "trace"
    assert found["chip_bound"]["capacity_bytes"] > found["lower_bound"]["capacity_bytes"]
    assert found["cache_only_bound"]["bytes"] >= found["lower_bound"]["bytes"]
    assert found["lower_bound"]["bytes"] <= found["upper_bound"]["bytes"] <= totals[0]
    assert any("one LRU of the nominal L2 size" in note for note in found["notes"])


def test_partitioned_chips_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "compare", *CUBE, "--gpu", "h100-sxm5-80gb", "--schedules", "row")
    assert any("2 L2 partitions" in note for note in found["notes"])


def test_decode_cuts_the_tile(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "compare", "llama-3-8b:qkv", "--tokens", "1", "--gpu", "a40", "--schedules", "row")
    assert found["schedules"][0]["tile"] == "1x128x64"
    assert any("cut short to 1x128x64" in note for note in found["notes"])
    assert found["schedules"][0]["ratio_to_lower_bound"] < 1.05


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
    assert main(["compare", *CUBE, "--cache", "1MiB", "--sms", "8"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 50
    assert "thunderkittens-8+sawtooth" in out
