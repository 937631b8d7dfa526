"""A table of a GEMM in the words of those who choose kernels: what their own tuners would have to find.

- ``inductor``: an entry of the lookup table of PyTorch Inductor, ``torch._inductor.config.lookup_table.table``: it
  makes ``max-autotune`` compile this tile, in place of all configurations.
- ``helion``: a `helion.Config`, for ``autotune_seed_configs``.
- ``cutlass-profiler``: a test list of ``cutlass_profiler``, with the columns that CUTLASS's own heuristics write.
- ``cublaslt``: the attributes of a ``cublasLtMatmulAlgo_t``.

Each takes the tile and the stages as they are. Of the walk it takes what it has a word for: how many tile rows, or
columns, are walked together.
"""

from __future__ import annotations

import csv
import io
import json
from typing import NamedTuple

import numpy as np

from pebble.errors import InputError
from pebble.schedules.export.triton import TORCH_TYPES, WARP_GROUPS_FROM
from pebble.schedules.tables.table import TileTable
from pebble.workloads import Gemm

TEMPLATES = ("triton::mm", "triton::mm_persistent_tma")
_SWIZZLES = (8, 4, 2, 1)  # that CUTLASS has
_CUTLASS_TYPES = {"bf16": "bf16", "fp16": "f16", "fp32": "f32"}
_LINE_BITS = 128  # of a vector load
_NO_CLUSTER = (1, 1, 1)  # the kernels of pebble have none
_HOPPER = 9.0  # compute capability


class Bands(NamedTuple):
    """How a table walks a grid of tiles: bands of ``height`` tile rows, or of columns, one after the other."""

    height: int
    of_rows: bool


def bands_of(table: TileTable) -> Bands:
    """The bands of the first tiles; of a walk that has none, such as a curve, what comes nearest.

    Examples
    --------
    >>> import pebble
    >>> [bands_of(pebble.export(order, pebble.Gemm(2048, 4096, 64), tile="128x128x64", cache="1MiB", sms=8).table)
    ...  for order in ("row", "grouped-4", "snake-strips-2")]
    [Bands(height=1, of_rows=True), Bands(height=4, of_rows=True), Bands(height=2, of_rows=False)]
    """
    rows, cols = (table.column(name)[table.column("row") >= 0] for name in ("row", "col"))
    for walked, other, of_rows in ((rows, cols, True), (cols, rows, False)):
        if len(rows) > 1 and walked[1] != walked[0]:
            first = np.flatnonzero(other != other[0])  # the first tile of the next column, or row
            height = int(first[0]) if len(first) else len(walked)
            if height <= int(walked.max()):
                return Bands(height, of_rows)
            return Bands(1, not of_rows)  # all of it before the next: bands of one
    return Bands(1, True)


def _plain(table: TileTable, format: str) -> tuple[int, int, int]:
    """M, N and K of a table that such tuners can take."""
    workload = table.workload
    if workload.family != Gemm.FAMILY or workload.values()["accumulate"] or workload.dtype not in TORCH_TYPES:
        raise InputError(
            f"--format {format}: got {workload.label}, expected a gemm in {', '.join(TORCH_TYPES)}, none with "
            "--accumulate-into: what is looked up there."
        )
    m, n, k = (workload.dimensions[name] for name in ("m", "n", "k"))
    return m, n, k


def _warps(table: TileTable) -> int:
    tile = table.launch.tile
    return 8 if tile.bm * tile.bn >= WARP_GROUPS_FROM else 4


def inductor_table(table: TileTable) -> str:
    """The entry as JSON: keys for B stored by rows and, as the weight of a linear layer, by columns.

    Parameters
    ----------
    table : TileTable
        Of one GEMM.

    Raises
    ------
    InputError
        Another family, C += A B, or a data type that PyTorch's templates do not multiply.
    """
    m, n, k = _plain(table, "inductor")
    tile, bands = table.launch.tile, bands_of(table)
    first = table.column("row")[: table.launch.wave_blocks]
    entry = {
        "BLOCK_M": tile.bm,
        "BLOCK_N": tile.bn,
        "BLOCK_K": tile.bk,
        "GROUP_M": bands.height if bands.of_rows else len(np.unique(first)),  # it has no groups of columns
        "num_stages": table.launch.stages,
        "num_warps": _warps(table),
    }
    entries = [{"template_id": template, **entry} for template in TEMPLATES]
    dtype = f"torch.{TORCH_TYPES[table.workload.dtype]}"
    strides = [n, 1], [1, k]
    keys = [f"(({dtype}, {[m, k]}, {[k, 1]}), ({dtype}, {[k, n]}, {stride}))+mm" for stride in strides]
    return json.dumps(dict.fromkeys(keys, entries), indent=2) + "\n"


