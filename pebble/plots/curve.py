"""Traffic against cache size: of every schedule with the proved bound beneath, and the ski slope, with the best
schedule, orders and published bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log2
from typing import Any

from pebble.families.gemm import GEMM
from pebble.models.machine import load_machine
from pebble.plots.labels import DASHES, end_label
from pebble.plots.look import POINTS, look
from pebble.plots.save import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    Axes,
    Figure,
    axes,
    log_axes,
    number_log_axis,
    page,
    small_title,
)
from pebble.schedules.explicit import best_gemm_schedule
from pebble.schedules.orders import parse_order
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig, curve_of
from pebble.traces import LINE_BYTES
from pebble.units import format_capacity
from pebble.workloads import Gemm
from pebble.workloads.widths import FastMemory

BOUND = "proved bound at cache + SMs"
_COLOURS = (BLUE, ORANGE, GREEN, RED, "#CC79A7", "#56B4E9")
_INK = (BLUE, "#8F6300", "#00694D", "#A34700", "#99406F", "#1F6E9C")  # the same, dark enough for type


@dataclass(frozen=True)
class Curves:
    """Traffic against the cache size, all in bytes.

    Attributes
    ----------
    title : str
    capacities : sequence of int
        Cache sizes, rising.
    bounds : sequence of int
        What is proved at each.
    schedules : sequence of (str, tuple of int)
        The name of a schedule and what it moves at each, the best at ``reference`` first.
    reference : int
        The cache size to look at first.
    stepped : bool
        Whether traffic falls in steps between the sizes.
    """

    title: str
    capacities: Sequence[int]
    bounds: Sequence[int]
    schedules: Sequence[tuple[str, tuple[int, ...]]]
    reference: int
    stepped: bool


def plot_curve(report: Curves, ax: Axes | None = None) -> Axes:
    """Curves on log axes; the best six at the capacity to look at first in colour, the others grey."""
    ax = axes(ax)
    x = [c / 2**20 for c in report.capacities]
    bound = [b / 1e9 for b in report.bounds]
    shown: dict[tuple[int, ...], list[str]] = {}
    for name, traffic in report.schedules:
        shown.setdefault(traffic, []).append(name)
    rest = sum(len(names) for names in list(shown.values())[len(_COLOURS) :])
    greys = f"{rest} more schedule{'s' * (rest > 1)}"
    for number, (traffic, names) in reversed(list(enumerate(shown.items()))):
        coloured = number < len(_COLOURS)
        label = ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")
        ax.plot(
            x,
            [m / 1e9 for m in traffic],
            color=_COLOURS[number] if coloured else GREY,
            lw=1.4 if coloured else 0.7,
            ls=DASHES[number] if coloured else "-",
            alpha=1 if coloured else 0.6,
            label=label if coloured else greys if number == len(_COLOURS) else None,
            drawstyle="steps-post" if report.stepped else "default",
            zorder=3 if coloured else 2,
        )
        if coloured:
            end_label(ax, x[-1], traffic[-1] / 1e9, label, _INK[number])
    ax.plot(x, bound, color="black", lw=2, label=BOUND, zorder=4)
    end_label(ax, x[-1], bound[-1], "proved bound", "black")
    lowest = min(bound) * 0.8
    ax.fill_between(x, bound, [lowest] * len(x), color="black", alpha=0.08, lw=0)
    ax.axvline(report.reference / 2**20, color=GREY, lw=0.8, ls=":")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xlim(x[0], x[-1])
    ax.set_ylim(lowest, None)
    few = 4 if look().narrow else 8
    powers = range(ceil(log2(x[0])), floor(log2(x[-1])) + 1)
    ticks = [2.0**power for power in powers if (power - powers[-1]) % ceil(len(powers) / few) == 0]
    ax.set_xticks(ticks, [format_capacity(round(tick * 2**20)) for tick in ticks])
    ax.minorticks_off()
    number_log_axis(ax.yaxis)
    ax.set_xlabel("cache size")
    ax.set_ylabel("DRAM traffic, GB")
    return ax


def curve_figure(report: Curves) -> Figure:
    """The figure of one report."""
    with page(6.4, 4.6) as figure:
        ax = plot_curve(report, figure.add_subplot())
        small_title(ax, report.title)
        handles, labels = ax.get_legend_handles_labels()
        entries = [
            (handle, text)
            for handle, text in zip(handles, labels, strict=True)
            if text == BOUND or text.endswith(("more schedule", "more schedules"))
        ]
        figure.legend(*zip(*entries, strict=True), loc="outside lower center", fontsize=6.5, frameon=False)
    return figure


ORDERS = ("row", "grouped-8", "snake-strips-16+sawtooth")
_ORDER_STYLES = ((RED, DASHES[5]), (ORANGE, DASHES[1]), (PURPLE, DASHES[3]), (SKY, DASHES[6]))
_INK_OF = {RED: RED, ORANGE: "#8F6300", PURPLE: "#99406F", SKY: "#1F6E9C"}  # of type, which must be darker than a line
MARKED = ("h100-sxm5-80gb", "a40", "b200-sxm", "a100-sxm4-40gb", "rtx4090")  # those that matter most first
_PUBLISHED = {"irony-toledo-tiskin": DASHES[2], "smith-et-al": DASHES[6], "cosma": DASHES[4]}
_LEAST_CACHE, _MOST_CACHE = 2**18, 2**27
_NAME_POINTS = 6.5  # of the GPUs' names, where no width is asked for
_AXES_SHARE, _NARROW_SHARE = 0.75, 0.5  # of a figure's width, about


@dataclass(frozen=True)
class SkiSlope:
    """Traffic in bytes at each cache size in bytes."""

    gemm: Gemm
    caches: tuple[int, ...]  #: cache sizes of the curves
    #: the proved bound, and the best schedule under explicit control, of one memory of that size
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    #: the proved bound of the simulated kernel, which also holds the values of its running blocks
    kernel_lower: tuple[int, ...]
    published: dict[str, tuple[int, ...]]  #: published bounds by name
    #: those of them that are above the best schedule at some cache size, so that they are none
    refuted: frozenset[str]
    order_caches: tuple[int, ...]  #: cache sizes of the simulations, every one simulated
    #: simulated DRAM traffic by tile order, in a kernel whose blocks hold further values on the SMs
    orders: dict[str, tuple[int, ...]]
    sms: int  #: blocks that run at once


def ski_slope(gemm: Gemm, orders: Sequence[str] = ORDERS, sms: int = 108, points: int = 60) -> SkiSlope:
    """Evaluate all curves.

    Parameters
    ----------
    gemm : Gemm
    orders : sequence of str
        Tile orders to simulate, tile 128x128, under LRU.
    sms : int
        SMs of the simulated kernel.
    points : int
        Cache sizes of the curves, and twice as many of the simulations, from 1 to 128 MiB.
    """
    width = gemm.narrowest_bytes
    whole = 2 * gemm.compulsory_bytes
    least = min(_LEAST_CACHE, max(64, whole // 64))
    caches = tuple(sorted({_step(least, whole, i, points - 1) for i in range(points)}))
    lower = tuple(GEMM.lower_bound(gemm, max(3, c // width)).bytes for c in caches)
    tile = TileShape.default(gemm).cut_to(gemm)
    held = sms * GEMM.kernel_needs(gemm, tile).values
    kernel_lower = tuple(GEMM.lower_bound(gemm, c // width + held).bytes for c in caches)
    upper = tuple(
        best_gemm_schedule(gemm, FastMemory.of_values(max(3, c // gemm.widest_bytes), gemm)).bytes for c in caches
    )
    formulas = [{f.name: f.elements * width for f in GEMM.published(gemm, max(3, c // width))} for c in caches]
    published = {name: tuple(values[name] for values in formulas) for name in _PUBLISHED}
    refuted = frozenset(
        name for name, values in published.items() if any(v > best for v, best in zip(values, upper, strict=True))
    )
    order_caches = tuple(_step(2**20, _MOST_CACHE, i, 2 * points) for i in range(2 * points + 1))
    lines = [cache // LINE_BYTES for cache in order_caches]
    config = KernelConfig(tile, sms, 1, order_caches[-1])
    best_orders = {
        name: curve_of(name, GEMM.trace(gemm, parse_order(name), config, False), "lru", lines).dram_bytes
        for name in orders
    }
    return SkiSlope(gemm, caches, lower, upper, kernel_lower, published, refuted, order_caches, best_orders, sms)


def _step(first: int, last: int, i: int, steps: int) -> int:
    """Point i of a geometric series, a multiple of 128."""
    return round(first * math.pow(last / first, i / steps) / 128) * 128


def plot_ski_slope(slope: SkiSlope, ax: Axes) -> Axes:
    """Log-log: kernels above the bound of kernels, one memory alone as a band; names at the ends, GPUs' L2 above."""
    gb, right = 1e9, _MOST_CACHE / 2**20
    mib = [*(c / 2**20 for c in slope.caches if c < _MOST_CACHE), right]

    def drawn(values: Sequence[float]) -> list[float]:
        """Up to the edge, in GB; where everything fits the last value holds on."""
        return [v / gb for v in [*values, values[-1]][: len(mib)]]

    lower, upper, kernel = drawn(slope.lower), drawn(slope.upper), drawn(slope.kernel_lower)
    # a kernel also holds values on its SMs and may go below the band, which is of one memory and nothing else
    ax.fill_between(mib, lower, upper, color=BLUE, alpha=0.25, lw=0, step="post")
    ax.plot(mib, upper, color=BLUE, lw=1, drawstyle="steps-post", label="cache alone: best schedule")
    ax.plot(mib, lower, color=BLUE, lw=0.6, ls=DASHES[2], label="cache-only bound, which kernels may beat")
    ax.plot(mib, kernel, color="black", lw=2, label="kernel bound: cache and SMs")
    for name, values in slope.published.items():
        verdict = " (refuted here)" if name in slope.refuted else ""
        points = [(x, v) for x, v in zip(mib, drawn(values), strict=True) if v > 0]
        if points:
            ax.plot(
                *zip(*points, strict=True), color=GREY, lw=1, ls=_PUBLISHED[name], label=f"published: {name}{verdict}"
            )
    at = [c / 2**20 for c in slope.order_caches]
    for (name, values), (colour, dashes) in zip(slope.orders.items(), _ORDER_STYLES, strict=False):
        traffic = [v / gb for v in values]
        ax.plot(at, traffic, color=colour, ls=dashes, lw=1.3, drawstyle="steps-post", label=f"{name}, LRU")
        end_label(ax, right, traffic[-1], name, _INK_OF[colour])
    compulsory = slope.gemm.compulsory_bytes / gb
    ax.axhline(compulsory, color=GREEN, lw=1, ls=DASHES[5], label="compulsory")
    log_axes(ax)
    ax.set_ylim(compulsory / 1.8, max(max(v) for v in [slope.upper, *slope.orders.values()]) / gb * 1.5)
    ax.set_xlim(mib[0], right)
    ax.set_xlabel("cache, MiB")
    ax.set_ylabel("DRAM traffic, GB")
    end_label(ax, right, compulsory, "compulsory", GREEN)
    end_label(ax, right, kernel[-1], "kernel bound", "black")
    end_label(ax, right, upper[-1], "cache alone", BLUE)
    tall = _mark_gpus(ax)
    small_title(ax, f"{slope.gemm.label}; simulated: tile 128x128, {slope.sms} blocks at once, waves", pad=tall)
    return ax


