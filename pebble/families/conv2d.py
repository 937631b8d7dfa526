r"""Two-dimensional convolution without padding.

**Convolution** without padding: pixels x out_channels x taps with taps = in_channels kernel\ :sup:`2`. The row of pixel
:math:`p` and the column of tap :math:`t` meet in one input value, and one input value is met by at most :math:`R =
\lceil \text{kernel} / \text{stride} \rceil^2` pairs: along one direction, the pixels :math:`y` with
:math:`y\,\text{stride} \le i < y\,\text{stride} + \text{kernel}`. So it is a GEMM with overlap :math:`R`. For
Theorem 7 inputs are told apart by the number of pairs that they stand for: fewer at the borders.
"""

from __future__ import annotations

from collections import Counter
from itertools import product

from pebble.bounds import Accounting, Box, ByLines, Formula, LineProblem, Lines, Piece
from pebble.bounds.published import convolution_formula
from pebble.cdag.catalogue import DagFamily
from pebble.cdag.products import conv2d_dag
from pebble.families.family import Family
from pebble.families.schedules import Explicit
from pebble.schedules.explicit.conv2d_search import best_conv_schedule
from pebble.units import ceil_div
from pebble.workloads import Conv2d
from pebble.workloads.parameters import Parameter, needed, optional
from pebble.workloads.widths import FastMemory

_MOST_OVERLAP = 7  # outputs along one direction that read one input: above, the kinds of inputs are too many
_WIDEST = 64  # positions of a kernel that are counted one by one


class Conv2dFamily(Family[Conv2d]):
    """``conv2d``."""

    name = "conv2d"
    shape = Conv2d
    computes = "2-D convolution without padding: bounds and schedules under explicit control"
    example = "conv2d --batch 32 --in-channels 256 --out-channels 256 --height 56 --width 56 --kernel 3"
    parameters = (
        Parameter("--batch", "count", "independent images (1)", default=1),
        *needed(
            in_channels="channels of the input",
            out_channels="channels of the output",
            height="rows of the input",
            width="columns of the input",
            kernel="rows and columns of the kernel",
        ),
        *optional(stride="distance between outputs, in inputs (1)"),
    )

    def accounting(self, workload: Conv2d) -> Accounting:
        box = Box(workload.pixels, workload.out_channels, workload.taps, workload.overlap)
        method = "segment accounting for a convolution"
        return Accounting(
            workload,
            (Piece("convolution", method, box, (workload.multiply_adds,), whole_numbers=False), *_lines(workload)),
            game="the convolution, one multiply-add per output pixel, output channel and tap, in any order",
            symbols={"pixels": box.rows, "channels": box.cols, "taps": box.depth, "R": box.overlap},
            instance={"pixels": workload.pixels, "taps": workload.taps, "overlap": workload.overlap},
        )

    def published(self, workload: Conv2d, capacity: int, processors: int = 1) -> tuple[Formula, ...]:
        known = convolution_formula(workload.multiply_adds, workload.overlap, capacity)
        return *super().published(workload, capacity), known

    def best_schedule(self, workload: Conv2d, memory: FastMemory) -> Explicit:
        return best_conv_schedule(workload, memory)

    @property
    def dag(self) -> DagFamily:
        example = "--batch 1 --in-channels 1 --out-channels 1 --height 3 --width 3 --kernel 2"
        return self.dag_of(conv2d_dag, "in-channels x out-channels", example, "convolution without padding")


def _lines(workload: Conv2d) -> tuple[ByLines, ...]:
    """Inputs by how many pairs of a pixel and a tap they stand for; nothing where the kernel is wide."""
    if workload.overlap > _MOST_OVERLAP**2 or workload.kernel > _WIDEST:
        return ()
    met: Counter[int] = Counter()
    along = [_readers(outputs, workload.kernel, workload.stride) for outputs in workload.out_sides]
    for (y, rows), (x, cols) in product(*(counted.items() for counted in along)):
        met[y * x] += rows * cols
    values, channels = workload.batch * workload.in_channels, workload.out_channels
    inputs = (
        Lines(f"X, {pairs} times", values * positions, channels * pairs, overlap=pairs)
        for pairs, positions in sorted(met.items())
    )
    weights = Lines("W", channels * workload.taps, workload.pixels)
    outputs = Lines("Y", channels * workload.pixels, workload.taps, again=2)
    return (ByLines(LineProblem("convolution", (*inputs, weights, outputs), workload.multiply_adds)),)


def _readers(outputs: int, kernel: int, stride: int) -> Counter[int]:
    """Positions along one direction by the number of outputs that read them.

    Examples
    --------
    >>> sorted(_readers(4, 3, 1).items())  # the outer two once, the next two twice, two in the middle three times
    [(1, 2), (2, 2), (3, 2)]
    """
    if stride >= kernel:
        return Counter({1: outputs * kernel})
    few = min(outputs, 2 * ceil_div(kernel, stride))
    result = Counter(Counter(y * stride + tap for y in range(few) for tap in range(kernel)).values())
    for first in range(stride):  # each further output adds one period to the middle
        result[ceil_div(kernel - first, stride)] += outputs - few
    return +result


CONV2D = Conv2dFamily()
