"""Kernels as waves of blocks in lock step, and several of them as one trace.

A phase is a kernel, or a part of one, that must be finished before the next phase of its group begins. Its blocks
run P at a time (a wave). In a wave each block first does its prologue, then one step at a time with all others,
in issue order, then its epilogue; the next wave starts when all have finished. Groups run side by side on
disjoint SMs, one step of each in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.memory import check_memory
from pebble.schedules.layout import Layout
from pebble.schedules.trace import Trace, TraceChunk

MAX_TOUCHES = 2_000_000_000
_CHUNK = 1 << 20
_TOUCH_BYTES = 60

Ids = NDArray[np.int64]
Blocks = NDArray[np.int64]


@dataclass(frozen=True)
class Touch:
    """Touches of a set of blocks.

    Attributes
    ----------
    ids : callable
        ``ids(blocks)`` for a prologue or epilogue, shape (blocks, touches); ``ids(blocks, backwards)`` for steps,
        shape (steps, blocks, touches). A negative number is no touch (a block with fewer steps).
    ops : tuple of int
        READ or WRITE of each touch.
    """

    ids: Callable[..., Ids]
    ops: tuple[int, ...]


@dataclass(frozen=True)
class Phase:
    """A kernel or a part of one.

    Attributes
    ----------
    name : str
        For messages.
    blocks : int
        Blocks in issue order, 0 to blocks - 1.
    steps : Touch
        What each block touches in each step.
    prologue, epilogue : Touch, optional
        What each block touches before its first step and after its last.
    touches : int
        All of them, so that an absurd trace is refused before it is made.
    after : int
        How many phases of the other group must be finished before this one begins (producer and consumer).
    """

    name: str
    blocks: int
    steps: Touch
    touches: int
    prologue: Touch | None = None
    epilogue: Touch | None = None
    after: int = 0


@dataclass(frozen=True)
class Group:
    """Phases that run one after the other on ``wave_blocks`` block slots."""

    phases: Sequence[Phase]
    wave_blocks: int
    sawtooth: bool = False


@dataclass(frozen=True)
class _Wave:
    ids: NDArray[np.int32]
    ops: NDArray[np.uint8]
    slots: NDArray[np.int32]  # block slot of each touch
    cuts: list[int] = field(default_factory=list)  # ends of the steps that groups take in turn
    starts: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    last_of_phase: bool = False


class _Flat(NamedTuple):
    ids: NDArray[np.int32]
    ops: NDArray[np.uint8]
    slots: NDArray[np.int32]
    starts: NDArray[np.int64]


def _flat(ids: Ids, ops: tuple[int, ...]) -> _Flat:
    """Touches in order, their operations and blocks, and where each block's share begins; absent touches dropped."""
    op = np.broadcast_to(np.array(ops, np.uint8), ids.shape).reshape(-1)
    slot = np.repeat(np.arange(ids.shape[0], dtype=np.int32), ids.shape[-1])
    there = ids.reshape(-1) >= 0
    if there.all():
        starts = np.arange(0, ids.size, ids.shape[-1], dtype=np.int64)
        return _Flat(ids.reshape(-1).astype(np.int32), op, slot, starts)
    per_block = (ids >= 0).sum(axis=-1).reshape(-1)
    ends = np.cumsum(per_block)
    starts = (ends - per_block)[per_block > 0].astype(np.int64)
    return _Flat(ids.reshape(-1)[there].astype(np.int32), op[there], slot[there], starts)


def _waves(group: Group) -> Iterator[tuple[_Wave, int]]:
    number = 0
    for phase in group.phases:
        for start in range(0, phase.blocks, group.wave_blocks):
            blocks = np.arange(start, min(start + group.wave_blocks, phase.blocks), dtype=np.int64)
            backwards = group.sawtooth and number % 2 == 1
            number += 1
            parts: list[_Flat] = []
            cuts, starts = [], []
            at = 0
            if phase.prologue is not None:
                parts.append(_flat(phase.prologue.ids(blocks), phase.prologue.ops))
                at += len(parts[-1].ids)
            for step in phase.steps.ids(blocks, backwards):
                parts.append(_flat(step, phase.steps.ops))
                starts.append(parts[-1].starts + at)
                at += len(parts[-1].ids)
                cuts.append(at)
            if phase.epilogue is not None:
                parts.append(_flat(phase.epilogue.ids(blocks), phase.epilogue.ops))
                at += len(parts[-1].ids)
                cuts.append(at)
            last = start + group.wave_blocks >= phase.blocks
            ids, ops, slots = (np.concatenate([part[i] for part in parts]) for i in range(3))
            yield _Wave(ids, ops, slots, cuts, np.concatenate(starts), last), phase.after


