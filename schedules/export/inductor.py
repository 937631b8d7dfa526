"""A table of a GEMM as an entry of Inductor's lookup table of templates.

Loaded into ``torch._inductor.config.lookup_table.table`` it makes ``max-autotune`` compile this tile, with the group of
rows that comes nearest to the table's walk, in place of all configurations.
"""

from __future__ import annotations

import json

import numpy as np

from pebble.errors import InputError
from pebble.schedules.export.triton import TORCH_TYPES, WARP_GROUPS_FROM
from pebble.schedules.tables.table import TileTable
from pebble.workloads import Gemm

TEMPLATES = ("triton::mm", "triton::mm_persistent_tma")


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
    workload, tile = table.workload, table.launch.tile
    if workload.family != Gemm.FAMILY or workload.values()["accumulate"] or workload.dtype not in TORCH_TYPES:
        raise InputError(
            f"--format inductor: got {workload.label}, expected a gemm without --accumulate-into in "
            f"{', '.join(TORCH_TYPES)}: what Inductor looks up."
        )
    m, n, k = (workload.dimensions[name] for name in ("m", "n", "k"))
    first = table.column("row")[: table.launch.wave_blocks]
    entry = {
        "BLOCK_M": tile.bm,
        "BLOCK_N": tile.bn,
        "BLOCK_K": tile.bk,
        "GROUP_M": len(np.unique(first)),
        "num_stages": table.launch.stages,
        "num_warps": 8 if tile.bm * tile.bn >= WARP_GROUPS_FROM else 4,
    }
    entries = [{"template_id": template, **entry} for template in TEMPLATES]
    dtype = f"torch.{TORCH_TYPES[workload.dtype]}"
    strides = [n, 1], [1, k]
    keys = [f"(({dtype}, {[m, k]}, {[k, 1]}), ({dtype}, {[k, n]}, {stride}))+mm" for stride in strides]
    return json.dumps(dict.fromkeys(keys, entries), indent=2) + "\n"
