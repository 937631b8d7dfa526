"""``pebble curve``: the points of its curves are what simulate and bound say."""

import json
from pathlib import Path
from typing import Any

import pytest

from pebble.cli import main
from pebble.reports.curve import FEWEST_POINTS

GEMM = ("gemm", "-m", "1024", "-n", "768", "-k", "512")
KERNEL = ("--sms", "12", "--tile", "128x128x64")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("policy", ["lru", "opt", "fifo", "sectored", "partitions-2:oldest-of-8"])
def test_points_are_simulations(capsys: pytest.CaptureFixture[str], policy: str) -> None:
    result = run(capsys, "curve", *GEMM, "--cache", "512KiB", *KERNEL, "--schedules", "row,morton+sawtooth",
                "--policy", policy, "--points", "5")  # fmt: skip
    capacities = result["capacities_bytes"]
    assert capacities == sorted(capacities)
    assert 512 * 1024 in capacities
    for curve in result["schedules"]:
        for at, capacity in enumerate(capacities):
            single = run(capsys, "simulate", *GEMM, "--cache", f"{capacity}B", *KERNEL, "--schedule", curve["name"],
                      "--policy", policy)  # fmt: skip
            assert curve["dram_read_bytes"][at] == single["dram_read_bytes"]
            assert curve["dram_write_bytes"][at] == single["dram_write_bytes"]
            assert result["lower_bound_bytes"][at] <= single["dram_bytes"]


def test_accumulating_opt_is_simulated(capsys: pytest.CaptureFixture[str]) -> None:
    result = run(capsys, "curve", *GEMM, "--accumulate-into", "--cache", "512KiB", *KERNEL, "--schedules", "row",
                "--policy", "opt", "--points", "3")  # fmt: skip
    for capacity, traffic in zip(result["capacities_bytes"], result["schedules"][0]["dram_bytes"], strict=True):
        memory = ("--cache", f"{capacity}B", *KERNEL)
        single = run(capsys, "simulate", *GEMM, "--accumulate-into", *memory, "--schedule", "row",
                  "--policy", "opt")  # fmt: skip
        assert traffic == single["dram_bytes"]


@pytest.mark.parametrize(
    "workload", [("llama-2-7b:mlp", "--tokens", "256"), ("llama-2-7b:attention", "--tokens", "512")]
)
def test_other_families(capsys: pytest.CaptureFixture[str], workload: tuple[str, ...]) -> None:
    names = "row-fused-2,separate:row" if "mlp" in workload[0] else "fa2,unfused"
    result = run(capsys, "curve", *workload, "--gpu", "a40", "--schedules", names, "--points", "6")
    for curve in result["schedules"]:
        assert curve["dram_bytes"] == sorted(curve["dram_bytes"], reverse=True)
        assert all(b <= c for b, c in zip(result["lower_bound_bytes"], curve["dram_bytes"], strict=True))


def test_figure_and_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.svg" for name in "ab"]
    for file in files:
        assert main(["curve", *GEMM, "--gpu", "a40", "--schedules", "row,grouped-8", "--figure", str(file)]) == 0
    out = capsys.readouterr().out
    assert "6MiB*" in out
    assert "proved bound" in out
    assert files[0].read_bytes() == files[1].read_bytes()
    assert "proved bound at cache + SMs" in files[0].read_text()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--from", "4MiB", "--to", "1MiB"), "rising"),
        (("--from", "1KiB"), "largest tile"),
        (("--points", "0"), "--points"),
        (("--policy", "lru+warm"), "cold start"),
        (("--figure", "x.doc"), ".pdf"),
    ],
)
def test_mistakes(capsys: pytest.CaptureFixture[str], options: tuple[str, ...], says: str) -> None:
    assert main(["curve", *GEMM, "--cache", "512KiB", *KERNEL, "--schedules", "row", *options]) == 2
    assert says in capsys.readouterr().err


def test_ctrl_c_keeps_the_schedules_that_are_done(monkeypatch, capsys):
    from pebble.reports import curve as module

    honest, names = module.curve_of, []

    def stops_at_the_third(name, *rest):
        names.append(name)
        if len(names) == 3:
            raise KeyboardInterrupt
        return honest(name, *rest)

    monkeypatch.setattr(module, "curve_of", stops_at_the_third)
    assert main(["curve", "gemm", "-m", "1024", "-n", "1024", "-k", "256", "--gpu", "a40", "--json"]) == 130
    result = json.loads(capsys.readouterr().out)
    assert not result["complete"]
    assert {names[0], names[1]} <= {s["name"] for s in result["schedules"]}
    assert names[2] not in {s["name"] for s in result["schedules"]}


@pytest.mark.parametrize(("policy", "points"), [("lru", 48), ("fifo", 24)])
def test_fewer_sizes_where_each_is_simulated(policy: str, points: int, capsys: pytest.CaptureFixture[str]) -> None:
    result = run(capsys, "curve", *GEMM, "--cache", "512KiB", *KERNEL, "--schedules", "row", "--policy", policy)
    assert len(result["capacities_bytes"]) == points + 1, "and the cache itself"


def test_chiplets_begin_where_each_holds_a_tile(capsys: pytest.CaptureFixture[str]) -> None:
    result = run(
        capsys, "curve", *GEMM, "--gpu", "mi300x", "--tile", "128x128x64", "--schedules", "row", "--points", "3"
    )
    assert result["capacities_bytes"][0] == 8 * 128 * 128 * 2, "eight tiles of C in bf16"
    assert all(b <= m for b, m in zip(result["lower_bound_bytes"], result["schedules"][0]["dram_bytes"], strict=True))


def test_of_large_kernels_fewer_sizes_are_simulated_near_the_cache(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    question = ("curve", *GEMM, "--cache", "512KiB", *KERNEL, "--schedules", "row,grouped-4", "--policy", "fifo")
    few = run(capsys, *question)["capacities_bytes"]
    monkeypatch.setattr("pebble.reports.curve._MOST_LINES", 1e3)
    fewest = run(capsys, *question)["capacities_bytes"]
    assert len(fewest) == FEWEST_POINTS + 1 < len(few) and few[-1] == fewest[-1]
    assert len(run(capsys, *question, "--points", "9")["capacities_bytes"]) in (9, 10)
    monkeypatch.setattr("pebble.reports.curve._NEAR", 2)
    assert run(capsys, *question, "--to", "192KiB")["capacities_bytes"][0] == 96 * 2**10  # below half of the cache
    monkeypatch.setattr("pebble.reports.curve._NEAR", 4)
    assert run(capsys, *question)["capacities_bytes"][0] == max(few[0], 2**17)
