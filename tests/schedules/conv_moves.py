"""The moves of a convolution schedule, in the names of its DAG, for the referee."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from pebble.game import Move
from pebble.schedules.explicit.conv2d import ConvSchedule

Point = tuple[int, int, int, int]


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

    def tiles(self) -> Iterator[tuple[range, range, range]]:
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
        else:
            for (images, rows, columns), outs in product(list(self.tiles()), blocks):
                outputs = list(product(images, outs, rows, columns))
                for channel in range(c.in_channels):
                    yield from self.channel(outputs, self.weights(outs, range(channel, channel + 1)))
                yield from self.finish(outputs)

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
            self.stays = set() if last else {_name("W", w) for w in everything[: self.schedule.kept_weights]}
            for x in sorted(patches[number]):
                yield from self.load("X", x)
            for out in range(c.out_channels):
                outputs = list(product(tile[0], [out], tile[1], tile[2]))
                weights = self.weights(range(out, out + 1), range(c.in_channels))
                if len(outputs) <= len(weights):
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
        for outs in blocks:
            weights = self.weights(outs, range(c.in_channels))
            for w in weights:
                yield from self.load("W", w)
            for image, strip in product(range(c.batch), strips):
                there: set[Point] = set()
                for row in range(c.out_height):
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
