"""Exported schedules: what stands in the files walks every tile over all of its k, computed in NumPy and in C++."""

from __future__ import annotations

import ast
import base64
import shutil
import subprocess
import sys
import zlib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pebble
from pebble.cli import main
from pebble.errors import InputError
from pebble.schedules.attention_names import parse_attention_schedule
from pebble.schedules.export.cuda import SLOT_COLUMNS, cuda_header, slots_of, statement
from pebble.schedules.export.cutlass import cutlass_header
from pebble.schedules.export.triton import triton_source
from pebble.schedules.ffn import parse_ffn_schedule
from pebble.schedules.orders import parse_order
from pebble.schedules.tables import Blocks, Launch, TileTable, deal
from pebble.schedules.tables.registry import check_table, named_table
from pebble.schedules.tile import TileShape
from pebble.workloads import Attention, Ffn, Gemm, GroupedGemm, LatentAttention

ROOT = Path(__file__).parents[2]
TILE = TileShape(32, 32, 16)
GEMM = Gemm(96, 128, 64, dtype="fp16")
TILES = np.array([(i, j) for i in range(3) for j in range(4)])
RANDOM = np.random.default_rng(0)


def tables() -> dict[str, TileTable]:
    """One of each kind: uneven waves, k from anywhere, slabs, both products, heads."""
    launch = Launch(TILE, 5, 1, 2)
    turned = Blocks(TILES, 4, k_start=RANDOM.integers(0, 4, 12), k_direction=RANDOM.choice([-1, 1], 12))
    slabs = [Blocks(TILES, 2), Blocks(TILES[::-1], 2, 2, phase=1, adds=True)]
    ffn, attention = Ffn(96, 64, 128, 32, dtype="fp16"), Attention(96, 160, 32, heads=4, kv_heads=2, causal=True)
    return {
        "named": named_table(GEMM, parse_order("grouped-2+sawtooth"), launch),
        "uneven": TileTable("bands", GEMM, launch, deal([Blocks(TILES[:7], 4), Blocks(TILES[7:], 4)], 5, True)),
        "turned": TileTable("turned", GEMM, launch, deal([turned], 5)),
        "slabs": TileTable("slabs", GEMM, launch, deal(slabs, 5, True)),
        "narrow-rest": named_table(
            Gemm(96, 640, 64, dtype="fp16"), parse_order("row+sawtooth"), Launch(TileShape(32, 128, 16), 7)
        ),
        "cut-rest": named_table(
            Gemm(96, 320, 1000, dtype="fp16"), parse_order("row+sawtooth"), Launch(TileShape(32, 128, 16), 7)
        ),
        "added-cut-rest": named_table(
            Gemm(90, 300, 900, dtype="fp16", accumulate=True), parse_order("row"), Launch(TileShape(32, 128, 16), 4)
        ),
        "decode": named_table(
            Attention(1, 700, 32, heads=8, kv_heads=2, batch=2, dtype="fp16"),
            parse_attention_schedule("fa2"),
            Launch(TileShape(16, 32, 1), 5),
        ),
        "decode-causal": named_table(
            Attention(3, 130, 24, 40, heads=6, kv_heads=3, causal=True, dtype="fp16"),
            parse_attention_schedule("fa2"),
            Launch(TileShape(16, 32, 1), 5),
        ),
        "added": named_table(Gemm(96, 128, 64, dtype="fp16", accumulate=True), parse_order("row"), launch),
        "fused": named_table(ffn, parse_ffn_schedule("row-fused-2-split-2+sawtooth"), launch),
        "heads": named_table(attention, parse_attention_schedule("fa3"), Launch(TileShape(32, 32, 1), 5)),
        "ragged": named_table(Gemm(100, 70, 50, dtype="fp16"), parse_order("grouped-2+sawtooth"), launch),
        "short": named_table(Gemm(7, 70, 50, dtype="fp16"), parse_order("row"), Launch(TileShape(7, 32, 16), 5)),
        "groups": named_table(
            GroupedGemm((70, 1, 32, 70), 70, 50, dtype="fp16"), parse_order("grouped-2+sawtooth"), launch
        ),
        "added-groups": named_table(
            GroupedGemm((70, 32), 70, 50, dtype="fp16", accumulate=True), parse_order("row"), launch
        ),
        "ragged-slabs": TileTable("slabs", Gemm(90, 101, 55, dtype="fp16"), launch, deal(slabs, 5, True)),
        "ragged-fused": named_table(
            Ffn(70, 50, 90, 41, dtype="fp16"), parse_ffn_schedule("row-fused-2-split-2+sawtooth"), launch
        ),
        "ragged-gated": named_table(
            Ffn(1, 33, 47, 20, dtype="fp16", gated=True), parse_ffn_schedule("separate:row"), launch
        ),
        "ragged-heads": named_table(
            Attention(70, 130, 24, 40, heads=4, kv_heads=2, causal=True, dtype="fp16"),
            parse_attention_schedule("fa3"),
            Launch(TileShape(32, 32, 1), 5),
        ),
        "ragged-keys": named_table(
            Attention(33, 75, 16, heads=2, batch=2, dtype="fp16"),
            parse_attention_schedule("fa2"),
            Launch(TileShape(16, 64, 1), 5),
        ),
        "latent": named_table(
            LatentAttention(24, 160, 64, 32, heads=4, causal=True, dtype="fp16"),
            parse_attention_schedule("fa3"),
            Launch(TileShape(32, 32, 1), 5),
        ),
        "ragged-latent": named_table(
            LatentAttention(7, 75, 40, 24, heads=3, batch=2, dtype="fp16"),
            parse_attention_schedule("fa2"),
            Launch(TileShape(16, 32, 1), 5),
        ),
    }


