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

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from pebble.schedules.explicit.blocks import block_sizes
from pebble.schedules.explicit.gemm import BandedProduct, ExplicitSchedule
from pebble.schedules.explicit.gemm_search import search_bands
from pebble.schedules.explicit.wide_gemm import WideBands
from pebble.workloads import Gemm
from pebble.workloads.widths import Room, Widths

S = TypeVar("S", bound=BandedProduct)

FAMILY = "unfused with row state"
PASSED = "row state"  # as an operand
STATE = 2  # values of a row: maximum and sum
_FEW_HEIGHTS = 12  # of bands, for each of which the state is set aside
_NARROWINGS = 3  # how often what is set aside is sought where there are more


@dataclass(frozen=True)
class RowState:
    """The two kernels in a memory of bytes, each in the room that is left beside its rows' state.

    Attributes
    ----------
    scores, outputs : WideBands
        Q (m x k) times K (k x f), and scores (m x f) times V (f x l), both in bands of m.
    each_bytes : int
        Of the maximum and sum of a row together; 0 where they take no room.
    """

    scores: WideBands
    outputs: WideBands
    each_bytes: int

    @property
    def kernels(self) -> tuple[WideBands, WideBands]:
        """Both products, in their order."""
        return self.scores, self.outputs

    @property
    def values(self) -> int:
        """Of the rows' state, stored by the first kernel and loaded by the second."""
        return STATE * self.scores.gemm.m if self.each_bytes else 0

    @property
    def bytes(self) -> int:
        """Loads plus stores, in bytes."""
        return self.scores.bytes + self.outputs.bytes + 2 * self.each_bytes * self.scores.gemm.m

    @property
    def peak_elements(self) -> int:
        """Most values held at once, the rows' state with them."""
        state = STATE if self.each_bytes else 0
        return max(kernel.peak_elements + state * tallest(kernel) for kernel in self.kernels)

    @property
    def name(self) -> str:
        """For tables."""
        return f"{self.scores.name}; maximum and sum of each row; {self.outputs.name}"


def tallest(kernel: BandedProduct) -> int:
    """Rows of its largest band."""
    return max(band.width for band in kernel.bands)


def best_row_state(scores: Gemm, outputs: Gemm, room: Room, state: bool = True) -> RowState | None:
    """The kernels that move least in a memory of bytes; None where one does not fit.

    Parameters
    ----------
    scores, outputs : Gemm
        The products of one group of heads.
    room : Room
        The memory.
    state : bool
        Whether the rows' state takes room and moves.

    Notes
    -----
    Cost: some milliseconds.
    """
    widths = room.widths
    each = STATE * max(widths.hidden, widths.partial) if state else 0
    inside = replace(room, widths=Widths(widths.read, widths.hidden, widths.hidden, widths.read))
    found = [
        _best(gemm.m, partial(_in_bytes, gemm, one, each), state) for gemm, one in ((scores, inside), (outputs, room))
    ]
    first, last = found
    return None if first is None or last is None else RowState(first, last, each)


def best_row_state_in_values(
    scores: Gemm, outputs: Gemm, capacity: int, state: bool = True
) -> tuple[ExplicitSchedule, ExplicitSchedule] | None:
    """The two kernels in a memory of values, each in what is left beside two values for each row of a band."""
    found = [_best(gemm.m, partial(_in_values, gemm, capacity, state), state) for gemm in (scores, outputs)]
    first, last = found
    return None if first is None or last is None else (first, last)


def _best(m: int, bands: Callable[[int], S | None], state: bool) -> S | None:
    """Of m rows, with bands as they are beside the state of so many."""
    found = _beside_state(m, bands) if state else (one for one in (bands(0),) if one is not None)
    return min(found, key=lambda s: (s.bytes, s.elements), default=None)


def _beside_state(m: int, bands: Callable[[int], S | None]) -> Iterator[S]:
    """Bands of rows beside which their state fits.

    What is set aside is for each height that bands of few rows can have, else as near as some steps come to what is
    taken.
    """
    best = bands(0)
    if best is None:
        return
    too_few, enough, rows = 0, m + 1, tallest(best)
    heights = list(block_sizes(m, rows))
    if len(heights) <= _FEW_HEIGHTS:
        beside = ((height, bands(height)) for height in heights)
        yield from (found for height, found in beside if found is not None and tallest(found) <= height)
        return
    for _ in range(_NARROWINGS):
        best = bands(rows)
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


def _in_bytes(gemm: Gemm, room: Room, each: int, rows: int) -> WideBands | None:
    """The best bands along m beside the state of so many rows."""
    left, values, widths = room.bytes - each * rows, room.values, room.widths
    if values is not None:
        values -= STATE * rows
    if left < 2 * widths.read + widths.partial or (values is not None and values < 3):
        return None
    empty = WideBands(gemm, left, "m", (), replace(room, bytes=left, values=values))
    return _not_above(search_bands(empty, {"A": widths.read, "B": widths.read}, widths.partial, axes="m"), rows)


def _in_values(gemm: Gemm, capacity: int, state: bool, rows: int) -> ExplicitSchedule | None:
    """The same in a memory of values."""
    left = capacity - STATE * rows if state else capacity
    if left < 3:
        return None
    empty, inputs = ExplicitSchedule(gemm, left, "m", ()), {"A": gemm.in_bytes, "B": gemm.in_bytes}
    return _not_above(search_bands(empty, inputs, gemm.out_bytes, axes="m"), rows)


def _not_above(found: list[S], rows: int) -> S | None:
    """The best with bands that are not taller than that, or the best of all."""
    return next((bands for bands in found if tallest(bands) <= rows), found[0] if found else None)
