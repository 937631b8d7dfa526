"""The best convolution schedules: tiles by closed form, what passes between them by the room beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from math import isqrt

from pebble.errors import InfeasibleError
from pebble.schedules.explicit.blocked import block_sizes
from pebble.schedules.explicit.conv2d import (
    ConvProduct,
    ConvSchedule,
    Operand,
    Passing,
    positions,
)
from pebble.units import ceil_div
from pebble.workloads import Conv2d
from pebble.workloads.widths import ALIKE, FastMemory

_MOST_SIZES = 32  # of tiles along one direction
_LOOK_CLOSELY = 32  # tiles for which what passes is sought
_MORE_ROUNDS = 3  # blocks of channels beyond the fewest: smaller tiles leave room for what passes

Build = Callable[[str, int, int, int, int], ConvSchedule]  # in that memory: what stays, images, rows, columns, channels
Candidate = ConvSchedule | ConvProduct


def _sizes(extent: int) -> list[int]:
    """Sizes of tiles along one direction; of many, some from the largest to one."""
    every = list(block_sizes(extent, extent, 128))
    if len(every) <= _MOST_SIZES:
        return every
    return [every[i * (len(every) - 1) // (_MOST_SIZES - 1)] for i in range(_MOST_SIZES)]


def _outputs(conv: Conv2d, capacity: int, read: int, sums: int) -> Iterator[tuple[int, int, int, int]]:
    """Tiles of outputs worth trying: images, rows, columns, and the most channels that fit."""
    square = conv.kernel**2
    for rows in _sizes(conv.out_height):
        for columns in _sizes(conv.out_width):
            whole = (rows, columns) == conv.out_sides
            patch = positions(conv, rows) * positions(conv, columns)
            for images in _sizes(conv.batch) if whole else (1,):
                tile = images * rows * columns
                # the patch is there and weights pass, or the weights are there and the patch passes
                most = max(
                    (capacity - read * (1 + images * patch)) // (tile * sums),
                    (capacity - read) // (tile * sums + square * read),
                )
                most = (capacity - 2 * read) // sums if tile == 1 else most
                if most > 0:
                    yield images, rows, columns, min(most, conv.out_channels)


def _plain(conv: Conv2d, capacity: int, build: Build) -> Iterator[ConvSchedule]:
    """Where inputs or weights stay, and tiles of outputs between which nothing does."""
    height, width, channels = conv.out_height, conv.out_width, conv.out_channels
    single = build("outputs", 1, 1, 1, 1)
    read, sums = single.read_width, single.sum_width
    for rows in _sizes(height):
        for images in _sizes(conv.batch) if rows == height else (1,):
            yield build("inputs", images, rows, width, channels)
    for columns in _sizes(width):
        free = capacity - sums - read * conv.in_channels * conv.kernel * positions(conv, columns)
        most = free // (read * conv.taps)
        if most > 0:
            fewest = ceil_div(channels, min(most, channels))
            yield build("weights", conv.batch, height, columns, ceil_div(channels, fewest))
    for images, rows, columns, most in _outputs(conv, capacity, read, sums):
        yield build("outputs", images, rows, columns, ceil_div(channels, ceil_div(channels, most)))


def _groups(schedule: ConvSchedule, spare: int) -> list[int]:
    """Sizes of the groups worth trying: images, rows or output channels of the smallest tile."""
    c, read, sums = schedule.conv, schedule.read_width, schedule.sum_width
    if schedule.passing.shared == "W":
        if schedule.images > 1:
            most, pixels = c.batch - (schedule.tiles - 1) * schedule.images, schedule.pixels / schedule.images
            patch = schedule.patch / schedule.images
        else:
            most = c.out_height - (ceil_div(c.out_height, schedule.rows) - 1) * schedule.rows
            pixels, patch = schedule.columns, positions(c, schedule.columns) * min(c.stride, c.kernel)
        ratio, pivot = pixels * sums / (c.kernel**2 * read), patch
    else:
        most = c.out_channels - (schedule.rounds - 1) * schedule.channels
        ratio, pivot = schedule.pixels * sums / (schedule.patch * read), c.kernel**2
    # as many channels as outputs that are let go make up for, where the other operand of both fits beside the tile
    about = isqrt(max(1, int(spare / (read * pivot * ratio))))
    return sorted({min(most, max(1, about * step // 8)) for step in (2, 4, 6, 7, 8, 9, 10, 12, 16)})


def _with_passing(schedule: ConvSchedule) -> ConvSchedule:
    """The same tiles with what passes best of what they share."""
    c, read, shared = schedule.conv, schedule.read_width, schedule.passing.shared
    unit = schedule.shared_values * read
    tile = schedule.pixels * schedule.channels * schedule.sum_width
    spare, own_spare = schedule.memory.bytes - tile, schedule.own_capacity - tile
    if schedule.turns < 1 or own_spare > spare:
        return schedule
    best = Passing(shared, min(c.in_channels, (spare - own_spare) // unit))
    high = c.in_channels if schedule.turns == 1 else c.in_channels // 2
    for group in _groups(schedule, spare):
        lines = schedule.corner_lines(read, schedule.sum_width, group)
        (slope, gone), *others = lines
        # the room grows in steps of the lines: what fits beside the passing values, all, and where lines meet
        limits = [min((free_capacity + gone) // slope for slope, gone in lines) for free_capacity in (own_spare, spare)]
        limits += [(more - gone) // (steep - slope) + i for steep, more in others if steep > slope for i in (0, 1)]
        for turned in {min(high, limit) for limit in limits}:
            capacity = max(own_spare, *(slope * turned - gone for slope, gone in lines))
            if turned > 0 and capacity <= spare:
                most = c.in_channels - (turned if schedule.turns == 1 else 2 * turned)
                result = Passing(shared, min(most, (spare - capacity) // unit), turned, group)
                best = max(best, result, key=lambda p: p.channels)
    return replace(schedule, passing=best) if best.channels else schedule


def _guesses(conv: Conv2d, capacity: int, build: Build) -> Iterator[tuple[float, ConvSchedule]]:
    """Tiles of outputs, and about what they move with what passes, guessed from the room beside them."""
    single = build("outputs", 1, 1, 1, 1)
    read, sums, square, ins, outs = (
        single.read_width,
        single.sum_width,
        conv.kernel**2,
        conv.in_channels,
        conv.out_channels,
    )
    for images, rows, columns, most in _outputs(conv, capacity, read, sums):
        patch, pixels = positions(conv, rows) * positions(conv, columns), rows * columns
        tiles = ceil_div(conv.batch, images) * ceil_div(conv.out_height, rows) * ceil_div(conv.out_width, columns)
        inputs, weights = tiles * images * patch * ins, conv.taps * outs
        fewest = ceil_div(outs, most)
        for rounds in range(fewest, min(outs, fewest + _MORE_ROUNDS) + 1):
            channels = ceil_div(outs, rounds)
            spare = capacity - images * pixels * channels * sums
            spare -= read * (min(images * patch, square * channels) + 1)
            both: tuple[tuple[Operand, int, int], ...] = (
                ("W", square * channels, tiles),
                ("X", images * patch, rounds),
            )
            for shared, unit, turns in both:
                if turns == 1 or spare < 0:
                    continue
                ratio = pixels * sums / read / (square if shared == "W" else patch)  # channels for each of a group
                pivot = read * (patch if shared == "W" else square)
                per_turn = spare / unit / read
                per_turn = max(per_turn, min((spare * ratio / pivot) ** 0.5, ins / 2))
                saved = (turns - 1) / turns * min(1, per_turn / ins)
                traffic = {"X": inputs * rounds, "W": weights * tiles}
                yield (
                    sum(traffic.values()) - saved * traffic[shared],
                    replace(build("outputs", images, rows, columns, channels), passing=Passing(shared)),
                )


def _search(conv: Conv2d, capacity: int, build: Build) -> list[ConvSchedule]:
    """The best schedule of each family that fits, in no order."""
    best: dict[str, ConvSchedule] = {}
    for outcome in _plain(conv, capacity, build):
        known = best.get(outcome.stays)
        if outcome.own_capacity <= capacity and (known is None or outcome.bytes < known.bytes):
            best[outcome.stays] = outcome
    if any(result.elements == conv.compulsory_elements for result in best.values()):
        return [*best.values()]
    for _, item in sorted(_guesses(conv, capacity, build), key=lambda pair: pair[0])[:_LOOK_CLOSELY]:
        if item.own_capacity <= capacity:
            best["outputs"] = min(best["outputs"], _with_passing(item), key=lambda s: s.bytes)
    return [*best.values()]


def conv_schedules(conv: Conv2d, memory: FastMemory) -> list[Candidate]:
    """The best schedule of each family that fits, the one with the least bytes first; some milliseconds.

    Raises
    ------
    InfeasibleError
        Not one value of each operand fits.
    """
    least, unit = 2 * memory.widths.read + memory.widths.partial, "elements" if memory.widths == ALIKE else "bytes"
    if memory.bytes < least:
        raise InfeasibleError(
            f"capacity: got {memory.bytes} {unit}, expected at least {least} (a value each of X, W and Y): no schedule "
            "exists."
        )

    def build(stays: str, images: int, rows: int, columns: int, channels: int) -> ConvSchedule:
        return ConvSchedule(conv, memory, stays, images, rows, columns, channels)

    every: list[Candidate] = [*_search(conv, memory.bytes, build)]
    if conv.overlap == 1:
        every.append(ConvProduct.of(conv, memory))
    return sorted(every, key=lambda s: (s.bytes, s.elements))


@lru_cache(maxsize=1 << 8)
def best_conv_schedule(conv: Conv2d, memory: FastMemory) -> Candidate:
    """The schedule with the least bytes moved among all families."""
    return conv_schedules(conv, memory)[0]
