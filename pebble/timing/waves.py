"""The time of a kernel, modelled wave by wave; no claim on single cycles.

A wave of blocks in lock step takes as long as the slowest of four, each at the rate that kernels sustain
(`pebble.models.speeds`):

- *compute*: operations and exponentials of its busiest SM;
- *L2*: lines between its busiest SM and L2;
- *DRAM*: lines that its cache model misses in this very wave, and writes back, all SMs together;
- *latency*: its longest block, where stages are too few: each step waits for its tiles, requested so many steps before.

Before it the first tiles come (fill); after it results are written, and the next wave begins (drain). A kernel is
launched once. What is still dirty in the cache at its end is written while the next kernel runs: in a stream of equal
launches each begins with that of the one before, so it is charged to the first wave.

Blocks that run free, and kernels side by side, have no common wave: their time is that of the free-running model
itself (`pebble.traces.free`), whose blocks wait for each of these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.models.caches import parse_policy
from pebble.models.caches.base import Engine
from pebble.models.machine import Machine
from pebble.models.speeds import speeds_of
from pebble.schedules.execution import FREE
from pebble.simulation import KernelConfig
from pebble.traces import LINE_BYTES
from pebble.traces.free import Speeds
from pebble.traces.program import Phase, Program
from pebble.traces.walk import Script

BUSY = 0.94  # share of the time that the resource which binds is busy: fitted to launches of the drift plans
L2_SHARE = 0.85  # of a measured plateau of L2, that kernels sustain: what 32.5 bytes a clock are on an H200
LAUNCH_NS = 4000.0  # round number
BINDS = ("compute", "L2", "DRAM", "latency")


class Wave(NamedTuple):
    """One wave; seconds that each resource needs at the rates that kernels sustain."""

    blocks: int
    compute_seconds: float
    l2_seconds: float
    dram_seconds: float
    latency_seconds: float
    around_seconds: float  #: fill and drain

    @property
    def binds(self) -> str:
        """What takes longest."""
        return BINDS[int(np.argmax(self[1:5]))]

    @property
    def seconds(self) -> float:
        """From its first request to the first of the next wave."""
        return max(self[1:5]) / BUSY + self.around_seconds


@dataclass(frozen=True)
class ModelledTime:
    """Time of one kernel, or of several side by side; an estimate, not a bound.

    Attributes
    ----------
    seconds : float
        From the launch to the last result.
    compute_seconds, l2_seconds, dram_seconds : float
        What each resource needs by itself at sustained rates: sums over waves.
    around_seconds, launch_seconds : float
        Fill and drain of all waves; the launch.
    waves : tuple of Wave
        Empty where blocks run free.
    dram_bytes, l2_bytes : int
        Between L2 and DRAM, and between SMs and L2.
    ended_seconds : tuple of float
        Of each kernel side by side, when it is done, launch included; one number where there is one.
    """

    seconds: float
    compute_seconds: float
    l2_seconds: float
    dram_seconds: float
    around_seconds: float
    launch_seconds: float
    waves: tuple[Wave, ...]
    dram_bytes: int
    l2_bytes: int
    ended_seconds: tuple[float, ...]

    @property
    def binds(self) -> dict[str, int]:
        """In how many waves each resource binds, most first; where blocks run free, the one whose sum is largest: 1."""
        if self.waves:
            return dict(Counter(wave.binds for wave in self.waves).most_common())
        sums = (self.compute_seconds, self.l2_seconds, self.dram_seconds)
        return {BINDS[int(np.argmax(sums))]: 1}


def sustained_speeds(machine: Machine, dtype: str) -> Speeds:
    """The speeds of a chip, no more lines from L2 than its plateau allows; errors as for `speeds_of`."""
    speeds, plateau = speeds_of(machine, dtype), machine.l2_bytes_per_second
    if plateau is None:
        return speeds
    return replace(speeds, lines=min(speeds.lines, L2_SHARE * plateau / 1e9 / LINE_BYTES / machine.sms))


def modelled_time(program: Program, config: KernelConfig) -> ModelledTime:
    """The time of a program on a chip: in waves, or free-running where ``config.execution`` is free.

    Parameters
    ----------
    program : Program
        As `KernelFamily.program` makes it; one of several groups runs free.
    config : KernelConfig
        SMs, blocks an SM, stages, cache and its model; ``speeds`` as from `sustained_speeds`.

    Returns
    -------
    ModelledTime

    Raises
    ------
    InputError
        Another execution; no speeds; or as for the trace.
    """
    if not (config.execution.is_reference or config.execution.is_free):
        raise InputError(f"--execution: got {config.execution.name}, expected waves or free: only these have a time.")
    if config.speeds is None:
        raise InputError("time: expected --gpu or --machine, whose speeds tell how long a kernel runs.")
    if config.execution.is_free or len(program.groups) > 1:
        return _free(program, replace(config, execution=replace(FREE, seed=config.execution.seed)), config.speeds)
    return _in_waves(program, config, config.speeds)


class _Moved(NamedTuple):
    """What one chunk of a trace moves, in lines."""

    by_sm: NDArray[np.float64]
    dram: int


def _moved(engine: Engine, sms: int) -> Iterator[_Moved]:
    """Lines of each SM and of DRAM, chunk by chunk."""
    unit = engine.unit_bytes / LINE_BYTES
    written = 0
    for chunk, missed in engine.passed():
        backs = int(engine.write_backs.sum())
        reads = int(missed[chunk.ops == 0].sum())
        lines = engine.lines[chunk.ids]
        by_sm = np.zeros(sms)
        if chunk.sm is not None:
            by_sm += np.bincount(chunk.sm, lines, sms) * unit
        yield _Moved(by_sm, round((reads + backs - written) * unit))
        written = backs


def _counts(phase: Phase) -> NDArray[np.int64]:
    """Steps of each block."""
    walk, blocks = phase.steps.walk, len(phase.steps.bases)
    count = len(walk.ks) if isinstance(walk, Script) else walk.count
    return np.broadcast_to(np.asarray(count, np.int64), blocks)


def _in_waves(program: Program, config: KernelConfig, speeds: Speeds) -> ModelledTime:
    (group,) = program.groups
    engine = parse_policy(config.policy).engine(config.trace(program), config.cache_bytes // LINE_BYTES)
    sms = min(config.sms, group.wave_blocks)
    moved = _moved(engine, sms)
    found, l2_lines, dram_lines = [], 0.0, 0
    for phase in group.phases:
        counts = _counts(phase)
        step = phase.flops / speeds.flops + phase.exps / speeds.exps
        for start in range(0, len(counts), group.wave_blocks):
            steps = counts[start : start + group.wave_blocks]
            here = next(moved)
            compute = step * float(np.bincount(np.arange(len(steps)) % sms, steps).max(initial=0))
            latency = int(steps.max(initial=0)) * (speeds.hit + step * config.blocks_per_sm) / config.stages
            l2 = float(here.by_sm.max(initial=0)) / speeds.lines
            around = speeds.hit * (1 + (phase.prologue is not None)) + speeds.turn
            found.append([float(len(steps)), compute, l2, here.dram / speeds.dram_lines, latency, around])
            l2_lines += float(here.by_sm.sum())
            dram_lines += here.dram
    if next(moved, None) is not None:
        raise AssertionError("the trace has more waves than the program")
    residue = round(int(engine.dirty().sum()) * engine.unit_bytes / LINE_BYTES)
    found[0][3] += residue / speeds.dram_lines
    waves = tuple(Wave(int(blocks), *(value / 1e9 for value in values)) for blocks, *values in found)
    seconds = sum(wave.seconds for wave in waves) + LAUNCH_NS / 1e9
    return ModelledTime(
        seconds,
        compute_seconds=sum(wave.compute_seconds for wave in waves),
        l2_seconds=sum(wave.l2_seconds for wave in waves),
        dram_seconds=sum(wave.dram_seconds for wave in waves),
        around_seconds=sum(wave.around_seconds for wave in waves),
        launch_seconds=LAUNCH_NS / 1e9,
        waves=waves,
        dram_bytes=(dram_lines + residue) * LINE_BYTES,
        l2_bytes=round(l2_lines) * LINE_BYTES,
        ended_seconds=(seconds,),
    )


def _free(program: Program, config: KernelConfig, speeds: Speeds) -> ModelledTime:
    ended = np.zeros(len(program.groups))
    engine = parse_policy(config.policy).engine(config.trace(program, ended), config.cache_bytes // LINE_BYTES)
    ended[:] = 0  # a warm cache has seen a first run
    slots = sum(group.wave_blocks for group in program.groups)
    l2_lines, dram_lines = 0.0, 0
    for here in _moved(engine, min(config.sms, slots)):
        l2_lines += float(here.by_sm.sum())
        dram_lines += here.dram
    dram_lines += round(int(engine.dirty().sum()) * engine.unit_bytes / LINE_BYTES)
    compute = sum(
        int(_counts(phase).sum()) * (phase.flops / speeds.flops + phase.exps / speeds.exps)
        for group in program.groups
        for phase in group.phases
    ) / min(config.sms, slots)  # fmt: skip
    l2, dram = l2_lines / min(config.sms, slots) / speeds.lines, dram_lines / speeds.dram_lines
    launch = LAUNCH_NS * len(ended)
    # writes have no place in the clock of blocks: DRAM needs its time for them too
    busy = [max(float(end), dram if end == ended.max() else 0.0, compute) for end in ended]
    finished = tuple((end / BUSY + speeds.turn + launch) / 1e9 for end in busy)
    return ModelledTime(
        max(finished),
        compute_seconds=compute / 1e9,
        l2_seconds=l2 / 1e9,
        dram_seconds=dram / 1e9,
        around_seconds=speeds.turn / 1e9,
        launch_seconds=launch / 1e9,
        waves=(),
        dram_bytes=dram_lines * LINE_BYTES,
        l2_bytes=round(l2_lines) * LINE_BYTES,
        ended_seconds=finished,
    )
