"""The two sides of a cache model: the touches that go in and the counts that come out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numba
import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError

LINE_BYTES = 128

READ, WRITE = 0, 1
_LINES_AT_ONCE = 1 << 22


class Chunk(Protocol):
    """Some consecutive touches.

    ``ids`` (int32) are tile numbers, ``ops`` (uint8) READ or WRITE; block steps (the A and the B tile of one
    block) begin at ``step_starts`` and the last one ends at ``step_end``. ``sm`` (int32) is the SM of each touch and
    ``sectors`` (uint8) which 32-byte sectors of a line are meant, where each "tile" is one line; both may be None.
    """

    @property
    def ids(self) -> NDArray[np.int32]: ...
    @property
    def ops(self) -> NDArray[np.uint8]: ...
    @property
    def step_starts(self) -> NDArray[np.int64]: ...
    @property
    def step_end(self) -> int: ...
    @property
    def sm(self) -> NDArray[np.int32] | None: ...
    @property
    def sectors(self) -> NDArray[np.uint8] | None: ...


class Placement(Protocol):
    """Where tiles lie in memory, in lines: ``height`` rows of ``span`` lines, ``stride`` apart, from ``base``."""

    @property
    def base(self) -> NDArray[np.int64]: ...
    @property
    def height(self) -> NDArray[np.int64]: ...
    @property
    def span(self) -> NDArray[np.int64]: ...
    @property
    def stride(self) -> NDArray[np.int64]: ...
    @property
    def line_operand(self) -> NDArray[np.uint8]:
        """Operand of each line address, 0 to the highest."""
        ...


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

    @property
    def sms(self) -> int:
        """SMs that touch; 0 when the stream does not say."""
        ...

    def placement(self, pad_lines: int = 0) -> Placement | None:
        """Row-major addresses with ``pad_lines`` more lines between rows, or None when shapes are not known."""
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
        Written lines that were not in the cache; they are allocated without a fetch (or written through where the
        policy does not allocate).
    write_backs : tuple of int
        Lines written to DRAM: on eviction, straight through, or at the end.
    block_steps : int
        Steps of single blocks: one A tile and one B tile.
    block_steps_both_hit : int
        Steps in which every line of both tiles was in the cache.
    residue : tuple of int
        The part of ``write_backs`` that was still dirty in the cache at the end: a counter that stops with the kernel
        does not see it.
    unit_bytes : int
        What is counted: 128-byte lines, or 32-byte sectors in a sectored cache.
    """

    operand_names: tuple[str, ...]
    accesses: tuple[int, ...]
    read_misses: tuple[int, ...]
    write_misses: tuple[int, ...]
    write_backs: tuple[int, ...]
    block_steps: int
    block_steps_both_hit: int
    residue: tuple[int, ...] = ()
    unit_bytes: int = LINE_BYTES

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


@dataclass(frozen=True)
class Piece:
    """Some touches of a chunk; fields as in `Chunk`."""

    ids: NDArray[np.int32]
    ops: NDArray[np.uint8]
    step_starts: NDArray[np.int64]
    step_end: int
    sm: NDArray[np.int32] | None = None
    sectors: NDArray[np.uint8] | None = None


class CacheModel(Protocol):
    """A policy: a stream and a capacity in lines give counts."""

    def __call__(self, stream: Touches, capacity_lines: int) -> CacheCounts: ...


class Scratch:
    """One array that is used again and again: a fresh one of some megabytes costs more than filling it."""

    def __init__(self) -> None:
        self._array = np.empty(0, np.int32)

    def of(self, size: int) -> NDArray[np.int32]:
        """An array of this size with any content, good until the next call."""
        if len(self._array) < size:
            self._array = np.empty(size, np.int32)
        return self._array[:size]


class Engine(Protocol):
    """A cache at work. ``write_backs`` grows as lines are written to DRAM, by operand."""

    write_backs: NDArray[np.int64]

    def touch(self, chunk: Chunk) -> NDArray[np.int32]:
        """Missed lines of each touch; the array may be used again by the next call."""
        ...

    def dirty(self) -> NDArray[np.int64]:
        """Lines that are dirty now, by operand."""
        ...


