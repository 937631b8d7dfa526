"""DeepGEMM's current rule: groups of 8 or 16 blocks, whichever touches less per wave."""

from __future__ import annotations

import numpy as np

from pebble.schedules.grid import Tiles, pairs, tile_ids
from pebble.schedules.orders.base import Multicast, OrderInfo, OrderParams
from pebble.units import ceil_div


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


INFO = OrderInfo(
    base="deepgemm",
    what="groups of 8 or 16 tile rows (columns for multicast on A), whichever touches less per wave",
    source="DeepGEMM deep_gemm/include/deep_gemm/scheduler/gemm.cuh (54e2261)",
    build=lambda rows, cols, number, params: deepgemm(rows, cols, number or deepgemm_group(params), params.multicast),
    number_means="forced group size",
    parameters=("sms", "tile_m", "tile_n", "multicast"),
)
