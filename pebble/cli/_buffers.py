"""``--buffers``: the options of several SMs, and what ``bound`` and ``compare`` print at the L2-to-SM boundary."""

from __future__ import annotations

import argparse
from typing import Any

from pebble.bounds import lower_bound
from pebble.bounds.memories import check_workload
from pebble.capacity import chip_capacity
from pebble.cli import _output
from pebble.cli._target import MAX_SMS, Target, positive
from pebble.cli._workload import AnyWorkload
from pebble.comparison.sms import SmCapacity, buffer_document, machine_capacities
from pebble.errors import InputError, UnknownNameError
from pebble.game.buffer_model import KINDS, TOPOLOGIES, BufferModel, parse_omega
from pebble.units import format_bytes, format_capacity

LEVELS = ("dram", "l2")


def add_buffer_arguments(parser: argparse.ArgumentParser) -> None:
    """--buffers, --omega, --topology."""
    group = parser.add_argument_group("buffers")
    group.add_argument("--buffers", default=None, metavar="MODEL", help=f"{', '.join(KINDS)} (single)")
    group.add_argument("--omega", metavar="W", help="connected: cost of a value copied between SMs, 0 or more (0.25)")
    group.add_argument("--topology", metavar="NET", help=f"connected: {', '.join(TOPOLOGIES)} (all-to-all)")


def add_level_arguments(parser: argparse.ArgumentParser) -> None:
    """--level, --multicast."""
    parser.add_argument("--level", metavar="L", help="boundary: dram, or l2 for L2 to SMs (l2 with --buffers)")
    parser.add_argument("--multicast", metavar="C", help="sm-local: SMs that one read of L2 may feed (1)")


def read_buffers(args: argparse.Namespace, sms: int) -> BufferModel:
    """The buffer model of the arguments, for that many SMs.

    Raises
    ------
    InputError
        An option out of range, or one that its model does not have.
    """
    kind = args.buffers or "sm-local"
    if kind != "connected" and (args.omega is not None or args.topology is not None):
        raise InputError(f"--omega, --topology: got buffers {kind}, expected --buffers connected with them.")
    if kind != "connected":
        return BufferModel(kind, 1 if kind == "single" else sms)
    return BufferModel(kind, sms, parse_omega(args.omega or "0.25"), args.topology or "all-to-all")


def wants_l2(args: argparse.Namespace) -> bool:
    """Whether the arguments ask for the L2-to-SM boundary.

    Raises
    ------
    UnknownNameError
        No such level or model.
    InputError
        Options that contradict each other.
    """
    if args.level is not None and args.level not in LEVELS:
        raise UnknownNameError("level", args.level, LEVELS, "pebble bound --help")
    buffers = getattr(args, "buffers", None)
    if buffers is not None and buffers not in KINDS:
        raise UnknownNameError("buffer model", buffers, KINDS, "pebble bound --help")
    several = buffers not in (None, "single")
    l2 = args.level == "l2" or (args.level is None and several)
    if not l2:
        for option in ("omega", "topology", "multicast"):
            if getattr(args, option, None) is not None:
                raise InputError(f"--{option}: expected --level l2 or --buffers with it.")
    if l2 and buffers == "single":
        raise InputError("--level l2: got --buffers single, expected sm-local, pooled or connected.")
    return l2


def read_sms(args: argparse.Namespace, target: Target) -> int:
    """P: --sms, else the machine's.

    Raises
    ------
    InputError
        Neither is given.
    """
    if args.sms is not None:
        return positive("--sms", args.sms, MAX_SMS)
    if target.machine is None:
        raise InputError(
            "--sms missing: expected --sms NUMBER beside --cache, the number of SMs; --cache is of one SM."
        )
    return target.machine.sms


def l2_document(args: argparse.Namespace, workload: AnyWorkload, target: Target) -> dict[str, Any]:
    """What is known at the L2-to-SM boundary."""
    shared_work = check_workload(workload, False)
    buffers = read_buffers(args, read_sms(args, target))
    others: list[SmCapacity] = []
    if target.machine is not None:
        capacity, shared = machine_capacities(target.machine, shared_work)
        others = [] if shared is None else [shared]
    else:
        assert target.cache is not None
        capacity = SmCapacity.of_size(target.cache, shared_work)
    multicast = 1 if args.multicast is None else positive("--multicast", args.multicast, buffers.sms)
    recompute = getattr(args, "recompute", "forbidden") == "allowed"
    if buffers.memories > 1:
        check_workload(workload, recompute)
    document = buffer_document(shared_work, capacity, buffers, recompute, others, multicast)
    document["levels"] = [
        {"boundary": "L2 to SMs", "capacity": document["capacity"], "lower_bound": document["lower_bound"]}
    ]
    if target.machine is not None:  # the next boundary: whatever the SMs do, the chip as a whole moves this much
        chip = chip_capacity(target.machine, workload)
        dram = lower_bound(workload, chip.elements, recompute)
        level = {"boundary": "DRAM to chip", "capacity": chip.to_json(), "lower_bound": dram.to_json()}
        document["levels"].append(level)
    return document


