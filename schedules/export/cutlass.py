"""A table as a header for CUTLASS 3: a persistent tile scheduler for Hopper, which takes tiles in the table's order."""

from __future__ import annotations

import numpy as np

from pebble.errors import InputError
from pebble.schedules.export.cuda import statement, static_table
from pebble.schedules.tables.registry import KERNELS
from pebble.schedules.tables.table import TileTable

_TEXT = """\
{statement}
// Written by pebble. Use it as the last argument of a kernel, with CUTLASS 3.5 or newer:
//
//   cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue, {space}::Tag>
//
// whose tile is {m} x {n} and whose cluster is 1 x 1 x 1. Block b takes tiles b, b + grid, b + 2 grid ... of the table;
// CUTLASS walks k forwards in each: where k starts and in which direction, the table's kernels in Triton know alone.
#pragma once

#include <stdexcept>

#include "cutlass/gemm/kernel/tile_scheduler.hpp"

namespace {space} {{

struct Tag {{}};

enum : int {{ tiles = {tiles}, tile_rows = {rows}, tile_columns = {columns}, tile_m = {m}, tile_n = {n} }};

CUTLASS_DEVICE int row(int at) {{
{row_table}
  return row_of[at];
}}

CUTLASS_DEVICE int column(int at) {{
{column_table}
  return column_of[at];
}}

class Scheduler : public cutlass::gemm::kernel::detail::PersistentTileSchedulerSm90 {{
  using Base = cutlass::gemm::kernel::detail::PersistentTileSchedulerSm90;
  int at_ = 0;

  CUTLASS_DEVICE static int blocks() {{ return gridDim.x * gridDim.y * gridDim.z; }}

  CUTLASS_DEVICE static WorkTileInfo tile(int at) {{
    return at < tiles ? WorkTileInfo{{row(at), column(at), 0, true}} : WorkTileInfo::invalid_work_tile();
  }}

 public:
  CUTLASS_HOST_DEVICE Scheduler() {{}}

  CUTLASS_DEVICE explicit Scheduler(Params const& params) : Base(params) {{
    at_ = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  }}

  template <class Problem, class Tile, class Cluster>
  static Params to_underlying_arguments(Problem problem, Tile tile, Cluster cluster,
                                        cutlass::KernelHardwareInfo const& hardware, Arguments const& arguments,
                                        void* workspace = nullptr, uint32_t subtiles = 1, uint32_t aligned = 1) {{
    static_assert(cute::size<0>(Tile{{}}) == tile_m && cute::size<1>(Tile{{}}) == tile_n,
                  "the table is for another tile");
    static_assert(cute::size(Cluster{{}}) == 1, "the table is for clusters of one block");
    auto found = Base::get_tiled_cta_shape_mnl(problem, tile, cluster);
    bool fits = found.x == tile_rows && found.y == tile_columns && found.z == 1;
    if (!fits) throw std::invalid_argument("the table is for another problem");
    return Base::to_underlying_arguments(problem, tile, cluster, hardware, arguments, workspace, subtiles, aligned);
  }}

  template <class Cluster>
  CUTLASS_DEVICE WorkTileInfo initial_work_tile_info(Cluster) {{
    return get_current_work();
  }}

  CUTLASS_DEVICE WorkTileInfo get_current_work() const {{ return tile(at_); }}

  CUTLASS_DEVICE void advance_to_next_work(uint32_t count = 1) {{ at_ += blocks() * count; }}

  CUTLASS_DEVICE bool is_last_tile(WorkTileInfo&, uint32_t count = 1) const {{
    return at_ + blocks() * static_cast<int>(count) >= tiles;
  }}

  CUTLASS_DEVICE auto fetch_next_work(WorkTileInfo) {{
    advance_to_next_work();
    return cute::make_tuple(get_current_work(), true);
  }}

  template <class Pipeline, class State>
  CUTLASS_DEVICE auto fetch_next_work(WorkTileInfo work, Pipeline&, State) {{
    return fetch_next_work(work);
  }}
}};

}}  // namespace {space}

namespace cutlass::gemm::kernel::detail {{

template <class TileShape, class ClusterShape, uint32_t Stages>
struct TileSchedulerSelector<{space}::Tag, arch::Sm90, TileShape, ClusterShape, Stages> {{
  using Scheduler = {space}::Scheduler;
}};

}}  // namespace cutlass::gemm::kernel::detail
"""


def cutlass_header(table: TileTable) -> str:
    """The text of the header.

    Parameters
    ----------
    table : TileTable
        Of one product.

    Raises
    ------
    InputError
        Of anything else, or with k in parts.
    """
    if table.workload.family != "gemm" or len(np.unique(table.column("phase"))) > 1:
        raise InputError(
            f"cutlass: got {table.workload.label}, expected one GEMM whose tiles take all of k; --format cuda writes a "
            "header for any table."
        )
    row, column, tile = table.column("row"), table.column("col"), table.launch.tile
    ((_, (rows, columns), _),) = KERNELS[table.workload.family].of(table.workload, tile).products
    return _TEXT.format(
        statement="\n".join(f"// {line}" for line in statement(table)), space="pebble_schedule", m=tile.bm, n=tile.bn,
        tiles=table.blocks, rows=rows, columns=columns, row_table="\n".join(static_table("row", row)),
        column_table="\n".join(static_table("column", column)),
    )  # fmt: skip
