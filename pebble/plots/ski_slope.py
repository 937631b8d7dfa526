"""The ski slope: traffic against cache size; the proved bounds, the best schedule, orders and published bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pebble.families.gemm import GEMM
from pebble.models.machine import load_machine
from pebble.plots.labels import DASHES, end_label
from pebble.plots.look import POINTS, look
from pebble.plots.save import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, Axes, Figure, log_axes, page, small_title
from pebble.schedules.explicit import best_gemm_schedule
from pebble.schedules.orders import parse_order
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig, curve_of
from pebble.traces import LINE_BYTES
from pebble.workloads import Gemm
from pebble.workloads.widths import FastMemory

ORDERS = ("row", "grouped-8", "snake-strips-16+sawtooth")
_ORDER_STYLES = ((RED, DASHES[0]), (ORANGE, DASHES[1]), (PURPLE, DASHES[3]), (SKY, DASHES[6]))
_INK = {RED: RED, ORANGE: "#8F6300", PURPLE: "#99406F", SKY: "#1F6E9C"}  # of type, which must be darker than a line
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
    found_orders = {
        name: curve_of(name, GEMM.trace(gemm, parse_order(name), config, False), "lru", lines).dram_bytes
        for name in orders
    }
    return SkiSlope(gemm, caches, lower, upper, kernel_lower, published, refuted, order_caches, found_orders, sms)


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
        kept = [(x, v) for x, v in zip(mib, drawn(values), strict=True) if v > 0]
        if kept:
            ax.plot(
                *zip(*kept, strict=True), color=GREY, lw=1, ls=_PUBLISHED[name], label=f"published: {name}{verdict}"
            )
    at = [c / 2**20 for c in slope.order_caches]
    for (name, values), (colour, dashes) in zip(slope.orders.items(), _ORDER_STYLES, strict=False):
        traffic = [v / gb for v in values]
        ax.plot(at, traffic, color=colour, ls=dashes, lw=1.3, drawstyle="steps-post", label=f"{name}, LRU")
        end_label(ax, right, traffic[-1], name, _INK[colour])
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
