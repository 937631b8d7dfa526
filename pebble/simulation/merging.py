"""What L2 serves of the bytes that SMs receive, and what crosses the fabric between its partitions: a model.

Requests of the SMs of one GPC for one line are merged while the first is under way. Blocks in lock step ask for the
same tiles in the same step; each GPC asks L2 at least once for each of them. How many of the other requests are merged
depends on how well blocks keep step, which the model takes from measured launches, not from a mechanism:

- a block keeps step with those with which it shares most; of its tile that most blocks of its GPC share, a share of
  `Merging.most` of the repeated requests reaches L2; of its other tiles `Merging.least`; of tiles shared by equally
  many others the mean of both;
- that share falls with the length of a step, as a power, and grows with the blocks of an SM and with the share of the
  bytes that come from DRAM, whose waits pull blocks apart;
- in the first `Merging.start` steps of a tile nothing is merged: blocks have stored their last one, each in its time.

A line is at home in one partition; SMs of the other receive a copy over the fabric. A tile that is read from one side
only brings half of its lines across, one that is read from both all of them, whenever it comes from DRAM; half of what
is written crosses.

`COPY_ENGINE` is what kernels ask that copy by tensor descriptors, as exported files and libraries do on chips whose
merging was measured, with a barrier before each wave or without; it is what all figures are made of. It is fitted to
exported products on an H200. `IN_WAVES` and `RUNNING_FREE` are those of kernels whose warps copy, which merge more
under a barrier: fitted to `lts__t_sectors_op_read` of products on an H100 and an H200. How far all are off says
``benchmarks/hardware/fit_requests.py``.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.models.gpcs import Gpcs
from pebble.simulation.kernel import KernelConfig
from pebble.traces import LINE_BYTES, WRITE
from pebble.traces.jit import jit
from pebble.traces.program import Phase, Program

_SAMPLED_STEPS = 8  # of a wave whose blocks walk k differently
_STEP_FLOPS = 2 * 128 * 256 * 64  # of a step of the tile whose shares are stated


class Merging(NamedTuple):
    """How many of the repeated requests of a GPC reach L2.

    Attributes
    ----------
    most, least : float
        The share of them, of the tile that most blocks share and of others, in a step of a 128 x 256 x 64 tile.
    fall : float
        The power of a step's length with which both fall.
    crowd : float
        The power of the blocks of an SM with which both grow.
    from_dram : float
        What both grow by for each byte from DRAM a byte received.
    start : float
        Steps of a tile, its first, in which all repeated requests reach L2.
    """

    most: float
    least: float
    fall: float
    crowd: float
    from_dram: float
    start: float = 0.0


COPY_ENGINE = Merging(0.34, 0.53, 0.36, 0.12, 0.05, 2.9)
IN_WAVES = Merging(0.18, 0.15, 0.74, 0.5, 0.17)
RUNNING_FREE = Merging(0.27, 0.76, 0.36, 0.12, 0.26)


# What `Requested` is called in documents.
KEYS = ("sm_bytes", "l2_request_least_bytes", "l2_request_bytes", "fabric_bytes", "sm_written_bytes")


@dataclass(frozen=True)
class Requested:
    """What a kernel asks of L2, in bytes; modelled, but for what SMs receive.

    Attributes
    ----------
    received_bytes : int
        What SMs receive: the tiles of all steps.
    once_bytes : int
        What L2 would serve if each GPC asked once for each tile of a step: no merging does better.
    request_bytes : int
        What L2 serves of it after merging.
    fabric_bytes : int
        What crosses between the partitions, both ways.
    written_bytes : int
        What SMs write to L2.
    """

    received_bytes: int
    once_bytes: int
    request_bytes: int
    fabric_bytes: int
    written_bytes: int

    def to_json(self) -> dict[str, int | None]:
        """Plain data for ``--json``; modelled."""
        return dict(zip(KEYS, astuple(self), strict=True))


class Lines(NamedTuple):
    """128-byte lines of all steps of a kernel."""

    received: float = 0.0
    once: float = 0.0
    most: float = 0.0  #: repeated, of the tile that most share
    least: float = 0.0
    alike: float = 0.0
    distinct: float = 0.0  #: tiles of a step, each once
    crossing: float = 0.0  #: of these, what crosses where nothing is kept
    written: float = 0.0

    def plus(self, other: Lines, times: float = 1.0) -> Lines:
        """The sum, with the other so many times."""
        return Lines(*(mine + times * theirs for mine, theirs in zip(self, other, strict=True)))


class Shared(NamedTuple):
    """What the blocks of a kernel share, step by step: all that `requested` needs of it.

    Attributes
    ----------
    phases : tuple of (float, float, Lines)
        Of each: how long its steps are, in those of a 128 x 256 x 64 tile, how many a block has, and its lines.
    blocks_per_sm : int
    """

    phases: tuple[tuple[float, float, Lines], ...]
    blocks_per_sm: int

    @classmethod
    def of(cls, program: Program, config: KernelConfig, gpcs: Gpcs, most_waves: int | None = None) -> Shared:
        """Of a program, its blocks placed as those of full waves; of a phase only so many waves are looked at."""
        tile_lines = program.layout.tile_lines()
        phases = tuple(
            (
                max(1, phase.flops) / _STEP_FLOPS,
                phase.all_steps / max(1, len(phase.steps.bases)),
                _phase(phase, group.wave_blocks, tile_lines, gpcs, most_waves),
            )
            for group in program.groups
            for phase in group.phases
        )
        return cls(phases, config.blocks_per_sm)

    @property
    def written_bytes(self) -> int:
        """What SMs write to L2."""
        return round(sum(lines.written for *_, lines in self.phases) * LINE_BYTES)

    def requested(self, merging: Merging, dram_read_bytes: float) -> Requested:
        """What L2 is asked for, where so much comes from DRAM."""
        total, wanted = Lines(), 0.0
        for *_, lines in self.phases:
            total = total.plus(lines)
        share = merging.from_dram * dram_read_bytes / LINE_BYTES / max(1.0, total.received)
        for longer, steps, lines in self.phases:
            factor = longer**-merging.fall * self.blocks_per_sm**merging.crowd
            drift = share + merging.start / max(1.0, steps)
            most, least = (min(1.0, part * factor + drift) for part in merging[:2])
            wanted += lines.once + most * lines.most + least * lines.least + (most + least) / 2 * lines.alike
        crossing = dram_read_bytes / LINE_BYTES * total.crossing / max(1.0, total.distinct) + total.written / 2
        parts = (total.received, total.once, wanted, crossing, total.written)
        return Requested(*(round(part * LINE_BYTES) for part in parts))


def requested(program: Program, config: KernelConfig, gpcs: Gpcs, dram_read_bytes: float) -> Requested:
    """What a kernel asks of L2 on a chip.

    Parameters
    ----------
    program : Program
        As `KernelFamily.program` makes it.
    config : KernelConfig
        In waves, or free-running: blocks are placed as in waves.
    gpcs : Gpcs
        Of the chip.
    dram_read_bytes : float
        That the cache model says the kernel reads.
    """
    return Shared.of(program, config, gpcs).requested(COPY_ENGINE, dram_read_bytes)


def _phase(phase: Phase, wave_blocks: int, tile_lines: NDArray[np.int32], gpcs: Gpcs, most_waves: int | None) -> Lines:
    """Of all waves of a phase; of more than ``most_waves`` full ones some stand for all."""
    steps, sums, blocks = phase.steps, np.zeros(len(Lines._fields)), len(phase.steps.bases)
    full = blocks // wave_blocks
    seen = range(full) if most_waves is None or full <= most_waves else _spread(full, most_waves)
    waves = [(number, full / len(seen)) for number in seen] + [(full, 1.0)] * (blocks > full * wave_blocks)
    for number, times in waves:
        here = slice(number * wave_blocks, min(blocks, (number + 1) * wave_blocks))
        # where all blocks walk alike every step shares as the first one does
        sample = _spread(count := steps.walk.steps(here), 1 if steps.walk.alike is not None else _SAMPLED_STEPS)
        k, times = steps.walk.k(here, False, sample).astype(np.int64), times * count / max(1, len(sample))
        _count(steps.bases[here], steps.strides, k, tile_lines, gpcs.of_slot, gpcs.part, times, sums)
    total = Lines(*sums.tolist())
    for part in (phase.prologue, phase.epilogue):  # reads that nobody shares, and results
        if part is not None:
            read, written = _lines_of(part.bases, part.ops == WRITE, tile_lines)
            total = total.plus(Lines(received=read, once=read, written=written))
    return total


def _spread(count: int, most: int) -> list[int]:
    """Of so many numbers from 0 some, evenly apart; none of none: blocks whose mask hides every key have no steps."""
    if count == 0 or most == 1:
        return [0] * min(count, 1)
    return sorted({round(each * ((count - 1) / (most - 1))) for each in range(most)})


@jit
def _count(
    bases: NDArray[np.int32],
    strides: NDArray[np.int32],
    k: NDArray[np.int64],
    lines: NDArray[np.int32],
    gpc: NDArray[np.int64],
    part: NDArray[np.int64],
    times: float,
    sums: NDArray[np.float64],
) -> None:
    # Adds what some steps of a wave share, each so many times, to the fields of `Lines`. A block touches the tile base
    # + k stride, none where either is negative; k has the shape of `Walk.k`. A table by tile finds its first block.
    blocks, touches = bases.shape
    by_block, by_touch = k.shape[1] > 1, k.shape[2] > 1
    mask = 1
    while mask < 2 * blocks:
        mask *= 2
    mask -= 1
    table, sides = np.empty(mask + 1, np.int64), np.empty(blocks, np.int64)
    leaders = np.empty((blocks, part.shape[0]), np.int64)  # of a tile by its first block: the first of each GPC
    tiles, sharers, leader = np.empty((3, touches, blocks), np.int64)
    result = np.zeros(len(sums))
    for step in range(k.shape[0]):
        sharers[:], result[:] = 0, 0.0
        for t in range(touches):
            table[:] = -1
            for i in range(blocks):
                at = k[step, i if by_block else 0, t if by_touch else 0]
                tile = np.int64(bases[i, t]) + at * strides[t] if at >= 0 and bases[i, t] >= 0 else np.int64(-1)
                tiles[t, i], leader[t, i] = tile, i
                if tile < 0:
                    continue
                place = (tile * 2654435761 >> 16) & mask
                while table[place] >= 0 and tiles[t, table[place]] != tile:
                    place = (place + 1) & mask
                new = table[place] < 0
                if new:
                    table[place], sides[i], leaders[i] = i, 0, -1
                first, mine = table[place], gpc[i % gpc.shape[0]]
                size = lines[tile]
                result[5] += size if new else 0.0
                if leaders[first, mine] < 0:
                    result[6] += 0.0 if sides[first] >> part[mine] & 1 else size / 2
                    leaders[first, mine] = i
                    sides[first] |= 1 << part[mine]
                leader[t, i] = leaders[first, mine]
                sharers[t, leader[t, i]] += 1
        for i in range(blocks):
            top, tied, alike = 0, True, True
            for t in range(touches):
                top = max(top, sharers[t, leader[t, i]] if tiles[t, i] >= 0 else 0)
            for t in range(touches):
                if tiles[t, i] >= 0:
                    tied &= sharers[t, leader[t, i]] == top
                    alike &= leader[t, i] == leader[0, i]
            for t in range(touches):
                if tiles[t, i] >= 0:
                    size, many = lines[tiles[t, i]], sharers[t, leader[t, i]]
                    result[0] += size
                    result[1] += size / many
                    which = 3 if many < top else 4 if tied and not alike else 2
                    result[which] += size - size / many
        for field in range(len(sums)):
            sums[field] += times * result[field]


@jit
def _lines_of(
    bases: NDArray[np.int32], writes: NDArray[np.bool_], lines: NDArray[np.int32]
) -> tuple[float, float]:  # fmt: skip
    # What all blocks read and write, each touch by itself.
    read = written = 0.0
    for block in range(bases.shape[0]):
        for touch in range(bases.shape[1]):
            size = lines[bases[block, touch]] if bases[block, touch] >= 0 else 0
            if writes[touch]:
                written += size
            else:
                read += size
    return read, written
