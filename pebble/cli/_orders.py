"""The --schedules argument: all, or names separated by commas."""

from __future__ import annotations

from pebble.errors import InputError
from pebble.schedules.orders import TileOrder, all_schedules, parse_order


def read_orders(text: str) -> list[TileOrder]:
    """The tile orders named, each once.

    Raises
    ------
    InputError
        No name at all.
    UnknownNameError
        An unknown name.
    """
    if text.strip().lower() == "all":
        return list(all_schedules())
    names = [name for name in (part.strip() for part in text.split(",")) if name]
    if not names:
        raise InputError(f"--schedules: got {text!r}, expected all, or names such as row,morton,grouped-8+sawtooth.")
    orders = {order.name: order for order in map(parse_order, names)}
    return list(orders.values())
