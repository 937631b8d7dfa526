"""List the tile orders with their sources, or print one of them for a grid.

examples:
  pebble schedules
  pebble schedules grouped-3 --grid 5x7
  pebble schedules deepgemm --grid 32x32 --sms 132 --tile 128x256 --json
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from typing import TYPE_CHECKING

from pebble.api.lists import SAWTOOTH, order_entry, schedules
from pebble.cli import _output
from pebble.errors import InputError

if TYPE_CHECKING:
    from pebble.schedules.orders import OrderParams, TileOrder

# field of OrderParams -> the option that sets it
_OPTIONS = {
    "sms": "--sms",
    "tile_m": "--tile",
    "tile_n": "--tile",
    "cluster_m": "--cluster",
    "cluster_n": "--cluster",
    "raster": "--raster",
    "multicast": "--multicast",
    "chunk": "--chunk",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``pebble schedules``; those that are left out take the defaults of `OrderParams`."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="one tile order, such as grouped-8")
    parser.add_argument("--grid", metavar="RxC", help="print the order for R tile rows and C tile columns")
    parser.add_argument("--sms", type=int, metavar="N", help="streaming multiprocessors (deepgemm; 108)")
    parser.add_argument("--tile", metavar="BMxBN", help="tile size in values (deepgemm; 128x128)")
    parser.add_argument("--cluster", metavar="CMxCN", help="thread block cluster in tiles (cutlass3; 1x1)")
    parser.add_argument("--raster", metavar="AXIS", help="heuristic, along-m or along-n (cutlass3; heuristic)")
    parser.add_argument("--multicast", metavar="OPERAND", help="none, a or b (deepgemm; none)")
    parser.add_argument("--chunk", type=int, metavar="C", help="consecutive tile ids per die (xcd; 64)")


def run(args: argparse.Namespace) -> int:
    """List the orders, explain one, or print one for a grid."""
    from pebble.schedules.orders import parse_order

    if args.name is None:
        options = [option for option in ("--grid", *_OPTIONS.values()) if vars(args)[option[2:]] is not None]
        if options:
            raise InputError(
                f"schedules: got {options[0]} without a name, expected both; "
                "write for example pebble schedules grouped-8 --grid 5x7."
            )
        _list(args.json)
        return 0
    order = parse_order(args.name)
    params = _params(args)
    if args.grid is None:
        _explain(order, args.json)
    else:
        rows, cols = _pair("--grid", args.grid, "5x7")
        _print_grid(order, rows, cols, params, args.json)
    return 0


def _pair(option: str, text: str, example: str, extra: str = "") -> tuple[int, int]:
    """Two whole numbers, such as 5x7; ``extra`` is a pattern that may follow."""
    match = re.fullmatch(rf"([0-9]{{1,10}})x([0-9]{{1,10}}){extra}", text.strip().lower())
    if match is None:
        raise InputError(f"{option}: got {text!r}, expected two whole numbers such as {example}.")
    return int(match[1]), int(match[2])


def _params(args: argparse.Namespace) -> OrderParams:
    from pebble.schedules.orders import OrderParams

    options = {name: vars(args)[name] for name in ("sms", "raster", "multicast", "chunk")}
    if args.tile is not None:  # a third number, the k side, is welcome: tiles are written BMxBNxBK elsewhere
        options["tile_m"], options["tile_n"] = _pair("--tile", args.tile, "128x128", "(?:x[0-9]{1,10})?")
    if args.cluster is not None:
        options["cluster_m"], options["cluster_n"] = _pair("--cluster", args.cluster, "2x1")
    return OrderParams(**{name: value for name, value in options.items() if value is not None})


def _list(as_json: bool) -> None:
    from pebble.schedules.orders import REGISTRY
    from pebble.schedules.tables.source import packaged_orders

    if as_json:
        _output.print_json(schedules().document())
        return
    infos = list(REGISTRY.values())
    packaged = {name: entry.value for name, entry in packaged_orders().items()}
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:  # one line each, for grep
        width = max(len(info.name) for info in infos)
        for info in infos:
            print(f"{info.name:<{width}}  {info.what} [{info.source}]")
        for name, value in packaged.items():
            print(f"{name:<{width}}  of an installed package [{value}]")
        return
    for info in infos:
        _output.say(f"{info.name}: {info.what}")
        _output.say(f"from {info.source}", "  ")
    for name, value in packaged.items():
        _output.say(f"{name}: of an installed package, {value}")
    print()
    _output.say("The number is the group, strip or swizzle size: grouped-16, cutlass3-4, ...")
    _output.say(f"{SAWTOOTH[0].upper()}{SAWTOOTH[1:]}.")


def _explain(order: TileOrder, as_json: bool) -> None:
    info = order.info
    if as_json:
        _output.print_json(
            {**order_entry(info), "name": order.name, "number": order.number, "sawtooth": order.sawtooth}
        )
        return
    print(f"{order.name}: {info.what}")
    if info.number_means:
        count = "chosen by rule" if order.number is None else str(order.number)
        print(f"number: {info.number_means}; {count}")
    if order.sawtooth:
        print("sawtooth: k runs backwards in every second wave")
    options = dict.fromkeys(_OPTIONS[name] for name in info.parameters)
    print(f"depends on: the grid{''.join(f', {option}' for option in options)}")
    print(f"source: {info.source}")
    print(f"see it: pebble schedules {order.name} --grid 5x7")


def _print_grid(order: TileOrder, rows: int, cols: int, params: OrderParams, as_json: bool) -> None:
    import numpy as np

    tiles = order.tiles(rows, cols, params)
    if as_json:
        used = {name: vars(params)[name] for name in order.info.parameters}
        document = {
            "name": order.name,
            "sawtooth": order.sawtooth,
            "rows": rows,
            "cols": cols,
            "parameters": used,
            "tiles": tiles.tolist(),
        }
        _output.print_json(document, indent=None)  # a line, as there may be a million tiles
        return
    place = np.empty((rows, cols), dtype=np.int64)
    place[tiles[:, 0], tiles[:, 1]] = np.arange(rows * cols)
    width = len(str(rows * cols - 1))
    _output.say(f"{order.name}, {rows} tile rows (down) x {cols} tile columns (across), numbered in order from 0")
    for line in place.tolist():
        print(" ".join(f"{number:>{width}}" for number in line))
