"""Schedules: in which order output tiles are computed. An order is a pure function grid -> permutation."""

from pebble.schedules.orders import (
    ALL_ORDERS,
    REGISTRY,
    OrderInfo,
    OrderParams,
    TileOrder,
    all_schedules,
    parse_order,
)
from pebble.schedules.tile import Tiles, check_grid

__all__ = [
    "ALL_ORDERS",
    "REGISTRY",
    "OrderInfo",
    "OrderParams",
    "TileOrder",
    "Tiles",
    "all_schedules",
    "check_grid",
    "parse_order",
]
