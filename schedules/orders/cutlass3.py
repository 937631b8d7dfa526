"""CUTLASS 3.x persistent tile scheduler: bands of minor clusters walked along the major axis."""

from __future__ import annotations

from pebble.schedules.grid import Tiles, pairs, round_up, tile_ids
from pebble.schedules.orders.base import OrderInfo, Raster
from pebble.schedules.orders.cutlass2 import log_swizzle


def cutlass3(
    rows: int,
    cols: int,
    max_swizzle: int,
    *,
    cluster_m: int = 1,
    cluster_n: int = 1,
    raster: Raster = "heuristic",
) -> Tiles:
    """Linear id l = (cluster * c_major + off_major) * c_minor + off_minor over the padded grid.

    With swizzle 2^s, cluster c has off = c % 2^s and (q, J) = divmod(c >> s, clusters along major): minor
    cluster q 2^s + off, major cluster J. The grid is padded to whole clusters, s is chosen from that, and
    then the grid is padded to 2^s clusters each way; tiles outside the real grid are skipped. The heuristic
    raster is along M when the padded grid is wider than it is tall. CUTLASS defaults to max_swizzle = 1.

    Examples
    --------
    >>> cutlass3(2, 3, 2, raster="along-n").tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1], [0, 2], [1, 2]]
    """
    s = log_swizzle(max_swizzle, min(round_up(rows, cluster_m), round_up(cols, cluster_n)))
    padded_rows, padded_cols = round_up(rows, cluster_m << s), round_up(cols, cluster_n << s)
    along_m = raster == "along-m" or (raster == "heuristic" and padded_cols > padded_rows)
    c_major, c_minor = (cluster_m, cluster_n) if along_m else (cluster_n, cluster_m)
    clusters_along_major = padded_rows // cluster_m if along_m else padded_cols // cluster_n

    rest, off_minor = divmod(tile_ids(padded_rows, padded_cols), c_minor)
    cluster, off_major = divmod(rest, c_major)
    band, major_cluster = divmod(cluster >> s, clusters_along_major)
    minor = ((band << s) + cluster % (1 << s)) * c_minor + off_minor
    major = major_cluster * c_major + off_major

    row, col = (major, minor) if along_m else (minor, major)
    inside = (row < rows) & (col < cols)
    return pairs(row[inside], col[inside])


INFO = OrderInfo(
    base="cutlass3",
    what="persistent scheduler: bands of up to 8 minor clusters, walked along the major axis",
    source="CUTLASS 3.x include/cutlass/gemm/kernel/static_tile_scheduler.hpp, tile_scheduler_params.h",
    build=lambda rows, cols, number, params: cutlass3(
        rows, cols, number, cluster_m=params.cluster_m, cluster_n=params.cluster_n, raster=params.raster
    ),
    number=8,
    number_means="max_swizzle_size",
    parameters=("cluster_m", "cluster_n", "raster"),
)
