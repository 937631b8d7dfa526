"""``--buffers``: the options of several SMs, and what ``bound`` and ``compare`` print at the L2-to-SM boundary."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from pebble.cli import _output
from pebble.game.buffer_model import KINDS, TOPOLOGIES
from pebble.models.machine import Machine
from pebble.reports.sm_bound import SmBound
from pebble.reports.sm_compare import SmComparison
from pebble.reports.sm_memory import in_words
from pebble.units import format_bytes, format_capacity, format_ratio


def add_buffer_arguments(parser: argparse.ArgumentParser) -> None:
    """--buffers, --omega, --topology."""
    group = parser.add_argument_group("buffers")
    group.add_argument("--buffers", default=None, metavar="MODEL", help=f"{', '.join(KINDS)} (single)")
    group.add_argument(
        "--omega", metavar="W",
        help="connected: cost of a value copied between SMs, in reads of L2; measured: the machine's own (0.25)",
    )  # fmt: skip
    group.add_argument("--topology", metavar="NET", help=f"connected: {', '.join(TOPOLOGIES)} (all-to-all)")


def add_level_arguments(parser: argparse.ArgumentParser) -> None:
    """--level, --multicast."""
    parser.add_argument("--level", metavar="L", help="boundary: dram, or l2 for L2 to SMs (l2 with --buffers)")
    parser.add_argument("--multicast", metavar="C", help="sm-local: SMs that one read of L2 may feed (1)")


def _mb(traffic_total: float) -> str:
    """Megabytes, with as many digits as tell small problems apart."""
    return f"{traffic_total / 1e6:,.{1 if traffic_total >= 10e6 else 3}f}"


def _speaker(machine: Machine | None) -> Callable[[str], None]:
    """Says a text on SMs and L2 in the words of a machine."""
    return lambda text: _output.say(in_words(machine, text))


def _say_game(document: dict[str, Any], say: Callable[[str], None]) -> None:
    """Which game is bounded; and what is proved in the other one, where an output begins at a value."""
    if document["atomic_adds"] == "allowed":
        say("game: SMs may add to values in L2 (atomic adds); each counts as one store")
    if other := document.get("without_atomic_adds"):
        say(
            f"without them C is loaded to be added to: at least {format_bytes(other['lower_bound']['bytes'])}, "
            f"balanced {format_bytes(other['balanced_bound']['bytes'])}"
        )


def print_sm_comparison(result: SmComparison) -> None:
    """The comparison for a reader."""
    document, capacity, say = result.document(), result.capacity, _speaker(result.machine)
    held = f"each holds {format_capacity(capacity.bytes)}: {capacity.detail}"
    say(f"{result.workload.label}: L2 to SMs, {result.buffers}; {held}")
    _say_game(document, say)
    print()
    say(f"proved bound     {format_bytes(document['lower_bound']['bytes'])}: however the work is split")
    say(f"balanced bound   {format_bytes(document['balanced_bound']['bytes'])}: no SM does more than its share")
    least = document["schedules"][0]
    what = least["schedule"].removeprefix(f"{least['name']}, ")
    say(
        f"least cost       {format_bytes(least['cost_bytes'])}: {least['name']} ({what}); the "
        f"busiest SM does {least['imbalance']:.1%} above the mean"
    )
    print()
    far = any(row["hop_bytes"] != row["from_other_sms_bytes"] for row in document["schedules"])
    keys = ("from_l2_bytes", "from_other_sms_bytes", *(["hop_bytes"] if far else []), "to_l2_bytes", "cost_bytes")
    rows = [
        [
            row["name"],
            *(_mb(row[key]) for key in keys),
            _mb(row["from_l2_bytes_per_sm"] + row["from_other_sms_bytes_per_sm"]),
            f"{row['imbalance']:.1%}",
            f"{row['ratio_to_lower_bound']:.2f}",
            *([f"{row['energy_estimate']['total_joules']:.3g}"] if result.table is not None else []),
        ]
        for row in document["schedules"]
    ]
    heads = ["schedule", "L2 to SM MB", "SM to SM MB", *(["MB x hops"] if far else []), "to L2 MB", "cost MB"]
    heads += ["into an SM MB", "imbalance", "x bound"]
    heads += ["joules"] * (result.table is not None)
    heads = [in_words(result.machine, head) for head in heads]
    print(_output.table(heads, rows, keep=("cost MB", "imbalance", "x bound", "joules")))
    if result.table is not None:
        say(
            f"note: joules are an estimate by table {result.table.key} ({result.table.name}): L2, copies, shared "
            "memory and operations; DRAM is beyond this boundary"
        )
    for note in result.notes:
        say(f"note: {note}")


def print_sm_bound(result: SmBound) -> None:
    """The bound for a reader."""
    document, say = result.document(), _speaker(result.machine)
    lower, balanced, upper = document["lower_bound"], document["balanced_bound"], document["upper_bound"]
    into = document["into_sms"]
    capacity, sms = document["capacity"], document["sms"]
    net = f", omega {document['omega']:g}, {document['topology']}" if document["omega"] is not None else ""
    say(document["workload"]["label"])
    say(
        f"L2 to SMs: {document['buffers']}, {sms} SMs{net}; each holds {capacity['elements']:,} elements, "
        f"{format_capacity(capacity['bytes'])}: {capacity['detail']}"
    )
    _say_game(document, say)
    print()
    cost = "loads + stores" + (" + omega * copies" if document["omega"] is not None else "")
    say(f"lower bound  {lower['elements']:,} elements, {format_bytes(lower['bytes'])} ({lower['method']}): {cost}")
    say(f"proof        {lower['theorem']['text']}")
    if balanced["elements"] > lower["elements"]:
        say(
            f"balanced     {balanced['elements']:,} elements, {format_bytes(balanced['bytes'])}: when no SM does more "
            f"than 1/{sms} of the multiply-adds"
        )
    what = "" if into is None else f" ({upper['what']}; `compare` counts others too)"
    say(f"upper bound  {upper['elements']:,} elements, {format_bytes(upper['bytes'])}{what}: {upper['schedule']}")
    say(f"gap          {format_ratio(document['gap'])}")
    _print_boundaries(document, say)
    for other in document["other_capacities"]:
        bound = other["lower_bound"]
        beyond = "; a kernel also holds values in registers and may go below this"
        if bound["bytes"] <= lower["bytes"]:
            beyond = "; more memory does not lower it"
        say(
            f"for {other['capacity']['detail']}: {bound['elements']:,} elements, {format_bytes(bound['bytes'])}{beyond}"
        )
    print()
    rows = [
        [
            model["buffers"].replace(f", {sms} SMs", ""),
            _mb(model["lower_bound_bytes"]),
            _mb(model["balanced_bound_bytes"]),
            f"{model['over_pooled']:.2f}",
        ]
        for model in document["models"]
    ]
    print(_output.table(["buffers", "bound MB", "balanced MB", "x pooled"], rows))
    for note in result.notes:
        say(f"note: {note}")


def _print_boundaries(document: dict[str, Any], say: Callable[[str], None]) -> None:
    """What crosses from DRAM to the chip, into the SMs, into the busiest of them, and by multicast."""
    into = document["into_sms"]
    for level in document["levels"][1:]:
        bound, memory = level["lower_bound"], format_capacity(level["capacity"]["bytes"])
        say(
            f"DRAM         {bound['elements']:,} elements, {format_bytes(bound['bytes'])}: between DRAM and "
            f"the chip with all its stores ({memory})"
        )
    if into is not None:
        say(
            f"into SMs     {format_bytes(into['from_l2_bytes'])} from L2, "
            f"{format_bytes(into['from_other_sms_bytes'])} from other SMs, {format_bytes(into['to_l2_bytes'])} back "
            f"to L2; per SM {format_bytes(into['from_l2_bytes_per_sm'])} and "
            f"{format_bytes(into['from_other_sms_bytes_per_sm'])}; the busiest does {into['imbalance']:.1%} above the "
            "mean"
        )
    if "per_sm" in document:
        per_sm = document["per_sm"]
        say(
            f"busiest SM   {per_sm['busiest_elements_at_least']:,} elements in and out at least; memory-independent "
            f"(Al Daas et al., regime {per_sm['memory_independent_regime']} of 3): "
            f"{per_sm['memory_independent_words']:,} words received beyond its share of the data"
        )
    if "multicast" in document:
        cast = document["multicast"]
        schedule = cast.get("schedule")
        shown = f"; {schedule['l2_elements']:,} by {schedule['name']}" if schedule else ""
        say(
            f"multicast    {cast['l2_requests_bound']['elements']:,} L2 reads and writes at least when a read feeds up "
            f"to {cast['sms_per_read']} SMs{shown}"
        )