TABLES = tables()


def embedded(source: str) -> np.ndarray:
    """The table in a Triton file, as its `unpacked` reads it."""
    (text,) = (
        ast.literal_eval(node.value)
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TABLE"
    )
    numbers = np.frombuffer(zlib.decompress(base64.b64decode(text)), "<i4")
    return numbers.reshape(len(SLOT_COLUMNS), -1).cumsum(axis=1).T


def walked(slot: np.ndarray) -> list[int]:
    """k steps of a slot, as `_k_step` of the kernels and `k_step` of the header take them."""
    first, steps, start, direction = slot[3:7].tolist()
    at = [start + direction * step for step in range(steps)]
    return [k - steps if k >= first + steps else k + steps if k < first else k for k in at]


@pytest.mark.parametrize("name", TABLES)
def test_a_triton_file_holds_the_table_and_stands_alone(name: str, tmp_path: Path) -> None:
    table = TABLES[name]
    check_table(table)
    source = triton_source(table)
    np.testing.assert_array_equal(embedded(source), slots_of(table))
    imports = {n.module if isinstance(n, ast.ImportFrom) else n.names[0].name for n in ast.walk(ast.parse(source))
               if isinstance(n, ast.Import | ast.ImportFrom)}  # fmt: skip
    assert {str(i).split(".")[0] for i in imports} - set(sys.stdlib_module_names) == {"torch", "triton"}
    (tmp_path / "kernel.py").write_text(source)
    words = ["check", "--config", str(ROOT / "pyproject.toml"), "kernel.py"]
    subprocess.run([sys.executable, "-m", "ruff", *words], cwd=tmp_path, check=True)
    assert statement(table)[0] in source


@pytest.mark.parametrize("name", TABLES)
def test_slots_take_every_k_of_every_tile_once_in_order(name: str) -> None:
    table = TABLES[name]
    slots = slots_of(table)
    assert len(slots) == table.waves * table.launch.wave_blocks
    seen: dict[tuple[int, ...], list[int]] = {}
    for slot in slots[slots[:, 0] >= 0]:
        done = seen.setdefault(tuple(slot[:3].tolist()), [])
        assert (slot[7] == 1) == (len(done) > 0)  # adds exactly to what is there
        done += walked(slot)
    assert len(seen) == np.count_nonzero(table.column("adds") == 0)
    assert all(sorted(k) == list(range(len(k))) for k in seen.values())
    empty = slots[slots[:, 0] < 0]
    assert not empty[:, 4].any() and (empty[:, 1] == -1).all()


