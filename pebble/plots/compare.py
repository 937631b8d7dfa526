"""The comparison figure: each order's traffic over the proved bound, and its walk over the tile grid."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from pebble.errors import UnknownNameError
from pebble.plots.bars import lines_of, name_of_bar, places_of
from pebble.plots.look import look
from pebble.plots.save import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    Axes,
    Figure,
    axes,
    page,
    plain_numbers,
    small_title,
    value_axis,
)
from pebble.schedules.ffn import parse_ffn_schedule
from pebble.schedules.orders import OrderParams, TileOrder, parse_order
from pebble.simulation import KernelConfig, Traffic
from pebble.units import format_bytes

S = TypeVar("S")
_PER_ROW = 7
_MOST_CELLS = 96
_MOST_BARS = 32
_MOST_LINES = 40  # of names, in a column: with the legend it still stands on a page


@dataclass(frozen=True)
class ComparedSchedules:
    """What schedules move through one cache, in bytes.

    Attributes
    ----------
    title : str
    config : KernelConfig
        The kernel that was simulated.
    grid : tuple of two int, or None
        Its tiles.
    bound_bytes, best_bytes : int
        What is proved, and the best schedule known.
    best_name : str
    bars : sequence of (str, sequence of Traffic)
        Schedules that share a bar and what stands for them, the least first.
    lru_bytes : mapping of str to int
        What each moves through one LRU; empty where that is not shown.
    """

    title: str
    config: KernelConfig
    grid: tuple[int, int] | None
    bound_bytes: int
    best_bytes: int
    best_name: str
    bars: Sequence[tuple[str, Sequence[Traffic]]]
    lru_bytes: Mapping[str, int]

    @property
    def orders(self) -> list[Traffic]:
        """Every schedule, the least first."""
        return [t for _, tied in self.bars for t in tied]

    def ratio(self, traffic_bytes: int) -> float:
        """Bytes over the bound."""
        return traffic_bytes / self.bound_bytes


def plot_ratios(result: ComparedSchedules, ax: Axes | None = None) -> Axes:
    """Bars of traffic over the proved bound, best first; lines: the bound, the best schedule; marks: one LRU.

    Schedules that would have the same bar and mark have one together.
    """
    ax = axes(ax)
    bars = _bars(result)
    orders = [tied[0] for _, tied in bars]
    at, lines = places_of([name for name, _ in bars])
    reads = [result.ratio(t.dram_read_bytes) for t in orders]
    writes = [result.ratio(t.dram_write_bytes) for t in orders]
    ax.barh(at, reads, color=BLUE, height=0.75, label="DRAM read")
    ax.barh(at, writes, left=reads, color=ORANGE, height=0.75, label="DRAM write")
    for i, order in enumerate(orders):
        ax.text(reads[i] + writes[i], at[i], f" {result.ratio(order.dram_bytes):.2f}", va="center", fontsize=7)
    lru = [result.ratio(result.lru_bytes[t.order]) for t in orders] if result.lru_bytes else []
    if lru:
        ax.scatter(lru, at, marker="|", s=60, color="black", lw=1.2, label="total under one LRU of that size", zorder=3)
    best, name = result.best_bytes, result.best_name
    ax.axvline(1, color="black", lw=1.4, label=f"proved bound, {format_bytes(result.bound_bytes)}")
    ax.axvline(
        result.ratio(best),
        color=RED,
        ls="--",
        lw=1.2,
        label=f"best schedule, {format_bytes(best)}: {re.split('[,:(]', name)[0].strip()}",
    )
    ax.set_yticks(at, [name for name, _ in bars])
    ax.set_ylim(lines - 0.4, -0.6)
    totals = [1.0, result.ratio(best), *lru, *(r + w for r, w in zip(reads, writes, strict=True))]
    logarithmic = value_axis(ax.xaxis, totals, 0.8)
    if not logarithmic:
        ax.set_xlim(0, max(totals) * (1.2 if look().narrow else 1.08))
    drawn = sum(len(tied) for _, tied in bars)
    left_out = len(result.orders) - drawn
    text = "DRAM traffic / proved lower bound" + (f" (best {drawn}; {left_out} more)" if left_out else "")
    ax.set_xlabel(text + ", logarithmic" * logarithmic)
    return ax


def _bars(result: ComparedSchedules) -> list[tuple[str, Sequence[Traffic]]]:
    """The schedules of each bar, and its name in lines that leave the bars room; as many as a page holds."""
    bars = [(name_of_bar([t.order for t in tied], short), tied) for short, tied in result.bars[:_MOST_BARS]]
    lines = np.cumsum([lines_of(name) for name, _ in bars])
    return bars[: max(1, int(np.searchsorted(lines, _MOST_LINES, side="right")))] if look().narrow else bars


def _named(parse: Callable[[str], S], name: str) -> S | None:
    """The schedule of that name; None for one of the user's own, whose tiles a result does not keep."""
    try:
        return parse(name)
    except UnknownNameError:
        return None


