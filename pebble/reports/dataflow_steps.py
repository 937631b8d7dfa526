"""What a dataflow does, step by step, in short lines: what stays, what comes past it and how often, what leaves."""

from __future__ import annotations

from pebble.schedules.explicit.dataflow import Dataflow, Phase, Stream
from pebble.schedules.explicit.flow import Flow
from pebble.units import ceil_div, format_bytes, format_capacity

_MOST_PARTS = 4


def steps_of(flow: Flow) -> list[str]:
    """The steps of a dataflow, of several parts one after the other; every count is exact."""
    lines = []
    if flow.beside:
        lines.append(
            f"{flow.beside:,} arrays of cores work side by side, each on one part at a time, the longest first"
        )
    for number, (times, part) in enumerate(flow.parts[:_MOST_PARTS]):
        if len(flow.parts) > 1:
            of = flow.parts_are[number] if flow.parts_are else f"part {number + 1} of {len(flow.parts)}"
            lines.append(of + (f", {times:,} times" if times > 1 else "") + ":")
        lines += _steps(part)
    if (more := len(flow.parts) - _MOST_PARTS) > 0:
        lines.append(f"{more:,} more parts in the same way")
    return lines


def _steps(flow: Dataflow) -> list[str]:
    face, array, cores, held = flow.face, flow.array, flow.cores, flow.face.held
    of_groups = f" in each of {face.groups:,} groups" if face.groups > 1 else ""
    extent, block = _sides(flow, face.p, face.q), _sides(flow, *flow.block)
    lines = [f"{held.name} stays: {extent}{of_groups}, cut into {_sides(flow, *flow.blocks)} blocks of {block}"]
    alone, several = array.rows * array.cols == 1, min(len(array.cores), face.groups * flow.visits[0] * flow.visits[1])
    many = "" if several == 1 else f"{several:,} arrays of "
    rows, cols = min(array.rows, flow.blocks[0]), min(array.cols, flow.blocks[1])  # that get work
    shape = f"{several:,}" if alone else f"{many}{_sides(flow, rows, cols)}"
    lines.append(f"{shape} core{'s' * (shape != '1')} take a block each, in {_times(flow.rounds, 'round')}")
    if not alone:
        lines[-1] += "; neighbours take neighbouring blocks"
    if array.layers > 1:
        slices = ceil_div(face.phases[0].r, array.layers)
        lines.append(f"each block is in {array.layers} layers of such cores; a layer takes {slices:,} slices at most")
    (_, positions, visits, on, hop, _), *streams = flow.crossings
    through = " through the shared buffer" if cores.shared else ""
    outside = "the shared buffer" if held.local else f"off chip{through}"
    if held.read + held.begins:
        size = positions * (held.read * visits + held.begins)
        lines.append(f"first {held.name}: from {outside} {_often(visits)}, {format_bytes(size)}")
        lines[-1] += _handed(held.read * positions, on, hop, "layer to layer")
    else:
        lines.append(f"first {held.name}: sums begin at nothing")
    for number, phase in enumerate(face.phases):
        lines += _phase(flow, phase, streams[2 * number : 2 * number + 2], number)
    if held.partial and array.layers > 1:
        back = format_bytes(2 * held.partial * positions * (array.layers - 1))
        way = _handed(held.partial * positions, on, hop, "layer to layer") or f"; to {outside} and back, {back}"
        lines.append(f"then sums of {held.name}: added up{way}")
    if held.written:
        lines.append(f"last {held.name}: complete to {outside}, {format_bytes(positions * held.written)}")
    lines.append(f"held at most: {format_capacity(flow.peak_bytes)} of {format_capacity(cores.scratchpad)} in a core")
    if cores.shared:
        buffer = f"{format_capacity(flow.buffer_bytes)} of {format_capacity(cores.shared)} in the shared buffer"
        lines[-1] += f", {buffer}"
    return lines


def _phase(
    flow: Dataflow, phase: Phase, crossings: list[tuple[Stream, int, int, int, int, int]], number: int
) -> list[str]:
    step = min(flow.cores.step, ceil_div(phase.r, flow.array.layers))
    lines = [f"then {phase.r:,} slices stream by, {step} at a time"]
    for (side, _), (stream, positions, visits, on, hop, seen) in zip(phase.sides, crossings, strict=True):
        if stream.room == stream.inside:
            lines.append(f"  {stream.name}: made and used inside a core")
            continue
        ways = []
        if not stream.local:
            kept = ", kept in the shared buffer" if (number, side) in flow.kept else ""
            ways.append(_way(stream, positions, seen, "off chip") + kept)
        if flow.cores.shared:
            ways.append(_way(stream, positions, visits, "the shared buffer"))
        handed = _handed(stream.handed_on * positions, on, hop, "core to core")
        lines.append(f"  {stream.name}: {'; '.join(ways)}{handed}")
    return lines


def _way(stream: Stream, positions: int, visits: int, where: str) -> str:
    """From where an input comes; where sums that stream by go, to come back until they are complete."""
    size = format_bytes(positions * stream.moved(visits))
    if stream.read:
        return f"from {where} {_often(visits)}, {size}"
    return f"summed up on the way, to {where} {_often(visits)}, {size}" + (
        " both ways" if visits > 1 or stream.begins else ""
    )


def _handed(size: int, on: int, hops: int, way: str) -> str:
    """How often values are handed on, and what that moves."""
    if not (size and on):
        return ""
    return f"; from {way} {_often(on)}, {_times(hops, 'hop')} each, {format_bytes(size * on)}"


def _often(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _times(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _sides(flow: Dataflow, p: int, q: int) -> str:
    return f"{p:,}" if flow.face.q == 1 else f"{p:,}x{q:,}"