def test_slots_compute_the_product() -> None:
    a, b = RANDOM.standard_normal((96, 64)), RANDOM.standard_normal((64, 128))
    for name in ("named", "uneven", "turned", "slabs"):
        c = np.full((96, 128), np.nan)
        for slot in slots_of(TABLES[name]):
            product, row, col = slot[:3].tolist()
            if product == 0:
                rows, cols = slice(32 * row, 32 * row + 32), slice(32 * col, 32 * col + 32)
                k = np.concatenate([np.arange(16 * step, 16 * step + 16) for step in walked(slot)])
                c[rows, cols] = a[rows, k] @ b[k, cols] + (c[rows, cols] if slot[7] else 0)
        np.testing.assert_allclose(c, a @ b, err_msg=name)


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
@pytest.mark.parametrize("name", TABLES)
def test_the_header_is_the_table_in_plain_cpp(name: str, tmp_path: Path) -> None:
    table = TABLES[name]
    (tmp_path / "schedule.h").write_text(cuda_header(table))
    fields = ", ".join(f"b.{name}" for name in SLOT_COLUMNS)
    (tmp_path / "main.cpp").write_text(
        '#define PEBBLE_HOST_DEVICE inline\n#include <cstdio>\n#include "schedule.h"\n'
        "using namespace pebble_schedule;\n"
        "int main() {\n  for (int w = 0; w < waves; ++w) for (int s = 0; s < blocks_per_wave; ++s) {\n"
        f'    const Block b = block_of(w, s);\n    std::printf("{"%d " * len(SLOT_COLUMNS)}", {fields});\n'
        '    for (int i = 0; i < b.steps; ++i) std::printf("%d ", k_step(b, i));\n    std::printf("\\n");\n  }\n}\n'
    )
    subprocess.run(["g++", "-std=c++11", "-Wall", "-Werror", "-o", "main", "main.cpp"], cwd=tmp_path, check=True)
    printed = subprocess.run(["./main"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    rows = [[int(word) for word in line.split()] for line in printed.splitlines()]
    slots = slots_of(table)
    assert [row[: len(SLOT_COLUMNS)] for row in rows] == slots.tolist()
    assert [row[len(SLOT_COLUMNS) :] for row in rows] == [walked(slot) for slot in slots]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (replace(TABLES["named"], launch=Launch(TILE, 5, execution="staggered")), "staggered"),
        (named_table(Gemm(96, 96, 96), parse_order("row"), Launch(TileShape(8, 32, 32), 5)), "8 in m"),
        (named_table(Gemm(96, 128, 64, dtype="fp8"), parse_order("row"), Launch(TILE, 5)), "fp8"),
        (named_table(Gemm(96, 96, 96), parse_order("row"), Launch(TileShape(48, 48, 48), 5)), "power of two"),
    ],
)  # fmt: skip
def test_what_the_kernels_do_not_compute_is_refused(table: TileTable, words: str) -> None:
    with pytest.raises(InputError, match=words):
        triton_source(table)


def test_a_tile_that_holds_a_short_side_is_rounded_up_for_the_matrix_units() -> None:
    source = triton_source(TABLES["short"])
    assert "TILE = (16, 32, 16)" in source
    assert '"tile": "7x32x16"' in source


