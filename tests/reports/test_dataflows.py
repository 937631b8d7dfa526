"""Machines of scratchpads: what `compare`, `time`, `bound` and `machines` say of them, and who refuses them."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import pebble
from pebble.cli import main
from pebble.errors import InputError
from pebble.game.buffer_model import Topology
from pebble.models.machine import scratchpad_names
from pebble.reports.dataflows import DataflowComparison
from pebble.reports.target import read_target
from pebble.schedules.explicit.dataflow import Moved
from pebble.timing.on_cores import cost_on_cores, seconds_on_cores
from pebble.workloads import LatentAttention
from tests.schedules.dataflow_replay import check

GEMM = pebble.Gemm(2048, 2048, 2048, dtype="fp16")
FFN = pebble.Ffn(512, 512, 2048, gated=True)
ATTENTION = pebble.Attention(2048, 2048, 64, heads=8, kv_heads=2)
BATCH = pebble.GroupedGemm((256,) * 12, 512, 384)
EXPERTS = pebble.GroupedGemm((512, 3, 70, 3), 512, 384)
LATENT = LatentAttention(1, 4096, heads=16, batch=4)
PAGE = Path(__file__).parents[2] / "docs/accelerators.rst"


@pytest.fixture
def own(tmp_path: Path) -> str:
    """The machine file of the docs page."""
    block = re.search(r"\.\. code-block:: toml\n\n((?:   .*\n|\n)+)", PAGE.read_text())
    assert block is not None
    path = tmp_path / "own.toml"
    path.write_text(re.sub("^   ", "", block[1], flags=re.MULTILINE))
    return str(path)


def compared(workload: Any, **where: Any) -> DataflowComparison:
    result = pebble.compare(workload, **where)
    assert isinstance(result, DataflowComparison)
    return result


@pytest.mark.parametrize("name", scratchpad_names())
@pytest.mark.parametrize(
    ("workload", "rows"), [(GEMM, 3), (FFN, 10), (ATTENTION, 2), (BATCH, 3), (EXPERTS, 3), (LATENT, 2)]
)
def test_every_row_is_above_what_is_proved(name: str, workload: Any, rows: int) -> None:
    result = compared(workload, gpu=name)
    assert len(result.rows()) in (rows, rows + (workload is EXPERTS))  # each size its own, where that is better
    assert (result.into_cores is None) == (workload in (BATCH, EXPERTS, LATENT))
    for row in result.rows():
        assert row["off_chip_bytes"] >= result.bound.bytes >= workload.compulsory_bytes
        assert result.into_cores is None or row["into_cores_bytes"] >= result.into_cores.bytes
        assert row["imbalance"] >= 0
        if row["modelled_ms"] is not None:
            assert row["modelled_ms"] * 1e-3 >= result.floor.seconds * (1 - 1e-9) or "off chip" in " ".join(
                result.notes
            )
        for part in row["parts"]:
            assert part["peak_bytes_per_core"] <= result.cores.scratchpad
            assert part["shared_buffer_bytes"] <= result.cores.shared


def test_products_of_all_shapes_end_with_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """Fewer rows than cores, k of 1, types without a rate of operations, cores that do not divide anything."""
    draw = random.Random(7)
    extents = (1, 2, 3, 7, 16, 31, 100, 129, 513, 1472, 4096)
    for _ in range(40):
        m, n, k = (draw.choice(extents) for _ in range(3))
        words = draw.choice(
            (
                f"gemm -m {m} -n {n} -k {k} --accumulate-into",
                f"gemm -m {m} -n {n} -k {k} --batch {draw.choice((2, 9))}",
                f"grouped --rows {m},{k} -n {n} -k {k}",
                f"ffn --tokens {m} --d-model {n} --hidden {k} --gated",
                f"attention --queries {m} --keys {n} --head-dim {min(k, 256)} --heads 6 --kv-heads 3",
                f"latent-attention --queries {m} --keys {n} --heads 3",
            )
        )
        where = draw.choice(scratchpad_names())
        assert main(["time", *words.split(), "--gpu", where, "--dtype", draw.choice(("bf16", "fp32", "fp8"))]) == 0
        assert "proved bound" in capsys.readouterr().out


def test_no_core_is_left_idle_where_the_rate_of_operations_is_not_known() -> None:
    result = compared(pebble.Gemm(512, 512, 512), gpu="graphcore-gc200")
    assert "operations" in result.notes[0] and result.rows()[0]["imbalance"] < 0.5


def test_blocks_fill_the_cores() -> None:
    for extent, most in ((4096, 235e6), (8192, 1.21e9)):
        row = compared(pebble.Gemm(*[extent] * 3), gpu="aws-trainium2").rows()[0]
        assert row["off_chip_bytes"] < most and row["imbalance"] == 0


def test_layers_of_an_array_copy_less() -> None:
    row = compared(pebble.Gemm(4096, 4096, 4096, dtype="fp16"), gpu="graphcore-gc200").rows()[0]
    assert row["parts"][0]["layers"] > 1 and row["copied_bytes"] < 1.4e9


def test_widths_and_energy_are_those_of_the_machine_file(own: str) -> None:
    result = compared(FFN, machine=own)
    for flow, row in zip(result.flows, result.rows(), strict=True):
        moved = flow.moved
        assert row["off_chip_ms"] == pytest.approx(moved.off_chip / 400e9 * 1e3)
        assert row["shared_ms"] == pytest.approx(moved.shared / 2e12 * 1e3)
        assert row.get("network_ms", 0) == pytest.approx(moved.hop_bytes / 4e12 * 1e3)
        assert row["operations_ms"] == pytest.approx(moved.work * FFN.flops / 100e12 * 1e3)
        assert row["energy"].get("network_joules", 0) == pytest.approx(0.8e-12 * moved.hop_bytes)
        assert row["energy"]["total_joules"] == pytest.approx(row["joules"])
    assert any(flow.moved.hop_bytes >= flow.moved.copied > 0 for flow in result.flows)
    assert not any("time leaves out" in note or "network" in note for note in result.notes)
    one, other = (compared(GEMM, machine=own, energy=table).rows()[0]["joules"] for table in ("k40", "7nm"))
    assert one > other


def test_what_is_not_known_is_said() -> None:
    notes = " ".join(compared(GEMM, gpu="graphcore-gc200").notes)
    assert "time leaves out off chip" in notes and "least bytes off chip is the first" in notes
    assert "energy leaves out the network" in notes
    assert "shared buffer" in " ".join(compared(GEMM, gpu="google-tpu-v4").notes)


def test_output_then_input_stationary_hands_over_on_the_cores() -> None:
    flows = compared(FFN, gpu="graphcore-gc200").flows
    (fused,) = (flow for flow in flows if flow.handover.startswith("on cores"))
    other = next(flow for flow in flows if flow.name == fused.name and flow is not fused)
    hidden = FFN.tokens * FFN.hidden * FFN.in_bytes
    assert fused.name == "output-, then input-stationary" and other.handover == "off chip"
    assert other.moved.off_chip - fused.moved.off_chip >= 2 * hidden  # written once, read at least once


def test_cores_that_hand_on_come_near_the_bound_of_connected_buffers() -> None:
    workload = pebble.Gemm(4096, 4096, 4096)
    known = pebble.bound(workload, gpu="tenstorrent-n150", buffers="connected").document()
    assert known["upper_bound"]["schedule"].startswith("output-stationary")
    assert known["gap"] == pytest.approx(1.518, abs=1e-3)
    moved = compared(workload, gpu="tenstorrent-n150").rows()[0]
    assert known["upper_bound"]["bytes"] == moved["off_chip_bytes"] + moved["hop_bytes"] / 4
    assert pebble.bound(workload, gpu="aws-trainium2", buffers="sm-local").document()["gap"] < 2.34


# grids of clusters of up to 1,472 cores take seconds to search
FEW_CORES = [name for name in scratchpad_names() if name != "graphcore-gc200"]


@pytest.mark.parametrize(
    ("name", "workload"),
    [("graphcore-gc200", ATTENTION), *((name, each) for name in FEW_CORES for each in (GEMM, FFN, ATTENTION))],
)
def test_dataflows_stand_beside_the_bound_of_several_memories(name: str, workload: Any) -> None:
    for omega in (None, "1/3", "2"):
        buffers = "sm-local" if omega is None else "connected"
        result = pebble.compare(workload, gpu=name, buffers=buffers, omega=omega)
        document = result.document()
        flows = [row for row in document["schedules"] if row["name"] != "best balanced"]
        assert {row["name"].split("-")[-1] for row in flows} <= {"stationary", "stationary, H on cores"}
        assert len(flows) >= 2
        for row in flows:
            hops = row["hop_bytes"] * (0 if omega is None else Fraction(omega))
            assert row["cost_bytes"] == pytest.approx(float(row["from_l2_bytes"] + row["to_l2_bytes"] + hops))
            assert row["cost_bytes"] >= document["lower_bound"]["bytes"]
            assert row["from_other_sms_bytes"] == 0 or omega is not None
            assert row["to_l2_bytes"] >= sum(o.elements * workload.out_bytes for o in workload.operands if o.written)


def test_hops_are_paid_for_and_work_is_spread_within_reason() -> None:
    workload = pebble.Gemm(2048, 2048, 2048)
    costs = {}
    for omega in ("1/100", "1/4", "2"):
        result = pebble.compare(workload, gpu="tenstorrent-n150", buffers="connected", topology="ring", omega=omega)
        (row,) = (row for row in result.rows() if row["name"] == "output-stationary")
        crossing = row["from_l2_bytes"] + row["to_l2_bytes"]
        assert row["cost_bytes"] == pytest.approx(float(crossing + row["hop_bytes"] * Fraction(omega)))
        assert row["imbalance"] < 0.1 and row["cost_bytes"] < 160e6
        costs[omega] = row["hop_bytes"]
    assert costs["1/100"] > costs["1/4"] > costs["2"]
    own = pebble.Gemm(4096, 4096, 4096)
    far = pebble.compare(own, gpu="graphcore-gc200", buffers="connected", topology="mesh-32x46").rows()
    assert all(row["hop_bytes"] >= row["from_other_sms_bytes"] for row in far)


def test_a_part_of_a_workload_has_its_share_of_the_operations() -> None:
    machine = read_target(gpu="aws-trainium2").machine
    assert machine is not None
    seconds = [seconds_on_cores(machine, GEMM, Moved(0, 0, 0, 0, 1.0, share))["operations"] for share in (1.0, 0.25)]
    assert seconds[0] == 4 * seconds[1]
    cost = cost_on_cores(machine, GEMM)
    few, more = Moved(1000, 0, 0, 0, 1.0, 1e-9), Moved(2000, 0, 0, 0, 1.0, 1e-9)
    assert cost(few)[1] < cost(more)[1]  # so small a part takes as long as its bytes


def test_a_row_that_goes_no_way_of_known_width_has_no_time(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["time", "gemm", "-m", "1", "-n", "1", "-k", "16", "--gpu", "graphcore-gc200"]) == 0
    rows = re.findall(r"^\S+-stationary .*", capsys.readouterr().out, re.MULTILINE)
    assert len(rows) == 3 and sum(" - " in row for row in rows) == 2


def test_buffers_of_scratchpads_take_no_tile_and_any_network() -> None:
    with pytest.raises(InputError, match="tile: got it with a machine of scratchpads"):
        pebble.compare(GEMM, gpu="google-tpu-v4", buffers="sm-local", tile="128x128x64")
    for net, more in (("ring", True), ("cluster-8", True), ("partitions-2", False)):
        rows = pebble.compare(GEMM, gpu="tenstorrent-n150", buffers="connected", topology=net).rows()
        assert (len(rows) == 4) == more
    assert len(pebble.compare(GEMM, gpu="tenstorrent-n150", buffers="sm-local", sms=5).rows()) == 4
    strict = pebble.Attention(256, 256, 64, softmax="strict")
    assert len(pebble.compare(strict, gpu="tenstorrent-n150", buffers="sm-local").rows()) == 1


@pytest.mark.parametrize("name", scratchpad_names())
@pytest.mark.parametrize(
    "workload",
    [
        pebble.Gemm(33, 20, 18, accumulate=True),
        pebble.Ffn(20, 6, 33, gated=True),
        pebble.Attention(3, 40, 4, heads=6, kv_heads=3),
        pebble.GroupedGemm((5, 17, 5, 1), 18, 6),
        LatentAttention(2, 35, 4, 2, heads=9, batch=2),
    ],
)
def test_what_is_shown_is_what_a_walk_of_the_machine_counts(name: str, workload: Any) -> None:
    result = compared(workload, gpu=name)
    machine, net = result.machine, result.machine.network
    for flow, row in zip(result.flows, result.rows(), strict=True):
        played = [(n, check(part, Topology(net, machine.sms) if net else None)) for n, part in flow.parts]
        for i, key in enumerate(("off_chip_bytes", "shared_bytes", "copied_bytes", "hop_bytes")):
            assert row[key] == sum(n * walk.moved[i] for n, walk in played)
        done = sum(n * sum(walk.work.values()) for n, walk in played)
        assert done == sum(n * part.face.multiply_adds for n, part in flow.parts) == workload.multiply_adds


def in_bytes(text: str) -> float:
    """Of ``33.6 MB``."""
    number, unit = text.replace(",", "").split()
    return float(number) * {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]


@pytest.mark.parametrize("name", scratchpad_names())
@pytest.mark.parametrize("workload", [GEMM, replace(GEMM, accumulate=True), FFN, ATTENTION, BATCH, EXPERTS, LATENT])
def test_the_steps_of_a_dataflow_add_up_to_what_it_moves(name: str, workload: Any) -> None:
    for row in compared(workload, gpu=name).rows():
        text = "; ".join(line for line in row["steps"] if not line.startswith("held"))
        size = r"([\d,.]+ [kMG]?B)"
        told = sum(map(in_bytes, re.findall(rf"off chip[^;]*?, {size}", text)))
        times = max(part["times"] for part in row["parts"])
        if times == 1:
            assert told == pytest.approx(row["off_chip_bytes"], rel=0.03)
            copies = sum(map(in_bytes, re.findall(rf"from (?:core to core|layer to layer)[^;]*?, {size}", text)))
            assert copies == pytest.approx(row["copied_bytes"], rel=0.03)
        assert all(part["peak_bytes_per_core"] for part in row["parts"]) and "held at most" in " ".join(row["steps"])


@pytest.mark.parametrize("command", ["compare", "time"])
def test_explain_tells_the_steps(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    asked = "gemm -m 4096 -n 4096 -k 4096 --gpu tenstorrent-n150"
    words = [command, *asked.split()]
    for more, count in (([], 0), (["--explain"], 1), (["--explain", "--all"], 3)):
        assert main([*words, *more]) == 0
        text = capsys.readouterr().out
        assert text.count("step by step") == count
        assert ("A: from off chip once, 33.6 MB; from core to core 7 times, 1 hop each, 234.9 MB" in text) == (
            count > 0
        )


def test_its_page(tmp_path: Path) -> None:
    for number, workload in enumerate((FFN, EXPERTS, GEMM)):
        result = compared(workload, gpu=("google-tpu-v4", "graphcore-gc200", "aws-trainium2")[number])
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(result.to_dict()))
        page = pebble.report(path)
        assert page.sections == {"gap": 1} and result.machine.name in page.html
        for row in result.rows():
            assert row["name"] in page.html and row["detail"][:300] in page.html
            assert f"{row['copied_bytes'] / 1e6:,.1f} MB from core to core" in page.html or not row["copied_bytes"]


CALLS: list[Callable[[], object]] = [
    lambda: pebble.tile(GEMM, gpu="google-tpu-v4"),
    lambda: pebble.advise(GEMM, gpu="google-tpu-v4"),
    lambda: pebble.tune(GEMM, gpu="google-tpu-v4"),
    lambda: pebble.simulate(GEMM, "row", gpu="google-tpu-v4"),
    lambda: pebble.curve(GEMM, ["row"], gpu="google-tpu-v4"),
    lambda: pebble.time(GEMM, sweep="m=16,32", gpu="google-tpu-v4"),
]


@pytest.mark.parametrize("call", CALLS)
def test_questions_about_kernels_refuse_it_in_one_sentence(call: Callable[[], object]) -> None:
    with pytest.raises(InputError, match=r"got google-tpu-v4, cores with scratchpads .* expected a GPU"):
        call()


def test_what_has_no_dataflow_is_refused() -> None:
    with pytest.raises(InputError, match="softmax: got strict"):
        pebble.compare(pebble.Attention(64, 64, 16, softmax="strict"), gpu="google-tpu-v4")
    with pytest.raises(InputError, match="expected gemm, grouped, ffn, attention or latent"):
        pebble.compare(pebble.Conv2d(1, 8, 8, 8, 8, 3), gpu="google-tpu-v4")
    with pytest.raises(InputError, match="tile: got it with a machine of scratchpads"):
        pebble.compare(GEMM, gpu="google-tpu-v4", tile="128x128x64")
    with pytest.raises(InputError, match="schedules: got it with a machine of scratchpads"):
        pebble.time(GEMM, ["row"], gpu="google-tpu-v4")


@pytest.mark.parametrize(
    "words", ["compare", "time", "bound", "bound --buffers connected", "compare --buffers sm-local"]
)
def test_its_words_are_cores(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    command, *more = words.split()
    asked = "gemm -m 1024 -n 1024 -k 1024 --gpu tenstorrent-n150"
    assert main([command, *asked.split(), *more]) == 0
    text = capsys.readouterr().out.replace("sm-local", "")
    assert "core" in text or command == "bound"
    assert "SM" not in text and "L2" not in text


def test_its_document_and_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figure = str(tmp_path / "f.svg")
    words = "ffn --tokens 256 --d-model 512 --hidden 1024 --gpu google-tpu-v4 --json"
    assert main(["compare", *words.split(), "--figure", figure]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["machine"]["sku"] == "google-tpu-v4" and len(document["schedules"]) == 10
    assert document["upper_bound"]["bytes"] >= document["lower_bound"]["bytes"]
    assert "shared buffer" in document["notes"][0]
    assert Path(figure).stat().st_size > 1000
    assert main(["machines", "google-tpu-v4"]) == 0
    assert "scratchpads under explicit control" in capsys.readouterr().out


def test_what_a_mask_hides_takes_its_time_and_is_no_balanced_schedule() -> None:
    """Causal attention of one head: dataflows do all pairs, twice the multiply-adds that the floor counts."""
    causal = pebble.Attention(8192, 8192, 128, causal=True)
    masked, whole = (
        pebble.compare(workload, gpu="google-tpu-v4") for workload in (causal, pebble.Attention(8192, 8192, 128))
    )
    for row, other in zip(masked.rows(), whole.rows(), strict=True):
        assert row["operations_ms"] == other["operations_ms"] >= 1.99 * masked.floor.seconds * 1e3
    rows = pebble.compare(causal, gpu="tenstorrent-n150", buffers="connected").rows()
    assert all(row["imbalance"] > 0.9 for row in rows if row["name"] != "best balanced")