def drive(engine: Engine, stream: Touches, warm: bool = False) -> CacheCounts:
    """Run a stream through a cache and write the rest back; ``warm``: the same stream has just run once before."""
    most = max(1, _LINES_AT_ONCE // int(stream.tile_lines.max(initial=1)))
    if warm:
        for chunk in stream.chunks():
            _touch(engine, chunk, most)
    before = engine.write_backs.copy()
    tally = Tally(stream)
    for chunk in stream.chunks():
        tally.add(chunk, _touch(engine, chunk, most))
    return tally.counts(engine.write_backs - before, engine.dirty())


def _touch(engine: Engine, chunk: Chunk, most: int) -> NDArray[np.int32]:
    """Missed lines of each touch; a long chunk in pieces, so that an interrupt is seen within a second."""
    count = len(chunk.ids)
    if count <= most:
        return engine.touch(chunk)
    missed = np.empty(count, np.int32)
    none: NDArray[np.int64] = np.empty(0, np.int64)
    sm, sectors = chunk.sm, chunk.sectors
    for start in range(0, count, most):
        at = slice(start, start + most)
        of_sm, of_sectors = None if sm is None else sm[at], None if sectors is None else sectors[at]
        missed[at] = engine.touch(Piece(chunk.ids[at], chunk.ops[at], none, 0, of_sm, of_sectors))
    return missed


@numba.njit(cache=True, nogil=True)
def _add(ids, ops, missed, step_starts, step_end, counts, lost, steps):  # type: ignore[no-untyped-def]
    # counts[tile]: touches; lost[op, tile]: missed lines. No branch: which touches miss is hard to predict.
    for t in range(ids.shape[0]):
        tile = np.uint32(ids[t])
        counts[tile] += 1
        lost[ops[t], tile] += missed[t]
    for s in range(step_starts.shape[0]):
        end = step_starts[s + 1] if s + 1 < step_starts.shape[0] else step_end
        hit = 1
        for t in range(step_starts[s], end):
            if missed[t]:
                hit = 0
        steps[1] += hit
    steps[0] += step_starts.shape[0]


class Tally:
    """Adds up per-touch misses into `CacheCounts`, chunk by chunk."""

    def __init__(self, stream: Touches) -> None:
        self._stream = stream
        self._counts = np.zeros(len(stream.tile_lines), np.int64)
        self._lost = np.zeros((2, len(stream.tile_lines)), np.int64)  # by reads, by writes
        self._steps = np.zeros(2, np.int64)

    def add(self, chunk: Chunk, missed: NDArray[np.int32]) -> None:
        """Count one chunk, given the missed lines of each touch."""
        _add(
            chunk.ids,
            chunk.ops,
            missed,
            chunk.step_starts,
            chunk.step_end,
            self._counts,
            self._lost,
            self._steps,
        )

    def counts(self, write_backs: NDArray[np.int64], residue: NDArray[np.int64]) -> CacheCounts:
        """The totals, given by operand the lines written back before the end, and those dirty at the end."""
        return CacheCounts(
            operand_names=self._stream.operand_names,
            accesses=as_tuple(sum_by_operand(self._stream, self._counts * self._stream.tile_lines)),
            read_misses=as_tuple(sum_by_operand(self._stream, self._lost[0])),
            write_misses=as_tuple(sum_by_operand(self._stream, self._lost[1])),
            write_backs=as_tuple(write_backs + residue),
            block_steps=int(self._steps[0]),
            block_steps_both_hit=int(self._steps[1]),
            residue=as_tuple(residue),
        )


def as_tuple(values: NDArray[np.int64]) -> tuple[int, ...]:
    """Plain integers."""
    return tuple(int(v) for v in values)


@numba.njit(cache=True, nogil=True)
def _sum_by(group, values, sums):  # type: ignore[no-untyped-def]
    for i in range(group.shape[0]):
        sums[group[i]] += values[i]


def sum_by_operand(stream: Touches, values: NDArray[np.int32] | NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each tile, added up by operand."""
    sums = np.zeros(len(stream.operand_names), np.int64)
    _sum_by(stream.tile_operand, values, sums)
    return sums


def check_capacity(stream: Touches, capacity_lines: int, parts: int = 1) -> None:
    """Refuse a cache that cannot hold the largest tile: a block could not read it through.

    Raises
    ------
    InputError
        Names the tile and the least capacity.
    """
    largest = int(stream.tile_lines.max())
    least = -(-largest // parts) * parts
    if capacity_lines < least:
        raise InputError(
            f"cache: got {capacity_lines} lines ({capacity_lines * LINE_BYTES} bytes), expected at least {least} "
            f"lines ({least * LINE_BYTES} bytes), the largest tile; enlarge the cache or shrink the tile."
        )
