"""The kit's tables walk what the simulator walks, and the library of measurements can be read."""

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2] / "benchmarks"
sys.path[:0] = [str(ROOT / "gpu"), str(ROOT / "hardware")]

import library  # noqa: E402
import make_tables  # noqa: E402
import plans  # noqa: E402
import tables  # noqa: E402

from pebble.schedules.attention import AttentionKernel  # noqa: E402
from pebble.schedules.attention_names import parse_attention_schedule  # noqa: E402
from pebble.schedules.ffn import FfnKernel, ffn_groups, parse_ffn_schedule  # noqa: E402
from pebble.schedules.tile import TileShape  # noqa: E402
from pebble.workloads import Attention, Ffn  # noqa: E402


@pytest.mark.parametrize("name", ["separate:grouped-2", "row-fused-3", "row-fused-3-split-2"])
def test_ffn_tables_touch_what_the_simulated_phases_touch(name):
    case = {
        "family": "ffn",
        "gated": 0,
        "tokens": 80,
        "d_model": 256,
        "hidden": 640,
        "tile": "16x128x64",
        "order": name,
    }
    table = make_tables.case_table(case, sms=5)
    kernel = FfnKernel(Ffn(80, 256, 640), TileShape(16, 128, 64))
    (group,) = ffn_groups(kernel, parse_ffn_schedule(name), wave_blocks=5)
    assert len(np.unique(table[:, 0])) == len(group.phases)
    for number, phase in enumerate(group.phases):
        here = table[table[:, 0] == number]
        bases, strides = phase.steps.bases, phase.steps.strides
        walked = phase.steps.walk.k(slice(0, len(bases)), False)  # (steps, 1, 1)
        expected = bases + walked * strides  # (steps, blocks, touches)
        weights = kernel.w2 if here[0, 1] else kernel.ups[0]
        rows = kernel.h if here[0, 1] else kernel.x
        k = here[0, 4] + np.arange(here[0, 5])[:, None]
        result = np.stack([rows.ids(here[:, 2], k), weights.ids(k, here[:, 3])], axis=-1)
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", ["fa2", "fa2-heads-first", "fa3"])
def test_attention_tables_are_the_simulated_orders(name):
    case = {
        "family": "attention",
        "causal": 0,
        "queries": 64,
        "keys": 65536,
        "head_dim": 128,
        "heads": 4,
        "kv_heads": 2,
        "batch": 2,
        "tile": "16x16",
    }
    table = make_tables.case_table(case | {"order": name}, sms=5)
    kernel = AttentionKernel(Attention(64, 65536, 128, heads=4, kv_heads=2, batch=2), 16, 16)
    assert parse_attention_schedule(name).kind == name
    longest, heads_first = name == "fa3", name == "fa2-heads-first"
    expected = kernel.longest_first() if longest else kernel.blocks(heads_first)
    np.testing.assert_array_equal(table, np.column_stack(expected))


def test_waves_alternate_and_are_filled_up():
    tiles = np.array([[0, j] for j in range(5)], np.int32)
    slots = tables.tile_slots(tiles, steps=7, wave_blocks=2, sawtooth=True)
    assert slots[:, 5:7].tolist() == [[0, 1], [0, 1], [6, -1], [6, -1], [0, 1]]
    backwards = tables.tile_slots(tiles, steps=7, wave_blocks=2, sawtooth=True, backwards=True)
    assert backwards[:, 6].tolist() == [-1, -1, 1, 1, -1]
    own = np.array([[0, 0, 3, -1], [0, 1, 2, 1]], np.int32)
    slots = tables.tile_slots(own, 7, 2, sawtooth=True)
    assert slots.tolist() == [[0, 0, 0, 0, 7, 3, -1, 0, 0], [0, 0, 1, 0, 7, 2, 1, 0, 0]]

    table = np.array([[0, 0, 0, j, 0, 4, 0] for j in range(3)] + [[1, 1, 0, 0, 2, 6, 1]], np.int32)
    slots = tables.ffn_slots(table, wave_blocks=2, sawtooth=True)
    assert slots[:, 0].tolist() == [0, 0, 0, -1, 1, -1]  # -1: a place left empty
    assert slots[:, 5].tolist() == [0, 0, 3, 0, 2, 0]  # the second wave starts at the last step
    assert slots[:, 6].tolist() == [1, 1, -1, -1, 1, 1]
    assert slots[:, 8].tolist() == [0, 0, 0, 0, 1, 1]  # only the second phase reads what the first wrote


def test_a_table_that_misses_a_tile_is_refused(tmp_path):
    whole = make_tables.order_table("grouped-2", 3, 4, 128, 128, 132)
    tables.check_cover(whole, 3, 4)
    for bad in (whole[:-1], np.concatenate([whole[:-1], whole[:1]]), whole + 1):
        with pytest.raises(ValueError, match="each tile"):
            tables.check_cover(bad, 3, 4)
    for name in ("t.csv", "t.npy"):
        tables.write_table(tmp_path / name, whole)
        np.testing.assert_array_equal(tables.read_table(tmp_path / name), whole)


def test_small_plan_names_a_table_for_each_own_kernel(tmp_path):
    assert make_tables.write_plan(tmp_path, plans.cases("small"), sms=132) == 52
    with open(tmp_path / "plan.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        assert (row["table"] == "") == (row["launch"] == "library")
    assert {row["table"] for row in rows} - {""} == {path.name for path in tmp_path.glob("*.npy")}


def test_every_row_of_the_library_can_be_read():
    rows = list(library.read_rows())
    own = [row for row in rows if row["source"] == "own"]
    assert len(own) > 1800 and len(rows) > len(own)
    assert {row["family"] for row in rows} == set(library.SHAPE_COLUMNS)
    with pytest.raises(ValueError, match="nothing was measured"):
        library.check_row(rows[0] | dict.fromkeys(library.MEASURED_COLUMNS, ""))
    with pytest.raises(ValueError, match="tokens"):
        library.check_row(rows[0] | {"family": "gemm", "tokens": "4"})
