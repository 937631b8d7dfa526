"""The tile orders in common use, and their registry.

A new order is a pure function and its `OrderInfo` beside its kin, and its name in ``registry.py``.
"""

from pebble.schedules.orders.order import MAX_NUMBER, OrderInfo, OrderParams, params_of
from pebble.schedules.orders.registry import ALL_ORDERS, REGISTRY, TileOrder, all_schedules, parse_order

__all__ = [
    "ALL_ORDERS",
    "MAX_NUMBER",
    "REGISTRY",
    "OrderInfo",
    "OrderParams",
    "TileOrder",
    "all_schedules",
    "params_of",
    "parse_order",
]