def plot_walk(order: TileOrder, kernel: KernelConfig, grid: tuple[int, int], ax: Axes) -> Axes:
    """The tile grid coloured by when each tile is computed, dark first; lines join the first tiles of the walk."""
    tile, (rows, cols) = kernel.tile, grid
    tiles = order.tiles(rows, cols, OrderParams(sms=kernel.sms, tile_m=tile.bm, tile_n=tile.bn))
    when = np.empty((rows, cols))
    when[tiles[:, 0], tiles[:, 1]] = np.arange(len(tiles))
    shown = when[:: -(-rows // _MOST_CELLS), :: -(-cols // _MOST_CELLS)]
    ax.imshow(
        shown, cmap="cividis", aspect="auto", interpolation="nearest", extent=(-0.5, cols - 0.5, rows - 0.5, -0.5)
    )
    first = tiles[: kernel.wave_blocks]
    if max(rows, cols) <= _MOST_CELLS:  # on a larger grid it is a smear
        ax.plot(first[:, 1], first[:, 0], color="white", lw=0.5, alpha=0.9)
    ax.set_title(order.plain_name, fontsize=6.5, pad=2)
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_visible(True)
        spine.set_color(GREY)
    return ax


def plot_bands(result: ComparedSchedules, ax: Axes) -> Axes:
    """Traffic over the proved bound against the band height of fused schedules of an FFN."""
    families: dict[str, dict[int, float]] = {}
    separate = []
    for traffic in result.orders:
        schedule = _named(parse_ffn_schedule, traffic.order)
        if schedule is None:
            continue
        ratio = result.ratio(traffic.dram_bytes)
        if schedule.kind == "separate":
            separate.append(ratio)
        else:
            family = schedule.kind + (f", hidden in {schedule.split}" if schedule.split > 1 else "")
            families.setdefault(family + (" +sawtooth" if schedule.sawtooth else ""), {})[schedule.band] = ratio
    colors = {"row-fused": BLUE, "interleaved": GREEN}
    for name, points in sorted(families.items(), reverse=True):
        bands = sorted(points)
        base = name.split(" +")[0]
        color = colors.get(base, ORANGE)
        style_of = "--" if "sawtooth" in name else "-"
        ax.plot(bands, [points[b] for b in bands], style_of, color=color, marker="o", ms=2.5, lw=1.1, label=name)
    if separate:
        ax.axhline(min(separate), color=GREY, lw=1.2, label="best separate kernels")
    ax.axhline(1, color="black", lw=1.4, label="proved bound")
    ax.axhline(result.ratio(result.best_bytes), color=RED, ls="--", lw=1.2, label="best schedule")
    ax.set_xscale("log", base=2)
    ticks = sorted({band for points in families.values() for band in points})
    ax.set_xticks([t for t in ticks if t & (t - 1) == 0 or t == ticks[-1]])
    ax.minorticks_off()
    ax.set_yscale("log")
    plain_numbers(ax.xaxis, ax.yaxis)
    ax.set_yticks([1, 2, 5, 10, 20, 50])
    highest = max((r for points in families.values() for r in points.values()), default=2)
    ax.set_ylim(0.9, 3.5 * highest)
    ax.set_xlabel(f"height of a band, in tile rows of {result.config.tile.bm} tokens")
    ax.set_ylabel("traffic / proved bound")
    ax.legend(fontsize=6.5, frameon=False, ncols=2, loc="upper center")
    return ax


def comparison_figure(result: ComparedSchedules) -> Figure:
    """The bars, and for a GEMM the walks below them, on one page.

    Parameters
    ----------
    result : ComparedSchedules
        At least one.

    Returns
    -------
    matplotlib.figure.Figure
    """
    walks: list[TileOrder] = []
    grid = result.grid
    if grid not in (None, (1, 1)) and not look().narrow:
        named = (order for t in result.orders if (order := _named(parse_order, t.order)) is not None)
        walks = list({order.plain_name: order for order in named}.values())
    strip_rows = -(-len(walks) // _PER_ROW)
    bar_height = 1.4 + 0.17 * sum(lines_of(name) for name, _ in _bars(result))
    strip_height = 1.0 * strip_rows + 0.35 if walks else 0
    bands = any(t.order.startswith(("row-fused", "interleaved")) for t in result.orders)
    bands = bands and not look().narrow  # a column holds the bars; `pebble figure walk` draws walks
    if bands:
        strip_height = 2.6
    with page(7.2, bar_height + strip_height) as figure:
        upper: Any = figure
        if strip_height:
            parts: Any = figure.subfigures(2, 1, height_ratios=[bar_height, strip_height])
            upper, lower = parts
        ax = plot_ratios(result, upper.add_subplot())
        upper.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=7)
        small_title(ax, result.title, wrap=True)
        if bands:
            plot_bands(result, lower.add_subplot())
        if not walks or grid is None:
            return figure
        cells = lower.subplots(strip_rows, min(_PER_ROW, len(walks)), squeeze=False)
        for i, cell in enumerate(cells.flat):
            if i < len(walks):
                plot_walk(walks[i], result.config, grid, cell)
            else:
                cell.set_visible(False)
        rows, cols = grid
        wave = "; white: the first wave" if max(rows, cols) <= _MOST_CELLS else ""
        lower.suptitle(f"walk over the grid of {rows} x {cols} tiles, dark first{wave}", fontsize=7)
    return figure
