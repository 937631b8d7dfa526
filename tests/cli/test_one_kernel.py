"""Every command that is asked for no tile runs the kernel that `pebble advise` picks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import pebble
from pebble import models
from pebble.cli import main
from pebble.reports.default_kernel import advised_kernel

SHAPES = {
    "gemm": "gemm -m 1k -n 1536 -k 512",
    "thin": "gemm -m 16 -n 2048 -k 1024",
    "ffn": "ffn --tokens 512 --d-model 384 --hidden 1024 --gated",
    "attention": "attention --queries 512 --keys 512 --head-dim 64 --heads 4 --causal",
    "decode": "attention --queries 1 --keys 2048 --head-dim 128 --heads 8 --kv-heads 2",
    "grouped": "grouped --rows 256,17,1000 -n 512 -k 256",
}
GEMM = pebble.Gemm(1024, 1536, 512)
TUNED = tuple(SHAPES)  # families that `tune` searches


def document(capsys: pytest.CaptureFixture[str], words: str) -> dict[str, Any]:
    assert main([*words.split(), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert isinstance(result, dict)
    return result


QUICK = {("attention", "a100"), ("ffn", "l40s"), ("gemm", "mi300x"), *((name, "h100") for name in SHAPES)}


@pytest.mark.parametrize(
    ("name", "gpu"),
    [
        pytest.param(name, gpu, marks=() if (name, gpu) in QUICK else pytest.mark.slow)
        for name in SHAPES
        for gpu in ("h100", "a100", "l40s", "mi300x")
    ],
)
def test_all_commands_run_the_kernel_that_is_advised(
    name: str, gpu: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = f"{SHAPES[name]} --gpu {gpu}"
    advised = document(capsys, f"advise {where}")
    kernel, order = advised["kernel"], advised["kernel"]["order"]
    others = {
        "compare": (compared := document(capsys, f"compare {where} --schedules {order}"))["kernel"],
        "time": (timed := document(capsys, f"time {where}"))["kernel"],
        "simulate": document(capsys, f"simulate {where} --schedule {order}")["kernel"],
        "curve": (curved := document(capsys, f"curve {where} --schedules {order} --points 2"))["kernel"],
    }
    if name in TUNED:
        others["tune"] = document(capsys, f"tune {where} --time-limit 0.1")["kernel"]
    first = document(capsys, f"tile {where} --top 1")["configurations"][0]
    for command, result in others.items():
        assert result["tile"].startswith(kernel["tile"]), command  # a curve names the depth of attention's tiles too
        for key in ("stages", "blocks_per_sm"):
            assert result[key] == kernel[key] == first[key], command
    assert first["warps"] == kernel["warps"] and first["schedule"] == order
    # one answer in every document: how it runs, its time, its bytes, what is proved
    expect, limit = advised["expect"], advised["limit"]
    row = next(row for row in timed["schedules"] if row["name"] == order)
    at = curved["capacities_bytes"].index(curved["kernel"]["cache_bytes"])
    ways = {result["execution"] for command, result in others.items() if command != "tune"}  # which ranks by several
    assert ways == {kernel["execution"]}
    assert row["single_ms"] == pytest.approx(expect["single_ms"]) == pytest.approx(first["modelled_seconds"] * 1e3)
    assert row["joules"] == (pytest.approx(expect["joules"]) if expect["joules"] is not None else None)
    moved = {row["dram_bytes"], first["dram_bytes"], compared["schedules"][0]["dram_bytes"], expect["dram_bytes"]}
    assert moved == {curved["schedules"][0]["dram_bytes"][at]}
    assert compared["lower_bound"]["bytes"] == limit["dram_bytes"] == curved["lower_bound_bytes"][at]
    assert row["floor_ms"] == pytest.approx(limit["ms"])
    assert timed["verdict"]["order"] == order
    # the verdict on orders: of those that advise tries, time ranks the same first
    tried = {row["order"] for row in advised["tried"] if row["tile"] == kernel["tile"]}
    ranked = [row["name"] for row in timed["schedules"] if row["name"] in tried]
    by_name = {row["name"]: row for row in timed["schedules"]}
    key = "modelled_ms" if advised["expect"]["joules"] is None else "sustained_ms"
    assert by_name[ranked[0]][key] == pytest.approx(advised["expect"]["sustained_ms"])
    if order in by_name:
        assert by_name[order][key] == pytest.approx(by_name[ranked[0]][key])


@pytest.mark.parametrize("gpu", ["h100", "a40"])
@pytest.mark.parametrize("name", ["gemm", "ffn"])
def test_what_is_exported_is_that_kernel(
    name: str, gpu: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = document(capsys, f"advise {SHAPES[name]} --gpu {gpu}")["kernel"]
    where = f"{SHAPES[name]} --gpu {gpu}"
    result = document(capsys, f"export {kernel['order']} {where} --format json --out {tmp_path}/t.json")
    assert result["launch"]["tile"] == kernel["tile"]
    assert result["launch"]["stages"] == kernel["stages"]
    assert result["launch"]["blocks_per_sm"] == kernel["blocks_per_sm"]


def test_what_is_given_is_taken() -> None:
    assert advised_kernel(GEMM, gpu="h100", tile="128x128x64").fitted.tile_from == "given"
    assert advised_kernel(GEMM, cache="1MiB", sms=8).fitted.tile_from == "default"  # a bare memory has no speed
    two = advised_kernel(GEMM, gpu="h100", blocks_per_sm=2, stages=2)
    assert (two.config.blocks_per_sm, two.stages, two.fitted.tile_from) == (2, 2, "advised")
    assert two.fit is not None and two.fit.fits
    few = advised_kernel(GEMM, gpu="h100", sms=7)
    assert few.config.sms == 7 and few.fitted.tile_from == "advised"


def test_a_chip_without_rates_has_the_tile_of_the_family(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    parts = (Path(models.__file__).parent / "machines" / "a40.toml").read_text().split("\n\n")
    mine.write_text("\n\n".join(part for part in parts if not part.startswith("[dram_bandwidth]")))
    kernel = advised_kernel(GEMM, machine=str(mine))
    assert kernel.fitted.tile_from == "default" and kernel.tile == "128x128x64"
