"""Blocks that go to whichever slot is free first: when the last one ends, alone and where they wait for flags; and
what the last of them take where an exported file cuts them.

A kernel with a barrier between its phases ends each of them with a wave that is not full. With flags a block goes to
whichever slot is free first, in the order of the phases, and begins its work when the tile row that it reads is done.
What the blocks then take together is spread over the waves in proportion. L2 and DRAM serve each wave as before, and
where one of them is slower than the SMs a flag changes nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.schedules.last_round import last_round
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.timing.modelled import Wave
from pebble.traces.program import Group, Phase
from pebble.units import ceil_div


def makespan(took: Sequence[float] | NDArray[np.floating[Any]], slots: int) -> float:
    """When the last block ends, if blocks go in order to whichever slot is free first.

    Examples
    --------
    >>> makespan([3.0, 1.0, 1.0, 2.0], 2)
    4.0
    """
    times = np.asarray(took, np.float64)
    if not len(times):
        return 0.0
    if np.all(times == times[0]):
        return ceil_div(len(times), slots) * float(times[0])
    free = [0.0] * min(slots, len(times))
    for time in times.tolist():
        heapq.heapreplace(free, free[0] + time)
    return max(free)


def flagged(group: Group, took: Sequence[NDArray[np.floating[Any]]]) -> float:
    """When the last block ends, if blocks go in order to whichever slot is free first and wait there for their row.

    Parameters
    ----------
    group : Group
        Whose phases say the row of each block, and what they read.
    took : sequence of ndarray
        What each block of each phase takes.

    Notes
    -----
    A block waits for phases before its own alone, so whoever it waits for has a slot: no deadlock.
    """
    free, ended = [0.0] * group.wave_blocks, list[NDArray[np.float64]]()
    for phase, times in zip(group.phases, took, strict=True):
        assert phase.rows is not None
        rows = phase.rows.tolist()
        done = np.zeros(1 + max(rows, default=0))
        ready = ended[phase.reads] if phase.reads >= 0 else np.zeros_like(done)
        for row, time in zip(rows, times.tolist(), strict=True):
            end = max(free[0], ready[row]) + time
            heapq.heapreplace(free, end)
            done[row] = max(done[row], end)
        ended.append(done)
    return max((float(done.max()) for done in ended), default=0.0)


def without_barriers(waves: Sequence[Wave], nanoseconds: float) -> list[Wave]:
    """The same waves where all that SMs do takes so long together."""
    on_sms = sum(
        max(wave.compute_seconds, wave.shared_seconds, wave.latency_seconds) + wave.around_seconds for wave in waves
    )
    share = min(1.0, nanoseconds / 1e9 / on_sms) if on_sms else 1.0
    names = ("compute_seconds", "shared_seconds", "latency_seconds", "around_seconds")
    return [wave._replace(**{name: share * getattr(wave, name) for name in names}) for wave in waves]


class Rest(NamedTuple):
    """The blocks of a product that fill no round of an exported file.

    Attributes
    ----------
    first : int
        The number of the first of them.
    share, steps, loads : float
        What they take, their steps and what they load, of as many waves of whole blocks.
    launches : int
        More than one.
    """

    first: int
    share: float
    steps: float
    loads: float
    launches: int


def rest_of(phase: Phase, counts: NDArray[np.integer[Any]], config: KernelConfig, slots: int, exported: bool) -> Rest:
    """How long the last round of a phase takes whose blocks have so many steps: `last_round`.

    Where a file takes tiles in pairs a round has twice as many blocks.
    """
    blocks, sides, paired = len(counts), config.tile, 1 + bool(phase.paired_bytes)
    first = blocks // (paired * slots) * paired * slots
    if not exported or not phase.cut_rest or first == blocks:
        return Rest(blocks, 1.0, 1.0, 1.0, 0)
    tile = TileShape(sides.bm, paired * sides.bn, sides.bk)
    a, b = (len(np.unique(side)) for side in phase.steps.bases[first:, :2].T)
    # what L2 holds of one step, a row's or a column's on the mean, in 16 bits
    held = config.cache_bytes // (tile.bk * (tile.bm + tile.bn))
    end = last_round(phase.cut_rest, ceil_div(blocks, paired), float(counts[-1]), slots, tile, a + b / paired, held)
    rounds = paired / ceil_div(blocks - first, slots)
    return Rest(first, end.share * rounds, end.steps * rounds, end.loads, end.launches)
