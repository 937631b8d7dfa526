"""Fused schedules of two products in a memory of bytes, where partial sums are wider than what they end as.

The bands and blocks are those of `chain`. A block of H takes the width of accumulators while its first products run and
the inputs' width afterwards; kept columns of Y are accumulators as long as they stay; softmax state too. What is free
beside a band keeps values of the streaming side for the next, each counted at the widest that they may be; or columns
of B and D pass from panel to panel through a turned corner, in the place of rows of A and of accumulators of Y.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from pebble.errors import InfeasibleError
from pebble.schedules.explicit.attention import attention_chain, fused_attention
from pebble.schedules.explicit.blocks import block_sizes, even
from pebble.schedules.explicit.chain import SIDES, Band, Chain, ChainPlan, handed_on, is_panel
from pebble.schedules.explicit.chain_apart import PanelsApart, best_panels_apart
from pebble.schedules.explicit.chain_search import plan_of_runs
from pebble.schedules.explicit.ffn import ffn_chain, fused_ffn
from pebble.schedules.explicit.fused import ChainSchedule
from pebble.schedules.explicit.wide_gemm import WideProduct, best_gemm_in_bytes
from pebble.units import ceil_div
from pebble.workloads import Attention, Ffn, Gemm
from pebble.workloads.base import MAX_DIMENSION
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
    plan : ChainPlan or PanelsApart
        The same bands in a memory of as many values as they hold at most, with what is kept between bands.
    room : Room
        The memory.
    """

    plan: ChainPlan | PanelsApart
    room: Room

    @property
    def bands(self) -> int:
        """How many there are."""
        return self.plan.panels if isinstance(self.plan, PanelsApart) else sum(count for _, count in self.plan.runs)

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
    if side == "rows" and l and not chain.state:  # scores before the softmax are wide, in slow memory too
        spilled = Shape(extent, 1, k, l, chain.f)
        if (spare := left(spilled)) >= 0 and (stay := spare // (w * extent)) < chain.f:
            yield spilled._replace(spilled=chain.f - stay)


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
    runs = [(_band(chain, side, shape), count)]
    runs += [(_band(chain, side, shape._replace(extent=rest)), 1)] if rest else []
    peak = max(band.peak for band, _ in runs)
    # room for the next band is counted beside the largest: what a smaller one leaves free may be narrower values
    capacity, runs = peak + _spare(chain, side, shape, room), [(replace(band, peak=peak), n) for band, n in runs]
    plans = [plan_of_runs(one, side, runs, capacity) for one in (chain, turned)]
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


@dataclass(frozen=True)
class WideChainSchedule(ChainSchedule):
    """In a memory of bytes; the family is ``"fused"`` or ``"unfused"``.

    Attributes
    ----------
    room : Room
        The memory.
    bytes : int
        Loads plus stores.
    plan : WidePlan, optional
        The bands of one group, when fused.
    kernels : tuple of WideBands, WideGemmSchedule or WidePlan
        The products, when not; gate and up, which one kernel computes and multiplies, as a plan.
    """

    room: Room
    bytes: int
    plan: WidePlan | None = None
    kernels: tuple[WideProduct | WidePlan, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        return {**super().to_json(), "widths_bytes": self.room.widths.to_json()}


def best_in_bytes(workload: Ffn | Attention, room: Room, state: bool = True) -> WideChainSchedule | None:
    """The schedule with the least bytes moved: fused in bands, or kernel by kernel; None where none fits.

    ``state``: whether softmax state takes room.
    """
    if isinstance(workload, Ffn):
        chain, groups = ffn_chain(workload), 1
        separable = room.bytes >= 3 * max(room.widths.hidden, room.widths.partial)
    else:
        chain, groups = attention_chain(workload, state), workload.groups
        separable = not workload.causal and chain.m <= MAX_DIMENSION and room.bytes >= 3 * room.widths.hidden
    found: list[WideChainSchedule] = []
    if separable:
        with suppress(InfeasibleError):  # each product fits, but not in so few values
            found.append(_unfused(workload, chain, groups, room))
    apart = best_panels_apart(chain, room.bytes, room)
    wide = None if apart is None else WidePlan(apart, room)
    for plan in (best_chain_in_bytes(chain, room), wide):
        if plan is None:
            continue
        fused = fused_ffn if isinstance(workload, Ffn) else fused_attention
        same = fused(workload, "fused", plan.plan)  # type: ignore[arg-type]  # each with its own workload
        moved = (same.loads, same.stores, same.peak_elements)
        found.append(WideChainSchedule("fused", same.detail, workload, *moved, room, groups * plan.bytes, plan))
    return min(found, key=lambda s: (s.bytes, s.elements), default=None)


def _gate_and_up(ffn: Ffn, both: WidePlan, last: WideProduct, room: Room) -> WideChainSchedule:
    """Gate and up in one kernel, which stores their product, and what follows."""
    cells, plan = ffn.tokens * ffn.hidden, both.plan
    return WideChainSchedule(
        "unfused",
        f"gate and up: {plan.describe()}; {last.name}",
        ffn,
        {
            "X": plan.loads["A"],
            "Wg+Wu": plan.loads["B"],
            "H": last.loads["A"],
            "W2": last.loads["B"],
            "Y": last.loads["C"],
        },
        {"H": cells, "Y": last.stores["C"]},
        max(plan.peak_elements, last.peak_elements),
        room,
        both.bytes + room.widths.read * cells + last.bytes,
        kernels=(both, last),
    )


def _unfused(workload: Ffn | Attention, chain: Chain, groups: int, room: Room) -> WideChainSchedule:
    """Each product at its best, H complete in slow memory between them, and what is done to it there."""
    m, k, f, l, widths = chain.m, chain.k, chain.f, chain.l, room.widths
    inside = replace(room, widths=Widths(widths.read, widths.hidden, widths.hidden, widths.read))
    last = best_gemm_in_bytes(Gemm(m, l, f, workload.dtype, workload.out_dtype), room)
    if chain.streams == 2 and isinstance(workload, Ffn):
        both = best_chain_in_bytes(Chain(m, k, f, 0, streams=2), inside)
        if both is not None:
            return _gate_and_up(workload, both, last, room)
    first = best_gemm_in_bytes(Gemm(m, f, k, workload.dtype, workload.dtype), inside)
    kernels: tuple[WideProduct, ...] = (first, last)
    names, detail = ("X", "W1", "H", "W2", "Y"), ""
    again = 0  # how often H is read between the products; then it is written once more
    if isinstance(workload, Attention):  # a row stays, or is read twice: for its maximum and sum, and to divide
        again, detail = 1 if widths.read * f + 2 * widths.hidden <= room.bytes else 2, "softmax; "
        names = ("Q", "K", "S", "V", "O")
    elif workload.gated:  # gate and up are products of their own, then multiplied
        kernels, again, detail = (first, first, last), 2, "again; gate times up; "
        names = ("X", "Wg+Wu", "H", "W2", "Y")
    ups, cells = len(kernels) - 1, m * f
    hidden = ups * first.loads["C"] + again * cells + last.loads["A"]
    loaded = (ups * first.loads["A"], ups * first.loads["B"], hidden, last.loads["B"], last.loads["C"])
    stored = {names[2]: ups * first.stores["C"] + bool(again) * cells, names[4]: last.stores["C"]}
    between = (again + bool(again)) * cells * widths.read
    return WideChainSchedule(
        "unfused",
        f"{first.name}; {detail}{last.name}",
        workload,
        {name: groups * count for name, count in zip(names, loaded, strict=True)},
        {name: groups * count for name, count in stored.items()},
        max(kernel.peak_elements for kernel in kernels),
        room,
        groups * (sum(kernel.bytes for kernel in kernels) + between),
        kernels=kernels,
    )
