"""What ``compare`` and ``time`` print for a machine of scratchpads."""

from __future__ import annotations

import re

from pebble.cli import _output
from pebble.reports.dataflow_steps import steps_of
from pebble.reports.dataflows import DataflowComparison
from pebble.timing.on_cores import TITLES
from pebble.units import column_of_bytes, format_bytes, format_capacity, format_ratio, format_seconds

_INDENT = " " * 17


def print_dataflows(result: DataflowComparison, explained: int = 0) -> None:
    """The bounds, the best dataflow, then a row for each; and of so many, the best first, what they do step by step."""
    say, machine, cores, rows = _output.say, result.machine, result.cores, result.rows()
    ways = f"a shared buffer of {format_capacity(cores.shared)}" if cores.shared else "no shared buffer"
    net = f"network {machine.network}" if machine.network else "no stated network between cores"
    say(
        f"{result.workload.label}, {machine.name}: {cores.count:,} cores with a scratchpad of "
        f"{format_capacity(cores.scratchpad)} each, {ways}, {net}; under explicit control, no cache"
    )
    print()
    best, flow = rows[0], result.flows[0]
    say(
        f"proved bound     {format_bytes(result.bound.bytes)} off chip: no schedule moves less "
        f"({format_capacity(result.capacity.bytes)} in all on-chip stores)"
    )
    if result.into_cores is not None:
        say(f"{format_bytes(result.into_cores.bytes)} into and out of all cores, however work is split", _INDENT)
    if result.floor.parts:
        say(f"proved floor     {format_seconds(result.floor.seconds)}: no schedule is faster")
    ratio = format_ratio(best["ratio_to_lower_bound"], ".2f")
    say(f"best dataflow    {flow.name}: {format_bytes(best['off_chip_bytes'])} off chip, {ratio}x the bound")
    say(flow.detail, _INDENT)
    if flow.handover:
        say(f"H is handed over {flow.handover}", _INDENT)
    if best["binds"]:
        say(f"modelled time    {format_seconds(best['modelled_ms'] / 1e3)}, by {TITLES[best['binds']]}")
    print()
    print(_table(result))
    for flow in result.flows[:explained]:
        print()
        say(f"step by step     {flow.name}" + (f"; H is handed over {flow.handover}" if flow.handover else ""))
        for line in steps_of(flow):
            say(line.lstrip(), _INDENT + " " * (len(line) - len(line.lstrip())))
    for note in result.notes:
        say(f"note: {note}")


def _short_time(milliseconds: float | None, longest: float) -> str:
    """In the unit of the longest; a dash where nothing goes a way whose width is known."""
    return "-" if milliseconds is None else format_seconds(milliseconds / 1e3, longest).split()[0]


def _table(result: DataflowComparison) -> str:
    rows, machine, cores = result.rows(), result.machine, result.cores
    scale, mb = column_of_bytes(max(row["into_cores_bytes"] for row in rows))
    longest = max((row["modelled_ms"] or 0.0) / 1e3 for row in rows)
    unit = format_seconds(longest).split()[1] if longest else ""
    chain = any(row["handover"] for row in rows)
    cells = [
        [
            row["name"],
            *([re.split("[:,]", row["handover"])[0].replace("the shared ", "")] if chain else []),
            f"{row['off_chip_bytes'] / scale:,.1f}",
            f"{row['ratio_to_lower_bound']:.2f}",
            *([f"{row['shared_bytes'] / scale:,.1f}"] if cores.shared else []),
            *([f"{row[key] / scale:,.1f}" for key in ("copied_bytes", "hop_bytes")] if machine.network else []),
            *([_short_time(row["modelled_ms"], longest)] if longest else []),
            f"{row['joules']:.3g}",
            *([f"{row['ratio_into_cores']:.2f}"] if row["ratio_into_cores"] is not None else []),
            f"{row['imbalance']:.0%}",
        ]
        for row in rows
    ]
    heads = ["dataflow", *(["H goes"] if chain else []), f"off chip {mb}", "x bound"]
    heads += [f"buffer {mb}"] if cores.shared else []
    heads += [f"core to core {mb}", f"{mb} x hops"] if machine.network else []
    heads += [f"modelled {unit}"] if longest else []
    keep = (f"off chip {mb}", "H goes", "x bound", f"modelled {unit}")
    heads += ["J", *(["x into cores"] if result.into_cores is not None else []), "imbalance"]
    return _output.table(heads, cells, left=2 if chain else 1, keep=keep)
