"""Attention in two kernels and none for the softmax: the maximum and sum of each row pass from one to the other.

The first kernel computes the scores in bands of rows. All scores of a row are complete while its band runs, so that the
maximum and sum of the row stay in fast memory until they are, and are then stored: two values a row. The second kernel
computes outputs in bands of rows of its own; while a band runs its rows' two values are there, and each score becomes
its probability in its place when it is loaded. So a score is stored once, complete, and loaded as often as the second
product says; a kernel for the softmax between the products would load and store it once more. The bands of the two
have their own heights: rows of Q are narrower than the partial sums of O.

What the rows' values take is set aside for the tallest band, and the products are bands of `gemm` in the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pebble.schedules.explicit.blocks import block_sizes
from pebble.schedules.explicit.gemm import BandedProduct
from pebble.schedules.explicit.gemm_search import banded_products
from pebble.workloads import Gemm
from pebble.workloads.widths import FastMemory, Widths

FAMILY = "unfused with row state"
PASSED = "row state"  # as an operand
STATE = 2  # values of a row: maximum and sum
_FEW_HEIGHTS = 12  # of bands, for each of which the state is set aside
_NARROWINGS = 3  # how often what is set aside is sought where there are more


@dataclass(frozen=True)
class RowState:
    """The two kernels, each in the room that is left beside its rows' state.

    Attributes
    ----------
    scores, outputs : BandedProduct
        Q (m x k) times K (k x f), and scores (m x f) times V (f x l), both in bands of m.
    room : FastMemory
        The memory.
    state : bool
        Whether the rows' state takes room and moves.
    """

    scores: BandedProduct
    outputs: BandedProduct
    memory: FastMemory
    state: bool

    @property
    def kernels(self) -> tuple[BandedProduct, BandedProduct]:
        """Both products, in their order."""
        return self.scores, self.outputs

    @property
    def values(self) -> int:
        """Of the rows' state, stored by the first kernel and loaded by the second."""
        return STATE * self.scores.gemm.m if self.state else 0

    @property
    def bytes(self) -> int:
        """What the transfers count."""
        return self.scores.bytes + self.outputs.bytes + 2 * self.memory.state_cost * self.values

    @property
    def peak_elements(self) -> int:
        """Most values held at once, the rows' state with them."""
        state = STATE if self.state else 0
        return max(kernel.peak_elements + state * tallest(kernel) for kernel in self.kernels)

    @property
    def name(self) -> str:
        """For tables."""
        return f"{self.scores.name}; maximum and sum of each row; {self.outputs.name}"


def tallest(kernel: BandedProduct) -> int:
    """Rows of its largest band."""
    return max(band.width for band in kernel.bands)


def best_row_state(scores: Gemm, outputs: Gemm, memory: FastMemory, state: bool = True) -> RowState | None:
    """The kernels that move least; None where one does not fit.

    Parameters
    ----------
    scores, outputs : Gemm
        The products of one group of heads.
    memory : FastMemory
        The memory.
    state : bool
        Whether the rows' state takes room and moves.

    Notes
    -----
    Cost: some milliseconds.
    """
    results: list[BandedProduct] = []
    for gemm, inside in ((scores, memory.handing_on), (outputs, memory)):
        fit = _beside_state(gemm, inside, memory) if state else iter(_in_bands(gemm, inside, memory, 0)[:1])
        best = min(fit, key=lambda single: (single.bytes, single.elements), default=None)
        if best is None:
            return None
        results.append(best)
    return RowState(results[0], results[1], memory, state)


def _beside_state(gemm: Gemm, inside: FastMemory, memory: FastMemory) -> Iterator[BandedProduct]:
    """Bands of rows beside which their state fits.

    What is set aside is for each height that bands of few rows can have, else as near as some steps come to what is
    taken.
    """
    best = next(iter(_in_bands(gemm, inside, memory, 0)), None)
    if best is None:
        return
    too_few, enough, rows = 0, gemm.m + 1, tallest(best)
    heights = list(block_sizes(gemm.m, rows))
    if len(heights) <= _FEW_HEIGHTS:
        beside = ((height, band) for height in heights for band in _in_bands(gemm, inside, memory, height)[:1])
        yield from (item for height, item in beside if tallest(item) <= height)
        return
    for _ in range(_NARROWINGS):
        best = next(iter(_in_bands(gemm, inside, memory, rows)), None)
        if best is not None and tallest(best) > rows:
            too_few = rows
        else:
            enough = rows
            if best is not None:
                yield best
        # bands as tall as all of the room lets them be take too much, and those beside their state leave some
        rows = tallest(best) if best is not None else 0
        rows = rows if too_few < rows < enough else (too_few + enough) // 2
        if not too_few < rows < enough:
            return


def _in_bands(gemm: Gemm, inside: FastMemory, memory: FastMemory, rows: int) -> list[BandedProduct]:
    """Bands along m beside the state of so many rows, best first: those that are not taller come before others."""

    def left(size: int, of: Widths) -> int:
        return size - STATE * max(of.hidden, of.partial) * rows

    values = None if memory.values is None else memory.values - STATE * rows
    beside = replace(inside, bytes=left(memory.bytes, memory.widths), values=values)
    if beside.bytes < 2 * inside.widths.read + inside.widths.partial or (values is not None and values < 3):
        return []
    result = banded_products(gemm, beside, "m")
    return sorted(result, key=lambda single: tallest(single) > rows)
