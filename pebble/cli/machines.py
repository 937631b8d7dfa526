"""List the GPUs, or explain one: every number with its unit, mark and source, and what the chip can hold.

examples:
  pebble machines
  pebble machines a100-sxm4-40gb
  pebble machines h20 --explain
  pebble machines --machine my.toml
"""

from __future__ import annotations

import argparse

from pebble.cli import _output, doc_of
from pebble.errors import InputError
from pebble.models import machine
from pebble.models.quantity import Quantity
from pebble.units import format_capacity


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble machines``."""
    parser.add_argument("sku", nargs="?", metavar="SKU", help="the GPU to explain; without one, all are listed")
    parser.add_argument(
        "--explain", action="store_true", help="only the cache model of compare, simulate and curve, and why"
    )
    parser.add_argument("--machine", metavar="FILE", help="explain a machine file of your own (format below)")
    # the format is told once, in the module that reads it
    told = doc_of(machine).partition("\n\n")[2].rstrip()
    parser.epilog = f"machine file (TOML):\n\n{told}\n\n{parser.epilog}"


def run(args: argparse.Namespace) -> int:
    """List or explain."""
    if args.sku and args.machine:
        raise InputError(f"got both the SKU {args.sku!r} and --machine {args.machine!r}; give one of them.")
    if args.sku or args.machine:
        one = machine.load_machine(args.sku) if args.sku else machine.load_machine_file(args.machine)
        if args.json:
            _output.print_json(one.to_json())
        elif args.explain:
            _explain_model(one)
        else:
            _explain(one)
        return 0
    if args.explain:
        raise InputError(
            "--explain: expected a SKU or --machine FILE beside it, such as `pebble machines h20 --explain`."
        )
    machines = [machine.load_machine(name) for name in machine.machine_names()]
    if args.json:
        _output.print_json({"machines": [_summary(one) for one in machines]})
    else:
        _list(machines)
    return 0


def _summary(one: machine.Machine) -> dict[str, object]:
    details = one.to_json()
    return {key: details[key] for key in details if key not in ("stores", "quantities")}


def _list(machines: list[machine.Machine]) -> None:
    rows = []
    for one in machines:
        bandwidth = one.dram_bytes_per_second
        rows.append(
            [
                one.sku,
                str(one.sms),
                format_capacity(one.l2_bytes),
                format_capacity(one.on_chip_bytes),
                ""
                if bandwidth is None
                else f"{bandwidth / 1e9:,.4g}"
                if bandwidth < 1e12
                else f"{bandwidth / 1e9:,.0f}",
                str(one.l2_partitions),
            ]
        )
    print(_output.table(["SKU", "SMs", "L2", "on chip", "DRAM GB/s", "parts"], rows))
    print()
    _output.say("on chip: every store between DRAM and the ALUs. parts: L2 partitions that keep their own copies.")
    _output.say("`pebble machines SKU` explains one; `--machine FILE` reads your own.")


def _explain(one: machine.Machine) -> None:
    capability = f", compute capability {one.compute_capability}" if one.compute_capability else ""
    dram = f", {_plain(one.dram_kind)}" if one.dram_kind else ""
    _output.say(f"{_plain(one.name)} ({_plain(one.sku)}){capability}{dram}")
    print()
    sources = list(dict.fromkeys(quantity.source for _, quantity in one.quantities))
    rows = [[key, f"{q.value:,}", _unit(q), q.mark, f"[{sources.index(q.source) + 1}]"] for key, q in one.quantities]
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
        for store in one.stores
    ]
    rows.append(["sum", "", "", format_capacity(one.on_chip_bytes)])
    print(_output.table(["store", "each", "copies", "total"], rows))
    print()
    _output.say(f"cache model of compare, simulate and curve: {one.default_model.policy} (`--explain` says why)")


def _explain_model(one: machine.Machine) -> None:
    model = one.default_model
    parts = "one L2" if one.l2_partitions == 1 else f"{one.l2_partitions} L2 parts"
    _output.say(f"{_plain(one.name)} ({_plain(one.sku)}): {parts}, {format_capacity(one.l2_bytes)} in all")
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
