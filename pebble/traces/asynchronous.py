"""Kernels whose blocks run free: no barrier, each block at the pace that its data allow.

Blocks go, in issue order, to whichever slot is free. A block fetches as many steps ahead as it has stages; a step
begins when the one before it is done and its tiles have come, and takes as long as its operations or its loads from L2,
whichever is more. A miss comes later than a hit, and all misses share the bandwidth of DRAM. So a leader that misses
waits, and a follower that hits catches up. SMs differ in pace by a little, drawn once for a kernel.

When a block runs depends on what missed before, so such a trace cannot be made without its cache: its chunks, each what
happens in a few steps, come from a generator to which the reader sends the missed lines of each touch.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pebble.system.parallel import check_memory
from pebble.traces.asynchronous_loops import (
    Blocks,
    Events,
    LoopPhases,
    LoopRates,
    Queues,
    Slots,
    Tiles,
    Touches,
    dispatch,
    next_events,
    settle,
    soonest,
    touch,
)
from pebble.traces.layout import Layout
from pebble.traces.program import Group, Script, Steps, Walk
from pebble.traces.touches import check_length, traced
from pebble.traces.trace import Trace, TraceChunk, part

_BLOCK_BYTES = 200
_LEAST_PACE = 0.5
_STEPS_AT_ONCE = 4  # of a block, between two looks at the cache


@dataclass(frozen=True)
class Speeds:
    """How fast blocks run, for `asynchronous_trace`; times in nanoseconds.

    Attributes
    ----------
    flops, exps : float
        Operations, and exponentials, of one SM in a nanosecond.
    lines : float
        128-byte lines that one SM loads from L2 in a nanosecond.
    dram_lines : float
        Lines that the whole chip loads from DRAM in a nanosecond.
    hit, miss : float
        From the request of a tile to its arrival from L2, and from the moment that DRAM has sent it.
    turn : float
        From the last step of a block to the first request of the next one in its slot.
    spread : float
        Standard deviation of the pace of SMs, as a share of it.
    """

    flops: float
    exps: float
    lines: float
    dram_lines: float
    hit: float
    miss: float
    turn: float
    spread: float


def _wide(parts: Sequence[Steps | None], blocks: Sequence[int]) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Tiles of all blocks, -1 where one has fewer than others, and the operations of each phase."""
    width = max((part.bases.shape[1] for part in parts if part), default=0)
    bases = np.full((sum(blocks), width), -1, np.int32)
    ops = np.zeros((len(parts), width), np.uint8)
    end = 0
    for i, (steps, count) in enumerate(zip(parts, blocks, strict=True)):
        end += count
        if steps:
            bases[end - count : end, : steps.bases.shape[1]] = steps.bases
            ops[i, : len(steps.ops)] = steps.ops
    return bases, ops


class _Program:
    """All blocks of all groups in one table, as the loops need them; the same for every run."""

    def __init__(self, groups: Sequence[Group], speeds: Speeds) -> None:
        phases = [phase for group in groups for phase in group.phases]
        blocks = [len(phase.steps.bases) for phase in phases]
        self.counts = np.array(blocks, np.int64)
        bases, ops = _wide([phase.steps for phase in phases], blocks)
        strides = np.zeros(ops.shape, np.int32)
        for row, phase in zip(strides, phases, strict=True):
            row[: len(phase.steps.strides)] = phase.steps.strides
        prologue, epilogue = (
            _wide(parts, blocks) for parts in zip(*((p.prologue, p.epilogue) for p in phases), strict=True)
        )
        self.prologues = np.array([phase.prologue is not None for phase in phases])
        scripts = [phase.steps.walk.ks for phase in phases if isinstance(phase.steps.walk, Script)]
        if scripts and len(phases) > 1:
            raise AssertionError("a script runs alone")
        script = scripts[0].astype(np.int32) if scripts else np.zeros((0, 0), np.int32)
        self.tiles = Tiles(*prologue, bases, strides, ops, *epilogue, script)
        walks = (np.concatenate(columns) for columns in zip(*self._walks(groups), strict=True))
        self.blocks = Blocks(np.repeat(np.arange(len(phases)), blocks), *walks)
        self.compute = np.array([phase.flops / speeds.flops + phase.exps / speeds.exps for phase in phases])
        self.group_of = np.repeat(np.arange(len(groups)), [len(group.phases) for group in groups])
        self.after = np.array([phase.after for phase in phases])
        self.most = bases.shape[1] + prologue[0].shape[1] + epilogue[0].shape[1]

    @staticmethod
    def _walks(groups: Sequence[Group]) -> Iterator[tuple[NDArray[Any], ...]]:
        """Of each phase: how many steps each block has, its first k, its direction, and how far ahead it begins."""
        for group in groups:
            waves = 0
            for phase in group.phases:
                walk, blocks = phase.steps.walk, len(phase.steps.bases)
                if isinstance(walk, Script):
                    walk = Walk(0, len(walk.ks), one_way=True)
                wave = waves + np.arange(blocks) // group.wave_blocks
                waves = int(wave[-1]) + 1
                turned = (wave % 2 == 1) & (group.sawtooth and not walk.one_way)
                values = (walk.count, walk.begin, np.not_equal(walk.backwards, turned), walk.start)
                kinds = (np.int64, np.int64, np.bool_, np.int64)
                yield tuple(
                    np.broadcast_to(value, blocks).astype(kind) for value, kind in zip(values, kinds, strict=True)
                )


