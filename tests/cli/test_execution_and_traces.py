"""``simulate`` with execution models, sensitivity, and traces in files."""

import json
from pathlib import Path
from typing import Any

import pytest

from pebble.cli import main

GEMM = ("gemm", "-m", "1024", "-n", "768", "-k", "512")
MEMORY = ("--cache", "512KiB", "--sms", "10")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("execution", ["persistent", "dynamic-10", "split-k-4", "stream-k", "stream-k-hybrid"])
def test_executions(capsys: pytest.CaptureFixture[str], execution: str) -> None:
    result = run(capsys, "compare", *GEMM, *MEMORY, "--schedules", "row,morton", "--execution", execution)
    assert all(s["ratio_to_lower_bound"] >= 1 for s in result["schedules"])
    single = run(capsys, "simulate", *GEMM, *MEMORY, "--schedule", "row", "--execution", execution)
    assert single["execution"] == execution
    assert single["dram_bytes"] == next(s["dram_bytes"] for s in result["schedules"] if s["name"] == "row")
    reference = run(capsys, "simulate", *GEMM, *MEMORY, "--schedule", "row")
    if execution == "persistent":
        assert single["dram_bytes"] == reference["dram_bytes"]
    assert ("partials" in single["by_operand"]) == (execution in ("split-k-4", "stream-k", "stream-k-hybrid"))


def test_multicast_saves_touches(capsys: pytest.CaptureFixture[str]) -> None:
    plain = run(capsys, "simulate", *GEMM, *MEMORY, "--schedule", "row")
    pairs = run(capsys, "simulate", *GEMM, *MEMORY, "--schedule", "row", "--cluster", "2x1")
    assert pairs["accesses_lines"] < plain["accesses_lines"]
    assert pairs["cluster"] == [2, 1]


def test_sensitivity(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("simulate", *GEMM, *MEMORY, "--schedule", "row", "--sensitivity")
    result = run(capsys, *arguments, "--policy", "partitions-2")["sensitivity"]
    assert {len(result[key]) > 0 for key in ("skew", "capacity", "maps")} == {True}
    assert next(m for m in result["capacity"] if m["what"] == "cache x 1")["least_bytes"] == result["base_bytes"]
    assert main(list(arguments)) == 0
    assert "assumption changed" in capsys.readouterr().out


def test_a_cliff_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    """B and a row of A just fit: a little less cache and row order streams B again and again."""
    gemm = ("gemm", "-m", "2048", "-n", "768", "-k", "512", "--schedule", "row")
    result = run(capsys, "simulate", *gemm, "--cache", "1024KiB", "--sms", "6", "--sensitivity")["sensitivity"]
    assert any("cliff of capacity" in warning for warning in result["warnings"])


def test_write_and_read_a_trace(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for suffix in ("csv", "npz"):
        path = str(tmp_path / f"t.{suffix}")
        arguments = (*GEMM, *MEMORY, "--schedule", "morton")
        written = run(capsys, "simulate", *arguments, "--write-trace", path)
        assert written["touches"] > 0
        expected = run(capsys, "simulate", *arguments)
        result = run(capsys, "simulate", "--trace", path, "--cache", "512KiB")
        for key in ("accesses_lines", "dram_read_bytes", "dram_write_bytes", "by_operand"):
            assert result[key] == expected[key]
        judged = run(capsys, "simulate", *GEMM, *MEMORY, "--trace", path)
        assert judged["ratio_to_lower_bound"] >= 1
    assert main(["simulate", *GEMM, *MEMORY, "--trace", path]) == 0
    assert "proved bound" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "or --trace FILE"),
        ((*GEMM, *MEMORY), "or --trace FILE"),
        (("--trace", "none.csv", "--cache", "1MiB"), "cannot be read"),
        (("--trace", "none.csv"), "memory"),
        (("--trace", "none.csv", "--cache", "1MiB", "--schedule", "row"), "--schedule"),
        ((*GEMM, *MEMORY, "--schedule", "row", "--execution", "dynamik"), "did you mean dynamic"),
        ((*GEMM, *MEMORY, "--schedule", "row", "--execution", "stream-k", "--cluster", "2x1"), "expected waves"),
        ((*GEMM, *MEMORY, "--schedule", "row", "--seed", "-1"), "--seed"),
        (
            ("llama-2-7b:mlp", "--tokens", "64", *MEMORY, "--schedule", "row-fused-2", "--execution", "stream-k"),
            "waves",
        ),
        (
            ("llama-2-7b:mlp", "--tokens", "64", *MEMORY, "--schedule", "row-fused-2", "--sensitivity"),
            "expected a gemm",
        ),
    ],
)
def test_mistakes(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str) -> None:
    assert main(["simulate", *arguments]) == 2
    assert says in capsys.readouterr().err
