"""The moves of a convolution schedule, in the names of its DAG, for the referee."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from pebble.game import Move
from pebble.schedules.explicit.conv2d import ConvSchedule

Point = tuple[int, int, int, int]
Tile = tuple[range, range, range]


def _name(operand: str, at: Point) -> str:
    return f"{operand}[{','.join(map(str, at))}]"


def conv_moves(schedule: ConvSchedule) -> list[Move]:
    """Play a schedule, meant for small ones."""
    return list(_Player(schedule).play())


class _Player:
    def __init__(self, schedule: ConvSchedule) -> None:
        self.schedule, self.conv = schedule, schedule.conv
        self.red: set[str] = set()
        self.stays: set[str] = set()

    def load(self, operand: str, at: Point) -> Iterator[Move]:
        name = _name(operand, at)
        if name not in self.red:
            self.red.add(name)
            yield Move("load", name)

    def drop(self, operand: str, at: Point) -> Iterator[Move]:
        name = _name(operand, at)
        if name in self.red and name not in self.stays:
            self.red.remove(name)
            yield Move("delete", name)

    def finish(self, outputs: list[Point]) -> Iterator[Move]:
        for y in outputs:
            yield Move("store", _name("Y", y))
            yield Move("delete", _name("Y", y))

    def input_of(self, y: Point, w: Point) -> Point:
        (b, _, row, column), (_, c, r, s) = y, w
        return b, c, row * self.conv.stride + r, column * self.conv.stride + s

    def update(self, y: Point, w: Point) -> Iterator[Move]:
        yield Move("compute", f"{_name('Y', y)}+={_name('X', self.input_of(y, w))}*{_name('W', w)}")

    def tiles(self) -> Iterator[Tile]:
        s, c = self.schedule, self.conv
        extents = ((c.batch, s.images), (c.out_height, s.rows), (c.out_width, s.columns))
        yield from product(
            *([range(i, min(i + size, extent)) for i in range(0, extent, size)] for extent, size in extents)
        )

    def weights(self, outs: range, ins: range) -> list[Point]:
        k = range(self.conv.kernel)
        return list(product(outs, ins, k, k))

    def play(self) -> Iterator[Move]:
        s, c = self.schedule, self.conv
        blocks = [
            range(o, min(o + s.channels, c.out_channels)) for o in range(0, c.out_channels, s.channels)
        ]  # of output channels
        if s.stays == "weights":
            yield from self.weights_stay(blocks)
        elif s.stays == "inputs":
            yield from self.inputs_stay()
        elif s.passing.shared == "W":
            for outs in blocks:
                yield from self.outputs_stay([(tile, outs) for tile in self.tiles()])
        else:
            for tile in self.tiles():
                yield from self.outputs_stay([(tile, outs) for outs in blocks])

    def outputs_stay(self, tiles: list[tuple[Tile, range]]) -> Iterator[Move]:
        """Tiles that share weights or a patch; what passes of that is not loaded again."""
        p, ins = self.schedule.passing, self.conv.in_channels
        others = range(p.resident, ins)
        ends = (others[: p.turned], others[len(others) - p.turned :])  # channels that pass at even turns, at odd ones
        for number, (tile, outs) in enumerate(tiles):
            first, last = number == 0, number + 1 == len(tiles)
            enter = range(0) if first else ends[(number - 1) % 2]
            leave = range(0) if last else ends[number % 2]
            outputs = list(product(tile[0], outs, tile[1], tile[2]))
            yield from self.turn(tile, outs, enter, leaving=False)
            for channel in range(ins):
                if channel < p.resident:
                    yield from self.resident(outputs, channel, first, last)
                elif channel not in enter and channel not in leave:
                    yield from self.channel(outputs, self.weights(outs, range(channel, channel + 1)))
            if leave:
                yield from self.turn(tile, outs, leave, leaving=True)
            else:
                yield from self.finish(outputs)

    def resident(self, outputs: list[Point], channel: int, first: bool, last: bool) -> Iterator[Move]:
        """An input channel of which what is shared stays, and the other operand passes value by value."""
        outs = sorted({y[1] for y in outputs})
        shared = self.schedule.passing.shared
        pairs: dict[Point, list[tuple[Point, Point]]] = {}
        stay: set[Point] = set()
        for out in outs:
            for w in self.weights(range(out, out + 1), range(channel, channel + 1)):
                for y in outputs:
                    if y[1] == out:
                        x = self.input_of(y, w)
                        pairs.setdefault(x if shared == "W" else w, []).append((y, w))
                        stay.add(w if shared == "W" else x)
        passing = "X" if shared == "W" else "W"
        if first:
            for item in sorted(stay):
                yield from self.load(shared, item)
        for item, updates in pairs.items():
            yield from self.load(passing, item)
            for y, w in updates:
                yield from self.update(y, w)
            yield from self.drop(passing, item)
        if last:
            for item in sorted(stay):
                yield from self.drop(shared, item)

    def turn(self, tile: Tile, outs: range, channels: range, leaving: bool) -> Iterator[Move]:
        """Channels in which what is shared comes to stay while outputs are let go, or leaves while they begin."""
        if not channels:
            return
        p = self.schedule.passing
        by_rows = p.shared == "W" and self.schedule.images == 1
        along = list(outs if p.shared == "X" else tile[1] if by_rows else tile[0])
        parts = [along[i : i + p.group] for i in range(0, len(along), p.group)]
        groups = []
        for part in parts if leaving else parts[::-1]:
            images, rows = (part, tile[1]) if not by_rows else (tile[0], part)
            # the other operand's part of these channels is there for the whole group
            if p.shared == "W":
                units = [list(product(images, [out], rows, tile[2])) for out in outs]
                pivot = {self.input_of(y, w) for y in units[0] for w in self.weights(range(1), channels)}
            else:
                units = [list(product([b], part, [row], tile[2])) for b in tile[0] for row in tile[1]]
                pivot = {w for out in part for w in self.weights(range(out, out + 1), channels)}
            groups.append((units, pivot, part is parts[0]))
        other = "X" if p.shared == "W" else "W"
        for at, (units, pivot, turning) in enumerate(groups):
            for item in sorted(pivot):  # rows that two groups read are there already
                yield from self.load(other, item)
            needs = [self.shared_of(unit, channels) for unit in units]
            for number, unit in enumerate(units):
                if leaving and turning:
                    for item in sorted(needs[number]):
                        yield from self.load(p.shared, item)
                for y in unit:
                    for w in self.weights(range(y[1], y[1] + 1), channels):
                        yield from self.update(y, w)
                if leaving:
                    yield from self.finish(unit)
                elif turning:
                    later = set().union(*needs[number + 1 :])
                    for item in sorted(needs[number] - later):
                        yield from self.drop(p.shared, item)
            following = groups[at + 1][1] if at + 1 < len(groups) else set()
            for item in sorted(pivot - following):
                yield from self.drop(other, item)

    def shared_of(self, outputs: list[Point], channels: range) -> set[Point]:
        """The weights, or the values of X, that outputs need of some channels."""
        pairs = [(y, w) for y in outputs for w in self.weights(range(y[1], y[1] + 1), channels)]
        return (
            {w for _, w in pairs} if self.schedule.passing.shared == "W" else {self.input_of(*both) for both in pairs}
        )

    def channel(self, outputs: list[Point], weights: list[Point]) -> Iterator[Move]:
        """One input channel of a tile: the fewer of patch and weights are held."""
        met: dict[Point, list[tuple[Point, Point]]] = {}
        for y, w in product(outputs, weights):
            if y[1] == w[0]:
                met.setdefault(self.input_of(y, w), []).append((y, w))
        if len({(b, row, column) for b, _, row, column in outputs}) == 1:  # no two updates share a weight
            for x, pairs in met.items():
                yield from self.load("X", x)
                for y, w in pairs:
                    yield from self.load("W", w)
                    yield from self.update(y, w)
                    yield from self.drop("W", w)
                yield from self.drop("X", x)
            return
        if len(met) <= len(weights):
            for x in met:
                yield from self.load("X", x)
            for w in weights:
                yield from self.load("W", w)
                for y in outputs:
                    if y[1] == w[0]:
                        yield from self.update(y, w)
                yield from self.drop("W", w)
            for x in met:
                yield from self.drop("X", x)
            return
        for w in weights:
            yield from self.load("W", w)
        for x, pairs in met.items():
            yield from self.load("X", x)
            for y, w in pairs:
                yield from self.update(y, w)
            yield from self.drop("X", x)
        for w in weights:
            yield from self.drop("W", w)

    def inputs_stay(self) -> Iterator[Move]:
        c = self.conv
        tiles = list(self.tiles())
        everything = self.weights(range(c.out_channels), range(c.in_channels))
        patches = [
            {
                self.input_of((b, 0, row, column), w)
                for b, row, column in product(*tile)
                for w in self.weights(range(1), range(c.in_channels))
            }
            for tile in tiles
        ]
        for number, tile in enumerate(tiles):
            last = number + 1 == len(tiles)
            self.stays = set() if last else {_name("W", w) for w in everything[: self.schedule.carried_weights]}
            for x in sorted(patches[number]):
                yield from self.load("X", x)
            for out in range(c.out_channels):
                outputs = list(product(tile[0], [out], tile[1], tile[2]))
                weights = self.weights(range(out, out + 1), range(c.in_channels))
                if self.schedule.sums_stay:
                    for w in weights:
                        yield from self.load("W", w)
                        for y in outputs:
                            yield from self.update(y, w)
                        yield from self.drop("W", w)
                    yield from self.finish(outputs)
                    continue
                for w in weights:
                    yield from self.load("W", w)
                for y in outputs:
                    for w in weights:
                        yield from self.update(y, w)
                    yield from self.finish([y])
                for w in weights:
                    yield from self.drop("W", w)
            for x in patches[number] if last else patches[number] - patches[number + 1]:
                yield from self.drop("X", x)

    def weights_stay(self, blocks: list[range]) -> Iterator[Move]:
        c, s = self.conv, self.schedule
        strips = [range(i, min(i + s.columns, c.out_width)) for i in range(0, c.out_width, s.columns)]
        visits = list(product(range(c.batch), strips, range(c.out_height)))
        read = sorted(
            {
                self.input_of((b, 0, y, x), w)
                for b, strip, y in visits
                for x in strip
                for w in self.weights(range(1), range(c.in_channels))
            }
        )
        for number, outs in enumerate(blocks):
            weights = self.weights(outs, range(c.in_channels))
            # what the images that come last are read from stays for the next channels, which meet it first
            ahead = read if number % 2 == 0 else read[::-1]
            self.stays = {_name("X", x) for x in ahead[len(ahead) - s.carried_inputs :]}
            if number + 1 == len(blocks):
                self.stays = set()
            for w in weights:
                yield from self.load("W", w)
            there: set[Point] = set()
            before: tuple[int, range] | None = None
            for image, strip, row in visits if number % 2 == 0 else visits[::-1]:
                if (image, strip) != before:
                    for x in there:
                        yield from self.drop("X", x)
                    there, before = set(), (image, strip)
                needs = {self.input_of((image, 0, row, column), w) for column in strip for w in weights}
                for x in there - needs:
                    yield from self.drop("X", x)
                for x in needs:
                    yield from self.load("X", x)
                there = needs
                for column, out in product(strip, outs):
                    y = (image, out, row, column)
                    for w in weights:
                        if w[0] == out:
                            yield from self.update(y, w)
                    yield from self.finish([y])
            for x in there:
                yield from self.drop("X", x)
            for w in weights:
                yield from self.drop("W", w)