def asynchronous_trace(
    layout: Layout, groups: Sequence[Group], speeds: Speeds, stages: int, sms: int | None = None, seed: int = 0
) -> Trace:
    """The free-running trace of one or more groups of phases over a common layout.

    Parameters
    ----------
    layout : Layout
        All operands.
    groups : sequence of Group
        One for kernels one after the other, two for kernels side by side on slots of their own.
    speeds : Speeds
        Of the chip.
    stages : int
        Steps whose tiles a block holds at once, the one that it computes included.
    sms : int, optional
        SMs; block slots are dealt to them in turn. By default as many as block slots.
    seed : int
        Of the pace of SMs.

    Returns
    -------
    Trace
        One that ``follows`` its cache.

    Raises
    ------
    InputError
        More than 4e9 touches, or more blocks than fit in memory.
    """
    touches = sum(part.touches for group in groups for phase in group.phases for part in phase.parts)
    check_length(touches)
    every = sum(len(phase.steps.bases) for group in groups for phase in group.phases)
    check_memory("execution free", every, "blocks", _BLOCK_BYTES, "use larger tiles or waves")
    program, lines = _Program(groups, speeds), layout.tile_lines()
    wave = [group.wave_blocks for group in groups]
    many = sum(wave)
    count = min(sms or many, many)
    of_slot = np.arange(many, dtype=np.int32) % np.int32(count)
    spread = 1 + speeds.spread * np.random.default_rng(seed).standard_normal(count)
    pace = np.maximum(_LEAST_PACE, spread)[of_slot]
    rates = LoopRates(many / count / speeds.lines, 1 / speeds.dram_lines, speeds.hit, speeds.miss, speeds.turn)
    compute = program.compute * (many / count)  # the blocks of an SM share it
    ahead = min(_STEPS_AT_ONCE, max(1, stages - 1))
    window = ahead * max(1.0, float(compute[compute > 0].min(initial=np.inf)) if compute.any() else 1000 / speeds.lines)

    def chunks() -> Generator[TraceChunk, NDArray[np.int32] | None, None]:
        ends = np.cumsum([0, *(sum(len(phase.steps.bases) for phase in group.phases) for group in groups)])
        queues = Queues(ends[:-1].copy(), ends[1:], np.cumsum([0, *wave]))
        none = np.zeros(many)
        slots = Slots(np.full(many, -1), np.zeros(many, np.int64), none, none.copy(), np.zeros((many, stages)), pace)
        finished = np.zeros(len(groups), np.int64)
        phases = LoopPhases(
            compute, np.zeros(len(compute)), program.group_of, program.after, program.counts.copy(), finished
        )
        blocks, most = program.blocks, (ahead + 1) * many
        where, what, first = (np.empty(size, np.int64) for size in (most, most, most + 1))
        happens = Events(np.empty(most), where, what, first)
        dram = np.zeros(1)
        while True:
            now = min(soonest(slots), dispatch(-np.inf, queues, blocks.phase_of, slots, phases))
            if now == np.inf:
                if np.any(queues[0] < queues[1]):
                    raise AssertionError("phases wait for each other")
                return
            end = now + window
            dispatch(end, queues, blocks.phase_of, slots, phases)
            events = next_events(end, ahead, program.prologues, blocks, slots, happens)
            capacity = many * ahead * program.most
            out = Touches(np.empty(capacity, np.int32), np.empty(capacity, np.uint8), np.empty(capacity, np.int32))
            initialised = touch(events, happens, slots.block, blocks, program.tiles, of_slot, out)
            total, starts = int(first[events]), first[initialised:events].copy()
            missed = yield TraceChunk(out.ids[:total], out.ops[:total], starts, total, part(out.sms, slice(total)))
            if missed is None:  # nobody follows: as if all were there
                missed = np.zeros(total, np.int32)
            settle(events, missed, out.ids, happens, lines, blocks, slots, phases, rates, dram)

    return traced(layout, touches, chunks, count, follows=True)