def _mark_gpus(ax: Axes) -> float:
    """L2 sizes as thin lines with a name right above each, as many as stand apart; how many points high they are.

    Equal sizes share a line.
    """
    low, high = ax.get_xlim()
    sizes: dict[float, list[str]] = {}
    for name in MARKED:
        if low < (mib := load_machine(name).l2_bytes / 2**20) <= high:
            sizes.setdefault(mib, []).append(name.partition("-")[0])
    points = look().base_points * (_NAME_POINTS / POINTS if look().width_inches is None else 1)
    share = _NARROW_SHARE if look().narrow else _AXES_SHARE
    gap = math.log(high / low) * 1.5 * points / (share * 72 * ax.figure.bbox.width / ax.figure.dpi)
    marked: list[float] = []
    for x in sizes:
        if all(abs(math.log(x / other)) >= gap for other in marked):
            marked.append(x)
    for x in marked:
        above: dict[str, Any] = {"transform": ax.get_xaxis_transform()}
        ax.axvline(x, color=GREY, lw=0.6, zorder=0)
        ax.text(x, 1.02, "/".join(sizes[x]), rotation=90, ha="center", va="bottom", fontsize=points, **above)
    return 6 + 0.7 * points * max((len("/".join(sizes[x])) for x in marked), default=0)


def ski_slope_figure(slope: SkiSlope) -> Figure:
    """The figure of ``pebble figure ski-slope``: a legend says what the names at the ends do not."""
    with page(6.4, 4.9) as figure:
        ax = plot_ski_slope(slope, figure.add_subplot())
        handles, labels = ax.get_legend_handles_labels()
        named = [(h, text) for h, text in zip(handles, labels, strict=True) if not text.endswith(("LRU", "compulsory"))]
        figure.legend(*zip(*named, strict=True), loc="outside lower center", ncols=2, frameon=False, fontsize=6.5)
    return figure
