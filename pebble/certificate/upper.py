"""Upper bounds for one GEMM: blocks of one operand stay, the other two stream by; traffic and room from the blocks.

The stationary operand X is p x q values, cut into blocks; the blocks are walked in a snake, along q first. While a
block stays, the third dimension r streams by, forwards and backwards in turn: at each index the shorter of the two
vectors that meet the block is held and the other passes through one place. So a block of s x t takes
s t + min(s, t) + 1 values. From one block to the next in its row, ``across`` vectors of P (p x r) stay: the last of
one block are the first of the next. From one row to the next, ``down`` vectors of Q (q x r) stay in the same way.
While vectors of P stay, the pass of Q goes through one place beside them, so this takes s t + across s + 1 values;
likewise down t. No block may keep both at one index.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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


def taken(widths: ClaimedWidths) -> dict[str, int]:
    """What a value of A, B or C may take while it is worked on."""
    return {"A": widths.read, "B": widths.read, "C": widths.partial}


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
    across = _kept(schedule["across"], f"{at}.across", 2, r)
    down = _kept(schedule["down"], f"{at}.down", 3, r)

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


def _kept(value: Any, at: str, count: int, most: int) -> list[int]:
    return [integer(x, f"{at}[{i}]", 0, most) for i, x in enumerate(array(value, at, count, count))]


def _unused(kept: int, at: str) -> None:
    if kept:
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
