"""``--policy`` in compare and simulate, and ``machines --explain``."""

import json
from typing import Any

import pytest

from pebble.cli import main

GEMM = ("gemm", "-m", "1024", "-n", "768", "-k", "512")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "policy",
    ["lru", "fifo", "opt", "random", "oldest-of-4", "set-16", "set-16-hashed:fifo", "sectored", "partitions-2",
     "partitions-2:oldest-of-4+map-halves", "chiplets-8+llc-2MiB", "lru+no-write-allocate"],
)  # fmt: skip
def test_every_policy_stays_above_the_bound(capsys: pytest.CaptureFixture[str], policy: str) -> None:
    memory = ("--cache", "2MiB", "--sms", "16", "--policy", policy)
    result = run(capsys, "compare", *GEMM, *memory, "--schedules", "row,morton")
    assert result["kernel"]["policy"] == policy
    assert all(s["ratio_to_lower_bound"] >= 1 for s in result["schedules"])
    single = run(capsys, "simulate", *GEMM, *memory, "--schedule", "row")
    row = next(s for s in result["schedules"] if s["name"] == "row")
    assert single["dram_bytes"] == row["dram_bytes"]
    assert 0 <= single["dirty_residue_bytes"] <= single["dram_write_bytes"]


@pytest.mark.parametrize(
    "workload", [("llama-2-7b:mlp", "--tokens", "256"), ("llama-2-7b:attention", "--tokens", "512")]
)
@pytest.mark.parametrize("policy", ["partitions-2:oldest-of-8", "set-16-hashed", "random", "sectored"])
def test_chains_and_attention(capsys: pytest.CaptureFixture[str], workload: tuple[str, ...], policy: str) -> None:
    name = "row-fused-2" if "mlp" in workload[0] else "fa2"
    result = run(capsys, "compare", *workload, "--gpu", "a40", "--policy", policy, "--schedules", name)
    assert result["schedules"][0]["ratio_to_lower_bound"] >= 1


def test_hardware_means_the_machines_model(capsys: pytest.CaptureFixture[str]) -> None:
    result = run(capsys, "simulate", *GEMM, "--gpu", "h20", "--schedule", "row", "--policy", "hardware")
    assert result["policy"] == "partitions-2:oldest-of-8"
    assert any("NVIDIA H20 (measured)" in note for note in result["notes"])
    assert run(capsys, "simulate", *GEMM, "--gpu", "h20", "--schedule", "row")["notes"] == result["notes"]


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["machines", "h20", "--explain"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "cache model (measured): partitions-2:oldest-of-8" in out
    assert "299 to 305 MB" in out
    assert run(capsys, "machines", "h20")["cache_model"]["policy"] == "partitions-2:oldest-of-8"
    assert main(["machines", "--explain"]) == 2


def test_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    memory = ("--cache", "2MiB", "--sms", "16")
    for policy, says in (("hardware", "--gpu"), ("lru+warm", "cold start"), ("lruu", "did you mean lru")):
        assert main(["compare", *GEMM, *memory, "--policy", policy]) == 2
        assert says in capsys.readouterr().err


def test_a_policy_that_looks_ahead_has_no_column_of_free_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    result = run(capsys, "compare", *GEMM, "--gpu", "a40", "--policy", "opt", "--schedules", "row")
    assert not any(key in result["schedules"][0] for key in ("free_dram_bytes", "lru_dram_bytes"))
    assert any("opt looks ahead" in note for note in result["notes"])
    assert not any("execution free simulates" in note for note in result["notes"])
    plain = run(capsys, "compare", *GEMM, "--gpu", "a40", "--policy", "fifo", "--schedules", "row")
    assert "free_dram_bytes" in plain["schedules"][0]
    assert result["schedules"][0]["dram_bytes"] <= plain["schedules"][0]["dram_bytes"]
