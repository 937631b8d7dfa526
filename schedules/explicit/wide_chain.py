"""Fused schedules of two products in a memory of bytes, where partial sums are wider than what they end as.

The bands and blocks are those of `chain`. A block of H takes the width of accumulators while its first products run and
the inputs' width afterwards; kept columns of Y are accumulators as long as they stay; softmax state too. What is free
beside a band keeps values of the streaming side for the next, each counted at the widest that they may be; or columns
of B and D pass from panel to panel through a turned corner, in the place of rows of A and of accumulators of Y.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from pebble.schedules.explicit.blocks import block_sizes, even
from pebble.schedules.explicit.chain import SIDES, Band, Chain, ChainPlan, handed_on, is_panel
from pebble.schedules.explicit.chain_apart import PanelsApart
from pebble.schedules.explicit.chain_search import plan_of_runs
from pebble.schedules.explicit.phases import Phases
from pebble.units import ceil_div
from pebble.workloads.widths import Room, Widths

_MOST_SIZES = 512  # of bands; more than any extent up to 2^16 has


class Shape(NamedTuple):
    """How a band is cut: its extent, blocks across it, what stays between them, columns of H that are spilled."""

    extent: int
    block: int
    kept_first: int = 0
    kept_second: int = 0
    spilled: int = 0


@dataclass(frozen=True)
class WidePlan:
    """Bands of a chain that fit in a memory of bytes, and what they move.

    Attributes
    ----------
    plan : ChainPlan, PanelsApart or Phases
        The same bands in a memory of as many values as they hold at most, with what is kept between bands.
    room : Room
        The memory.
    """

    plan: ChainPlan | PanelsApart | Phases
    room: Room

    @property
    def bands(self) -> int:
        """How many there are."""
        if isinstance(self.plan, PanelsApart):
            return self.plan.panels
        first = self.plan.first if isinstance(self.plan, Phases) else self.plan
        return sum(count for _, count in first.runs)

    @property
    def bytes(self) -> int:
        """Loads plus stores, in bytes."""
        widths, plan = self.room.widths, self.plan
        whole = plan.loads["A"] + plan.loads["B"] + plan.loads["D"] + plan.loads["H"] + plan.stores["H"]
        outputs = plan.chain.m * plan.chain.l
        return widths.read * whole + 2 * widths.partial * (plan.stores["Y"] - outputs) + widths.written * outputs


def peak_bytes(chain: Chain, side: str, shape: Shape, widths: Widths) -> int:
    """The most bytes that a band holds, at most."""
    k, l, u, across = chain.k, chain.l, chain.streams, chain.f if side == "rows" else chain.m
    w, hidden, p = widths.read, widths.hidden, widths.partial
    extent, block = shape.extent, shape.block
    if shape.spilled:
        stay = (chain.f - shape.spilled) * extent * w
        return stay + w + max(extent * (w * k + hidden * u), extent * (p * l + w))
    rows, cols = (extent, block) if side == "rows" else (block, extent)
    whole = block < across and (shape.kept_first, shape.kept_second) == (k, l)
    state = rows * max(hidden, p) * (min(chain.state, 2) if whole else chain.state)
    if side == "rows":
        kept = extent * (w * shape.kept_first + p * shape.kept_second)
    else:
        kept = extent * w * (u * shape.kept_first + shape.kept_second)
    wider = max(p, w)
    first = hidden * u * rows * cols + w * (1 + (0 if whole else min(rows, u * cols)))
    second = w * rows * cols + wider * (1 + (0 if whole else min(rows, cols)))
    return kept + state + max(first, second if l else 0)


def _shapes(chain: Chain, side: str, extent: int, room: Room) -> Iterator[Shape]:
    """Ways to cut a band of this extent that fit, and are worth a look."""
    k, l, u, across = chain.k, chain.l, chain.streams, chain.f if side == "rows" else chain.m
    w, hidden, p = room.widths.read, room.widths.hidden, room.widths.partial

    def left(shape: Shape) -> int:
        return room.bytes - peak_bytes(chain, side, shape, room.widths)

    one = Shape(extent, across)
    if left(one) >= 0:
        yield one
    if across == 1 or (chain.whole_rows and side == "rows"):
        return
    panel = Shape(extent, 1, k, l)
    if left(panel) >= 0:
        yield panel
    per_first, per_second = (w * extent, p * extent) if side == "rows" else (w * u * extent, w * extent)
    for stays in (0, l // 2, l):
        free = room.bytes - w * (extent + 1) - stays * per_second - chain.state * extent * max(hidden, p)
        widest = min(across, free // (hidden * u * extent))
        if widest < 1:
            continue
        fewest = ceil_div(across, widest)
        for blocks in range(max(2, fewest), min(fewest + 4, across) + 1):
            shape = Shape(extent, ceil_div(across, blocks))
            spare = left(shape)
            if spare < 0:
                continue
            second = min(l, spare // per_second)
            first = min(k, (spare - second * per_second) // per_first)
            yield shape._replace(kept_first=first, kept_second=second)
    if side == "rows" and l and not chain.state:  # of attention, kernels with row state spill scores, and move less
        spilled = Shape(extent, 1, k, l, chain.f)
        if (spare := left(spilled)) >= 0:  # one column at least: a block of all of them holds all while they are wide
            yield spilled._replace(spilled=max(1, chain.f - spare // (w * extent)))


def _spare(chain: Chain, side: str, shape: Shape, room: Room) -> int:
    """Values of the streaming side that fit beside a band, for the next: B and D, or Y and A."""
    widest = room.widths.read if side == "rows" else max(room.widths.read, room.widths.partial)
    spare = (room.bytes - peak_bytes(chain, side, shape, room.widths)) // widest
    return spare if room.values is None else min(spare, room.values - _values(chain, side, shape))


def _values(chain: Chain, side: str, shape: Shape) -> int:
    """The most values that a band holds, at most."""
    return peak_bytes(chain, side, shape, Widths(1, 1, 1, 1))


def _bytes(chain: Chain, side: str, shape: Shape, room: Room) -> int:
    """What bands of this shape move, all of them."""
    widths, spare = room.widths, _spare(chain, side, shape, room)
    m, k, f, l, u = chain.m, chain.k, chain.f, chain.l, chain.streams
    again = 0 if shape.spilled else ceil_div(f if side == "rows" else m, shape.block) - 1
    w, p = widths.read, widths.partial
    first, second = again * (k - shape.kept_first), again * (l - shape.kept_second)
    outputs = widths.written * m * l
    if side == "hidden":
        bands = ceil_div(f, shape.extent)
        outputs += (bands - 1) * 2 * p * (m * l - min(spare, m * l))
        inputs = bands * m * k - (bands - 1) * min(max(0, spare - m * l), m * k)
        return outputs + w * (f * (u * (k + first) + l + second) + inputs)
    whole, rest = divmod(m, shape.extent)
    weights = f * (whole + bool(rest)) * chain.weights_per_column
    weights -= (ceil_div(m, shape.extent) - 1) * min(spare, f * chain.weights_per_column)
    return outputs + w * (m * (k + first + 2 * shape.spilled) + weights) + 2 * p * m * second


def _least(chain: Chain, side: str, extent: int, room: Room) -> int:
    """Bytes that bands of this extent move at least: what streams by comes once a band, but for a memory full."""
    m, k, f, l, w, p = chain.m, chain.k, chain.f, chain.l, room.widths.read, room.widths.partial
    rows = side == "rows"
    once, bands = w * (m * k if rows else f * chain.weights_per_column), ceil_div(m if rows else f, extent)
    passing = w * f * chain.weights_per_column if rows else w * m * k + 2 * p * m * l
    kept = room.bytes if rows else 2 * room.bytes  # a partial sum is stored and loaded
    begun = w * m * k if not rows else passing
    return room.widths.written * m * l + once + begun + (bands - 1) * max(0, passing - kept)


def best_chain_in_bytes(chain: Chain, room: Room) -> WidePlan | None:
    """The bands that move least, all of one extent but the last, or with a mask the first; None when none fit."""
    if chain.masked:
        return _masked(replace(chain, turns=False), room)
    best: tuple[int, str, Shape] | None = None
    turned, chain = replace(chain, room=room), replace(chain, turns=False)
    for side in SIDES:
        extent = chain.m if side == "rows" else chain.f
        for size in block_sizes(extent, room.bytes // room.widths.hidden, _MOST_SIZES):
            if chain.one_pass and side == "hidden" and size < extent:
                break
            if best is not None and _least(chain, side, size, room) > best[0]:  # and the next have more bands
                break
            for shape in _shapes(chain, side, size, room):
                if not room.holds(_values(chain, side, shape)):
                    continue
                moved = _bytes(chain, side, shape, room)
                if is_panel(chain, side, _band(chain, side, shape)):
                    moved -= _turned_bytes(turned, shape, room)
                found = (moved, side, shape)
                best = found if best is None else min(best, found)
    if best is None:
        return None
    _, side, shape = best
    extent = chain.m if side == "rows" else chain.f
    count, rest = divmod(extent, shape.extent)
    return bands_of_shape(
        turned, side, shape, [(shape.extent, count), (rest, 1)] if rest else [(shape.extent, count)], room
    )


def bands_of_shape(chain: Chain, side: str, shape: Shape, sizes: list[tuple[int, int]], room: Room) -> WidePlan | None:
    """Bands of these extents, so many of each, cut like the largest, which has this shape; None where none fit."""
    runs = [(_band(chain, side, shape._replace(extent=extent)), count) for extent, count in sizes]
    peak = max(band.peak for band, _ in runs)
    # room for the next band is counted beside the largest: what a smaller one leaves free may be narrower values
    capacity, runs = peak + _spare(chain, side, shape, room), [(replace(band, peak=peak), n) for band, n in runs]
    both = (replace(chain, turns=False, room=None), replace(chain, room=room))
    plans = [plan_of_runs(one, side, runs, capacity) for one in both]
    wide = [WidePlan(replace(plan, capacity=max(capacity, plan.peak_elements)), room) for plan in plans]
    fit = [plan for plan in wide if room.holds(plan.plan.peak_elements)]
    return min(fit, key=lambda plan: plan.bytes, default=None)  # corners or, where much is spare, plain values


def _masked(chain: Chain, room: Room) -> WidePlan | None:
    """Bands under a causal mask: as tall as fit, after a few short ones, which see fewest columns and keep them.

    Or all columns stay while rows stream by.
    """
    columns = Shape(chain.f, 1, chain.k, chain.l) if chain.m > 1 else Shape(chain.f, 1)
    stay = peak_bytes(chain, "hidden", columns, room.widths) <= room.bytes and room.holds(
        _values(chain, "hidden", columns)
    )
    found = [_in_order(chain, "hidden", [(columns, 1)], room)] if stay else []
    panel = [Shape(0, 1, chain.k, chain.l)] if chain.f > 1 and not chain.whole_rows else []
    for kind in (*panel, Shape(0, chain.f)):
        tallest = _tallest(chain, kind, room)
        for tall in sorted({*block_sizes(chain.m, tallest, 64), tallest} - {0}):
            for count in {max(0, chain.m // tall - 1), chain.m // tall}:
                rest = chain.m - count * tall
                for others in range(1, min(rest, 3) + 1) if rest else (0,):
                    sizes = even(rest, others) if others else []
                    if all(size < tall for size, _ in sizes):  # else they are more of the tall ones
                        sizes += [(tall, count)] if count else []
                        parts = [(kind._replace(extent=size), times) for size, times in sizes]
                        found.append(_in_order(chain, "rows", parts, room))
    return min(found, key=lambda plan: (plan.bytes, plan.bands), default=None)


def _in_order(chain: Chain, side: str, parts: list[tuple[Shape, int]], room: Room) -> WidePlan:
    """Bands in this order; what is free beside each may keep values of the streaming side for the next."""
    spares = [_spare(chain, side, shape, room) for shape, _ in parts]
    bands = [_band(chain, side, shape) for shape, _ in parts]
    capacity = max(band.peak + spare for band, spare in zip(bands, spares, strict=True))
    runs = [
        (replace(band, peak=capacity - spare), count)
        for band, spare, (_, count) in zip(bands, spares, parts, strict=True)
    ]
    plan = plan_of_runs(chain, side, runs, capacity)
    return WidePlan(replace(plan, capacity=max(capacity, plan.peak_elements)), room)


def _tallest(chain: Chain, kind: Shape, room: Room) -> int:
    """The most rows of a band of this kind that fits; 0 for none."""
    low, high = 0, chain.m + 1
    while high - low > 1:
        middle = (low + high) // 2
        shape = kind._replace(extent=middle)
        fits = peak_bytes(chain, "rows", shape, room.widths) <= room.bytes and room.holds(_values(chain, "rows", shape))
        low, high = (middle, high) if fits else (low, middle)
    return low


def _turned_bytes(chain: Chain, shape: Shape, room: Room) -> int:
    """About what corners between panels of this shape save over plain values that are kept beside them."""
    bands, spare = ceil_div(chain.m, shape.extent) - 1, _spare(chain, "rows", shape, room)
    band = _band(chain, "rows", shape)
    corners = handed_on(chain, "rows", 0, band, band, chain.f).values if bands else 0
    return bands * room.widths.read * max(0, corners - min(spare, chain.f * chain.weights_per_column))


def _band(chain: Chain, side: str, shape: Shape) -> Band:
    """The band in the terms of `chain`, its peak in values."""
    across = chain.f if side == "rows" else chain.m
    blocks = chain.f if shape.spilled else ceil_div(across, shape.block)
    peak = _values(chain, side, shape)
    return Band(shape.extent, shape.block, blocks, shape.kept_first, shape.kept_second, 0, peak, shape.spilled)
