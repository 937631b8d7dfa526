"""What a trace moves between L2 and DRAM chunk by chunk, in one run through a cache; and of a kernel that is too long
to simulate whole, its first part and what that says of the rest.

Of each phase the first waves are simulated, as many as its share of the limit allows; later ones move for each line
that they load from L2 what the later half of these moved. Where a phase's share is less than a wave, the first steps
of one are simulated, and each wave moves in proportion and writes its results, as if nothing outlived it in the cache:
a wave that is beyond a limit of many times the cache touches more than that holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.models.caches import CacheCounts
from pebble.models.caches.policy import Engine, counted
from pebble.traces import LINE_BYTES, READ, WRITE, TraceChunk
from pebble.traces.layout import Index
from pebble.traces.program import Phase, Program, Script


class Passed(NamedTuple):
    """What a cache moved.

    Attributes
    ----------
    lines : list of ndarray
        DRAM lines of each operand, chunk by chunk; what is still dirty at the end comes last.
    counts : CacheCounts
        All of it, as a simulation counts it.
    """

    lines: list[NDArray[np.floating[Any]]]
    counts: CacheCounts


def passed(engine: Engine) -> Passed:
    """Run an engine's trace through it."""
    unit, operands = engine.unit_bytes / LINE_BYTES, len(engine.trace.operand_names)
    result = list[NDArray[np.floating[Any]]]()
    written = np.zeros(operands)

    def see(chunk: TraceChunk, missed: NDArray[np.int32]) -> None:
        nonlocal written
        backs = engine.write_backs.astype(np.float64)
        reads = np.bincount(engine.operand[chunk.ids], missed * (chunk.ops == READ), operands)
        result.append((reads + backs - written) * unit)
        written = backs

    counts = counted(engine, see)
    return Passed([*result, engine.dirty() * unit], counts)


class Sample(NamedTuple):
    """What is simulated of a program.

    Attributes
    ----------
    program : Program
    loads : tuple of ndarray
        Lines that each wave of each phase of the whole program loads from L2.
    waves : tuple of int
        Whole waves of each phase that are simulated; 0: the first steps of one.
    share : float
        Of the loads that are simulated.
    """

    program: Program
    loads: tuple[NDArray[np.float64], ...]
    waves: tuple[int, ...]
    share: float

    def spread(self, whole: Program, traffic: Sequence[float]) -> list[float]:
        """Lines between L2 and DRAM of each wave of the whole program, and those dirty at its end.

        Parameters
        ----------
        whole : Program
        traffic : sequence of float
            The same of what was simulated.
        """
        sectors, at, result = whole.layout.tile_sectors(), 0, list[float]()
        size = whole.groups[0].wave_blocks
        for number, (loads, waves) in enumerate(zip(self.loads, self.waves, strict=True)):
            here = traffic[at : at + max(1, waves)]
            at += len(here)
            result += here[:waves]
            if waves:
                later = slice(waves // 2, waves)
                result += (loads[waves:] * (sum(here[later]) / max(1.0, loads[later].sum()))).tolist()
            else:
                part, phase = self.program.groups[0].phases[number], whole.groups[0].phases[number]
                (loaded,) = wave_loads(part, sectors, size)
                result += (loads * (here[0] / max(1.0, loaded)) + _results(phase, sectors, size)).tolist()
        return [*result, *traffic[at:]]

    def grown(self, whole: Program, lines: float) -> float:
        """What all of it moves between L2 and DRAM, where the part moved so many lines and no wave is told apart.

        Every result is written once; the rest is in proportion to what is loaded from L2.
        """
        sectors, size = whole.layout.tile_sectors(), whole.groups[0].wave_blocks
        part = self.program.groups[0].phases
        inside, written = (
            sum(float(_results(phase, sectors, size).sum()) for phase in phases)
            for phases in (part, whole.groups[0].phases)
        )
        return max(0.0, lines - inside) / self.share + written


def wave_loads(phase: Phase, sectors: Index, wave_blocks: int) -> NDArray[np.float64]:
    """Lines that each wave of a phase loads from L2 in its steps."""
    counts = block_steps(phase)
    return by_waves(counts * step_lines(phase, sectors), wave_blocks)


def block_steps(phase: Phase) -> NDArray[np.int64]:
    """Steps of each block."""
    walk, blocks = phase.steps.walk, len(phase.steps.bases)
    count = len(walk.ks) if isinstance(walk, Script) else walk.count
    return np.broadcast_to(np.asarray(count, np.int64), blocks)


def step_lines(phase: Phase, sectors: Index, touches: int | None = None) -> float:
    """Lines that a step of a block loads, on the mean; with ``touches`` in the first of its touches."""
    bases = phase.steps.bases[:, :touches]
    return float(np.where(bases >= 0, sectors[bases], 0).sum() / max(1, len(bases)) / 4)


def by_waves(values: NDArray[np.floating], wave_blocks: int) -> NDArray[np.float64]:
    """Sums over the blocks of each wave."""
    return np.add.reduceat(values.astype(np.float64), np.arange(0, len(values), wave_blocks))


def sampled(program: Program, most_lines: int) -> Sample | None:
    """The first part of a kernel in waves; None where its loads are no more than ``most_lines``."""
    (group,) = program.groups
    sectors, size = program.layout.tile_sectors(), group.wave_blocks
    loads = tuple(wave_loads(phase, sectors, size) for phase in group.phases)
    total = sum(float(each.sum()) for each in loads)
    if total <= most_lines:
        return None
    phases, waves = [], []
    for phase, each in zip(group.phases, loads, strict=True):
        capacity = most_lines * float(each.sum()) / total
        fitting = int(np.searchsorted(np.cumsum(each), capacity, side="right"))
        waves.append(fitting)
        steps = None if fitting else max(1, int(block_steps(phase).max() * capacity / max(1.0, float(each[0]))))
        phases.append(phase.first(max(1, fitting) * size, steps))
    part = program._replace(groups=[replace(group, phases=phases)])
    simulated = sum(float(wave_loads(phase, sectors, size).sum()) for phase in phases)
    return Sample(part, loads, tuple(waves), simulated / total)


def _results(phase: Phase, sectors: Index, wave_blocks: int) -> NDArray[np.float64]:
    """Lines that each wave writes in its epilogue."""
    blocks = len(phase.steps.bases)
    if phase.epilogue is None:
        return by_waves(np.zeros(blocks), wave_blocks)
    bases = phase.epilogue.bases
    written = np.where((bases >= 0) & (phase.epilogue.ops == WRITE), sectors[bases], 0)
    return by_waves(written.sum(axis=1) / 4, wave_blocks)
