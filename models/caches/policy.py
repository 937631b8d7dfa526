"""What every cache model shares: its facts, the engine that runs a trace, and the counts that come out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.system.parallel import check_wanted, each
from pebble.traces import LINE_BYTES, LockstepGemm, Trace, TraceChunk, following
from pebble.traces.jit import jit
from pebble.units import ceil_div

Numbers = NDArray[np.int32]
Counts = NDArray[np.int64]
Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class CacheCounts:
    """What a cache did, in lines, by operand in the order of ``operand_names``.

    Attributes
    ----------
    operand_names : tuple of str
        Of the operands, in the order of the counts.
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
    read_misses_of_waves : tuple of int
        Of A and B in each wave, where a closed form counted them; else empty.
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
    read_misses_of_waves: tuple[int, ...] = field(default=(), compare=False)

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

    @property
    def written_share(self) -> float:
        """Of what moves between the cache and DRAM; 0 where nothing does."""
        written = sum(self.write_backs)
        return written / max(1, written + sum(self.read_misses))

    def in_lines(self, counts: tuple[int, ...]) -> int:
        """Counts of all operands together, in whole 128-byte lines."""
        return sum(counts) * self.unit_bytes // LINE_BYTES


@dataclass(frozen=True, kw_only=True)
class CachePolicy(ABC):
    """A cache model, read from its name; each kind of model is a subclass in a file of its own.

    A subclass states its facts as class variables and adds the parameters that its ``pattern`` names as fields.

    Attributes
    ----------
    name : str
        As it was written, ``BODY[:REPLACEMENT][+OPTION...]``.
    write_allocate : bool
        False (``+no-write-allocate``): a written line that is not in the cache goes straight to DRAM.
    warm : bool
        ``+warm``: the cache holds what a first run of the same trace left in it.
    seed : int
        ``+seed-N``, of everything that is drawn at random.
    sm_map : str
        ``+map-...``: which SM sits in which part; empty for the model's own choice.
    parts : int
        Caches of equal size that share the capacity.
    last_level_bytes : int
        ``+llc-SIZE``: a cache between these and DRAM.
    """

    pattern: ClassVar[str]
    """A regular expression for the name before the colon; named groups are fields, whole numbers where they look so."""
    examples: ClassVar[tuple[str, ...]]
    """Names to show and suggest."""
    replacements: ClassVar[str] = ""
    """A regular expression for what may stand after the colon, empty for nothing."""
    options: ClassVar[frozenset[str]] = frozenset({"warm", "no-write-allocate"})
    """Which of the options that change the model it takes: these two, ``pad`` and ``llc``."""
    looks_ahead: ClassVar[bool] = False
    """Whether it must know the trace to its end: blocks that run free have none before their cache answers."""

    name: str
    write_allocate: bool = True
    warm: bool = False
    seed: int = 0
    sm_map: str = ""
    parts: int = 1
    last_level_bytes: int = 0

    @property
    @abstractmethod
    def runs(self) -> type[Engine]:
        """The engine; it gets a trace that `view` has prepared, the capacity and the policy."""

    @property
    def structure(self) -> str:
        """What the model is made of; ``full`` is one fully associative cache."""
        return "full"

    @property
    @abstractmethod
    def what(self) -> str:
        """The model in words, without its options."""

    def view(self, trace: Trace) -> Trace:
        """The trace as the model follows it: tiles, or lines where it tells the lines of a tile apart."""
        return trace

    def closed_form(self, gemm: LockstepGemm, capacity_lines: int) -> CacheCounts | None:
        """The counts of a lock-step GEMM without its trace, or None."""
        return None

    @property
    def description(self) -> str:
        """One line for a reader."""
        return self.what + ", no write-allocate" * (not self.write_allocate) + ", warm" * self.warm

    def least_lines(self, tile_lines: int) -> int:
        """The least capacity in which a tile of so many lines can be read through; here each part holds its share."""
        return ceil_div(tile_lines, self.parts) * self.parts

    @property
    def curve_note(self) -> str:
        """How `curve` comes by its values, where that is by simulation; else empty."""
        return "every cache size was simulated; those in which nothing is ever evicted are alike and simulated once"

    @property
    def title(self) -> str:
        """The name for a title: short ones in capitals."""
        return self.name.upper() if self.name.isalpha() and len(self.name) <= 4 else self.name

    def simulate(self, trace: Trace, capacity_lines: int) -> CacheCounts:
        """Run a trace through the cache and write the rest back.

        Parameters
        ----------
        trace : Trace
            Tile touches in order.
        capacity_lines : int
            Capacity in 128-byte lines, of all parts together.

        Raises
        ------
        InputError
            The cache is smaller than the largest tile, or the trace too long or without SMs for this model.
        """
        return self._simulated(trace, capacity_lines)[0]

    def _simulated(self, trace: Trace, capacity_lines: int) -> tuple[CacheCounts, int | None]:
        """The counts, and the least capacity that gives the same, where it is known (`Engine.enough_lines`)."""
        engine = self.engine(trace, capacity_lines)
        return counted(engine), engine.enough_lines

    def engine(self, trace: Trace, capacity_lines: int) -> Engine:
        """The cache, ready to run the trace; errors as for `simulate`."""
        engine = self.runs(self.view(trace), capacity_lines, self)
        for _ in engine.passed() if self.warm else ():
            pass
        engine.begin()
        return engine

    def curve(self, trace: Trace, capacities_lines: Sequence[int]) -> list[tuple[int, int]]:
        """Lines fetched and lines written back at each capacity.

        By default one simulation each, side by side on all cores; where nothing leaves the largest cache, one for all
        capacities from which nothing would.
        """
        largest = max(capacities_lines)
        most, enough = self._simulated(trace, largest)
        rest = sorted({c for c in capacities_lines if c < (largest if enough is None else enough)})
        counts = {rest[at]: result for at, result in each(lambda capacity: self.simulate(trace, capacity), rest)}
        results = [counts.get(capacity, most) for capacity in capacities_lines]
        return [(c.in_lines(c.read_misses), c.in_lines(c.write_backs)) for c in results]


