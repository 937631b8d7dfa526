"""ThunderKittens' snake of super-groups: g = p / (Tm G), r = (p % (Tm G)) / G, c = g G + p % G, r reversed for odd g.

A remainder strip is Tn % G wide and walked the same way, so this is a snake in strips of width G.
"""

from __future__ import annotations

from pebble.schedules.orders.base import OrderInfo
from pebble.schedules.orders.snake_strips import snake_strips

INFO = OrderInfo(
    base="thunderkittens",
    what="super-groups of columns, row-first inside, down one and up the next",
    source="ThunderKittens include/common/util.cuh, get_swizzled_2d_idx",
    build=lambda rows, cols, number, params: snake_strips(rows, cols, number),
    number=8,
    number_means="tile columns in a super-group",
)
