"""Kernels as programs of block steps, and which k a block takes in each; `pebble.traces.touches` makes their traces.

A phase is a kernel, or a part of one. Each of its blocks does its prologue, then one step after the other, then its
epilogue; in a step it touches tiles whose numbers rise evenly with k.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.traces.jit import jit
from pebble.traces.layout import Index, Layout, Strided

Flags = bool | NDArray[np.bool_]
CutRest = Literal["", "k", "columns"]  # nothing; k, or columns where that saves too little; columns alone


@dataclass(frozen=True)
class Walk:
    """Which k each block takes in each of its steps.

    Attributes
    ----------
    begin, count : int or ndarray, shape (blocks,)
        The k of a block: ``begin`` to ``begin + count - 1``.
    backwards : bool or ndarray
        From the last k to the first; a wave that runs backwards turns it, unless ``one_way``.
    start : int or ndarray
        Steps that a block is ahead: it begins there and goes round.
    one_way : bool
        Whether waves that run backwards leave it as it is.
    """

    begin: Index | int
    count: Index | int
    backwards: Flags = False
    start: Index | int = 0
    one_way: bool = False

    @cached_property
    def alike(self) -> range | None:
        """The k of every block where all walk alike."""
        values = (self.begin, self.count, self.backwards, self.start)
        if any(np.ndim(value) for value in values) or self.start:
            return None
        return range(int(self.begin), int(self.begin) + int(self.count))

    def steps(self, blocks: slice) -> int:
        """The most that any of some blocks takes."""
        return int(self.count if np.ndim(self.count) == 0 else np.max(np.asarray(self.count)[blocks]))

    def k(self, blocks: slice, turned: Flags, only: Sequence[int] | None = None) -> Index:
        """The k of each step of some blocks; ``turned`` where a wave runs backwards; of some steps ``only``.

        Returns
        -------
        ndarray, shape (steps, blocks, 1) or (steps, 1, 1)
            One column where all blocks walk alike; -1 after the last step of a block that has fewer than others.

        Examples
        --------
        >>> Walk(np.array([0, 4]), np.array([3, 2])).k(slice(2), False)[..., 0].T.tolist()
        [[0, 1, 2], [4, 5, -1]]
        >>> Walk(0, 3, start=np.array([0, 1])).k(slice(2), True)[..., 0].T.tolist()
        [[2, 1, 0], [1, 0, 2]]
        """
        turned = False if self.one_way else turned
        if self.alike is not None and np.ndim(turned) == 0:
            same = self.alike[::-1] if self.backwards != turned else self.alike
            ks = np.arange(same.start, same.stop, same.step) if only is None else np.array([same[i] for i in only])
            return ks.astype(np.int32)[:, None, None]
        begin, count, backwards, start = self._of(blocks)
        step = (np.arange(self.steps(blocks), dtype=np.int32) if only is None else np.array(only, np.int32))[:, None]
        ahead = (step + start) % np.maximum(count, 1)
        result = begin + np.where(np.not_equal(backwards, turned), count - 1 - ahead, ahead)
        return np.asarray(np.where(step < count, result, -1)[..., None])

    def first(self, blocks: int, steps: int | None = None) -> Walk:
        """That of the first blocks; of the first steps alone where they are given."""
        begin, count, backwards, start = self._of(slice(blocks))
        count = count if steps is None else np.minimum(count, steps)
        return Walk(begin, count, backwards, start, self.one_way)

    def _of(self, blocks: slice) -> list[Any]:
        """Begin, count, direction and start of some blocks."""
        values = (self.begin, self.count, self.backwards, self.start)
        return [value if np.ndim(value) == 0 else np.asarray(value)[blocks] for value in values]

    def touches(self, blocks: int, tiles: int) -> int:
        """Touches of all blocks, with so many tiles in each step."""
        count = self.count
        return tiles * (blocks * int(count) if np.ndim(count) == 0 else int(np.sum(count, dtype=np.int64)))


@dataclass(frozen=True)
class Script:
    """The same steps for every block, a k for each touch, shape (steps, touches); -1 is no touch."""

    ks: Index
    alike: ClassVar[None] = None

    def steps(self, blocks: slice) -> int:
        """All of them."""
        return len(self.ks)

    def k(self, blocks: slice, turned: Flags, only: Sequence[int] | None = None) -> Index:
        """The k of each touch, shape (steps, 1, touches)."""
        return (self.ks if only is None else self.ks[only])[:, None]

    def first(self, blocks: int, steps: int | None = None) -> Script:
        """That of the first steps, where they are given."""
        return Script(self.ks[:steps])

    def touches(self, blocks: int, tiles: int) -> int:
        """Touches of all blocks."""
        return blocks * int(np.count_nonzero(self.ks >= 0))


_ANY = 2**31 - 1  # SMs: block slots as they are


@jit
def _fill(
    bases: NDArray[np.int32], strides: NDArray[np.int32], k: Index, kinds: NDArray[np.uint8], ids: NDArray[np.int32],
    ops: NDArray[np.uint8], begins: NDArray[np.int64], at: int,
) -> int:  # fmt: skip
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
def _deal(begins: NDArray[np.int64], sms: int, result: NDArray[np.int32]) -> None:
    # From the end: the touches of each row of each block, up to where the next begin.
    end = result.shape[0]
    for row in range(begins.shape[0] - 1, -1, -1):
        for block in range(begins.shape[1] - 1, -1, -1):
            result[begins[row, block] : end] = block % sms
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
        self.bases = np.empty((len(strided[0].base), len(strided)), np.int32)
        for touch, tile in enumerate(strided):
            self.bases[:, touch] = tile.base
        self.strides = np.array([tile.stride for tile in strided], np.int32)
        self.ops, self.walk = np.array(ops, np.uint8), walk or Walk(0, 1)
        blocks, touches = self.bases.shape
        absent = 0 if walk else int(np.count_nonzero(self.bases < 0))
        self.touches = self.walk.touches(blocks, touches) - absent  # as if no base of a walk were negative

    def behind(self, tiles: int) -> Steps:
        """The same in a layout where so many other tiles come first."""
        result = copy(self)
        result.bases = np.where(self.bases < 0, self.bases, self.bases + np.int32(tiles))
        return result

    def first(self, blocks: int, steps: int | None = None) -> Steps:
        """Of the first blocks alone, all steps or the first ones."""
        result = copy(self)
        result.bases, result.walk = self.bases[:blocks], self.walk.first(blocks, steps)
        result.touches = result.walk.touches(*result.bases.shape)
        return result


class Made(NamedTuple):
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

    def blocks(self, sms: int = _ANY) -> NDArray[np.int32]:
        """The block of each touch, or its SM where blocks are dealt to ``sms`` in turn."""
        result = np.empty(len(self.ids), np.int32)
        _deal(self.begins, sms, result)
        return result

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
    overlapped : bool
        Exponentials of one step run beside products of another, in an exported file on a chip that can.
    masked_steps : int
        As so many steps more a block that runs free takes where exponentials overlap and a mask crosses its tiles.
    paired_bytes : int
        As ``shared_bytes``, of a tile in an exported file that takes two side by side as one; 0 where none does.
    cut_rest : str
        What an exported file cuts of tiles that fill no round: `pebble.schedules.last_round`.
    activations : int
        Values of a block that go through an activation after its last step.
    rows : ndarray of int, optional
        The tile row of each block, where blocks wait for flags of such rows.
    reads : int
        The earlier phase of its group whose rows these blocks read; -1 where they read none.
    copied_bytes : int
        What a block copies in one step from the shared memory of another SM.
    """

    steps: Steps
    prologue: Steps | None = None
    epilogue: Steps | None = None
    after: int = 0
    flops: int = 0
    exps: int = 0
    shared_bytes: int = 0
    overlapped: bool = False
    masked_steps: int = 0
    paired_bytes: int = 0
    cut_rest: CutRest = ""
    activations: int = 0
    rows: Index | None = None
    reads: int = -1
    copied_bytes: int = 0

    @property
    def parts(self) -> list[Steps]:
        """Prologue, steps and epilogue, those that are there."""
        return [part for part in (self.prologue, self.steps, self.epilogue) if part is not None]

    @property
    def all_steps(self) -> int:
        """Steps of all blocks."""
        walk, blocks = self.steps.walk, len(self.steps.bases)
        return blocks * len(walk.ks) if isinstance(walk, Script) else walk.touches(blocks, 1)

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

    def made(self, blocks: slice, turned: Flags) -> Made:
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
        return Made(ids[:at], ops[:at], begins, steps, at == most)


