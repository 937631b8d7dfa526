"""Convolution schedules: outputs, inputs or weights stay, and what overlaps of the input is loaded once.

A convolution is a matrix product of pixels x taps with taps x output channels whose first operand repeats values of X:
neighbouring windows overlap. Where they do not (stride at least the kernel), it is that product, and its schedules are
those of `pebble.schedules.explicit.gemm`. Elsewhere:

- ``outputs``: a tile of Y (images x rows x columns x channels) stays. For one input channel after another, its patch of
  X is there and each weight passes, or the tile's weights of that channel are there and each value of X passes. Of one
  pixel, each value of X is there while its weights pass. What the next tile needs too may stay (`Passing`).
- ``inputs``: rows of X stay, all channels, full width; each output channel is computed in turn, with its sums there
  and each weight passing, or with its weights there, pixel by pixel. The next rows of an image keep what they share
  with the last; what is free keeps weights from band to band. If whole images fit, several stay together.
- ``weights``: all weights of some output channels stay; images pass in strips of columns, kernel rows at a time. What
  is free keeps the last values of X for the next channels, which take the images in the other order.

Each value counts what it takes of the memory. Where an output that is not complete is wider than an input, one that is
let go makes room for more than one value of what stays.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import ClassVar, Literal

from pebble.schedules.explicit.gemm_search import ExplicitProduct, best_gemm_schedule
from pebble.units import ceil_div
from pebble.workloads import Conv2d, Gemm
from pebble.workloads.widths import ALIKE, FastMemory

Operand = Literal["W", "X"]
Parts = list[tuple[int, int]]  # (size, how many)


def cut(extent: int, size: int) -> Parts:
    """Parts of that size, the last one short."""
    whole, rest = divmod(extent, size)
    return [part for part in ((size, whole), (rest, 1)) if part[0] and part[1]]


def positions(conv: Conv2d, outputs: int) -> int:
    """Input positions along one direction that so many neighbouring outputs read."""
    return (outputs - 1) * min(conv.stride, conv.kernel) + conv.kernel


@dataclass(frozen=True)
class Passing:
    """What one tile of outputs leaves to the next, in input channels.

    Tiles of pixels that follow each other share weights, blocks of output channels share the patch of X. Of what is
    shared, ``resident`` channels are there all the time. Another ``turned`` ones pass at each turn in the place of the
    tile (`corner`): it is computed in groups of ``group`` images (rows, of a tile of one image) or output channels, for
    each the other operand's part of these input channels is there, and in the first one each output that is complete
    makes room for more of what stays. The next tile begins in the mirror image. No channel passes at two turns that
    follow each other.
    """

    shared: Operand
    resident: int = 0
    turned: int = 0
    group: int = 0

    @property
    def channels(self) -> int:
        """Input channels of what is shared that are not loaded again."""
        return self.resident + self.turned


NOTHING = Passing("W")


@dataclass(frozen=True)
class ConvSchedule:
    """A legal schedule in tiles, and its exact traffic.

    Attributes
    ----------
    conv : Conv2d
    memory : FastMemory
        The memory.
    stays : {"outputs", "inputs", "weights"}
    images, rows, columns, channels : int
        Of a tile of outputs. With ``inputs`` all columns and channels; with ``weights`` all images and rows.
    passing : Passing
        What stays from one tile to the next, with ``outputs``.
    """

    OPERANDS: ClassVar = ("X", "W", "Y")

    conv: Conv2d
    memory: FastMemory
    stays: str
    images: int
    rows: int
    columns: int
    channels: int
    passing: Passing = NOTHING

    @property
    def read_width(self) -> int:
        """What an input takes of the memory."""
        return self.memory.widths.read

    @property
    def sum_width(self) -> int:
        """What an output takes of it until it is complete."""
        return self.memory.widths.partial

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
    def rounds(self) -> int:
        """Blocks of output channels."""
        return ceil_div(self.conv.out_channels, self.channels)

    @property
    def pixels(self) -> int:
        """Outputs of a tile in one channel."""
        return self.images * self.rows * self.columns

    @property
    def patch(self) -> int:
        """Values of X that a tile reads in one channel."""
        return self.images * positions(self.conv, self.rows) * positions(self.conv, self.columns)

    @property
    def shared_values(self) -> int:
        """What consecutive tiles share in one input channel."""
        return self.conv.kernel**2 * self.channels if self.passing.shared == "W" else self.patch

    @property
    def turns(self) -> int:
        """How often a tile follows another with which it shares something."""
        return (self.tiles if self.passing.shared == "W" else self.rounds) - 1

    @property
    def sums_stay(self) -> bool:
        """With ``inputs``: whether sums of a channel are there while weights pass, or its weights, sum by sum."""
        read, sums = self.read_width, self.sum_width
        return self.pixels * sums + read <= self.conv.taps * read + sums

    @property
    def own_capacity(self) -> int:
        """What is taken at most, in units of the memory, without weights kept for the next tile (``inputs``)."""
        return self._held(self.read_width, self.sum_width)

    def _held(self, read: int, sums: int) -> int:
        """The most that is held, where an input counts ``read`` and an output that is not complete ``sums``."""
        c = self.conv
        if self.stays == "inputs":
            computing = self.pixels * sums + read if self.sums_stay else c.taps * read + sums
            return self.patch * c.in_channels * read + computing
        if self.stays == "weights":
            return (c.taps * self.channels + c.in_channels * c.kernel * positions(c, self.columns)) * read + sums
        held = min(self.patch, c.kernel**2 * self.channels) if self.pixels > 1 else 1
        extra = max((held + 1) * read, self._corner(read, sums))
        return self.pixels * self.channels * sums + self.passing.resident * self.shared_values * read + extra

    def _corner(self, read: int, sums: int) -> int:
        p = self.passing
        return max(slope * p.turned - gone for slope, gone in self.corner_lines(read, sums, p.group)) if p.turned else 0

    def corner_lines(self, read: int, sums: int, group: int) -> list[tuple[int, int]]:
        """What is held beside the tile and what is resident while channels come to stay, or leave, in such groups.

        The most of ``slope turned - gone``. Outputs of the first group are let go unit by unit (of one output channel,
        or of one row of one image), each after what stays was loaded for it: the room is most at the first or the last
        of them, or where an image begins.
        """
        c, square = self.conv, self.conv.kernel**2
        if self.passing.shared == "W":
            if self.images > 1:
                patch, pixels = group * self.patch // self.images, group * self.pixels // self.images
            else:
                patch, pixels = positions(c, group) * positions(c, self.columns), group * self.columns
            return [(read * (patch + square * n), sums * pixels * (n - 1)) for n in sorted({1, self.channels})]
        across, image_rows = positions(c, self.columns), positions(c, self.rows)
        return [
            (
                read * (square * group + across * (image * image_rows + positions(c, row + 1))),
                sums * group * self.columns * (image * self.rows + row),
            )
            for image in sorted({0, self.images - 1})
            for row in sorted({0, self.rows - 1})
        ]

    @property
    def carried_weights(self) -> int:
        """Weights that stay from one tile to the next (``inputs``)."""
        weights = self.conv.taps * self.conv.out_channels
        free = (self.memory.bytes - self.own_capacity) // self.read_width
        return min(weights, free) if self.stays == "inputs" and self.tiles > 1 else 0

    @property
    def carried_inputs(self) -> int:
        """Values of X that stay from one block of channels to the next (``weights``)."""
        if self.stays != "weights" or self.rounds == 1 or self.columns < self.conv.out_width:
            return 0
        return min(self.patch * self.conv.in_channels, (self.memory.bytes - self.own_capacity) // self.read_width)

    @property
    def carried(self) -> int:
        """Values that stay from one tile to the next where inputs or weights stay."""
        return self.carried_weights + self.carried_inputs

    @property
    def peak_elements(self) -> int:
        """Most values held at once."""
        return self._held(1, 1) + self.carried

    @property
    def loads(self) -> dict[str, int]:
        """Values loaded, by operand."""
        c, p = self.conv, self.passing
        weights = c.taps * c.out_channels
        along = {
            "rows": sum(n * positions(c, size) for size, n in cut(c.out_height, self.rows)),
            "columns": sum(n * positions(c, size) for size, n in cut(c.out_width, self.columns)),
        }
        strips = c.batch * along["columns"]
        if self.stays == "outputs":
            patches = strips * along["rows"]
            loads = {"X": self.rounds * c.in_channels * patches, "W": self.tiles * weights, "Y": 0}
            passed = c.kernel**2 * c.out_channels if p.shared == "W" else patches
            return {**loads, p.shared: loads[p.shared] - self.turns * p.channels * passed}
        inputs = c.in_channels * strips * positions(c, c.out_height)  # rows that two bands share are there already
        if self.stays == "inputs":
            return {"X": inputs, "W": self.tiles * weights - (self.tiles - 1) * self.carried_weights, "Y": 0}
        return {"X": self.rounds * inputs - (self.rounds - 1) * self.carried_inputs, "W": weights, "Y": 0}

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
        """What the transfers count: inputs, and each output once, complete."""
        cost, loads = self.memory.cost, self.loads
        return cost.read * (loads["X"] + loads["W"]) + cost.written * self.stores["Y"]

    @property
    def name(self) -> str:
        """For tables; ``compulsory`` in front when nothing is moved twice."""
        tile = f"{self.images} images x {self.rows} rows x {self.columns} columns x {self.channels} channels"
        text = f"{self.stays} stay, tiles of {tile}"
        if self.passing.channels:
            of_what = f"{self.passing.channels} of {self.conv.in_channels} input channels of {self.passing.shared}"
            text += f", {of_what} stay for the next tile"
        return f"compulsory: {text}" if self.elements == self.conv.compulsory_elements else text

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        fields: dict[str, object] = {
            "family": f"{self.stays} stay",
            "tile": {
                "images": self.images,
                "rows": self.rows,
                "columns": self.columns,
                "channels": self.channels,
            },
            **({"passing": asdict(self.passing)} if self.passing.channels else {}),
            "loads_elements": dict(self.loads),
            "stores_elements": dict(self.stores),
            "peak_elements": self.peak_elements,
        }
        return fields if self.memory.widths == ALIKE else fields | {"widths_bytes": self.memory.widths.to_json()}


@dataclass(frozen=True)
class ConvProduct:
    """A convolution whose windows do not overlap, as the matrix product that it then is: X is A, W is B, Y is C."""

    conv: Conv2d
    product: ExplicitProduct

    @classmethod
    def of(cls, conv: Conv2d, memory: FastMemory) -> ConvProduct:
        """The best one known."""
        gemm = Gemm(conv.pixels, conv.out_channels, conv.taps, conv.dtype, conv.out_dtype)
        return cls(conv, best_gemm_schedule(gemm, memory))

    @property
    def memory(self) -> FastMemory:
        """The memory."""
        return self.product.memory

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
        traffic = {"loads_elements": self.loads, "stores_elements": self.stores}
        return {**self.product.to_json(), **traffic, "dimensions": ["pixels", "channels", "taps"]}
