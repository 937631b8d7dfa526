"""What a trace moves between L2 and DRAM chunk by chunk, and what it moves in all, in one run through a cache."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.models.caches import CacheCounts
from pebble.models.caches.base import Engine, counted
from pebble.traces import LINE_BYTES, READ, TraceChunk


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
