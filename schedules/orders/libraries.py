"""The orders that libraries ship: CUTLASS 2 and 3, DeepGEMM, ThunderKittens, and AMD's remapping for several dies."""

from __future__ import annotations

import numpy as np

from pebble.schedules.orders.order import Multicast, OrderInfo, OrderParams, Raster
from pebble.schedules.orders.strips import grouped, row_first, snake_strips
from pebble.schedules.tile import Tiles, pairs, round_up, tile_ids
from pebble.units import ceil_div


def log_swizzle(number: int, side: int) -> int:
    """The logarithm t of the swizzle that CUTLASS allows: never above 3, and less on a small side.

    Examples
    --------
    >>> [log_swizzle(4, side) for side in (1, 2, 3, 9)]
    [0, 1, 2, 2]
    """
    thresholds = ((3, 8, 6), (2, 4, 3), (1, 2, 2))
    return next((t for t, at_least, tiles in thresholds if number >= at_least and side >= tiles), 0)


def cutlass2_identity(rows: int, cols: int, number: int) -> Tiles:
    """Launch grid (Tm 2^t, ceil(Tn / 2^t)) of GemmIdentityThreadblockSwizzle<N>.

    m = bx >> t, n = (by << t) + bx % 2^t; blocks with n >= Tn leave at once. CUTLASS uses N = 1, 2, 4, 8;
    other numbers follow the same thresholds.

    Examples
    --------
    >>> cutlass2_identity(2, 3, 2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1], [0, 2], [1, 2]]
    """
    t = log_swizzle(number, cols)
    width = 1 << t
    by, bx = divmod(tile_ids(rows, ceil_div(cols, width) * width), rows * width)
    row, col = bx >> t, (by << t) + bx % width
    inside = col < cols
    return pairs(row[inside], col[inside])


CUTLASS2 = OrderInfo(
    base="cutlass2",
    what="GemmIdentity<N>: strips of up to N columns (at most 8), row-first inside; N = 1 is column-first",
    source="CUTLASS 2.x include/cutlass/gemm/threadblock/threadblock_swizzle.h",
    build=lambda rows, cols, number, params: cutlass2_identity(rows, cols, number),
    number=4,
    number_means="N of GemmIdentity<N>",
)


CUTLASS2_HORIZONTAL = OrderInfo(
    base="cutlass2-horizontal",
    what="GemmHorizontal: launch grid (N tiles, M tiles), the same as row",
    source="CUTLASS 2.x include/cutlass/gemm/threadblock/threadblock_swizzle.h",
    build=lambda rows, cols, number, params: row_first(rows, cols),
)


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


CUTLASS3 = OrderInfo(
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


def deepgemm_group(params: OrderParams) -> int:
    """The c of {8, 16} that minimises c BM + ceil(SMs / c) BN; a tie gives 8.

    With multicast on A, BM and BN change places.

    Examples
    --------
    >>> deepgemm_group(OrderParams(sms=132, tile_m=64, tile_n=128))
    16
    """
    grouped, other = (params.tile_n, params.tile_m) if params.multicast == "a" else (params.tile_m, params.tile_n)
    return min((8, 16), key=lambda c: c * grouped + ceil_div(params.sms, c) * other)  # min keeps the first of a tie


def deepgemm(rows: int, cols: int, group: int, multicast: Multicast = "none") -> Tiles:
    """Groups of tile rows (of tile columns for multicast on A), each walked along the other axis.

    With P blocks along the grouped axis and S along the other: g = p / (S G), f = g G, w = min(G, P - f),
    r = p % (S G), primary = f + r % w, secondary = r / w. Multicast reaches two blocks; on SM90 an odd w is
    then walked as w - 1 followed by a strip of 1. Without multicast that rule does not apply.

    Examples
    --------
    >>> deepgemm(3, 2, 8).tolist() == deepgemm(3, 2, 16).tolist()
    True
    >>> deepgemm(3, 2, 8, multicast="b").tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1], [2, 0], [2, 1]]
    """
    primary_blocks, secondary_blocks = (cols, rows) if multicast == "a" else (rows, cols)
    number, inside = divmod(tile_ids(rows, cols), secondary_blocks * group)
    first = number * group
    width = np.minimum(primary_blocks - first, group)
    if multicast != "none":
        even = width - width % 2
        strip = inside >= even * secondary_blocks  # the odd block left over; never true for an even width
        inside = np.where(strip, inside - even * secondary_blocks, inside)
        first = np.where(strip, first + even, first)
        width = np.where(strip, 1, even)
    secondary, primary = divmod(inside, width)
    primary += first
    return pairs(secondary, primary) if multicast == "a" else pairs(primary, secondary)


DEEPGEMM = OrderInfo(
    base="deepgemm",
    what="groups of 8 or 16 tile rows (columns for multicast on A), whichever touches less per wave",
    source="DeepGEMM deep_gemm/include/deep_gemm/scheduler/gemm.cuh (54e2261)",
    build=lambda rows, cols, number, params: deepgemm(rows, cols, number or deepgemm_group(params), params.multicast),
    number_means="forced group size",
    parameters=("sms", "tile_m", "tile_n", "multicast"),
)

# g = p / (Tm G), r = (p % (Tm G)) / G, c = g G + p % G, r reversed for odd g; the remainder strip is Tn % G wide and
# walked the same way: a snake in strips of width G
THUNDERKITTENS = OrderInfo(
    base="thunderkittens",
    what="super-groups of columns, row-first inside, down one and up the next",
    source="ThunderKittens include/common/util.cuh, get_swizzled_2d_idx",
    build=lambda rows, cols, number, params: snake_strips(rows, cols, number),
    number=8,
    number_means="tile columns in a super-group",
)


DIES = 8  # XCDs of an MI300X


def xcd(rows: int, cols: int, group: int, chunk: int, dies: int = DIES) -> Tiles:
    """Hardware deals workgroup ids round-robin to X dies; remap them so that a die gets C consecutive ids.

    For id < floor(n / (X C)) X C: xcd = id % X, l = id / X, new id = (l / C) X C + xcd C + l % C; later ids
    stay. The new id is then a place in the grouped order with ``group`` tile rows in a group.

    Examples
    --------
    >>> xcd(1, 5, group=8, chunk=2, dies=2)[:, 1].tolist()
    [0, 2, 1, 3, 4]
    """
    ids = tile_ids(rows, cols)
    local, die = divmod(ids, dies)
    block, offset = divmod(local, chunk)
    remapped = block * (dies * chunk) + die * chunk + offset
    whole = ids.size // (dies * chunk) * (dies * chunk)
    return grouped(rows, cols, group)[np.where(ids < whole, remapped, ids)]


XCD = OrderInfo(
    base="xcd",
    what="chunks of a grouped order dealt to the 8 dies of an AMD GPU",
    source="HipKittens include/common/util.cuh",
    build=lambda rows, cols, number, params: xcd(rows, cols, number, params.chunk),
    number=8,
    number_means="tile rows in a group",
    parameters=("chunk",),
)
