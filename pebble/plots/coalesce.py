"""A warp's request: which sectors its lanes touch, and how sectors grow with the distance of the lanes."""

from __future__ import annotations

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
    Axes,
    Figure,
    axes,
    page,
    panels,
    plain_numbers,
    small_title,
)

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
