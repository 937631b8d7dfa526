"""``pebble bound`` as a user runs it."""

import json

import pytest

from pebble.cli import main


def bound(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert main(["bound", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    found = bound(capsys, "gemm", "-m", "8192", "-n", "8192", "-k", "8192", "--cache", "40MiB")
    assert found["lower_bound"]["elements"] >= 260_900_000
    assert found["lower_bound"]["bytes"] == 2 * found["lower_bound"]["elements"]
    assert found["upper_bound"]["elements"] <= 335_600_000
    assert found["capacity"]["elements"] == 20_971_520
    assert found["capacity"]["what"] == "cache"
    assert found["buffers"] == "single"
    assert found["recompute"] == "forbidden"
    assert found["gap"] == found["upper_bound"]["elements"] / found["lower_bound"]["elements"]
    names = {b["name"]: b for b in found["published"]}
    assert set(names) == {
        "compulsory", "irony-toledo-tiskin", "smith-et-al", "cosma", "parallel-memory-independent"
    }  # fmt: skip
    assert names["compulsory"]["elements"] == 201_326_592
    assert all(b["status"] in ("proven", "not_proven_here", "refuted_here") and b["note"] for b in names.values())


def test_compulsory_on_both_sides(capsys: pytest.CaptureFixture[str]) -> None:
    found = bound(capsys, "gemm", "-m", "4096", "-n", "4096", "-k", "4096", "--cache", "40MiB")
    assert found["lower_bound"]["elements"] == found["upper_bound"]["elements"] == 50_331_648
    assert found["gap"] == 1


def test_chip_capacity(capsys: pytest.CaptureFixture[str]) -> None:
    found = bound(capsys, "llama-3-8b:gate_up", "--tokens", "8192", "--gpu", "h100-sxm5-80gb")
    assert found["capacity"] == {**found["capacity"], "what": "chip", "bytes": 116 * 2**20}
    assert (found["workload"]["m"], found["workload"]["n"], found["workload"]["k"]) == (8192, 28672, 4096)
    (l2,) = found["other_capacities"]
    assert l2["lower_bound"]["bytes"] > found["lower_bound"]["bytes"]


def test_accumulate_into_costs_reading_c(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("gemm", "-m", "300", "-n", "200", "-k", "100", "--cache", "500el")
    plain = bound(capsys, *arguments)["lower_bound"]["elements"]
    assert bound(capsys, *arguments, "--accumulate-into")["lower_bound"]["elements"] == plain + 300 * 200


def test_text_output_names_everything(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["bound", "gemm", "-m", "400", "-n", "400", "-k", "10", "--cache", "400el"]) == 0
    out = capsys.readouterr().out
    assert "lower bound" in out
    assert "REFUTED here" in out
    assert max(map(len, out.splitlines())) <= 60