class Engine(ABC):
    """A cache at work; ``capacity`` is that of each of the policy's parts, which must hold its share of every tile.

    Parameters
    ----------
    trace : Trace
        What will run, for the sizes and operands of its tiles.
    capacity_lines : int
        Capacity, of all parts together.
    policy : CachePolicy

    Raises
    ------
    InputError
        The capacity is smaller than the largest tile: a block could not read it through.
    """

    unit_bytes = LINE_BYTES
    touches_at_once = 1 << 20
    """Between two looks at whether somebody interrupts."""

    @property
    def enough_lines(self) -> int | None:
        """The least capacity with the same counts as this one, where nothing has left the cache; else None."""
        return None

    def __init__(self, trace: Trace, capacity_lines: int, policy: CachePolicy) -> None:
        check_capacity(trace, capacity_lines, policy.parts)
        self.trace, self.policy, self.capacity = trace, policy, capacity_lines // policy.parts
        self.lines, self.operand, self.tiles = trace.tile_lines, trace.tile_operand, len(trace.tile_lines)
        self.write_backs = self.zeros()
        self._missed = np.empty(0, np.int32)
        self.start()

    @abstractmethod
    def start(self) -> None:
        """Make the empty cache."""

    def zeros(self) -> NDArray[np.int64]:
        """A count for each operand."""
        return np.zeros(len(self.trace.operand_names), np.int64)

    def run(self, chunk: TraceChunk, missed: NDArray[np.int32]) -> None:
        """Touch, put down the missed lines of each touch, and add to ``write_backs`` what is written to DRAM."""
        raise NotImplementedError

    @abstractmethod
    def dirty(self) -> NDArray[np.int64]:
        """Lines that are dirty now, by operand."""

    def touch(self, chunk: TraceChunk) -> NDArray[np.int32]:
        """Missed lines of each touch; the array is used again by the next call, as a fresh one costs time."""
        if len(self._missed) < len(chunk.ids):
            self._missed = np.empty(len(chunk.ids), np.int32)
        missed = self._missed[: len(chunk.ids)]
        for piece, at in chunk.pieces(self.touches_at_once):
            check_wanted()
            self.run(piece, missed[at])
        return missed

    def chunks(self) -> Iterable[TraceChunk]:
        """The touches, from the start."""
        return self.trace.chunks()

    def passed(self) -> Iterator[tuple[TraceChunk, NDArray[np.int32]]]:
        """Each chunk, touched, with its missed lines; a trace that follows is told of them."""
        source = iter(self.chunks())
        chunk = next(source, None)
        while chunk is not None:
            missed = self.touch(chunk)
            yield chunk, missed
            chunk = following(
                source, missed if self.unit_bytes == LINE_BYTES else missed * self.unit_bytes // LINE_BYTES
            )

    def begin(self) -> None:
        """Count from here on."""
        self.write_backs[:] = 0

    def accesses(self, touched: NDArray[np.int64]) -> NDArray[np.int64]:
        """What was touched, by operand, given the touches of each tile."""
        return self.by_operand(touched * self.lines)

    def by_operand(self, values: Numbers | Counts) -> NDArray[np.int64]:
        """A number for each tile, added up by operand."""
        sums = self.zeros()
        _sum_by(self.operand, values, sums)
        return sums


