"""Products of a block a tile: who shares what is counted again by hand, and measured times are met as the page says."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import numpy as np
import pytest

from pebble.integrations.block_a_tile import Cases, Chip, Kernel, chosen, fitted, modelled_seconds, nanoseconds
from pebble.integrations.kernel_model import KernelTimes, Launch
from pebble.models.machine import load_machine
from pebble.schedules.tile import TileShape
from pebble.workloads import Gemm

RECORDED = Path(__file__).parents[2] / "benchmarks/integrations/recorded"
CHIP = Chip.of(load_machine("h200"), "bf16")
assert CHIP is not None


def asked_for(product: Gemm, kernel: Kernel, first: int, last: int) -> tuple[float, float]:
    """Tiles of A and of B that GPCs ask for, a block, of blocks first to last: a walk, block by block."""
    assert CHIP is not None
    rows, columns = -(-product.m // kernel.tile.bm), -(-product.n // kernel.tile.bn)
    order = [
        (row, column)
        for band in range(0, rows, kernel.group)
        for column in range(columns)
        for row in range(band, min(rows, band + kernel.group))
    ]
    a, b = set(), set()
    for slot, (row, column) in enumerate(order[first:last]):
        gpc = int(CHIP.gpc[slot % len(CHIP.gpc)])
        a.add((gpc, row))
        b.add((gpc, column))
    return len(a) / (last - first), len(b) / (last - first)


@pytest.mark.parametrize("seed", range(20))
def test_what_a_gpc_asks_for_is_what_a_walk_counts(seed: int) -> None:
    assert CHIP is not None
    rng = random.Random(seed)
    product = Gemm(*(64 * rng.randint(1, 60) for _ in range(3)))
    tile = TileShape(rng.choice((64, 128)), rng.choice((64, 128, 256)), 64)
    kernel = Kernel(tile, 3, 4, rng.choice((1, 2, 4, 8, 16)), rng.choice((1, 2, 3)))
    cases = Cases.of(product, [kernel], CHIP)
    blocks = -(-product.m // tile.bm) * -(-product.n // tile.bn)
    wave = 132 * kernel.blocks
    assert (cases.waves[0], cases.rest[0]) == divmod(blocks, wave)
    full = blocks // wave
    if full:
        assert tuple(cases.own[0, :, 0]) == asked_for(product, kernel, full // 2 * wave, full // 2 * wave + wave)
    if blocks % wave:
        assert tuple(cases.own[1, :, 0]) == asked_for(product, kernel, full * wave, blocks)


def test_a_longer_product_takes_longer_and_a_smaller_type_less() -> None:
    assert CHIP is not None
    kernel = Kernel(TileShape(128, 256, 64), 3, 8, 8, 1)
    short, long = (modelled_seconds(Gemm(4096, 4096, k), [kernel], CHIP)[0] for k in (1024, 4096))
    assert 2 < long / short < 4
    bytes_8 = Chip.of(load_machine("h200"), "fp8")
    assert bytes_8 is not None
    assert modelled_seconds(Gemm(4096, 4096, 4096, dtype="fp8"), [kernel], bytes_8)[0] < 0.7 * long


def test_products_that_nothing_was_fitted_to_are_met_as_the_page_says() -> None:
    planned = json.loads((RECORDED / "looked_at_41.json").read_text())
    times: dict[str, dict[str, str]] = {}
    with (RECORDED / "looked_at_41.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            times.setdefault(row["shape"], {})[row["config"]] = row["again"] or row["ms"]
    assert CHIP is not None
    constants, corrections = fitted()
    off = []
    for entry in planned["products"]:
        product, measured = Gemm(*entry["shape"]), times["x".join(map(str, entry["shape"]))]
        fits = KernelTimes("h200-sxm-141gb", product)
        kernels = []
        for config in planned["space"]:
            tile = TileShape(*(config[f"BLOCK_SIZE_{side}"] for side in "MNK"))
            launch = Launch(tile, config["num_stages"], config["num_warps"], "row")
            kernels.append(Kernel(*launch[:3], config["GROUP_SIZE_M"], fits.fitting(launch)))
        modelled = nanoseconds(constants, Cases.of(product, kernels, CHIP), CHIP) / 1e6
        modelled = modelled * [corrections[kernel.name] for kernel in kernels]
        off += [abs(np.log(ms / float(measured[str(i)]))) for i, ms in enumerate(modelled)]
    assert len(off) == 30 * 176
    assert np.median(off) == pytest.approx(0.051, abs=0.002)


def test_what_is_chosen_differs_where_the_model_may_be_wrong() -> None:
    kernels = [Kernel(TileShape(bm, 128, 64), 3, 8, group, 1) for bm in (128, 256) for group in (1, 4, 8, 16)]
    seconds = [1 + i / 1000 for i in range(len(kernels))]
    picked = chosen(kernels, seconds, 2)
    assert {kernels[i].tile.bm for i in picked} == {128, 256}
    assert picked == chosen(kernels, seconds, 2)
    assert sorted(chosen(kernels, seconds, 50)) == list(range(len(kernels)))
    assert chosen([], [], 3) == []


def test_a_chip_whose_merging_is_not_known_has_no_such_model() -> None:
    assert Chip.of(load_machine("a40"), "bf16") is None
    assert KernelTimes("h200-sxm-141gb", Gemm(512, 512, 512)).chip is not None
