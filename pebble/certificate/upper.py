"""Upper bounds for one GEMM: traffic and room from the blocks. There are three kinds: blocks in a snake, bands of
blocks with turned corners, and an operand that stays but for corners.

The stationary operand X is p x q values, cut into blocks; the blocks are walked in a snake, along q first. While a
block stays, the third dimension r streams by, forwards and backwards in turn: at each index the shorter of the two
vectors that meet the block is held and the other passes through one place. So a block of s x t takes
s t + min(s, t) + 1 values. From one block to the next in its row, ``across`` vectors of P (p x r) stay: the last of
one block are the first of the next. From one row to the next, ``down`` vectors of Q (q x r) stay in the same way.
While vectors of P stay, the pass of Q goes through one place beside them, so this takes s t + across s + 1 values;
likewise down t. No block may keep both at one index.

One axis q is cut into bands. In a band an operand X with axes p, q stays, in blocks: p is cut as evenly as whole
numbers allow, longer blocks first. The third axis r streams by. P (p x r) comes once a band, Q (q x r) once a block,
X once. At an index of r the shorter side of an s x t block is held and the longer passes through one place: s t +
min(s, t) + 1 values. Bands are walked forwards and backwards in turn, and r too.

A step from one block to the next may pass vectors of the operand both read through a corner (`corner`): Q inside a
band, P at its end if both bands keep the same operand. Its lines lie across those vectors.

One axis q of an operand X with axes p, q is cut into bands as evenly as whole numbers allow. Of each band all stays but
the last a values of p times the last b of the band; the third axis r streams by, and at each of its indices the shorter
side of the band is held and the longer passes through one place, every value of either in some product. The products
left out have a indices of p and b of every band: a block of a x (bands b), which comes last. So P (p x r) comes once a
band and its last a vectors once more, Q (q x r) once and the vectors of the corners once more, X once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from .corner import NO_CORNER, Corner, read_corner, read_turn
from .reading import RefusedError, array, choice, equal, fields, integer
from .statement import ALIKE, ClaimedWidths

# stationary operand -> its two dimensions, the streamed one
AXES = {"C": ("m", "n", "k"), "A": ("m", "k", "n"), "B": ("k", "n", "m")}


@dataclass(frozen=True)
class ScheduleTraffic:
    """What a schedule moves, by operand, and the most it holds, as the widths of its memory count."""

    loads: dict[str, int]
    stores: dict[str, int]
    peak: int
    initialised: int = 0  #: cells of an intermediate that are stored as partial sums, and loaded again

    @property
    def elements(self) -> int:
        """Loads plus stores."""
        return sum(self.loads.values()) + sum(self.stores.values())

    def times(self, count: int, named: Callable[[str], str] = str) -> ScheduleTraffic:
        """So many of them one after the other, under other names."""
        loads, stores = ({named(x): count * n for x, n in traffic.items()} for traffic in (self.loads, self.stores))
        return ScheduleTraffic(loads, stores, self.peak, count * self.initialised)

    def and_then(self, other: ScheduleTraffic) -> ScheduleTraffic:
        """Both, one after the other."""
        loads, stores = (
            {name: mine.get(name, 0) + more.get(name, 0) for name in mine | more}
            for mine, more in ((self.loads, other.loads), (self.stores, other.stores))
        )
        return ScheduleTraffic(loads, stores, max(self.peak, other.peak), self.initialised + other.initialised)


def operand_of(single: str, other: str) -> str:
    """The operand with these two dimensions."""
    return {"mk": "A", "km": "A", "kn": "B", "nk": "B", "mn": "C", "nm": "C"}[single + other]


def taken(widths: ClaimedWidths, streams: int = 1) -> dict[str, int]:
    """What a value of A, B or C may take while it is worked on; so many columns of B and of C go together."""
    return {"A": widths.read, "B": streams * widths.read, "C": streams * widths.partial}


def fits(peak: int, capacity: int, widths: ClaimedWidths, at: str) -> None:
    """Refuse a schedule that holds more than there is room for."""
    if peak > capacity:
        unit = "values" if widths == ALIKE else "bytes"
        raise RefusedError(at, f"it holds {peak:,} {unit}, the capacity is {capacity:,}")


def check_gemm(
    size: dict[str, int], accumulate: bool, capacity: int, schedule: Any, at: str, widths: ClaimedWidths = ALIKE
) -> ScheduleTraffic:
    """Traffic and room of a blocked GEMM.

    Parameters
    ----------
    size : dict
        m, n and k.
    accumulate : bool
        C is read first.
    capacity : int
        What fits, as ``widths`` count.
    schedule : object
        ``stationary``; ``block``, its two extents; ``walks_first``, the dimension of the inner walk; ``across``, for
        full rows of blocks and for the last; ``down``, for turns after an even row, an odd row, and the last turn.
    """
    fields(schedule, at, ("kind", "stationary", "block", "walks_first", "across", "down"))
    stationary = choice(schedule["stationary"], f"{at}.stationary", AXES)
    outer, inner, streamed = AXES[stationary]
    block = array(schedule["block"], f"{at}.block", 2, 2)
    extent = {d: integer(x, f"{at}.block", 1, size[d]) for d, x in zip((outer, inner), block, strict=True)}
    if choice(schedule["walks_first"], f"{at}.walks_first", (outer, inner)) == outer:
        outer, inner = inner, outer
    p, q, r, s, t = size[outer], size[inner], size[streamed], extent[outer], extent[inner]
    rows, cols = -(-p // s), -(-q // t)
    across = _carried(schedule["across"], f"{at}.across", 2, r)
    down = _carried(schedule["down"], f"{at}.down", 3, r)

    last_height, last_width = p - (rows - 1) * s, q - (cols - 1) * t
    name_p, name_q = operand_of(outer, streamed), operand_of(inner, streamed)
    held, of_p, of_q = (taken(widths)[name] for name in (stationary, name_p, name_q))
    peak = held * s * t + max(of_p, of_q) * (min(s, t) + 1)
    saved_p = saved_q = 0
    # steps inside rows: full rows of blocks, and the last row; one side of each step is a block of full width
    for kind, height, number in ((0, s, rows - 1), (1, last_height, 1)):
        steps = number * (cols - 1)
        if not steps:
            _unused(across[kind], f"{at}.across[{kind}]")
            continue
        saved_p += steps * across[kind] * height
        peak = max(peak, held * height * t + of_p * across[kind] * height + of_q if across[kind] else 0)
    # turns: from row i to row i + 1, in the last column after an even row, in the first after an odd one
    end = rows - 2
    counts = {0: (end + 1) // 2, 1: end // 2, 2: 1} if rows > 1 else {0: 0, 1: 0, 2: 0}
    for kind, number in counts.items():
        if not number:
            _unused(down[kind], f"{at}.down[{kind}]")
            continue
        even = (kind == 0) if kind < 2 else end % 2 == 0
        width = last_width if even else min(t, q)
        saved_q += number * down[kind] * width
        peak = max(peak, held * s * width + of_q * down[kind] * width + of_p if down[kind] else 0)
        if cols > 1:
            # the rows that meet at this turn: both full, but the last turn leads to the last row
            besides = max(across[0], across[1 if kind == 2 else 0])
            if down[kind] + besides > r:
                raise RefusedError(f"{at}.down[{kind}]", "a block would keep vectors of both sides at one index")
    fits(peak, capacity, widths, at)
    visits = {name_p: p * r * cols - saved_p, name_q: q * r * rows - saved_q, stationary: p * q}
    first = 0 if accumulate else size["m"] * size["n"]  # each cell of C begins without a load
    loads = {"A": visits["A"], "B": visits["B"], "C": visits["C"] - first}
    return ScheduleTraffic(loads, {"C": visits["C"]}, peak)


def _carried(value: Any, at: str, count: int, most: int) -> list[int]:
    return [integer(x, f"{at}[{i}]", 0, most) for i, x in enumerate(array(value, at, count, count))]


def _unused(carried: int, at: str) -> None:
    if carried:
        raise RefusedError(at, "vectors are kept for a step that does not occur")


def check_claim(claimed: Any, traffic: ScheduleTraffic, at: str) -> None:
    """The claimed loads, stores and room are those of the schedule."""
    fields(claimed, at, ("loads", "stores", "peak_elements"))
    for what, result in (("loads", traffic.loads), ("stores", traffic.stores)):
        spec = claimed[what]
        fields(spec, f"{at}.{what}", tuple(result))
        for name, number in result.items():
            equal(integer(spec[name], f"{at}.{what}.{name}"), number, f"{at}.{what}.{name}", "values moved")
    equal(claimed["peak_elements"], traffic.peak, f"{at}.peak_elements", "values held at most")


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
    streams: int = 1,
) -> ScheduleTraffic:
    """Traffic and room of a GEMM in bands.

    Parameters
    ----------
    size, accumulate, capacity, at, widths
        As for `check_gemm`.
    schedule : object
        ``axis``, and ``bands``: for each kind in order which operand is ``stationary``, its ``width``, how many there
        are (``count``), the ``blocks`` in each, and the corners, each [group, turned, plain]: ``across`` inside it,
        ``down`` from one to the next of its kind and ``next`` to the first of the next kind, both [leave, enter].
    streams : int
        Columns of B and of C that go together: 2 for gate and up, whose cells become one when both are complete. Then
        a value of B is two in what is loaded, and no cell may leave before.
    """
    fields(schedule, at, ("kind", "axis", "bands"))
    axis = choice(schedule["axis"], f"{at}.axis", tuple("mnk"))
    spec = array(schedule["bands"], f"{at}.bands", 1, MAX_BANDS)
    bands = [_band(size, axis, item, f"{at}.bands[{i}]") for i, item in enumerate(spec)]
    equal(sum(b.width * b.count for b in bands), size[axis], f"{at}.bands", "widths of all bands together")
    visits, width = dict.fromkeys("ABC", 0), taken(widths, streams)
    peak = number = 0
    for i, band in enumerate(bands):
        where = f"{at}.bands[{i}]"
        p_axis, r_axis = _others(band.stationary, axis)
        of_p, of_q = operand_of(p_axis, r_axis), operand_of(axis, r_axis)
        after = bands[i + 1] if i + 1 < len(bands) else None
        _check_steps(band, bands[i - 1] if i else None, after, where)
        own, height = width[band.stationary], band.longest
        inside, end = (own, width[of_q], width[of_p], own), (own, width[of_p], width[of_q], own)
        extra = [max(width[of_p], width[of_q]) * (min(height, band.width) + 1)]
        extra += [band.across.footprint(band.width, widths=inside)]
        extra += [corner.footprint(height, widths=end) for corner in (*band.down, band.next[0])]
        extra += [bands[i - 1].next[1].footprint(height, widths=end)] if i else []
        peak = max(peak, own * height * band.width + max(extra))
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
    if streams > 1 and visits["C"] != size["m"] * size["n"]:
        raise RefusedError(f"{at}.bands", "a cell of gate or up leaves before it is complete")
    visits["B"] *= streams
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


MAX_EQUAL_BANDS = 2**40


def check_remainder(
    size: dict[str, int],
    accumulate: bool,
    capacity: int,
    schedule: Any,
    at: str,
    widths: ClaimedWidths = ALIKE,
) -> ScheduleTraffic:
    """Traffic and room of a GEMM with a corner apart.

    Parameters
    ----------
    size, accumulate, capacity, at, widths
        As for `check_gemm`.
    schedule : object
        What is ``stationary``, the ``axis`` that is cut into ``bands``, and the ``corner``: a and b.
    """
    fields(schedule, at, ("kind", "stationary", "axis", "bands", "corner"))
    stationary = choice(schedule["stationary"], f"{at}.stationary", AXES)
    first, second, streamed = AXES[stationary]
    axis = choice(schedule["axis"], f"{at}.axis", (first, second))
    across = second if axis == first else first
    p, q, r = size[across], size[axis], size[streamed]
    bands = integer(schedule["bands"], f"{at}.bands", 1, min(q, MAX_EQUAL_BANDS))
    spec = array(schedule["corner"], f"{at}.corner", 2, 2)
    # a value of a side that is in the corner alone would come to the band for nothing
    a, b = integer(spec[0], f"{at}.corner[0]", 1, p - 1), integer(spec[1], f"{at}.corner[1]", 1, q // bands - 1)
    of_p, of_q = operand_of(across, streamed), operand_of(axis, streamed)
    width = taken(widths)
    widest, vector = -(-q // bands), max(width[of_p], width[of_q])
    peak = max(
        width[stationary] * (p * widest - a * b) + vector * (min(p, widest) + 1),
        width[stationary] * a * b * bands + vector * (min(a, b * bands) + 1),
    )
    fits(peak, capacity, widths, at)
    visits = {stationary: p * q, of_p: (bands * p + a) * r, of_q: (q + bands * b) * r}
    initialised = 0 if accumulate else size["m"] * size["n"]  # each cell of C begins without a load
    return ScheduleTraffic({**visits, "C": visits["C"] - initialised}, {"C": visits["C"]}, peak)