@jit
def _add(
    ids: Numbers, ops: Bytes, missed: Numbers, step_starts: Counts, step_end: int, counts: Counts, lost: Counts,
    steps: Counts,
) -> None:  # fmt: skip
    # counts[tile]: touches; lost[op, tile]: missed lines. No branch: which touches miss is hard to predict.
    for t in range(ids.shape[0]):
        tile = np.uint32(ids[t])
        counts[tile] += 1
        lost[ops[t], tile] += missed[t]
    both_hit = 0
    for s in range(step_starts.shape[0]):
        end = step_starts[s + 1] if s + 1 < step_starts.shape[0] else step_end
        lines = 0
        for t in range(step_starts[s], end):
            lines |= missed[t]
        both_hit += lines == 0
    steps[0] += step_starts.shape[0]
    steps[1] += both_hit


@jit
def _sum_by(group: Bytes, values: Numbers | Counts, sums: Counts) -> None:
    # A group stands in a row, mostly: its sum stays in a register until the next begins.
    of, total = 0, 0
    for i in range(group.shape[0]):
        if group[i] != of:
            sums[of] += total
            of, total = group[i], 0
        total += values[i]
    sums[of] += total


def counted(
    engine: Engine, see: Callable[[TraceChunk, NDArray[np.int32]], None] = lambda chunk, missed: None
) -> CacheCounts:
    """Run, add up the missed lines of each touch, and write the rest back; ``see`` is told of each chunk."""
    touched, lost = np.zeros(engine.tiles, np.int64), np.zeros((2, engine.tiles), np.int64)  # lost by reads, by writes
    steps = np.zeros(2, np.int64)
    for chunk, missed in engine.passed():
        _add(chunk.ids, chunk.ops, missed, chunk.step_starts, chunk.step_end, touched, lost, steps)
        see(chunk, missed)
    residue = engine.dirty()
    by_operand = (
        engine.accesses(touched), *(engine.by_operand(x) for x in lost), engine.write_backs + residue, residue
    )  # fmt: skip
    accesses, reads, writes, backs, left = (tuple(x.tolist()) for x in by_operand)
    block_steps, both_hit = steps.tolist()
    names, unit = engine.trace.operand_names, engine.unit_bytes
    return CacheCounts(names, accesses, reads, writes, backs, block_steps, both_hit, left, unit)


def check_capacity(trace: Trace, capacity_lines: int, parts: int = 1, what: str = "cache") -> None:
    """Refuse a cache that cannot hold the largest tile.

    Raises
    ------
    InputError
        Names the least capacity.
    """
    least = ceil_div(int(trace.tile_lines.max()), parts) * parts
    if capacity_lines < least:
        raise InputError(
            f"{what}: got {capacity_lines} lines ({capacity_lines * LINE_BYTES} bytes), expected at least {least} "
            f"lines ({least * LINE_BYTES} bytes), the largest tile; enlarge the cache or shrink the tile."
        )
