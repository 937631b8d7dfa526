"""AMD's remapping for several dies (XCDs): each die gets chunks of consecutive tiles of a grouped order."""

from __future__ import annotations

import numpy as np

from pebble.schedules.grid import Tiles, tile_ids
from pebble.schedules.orders.base import OrderInfo
from pebble.schedules.orders.grouped import grouped

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


INFO = OrderInfo(
    base="xcd",
    what="chunks of a grouped order dealt to the 8 dies of an AMD GPU",
    source="HipKittens include/common/util.cuh",
    build=lambda rows, cols, number, params: xcd(rows, cols, number, params.chunk),
    number=8,
    number_means="tile rows in a group",
    parameters=("chunk",),
)
