"""A literal walk of a dataflow, value by value: it knows what cores and the buffer hold, not the formulas."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import product
from typing import Any

from pebble.game.buffer_model import Topology
from pebble.schedules.explicit.dataflow import Dataflow, Moved, Phase, Stream

Event = tuple[str, str, tuple[int, ...], int, int | None]  # move, operand, position, core, source of a copy

Blocks = dict[tuple[int, int], tuple[int, range, range]]  # of a layer, by place in the array: core, rows, columns


class Replay:
    """Plays a dataflow and counts. A stream's value: (phase, side, group, position, slice); a face's: (group, i, j)."""

    def __init__(self, flow: Dataflow, net: Topology | None) -> None:
        self.flow, self.net = flow, net
        self.held: dict[int, dict[Any, int]] = defaultdict(dict)
        self.buffer: dict[Any, int] = {}
        self.off = self.shared = self.copied = self.hops = 0
        self.sent = 0  # of what crosses to outside, what leaves the cores
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
                layers: list[Blocks] = [{} for _ in range(f.array.layers)]
                for layer, a, b in product(range(f.array.layers), range(f.array.rows), range(f.array.cols)):
                    i, j = sp * f.array.rows + a, sq * f.array.cols + b
                    rows = range(i * b_p, min(face.p, (i + 1) * b_p))
                    cols = range(j * b_q, min(face.q, (j + 1) * b_q))
                    if rows and cols:
                        core = cores[(layer * f.array.rows + a) * f.array.cols + b]
                        layers[layer][a, b] = (core, rows, cols)
                self.array(g, layers)
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

    def array(self, g: int, layers: list[Blocks]) -> None:
        face, cores = self.flow.face, self.flow.cores
        for number, blocks in enumerate(layers):
            before = layers[number - 1] if number else None
            for at, (core, rows, cols) in blocks.items():
                source = before[at][0] if before is not None and cores.network else None
                for i, j in product(rows, cols):
                    self.keep(core, (g, i, j), face.phases[0].cell)
                    self.bring(g, i, j, core, source, 0 if number else face.held.begins)
        for number, phase in enumerate(face.phases):
            for core, rows, cols in (block for blocks in layers for block in blocks.values()):
                for i, j in product(rows, cols):
                    self.held[core][g, i, j] = phase.cell
            share = -(-phase.r // len(layers))
            for low in range(0, share, cores.step):
                new: set[Any] = set()
                for layer, blocks in enumerate(layers):
                    first = layer * share + low
                    last = min(phase.r, layer * share + min(share, low + cores.step))
                    self.slices(g, number, phase, range(first, last), blocks, new)
                for key in new:  # what only passed through the buffer
                    if (number, key[1]) not in self.flow.kept:
                        self.buffer.pop(key, None)
        for number, blocks in enumerate(layers):
            after = layers[number + 1] if number + 1 < len(layers) else None
            for at, (core, rows, cols) in blocks.items():
                for i, j in product(rows, cols):
                    self.take(g, i, j, core, None if after is None else after[at][0])
        assert len(self.buffer) == len({key for key in self.buffer if (key[0], key[1]) in self.flow.kept})

    def bring(self, g: int, i: int, j: int, core: int, source: int | None, begins: int) -> None:
        """What stays comes: from outside, or from the layer before."""
        held = self.flow.face.held
        if source is not None:
            self.copy(held.read, source, core)
            if held.read:
                self.events.append(("copy", held.name, (i, j), core, source))
        else:
            self.cross((g, i, j), held.read + begins, held.local, passing=False)
            if held.read + begins:
                self.events.append(("load", held.name, (i, j), core, None))

    def take(self, g: int, i: int, j: int, core: int, after: int | None) -> None:
        """What stayed leaves, complete; or its sum goes to the layer after, which adds it to its own."""
        held = self.flow.face.held
        del self.held[core][g, i, j]
        if after is None:
            self.cross((g, i, j), held.written, held.local, passing=False)
            self.sent += held.written
            if held.written:
                self.events.append(("store", held.name, (i, j), core, None))
        elif held.partial:
            if self.flow.cores.network:
                self.copy(held.partial, core, after)
            else:
                self.cross((g, i, j), 2 * held.partial, held.local, passing=False)  # out of one, into the other
                self.sent += held.partial
            self.keep(after, ("sum", g, i, j), held.partial)
            del self.held[after]["sum", g, i, j]
        self.events.append(("delete", held.name, (i, j), core, None))

    def copy(self, size: int, source: int, core: int) -> None:
        """Bytes from core to core."""
        assert self.net is not None
        hops = self.net.hops(source, core)
        assert hops is not None
        self.copied += size
        self.hops += size * hops

    def slices(self, g: int, number: int, phase: Phase, rs: range, blocks: Blocks, new: set[Any]) -> None:
        """Slices that come together: along a line of the array core by core, products on the way."""
        f = self.flow
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

    def arrive(self, key: Any, stream: Stream, size: int, core: int, source: int | None, new: set[Any]) -> None:
        at = (key[3], key[4])
        if source is not None:
            del self.held[source][key]
            if moved := stream.read + stream.partial:
                self.copy(moved, source, core)
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
        self.sent += size
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
    assert played.moved == flow.moved[:4] and played.sent == flow.sent
    assert played.peak == flow.peak_bytes or (flow.cores.stages > 1 and played.peak < flow.peak_bytes)
    assert played.buffer_peak <= flow.buffer_bytes or not flow.cores.shared
    assert max(played.work.values()) * flow.cores.count <= flow.work * face.multiply_adds * (1 + 1e-9)
    return played


def moved(parts: tuple[tuple[int, Dataflow], ...]) -> Moved:
    """Of all parts."""
    sums = [sum(count * part.moved[i] for count, part in parts) for i in range(4)]
    return Moved(*sums, 1.0)
