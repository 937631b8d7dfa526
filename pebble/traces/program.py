"""Kernels as programs of block steps, and the trace that a program makes: in lock step, side by side, or by the clock.

A phase is a kernel, or a part of one. Each of its blocks does its prologue, then one step after the other, then its
epilogue; in a step it touches tiles whose numbers rise evenly with k. There are two ways to put the touches of all
blocks in order:

- `program_trace`: blocks run P at a time (a wave), one step of each in turn, and the next wave starts when all have
  finished; a phase starts when the one before it has finished. Groups of phases run side by side on SMs of their own,
  one step of each in turn.
- `timed_trace`: every block has its own slot, start and pace. At one time, results of what has just ended are written
  first, then steps begin, in order of slots; so with equal speeds this is the lock-step trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.traces.jit import jit
from pebble.traces.layout import Index, Layout, Strided
from pebble.traces.lines import by_lines, by_wide_tiles
from pebble.traces.trace import CHUNK, Trace, TraceChunk, chunked
from pebble.traces.walk import Flags, Script, Walk

MAX_TOUCHES = 4_000_000_000
TICKS = 1 << 16  # of the clock, in one step at full speed


@jit
def _fill(bases, strides, k, kinds, ids, ops, begins, at):  # type: ignore[no-untyped-def]
    # From ``at`` on, the tiles base + k stride of each step of each block, those left out where either is negative.
    by_block, by_touch = k.shape[1] > 1, k.shape[2] > 1
    for step in range(k.shape[0]):
        for block in range(bases.shape[0]):
            begins[step, block] = at
            for touch in range(bases.shape[1]):
                here = k[step, block if by_block else 0, touch if by_touch else 0]
                base = bases[block, touch]
                if here >= 0 and base >= 0:
                    ids[at] = base + here * strides[touch]
                    ops[at] = kinds[touch]
                    at += 1
    return at


@jit
def _deal(begins, sms, found):  # type: ignore[no-untyped-def]
    # From the end: the touches of each row of each block, up to where the next begin.
    end = found.shape[0]
    for row in range(begins.shape[0] - 1, -1, -1):
        for block in range(begins.shape[1] - 1, -1, -1):
            found[begins[row, block] : end] = block % sms
            end = begins[row, block]


class Steps:
    """What blocks touch, step by step.

    Parameters
    ----------
    tiles : sequence of Strided or ndarray
        Each block touches tile ``base + k * stride`` in each step; bare bases have no stride. A negative base is no
        touch.
    ops : sequence of int
        READ or WRITE of each.
    walk : Walk or Script
        Which k that is; by default one step.
    """

    def __init__(self, tiles: Sequence[Strided | Index], ops: Sequence[int], walk: Walk | Script | None = None) -> None:
        strided = [tile if isinstance(tile, Strided) else Strided(tile, 0) for tile in tiles]
        self.bases = np.stack([tile.base for tile in strided], axis=-1).astype(np.int32)
        self.strides = np.array([tile.stride for tile in strided], np.int32)
        self.ops, self.walk = np.array(ops, np.uint8), walk or Walk(0, 1)
        blocks, touches = self.bases.shape
        absent = 0 if walk else int(np.count_nonzero(self.bases < 0))
        self.touches = self.walk.touches(blocks, touches) - absent  # as if no base of a walk were negative

    def behind(self, tiles: int) -> Steps:
        """The same in a layout where so many other tiles come first."""
        found = copy(self)
        found.bases = np.where(self.bases < 0, self.bases, self.bases + np.int32(tiles))
        return found

    def first(self, blocks: int, steps: int | None = None) -> Steps:
        """Of the first blocks alone, all steps or the first ones."""
        found = copy(self)
        found.bases, found.walk = self.bases[:blocks], self.walk.first(blocks, steps)
        found.touches = found.walk.touches(*found.bases.shape)
        return found


class _Made(NamedTuple):
    """Touches of some blocks of a phase, in order: step by step, in a step block by block.

    ``begins`` says where those of each block begin in the prologue, in each step, and in the epilogue; ``steps`` which
    rows of it are the steps; ``whole`` that no touch is absent.
    """

    ids: NDArray[np.int32]
    ops: NDArray[np.uint8]
    begins: NDArray[np.int64]
    steps: slice
    whole: bool

    def sizes(self) -> NDArray[np.int64]:
        """Touches in each row of each block, in order."""
        return np.diff(self.begins.ravel(), append=len(self.ids))

    def blocks(self, sms: int = MAX_TOUCHES) -> NDArray[np.int32]:
        """The block of each touch, or its SM where blocks are dealt to ``sms`` in turn."""
        found = np.empty(len(self.ids), np.int32)
        _deal(self.begins, sms, found)
        return found

    def cuts(self) -> list[int]:
        """Where the prologue with the first step ends, each other step, and the epilogue."""
        return [*self.begins[self.steps.start + 1 :, 0].tolist(), len(self.ids)]

    def block_steps(self) -> tuple[NDArray[np.int64], int]:
        """Where the touches of each block step begin, of those that have some, and where the last ones end."""
        starts = self.begins[self.steps].ravel()
        end = int(self.begins[self.steps.stop, 0]) if self.steps.stop < len(self.begins) else len(self.ids)
        return (starts if self.whole else starts[np.diff(starts, append=end) > 0]), end


@dataclass(frozen=True)
class Phase:
    """A kernel or a part of one.

    Attributes
    ----------
    steps : Steps
        What each block touches, step by step.
    prologue, epilogue : Steps, optional
        What each touches before its first step and after its last.
    after : int
        How many phases of the other group must be finished before this one begins (producer and consumer).
    flops, exps : int
        Operations and exponentials of a block in one step, where time counts.
    shared_bytes : int
        What a block moves through shared memory in one step, where tensor cores read their operands there.
    """

    steps: Steps
    prologue: Steps | None = None
    epilogue: Steps | None = None
    after: int = 0
    flops: int = 0
    exps: int = 0
    shared_bytes: int = 0

    @property
    def parts(self) -> list[Steps]:
        """Prologue, steps and epilogue, those that are there."""
        return [part for part in (self.prologue, self.steps, self.epilogue) if part is not None]

    def behind(self, tiles: int) -> Phase:
        """The same in a layout where so many other tiles come first."""
        prologue, epilogue = (part and part.behind(tiles) for part in (self.prologue, self.epilogue))
        return replace(self, steps=self.steps.behind(tiles), prologue=prologue, epilogue=epilogue)

    def first(self, blocks: int, steps: int | None = None) -> Phase:
        """Of the first blocks alone; with ``steps`` these alone, and no epilogue."""
        prologue, epilogue = (part and part.first(blocks) for part in (self.prologue, self.epilogue))
        return replace(
            self, steps=self.steps.first(blocks, steps), prologue=prologue, epilogue=None if steps else epilogue
        )  # fmt: skip

    def made(self, blocks: slice, turned: Flags) -> _Made:
        """The touches of some blocks."""
        parts = [(part, part.bases[blocks], part.walk.k(blocks, turned)) for part in self.parts]
        most = sum(len(k) * bases.size for _, bases, k in parts)
        ids, ops = np.empty(most, np.int32), np.empty(most, np.uint8)  # one for all: fresh memory is dear
        begins = np.empty((sum(len(k) for _, _, k in parts), len(parts[0][1])), np.int64)
        row = at = 0
        for part, bases, k in parts:
            at = _fill(bases, part.strides, k, part.ops, ids, ops, begins[row : row + len(k)], at)
            row += len(k)
        steps = slice(self.prologue is not None, row - (self.epilogue is not None))
        return _Made(ids[:at], ops[:at], begins, steps, at == most)


@dataclass(frozen=True)
class Group:
    """Phases that run one after the other on ``wave_blocks`` block slots; ``sawtooth``: every second wave backwards."""

    phases: Sequence[Phase]
    wave_blocks: int
    sawtooth: bool = False

    def behind(self, tiles: int) -> Group:
        """The same in a layout where so many other tiles come first."""
        return replace(self, phases=[phase.behind(tiles) for phase in self.phases])


class Program(NamedTuple):
    """What a kernel, or several side by side, do: groups of phases over a common layout."""

    layout: Layout
    groups: Sequence[Group]
    first_operands: tuple[int, ...] = ()  #: of kernels side by side: where the operands of each begin

    def beside(self, other: Program) -> Program:
        """Both side by side, each on block slots of its own; they share no data, so none of their names is shared."""
        layout = Layout()
        for of, taken in ((self.layout, ()), (other.layout, tuple(self.layout.names))):
            for o in of.operands:
                name = of.names[o.operand]
                name += "'" * (name in taken)
                layout.add(name, o.rows, o.cols, o.tile_rows, o.tile_cols, o.element_bytes, o.copies, o.padded)
        tiles = sum(o.tiles for o in self.layout.operands)
        groups = [*self.groups, *(group.behind(tiles) for group in other.groups)]
        return Program(layout, groups, (0, len(self.layout.names)))


@dataclass(frozen=True)
class Clock:
    """Where and when the blocks of a phase run, one number each.

    Attributes
    ----------
    slot, turn : ndarray of int64
        Block slot, and how many blocks it ran before.
    start, pace, finish : ndarray of float64
        When the first step begins, how long a step takes, and when the epilogue comes, in steps at full speed.
    """

    slot: Index
    turn: Index
    start: NDArray[np.float64]
    pace: NDArray[np.float64]
    finish: NDArray[np.float64]


def _waves(group: Group) -> Iterator[tuple[_Made, Phase, bool]]:
    """The waves, with their phase; True with the last of a phase."""
    number = 0
    for phase in group.phases:
        count = len(phase.steps.bases)
        for start in range(0, count, group.wave_blocks):
            end = start + group.wave_blocks
            yield phase.made(slice(start, end), group.sawtooth and number % 2 == 1), phase, end >= count
            number += 1


def _one_group(group: Group, sms: int) -> Iterator[TraceChunk]:
    for wave, _, _ in _waves(group):
        yield TraceChunk(wave.ids, wave.ops, *wave.block_steps(), lambda wave=wave: wave.blocks(sms))  # type: ignore[misc]


_Piece = tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.int32]]  # tiles, operations, slots


def _turns(groups: Sequence[Group], me: int, first_slot: int, finished: list[int]) -> Iterator[_Piece | None]:
    """What one group does in each of its turns; None while its next phase waits for the other group."""
    for wave, phase, is_last in _waves(groups[me]):
        while any(done < phase.after for other, done in enumerate(finished) if other != me):
            yield None
        cuts = [0, *wave.cuts()]
        slots = wave.blocks() + np.int32(first_slot)
        for i in range(1, len(cuts)):
            finished[me] += is_last and i + 1 == len(cuts)
            part = slice(cuts[i - 1], cuts[i])
            yield wave.ids[part], wave.ops[part], slots[part]


def _side_by_side(groups: Sequence[Group], sms: int) -> Iterator[TraceChunk]:
    """One step of each group in turn."""
    finished = [0] * len(groups)
    first = np.cumsum([0, *(group.wave_blocks for group in groups)]).tolist()
    sources = [_turns(groups, me, first[me], finished) for me in range(len(groups))]
    pieces: list[_Piece] = []
    gathered = 0  # touches in pieces: to count them anew in each turn would take quadratic time
    while sources:
        waiting = 0
        for source in list(sources):
            try:
                piece = next(source)
            except StopIteration:
                sources.remove(source)
                continue
            waiting += piece is None
            if piece is not None:
                pieces.append(piece)
                gathered += len(piece[0])
        if sources and waiting == len(sources):
            raise AssertionError("phases wait for each other")
        if pieces and (not sources or gathered >= CHUNK):
            ids, ops, slots = (np.concatenate(part) for part in zip(*pieces, strict=True))
            yield TraceChunk(ids, ops, sm_source=lambda slots=slots: slots % np.int32(sms))  # type: ignore[misc]
            pieces, gathered = [], 0


def traced(
    layout: Layout, touches: int, source: Callable[[], Iterator[TraceChunk]], sms: int, follows: bool = False
) -> Trace:
    """The trace of a program: where tiles share lines, of tiles that share none, or of lines."""
    trace = Trace(
        tuple(layout.names), layout.tile_lines(), layout.tile_operand(), touches, source, tuple(layout.operands), sms,
        follows,
    )  # fmt: skip
    if not layout.shares_lines:
        return trace
    return by_lines(trace) if layout.splits_lines else by_wide_tiles(trace)


def check_length(touches: int) -> None:
    """Refuse a trace of more than 4e9 touches, before anything is made.

    Raises
    ------
    InputError
        With the number.
    """
    if touches > MAX_TOUCHES:
        raise InputError(
            f"trace: got {touches} tile touches, expected at most {MAX_TOUCHES}; use larger tiles or a smaller problem."
        )


def program_trace(layout: Layout, groups: Sequence[Group], sms: int | None = None) -> Trace:
    """The lock-step trace of one or more groups of phases over a common layout: see `traced`.

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
        More than 4e9 touches.
    """
    touches = sum(part.touches for group in groups for phase in group.phases for part in phase.parts)
    check_length(touches)
    slots = sum(group.wave_blocks for group in groups)
    count = min(sms or slots, slots)

    def source() -> Iterator[TraceChunk]:
        return _one_group(groups[0], count) if len(groups) == 1 else _side_by_side(groups, count)

    return traced(layout, touches, source, count)


def timed_trace(
    layout: Layout, runs: Sequence[tuple[Phase, Clock]], slots: int, sms: int, sawtooth: bool = False
) -> Trace:
    """The trace of phases whose blocks run by the clock, in memory, line by line where tiles share lines.

    Parameters
    ----------
    layout : Layout
        All operands.
    runs : sequence of (Phase, Clock)
        What runs, and when.
    slots, sms : int
        Block slots, and the SMs that they are dealt to in turn.
    sawtooth : bool
        A slot walks k backwards in every second of its blocks.
    """
    keys, made = [], []
    for phase, clock in runs:
        all_of_it = phase.made(slice(None), sawtooth & (clock.turn % 2 == 1))
        steps, rows = all_of_it.steps, len(all_of_it.begins)
        time = clock.start + (np.arange(rows) - steps.start)[:, None] * clock.pace
        time[: steps.start], time[steps.stop :] = clock.start, clock.finish
        rank = np.full(rows, 2)  # at one time: results, then what comes before steps, then steps
        rank[: steps.start], rank[steps.stop :] = 1, 0
        key = (np.rint(time * TICKS).astype(np.int64) * 3 + rank[:, None]) * slots + clock.slot
        keys.append(np.repeat(key.ravel(), all_of_it.sizes()))
        made.append((all_of_it.ids, all_of_it.ops, clock.slot.astype(np.int32)[all_of_it.blocks()]))
    order = np.argsort(np.concatenate(keys), kind="stable")
    ids, ops, slot = (np.concatenate(part)[order] for part in zip(*made, strict=True))
    count = min(sms, slots)
    return traced(layout, len(ids), chunked(ids, ops, slot % np.int32(count)), count)
