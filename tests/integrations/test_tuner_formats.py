"""Tables in the words of Helion, CUTLASS's profiler and cuBLASLt, read by their own parsers where they are there."""

from __future__ import annotations

import csv
import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import pebble
from pebble.errors import InputError
from pebble.schedules.export.tuners import bands_of

PRODUCT = pebble.Gemm(4096, 6144, 2048)


def exported(order: str, format: str, **options: Any) -> pebble.reports.export.Exported:
    return pebble.export(order, PRODUCT, format, **{"gpu": "h100", "tile": "128x256x64", "stages": 4} | options)


def row(order: str) -> dict[str, str]:
    (found,) = csv.DictReader(exported(order, "cutlass-profiler").text.splitlines())
    return found


@pytest.mark.parametrize(
    ("order", "height", "of_rows"),
    [
        ("row", 1, True),
        ("column", 1, False),
        ("grouped-8", 8, True),
        ("grouped-64", 1, False),  # all 32 tile rows together: columns one by one
        ("snake-strips-4", 4, False),
    ],
)
def test_bands_are_those_of_the_order(order: str, height: int, of_rows: bool) -> None:
    assert bands_of(exported(order, "json").table) == (height, of_rows)


@pytest.mark.parametrize(
    ("order", "swizzle", "raster"),
    [
        ("row", 1, "along_n"),
        ("grouped-6", 4, "along_n"),
        ("grouped-16", 8, "along_n"),
        ("snake-strips-2", 2, "along_m"),
    ],
)
def test_the_profiler_gets_the_swizzle_that_a_band_holds(order: str, swizzle: int, raster: str) -> None:
    found = row(order)
    assert (int(found["swizzle_size"]), found["raster_order"]) == (swizzle, raster)
    assert [found[f"cta_tile_{side}"] for side in "mnk"] == ["128", "256", "64"] and found["stages"] == "4"


@pytest.mark.parametrize("number", [1, 2, 4, 8])
def test_cutlass_walks_as_the_table_where_that_is_its_own_order(number: int) -> None:
    found = row(f"cutlass3-{number}")
    walk = exported(f"cutlass3-{number}", "json").table
    again = pebble.export(
        f"cutlass3-{found['swizzle_size']}", PRODUCT, "json", gpu="h100", tile="128x256x64", stages=4
    ).table  # fmt: skip
    assert (walk.entries == again.entries).all()


def test_a_kernel_name_is_one_that_cutlass_generates() -> None:
    pytest.importorskip("cutlass_library", reason="`pip install --no-deps nvidia-cutlass networkx`")
    generator = pytest.importorskip("cutlass_library.generator")
    from cutlass_library import heuristics, library

    for name in dir(generator):  # its modules import each other in a circle
        if not name.startswith("__") and not hasattr(heuristics, name):
            setattr(heuristics, name, getattr(generator, name))
    found = row("grouped-8")
    columns, rows = library.LayoutType.ColumnMajor, library.LayoutType.RowMajor
    config = {key: int(value) for key, value in found.items() if re.match(r"cta_tile|cluster|stages|swizzle", key)}
    config |= {"layout_a": rows, "layout_b": columns, "layout_d": columns, "alignment_a": 8, "alignment_b": 8}
    config |= {f"dtype_{x}": library.DataType.bf16 for x in "abd"} | {"use_fast_acc": False, "voidC": True}
    config |= {"dtype_c": library.DataType.void, "dtype_acc": library.DataType.f32}
    _, operations = heuristics.generate_sm90_from_heuristics_configs(None, "12.8", [config])
    assert found["operation_name"] in {operation.procedural_name() for operation in operations}


def test_helion_reads_its_configuration(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    exported("grouped-16", "helion").save(path)
    text = json.loads(path.read_text())
    assert text["block_sizes"] == [128, 256, 64] and text["l2_groupings"] == [16] and text["num_stages"] == 4
    assert text["pid_type"] == "persistent_interleaved" and text["loop_orders"] == [[0, 1]]
    assert json.loads(exported("snake-strips-4", "helion").text)["loop_orders"] == [[1, 0]]
    assert "indexing" not in json.loads(exported("row", "helion", gpu="a100", tile="128x128x64", stages=3).text)
    package = importlib.util.find_spec("helion")
    if package is None or package.origin is None:
        pytest.skip("helion is not installed")
    # its module alone: the package itself needs PyTorch
    spec = importlib.util.spec_from_file_location("helion_config", Path(package.origin).parent / "runtime/config.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["helion_config"] = module
    spec.loader.exec_module(module)
    config = module.Config.from_json(path.read_text())
    assert config.block_sizes == [128, 256, 64] and config["num_warps"] == 8


def test_cublaslt_gets_names_of_its_header() -> None:
    found = json.loads(exported("grouped-8", "cublaslt").text)
    assert found["CUBLASLT_ALGO_CONFIG_TILE_ID"] == "CUBLASLT_MATMUL_TILE_128x256"
    assert found["CUBLASLT_ALGO_CONFIG_STAGES_ID"] == "CUBLASLT_MATMUL_STAGES_64x4"
    assert found["CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING"] == 1
    assert json.loads(exported("row", "cublaslt").text)["CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING"] == 0


@pytest.mark.parametrize("format", ["helion", "cutlass-profiler", "cublaslt"])
def test_what_is_no_plain_product_is_refused(format: str) -> None:
    with pytest.raises(InputError, match=rf"format='{format}': got attention .* expected a gemm"):
        pebble.export("fa2", pebble.Attention(512, 512, 64), format, gpu="h100")


def test_kernels_of_other_chips_have_other_names() -> None:
    with pytest.raises(InputError, match=r"cutlass-profiler': got compute capability 8.0, expected 9.0"):
        exported("row", "cutlass-profiler", gpu="a100", tile="128x128x64", stages=3)
