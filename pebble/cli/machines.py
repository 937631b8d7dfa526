"""List the GPUs, or explain one: every number with its unit, mark and source, and what the chip can hold.

examples:
  pebble machines
  pebble machines a100-sxm4-40gb
  pebble machines --machine my.toml
"""

from __future__ import annotations

import argparse
import json
import textwrap
from typing import TYPE_CHECKING

from pebble.errors import InputError
from pebble.models import machine
from pebble.units import format_capacity

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble machines``."""
    parser.add_argument("sku", nargs="?", metavar="SKU", help="the GPU to explain; without one, all are listed")
    parser.add_argument("--machine", metavar="FILE", help="explain a machine file of your own (format below)")
    # the format is told once, in the module that reads it
    parser.epilog = "machine file (TOML):\n\n" + (machine.__doc__ or "").partition("\n\n")[2]


def run(args: argparse.Namespace) -> int:
    """List or explain."""
    if args.sku and args.machine:
        raise InputError(f"got both the SKU {args.sku!r} and --machine {args.machine!r}; give one of them.")
    if args.sku or args.machine:
        one = machine.load_machine(args.sku) if args.sku else machine.load_machine_file(args.machine)
        if args.json:
            print(json.dumps(one.to_json(), indent=2))
        else:
            _explain(one)
        return 0
    machines = [machine.load_machine(name) for name in machine.machine_names()]
    if args.json:
        print(json.dumps({"machines": [_summary(one) for one in machines]}, indent=2))
    else:
        _list(machines)
    return 0


def _summary(one: machine.Machine) -> dict[str, object]:
    details = one.to_json()
    return {key: details[key] for key in details if key not in ("stores", "quantities")}


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def _table(*columns: str) -> Table:
    """A table without rules; every column but the first is a number or short word, kept whole."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index else "left", overflow="fold", no_wrap=bool(index))
    return table


def _list(machines: list[machine.Machine]) -> None:
    table = _table("SKU", "SMs", "L2", "on chip", "DRAM GB/s", "parts")
    for one in machines:
        bandwidth = one.dram_bytes_per_second
        table.add_row(
            one.sku,
            str(one.sms),
            format_capacity(one.l2_bytes),
            format_capacity(one.on_chip_bytes),
            "" if bandwidth is None else f"{bandwidth / 1e9:,.4g}" if bandwidth < 1e12 else f"{bandwidth / 1e9:,.0f}",
            str(one.l2_partitions),
        )
    console = _console()
    console.print(table)
    console.print()
    console.print("on chip: every store between DRAM and the ALUs. parts: L2 partitions that keep their own copies.")
    console.print("`pebble machines SKU` explains one; `--machine FILE` reads your own.")


def _explain(one: machine.Machine) -> None:
    from rich.text import Text

    console = _console()
    console.print(Text(one.name, style="bold"), end="")
    console.print(
        f" ({one.sku})" + (f", compute capability {one.compute_capability}" if one.compute_capability else "")
    )
    console.print()
    sources = list(dict.fromkeys(quantity.source for _, quantity in one.quantities))
    table = _table("quantity", "value", "unit", "mark", "src")
    table.columns[2].justify = "left"
    table.columns[3].justify = "left"
    for key, quantity in one.quantities:
        note = f"[{sources.index(quantity.source) + 1}]"
        table.add_row(key, f"{quantity.value:,}", quantity.unit, quantity.mark, Text(note))
    console.print(table)
    console.print()
    for number, source in enumerate(sources, start=1):
        # wrapped here, so that a source stays under its number
        label = f"[{number}] "
        lines = textwrap.wrap(" ".join(source.split()), max(20, console.width - 5)) or [""]
        console.print(Text(label.ljust(5) + ("\n" + " " * 5).join(lines)))
    console.print()
    console.print("chip capacity (what a bound for the whole chip may assume is held at once):")
    table = _table("store", "each", "copies", "total")
    for store in one.stores:
        table.add_row(
            (store.key.removeprefix("stores.")),
            format_capacity(store.each_bytes),
            str(store.copies),
            format_capacity(store.total_bytes),
        )
    table.add_row("sum", "", "", format_capacity(one.on_chip_bytes), style="bold")
    console.print(table)
