"""A literal walk of a dataflow, value by value: it knows what cores and the buffer hold, not the formulas."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import product
from typing import Any

from pebble.game.buffer_model import Topology
from pebble.schedules.explicit.dataflow import Dataflow, Moved, Phase, Stream

Event = tuple[str, str, tuple[int, ...], int, int | None]  # move, operand, position, core, source of a copy


class Replay:
    """Plays a dataflow and counts. A stream's value: (phase, side, group, position, slice); a face's: (group, i, j)."""

    def __init__(self, flow: Dataflow, net: Topology | None) -> None:
        self.flow, self.net = flow, net
        self.held: dict[int, dict[Any, int]] = defaultdict(dict)
        self.buffer: dict[Any, int] = {}
        self.off = self.shared = self.copied = self.hops = 0
        self.peak = self.buffer_peak = 0
        self.done: set[Any] = set()
        self.met: Counter[Any] = Counter()  # products that a sum has taken
        self.work: Counter[int] = Counter()
        self.events: list[Event] = []
        self.play()

    @property
    def moved(self) -> tuple[int, int, int, int]:
        return self.off, self.shared, self.copied, self.hops

    def keep(self, core: int, key: Any, size: int) -> None:
        assert key not in self.held[core]
        self.held[core][key] = size
        self.peak = max(self.peak, sum(self.held[core].values()))

    def cross(self, key: Any, size: int, local: bool, passing: bool = True) -> None:
        """Bytes between a core and what is outside of it; off chip, where the buffer does not hold the value."""
        if self.flow.cores.shared:
            self.shared += size
        if not local and not (passing and key in self.buffer):
            self.off += size

    def play(self) -> None:
        f = self.flow
        face, (s_p, s_q), (b_p, b_q) = f.face, f.visits, f.block
        order = product(range(s_p), range(s_q)) if f.rows_first else ((p, q) for q in range(s_q) for p in range(s_p))
        walk = [(g, p, q) for g, (p, q) in product(range(face.groups), list(order))]
        for start in range(0, len(walk), len(f.array.cores)):
            for cores, (g, sp, sq) in zip(f.array.cores, walk[start:], strict=False):
                blocks = {}
                for a, b in product(range(f.array.rows), range(f.array.cols)):
                    i, j = sp * f.array.rows + a, sq * f.array.cols + b
                    rows = range(i * b_p, min(face.p, (i + 1) * b_p))
                    cols = range(j * b_q, min(face.q, (j + 1) * b_q))
                    if rows and cols:
                        blocks[a, b] = (cores[a * f.array.cols + b], rows, cols)
                self.array(g, blocks)
            self.evict(walk[start + len(f.array.cores) :])

    def evict(self, rest: list[tuple[int, int, int]]) -> None:
        """The buffer lets go of what no later block needs."""
        f = self.flow
        (a, b), (b_p, b_q) = (f.array.rows, f.array.cols), f.block
        needed_p, needed_q = {(g, p) for g, p, _ in rest}, {(g, q) for g, _, q in rest}
        for key in list(self.buffer):
            _, side, g, x, _ = key
            if (g, x // (a * b_p if side == "p" else b * b_q)) not in (needed_p if side == "p" else needed_q):
                del self.buffer[key]

    def array(self, g: int, blocks: dict[tuple[int, int], tuple[int, range, range]]) -> None:
        face = self.flow.face
        for core, rows, cols in blocks.values():
            for i, j in product(rows, cols):
                first = face.phases[0]
                self.keep(core, (g, i, j), first.cell)
                self.cross((g, i, j), face.held.read + face.held.begins, face.held.local, passing=False)
                if face.held.read + face.held.begins:
                    self.events.append(("load", face.held.name, (i, j), core, None))
        for number, phase in enumerate(face.phases):
            for core, rows, cols in blocks.values():
                for i, j in product(rows, cols):
                    self.held[core][g, i, j] = phase.cell
            step = self.flow.cores.step
            for low in range(0, phase.r, step):
                self.slices(g, number, phase, range(low, min(phase.r, low + step)), blocks)
        for core, rows, cols in blocks.values():
            for i, j in product(rows, cols):
                del self.held[core][g, i, j]
                self.cross((g, i, j), face.held.written, face.held.local, passing=False)
                if face.held.written:
                    self.events.append(("store", face.held.name, (i, j), core, None))
                self.events.append(("delete", face.held.name, (i, j), core, None))
        assert len(self.buffer) == len({key for key in self.buffer if (key[0], key[1]) in self.flow.kept})

    def slices(self, g: int, number: int, phase: Phase, rs: range, blocks: dict[Any, tuple[int, range, range]]) -> None:
        """Slices that come together: along a line of the array core by core, products on the way."""
        f = self.flow
        new: set[Any] = set()
        for (a, b), (core, rows, cols) in sorted(blocks.items()):
            for side, stream, xs, before in (
                ("p", phase.along_p, rows, (a, b - 1)),
                ("q", phase.along_q, cols, (a - 1, b)),
            ):
                size = stream.read + max(stream.partial, stream.written) + stream.inside
                source = blocks[before][0] if before in blocks and f.cores.network else None
                for x, r in product(xs, rs):
                    self.arrive((number, side, g, x, r), stream, size, core, source, new)
            for i, j, r in product(rows, cols, rs):
                assert (number, "p", g, i, r) in self.held[core] and (number, "q", g, j, r) in self.held[core]
                assert (g, i, j) in self.held[core] and (number, g, i, j, r) not in self.done
                if number:
                    assert all((number - 1, g, i, j, s) in self.done for s in range(f.face.phases[number - 1].r))
                self.done.add((number, g, i, j, r))
                self.met[number, "p", g, i, r] += 1
                self.met[number, "q", g, j, r] += 1
                self.work[core] += phase.products
                self.events.append(("compute", "", (i, j, r), core, None))
            for side, stream, xs, after in (
                ("p", phase.along_p, rows, (a, b + 1)),
                ("q", phase.along_q, cols, (a + 1, b)),
            ):
                if not (after in blocks and f.cores.network):
                    for x, r in product(xs, rs):
                        self.leave((number, side, g, x, r), stream, core)
        for key in new:  # what only passed through the buffer
            if (number, key[1]) not in f.kept:
                self.buffer.pop(key, None)

    def arrive(self, key: Any, stream: Stream, size: int, core: int, source: int | None, new: set[Any]) -> None:
        at = (key[3], key[4])
        if source is not None:
            del self.held[source][key]
            if moved := stream.read + stream.partial:
                self.copied += moved
                assert self.net is not None
                hops = self.net.hops(source, core)
                assert hops is not None
                self.hops += moved * hops
                self.events.append(("copy", stream.name, at, core, source))
                self.events.append(("delete", stream.name, at, source, None))
        else:
            visited = self.met[key] > 0
            sums = stream.partial if visited else stream.begins
            if not (visited and key in self.buffer and stream.partial):
                self.cross(key, sums, stream.local)
            else:
                self.shared += sums
            self.cross(key, stream.read, stream.local)
            if stream.read + sums:
                self.events.append(("load", stream.name, at, core, None))
            if self.flow.cores.shared and not stream.local and size > stream.inside and key not in self.buffer:
                self.buffer[key] = size - stream.inside
                new.add(key)
                self.buffer_peak = max(self.buffer_peak, sum(self.buffer.values()))
        self.keep(core, key, size)

    def leave(self, key: Any, stream: Stream, core: int) -> None:
        del self.held[core][key]
        f = self.flow
        complete = self.met[key] == (f.face.q if key[1] == "p" else f.face.p)
        size = stream.written if complete else stream.partial
        if self.flow.cores.shared:
            self.shared += size
        if not stream.local and (complete or not self.stays(key)):
            self.off += size
        at = (key[3], key[4])
        if size:
            self.events.append(("store", stream.name, at, core, None))
        if stream.name != "S":
            self.events.append(("delete", stream.name, at, core, None))

    def stays(self, key: Any) -> bool:
        """Whether an unfinished sum stays in the buffer: kept, or the next core of the array takes it from there."""
        f = self.flow
        if not f.cores.shared:
            return False
        wide = f.array.cols * f.block[1] if key[1] == "p" else f.array.rows * f.block[0]
        return (key[0], key[1]) in f.kept or self.met[key] % wide != 0


def check(flow: Dataflow, net: Topology | None) -> Replay:
    """What the formulas claim is what the walk counts."""
    played, face = Replay(flow, net), flow.face
    assert len(played.done) == face.groups * face.p * face.q * sum(phase.r for phase in face.phases)
    assert not any(played.held.values())
    assert played.moved == flow.moved[:4]
    assert played.peak <= flow.peak_bytes
    assert played.buffer_peak <= flow.buffer_bytes or not flow.cores.shared
    assert max(played.work.values()) * flow.cores.count <= flow.work * face.multiply_adds * (1 + 1e-9)
    return played


def moved(parts: tuple[tuple[int, Dataflow], ...]) -> Moved:
    """Of all parts."""
    sums = [sum(count * part.moved[i] for count, part in parts) for i in range(4)]
    return Moved(*sums, 1.0)
