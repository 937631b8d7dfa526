"""The families made of parts on the command line: grouped and batched GEMM, a transformer layer."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pebble.cli import main

GROUPED = ["grouped", "--rows", "40,24,40", "-n", "32", "-k", "64"]
BATCH = ["gemm", "-m", "40", "-n", "32", "-k", "64", "--batch", "3"]
SIZES = "--tokens 64 --d-model 32 --hidden 96 --heads 4 --kv-heads 2 --head-dim 8 --gated"
LAYER = ["layer", *SIZES.split()]
CACHE = ["--cache", "100el"]


def answered(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("words", [GROUPED, BATCH, LAYER], ids=["grouped", "batch", "layer"])
def test_bound_certificate_verify_prove(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.json"
    result = answered(capsys, "bound", *words, *CACHE, "--certificate", str(path))
    lower, upper = result["lower_bound"], result["upper_bound"]
    assert lower["method"] == "the bounds of its parts, added"
    assert lower["elements"] == sum(part["count"] * part["elements"] for part in lower["certificate"]["parts"])
    assert lower["elements"] <= upper["elements"] and lower["bytes"] <= upper["bytes"]
    assert answered(capsys, "verify", str(path))["verified"]
    document = json.loads(path.read_text())
    assert document["claims"][0]["elements"] == lower["elements"]
    for claim in document["claims"]:
        changed = {**document, "claims": [{**claim, "elements": claim["elements"] + 1}]}
        path.write_text(json.dumps(changed))
        assert main(["verify", str(path)]) == 5
        assert "elements" in "".join(capsys.readouterr())
    out = tmp_path / "proof.md"
    assert main(["prove", *words, *CACHE, "--out", str(out)]) == 0
    assert str(lower["elements"]) in re.sub(r"[^0-9 ]", "", out.read_text())
    assert main(["bound", *words, *CACHE]) == 0
    assert f"lower bound  {lower['elements']:,} elements" in capsys.readouterr().out


def test_equal_groups_are_a_batch(capsys: pytest.CaptureFixture[str]) -> None:
    grouped = answered(capsys, "bound", "grouped", "--rows", "40,40,40", "-n", "32", "-k", "64", *CACHE)
    batch = answered(capsys, "bound", *BATCH, *CACHE)
    del grouped["command"], batch["command"]
    assert grouped == batch
    assert batch["workload"]["label"] == "grouped batch=3 m=40 n=32 k=64 bf16"


def test_a_batch_of_one_is_the_gemm(capsys: pytest.CaptureFixture[str]) -> None:
    single, plain = answered(capsys, "bound", *BATCH[:-1], "1", *CACHE), answered(capsys, "bound", *BATCH[:-2], *CACHE)
    del single["command"], plain["command"]
    assert single == plain


def test_a_layer_of_a_named_model(capsys: pytest.CaptureFixture[str]) -> None:
    result = answered(capsys, "bound", "llama-3-8b:layer", "--tokens", "8192", "--cache", "40MiB")
    parts = {part["name"]: part["count"] for part in result["lower_bound"]["certificate"]["parts"]}
    assert parts == {"qkv": 1, "attention": 8, "o": 1, "mlp": 1}
    assert result["separate_kernels_bound"]["elements"] >= result["lower_bound"]["elements"]
    kernels = result["separate_kernels_bound"]["certificate"]["kernels"]
    assert sum(kernel["elements"] for kernel in kernels) == result["separate_kernels_bound"]["elements"]
    assert "sum" not in result["workload"]["label"] and "llama-3-8b:layer" in result["workload"]["label"]


REFUSED = [
    (["grouped", "--rows", "0,0", "-n", "4", "-k", "4"], ["rows: got 0 groups"]),
    (["grouped", "--rows", "-1", "-n", "4", "-k", "4"], ["--rows"]),
    (["grouped", "--rows", "5,", "-n", "4", "-k", "4"], ["--rows", "128,256,64"]),
    (["grouped", "--rows", ",", "-n", "4", "-k", "4"], ["--rows"]),
    (["grouped", "--rows", "", "-n", "4", "-k", "4"], ["--rows"]),
    (["grouped", "--rows", "5x6", "-n", "4", "-k", "4"], ["--rows"]),
    (["grouped", "--rows", "1.5,2", "-n", "4", "-k", "4"], ["--rows"]),
    (["grouped", "--rows", "5,٣", "-n", "4", "-k", "4"], ["--rows"]),
    (["grouped", "--rows", ",".join(["1"] * 4097), "-n", "4", "-k", "4"], ["4097", "4096"]),
    (["grouped", "--rows", f"5,{2**33}", "-n", "4", "-k", "4"], ["rows", str(2**32)]),
    (["grouped", "-n", "4", "-k", "4"], ["--rows missing"]),
    (["grouped", "--rows", "5", "-n", "4", "-k", "4", "--batch", "2"], ["--batch"]),
    (["grouped", "--rows", "5", "-m", "3", "-n", "4", "-k", "4"], ["-m"]),
    (["gemm", "-m", "4", "-n", "4", "-k", "4", "--batch", "0"], ["--batch"]),
    (["gemm", "-m", "4", "-n", "4", "-k", "4", "--batch", "4097"], ["--batch", "4096"]),
    (["gemm", "-m", "4", "-n", "4", "-k", "4", "--batch", "x"], ["--batch"]),
    (["layer", *LAYER[1:-1], "--kv-heads", "3"], ["divisor"]),
    (["layer", *LAYER[3:]], ["--tokens missing"]),
    (["layer", *LAYER[1:], "--causal"], ["--causal"]),
    (["llama-3-8b:layer"], ["--tokens missing"]),
    (["llama-3-8b:layers", "--tokens", "4"], ["layer"]),
]


@pytest.mark.parametrize(("words", "parts"), REFUSED, ids=[" ".join(case[0])[:50] for case in REFUSED])
def test_bad_input_is_one_sentence(words: list[str], parts: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bound", *words, "--cache", "1KiB"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.strip().splitlines()) == 1 and len(err) < 500, err
    assert all(part in err for part in parts), err


@pytest.mark.parametrize("command", ["compare", "simulate", "curve"])
def test_a_layer_has_four_kernels_and_no_one(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    schedule = ["--schedule", "row"] if command == "simulate" else []
    assert main([command, *LAYER, "--cache", "1MiB", "--sms", "4", *schedule]) == 2
    error = capsys.readouterr().err
    assert len(error.strip().splitlines()) == 1 and "simulate each of its four kernels by itself: gemm m=" in error


@pytest.mark.parametrize("words", [GROUPED, BATCH], ids=["grouped", "batch"])
def test_groups_have_kernels(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    kernel = ["--cache", "1MiB", "--sms", "4", "--policy", "lru"]
    result = answered(capsys, "compare", *words, *kernel)
    traffic = {row["name"]: row["dram_bytes"] for row in result["schedules"]}
    assert len(traffic) == 28 and min(traffic.values()) >= result["lower_bound"]["bytes"]
    single = answered(capsys, "simulate", *words, *kernel, "--schedule", "hilbert")
    assert single["dram_bytes"] == traffic["hilbert"]
    curve = answered(capsys, "curve", *words, *kernel, "--schedules", "hilbert", "--points", "3")
    at = curve["capacities_bytes"].index(2**20)
    assert curve["schedules"][0]["dram_bytes"][at] == traffic["hilbert"]


def test_groups_have_dags(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["-n", "1", "-k", "2"]
    batch = answered(capsys, "dag", "gemm", "-m", "2", *sizes, "--batch", "3")
    equal = answered(capsys, "dag", "grouped", "--rows", "2,2,2", *sizes)
    single = answered(capsys, "dag", "gemm", "-m", "2", *sizes)
    for key in ("nodes", "edges", "operations", "inputs", "outputs", "compulsory_weight"):
        assert batch[key] == equal[key] == 3 * single[key]
    assert batch["depth"] == equal["depth"] == single["depth"]
    solved = answered(capsys, "solve", "grouped", "--rows", "1,2", *sizes, "--capacity", "3")
    alone = [answered(capsys, "solve", "gemm", "-m", m, *sizes, "--capacity", "3")["upper_bound"] for m in "12"]
    assert solved["status"] == "optimal" and solved["upper_bound"] == sum(alone)


@pytest.mark.parametrize("words", [GROUPED, LAYER], ids=["grouped", "layer"])
def test_several_sms_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bound", *words, "--cache", "1KiB", "--sms", "4", "--buffers", "sm-local"]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_too_little_memory(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (GROUPED, BATCH, LAYER):
        assert main(["bound", *words, "--cache", "2el"]) == 4
        assert "at least 3" in capsys.readouterr().err


def test_recomputation_changes_a_layer_only(capsys: pytest.CaptureFixture[str]) -> None:
    again = ["--recompute", "allowed"]
    for words in (GROUPED, BATCH):
        once, twice = answered(capsys, "bound", *words, *CACHE), answered(capsys, "bound", *words, *CACHE, *again)
        assert once["lower_bound"]["elements"] == twice["lower_bound"]["elements"]
    once, twice = answered(capsys, "bound", *LAYER, *CACHE), answered(capsys, "bound", *LAYER, *CACHE, *again)
    assert twice["lower_bound"]["method"] == "compulsory"
    assert twice["lower_bound"]["elements"] < once["lower_bound"]["elements"]
