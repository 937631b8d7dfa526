"""Convolution schedules: outputs, inputs or weights stay, and what overlaps of the input is loaded once.

A convolution is a matrix product of pixels x taps with taps x output channels whose first operand repeats values of X:
neighbouring windows overlap. Where they do not (stride at least the kernel), it is that product, and its schedules are
those of `pebble.schedules.explicit.gemm`. Elsewhere:

- ``outputs``: a tile of Y (images x rows x columns x channels) stays. For one input channel after another, its patch of
  X is there and each weight passes, or the tile's weights of that channel are there and each value of X passes. Of one
  pixel, each value of X is there while its weights pass.
- ``inputs``: rows of X stay, all channels, full width; each output channel is computed in turn, with its sums there
  and each weight passing, or with its weights there, pixel by pixel. The next rows of an image keep what they share
  with the last; what is free keeps weights from band to band. If whole images fit, several stay together.
- ``weights``: all weights of some output channels stay; images pass in strips of columns, kernel rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from pebble.errors import InfeasibleError
from pebble.schedules.explicit.blocks import block_sizes
from pebble.schedules.explicit.gemm import ExplicitSchedule
from pebble.schedules.explicit.gemm_search import best_gemm_schedule
from pebble.units import ceil_div
from pebble.workloads import Conv2d, Gemm

_MOST_SIZES = 32  # of tiles along one direction
Parts = list[tuple[int, int]]  # (size, how many)


def cut(extent: int, size: int) -> Parts:
    """Parts of that size, the last one short."""
    whole, rest = divmod(extent, size)
    return [part for part in ((size, whole), (rest, 1)) if part[0] and part[1]]


def positions(conv: Conv2d, outputs: int) -> int:
    """Input positions along one direction that so many neighbouring outputs read."""
    return (outputs - 1) * min(conv.stride, conv.kernel) + conv.kernel


@dataclass(frozen=True)
class ConvSchedule:
    """A legal schedule and its exact traffic.

    Attributes
    ----------
    conv : Conv2d
    capacity : int
        Values that fast memory holds.
    stays : {"outputs", "inputs", "weights"}
    images, rows, columns, channels : int
        Of a tile of outputs. With ``inputs`` all columns and channels; with ``weights`` all images and rows.
    """

    OPERANDS: ClassVar = ("X", "W", "Y")

    conv: Conv2d
    capacity: int
    stays: str
    images: int
    rows: int
    columns: int
    channels: int

    @property
    def tiles(self) -> int:
        """Of outputs, over images, rows and columns."""
        c = self.conv
        sides = ((c.batch, self.images), (c.out_height, self.rows), (c.out_width, self.columns))
        count = 1
        for extent, size in sides:
            count *= ceil_div(extent, size)
        return count

    @property
    def own_peak(self) -> int:
        """Most values held at once, without weights kept for the next tile."""
        c = self.conv
        tile = self.images * self.rows * self.columns
        patch = positions(c, self.rows) * positions(c, self.columns)
        if self.stays == "outputs":
            held = min(self.images * patch, c.kernel**2 * self.channels) if tile > 1 else 1
            return tile * self.channels + held + 1
        if self.stays == "inputs":
            return self.images * patch * c.in_channels + min(tile, c.taps) + 1
        return c.taps * self.channels + c.in_channels * c.kernel * positions(c, self.columns) + 1

    @property
    def kept_weights(self) -> int:
        """Weights that stay from one tile to the next (``inputs``)."""
        weights = self.conv.taps * self.conv.out_channels
        return min(weights, self.capacity - self.own_peak) if self.stays == "inputs" and self.tiles > 1 else 0

    @property
    def peak_elements(self) -> int:
        """Most values held at once."""
        return self.own_peak + self.kept_weights

    @property
    def loads(self) -> dict[str, int]:
        """Values loaded, by operand."""
        c = self.conv
        weights = c.taps * c.out_channels
        along = {
            "rows": sum(n * positions(c, size) for size, n in cut(c.out_height, self.rows)),
            "columns": sum(n * positions(c, size) for size, n in cut(c.out_width, self.columns)),
        }
        inputs = c.batch * c.in_channels * along["columns"]
        if self.stays == "outputs":
            rounds = ceil_div(c.out_channels, self.channels)
            return {"X": rounds * inputs * along["rows"], "W": self.tiles * weights, "Y": 0}
        inputs *= positions(c, c.out_height)  # rows that two bands share are there already
        if self.stays == "inputs":
            return {"X": inputs, "W": self.tiles * weights - (self.tiles - 1) * self.kept_weights, "Y": 0}
        return {"X": ceil_div(c.out_channels, self.channels) * inputs, "W": weights, "Y": 0}

    @property
    def stores(self) -> dict[str, int]:
        """Values stored, by operand: every output once."""
        return {"X": 0, "W": 0, "Y": self.conv.pixels * self.conv.out_channels}

    @property
    def elements(self) -> int:
        """Loads plus stores, in values."""
        return sum(self.loads.values()) + sum(self.stores.values())

    @property
    def bytes(self) -> int:
        """Loads plus stores, in bytes, each operand at its own width."""
        width = {o.name: o.element_bytes for o in self.conv.operands}
        return sum(count * width[name] for moved in (self.loads, self.stores) for name, count in moved.items())

    @property
    def name(self) -> str:
        """For tables; ``compulsory`` in front when nothing is moved twice."""
        tile = f"{self.images} images x {self.rows} rows x {self.columns} columns x {self.channels} channels"
        text = f"{self.stays} stay, tiles of {tile}"
        return f"compulsory: {text}" if self.elements == self.conv.compulsory_elements else text

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        return {
            "family": f"{self.stays} stay",
            "tile": {
                "images": self.images,
                "rows": self.rows,
                "columns": self.columns,
                "channels": self.channels,
            },
            "loads_elements": dict(self.loads),
            "stores_elements": dict(self.stores),
            "peak_elements": self.peak_elements,
        }


@dataclass(frozen=True)
class ConvProduct:
    """A convolution whose windows do not overlap, as the matrix product that it then is: X is A, W is B, Y is C."""

    conv: Conv2d
    product: ExplicitSchedule

    @classmethod
    def of(cls, conv: Conv2d, capacity: int) -> ConvProduct:
        """The best one known."""
        gemm = Gemm(conv.pixels, conv.out_channels, conv.taps, conv.dtype, conv.out_dtype)
        return cls(conv, best_gemm_schedule(gemm, capacity))

    @property
    def capacity(self) -> int:
        """Values that fast memory holds."""
        return self.product.capacity

    @property
    def loads(self) -> dict[str, int]:
        """Values loaded, by operand."""
        return dict(zip(ConvSchedule.OPERANDS, self.product.loads.values(), strict=True))

    @property
    def stores(self) -> dict[str, int]:
        """Values stored, by operand."""
        return dict(zip(ConvSchedule.OPERANDS, self.product.stores.values(), strict=True))

    @property
    def elements(self) -> int:
        """Loads plus stores, in values."""
        return self.product.elements

    @property
    def bytes(self) -> int:
        """The same in bytes."""
        return self.product.bytes

    @property
    def peak_elements(self) -> int:
        """Most values held at once."""
        return self.product.peak_elements

    @property
    def name(self) -> str:
        """For tables."""
        return f"pixels x channels x taps, {self.product.name}"

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        moved = {"loads_elements": self.loads, "stores_elements": self.stores}
        return {**self.product.to_json(), **moved, "dimensions": ["pixels", "channels", "taps"]}


def _sizes(extent: int) -> list[int]:
    """Sizes of tiles along one direction; of many, some from the largest to one."""
    every = list(block_sizes(extent, extent, 128))
    if len(every) <= _MOST_SIZES:
        return every
    return [every[i * (len(every) - 1) // (_MOST_SIZES - 1)] for i in range(_MOST_SIZES)]


def _tiles(conv: Conv2d, capacity: int) -> Iterator[ConvSchedule]:
    """Tiles worth trying, each with as many channels as fit."""
    height, width, channels = conv.out_height, conv.out_width, conv.out_channels
    square = conv.kernel**2
    for rows in _sizes(height):
        for columns in _sizes(width):
            whole = (rows, columns) == (height, width)
            patch = positions(conv, rows) * positions(conv, columns)
            for images in _sizes(conv.batch) if whole else (1,):
                tile = images * rows * columns
                # the patch is there and weights pass, or the weights are there and the patch passes
                most = max((capacity - 1 - images * patch) // tile, (capacity - 1) // (tile + square))
                most = capacity - 2 if tile == 1 else most
                if most > 0:
                    fewest = ceil_div(channels, min(most, channels))
                    yield ConvSchedule(conv, capacity, "outputs", images, rows, columns, ceil_div(channels, fewest))
                if columns == width:
                    yield ConvSchedule(conv, capacity, "inputs", images, rows, columns, channels)
    for columns in _sizes(width):
        most = (capacity - 1 - conv.in_channels * conv.kernel * positions(conv, columns)) // conv.taps
        if most > 0:
            fewest = ceil_div(channels, min(most, channels))
            yield ConvSchedule(conv, capacity, "weights", conv.batch, height, columns, ceil_div(channels, fewest))


def conv_schedules(conv: Conv2d, capacity: int) -> list[ConvSchedule | ConvProduct]:
    """The best schedule of each family that fits a capacity in values, the one with the least bytes first.

    Cost: some milliseconds. InfeasibleError for a capacity below 3.
    """
    if capacity < 3:
        raise InfeasibleError(
            f"capacity: got {capacity} elements, expected at least 3 (a value each of X, W and Y): no schedule exists."
        )
    best: dict[str, ConvSchedule] = {}
    for found in _tiles(conv, capacity):
        if found.own_peak <= capacity:
            known = best.get(found.stays)
            if known is None or found.bytes < known.bytes:
                best[found.stays] = found
    every: list[ConvSchedule | ConvProduct] = [*best.values()]
    if conv.overlap == 1:
        every.append(ConvProduct.of(conv, capacity))
    return sorted(every, key=lambda s: (s.bytes, s.elements))


@lru_cache(maxsize=1 << 8)
def best_conv_schedule(conv: Conv2d, capacity: int) -> ConvSchedule | ConvProduct:
    """The schedule with the least bytes moved among all families."""
    return conv_schedules(conv, capacity)[0]
