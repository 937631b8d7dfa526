"""Kernels whose blocks run free: no barrier, each block at the pace that its data allow.

Blocks go, in issue order, to whichever slot is free. A block fetches as many steps ahead as it has stages; a step
begins when the one before it is done and its tiles have come, and takes as long as its operations or its loads from L2,
whichever is more. A miss comes later than a hit, and all misses share the bandwidth of DRAM. So a leader that misses
waits, and a follower that hits catches up. SMs differ in pace by a little, drawn once for a kernel.

When a block runs depends on what missed before, so such a trace cannot be made without its cache: its chunks, each what
happens in a few steps, come from a generator to which the reader sends the missed lines of each touch.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pebble.system.memory import check_memory
from pebble.traces.jit import jit
from pebble.traces.layout import Layout
from pebble.traces.program import Group, Steps, check_length, traced
from pebble.traces.trace import Trace, TraceChunk, part
from pebble.traces.walk import Script, Walk

_BLOCK_BYTES = 200
_LEAST_PACE = 0.5
_STEPS_AT_ONCE = 4  # of a block, between two looks at the cache
RESULTS, PROLOGUE = -2, -1  # events beside steps, which count from 0


@dataclass(frozen=True)
class Speeds:
    """How fast blocks run, for `free_trace`; times in nanoseconds.

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


@jit
def _settle(events, missed, ids, first, when, where, what, lines, blocks, slots, phases, rates, dram):  # type: ignore[no-untyped-def]
    # What follows from the events of a chunk: when their tiles arrive, and what each slot does next and when.
    phase_of, count = blocks
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
def _dispatch(end, queues, phase_of, slots, phases):  # type: ignore[no-untyped-def]
    # Blocks whose phase is open go to the slots that are free first, before ``end``; when the next one could go.
    block, issued, begin, due, _, _ = slots
    _, opens, group_of, after, left, finished = phases
    next_block, last_block, first_slot = queues
    soonest = np.inf
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
                soonest = min(soonest, start)
                break
            block[slot], issued[slot], begin[slot], due[slot] = at, 0, start, start
            next_block[group] += 1
    return soonest


@jit
def _soonest(slots):  # type: ignore[no-untyped-def]
    # When the next of the running blocks has something to do.
    block, _, _, due, _, _ = slots
    soonest = np.inf
    for slot in range(len(block)):
        if block[slot] >= 0:
            soonest = min(soonest, due[slot])
    return soonest


@jit
def _events(end, most, prologues, blocks, slots, when, where, what):  # type: ignore[no-untyped-def]
    # Results first, then what is loaded before first steps, then steps; each in order of time. Of one block at most
    # ``most`` steps, fewer than stages: when they are requested is known from steps that are settled.
    phase_of, count = blocks
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
def _touches(events, where, what, block, phase_of, walks, tiles, script, of_slot, ids, ops, sms, first):  # type: ignore[no-untyped-def]
    # The tiles that each event touches; where the steps begin.
    count, begin, backwards, start = walks
    prologue, prologue_ops, bases, strides, step_ops, epilogue, epilogue_ops = tiles
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
        self.blocks = np.array(blocks, np.int64)
        self.phase_of = np.repeat(np.arange(len(phases)), blocks)
        bases, ops = _wide([phase.steps for phase in phases], blocks)
        strides = np.zeros(ops.shape, np.int32)
        for row, phase in zip(strides, phases, strict=True):
            row[: len(phase.steps.strides)] = phase.steps.strides
        prologue, epilogue = (_wide([getattr(p, name) for p in phases], blocks) for name in ("prologue", "epilogue"))
        self.tiles = (*prologue, bases, strides, ops, *epilogue)
        self.prologues = np.array([phase.prologue is not None for phase in phases])
        scripts = [phase.steps.walk.ks for phase in phases if isinstance(phase.steps.walk, Script)]
        if scripts and len(phases) > 1:
            raise AssertionError("a script runs alone")
        self.script = scripts[0].astype(np.int32) if scripts else np.zeros((0, 0), np.int32)
        self.walks = tuple(np.concatenate(columns) for columns in zip(*self._walks(groups), strict=True))
        self.compute = np.array([phase.flops / speeds.flops + phase.exps / speeds.exps for phase in phases])
        self.group_of = np.repeat(np.arange(len(groups)), [len(group.phases) for group in groups])
        self.after = np.array([phase.after for phase in phases])
        self.most = bases.shape[1] + prologue[0].shape[1] + epilogue[0].shape[1]

    @staticmethod
    def _walks(groups: Sequence[Group]) -> Generator[tuple[NDArray[np.generic], ...], None, None]:
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


def free_trace(
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
    rates = (many / count / speeds.lines, 1 / speeds.dram_lines, speeds.hit, speeds.miss, speeds.turn)
    compute = program.compute * (many / count)  # the blocks of an SM share it
    ahead = min(_STEPS_AT_ONCE, max(1, stages - 1))
    window = ahead * max(1.0, float(compute[compute > 0].min(initial=np.inf)) if compute.any() else 1000 / speeds.lines)

    def chunks() -> Generator[TraceChunk, NDArray[np.int32] | None, None]:
        ends = np.cumsum([0, *(sum(len(phase.steps.bases) for phase in group.phases) for group in groups)])
        queues = (ends[:-1].copy(), ends[1:], np.cumsum([0, *wave]))
        none = np.zeros(many)
        slots = (np.full(many, -1), np.zeros(many, np.int64), none, none.copy(), np.zeros((many, stages)), pace)
        finished = np.zeros(len(groups), np.int64)
        phases = (
            compute, np.zeros(len(compute)), program.group_of, program.after, program.blocks.copy(), finished
        )  # fmt: skip
        blocks = (program.phase_of, program.walks[0])
        when, where, what = (np.empty((ahead + 1) * many, kind) for kind in (np.float64, np.int64, np.int64))
        first = np.empty((ahead + 1) * many + 1, np.int64)
        dram = np.zeros(1)
        while True:
            now = min(_soonest(slots), _dispatch(-np.inf, queues, program.phase_of, slots, phases))
            if now == np.inf:
                if np.any(queues[0] < queues[1]):
                    raise AssertionError("phases wait for each other")
                return
            end = now + window
            _dispatch(end, queues, program.phase_of, slots, phases)
            events = _events(end, ahead, program.prologues, blocks, slots, when, where, what)
            ids, ops, sm = (np.empty(many * ahead * program.most, kind) for kind in (np.int32, np.uint8, np.int32))
            begun = _touches(
                events, where, what, slots[0], program.phase_of, program.walks, program.tiles, program.script, of_slot,
                ids, ops, sm, first,
            )  # fmt: skip
            total = int(first[events])
            sm_source = part(sm, slice(total))
            missed = yield TraceChunk(ids[:total], ops[:total], first[begun:events].copy(), total, sm_source)
            if missed is None:  # nobody follows: as if all were there
                missed = np.zeros(total, np.int32)
            _settle(events, missed, ids, first, when, where, what, lines, blocks, slots, phases, rates, dram)

    return traced(layout, touches, chunks, count, follows=True)
