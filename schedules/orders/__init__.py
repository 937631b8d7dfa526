"""The tile orders in common use, one file each, and their registry.

A new order is one file with a pure function and its ``INFO``, and one line in ``registry.py``.
"""

from pebble.schedules.orders.base import MAX_NUMBER, OrderInfo, OrderParams
from pebble.schedules.orders.registry import ALL_ORDERS, REGISTRY, TileOrder, all_schedules, parse_order

__all__ = [
    "ALL_ORDERS",
    "MAX_NUMBER",
    "REGISTRY",
    "OrderInfo",
    "OrderParams",
    "TileOrder",
    "all_schedules",
    "parse_order",
]