def _one_group(group: Group, sms: int) -> Iterator[TraceChunk]:
    none: NDArray[np.int64] = np.empty(0, np.int64)
    for wave, _ in _waves(group):
        # a share of touches that is not followed by another step would run into the epilogue: close it there
        end = wave.cuts[-1] if len(wave.starts) == 0 else _end_of_steps(wave)
        sm = partial(np.remainder, wave.slots, np.int32(sms))
        yield TraceChunk(wave.ids, wave.ops, wave.starts if end else none, end, sm)


def _end_of_steps(wave: _Wave) -> int:
    last = int(wave.starts[-1])
    return next(cut for cut in wave.cuts if cut > last)


def _side_by_side(groups: Sequence[Group], sms: int) -> Iterator[TraceChunk]:
    """One step of each group in turn; a group whose next phase waits for the other sits out."""
    none: NDArray[np.int64] = np.empty(0, np.int64)
    sources = [_waves(group) for group in groups]
    upcoming = [next(source, None) for source in sources]
    current: list[tuple[_Wave, int, int] | None] = [None] * len(groups)  # wave, next cut, position
    finished = [0] * len(groups)
    first_slot = np.cumsum([0, *(group.wave_blocks for group in groups)])
    ids: list[NDArray[np.int32]] = []
    ops: list[NDArray[np.uint8]] = []
    slots: list[NDArray[np.int32]] = []
    size = 0

    def chunk() -> TraceChunk:
        sm = partial(np.remainder, np.concatenate(slots), np.int32(sms))
        return TraceChunk(np.concatenate(ids), np.concatenate(ops), none, 0, sm)

    while any(c is not None for c in current) or any(u is not None for u in upcoming):
        moved = False
        for g in range(len(groups)):
            if current[g] is None and upcoming[g] is not None:
                wave, after = upcoming[g]  # type: ignore[misc]
                if all(finished[o] >= after for o in range(len(groups)) if o != g):
                    current[g] = (wave, 0, 0)
                    upcoming[g] = next(sources[g], None)
            running = current[g]
            if running is None:
                continue
            wave, cut, at = running
            end = wave.cuts[cut]
            ids.append(wave.ids[at:end])
            ops.append(wave.ops[at:end])
            slots.append(wave.slots[at:end] + np.int32(first_slot[g]))
            size += end - at
            moved = True
            if cut + 1 < len(wave.cuts):
                current[g] = (wave, cut + 1, end)
            else:
                finished[g] += wave.last_of_phase
                current[g] = None
        if not moved:
            raise AssertionError("phases wait for each other")
        if size >= _CHUNK:
            yield chunk()
            ids, ops, slots, size = [], [], [], 0
    if ids:
        yield chunk()


def program_trace(layout: Layout, groups: Sequence[Group], sms: int | None = None) -> Trace:
    """The trace of one or more groups of phases over a common layout.

    Parameters
    ----------
    layout : Layout
        All operands.
    groups : sequence of Group
        One for kernels one after the other, two for kernels side by side.
    sms : int, optional
        SMs; block slots are dealt to them in turn. By default as many as block slots.

    Raises
    ------
    InputError
        More than 2e9 touches.
    """
    touches = sum(phase.touches for group in groups for phase in group.phases)
    if touches > MAX_TOUCHES:
        raise InputError(
            f"trace: got {touches} tile touches, expected at most {MAX_TOUCHES}; use larger tiles or a smaller problem."
        )

    for group in groups:
        for phase in group.phases:
            waves = -(-phase.blocks // group.wave_blocks)
            check_memory(
                f"{phase.name}: a wave of {min(phase.blocks, group.wave_blocks)} blocks",
                -(-phase.touches // max(1, waves)), "touches", _TOUCH_BYTES, "use larger tiles or a smaller problem",
            )  # fmt: skip

    def source() -> Iterator[TraceChunk]:
        return _one_group(groups[0], count) if len(groups) == 1 else _side_by_side(groups, count)

    slots = sum(group.wave_blocks for group in groups)
    count = min(sms or slots, slots)
    lines, operand = layout.tile_lines(), layout.tile_operand()
    return Trace(tuple(layout.names), lines, operand, touches, source, operands=layout.shapes(), sms=count)