def test_the_kernels_compute_in_the_interpreter(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    triton = pytest.importorskip("triton")
    if np.lib.NumpyVersion(np.__version__) >= "2.4.0" and triton.__version__ < "3.7":
        pytest.skip("Triton's interpreter takes arrays of one value for scalars, which NumPy 2.4 refuses")
    for name, table in TABLES.items():
        (tmp_path / f"{name}.py").write_text(triton_source(table).replace("torch.bfloat16", "torch.float16"))
    script = Path(__file__).with_name("interpret_exports.py")
    subprocess.run([sys.executable, script, *map(str, tmp_path.glob("*.py"))], check=True, timeout=300)


def test_pieces_take_every_step_once_and_programs_get_alike(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    sys.path.insert(0, str(ROOT / "schedules/export/templates"))
    try:
        import dealing
    finally:
        sys.path.pop(0)
    for tiles, steps, programs, least in ((44, 141, 132, 8), (68, 64, 132, 8), (8, 1024, 132, 1), (1, 3, 132, 8)):
        slots = torch.zeros(tiles, 11, dtype=torch.int64)
        slots[:, 1], slots[:, 4], slots[:, 6] = torch.arange(tiles), steps, 1
        for deal_pieces in (dealing.in_runs, *([dealing.in_slices] if 2 * tiles <= programs else [])):
            pieces, begins = deal_pieces(slots, programs, least)
            assert begins.tolist()[0] == 0
            assert begins.tolist()[-1] == len(pieces)
            taken: dict[int, list[int]] = {}
            for at, (row, *_, turn, turns, number, of, apart) in enumerate(pieces.tolist()):
                taken.setdefault(row, []).extend(range(turn, turn + turns))
                assert (at - number) % apart == 0
                assert 0 <= (at - number) // apart < of
            assert {row: sorted(each) for row, each in taken.items()} == {
                row: list(range(steps)) for row in range(tiles)
            }
            _, mine = dealing.with_first(pieces, begins)
            for (a, b), (first, end, *piece) in zip(pairwise(begins.tolist()), mine.view(-1, 16).tolist(), strict=True):
                assert (first, end) == (a, b)
                assert a == b or piece[:9] == pieces[a].tolist()
            loads = [int(pieces[a:b, 5].sum()) for a, b in pairwise(begins.tolist())]
            assert max(loads) <= tiles * steps / programs + steps // 2 + least


def test_a_cutlass_header_has_the_tiles_in_order_and_refuses_what_is_no_product() -> None:
    table = TABLES["uneven"]
    header = cutlass_header(table)
    lists = [part.split("};")[0] for part in header.split("_of[] = {")[1:]]
    found = [[int(word) for word in part.replace("\n", " ").split(",")] for part in lists]
    assert found == [table.column("row").tolist(), table.column("col").tolist()]
    assert "tiles = 12, tile_rows = 3, tile_columns = 4, tile_m = 32, tile_n = 32" in header
    for name in ("slabs", "fused", "groups"):
        with pytest.raises(InputError, match="cutlass: got"):
            cutlass_header(TABLES[name])


def test_without_a_tile_attention_gets_the_one_of_the_fastest_kernel() -> None:
    attention, decode = Attention(256, 256, 64, heads=2), Attention(1, 512, 64, heads=8, kv_heads=2)
    wide = Attention(1, 512, 256, heads=8, kv_heads=2)
    for workload, tile in ((attention, "128x128x1"), (decode, "4x256x1"), (wide, "4x64x1")):
        found = pebble.export("fa2", workload, "triton", gpu="h100-sxm5-80gb")
        assert str(found.table.launch.tile) == tile
        assert any("fastest with" in note for note in found.notes)
    for where, stages in (({"gpu": "h100-sxm5-80gb"}, 3), ({"gpu": "a100-sxm4-40gb"}, 2), ({"cache": "40MiB"}, 2)):
        wide = pebble.export("fa2", Attention(256, 256, 128), "triton", sms=108, **where)
        assert wide.table.launch.stages == stages, where
    text = pebble.export("flash-decoding", decode, "triton", gpu="h100-sxm5-80gb").text
    assert all(f"def {kernel}(" in text for kernel in ("decode_kernel", "hopper_decode_kernel"))
    with pytest.raises(InputError, match="no table"):
        pebble.export("flash-decoding", attention, "triton", gpu="h100-sxm5-80gb")


def test_more_tables_are_for_a_module(tmp_path: Path) -> None:
    pebble.export(TABLES["named"], format="json").save(tmp_path / "more.json")
    with pytest.raises(InputError, match="also: got it with"):
        pebble.export(TABLES["named"], format="triton", also=[tmp_path / "more.json"])
    text = pebble.export(TABLES["heads"], format="torch", also=[tmp_path / "more.json"]).text
    assert text.count("_ = Schedule(") == 2
    saved, out = [str(tmp_path / name) for name in ("one.json", "two.json")], tmp_path / "module.py"
    for path in saved:
        pebble.export(TABLES["heads"], format="json").save(path)
    more = ["--also", saved[1], "--also", str(tmp_path / "more.json")]
    assert main(["export", saved[0], *more, "--format", "torch", "-o", str(out)]) == 0
    assert out.read_text().count("_ = Schedule(") == 3  # none is lost where the option comes twice


def constants(table: TileTable) -> dict[str, Any]:
    """The file's constants."""
    named = {}
    for node in ast.parse(triton_source(table)).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("BUILD", "TILE"):
            named[ast.unparse(node.targets[0])] = ast.literal_eval(node.value)
    return named


@pytest.mark.parametrize("name", TABLES)
def test_the_file_names_how_the_kernel_is_built(name: str) -> None:
    table = TABLES[name]
    named = constants(table)
    build, tile = named["BUILD"], named["TILE"]
    assert build["stages"] == table.launch.stages
    assert build["warps"] in (4, 8)
    assert tile[1] % build["parts"] == 0


def test_a_large_result_is_stored_in_parts_that_fit_beside_four_stages() -> None:
    def build(workload: Gemm | GroupedGemm) -> dict[str, object]:
        table = named_table(workload, parse_order("row"), Launch(TileShape(128, 256, 64), 5, 1, 4))
        return dict(constants(table)["BUILD"])

    plain = {"stages": 4, "warps": 8, "parts": 2, "width": 256, "widths": (64, 256), "piece": 8, "worth": 28}
    assert build(Gemm(256, 512, 64)) == plain
    assert build(Gemm(256, 512, 64, out_dtype="fp32"))["parts"] == 4
    assert build(Gemm(256, 512, 64, accumulate=True))["parts"] == 4
    assert build(GroupedGemm((256, 100), 512, 64))["parts"] == 4


def test_a_note_says_what_the_orders_of_fewest_bytes_and_least_time_would_save(tmp_path: Path) -> None:
    workload, gpu = Gemm(8192, 8192, 8192), "h200-sxm-141gb"
    choice = pebble.advise(workload, gpu=gpu).choice
    timed = {item.advice.schedule.name: item for item in choice.orders}
    least, row = min(choice.orders, key=lambda item: item.time.dram_bytes), timed["row"]
    assert least is not choice.best and least.time.dram_bytes < row.time.dram_bytes
    (note,) = (note for note in pebble.export("row", workload, gpu=gpu).notes if note.startswith("modelled"))
    for item in (least, choice.best):
        fewer = (row.time.dram_bytes - item.time.dram_bytes) / 1e6
        assert f"would move {fewer:,.1f} MB less and take {item.seconds * 1e3:.3g} ms" in note
    assert f"{choice.best.advice.schedule.name}, which `pebble advise` picks," in note
    assert least.advice.schedule.name in note and "row takes" in note
    exported = pebble.export(choice.best.advice.schedule.name, workload, gpu=gpu)
    (note,) = (note for note in exported.notes if note.startswith("modelled"))
    assert "picks" not in note and f"{least.advice.schedule.name} would move" in note
    exported.save(tmp_path / "saved.json")
    silent = (pebble.export(str(tmp_path / "saved.json")), pebble.export("row", workload, tile="128x128x64", gpu=gpu))
    assert not any(note.startswith("modelled") for each in silent for note in each.notes)
