"""List the machines, or explain one: every number with its unit, mark and source, and what the chip can hold.

examples:
  pebble machines
  pebble machines a100-sxm4-40gb
  pebble machines h20 --explain
  pebble machines google-tpu-v4
  pebble machines --machine my.toml
"""

from __future__ import annotations

import argparse

from pebble.api.lists import machines
from pebble.cli import _output, doc_of
from pebble.errors import InputError
from pebble.models import machine
from pebble.models.quantity import Quantity
from pebble.units import format_capacity


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble machines``."""
    parser.add_argument("sku", nargs="?", metavar="SKU", help="the machine to explain; without one, all are listed")
    parser.add_argument(
        "--explain", action="store_true", help="only the cache model of compare, simulate and curve, and why"
    )
    parser.add_argument("--machine", metavar="FILE", help="explain a machine file of your own (format below)")
    # the format is told once, in the module that reads it
    spec = doc_of(machine).partition("\n\n")[2].rstrip()
    parser.epilog = f"machine file (TOML):\n\n{spec}\n\n{parser.epilog}"


def run(args: argparse.Namespace) -> int:
    """List or explain."""
    if args.sku and args.machine:
        raise InputError(f"got both the SKU {args.sku!r} and --machine {args.machine!r}; give one of them.")
    if args.sku or args.machine:
        single = machine.load_machine(args.sku) if args.sku else machine.load_machine_file(args.machine)
        if args.json:
            _output.print_json(single.to_json())
        elif args.explain and not single.explicit:
            _explain_model(single)
        else:
            _explain(single)
        return 0
    if args.explain:
        raise InputError(
            "--explain: expected a SKU or --machine FILE beside it, such as `pebble machines h20 --explain`."
        )
    if args.json:
        _output.print_json(machines().document())
    else:
        _list([machine.load_machine(name) for name in machine.machine_names()])
        print()
        _list_scratchpads([machine.load_machine(name) for name in machine.scratchpad_names()])
    return 0


def _list(machines: list[machine.Machine]) -> None:
    rows = [
        [
            item.sku,
            str(item.sms),
            format_capacity(item.l2_bytes),
            format_capacity(item.on_chip_bytes),
            _gigabytes(item),
            str(item.l2_partitions),
        ]
        for item in machines
    ]
    print(_output.table(["SKU", "SMs", "L2", "on chip", "DRAM GB/s", "parts"], rows))
    print()
    _output.say("on chip: every store between DRAM and the ALUs. parts: L2 partitions that keep their own copies.")
    short = ", ".join(f"{name} for {sku}" for name, sku in machine.SHORT_NAMES.items())
    _output.say(f"short names: {short}.")
    _output.say("`pebble machines SKU` explains one; `--machine FILE` reads your own.")


def _list_scratchpads(machines: list[machine.Machine]) -> None:
    rows = [
        [
            item.sku,
            f"{item.sms:,}",
            format_capacity(item.store_bytes("scratchpad_per_core")),
            format_capacity(item.store_bytes("shared_buffer")) if item.store_bytes("shared_buffer") else "-",
            item.network or "-",
            _gigabytes(item) or "-",
        ]
        for item in machines
    ]
    print(_output.table(["no GPU", "cores", "scratchpad", "buffer", "network", "off chip GB/s"], rows))
    print()
    _output.say("cores with a scratchpad each, under explicit control: bound, compare and time take them.")


def _gigabytes(item: machine.Machine) -> str:
    """Per second, to and from DRAM; empty where it is not known."""
    bandwidth = item.dram_bytes_per_second
    if bandwidth is None:
        return ""
    return f"{bandwidth / 1e9:,.4g}" if bandwidth < 1e12 else f"{bandwidth / 1e9:,.0f}"


def _explain(item: machine.Machine) -> None:
    capability = f", compute capability {item.compute_capability}" if item.compute_capability else ""
    dram = f", {_plain(item.dram_kind)}" if item.dram_kind else ""
    _output.say(f"{_plain(item.name)} ({_plain(item.sku)}){capability}{dram}")
    print()
    sources = list(dict.fromkeys(quantity.source for _, quantity in item.quantities))
    rows = [[key, f"{q.value:,}", _unit(q), q.mark, f"[{sources.index(q.source) + 1}]"] for key, q in item.quantities]
    print(_output.table(["quantity", "value", "unit", "mark", "src"], rows))
    print()
    for number, source in enumerate(sources, start=1):
        _output.say(f"[{number}] {_plain(' '.join(source.split()))}")
    print()
    _output.say("chip capacity (what a bound for the whole chip may assume is held at once):")
    rows = [
        [
            store.key.removeprefix("stores."),
            format_capacity(store.each_bytes),
            str(store.copies),
            format_capacity(store.total_bytes),
        ]
        for store in item.stores
    ]
    rows.append(["sum", "", "", format_capacity(item.on_chip_bytes)])
    print(_output.table(["store", "each", "copies", "total"], rows))
    print()
    if item.explicit:
        stated = f"cores reach each other: {_plain(item.network)}" if item.network else "no network is stated"
        _output.say(f"no cache: scratchpads under explicit control; {stated}")
        return
    _output.say(f"cache model of compare, simulate and curve: {item.default_model.policy} (`--explain` says why)")


def _explain_model(item: machine.Machine) -> None:
    model = item.default_model
    parts = "one L2" if item.l2_partitions == 1 else f"{item.l2_partitions} L2 parts"
    _output.say(f"{_plain(item.name)} ({_plain(item.sku)}): {parts}, {format_capacity(item.l2_bytes)} in all")
    _output.say(f"cache model ({model.mark}): {model.policy}")
    _output.say(f"what   {model.parsed.description}", "  ")
    _output.say(f"why    {_plain(' '.join(model.source.split()))}", "  ")
    _output.say(
        "use    the default of compare, simulate and curve with --gpu; `--policy lru` is one LRU of that size", "  "
    )
    _output.say(
        "bound  the trace capacity counts every line once, however many parts hold it, so bounds stay below", "  "
    )


def _unit(quantity: Quantity) -> str:
    """The unit, and the clock where it is not the boost clock."""
    return quantity.unit + ("" if quantity.at_mhz is None else f" at {quantity.at_mhz:,g} MHz")


def _plain(text: str) -> str:
    """Text of a user's file without control characters, which would reach the terminal."""
    return "".join(character for character in text if character.isprintable())
