"""Upper bounds for a convolution: tiles of outputs, rows of inputs, or weights stay.

Outputs are cut into tiles of images x rows x columns x channels, the last ones short. A tile reads its patch of X in
every input channel; along one direction p outputs read (p - 1) stride + kernel positions, or p kernel ones when the
windows do not overlap.

- outputs stay: for each input channel the patch is there and the tile's weights of it pass through one place, or the
  other way round; of one pixel each value of X meets one weight a channel. X once for each tile and block of channels,
  W once for each tile.
- inputs stay: the patch of all input channels is there, all columns wide; each output channel is computed with its sums
  of the tile there and its weights passing, or with its weights there and one sum. Rows of X that the next tile of the
  same image reads too stay, so X comes once; weights that are ``kept`` stay for the next tile.
- weights stay: all weights of the channels are there, and of X a strip of columns, as many rows of it as the kernel
  has; rows leave as the window moves down, images pass one by one. W once, X once for each block of channels, which
  take the images forwards and backwards in turn: values of X that are ``kept``, at full width, stay for the next block.

While outputs stay, tiles of pixels that follow each other share weights (``shared`` W), blocks of channels the patch
(X). Of ``resident`` input channels what is shared is there all along and the other operand passes through one place.
``turned`` channels come last in one tile and first in the next, never the same ones at two turns that follow: the tile
is completed in groups of ``group`` images (whole ones, so that groups share no value of X; rows, of a tile of one
image, and rows of X that two groups read stay for the second) or channels. For each group the other operand's part is
there, and in the first one each unit (one channel of W, one row of one image of X) loads what stays and is stored. The
next tile begins as the mirror image. So the room beside the tile at unit u is the group's part + what u units loaded -
what u - 1 units let go, which is most at the first or last unit, or where images begin or end.

In bytes an output counts the width of a partial sum until it is stored, X and W theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .reading import RefusedError, array, choice, fields, integer
from .statement import ALIKE, ClaimedWidths
from .upper import ScheduleTraffic, fits

_NOTHING = {"shared": "W", "resident": 0, "turned": 0, "group": 0}


@dataclass(frozen=True)
class _Layer:
    """A convolution: its sides, and what windows that overlap read."""

    batch: int
    ins: int
    outs: int
    height: int  #: of the output
    width: int
    kernel: int
    stride: int

    @classmethod
    def of(cls, size: dict[str, int]) -> _Layer:
        kernel, stride = size["kernel"], size["stride"]
        height, width = (1 + (size[x] - kernel) // stride for x in ("height", "width"))
        return cls(size["batch"], size["in_channels"], size["out_channels"], height, width, kernel, stride)

    def reads(self, outputs: int) -> int:
        """Positions along one direction."""
        return outputs * self.kernel if self.stride >= self.kernel else self.kernel + (outputs - 1) * self.stride

    def reads_in_all(self, extent: int, part: int) -> int:
        """The same of parts one by one, the last one short."""
        last = extent - (extent - 1) // part * part
        return (extent - 1) // part * self.reads(part) + self.reads(last)


def check_conv(
    size: dict[str, int], capacity: int, schedule: Any, at: str, widths: ClaimedWidths = ALIKE
) -> ScheduleTraffic:
    """Traffic and room of a convolution.

    Parameters
    ----------
    size : dict
        batch, in_channels, out_channels, height, width, kernel and stride.
    capacity : int
        What fits, as ``widths`` count.
    schedule : object
        What ``stays``, the ``tile`` (images, rows, columns, channels), what is ``kept`` for the next one, and what is
        ``passing`` where outputs stay.
    """
    fields(schedule, at, ("kind", "stays", "tile", "kept"), ("passing",))
    stays = choice(schedule["stays"], f"{at}.stays", ("outputs", "inputs", "weights"))
    layer = _Layer.of(size)
    whole = (layer.batch, layer.height, layer.width, layer.outs)
    spec = array(schedule["tile"], f"{at}.tile", 4, 4)
    tile = tuple(integer(x, f"{at}.tile[{i}]", 1, whole[i]) for i, x in enumerate(spec))
    images, rows, columns, channels = tile
    ins, square, read, sums = layer.ins, layer.kernel**2, widths.read, widths.partial
    number = 1
    for extent, part in zip(whole[:3], tile[:3], strict=True):
        number *= -(-extent // part)
    rounds, weights = -(-layer.outs // channels), ins * layer.outs * square
    pixels, patch = images * rows * columns, images * layer.reads(rows) * layer.reads(columns)
    carried = integer(schedule["kept"], f"{at}.kept", 0, weights if stays == "inputs" else patch * ins)
    if carried and (stays == "outputs" or (number == 1 and stays == "inputs") or (rounds == 1 and stays == "weights")):
        raise RefusedError(f"{at}.kept", "values are kept for a step that does not occur")
    if "passing" in schedule and stays != "outputs":
        raise RefusedError(f"{at}.passing", "it is defined where outputs stay")
    strips = layer.batch * ins * layer.reads_in_all(layer.width, columns)
    if stays == "outputs":
        patches = strips * layer.reads_in_all(layer.height, rows)
        loads = {"X": rounds * patches, "W": number * weights}
        passing = schedule.get("passing", _NOTHING)
        shared, turns, passed = _passing(layer, tile, number, rounds, passing, f"{at}.passing")
        loads[shared] -= turns * passed * ({"X": patches, "W": weights}[shared] // ins)
        held = _capacity_of_outputs(layer, tile, passing, read, sums)
    elif stays == "inputs":
        if columns != layer.width or channels != layer.outs or (images > 1 and rows != layer.height):
            raise RefusedError(f"{at}.tile", "rows of X stay at full width, for all channels; images stay whole")
        loads = {"X": strips * layer.reads(layer.height), "W": number * weights - (number - 1) * carried}
        one_pass = pixels * sums + read <= ins * square * read + sums
        held = (patch * ins + carried) * read + (pixels * sums + read if one_pass else ins * square * read + sums)
    else:
        if images != layer.batch or rows != layer.height:
            raise RefusedError(f"{at}.tile", "while weights stay, all rows of all images pass")
        if carried and columns != layer.width:
            raise RefusedError(f"{at}.kept", "values of X are kept at full width only")
        loads = {"X": rounds * strips * layer.reads(layer.height) - (rounds - 1) * carried, "W": weights}
        there = ins * square * channels + ins * layer.kernel * layer.reads(columns) + carried
        held = there * read + sums
    fits(held, capacity, widths, at)
    return ScheduleTraffic({**loads, "Y": 0}, {"Y": layer.batch * layer.height * layer.width * layer.outs}, held)


def _passing(
    layer: _Layer, tile: tuple[int, ...], number: int, rounds: int, passing: Any, at: str
) -> tuple[str, int, int]:
    """What is shared, how often a tile follows another that shares it, and input channels of it that pass."""
    fields(passing, at, ("shared", "resident", "turned", "group"))
    shared = choice(passing["shared"], f"{at}.shared", ("W", "X"))
    resident, turned = (integer(passing[x], f"{at}.{x}", 0, layer.ins) for x in ("resident", "turned"))
    turns = (number if shared == "W" else rounds) - 1
    if resident + turned and not turns:
        raise RefusedError(at, "channels stay for a step that does not occur")
    if resident + (turned if turns <= 1 else 2 * turned) > layer.ins:
        raise RefusedError(f"{at}.turned", "a channel would pass at two turns that follow each other")
    images, rows, columns, channels = tile
    if shared == "W":  # the last tile is the smallest, of images or of the rows of one
        height = -(-layer.height // rows)
        smallest = layer.batch - (number - 1) * images if images > 1 else layer.height - (height - 1) * rows
        if turned and images > 1 and (rows, columns) != (layer.height, layer.width):
            raise RefusedError(f"{at}.turned", "of several images, groups of whole ones only share no value of X")
    else:
        smallest = layer.outs - (rounds - 1) * channels
    integer(passing["group"], f"{at}.group", min(turned, 1), smallest if turned else 0)
    return shared, turns, resident + turned


def _capacity_of_outputs(layer: _Layer, tile: tuple[int, ...], passing: dict[str, Any], read: int, sums: int) -> int:
    """The most that a tile of outputs holds, with what passes."""
    images, rows, columns, channels = tile
    resident, turned, group = (int(passing[x]) for x in ("resident", "turned", "group"))
    square = layer.kernel**2
    high, wide = layer.reads(rows), layer.reads(columns)
    pixels, patch = images * rows * columns, images * high * wide
    shared = square * channels if passing["shared"] == "W" else patch
    extra = [read * (min(patch, square * channels) + 1 if pixels > 1 else 2)]
    if turned and passing["shared"] == "W":  # units are channels of W; each is stored for all images of the group
        several = images > 1
        part = read * turned * (group * high * wide if several else layer.reads(group) * wide)
        let_go = sums * group * columns * (rows if several else 1)
        extra += [part + read * turned * square * unit - let_go * (unit - 1) for unit in (1, channels)]
    elif turned:  # units are rows of images, stored in all channels of the group
        part, let_go = read * turned * group * square, sums * group * columns
        for image in (0, images - 1):
            for row in (0, rows - 1):
                loaded = read * turned * wide * (image * high + layer.reads(row + 1))
                extra.append(part + loaded - let_go * (image * rows + row))
    return pixels * channels * sums + read * resident * shared + max(extra)
