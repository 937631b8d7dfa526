"""What the command line and the front door say of time: for every family, with a GPU and without."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pebble
from pebble.cli import main

WORKLOADS = [
    "gemm -m 1024 -n 1024 -k 1024",
    "gemm -m 256 -n 256 -k 64 --batch 4",
    "ffn --tokens 512 --d-model 256 --hidden 1024",
    "ffn --tokens 512 --d-model 256 --hidden 1024 --gated",
    "attention --queries 512 --keys 512 --head-dim 64 --heads 8 --kv-heads 2 --causal",
    "conv2d --batch 4 --in-channels 16 --out-channels 16 --height 20 --width 20 --kernel 3",
    "grouped --rows 128,64 -n 256 -k 512",
    "llama-3-8b:layer --tokens 64",
    "llama-3-8b:gate_up --tokens 64",
]
SIMULATED = [text for text in WORKLOADS if not text.startswith(("conv2d", "llama-3-8b:layer"))]


def run(words: str, capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    assert main(words.split()) == code
    return capsys.readouterr().out


def answer(words: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(run(f"{words} --json", capsys))
    return result


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("sku", ["a100-sxm4-40gb", "h200-sxm-141gb", "gb10"])
def test_bound_tells_the_floor(workload: str, sku: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = answer(f"bound {workload} --gpu {sku}", capsys)
    floor, parts = result["time_floor"], {part["what"]: part for part in result["time_floor"]["parts"]}
    assert floor["floor_us"] == max(part["time_us"] for part in parts.values())
    assert floor["binds"] == max(parts, key=lambda name: parts[name]["time_us"])
    dram = parts["dram"]
    assert dram["bytes"] == result["lower_bound"]["bytes"]
    assert dram["time_us"] == pytest.approx(dram["bytes"] / dram["rate"]["bytes_per_second"] * 1e6)
    if sku != "gb10":
        assert set(parts) == {"operations", "dram", "l2"} and not floor["missing"]
        assert parts["operations"]["operations"] == result["workload"]["flops"]
    text = run(f"bound {workload} --gpu {sku}", capsys)
    assert "time floor " in text and ("by DRAM alone" if sku == "gb10" else "-bound") in text


@pytest.mark.parametrize("workload", SIMULATED)
def test_compare_tells_the_least_time_of_each_order(workload: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = answer(f"compare {workload} --gpu a40 --policy lru", capsys)
    floor = result["time_floor"]
    dram = next(part for part in floor["parts"] if part["what"] == "dram")
    assert dram["bytes"] == result["lower_bound"]["bytes"]
    for row in result["schedules"]:
        by_bytes = row["dram_bytes"] / dram["rate"]["bytes_per_second"] * 1e6
        assert row["least_time_us"] == pytest.approx(max(floor["floor_us"], by_bytes))
        assert row["least_time_us"] >= floor["floor_us"]
    assert floor["verdict"].startswith(
        {"operations": "compute", "dram": "DRAM", "l2": "L2"}[floor["binds"]] + "-bound: "
    )


@pytest.mark.parametrize("command", ["bound {} --cache 1MiB", "compare {} --cache 1MiB --sms 8 --schedules row"])
def test_without_a_gpu_there_is_no_time(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = command.format(WORKLOADS[0])
    assert "time_floor" not in answer(words, capsys)
    text = run(words, capsys)
    assert "time floor" not in text and "x bound  least" not in text


def test_tables_fit_sixty_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for words in (
        f"compare {WORKLOADS[0]} --gpu a100-sxm4-40gb --schedules row,hilbert --energy 7nm",
        f"bound {WORKLOADS[2]} --gpu rtx4090 --dtype fp16 --accumulator fp16 --energy k40",
        "decode llama-3-8b --gpu h100-sxm5-80gb",
    ):
        assert [line for line in run(words, capsys).splitlines() if len(line) > 60] == []


def test_the_accumulator_halves_the_floor_of_an_rtx_4090(capsys: pytest.CaptureFixture[str]) -> None:
    words = "bound gemm -m 8192 -n 8192 -k 8192 --dtype fp16 --gpu rtx4090"
    wide = answer(words, capsys)["time_floor"]["floor_us"]
    narrow = answer(f"{words} --accumulator fp16", capsys)["time_floor"]["floor_us"]
    assert wide / narrow == pytest.approx(330.3 / 165.2)
    assert "sums in fp16" in run(f"{words} --accumulator fp16", capsys)


def test_decode_tells_the_time_of_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    result = answer("decode llama-3-8b --gpu h100-sxm5-80gb", capsys)
    for step in result["steps"]:
        assert step["dram_us"] == pytest.approx(step["layer_bytes"] / 3.35e12 * 1e6)
        assert step["time_floor_us"] == max(step["dram_us"], step["operations_us"])
        assert step["kv_us"] / step["dram_us"] == pytest.approx(step["kv_share"])
    text = re.sub(r"\s+", " ", run("decode llama-3-8b --gpu h100-sxm5-80gb", capsys))
    assert "every step is DRAM-bound" in text and "1.0% to 98.7% of that time" in text
    assert "least time" not in run("decode llama-3-8b --cache 50MiB", capsys)


def test_a_slow_chip_computes_through_decode_steps(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "slow.toml"
    file.write_text(
        'name = "Slow"\nsms = { value = 8, unit = "SM" }\ndram_bandwidth = { value = 4, unit = "TB/s" }\n'
        '[stores]\nl2 = { value = 4, unit = "MiB" }\nl1_shared_per_sm = { value = 128, unit = "KiB" }\n'
        'registers_per_sm = { value = 256, unit = "KiB" }\n[throughput]\nbf16 = { value = 1, unit = "TFLOPS" }\n'
    )
    text = re.sub(r"\s+", " ", run(f"decode llama-3-8b --machine {file}", capsys))
    assert "all 56 steps are compute-bound" in text and "ms*" in text


def test_energy_is_an_estimate_and_only_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    words = "compare gemm -m 1024 -n 1024 -k 1024 --gpu h100-sxm5-80gb --schedules row,hilbert"
    assert "energy" not in json.dumps(answer(words, capsys))
    result = answer(f"{words} --energy 7nm", capsys)
    prices = result["energy_estimate"]["prices"]
    for row in result["schedules"]:
        assert row["dram_joules"] == pytest.approx(
            row["dram_bytes"] * prices["dram.hbm"]["picojoules_per_byte"] * 1e-12
        )
        assert row["total_joules"] > result["energy_estimate"]["of_the_bounds"]["total_joules"]
    text = re.sub(r"\s+", " ", run(f"{words} --energy 7nm", capsys))
    assert "energy is an estimate, not a bound" in text


def test_the_front_door() -> None:
    gemm = pebble.Gemm(4096, 4096, 4096)
    bound = pebble.bound(gemm, gpu="a100-sxm4-40gb")
    assert bound.timed is not None and bound.timed.floor.seconds == pytest.approx(2 * 4096**3 / 312e12)
    assert bound.verdict.startswith("compute-bound: DRAM needs ")
    result = pebble.compare(gemm, ["row", "hilbert"], gpu="a100-sxm4-40gb", energy="7nm")
    assert result.timed is not None and result.timed.energy is not None
    assert all(result.least_seconds(t) >= result.timed.floor.seconds for t in result.orders)
    assert pebble.bound(gemm, cache="40MiB").timed is None
    decode = pebble.decode("llama-3-8b", gpu="a40")
    assert len(decode.floors) == len(decode.steps) and all(floor.seconds > 0 for floor in decode.floors)


def test_the_floor_is_the_same_whatever_orders_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    gemm = "compare gemm -m 4096 -n 14336 -k 4096 --gpu h200-sxm-141gb --tile 128x128 --policy lru --schedules "
    with_row, without = answer(gemm + "grouped-8,row", capsys), answer(gemm + "grouped-8", capsys)
    slowest = max(row["least_time_us"] for row in with_row["schedules"])
    assert slowest > 1.3 * with_row["time_floor"]["floor_us"]  # DRAM needs longer for row
    for result in (with_row, without):
        assert result["time_floor"]["verdict"].startswith("compute-bound: DRAM needs 55.9 us of 450 at the bound, ")
    assert "701 with row, which moves most" in with_row["time_floor"]["verdict"]


def test_fewest_bytes_are_not_called_least_time(capsys: pytest.CaptureFixture[str]) -> None:
    ffn = "ffn --tokens 8192 --d-model 4096 --hidden 11008 --gpu a40 --schedules separate:grouped-8,row-fused-8"
    assert main(["compare", *ffn.split(), "--explain"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "row-fused-8, in bytes alone; `pebble time` ranks by time" in text
    assert "fewer bytes need not take less time" in text and "saves" not in text
    fastest = answer(f"time {ffn}", capsys)["schedules"][0]["name"]
    assert fastest == "separate:grouped-8"  # and row-fused-8 moves less


def test_what_is_no_kernel_is_called_none(capsys: pytest.CaptureFixture[str]) -> None:
    attention = "attention --queries 512 --keys 512 --head-dim 64 --gpu h100-sxm5-80gb --schedules fa2,fa3"
    for command in ("compare", "time"):
        assert main([command, *attention.split(), "--explain"]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert "FlashAttention-1, -2, -3 and FlashDecoding in a modelled kernel of the tile above" in text
        assert ("MiB by hand: a schedule, not a kernel" in text) is (command == "compare")
        assert main([command, *attention.split()]) == 0
        assert "fa3, flash-decoding: walks in a modelled kernel, not those programs" in " ".join(
            capsys.readouterr().out.split()
        )


def test_a_screen_says_where_tile_and_stages_come_from(capsys: pytest.CaptureFixture[str]) -> None:
    def header(rest: str) -> str:
        assert main(f"simulate gemm -m 512 -n 512 -k 512 --schedule row {rest}".split()) == 0
        return " ".join(capsys.readouterr().out.split())

    assert "tile 64x64x64 (advise), 6 stages, 132" in header("--gpu h200-sxm-141gb")
    assert "tile 128x128x64 (default), 1 stage (default), 8" in header("--cache 1MiB --sms 8")
    assert "tile 64x64x64, 2 stages, 132" in header("--gpu h200-sxm-141gb --tile 64x64x64 --stages 2")
    exported = answer("export row gemm -m 512 -n 512 -k 512 --gpu h200-sxm-141gb --format json", capsys)
    assert exported["notes"][-1] == ("tile and stages are those that `pebble advise` picks")


def test_no_bound_may_be_gone_below_where_more_memory_proves_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """Compulsory traffic: the L2 alone proves as much as all that a kernel holds."""
    for shape, may in (("256", False), ("8192", True)):
        workload = ["gemm", "-m", shape, "-n", shape, "-k", shape, "--gpu", "a40"]
        for command in (["compare", *workload, "--schedules", "row"], ["bound", *workload]):
            assert main([*command, "--explain"]) == 0
            text = " ".join(capsys.readouterr().out.split())
            assert ("may go below" in text) is may


def test_rates_that_are_not_known_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    for gpu, unknown in (("gb10", "operations"), ("a100-sxm4-40gb", "")):
        assert main(["bound", "gemm", "-m", "512", "-n", "512", "-k", "512", "--gpu", gpu]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert ("left out, whose rates are not known" in text) == bool(unknown)
        assert f"{unknown}" in text


def test_dram_hides_behind_l2_only_where_l2_hides(capsys: pytest.CaptureFixture[str]) -> None:
    for gpu, tile, hidden in (("b200-sxm", "128x256x64", False), ("a100-sxm4-40gb", "128x128x32", True)):
        assert main(["cycles", "--tile", tile, "--gpu", gpu]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert ("hidden if" in text) is hidden, text


def test_what_is_not_timed_when_sustained_stands_beside_what_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Producers and consumers side by side: of these no sustained run was measured."""
    ffn = "time ffn --tokens 512 --d-model 256 --hidden 512 --gpu h100-sxm5-80gb --tile 64x64x64"
    rows = {row["name"]: row for row in answer(ffn, capsys)["schedules"]}
    of = {name: row["sustained_ms"] is None for name, row in rows.items()}
    assert of["interleaved-2"] and not of["row-fused-2"]
    lines = run(ffn, capsys).splitlines()
    one = next(line.split() for line in lines if line.startswith("interleaved-"))
    columns = next(line for line in lines if line.startswith("schedule "))
    assert "sustained us" in columns and "-" in one


def test_an_interrupt_keeps_what_was_timed(capsys: pytest.CaptureFixture[str]) -> None:
    def after_two(total: int) -> Callable[[str], None]:
        done: list[str] = []

        def tell(name: str) -> None:
            done.append(name)
            if len(done) == 2:
                raise KeyboardInterrupt

        return tell

    found = pebble.time(
        pebble.Gemm(512, 512, 512), ["row", "column", "hilbert", "morton"], gpu="a40", tile="64x64x64",
        progress=after_two,
    )  # fmt: skip
    assert not found.complete and 2 <= len(found.orders) < 4
    assert found.best.time.seconds >= found.floor.seconds