@dataclass(frozen=True)
class Group:
    """Phases that run one after the other on ``wave_blocks`` block slots.

    ``sawtooth``: every second wave walks backwards. ``flags``: no barrier between phases, a block waits until the row
    that it reads is done; traces show the same blocks in the same order.
    """

    phases: Sequence[Phase]
    wave_blocks: int
    sawtooth: bool = False
    flags: bool = False

    def behind(self, tiles: int) -> Group:
        """The same in a layout where so many other tiles come first."""
        return replace(self, phases=[phase.behind(tiles) for phase in self.phases])


@dataclass(frozen=True)
class StepClock:
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


class Program(NamedTuple):
    """What a kernel, or several side by side, do: groups of phases over a common layout.

    With ``clocks``, one for each phase of the only group, blocks run where and when these say; else in waves or free.
    """

    layout: Layout
    groups: Sequence[Group]
    first_operands: tuple[int, ...] = ()  #: of kernels side by side: where the operands of each begin
    clocks: tuple[StepClock, ...] = ()

    @property
    def flops(self) -> int:
        """Operations of all steps."""
        return sum(phase.all_steps * phase.flops for group in self.groups for phase in group.phases)

    @property
    def copied_bytes(self) -> int:
        """What blocks copy from the shared memories of other SMs."""
        return sum(phase.all_steps * phase.copied_bytes for group in self.groups for phase in group.phases)

    def concurrent_with(self, other: Program) -> Program:
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
