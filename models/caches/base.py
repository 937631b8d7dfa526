"""The two sides of a cache model: the touches that go in and the counts that come out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError

LINE_BYTES = 128

READ, WRITE = 0, 1


class Chunk(Protocol):
    """Some consecutive touches.

    ``ids`` (int32) are tile numbers, ``ops`` (uint8) READ or WRITE; block steps (the A and the B tile of one
    block) begin at ``step_starts`` and the last one ends at ``step_end``.
    """

    @property
    def ids(self) -> NDArray[np.int32]: ...
    @property
    def ops(self) -> NDArray[np.uint8]: ...
    @property
    def step_starts(self) -> NDArray[np.int64]: ...
    @property
    def step_end(self) -> int: ...


class Touches(Protocol):
    """A stream of tile touches, in order."""

    @property
    def operand_names(self) -> tuple[str, ...]: ...
    @property
    def tile_lines(self) -> NDArray[np.int32]:
        """Lines of each tile; tiles share no line."""
        ...

    @property
    def tile_operand(self) -> NDArray[np.uint8]:
        """Index into ``operand_names`` of each tile."""
        ...

    @property
    def touches(self) -> int:
        """Length of the stream."""
        ...

    def chunks(self) -> Iterator[Chunk]: ...


@dataclass(frozen=True)
class CacheCounts:
    """What a cache did, in lines, by operand in the order of ``operand_names``.

    Attributes
    ----------
    accesses : tuple of int
        Lines touched, reads and writes.
    read_misses : tuple of int
        Lines fetched from DRAM.
    write_misses : tuple of int
        Written lines that were not in the cache; they are allocated without a fetch.
    write_backs : tuple of int
        Dirty lines written to DRAM, on eviction or at the end.
    block_steps : int
        Steps of single blocks: one A tile and one B tile.
    block_steps_both_hit : int
        Steps in which every line of both tiles was in the cache.
    """

    operand_names: tuple[str, ...]
    accesses: tuple[int, ...]
    read_misses: tuple[int, ...]
    write_misses: tuple[int, ...]
    write_backs: tuple[int, ...]
    block_steps: int
    block_steps_both_hit: int

    @property
    def accesses_lines(self) -> int:
        """All lines touched."""
        return sum(self.accesses)

    @property
    def hits_lines(self) -> int:
        """Lines that needed no fetch: read hits, and every write."""
        return self.accesses_lines - sum(self.read_misses)

    @property
    def misses_lines(self) -> int:
        """Lines that were not in the cache, reads and writes (what a plain cache simulator counts)."""
        return sum(self.read_misses) + sum(self.write_misses)


class CacheModel(Protocol):
    """A policy: a stream and a capacity in lines give counts."""

    def __call__(self, stream: Touches, capacity_lines: int) -> CacheCounts: ...


class Tally:
    """Adds up per-touch misses into `CacheCounts`, chunk by chunk."""

    def __init__(self, stream: Touches) -> None:
        count = len(stream.operand_names)
        self._stream = stream
        self._accesses = np.zeros(count, np.int64)
        self._read_misses = np.zeros(count, np.int64)
        self._write_misses = np.zeros(count, np.int64)
        self._steps = 0
        self._step_hits = 0

    def add(self, chunk: Chunk, missed: NDArray[np.int32]) -> None:
        """Count one chunk, given the missed lines of each touch."""
        operand = self._stream.tile_operand[chunk.ids]
        count = len(self._accesses)
        lines = self._stream.tile_lines[chunk.ids]
        written = chunk.ops == WRITE
        self._accesses += _sum_by(operand, lines, count)
        self._read_misses += _sum_by(operand, np.where(written, 0, missed), count)
        self._write_misses += _sum_by(operand, np.where(written, missed, 0), count)
        if len(chunk.step_starts):
            per_step = np.add.reduceat(missed[: chunk.step_end], chunk.step_starts)
            self._steps += len(per_step)
            self._step_hits += int(np.count_nonzero(per_step == 0))

    def counts(self, write_backs: NDArray[np.int64]) -> CacheCounts:
        """The totals, given the dirty lines written back by operand."""

        def as_tuple(values: NDArray[np.int64]) -> tuple[int, ...]:
            return tuple(int(v) for v in values)

        return CacheCounts(
            operand_names=self._stream.operand_names,
            accesses=as_tuple(self._accesses),
            read_misses=as_tuple(self._read_misses),
            write_misses=as_tuple(self._write_misses),
            write_backs=as_tuple(write_backs),
            block_steps=self._steps,
            block_steps_both_hit=self._step_hits,
        )


def _sum_by(group: NDArray[np.uint8], values: NDArray[Any], count: int) -> NDArray[np.int64]:
    # bincount adds in float64, exact here: a chunk touches far fewer than 2^53 lines
    return np.bincount(group, weights=values, minlength=count).astype(np.int64)


def check_capacity(stream: Touches, capacity_lines: int) -> None:
    """Refuse a cache that cannot hold the largest tile: a block could not read it through.

    Raises
    ------
    InputError
        Names the tile and the least capacity.
    """
    largest = int(stream.tile_lines.max())
    if capacity_lines < largest:
        raise InputError(
            f"cache: got {capacity_lines} lines ({capacity_lines * LINE_BYTES} bytes), expected at least {largest} "
            f"lines ({largest * LINE_BYTES} bytes), the largest tile; enlarge the cache or shrink the tile."
        )
