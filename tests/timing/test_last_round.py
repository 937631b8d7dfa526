"""The last round of an exported product: as its file deals it, and as it was measured."""

from __future__ import annotations

import csv
import random
import sys
from pathlib import Path

import pytest

import pebble
from pebble.families import kernel_family
from pebble.models.machine import load_machine
from pebble.schedules.last_round import WORTH, last_round
from pebble.schedules.tile import TileShape
from pebble.timing.slots import rest_of
from pebble.workloads import Ffn, Gemm, GroupedGemm
from pebble.workloads.workload import Workload
from tests.timing.test_waves import config_of

ROOT = Path(__file__).parents[2]
SMALL = ROOT / "benchmarks/hardware/exports/small_products.csv"
H200 = load_machine("h200-sxm-141gb")


def test_it_is_dealt_as_in_the_file() -> None:
    torch = pytest.importorskip("torch")
    sys.path.insert(0, str(ROOT / "schedules/export/templates"))
    try:
        import dealing
    finally:
        sys.path.pop(0)
    draw, seen = random.Random(5), set()
    for _ in range(300):
        rows, cols, steps = draw.randint(1, 30), draw.randint(1, 30), draw.randint(1, 200)
        programs, held = draw.choice([16, 108, 132]), draw.choice([500, 2000, 10**6])
        tiles = torch.cartesian_prod(torch.arange(rows), torch.arange(cols))
        slots = torch.zeros(rows * cols, 11, dtype=torch.int64)
        slots[:, 1:3], slots[:, 4] = tiles, steps
        last = tiles[len(tiles) - len(tiles) % programs :]
        apart = sum(len(last[:, side].unique()) for side in (0, 1))
        found = last_round("k", len(tiles), steps, programs, TileShape(128, 256, 64), apart, held)
        whole, rest = dealing.with_rest(slots, programs, WORTH, held)
        shares = dealing.with_narrow_rest(slots, programs, 4)
        if len(rest):
            assert len(whole) + len(rest) == len(tiles)
            busy = programs // len(rest) * len(rest) if 2 * len(rest) <= programs else programs
            assert found.share == pytest.approx(len(rest) / busy + WORTH / steps) and found.launches == 0
            assert found.share < 1
        else:
            assert found.launches == len(shares) - 1
            assert (found.share < 1) == (shares[-1][1] > 1)
        seen.add((len(rest) > 0, shares[-1][1]))
    assert len(seen) == 6  # cut or not, in one, two or four parts


@pytest.mark.parametrize(
    ("workload", "first", "shares", "launches"),
    [
        (Gemm(3072, 3072, 4096), [264], [24 / 120 + WORTH / 64], [0]),
        (Gemm(2304, 4608, 3072), [264], [256 / 384], [1]),
        (Gemm(2048, 4224 * 2, 512), [528], [1.0], [0]),  # four full rounds
        (GroupedGemm((1536, 1536), 3072, 4096), [264], [24 / 120 + WORTH / 64], [0]),
        (Ffn(3072, 4096, 3072, 3072), [264, 264], [24 / 120 + WORTH / 64, 24 / 120 + WORTH / 48], [0, 0]),
    ],
)
def test_what_of_a_phase_is_cut(workload: Workload, first: list[int], shares: list[float], launches: list[int]) -> None:
    config = config_of(132, tile=TileShape(128, 256, 64), cache_bytes=H200.l2_bytes)
    family = kernel_family(workload)
    name = "separate:row" if isinstance(workload, Ffn) else "row"
    phases = family.program(workload, family.parse_schedule(name), config).groups[0].phases
    found = [
        rest_of(phase, phase.steps.walk.count + 0 * phase.steps.bases[:, 0], config, 132, True) for phase in phases
    ]
    assert [rest.first for rest in found] == first
    assert [rest.share for rest in found] == pytest.approx(shares)
    assert [rest.launches for rest in found] == launches
    for phase in phases:
        counts = phase.steps.walk.count + 0 * phase.steps.bases[:, 0]
        assert rest_of(phase, counts, config, 132, False) == (len(counts), 1.0, 1.0, 1.0, 0)


def test_pairs_of_tiles_have_rounds_of_twice_as_many() -> None:
    config = config_of(132, tile=TileShape(128, 128, 64), cache_bytes=H200.l2_bytes)
    gated = Ffn(3072, 4096, 4096, 3072, gated=True)
    family = kernel_family(gated)
    up, down = family.program(gated, family.parse_schedule("separate:row"), config).groups[0].phases
    counts = [phase.steps.walk.count + 0 * phase.steps.bases[:, 0] for phase in (up, down)]
    assert rest_of(up, counts[0], config, 132, True) == (660, 1.0, 1.0, 1.0, 0)  # 108 of 132: columns alone
    rest = rest_of(down, counts[1], config, 132, True)  # 288 pairs: 24 are left, 48 blocks in one wave
    assert (rest.first, rest.share) == (528, pytest.approx(2 * (24 / 120 + WORTH / 64)))


def test_small_products_take_what_was_measured() -> None:
    with SMALL.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["tile"] == "128x256x64"]
    single, sustained = [], []
    for row in rows:
        gemm = Gemm(*(int(row[name]) for name in "mnk"))
        found = pebble.time(gemm, [row["schedule"]], gpu=row["chip"], tile=row["tile"], stages=3)
        line = found.rows()[0]
        single.append(line["single_ms"] * 1e3 / float(row["microseconds"]))
        sustained.append(line["sustained_ms"] * 1e3 / float(row["sustained_microseconds"]))
    assert all(0.93 < ratio < 1.05 for ratio in single)
    launched = min(sustained)  # 2048^3: the CPU launches no faster
    assert launched == sustained[2] < 0.8
    assert all(0.97 < ratio < 1.05 for ratio in sustained if ratio != launched)
