"""Requests of a GPC for one line: a literal count of who shares what, and what must hold of any shares."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import pebble
from pebble.families import kernel_family
from pebble.models.gpcs import Gpcs, gpcs_of
from pebble.models.machine import load_machine
from pebble.schedules.execution import parse_execution
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.simulation.merging import COPY_ENGINE, IN_WAVES, KEYS, RUNNING_FREE, Merging, Shared, requested
from pebble.traces import LINE_BYTES
from pebble.workloads import Attention, Ffn, Gemm
from pebble.workloads.workload import Workload

H200 = load_machine("h200-sxm-141gb")
ALL_REACH, NONE_REACH = Merging(1.0, 1.0, 0.0, 0.0, 0.0), Merging(0.0, 0.0, 0.0, 0.0, 0.0)


def gpcs() -> Gpcs:
    """Of an H200."""
    result = gpcs_of(H200, H200.sms)
    assert result is not None
    return result


def kernel(tile: Any, execution: str = "waves", blocks: int = 1) -> KernelConfig:
    """On an H200."""
    return KernelConfig(tile, H200.sms, blocks, H200.l2_bytes, H200.default_model.policy, parse_execution(execution), 3)


def shared(workload: Workload, schedule: str, tile: Any, blocks: int = 1) -> Shared:
    """What the blocks of a named schedule share."""
    family, config = kernel_family(workload), kernel(tile, blocks=blocks)
    return Shared.of(family.program(workload, family.parse_schedule(schedule), config), config, gpcs())


def literal(workload: Gemm, schedule: str, tile: TileShape, blocks: int) -> tuple[int, int, int, float]:
    """Bytes that SMs receive; left if each GPC, or the chip, asks once for each tile of a step; and that then cross."""
    config = kernel(tile, blocks=blocks)
    family = kernel_family(workload)
    walked = family.parse_schedule(schedule).tiles(*tile.grid(workload)[:2], config.order_params)
    received = once = distinct = 0
    crossing = 0.0
    for begin in range(0, len(walked), config.wave_blocks):
        for k in range(0, workload.k, tile.bk):
            depth = min(tile.bk, workload.k - k)
            wanted = Counter[tuple[str, int, int]]()
            for slot, (row, col) in enumerate(walked[begin : begin + config.wave_blocks]):
                gpc = int(gpcs().of_slot[slot % H200.sms])
                wanted[("A", int(row), gpc)] += 1
                wanted[("B", int(col), gpc)] += 1
            sides: dict[tuple[str, int], set[int]] = {}
            for (operand, at, gpc), count in wanted.items():
                if operand == "A":
                    size = min(tile.bm, workload.m - at * tile.bm) * depth * workload.in_bytes
                else:
                    size = min(tile.bn, workload.n - at * tile.bn) * depth * workload.in_bytes
                received, once = received + count * size, once + size
                seen, side = sides.setdefault((operand, at), set()), int(gpcs().part[gpc])
                distinct, crossing = distinct + size * (not seen), crossing + size / 2 * (side not in seen)
                seen.add(side)
    return received, once, distinct, crossing


@pytest.mark.parametrize("schedule", ["row", "column", "grouped-3", "hilbert"])
@pytest.mark.parametrize(("tile", "blocks"), [(TileShape(64, 64, 64), 1), (TileShape(64, 128, 64), 2)])
def test_sharers_are_those_of_a_literal_count(schedule: str, tile: TileShape, blocks: int) -> None:
    gemm = Gemm(1280, 2048, 256)
    result = shared(gemm, schedule, tile, blocks)
    none, every = result.requested(NONE_REACH, 0), result.requested(ALL_REACH, 0)
    ((*_, lines),) = result.phases
    counted = (none.received_bytes, none.once_bytes, lines.distinct * LINE_BYTES, lines.crossing * LINE_BYTES)
    assert counted == literal(gemm, schedule, tile, blocks)
    assert none.request_bytes == none.once_bytes
    assert every.request_bytes == every.received_bytes
    assert every.written_bytes == gemm.m * gemm.n * gemm.out_bytes


@pytest.mark.parametrize(
    ("workload", "schedule", "tile"),
    [
        (Gemm(4096, 4096, 1024), "grouped-8", TileShape(128, 256, 64)),
        (Attention(4096, 4096, 128, heads=8, causal=True), "fa2", None),
        (Ffn(2048, 1024, 2816, gated=True), "row-fused-4", None),
    ],
)
@pytest.mark.parametrize("execution", ["waves", "free"])
def test_no_family_asks_for_less_than_once_or_more_than_it_receives(
    workload: Workload, schedule: str, tile: Any, execution: str
) -> None:
    family = kernel_family(workload)
    tile = tile or family.default_tile(workload)
    config = kernel(tile, execution)
    program = family.program(workload, family.parse_schedule(schedule), config)
    read = workload.compulsory_bytes
    result = requested(program, config, gpcs(), read)
    assert result.once_bytes <= result.request_bytes <= result.received_bytes
    assert 0 < result.fabric_bytes <= read + result.written_bytes


def test_a_tile_read_from_one_side_brings_half_of_its_lines_across() -> None:
    gemm, tile = Gemm(64, 64, 4096), TileShape(64, 64, 64)  # one block
    result = shared(gemm, "row", tile).requested(IN_WAVES, read := 2 * 64 * 4096 * 2)
    assert result.fabric_bytes == read / 2 + result.written_bytes / 2
    assert result.request_bytes == result.received_bytes == result.once_bytes == read


def test_blocks_that_run_free_merge_less() -> None:
    result = shared(Gemm(8192, 8192, 1024), "grouped-8", TileShape(128, 256, 64))
    waves, free = (result.requested(merging, 0).request_bytes for merging in (IN_WAVES, RUNNING_FREE))
    assert waves < free


def test_in_the_first_steps_of_a_tile_nothing_is_merged() -> None:
    tile, most = TileShape(128, 256, 64), COPY_ENGINE._replace(start=1e9)
    for k in (1024, 8192):
        result = shared(Gemm(8192, 8192, k), "grouped-8", tile)
        without, as_fitted, all_reach = (
            result.requested(merging, 0).request_bytes for merging in (COPY_ENGINE._replace(start=0), COPY_ENGINE, most)
        )
        assert without < as_fitted < all_reach == result.requested(ALL_REACH, 0).received_bytes
        repeated = result.requested(ALL_REACH, 0).received_bytes - result.requested(NONE_REACH, 0).once_bytes
        assert (as_fitted - without) / repeated == pytest.approx(COPY_ENGINE.start / (k / 64), rel=1e-3)


def test_a_barrier_changes_nothing_for_kernels_with_tensor_descriptors() -> None:
    gemm, tile = Gemm(4096, 4096, 1024), TileShape(128, 256, 64)
    family = kernel_family(gemm)
    waves, free = (
        requested(family.program(gemm, family.parse_schedule("grouped-8"), config), config, gpcs(), 10**8)
        for config in (kernel(tile), kernel(tile, "free"))
    )
    assert waves == free


def test_longer_steps_merge_more_and_dram_pulls_blocks_apart() -> None:
    gemm = Gemm(8192, 8192, 1024)
    short, long = (shared(gemm, "grouped-8", TileShape(128, 256, bk)) for bk in (32, 64))
    merged = [item.requested(IN_WAVES, 0).request_bytes for item in (short, long)]
    assert merged[1] < merged[0]
    assert long.requested(IN_WAVES, 10**9).request_bytes > merged[1]


def test_simulate_says_it_of_chips_whose_merging_was_measured() -> None:
    options: dict[str, Any] = {"tile": "128x256x64", "schedule": "grouped-8"}
    result = pebble.simulate(pebble.Gemm(2048, 2048, 1024), gpu="h200-sxm-141gb", **options).to_dict()
    assert result["sm_bytes"] == 16 * 8 * 1024 * 2 * (128 + 256)
    assert result["l2_request_least_bytes"] <= result["l2_request_bytes"] <= result["sm_bytes"]
    elsewhere = pebble.simulate(pebble.Gemm(2048, 2048, 1024), gpu="a40", tile="128x128x64", schedule="row").to_dict()
    assert elsewhere["l2_request_bytes"] is None


def test_compare_says_it_of_each_schedule() -> None:
    gemm, options = pebble.Gemm(2048, 2048, 1024), {"gpu": "h200-sxm-141gb", "tile": "128x256x64"}
    rows = pebble.compare(gemm, ["row", "grouped-8"], **options).to_dict()["schedules"]
    for row in rows:
        alone = pebble.simulate(gemm, row["name"], **options).to_dict()
        assert {key: row[key] for key in KEYS} == {key: alone[key] for key in KEYS}
        assert row["fabric_bytes"] > 0
