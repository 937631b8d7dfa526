"""What blocks that run free do between two looks at the cache, compiled: see `pebble.traces.asynchronous`.

Events come in order of time: a block asks for the tiles of a step, of what comes before its steps, or of its results.
The loops read and write records of arrays, one for each thing that the story is about.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.traces.jit import jit

Times = NDArray[np.float64]
Counts = NDArray[np.int64]
Numbers = NDArray[np.int32]
Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]

RESULTS, PROLOGUE = -2, -1  # events beside steps, which count from 0


class Blocks(NamedTuple):
    """All blocks, in order of issue."""

    phase_of: Counts
    steps: Counts
    begin: Counts  #: the first k
    backwards: Flags
    start: Counts  #: how far ahead it begins


class Tiles(NamedTuple):
    """What blocks touch before their steps, in them and after them, by block, and the operations, by phase."""

    prologue: Numbers
    prologue_ops: Bytes
    bases: Numbers
    strides: Numbers
    ops: Bytes
    epilogue: Numbers
    epilogue_ops: Bytes
    script: Numbers  #: the k of each touch of each step, where a script says it


class Slots(NamedTuple):
    """What each slot does."""

    block: Counts  #: or -1
    issued: Counts  #: steps
    begin: Times
    due: Times  #: when there is something to do
    ring: Times  #: when its last steps end
    pace: Times


class LoopPhases(NamedTuple):
    """How far each phase is."""

    compute: Times  #: of a step
    opens: Times
    group_of: Counts
    after: Counts  #: phases of other groups that come first
    left: Counts  #: blocks
    finished: Counts  #: phases, by group


class Queues(NamedTuple):
    """Of each group: the block that is next, the one after its last, and its first slot."""

    next_block: Counts
    last_block: Counts
    first_slot: Counts


class Events(NamedTuple):
    """What happens between two looks at the cache."""

    when: Times
    where: Counts  #: slots
    what: Counts  #: steps, RESULTS or PROLOGUE
    first: Counts  #: of its touches


class Touches(NamedTuple):
    """Tiles, operations and SMs, touch by touch."""

    ids: Numbers
    ops: Bytes
    sms: Numbers


class LoopRates(NamedTuple):
    """Times of a line through the port of an SM and through DRAM, and of what is waited for, as in `Speeds`."""

    port: float
    dram_line: float
    hit: float
    miss: float
    turn: float


@jit
def settle(
    events: int, missed: Numbers, ids: Numbers, happens: Events, lines: Numbers, blocks: Blocks, slots: Slots,
    phases: LoopPhases, rates: LoopRates, dram: Times,
) -> None:  # fmt: skip
    # What follows from the events of a chunk: when their tiles arrive, and what each slot does next and when.
    when, where, what, first = happens
    phase_of, count = blocks.phase_of, blocks.steps
    block, issued, begin, due, ring, pace = slots
    compute, opens, group_of, after, left, finished = phases
    port, dram_line, hit, miss, turn = rates
    stages = ring.shape[1]
    for e in range(events):
        slot, step = where[e], what[e]
        at = block[slot]
        phase = phase_of[at]
        if step == RESULTS:
            block[slot] = -1
            begin[slot] = when[e] + turn
            left[phase] -= 1
            if left[phase] == 0:  # what waits for this phase begins after its last block
                group = group_of[phase]
                finished[group] += 1
                for other in range(len(left)):
                    if other == phase + 1 if group_of[other] == group else after[other] == finished[group]:
                        opens[other] = max(opens[other], begin[slot])
            continue
        total = lost = 0
        for t in range(first[e], first[e + 1]):
            total += lines[ids[t]]
            lost += missed[t]
        arrives = when[e] + hit
        if lost:
            dram[0] = max(dram[0], when[e]) + lost * dram_line
            arrives = max(arrives, dram[0] + miss)
        if step == PROLOGUE:  # the first step waits for it
            begin[slot] = max(begin[slot], arrives)
            continue
        ready = begin[slot] if step == 0 else ring[slot, (step - 1) % stages]
        done = max(ready, arrives) + max(compute[phase], total * port) * pace[slot]
        ring[slot, step % stages] = done
        issued[slot] = step + 1
        if step + 1 >= count[at]:
            due[slot] = done
        elif step + 1 >= stages:
            due[slot] = max(when[e], ring[slot, (step + 1) % stages])


@jit
def dispatch(end: float, queues: Queues, phase_of: Counts, slots: Slots, phases: LoopPhases) -> float:
    # Blocks whose phase is open go to the slots that are free first, before ``end``; when the next one could go.
    block, issued, begin, due, _, _ = slots
    _, opens, group_of, after, left, finished = phases
    next_block, last_block, first_slot = queues
    earliest = np.inf
    for group in range(len(next_block)):
        while next_block[group] < last_block[group]:
            at = next_block[group]
            phase = phase_of[at]
            waits = phase > 0 and group_of[phase - 1] == group and left[phase - 1] > 0
            for other in range(len(finished)):
                waits |= other != group and finished[other] < after[phase]
            slot = -1
            for s in range(first_slot[group], first_slot[group + 1]):
                if block[s] < 0 and (slot < 0 or begin[s] < begin[slot]):
                    slot = s
            if waits or slot < 0:
                break
            start = max(begin[slot], opens[phase])
            if start >= end:
                earliest = min(earliest, start)
                break
            block[slot], issued[slot], begin[slot], due[slot] = at, 0, start, start
            next_block[group] += 1
    return earliest


@jit
def soonest(slots: Slots) -> float:
    # When the next of the running blocks has something to do.
    block, _, _, due, _, _ = slots
    earliest = np.inf
    for slot in range(len(block)):
        if block[slot] >= 0:
            earliest = min(earliest, due[slot])
    return earliest


@jit
def next_events(end: float, most: int, prologues: Flags, blocks: Blocks, slots: Slots, happens: Events) -> int:
    # Results first, then what is loaded before first steps, then steps; each in order of time. Of one block at most
    # ``most`` steps, fewer than stages: when they are requested is known from steps that are settled.
    when, where, what, _ = happens
    phase_of, count = blocks.phase_of, blocks.steps
    block, issued, _, due, ring, _ = slots
    stages = ring.shape[1]
    events = 0
    for rank in (RESULTS, PROLOGUE, 0):
        begin = events
        for slot in range(len(block)):
            at = block[slot]
            time = due[slot]
            if at < 0 or time >= end:
                continue
            step = issued[slot]
            over = step > 0 and step >= count[at]
            if rank != 0:
                if over if rank == RESULTS else step == 0 and prologues[phase_of[at]]:
                    when[events], where[events], what[events] = time, slot, rank
                    events += 1
                continue
            last = min(step + most, max(step + 1, count[at]))
            while not over and step < last and time < end:
                when[events], where[events], what[events] = time, slot, step
                events += 1
                step += 1
                if step >= stages:
                    time = max(time, ring[slot, step % stages])
        order = begin + np.argsort(when[begin:events], kind="mergesort")
        times, places, kinds = when[order], where[order], what[order]
        for i in range(len(order)):  # not as slices: the check of their shapes alone takes numba seconds to compile
            when[begin + i], where[begin + i], what[begin + i] = times[i], places[i], kinds[i]
    return events


@jit
def touch(
    events: int, happens: Events, block: Counts, blocks: Blocks, tiles: Tiles, of_slot: Numbers, out: Touches
) -> int:
    # The tiles that each event touches; where the steps begin.
    _, where, what, first = happens
    phase_of, count, begin, backwards, start = blocks
    prologue, prologue_ops, bases, strides, step_ops, epilogue, epilogue_ops, script = tiles
    ids, ops, sms = out
    t = steps = 0
    for e in range(events):
        sms[first[e - 1] if e else 0 : t] = of_slot[where[e - 1]] if e else 0
        first[e] = t
        at = block[where[e]]
        phase, step = phase_of[at], what[e]
        if step < 0:
            tile = epilogue[at] if step == RESULTS else prologue[at]
            op = epilogue_ops[phase] if step == RESULTS else prologue_ops[phase]
            for i in range(len(tile)):
                if tile[i] >= 0:
                    ids[t], ops[t] = tile[i], op[i]
                    t += 1
            steps = e + 1
            continue
        if step >= count[at]:
            continue
        ahead = (step + start[at]) % count[at]
        k = begin[at] + (count[at] - 1 - ahead if backwards[at] else ahead)
        for i in range(bases.shape[1]):
            if len(script):
                k = script[step, i]
            if bases[at, i] >= 0 and k >= 0:
                ids[t], ops[t] = bases[at, i] + k * strides[phase, i], step_ops[phase, i]
                t += 1
    sms[first[events - 1] : t] = of_slot[where[events - 1]]
    first[events] = t
    return steps
