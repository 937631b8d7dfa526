"""Dataflows: schedules on cores with a scratchpad each, named by what stays in them, and exactly what they move.

A face of p x q positions is cut into blocks, one a core. A block comes once and stays; in a phase, r slices of two
streams meet it: one with a value for each (p, r), one for each (q, r). So C = A B is output-stationary (C stays, A and
B stream), A-stationary (C streams as partial sums) or B-stationary. An FFN whose hidden block stays has two phases: X
and W1 stream by and make H, then W2 and partial sums of Y stream by and use it. In attention queries stay with their
outputs and keys stream, or keys stay and queries stream.

An *array* of a x b cores holds neighbouring blocks and takes the slices in step. Along a line of the array all blocks
need the same slice. With a network one core loads it, and each hands it to the next; a partial sum is handed on the
same way and leaves the last core. Without one, every core loads it by itself. Several arrays work side by side. An
array of several *layers* holds each block so many times, and each layer takes its own part of the slices: what stays
is handed on from layer to layer first, its sums are added up from layer to layer last. With a shared buffer all
passes through it. There the streams that are *kept* stay for as long as blocks need them, and so cross from off-chip
memory once: that of a row of the walk while the row lasts, or a whole one. Else they pass.

All counts are bytes. An input that is visited v times is read v times. A partial sum comes and goes between two
visits, and leaves complete: 2 (v - 1) times at its own width, once at the output's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from pebble.units import ceil_div


@dataclass(frozen=True)
class Stream:
    """An operand that stays or streams by: bytes of a position.

    Attributes
    ----------
    name : str
    read : int
        Of an input, on every visit.
    partial : int
        Of a sum between two visits.
    written, begins : int
        Of the sum when it leaves complete, and of the value that it begins at, where it does.
    inside : int
        Of what a core makes itself, which is not moved.
    local : bool
        Whether it lives in the shared buffer alone: another product makes it or uses it there.
    """

    name: str
    read: int = 0
    partial: int = 0
    written: int = 0
    begins: int = 0
    inside: int = 0
    local: bool = False

    def moved(self, visits: int) -> int:
        """Bytes that a position brings and takes in so many visits."""
        return self.read * visits + 2 * self.partial * (visits - 1) + self.written + self.begins

    def sent(self, visits: int) -> int:
        """Those of them that leave a core."""
        return self.partial * (visits - 1) + self.written

    @property
    def handed_on(self) -> int:
        """Bytes from a core to the next."""
        return self.read + self.partial

    @property
    def room(self) -> int:
        """Bytes of a position while it is held."""
        return self.read + max(self.partial, self.written) + self.inside


@dataclass(frozen=True)
class Phase:
    """``r`` slices that meet the face, and what a position of the face takes meanwhile.

    Attributes
    ----------
    cell : int
        Bytes.
    products : int
        Multiply-adds, for each slice.
    """

    r: int
    along_p: Stream
    along_q: Stream
    cell: int
    products: int = 1

    @property
    def sides(self) -> tuple[tuple[str, Stream], tuple[str, Stream]]:
        """The streams, by side."""
        return ("p", self.along_p), ("q", self.along_q)


@dataclass(frozen=True)
class Face:
    """What stays, and the phases that it is worked on in.

    Attributes
    ----------
    stays : str
        How the dataflow is called: ``C``, ``A``, ``B``, ``H``, ``queries``, ``keys``.
    p, q : int
        Its extents.
    held : Stream
        What is moved of it.
    phases : tuple of Phase
    groups : int
        Such problems beside each other, with nothing in common.
    share : float
        Of the multiply-adds of a whole workload, of which this may be a part.
    """

    stays: str
    p: int
    q: int
    held: Stream
    phases: tuple[Phase, ...]
    groups: int = 1
    share: float = 1.0

    @property
    def multiply_adds(self) -> int:
        """All of them."""
        return self.groups * self.p * self.q * sum(phase.r * phase.products for phase in self.phases)


@dataclass(frozen=True)
class Array:
    """Cores that take slices in step: ``rows`` along p, ``cols`` along q, in ``layers`` that share out the slices.

    Attributes
    ----------
    hops_p, hops_q, hops_r : int
        From a core to the next along p, along q and from layer to layer; 0 where cores do not reach each other.
    cores : tuple of tuples of int
        Of each array that works beside the others, the cores layer by layer, in each row by row.
    """

    rows: int
    cols: int
    hops_p: int = 0
    hops_q: int = 0
    cores: tuple[tuple[int, ...], ...] = field(default=((0,),), repr=False)
    layers: int = 1
    hops_r: int = 0


@dataclass(frozen=True)
class Cores:
    """What a schedule may use.

    Attributes
    ----------
    count, scratchpad : int
        Cores, and bytes of the scratchpad of each.
    shared : int
        Bytes of the shared buffer; 0 where there is none.
    arrays : tuple of Array
        To choose from.
    network : bool
        Whether cores reach each other.
    step, stages : int
        Slices that come together, and how many of these a core has room for: one is worked on while another comes.
        Sides of blocks are multiples of ``step``.
    """

    count: int
    scratchpad: int
    shared: int
    arrays: tuple[Array, ...]
    network: bool
    step: int = 16
    stages: int = 2


class Moved(NamedTuple):
    """Bytes: to and from off-chip memory, between shared buffer and cores, from core to core, and the last times hops.

    ``work``: multiply-adds of the busiest core, times the cores, over all; ``share``: of them, of those of a workload.
    """

    off_chip: int
    shared: int
    copied: int
    hop_bytes: int
    work: float
    share: float = 1.0

    def into_cores(self, buffer: bool) -> int:
        """Bytes that cross the boundary of the cores."""
        return (self.shared if buffer else self.off_chip) + self.copied


@dataclass(frozen=True)
class Dataflow:
    """A face on the cores of a machine, and what it moves.

    Attributes
    ----------
    face : Face
    cores : Cores
    array : Array
    block : tuple of two int
        Sides of the longest block, along p and q.
    rows_first : bool
        Whether the walk takes all blocks of a row of arrays, along q, before the next row.
    kept : frozenset of (int, str)
        The streams kept in the shared buffer, by phase and side.
    """

    face: Face
    cores: Cores
    array: Array
    block: tuple[int, int]
    rows_first: bool = True
    kept: frozenset[tuple[int, str]] = frozenset()

    @cached_property
    def blocks(self) -> tuple[int, int]:
        """How many blocks along p and q."""
        return ceil_div(self.face.p, self.block[0]), ceil_div(self.face.q, self.block[1])

    @cached_property
    def visits(self) -> tuple[int, int]:
        """How many arrays of blocks along p and q."""
        return ceil_div(self.blocks[0], self.array.rows), ceil_div(self.blocks[1], self.array.cols)

    @property
    def rounds(self) -> int:
        """Blocks that the busiest core has one after another."""
        return ceil_div(self.face.groups * self.visits[0] * self.visits[1], len(self.array.cores))

    @property
    def work(self) -> float:
        """Of the busiest core, times the cores, over all work: 1 where it is spread evenly."""
        (b_p, b_q), layers = self.block, self.array.layers
        products = sum(phase.products * ceil_div(phase.r, layers) for phase in self.face.phases)
        return self.rounds * b_p * b_q * products * self.cores.count / self.face.multiply_adds

    @property
    def peak_bytes(self) -> int:
        """The most that a core holds."""
        (b_p, b_q), cores, layers = self.block, self.cores, self.array.layers
        adding_up = self.face.held.partial if layers > 1 else 0  # a sum of another layer, once the slices are through
        return max(
            phase.cell * b_p * b_q
            + max(
                cores.stages
                * min(cores.step, ceil_div(phase.r, layers))
                * (phase.along_p.room * b_p + phase.along_q.room * b_q),
                adding_up,
            )
            for phase in self.face.phases
        )

    @cached_property
    def buffer_bytes(self) -> int:
        """The most that the shared buffer holds, without what is local to it."""
        if not self.cores.shared:
            return 0
        face, (s_p, s_q), arrays = self.face, self.visits, len(self.array.cores)
        wide = {
            "p": min(self.array.rows * self.block[0], face.p),
            "q": min(self.array.cols * self.block[1], face.q),
        }
        # what arrays work on at once lies in so many groups, and rows of the walk
        groups = min(face.groups, ceil_div(arrays - 1, s_p * s_q) + 1)
        rows = min(
            face.groups * (s_p if self.rows_first else s_q), ceil_div(arrays - 1, self.visits[self.rows_first]) + 1
        )
        passing, layers = arrays * self.cores.stages, self.array.layers
        total = 0
        if face.held.moved(1) and not face.held.local:
            total += passing * min(self.cores.step, wide["p"]) * wide["q"] * max(p.cell for p in face.phases)
        for number, phase in enumerate(face.phases):
            for side, stream in phase.sides:
                whole, room = face.p if side == "p" else face.q, stream.room - stream.inside
                if stream.local:
                    continue
                if (number, side) not in self.kept:
                    total += passing * layers * min(self.cores.step, ceil_div(phase.r, layers)) * wide[side] * room
                elif (side == "p") == self.rows_first:
                    total += min(rows * wide[side], groups * whole) * phase.r * room
                else:
                    total += groups * whole * phase.r * room
        return total

    @property
    def fits(self) -> bool:
        """Whether scratchpads and the shared buffer hold it."""
        return self.peak_bytes <= self.cores.scratchpad and self.buffer_bytes <= self.cores.shared

    @cached_property
    def crossings(self) -> tuple[tuple[Stream, int, int, int, int, int], ...]:
        """Of what stays, then of each stream: the stream, its positions, how often they enter the cores from outside,
        how often a core hands them on, the hops of that, and how often they come from off-chip memory.
        """
        face, cores, array = self.face, self.cores, self.array
        (g_p, g_q), (s_p, s_q), layers = self.blocks, self.visits, array.layers
        enters = 1 if cores.network else layers
        held = (face.held, face.groups * face.p * face.q, enters, layers - enters, array.hops_r, enters)
        crossings = [held]
        for number, phase in enumerate(face.phases):
            for side, stream in phase.sides:
                extent, each, together, hop = (
                    (face.p, g_q, s_q, array.hops_q) if side == "p" else (face.q, g_p, s_p, array.hops_p)
                )
                visits = together if cores.network else each
                seen = 1 if (number, side) in self.kept else together if cores.shared else visits
                crossings.append((stream, face.groups * extent * phase.r, visits, each - visits, hop, seen))
        return tuple(crossings)

    @cached_property
    def moved(self) -> Moved:
        """What crosses each boundary, in all."""
        off_chip, shared, copied, hops = 0, 0, 0, 0
        for stream, positions, visits, on, hop, seen in self.crossings:
            shared += positions * stream.moved(visits)
            handed = positions * stream.handed_on * on
            copied, hops = copied + handed, hops + hop * handed
            if not stream.local:
                off_chip += positions * stream.moved(seen)
        return Moved(off_chip, shared if self.cores.shared else 0, copied, hops, self.work, self.face.share)

    @property
    def sent(self) -> int:
        """Bytes that leave the cores, to the shared buffer or off chip."""
        return sum(positions * stream.sent(visits) for stream, positions, visits, *_ in self.crossings)

    @property
    def detail(self) -> str:
        """Blocks, array and what is kept, in a phrase."""
        b_p, b_q = self.block
        block = f"{b_p}" if self.face.q == 1 else f"{b_p}x{b_q}"
        shape = f"{self.array.rows}" if self.face.q == 1 else f"{self.array.rows}x{self.array.cols}"
        several = min(len(self.array.cores), self.face.groups * self.visits[0] * self.visits[1])  # that get work
        arrays = f"{f'{several} arrays' if several > 1 else 'an array'} of {shape} cores"
        arrays += f" in each of {self.array.layers} layers" if self.array.layers > 1 else ""
        if self.array.rows == self.array.cols == 1:
            arrays = f"{several} cores, each by itself" if several > 1 else "one core"
            if self.array.layers > 1:
                arrays = f"{several * self.array.layers} cores, {self.array.layers} share out the slices of each"
        text = f"blocks of {block} on {arrays}"
        kept = [dict(self.face.phases[i].sides)[side].name for i, side in sorted(self.kept)]
        return f"{text}, {', '.join(kept)} kept in the shared buffer" if kept else text

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        return {
            "stays": self.face.stays,
            "block": list(self.block),
            "array": [self.array.rows, self.array.cols],
            "layers": self.array.layers,
            "arrays": len(self.array.cores),
            "rounds": self.rounds,
            "rows_first": self.rows_first,
            "kept": [[i, side] for i, side in sorted(self.kept)],
            "peak_bytes_per_core": self.peak_bytes,
            "shared_buffer_bytes": self.buffer_bytes,
        }
