"""What counters say: measured traffic beside the proved bound and what each order would move; and a warp's request,
which sectors its lanes touch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pebble.counters.coalescing import Coalescing, Pattern, coalesce, first_request
from pebble.counters.quantities import SECTOR_BYTES
from pebble.counters.shapes import WARP
from pebble.plots.look import look
from pebble.plots.save import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    YELLOW,
    Axes,
    Figure,
    axes,
    page,
    panels,
    plain_numbers,
    small_title,
    value_axis,
)
from pebble.units import format_bytes

_MOST_ORDERS = 14


class SimulatedOrder(NamedTuple):
    """An order, what it moves before the kernel ends, and its error against what was measured."""

    name: str
    read_bytes: int
    write_bytes: int
    error: float


@dataclass(frozen=True)
class MeasuredComparison:
    """A measurement and what stands beside it.

    Attributes
    ----------
    title : str
    read_bytes, write_bytes : float or None
        Measured; None where only the sum is known.
    dram_bytes : float or None
        Their sum.
    orders : sequence of SimulatedOrder
        The nearest first.
    bound_bytes : int
    best_bytes, best_name
        The best schedule known.
    """

    title: str
    read_bytes: float | None
    write_bytes: float | None
    dram_bytes: float | None
    orders: Sequence[SimulatedOrder]
    bound_bytes: int
    best_bytes: int
    best_name: str


def plot_judgement(result: MeasuredComparison, ax: Axes | None = None) -> Axes:
    """Bars: the measured one first, then the orders, nearest first; lines: the bound and the best schedule."""
    ax = axes(ax)
    orders = result.orders[:_MOST_ORDERS]
    labels = ["measured", *(order.name for order in orders)]
    at = range(1, len(labels))
    measured = result.dram_bytes or 0
    if result.read_bytes is None or result.write_bytes is None:
        ax.barh([0], [measured / 1e6], color=GREY, height=0.75, label="measured, read and written")
    else:
        ax.barh([0], [result.read_bytes / 1e6], color=BLUE, height=0.75, label="measured reads")
        left = [result.read_bytes / 1e6]
        ax.barh([0], [result.write_bytes / 1e6], left=left, color=ORANGE, height=0.75, label="measured writes")
    reads = [element.read_bytes / 1e6 for element in orders]
    writes = [each_item.write_bytes / 1e6 for each_item in orders]
    ax.barh(at, reads, color=SKY, height=0.75, label="simulated reads")
    ax.barh(at, writes, left=reads, color=YELLOW, height=0.75, label="simulated writes before the end")
    for i, item in enumerate(orders):
        ax.text(reads[i] + writes[i], i + 1, f" {item.error:+.1%}", va="center", fontsize=7)
    bound, best, name = result.bound_bytes, result.best_bytes, result.best_name
    ax.axvline(bound / 1e6, color="black", lw=1.4, label=f"proved bound, {format_bytes(bound)}")
    best_label = f"best schedule, {format_bytes(best)}: {name.partition(',')[0].partition('(')[0].strip()}"
    ax.axvline(best / 1e6, color=RED, ls="--", lw=1.2, label=best_label)
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    widest = max([bound, best, measured, *(one.read_bytes + one.write_bytes for one in orders)])
    totals = [one.read_bytes + one.write_bytes for one in orders]
    if not value_axis(ax.xaxis, [x / 1e6 for x in (bound, best, widest, *totals)]):
        ax.set_xlim(0, widest / 1e6 * 1.18)
    left_out = len(result.orders) - len(orders)
    more = f" (the nearest {len(orders)}; {left_out} more)" if left_out else ""
    ax.set_xlabel(f"DRAM traffic, MB{more}; behind the bars: error of the simulated reads")
    return ax


def judgement_figure(result: MeasuredComparison) -> Figure:
    """The bars on a page of their own."""
    with page(7.2, 2.0 + 0.19 * (1 + min(len(result.orders), _MOST_ORDERS))) as figure:
        small_title(plot_judgement(result, figure.add_subplot()), result.title)
        figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=7)
    return figure


_STRIDES = tuple(range(1, 33))
_COLORS = {1: PURPLE, 2: GREEN, 4: BLUE, 8: ORANGE}


def plot_request(pattern: Pattern, ax: Axes | None = None) -> Axes:
    """A bar a lane of the first warp, over the bytes that it touches; the sectors behind."""
    ax = axes(ax)
    places = [int(place) for place in first_request(pattern)]
    lanes = [(lane, place) for lane, place in enumerate(places) if place >= 0]
    wide = pattern.value_bytes * pattern.vector
    sectors = sorted({s for _, p in lanes for s in range(p // SECTOR_BYTES, (p + wide - 1) // SECTOR_BYTES + 1)})
    order = {sector: i for i, sector in enumerate(sectors)}  # sectors that nobody touches are left out
    for sector, i in order.items():
        ax.axvspan(i * SECTOR_BYTES, (i + 1) * SECTOR_BYTES, color="0.93" if i % 2 else "0.86", lw=0)
        if i and sector - sectors[i - 1] > 1:
            ax.axvline(i * SECTOR_BYTES, color=RED, lw=0.8, ls=":")
    starts = [order[p // SECTOR_BYTES] * SECTOR_BYTES + p % SECTOR_BYTES for _, p in lanes]
    ax.barh([lane for lane, _ in lanes], [wide] * len(lanes), left=starts, height=0.9, color=BLUE)
    ax.set(xlim=(0, max(1, len(sectors)) * SECTOR_BYTES), ylim=(WARP - 0.3, -0.7))
    ax.set_xticks([i * SECTOR_BYTES for i in range(0, len(sectors) + 1, max(1, len(sectors) // 8))])
    ax.set_ylabel("lane of the first warp")
    ax.set_xlabel("bytes of the sectors touched (red: sectors between are left out)")
    return ax


def plot_strides(result: Coalescing, ax: Axes | None = None) -> Axes:
    """Sectors of a request against the distance of neighbouring lanes, a curve a value size, the pattern marked."""
    ax = axes(ax)
    for size, color in _COLORS.items():
        counts = [coalesce(Pattern(1, WARP * 32, size, stride=stride)).sectors_per_request for stride in _STRIDES]
        ax.plot(_STRIDES, counts, color=color, lw=1.2, label=f"{size} byte{'s' * (size > 1)}")
    each = result.sectors_per_request
    ax.axhline(each, color=RED, ls="--", lw=1.2, label="this pattern")
    ax.axhline(WARP, color=GREY, lw=0.8, ls=":")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    plain_numbers(ax.xaxis, ax.yaxis)
    ax.set(ylim=(0.8, max(40, 1.2 * each)))
    ax.set_xlabel("distance of neighbouring lanes, in values")
    ax.set_ylabel("sectors a request")
    ax.legend(fontsize=6.5, frameon=False)
    return ax


def coalescing_figure(result: Coalescing, summary: str) -> Figure:
    """Both on one page."""
    with page(7.2, 3.2) as figure:
        left, right = figure.subplots(*panels(2), width_ratios=None if look().narrow else [1.5, 1])
        plot_request(result.pattern, left)
        plot_strides(result, right)
        p = result.pattern
        block = f", block {p.threads[0]}x{p.threads[1]}, {p.each[0]}x{p.each[1]} a thread" if p.threads else ""
        small_title(
            left,
            f"{p.rows} x {p.cols} values of {p.value_bytes} bytes, stride {p.stride}, vectors of {p.vector}{block}\n"
            f"{summary}",
        )
    return figure