def run_compare_l2(args: argparse.Namespace, workload: AnyWorkload, target: Target) -> int:
    """``pebble compare --level l2``: count, print.

    Raises
    ------
    InputError
        Pooled buffers, a figure, or a malformed option.
    """
    from pebble.cli._kernel import default_tile
    from pebble.comparison.l2 import compare_at_l2
    from pebble.schedules.lockstep import TileShape

    work = check_workload(workload, False)
    buffers = read_buffers(args, read_sms(args, target))
    if buffers.memories == 1 and buffers.kind == "pooled":
        raise InputError("--level l2: got --buffers pooled, expected sm-local or connected: no SM has a pooled memory.")
    if args.figure is not None:
        raise InputError("--figure: this comparison has none; `pebble figure buffers` draws the models.")
    if target.machine is not None:
        capacity, _ = machine_capacities(target.machine, work)
    else:
        assert target.cache is not None
        capacity = SmCapacity.of_size(target.cache, work)
    default = default_tile(work)
    tile = default if args.tile is None else TileShape.parse(args.tile, default.bk)
    document = compare_at_l2(work, capacity, buffers, tile).to_json()
    if args.json:
        _output.print_json(document)
        return 0
    say = _output.say
    say(f"{work.label}: L2 to SMs, {buffers}; each holds {format_capacity(capacity.bytes)}: {capacity.detail}")
    print()
    say(f"proved bound     {format_bytes(document['lower_bound']['bytes'])}: however the work is split")
    say(f"balanced bound   {format_bytes(document['balanced_bound']['bytes'])}: no SM does more than its share")
    say(f"best schedule    {document['upper_bound']['schedule']}")
    print()
    rows = [
        [
            row["name"],
            *(
                f"{row[key] / 1e6:,.1f}"
                for key in ("from_l2_bytes", "from_other_sms_bytes", "to_l2_bytes", "cost_bytes")
            ),
            f"{(row['from_l2_bytes_per_sm'] + row['from_other_sms_bytes_per_sm']) / 1e6:,.1f}",
            f"{row['imbalance']:.1%}",
            f"{row['ratio_to_lower_bound']:.2f}",
        ]
        for row in document["schedules"]
    ]
    heads = ["schedule", "L2 to SM MB", "SM to SM MB", "to L2 MB", "cost MB", "into an SM MB", "imbalance", "x bound"]
    print(_output.table(heads, rows))
    return 0


def print_l2(document: dict[str, Any]) -> None:
    """The document for a reader."""
    say = _output.say
    lower, balanced, upper = document["lower_bound"], document["balanced_bound"], document["upper_bound"]
    capacity, sms = document["capacity"], document["sms"]
    net = f", omega {document['omega']:g}, {document['topology']}" if document["omega"] is not None else ""
    say(document["workload"]["label"])
    say(
        f"L2 to SMs: {document['buffers']}, {sms} SMs{net}; each holds {capacity['elements']:,} elements, "
        f"{format_capacity(capacity['bytes'])}: {capacity['detail']}"
    )
    print()
    cost = "loads + stores" + (" + omega * copies" if document["omega"] is not None else "")
    say(f"lower bound  {lower['elements']:,} elements, {format_bytes(lower['bytes'])} ({lower['method']}): {cost}")
    if balanced["elements"] > lower["elements"]:
        say(
            f"balanced     {balanced['elements']:,} elements, {format_bytes(balanced['bytes'])}: when no SM does more "
            f"than 1/{sms} of the multiply-adds"
        )
    say(f"upper bound  {upper['elements']:,} elements, {format_bytes(upper['bytes'])}: {upper['schedule']}")
    say(f"gap          {document['gap']:.4g}")
    for level in document["levels"][1:]:
        bound, memory = level["lower_bound"], format_capacity(level["capacity"]["bytes"])
        say(
            f"DRAM         {bound['elements']:,} elements, {format_bytes(bound['bytes'])}: between DRAM and "
            f"the chip with all its stores ({memory})"
        )
    into = document["into_sms"]
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
    for other in document["other_capacities"]:
        bound = other["lower_bound"]
        say(
            f"for {other['capacity']['detail']}: {bound['elements']:,} elements, {format_bytes(bound['bytes'])}; "
            "a kernel also holds values in registers and may go below this"
        )
    print()
    rows = [
        [
            model["buffers"].replace(f", {sms} SMs", ""),
            f"{model['lower_bound_bytes'] / 1e6:,.1f}",
            f"{model['balanced_bound_bytes'] / 1e6:,.1f}",
            f"{model['over_pooled']:.2f}",
        ]
        for model in document["models"]
    ]
    print(_output.table(["buffers", "bound MB", "balanced MB", "x pooled"], rows))
