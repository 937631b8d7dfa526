"""Upper bounds for one GEMM in bands of blocks: traffic and room of a walk with turned corners.

One axis q is cut into bands. In a band an operand X with axes p, q stays, in blocks: p is cut as evenly as whole
numbers allow, longer blocks first. The third axis r streams by. P (p x r) comes once a band, Q (q x r) once a block,
X once. At an index of r the shorter side of an s x t block is held and the longer passes through one place: s t +
min(s, t) + 1 values. Bands are walked forwards and backwards in turn, and r too.

A step from one block to the next may pass vectors of the operand both read through a corner (`corner`): Q inside a
band, P at its end if both bands keep the same operand. Its lines lie across those vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from .corner import NO_CORNER, Corner, read_corner, read_turn
from .reading import RefusedError, array, choice, equal, fields, integer
from .statement import ALIKE, ClaimedWidths
from .upper import AXES, ScheduleTraffic, fits, operand_of, taken

MAX_BANDS = 4096


@dataclass(frozen=True)
class _Band:
    stationary: str
    width: int
    count: int
    blocks: int
    across: Corner
    down: tuple[Corner, Corner]
    next: tuple[Corner, Corner]
    p: int
    r: int

    @property
    def longest(self) -> int:
        return -(-self.p // self.blocks)

    @property
    def shortest(self) -> int:
        return self.p // self.blocks


def check_banded(
    size: dict[str, int],
    accumulate: bool,
    capacity: int,
    schedule: Any,
    at: str,
    widths: ClaimedWidths = ALIKE,
) -> ScheduleTraffic:
    """Traffic and room of a GEMM in bands.

    Parameters
    ----------
    size : dict
        m, n and k.
    accumulate : bool
        C is read first.
    capacity : int
        What fits, as ``widths`` count.
    schedule : object
        ``axis``, and ``bands``: for each kind in order which operand is ``stationary``, its ``width``, how many there
        are (``count``), the ``blocks`` in each, and the corners, each [group, turned, plain]: ``across`` inside it,
        ``down`` from one to the next of its kind and ``next`` to the first of the next kind, both [leave, enter].
    """
    fields(schedule, at, ("kind", "axis", "bands"))
    axis = choice(schedule["axis"], f"{at}.axis", tuple("mnk"))
    spec = array(schedule["bands"], f"{at}.bands", 1, MAX_BANDS)
    bands = [_band(size, axis, item, f"{at}.bands[{i}]") for i, item in enumerate(spec)]
    equal(sum(b.width * b.count for b in bands), size[axis], f"{at}.bands", "widths of all bands together")
    visits, width = dict.fromkeys("ABC", 0), taken(widths)
    peak = number = 0
    for i, band in enumerate(bands):
        where = f"{at}.bands[{i}]"
        p_axis, r_axis = _others(band.stationary, axis)
        of_p, of_q = operand_of(p_axis, r_axis), operand_of(axis, r_axis)
        after = bands[i + 1] if i + 1 < len(bands) else None
        _check_steps(band, bands[i - 1] if i else None, after, where)
        own, height = width[band.stationary], band.longest
        inside, end = (own, width[of_q], width[of_p], own), (own, width[of_p], width[of_q], own)
        beside = [max(width[of_p], width[of_q]) * (min(height, band.width) + 1)]
        beside += [band.across.room(band.width, widths=inside)]
        beside += [corner.room(height, widths=end) for corner in (*band.down, band.next[0])]
        beside += [bands[i - 1].next[1].room(height, widths=end)] if i else []
        peak = max(peak, own * height * band.width + max(beside))
        visits[band.stationary] += band.count * band.width * band.p
        visits[of_p] += band.count * band.p * band.r
        visits[of_q] += band.count * band.width * (band.blocks * band.r - (band.blocks - 1) * band.across.vectors)
        # band number 0, 2, .. ends at the far side of p, where the shorter blocks are, 1, 3, .. at the near one
        turns = band.count - 1
        far = (turns + 1) // 2 if number % 2 == 0 else turns // 2
        visits[of_p] -= band.down[0].vectors * (far * band.shortest + (turns - far) * band.longest)
        number += band.count
        if after is not None:
            ends = (after.shortest, band.shortest) if number % 2 else (after.longest, band.longest)
            visits[of_p] -= band.next[0].vectors * min(ends)
    fits(peak, capacity, widths, at)
    initialised = 0 if accumulate else size["m"] * size["n"]  # each cell of C begins without a load
    return ScheduleTraffic({**visits, "C": visits["C"] - initialised}, {"C": visits["C"]}, peak)


def _others(stationary: str, axis: str) -> tuple[str, str]:
    """p and r of an operand that stays, in bands of an axis that it has."""
    first, second, streamed = AXES[stationary]
    return (second if axis == first else first), streamed


def _band(size: dict[str, int], axis: str, stated: Any, at: str) -> _Band:
    fields(stated, at, ("stationary", "width", "count", "blocks", "across", "down", "next"))
    stationary = choice(stated["stationary"], f"{at}.stationary", [x for x, axes in AXES.items() if axis in axes[:2]])
    p, r = (size[other] for other in _others(stationary, axis))
    width = integer(stated["width"], f"{at}.width", 1, size[axis])
    count = integer(stated["count"], f"{at}.count", 1, size[axis])
    blocks = integer(stated["blocks"], f"{at}.blocks", 1, p)
    across = read_corner(stated["across"], f"{at}.across", p // blocks, r)
    down = read_turn(stated["down"], f"{at}.down", width, width, r)
    following = read_turn(stated["next"], f"{at}.next", width, size[axis], r)
    return _Band(stationary, width, count, blocks, across, down, following, p, r)


def _check_steps(band: _Band, before: _Band | None, after: _Band | None, at: str) -> None:
    """Corners only where a step is, and no block that keeps more than stream by."""
    if band.across.vectors and band.blocks == 1:
        raise RefusedError(f"{at}.across", "vectors are kept for a step that does not occur")
    if band.down[0].vectors and band.count == 1:
        raise RefusedError(f"{at}.down", "vectors are kept for a step that does not occur")
    entering = before.next[1] if before else NO_CORNER
    if band.next[0].vectors and (after is None or after.stationary != band.stationary):
        raise RefusedError(f"{at}.next", "vectors are kept for a step that does not occur")
    if entering.group > band.width:
        raise RefusedError(at, "a group of more lines than the block has")
    ends = [entering.vectors, *[band.down[0].vectors] * min(2, band.count - 1), band.next[0].vectors]
    inside = band.across.vectors
    if band.blocks == 1:  # both ends of a band are one block
        most = max(item + other for item, other in pairwise(ends))
    else:
        most = max(inside + max(ends), 2 * inside if band.blocks > 2 else 0)
    if most > band.r:
        raise RefusedError(at, "a block would keep vectors of both sides at one index")
