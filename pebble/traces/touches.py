"""The trace that a program makes. There are two ways to put the touches of all blocks in order:

- `program_trace`: blocks run P at a time (a wave), one step of each in turn, and the next wave starts when all have
  finished; a phase starts when the one before it has finished. Groups of phases run side by side on SMs of their own,
  one step of each in turn.
- `timed_trace`: every block has its own slot, start and pace. At one time, results of what has just ended are written
  first, then steps begin, in order of slots; so with equal speeds this is the lock-step trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.traces.layout import Layout
from pebble.traces.program import Group, Made, Phase, Program
from pebble.traces.trace import CHUNK, Trace, TraceChunk, by_lines, by_wide_tiles, chunked

MAX_TOUCHES = 4_000_000_000


TICKS = 1 << 16  # of the clock, in one step at full speed


def _waves(group: Group) -> Iterator[tuple[Made, Phase, bool]]:
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
        yield TraceChunk(wave.ids, wave.ops, *wave.block_steps(), partial(wave.blocks, sms))


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
            yield TraceChunk(ids, ops, sm_source=partial(np.remainder, slots, np.int32(sms)))
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


def timed_trace(program: Program, sms: int) -> Trace:
    """The trace of a program whose blocks run by the clock, in memory, line by line where tiles share lines.

    Parameters
    ----------
    program : Program
        Of one group, with a clock for each of its phases.
    sms : int
        SMs; block slots are dealt to them in turn.
    """
    (group,) = program.groups
    slots = group.wave_blocks
    keys, made = [], []
    for phase, clock in zip(group.phases, program.clocks, strict=True):
        all_of_it = phase.made(slice(None), group.sawtooth & (clock.turn % 2 == 1))
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
    return traced(program.layout, len(ids), chunked(ids, ops, slot % np.int32(count)), count)