def helion_config(table: TileTable, capability: float | None = None) -> str:
    """A `helion.Config` of a kernel whose tiles are M, N and then K, as JSON; errors as for `inductor_table`.

    From compute capability 9.0 on it is persistent, with loads by tensor descriptors.
    """
    _plain(table, "helion")
    tile, bands = table.launch.tile, bands_of(table)
    config: dict[str, object] = {
        "block_sizes": [tile.bm, tile.bn, tile.bk],
        "loop_orders": [[0, 1] if bands.of_rows else [1, 0]],
        "l2_groupings": [bands.height],
        "num_warps": _warps(table),
        "num_stages": table.launch.stages,
    }
    if capability is not None and capability >= _HOPPER:
        config |= {"indexing": "tensor_descriptor", "pid_type": "persistent_interleaved"}
    return json.dumps(config, indent=2) + "\n"


def _swizzle(table: TileTable) -> tuple[int, str]:
    """The largest swizzle of CUTLASS that a band holds, and the order of its rasterisation."""
    bands = bands_of(table)
    return next(s for s in _SWIZZLES if s <= bands.height), "along_n" if bands.of_rows else "along_m"


def cutlass_testlist(table: TileTable, capability: float | None = None) -> str:
    """A test list with one row, for ``cutlass_profiler --testlist-file``.

    The kernel is the cooperative one, warp-specialised, with loads and stores by the copy engine: A by rows, B and D by
    columns, which the library has for all tiles.

    Raises
    ------
    InputError
        As for `inductor_table`; another compute capability than 9.0, whose kernels have other names.
    """
    m, n, k = _plain(table, "cutlass-profiler")
    if capability not in (None, _HOPPER):
        raise InputError(
            f"--format cutlass-profiler: got compute capability {capability}, expected 9.0 (H100, H200), whose "
            "kernels are named; --format json writes the table."
        )
    tile, (swizzle, raster) = table.launch.tile, _swizzle(table)
    a, d = _CUTLASS_TYPES[table.workload.dtype], _CUTLASS_TYPES[table.workload.out_dtype]
    align = _LINE_BITS // (8 * table.workload.in_bytes)
    shape, cluster = f"{tile.bm}x{tile.bn}x{tile.bk}", "x".join(map(str, _NO_CLUSTER))
    name = f"cutlass3x_sm90_tensorop_gemm_{a}_{a}_f32_void_{d}_{shape}_{cluster}_0_tnn_align{align}"
    row = {
        "operation_name": f"{name}_warpspecialized_cooperative_epi_tma",
        "operation": "gemm", "m": m, "n": n, "k": k, "batch_count": 1, "layout": "tnn",
        "dtype_a": a, "dtype_b": a, "dtype_c": "void", "dtype_acc": "f32", "dtype_d": d, "alpha": 1.0, "beta": 0.0,
        "cta_tile_m": tile.bm, "cta_tile_n": tile.bn, "cta_tile_k": tile.bk, "stages": table.launch.stages,
        "cluster_m": 1, "cluster_n": 1, "cluster_k": 1,
        "swizzle_size": swizzle, "split_k_slices": 1, "raster_order": raster,
    }  # fmt: skip
    text = io.StringIO()
    writer = csv.DictWriter(text, row, lineterminator="\n")
    writer.writeheader()
    writer.writerow(row)
    return text.getvalue()


def cublaslt_attributes(table: TileTable) -> str:
    """What to give to ``cublasLtMatmulAlgoConfigSetAttribute``, as JSON; errors as for `inductor_table`.

    cuBLASLt swizzles or does not, and says not how.
    """
    _plain(table, "cublaslt")
    tile, (swizzle, _) = table.launch.tile, _swizzle(table)
    attributes: dict[str, object] = {
        "CUBLASLT_ALGO_CONFIG_TILE_ID": f"CUBLASLT_MATMUL_TILE_{tile.bm}x{tile.bn}",
        "CUBLASLT_ALGO_CONFIG_STAGES_ID": f"CUBLASLT_MATMUL_STAGES_{tile.bk}x{table.launch.stages}",
        "CUBLASLT_ALGO_CONFIG_SPLITK_NUM": 1,
        "CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING": int(swizzle > 1),
        "CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID": "CUBLASLT_CLUSTER_SHAPE_" + "x".join(map(str, _NO_CLUSTER)),
    }
    return json.dumps(attributes, indent=2) + "\n"
