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
  has; rows leave as the window moves down, images pass one by one. W once, X once for each block of channels.
"""

from __future__ import annotations

from typing import Any

from .reading import RefusedError, array, choice, fields, integer
from .upper import Moved


def check_conv(size: dict[str, int], capacity: int, schedule: Any, at: str) -> Moved:
    """Traffic and room of a convolution.

    Parameters
    ----------
    size : dict
        batch, in_channels, out_channels, height, width, kernel and stride.
    capacity : int
        Values that fit.
    schedule : object
        What ``stays``, the ``tile`` (images, rows, columns, channels) and the weights ``kept`` for the next tile.
    """
    fields(schedule, at, ("kind", "stays", "tile", "kept"))
    stays = choice(schedule["stays"], f"{at}.stays", ("outputs", "inputs", "weights"))
    kernel, stride, ins, outs = (size[x] for x in ("kernel", "stride", "in_channels", "out_channels"))
    height, width = (1 + (size[x] - kernel) // stride for x in ("height", "width"))
    whole = (size["batch"], height, width, outs)
    told = array(schedule["tile"], f"{at}.tile", 4, 4)
    tile = tuple(integer(x, f"{at}.tile[{i}]", 1, whole[i]) for i, x in enumerate(told))
    images, rows, columns, channels = tile
    kept = integer(schedule["kept"], f"{at}.kept", 0, ins * outs * kernel**2)

    def reads(outputs: int) -> int:
        return outputs * kernel if stride >= kernel else kernel + (outputs - 1) * stride

    def reads_in_all(extent: int, part: int) -> int:
        last = extent - (extent - 1) // part * part
        return (extent - 1) // part * reads(part) + reads(last)

    number = 1
    for extent, part in zip(whole[:3], tile[:3], strict=True):
        number *= -(-extent // part)
    rounds, weights = -(-outs // channels), ins * outs * kernel**2
    sums, patch = images * rows * columns, images * reads(rows) * reads(columns)
    strips = size["batch"] * ins * reads_in_all(width, columns)
    if kept and (stays != "inputs" or number == 1):
        raise RefusedError(f"{at}.kept", "weights are kept for a step that does not occur")
    if stays == "outputs":
        loads = {"X": rounds * strips * reads_in_all(height, rows), "W": number * weights}
        peak = sums * channels + (min(patch, kernel**2 * channels) if sums > 1 else 1) + 1
    elif stays == "inputs":
        if columns != width or channels != outs or (images > 1 and rows != height):
            raise RefusedError(f"{at}.tile", "rows of X stay at full width, for all channels; images stay whole")
        loads = {"X": strips * reads(height), "W": number * weights - (number - 1) * kept}
        peak = patch * ins + min(sums, ins * kernel**2) + 1 + kept
    else:
        if images != size["batch"] or rows != height:
            raise RefusedError(f"{at}.tile", "while weights stay, all rows of all images pass")
        loads = {"X": rounds * strips * reads(height), "W": weights}
        peak = ins * kernel**2 * channels + ins * kernel * reads(columns) + 1
    if peak > capacity:
        raise RefusedError(at, f"it holds {peak:,} values, the capacity is {capacity:,}")
    return Moved({**loads, "Y": 0}, {"Y": size["batch"] * height * width * outs}, peak)
