"""``--accumulator``, ``--energy``, and what a reader sees of the floor on time."""

from __future__ import annotations

import argparse

from pebble.cli import _output
from pebble.models.rates import ACCUMULATORS, Rate
from pebble.reports.timed import WorkloadTime
from pebble.timing.energy import Energy, energy_tables
from pebble.timing.floor import TITLES, FloorPart, TimeFloor
from pebble.units import format_bytes, format_capacity, format_seconds

_LEVELS = {
    "dram": "DRAM",
    "l2": "L2",
    "shared": "shared memory",
    "shared_buffer": "shared buffer",
    "network": "network",
    "scratchpad": "scratchpads",
    "operations": "operations",
}


def add_time_arguments(parser: argparse.ArgumentParser, energy: bool = True) -> None:
    """--accumulator, and --energy where it is told."""
    group = parser.add_argument_group("time, with --gpu or --machine")
    group.add_argument(
        "--accumulator", metavar="TYPE", help=f"of sums, which may change the peak: {', '.join(ACCUMULATORS)} (fp32)"
    )
    if energy:
        names = ", ".join(energy_tables())
        group.add_argument("--energy", metavar="TABLE", help=f"estimate energy too, by a table: {names}")


def print_floor(floor: TimeFloor, verdict: str, dtype: str) -> None:
    """The floor, what sets it, and each part."""
    say = _output.say
    if not floor.parts:
        say(f"time floor       none: {'; '.join(floor.missing)}")
        return
    say(f"time floor       {format_seconds(floor.seconds)}: {verdict}")
    for part in floor.parts:
        say(f"{TITLES[part.name]:<11}{_part_text(part, floor, dtype)}", "  ")
    for missing in floor.missing:
        say(missing, "  ")
    if floor.warm_seconds < floor.seconds:
        say(
            f"warm       {format_seconds(floor.warm_seconds)} if the caches before DRAM "
            f"({format_capacity(floor.resident_bytes)}) are full of what is needed at the start and of dirty "
            "lines at the end",
            "  ",
        )
    known = {part.name: part.sustained for part in floor.parts if part.sustained is not None}
    reached = ", ".join(_rate_text(part, part.sustained) for part in floor.parts if part.sustained is not None)
    asked = {part.name for part in floor.parts} | {name for name, title in TITLES.items() if title in floor.unknown}
    unknown = [title for name, title in TITLES.items() if name in asked and name not in known]
    without = f"; {' and '.join(unknown)} left out, whose rates are not known" if unknown else ""
    say(
        f"sustained  {format_seconds(floor.sustained_seconds)} at rates that kernels reach, not proved: "
        f"{reached}{without}",
        "  ",
    )


def _part_text(part: FloorPart, floor: TimeFloor, dtype: str) -> str:
    types = f"{dtype}, sums in {floor.accumulator}; " if part.name == "operations" else ""
    amount = _operations(part.amount) if part.name == "operations" else format_bytes(part.amount)
    return f"{format_seconds(part.seconds)} = {amount} at {_rate_text(part, part.rate)} ({types}{part.theorem})"


def _operations(count: int) -> str:
    """Such as ``1.1 TFLOP``."""
    for scale, unit in ((10**12, "TFLOP"), (10**9, "GFLOP"), (10**6, "MFLOP")):
        if count >= scale:
            return f"{count / scale:,.4g} {unit}"
    return f"{count:,} FLOP"


def _rate_text(part: FloorPart, rate: Rate) -> str:
    """Such as ``989.4 TFLOPS (vendor, at 1,830 MHz)``."""
    tera = rate.per_second / 1e12
    number = f"{tera:,.4g} TFLOPS" if part.name == "operations" else f"{tera:,.4g} TB/s"
    clock = "" if rate.clock_mhz is None else f"at {rate.clock_mhz:,g} MHz"
    return f"{number} ({', '.join(filter(None, (rate.mark, clock, rate.note)))})"


def rates_line(floor: TimeFloor, dtype: str) -> str:
    """The peaks that a floor is at, in a line."""
    types = {"operations": f" for {dtype} with sums in {floor.accumulator}"}
    return "; ".join(
        f"{TITLES[part.name]} at {_rate_text(part, part.rate)}{types.get(part.name, '')}" for part in floor.parts
    )


def print_energy(timed: WorkloadTime, orders: dict[str, Energy] | None = None) -> None:
    """The estimate of the bounds, of each order, and what the table counts."""
    if timed.table is None or timed.energy is None:
        return
    say, table = _output.say, timed.table
    parts = ", ".join(f"{_LEVELS[level]} {joules:.3g} J" for level, joules in timed.energy.joules.items())
    say(f"energy estimate  {timed.energy.total:.3g} J at the bounds: {parts} (table {table.key}: {table.name})")
    if orders:
        rows = [
            [name, *(f"{joules:.3g}" for joules in energy.joules.values()), f"{energy.total:.3g}"]
            for name, energy in orders.items()
        ]
        print()
        print(
            _output.table(
                ["schedule", *(f"{_LEVELS[key]} J" for key in timed.energy.joules), "total J"], rows, keep=("total J",)
            )
        )
    say(f"note: energy is an estimate, not a bound: {table.about}")
