"""The ski slope: traffic against cache size; the proved bounds, the best schedule, orders and published bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from pebble.families.gemm import GEMM
from pebble.models.machine import load_machine, machine_names
from pebble.plots.look import POINTS, look
from pebble.plots.save import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, Axes, Figure, log_axes, page, small_title
from pebble.schedules.explicit import best_gemm_schedule
from pebble.schedules.orders import parse_order
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig, curve_of
from pebble.traces import LINE_BYTES
from pebble.workloads import Gemm
from pebble.workloads.widths import Room

ORDERS = ("row", "grouped-8", "snake-strips-16+sawtooth")
_ORDER_STYLES = ((ORANGE, "o"), (PURPLE, "s"), (SKY, "D"))
MARKED = ("a40", "a100-sxm4-40gb", "h100-sxm5-80gb", "rtx4090", "b200-sxm")
_PUBLISHED = {"irony-toledo-tiskin": ":", "smith-et-al": "-.", "cosma": "--"}
_LEAST_CACHE = 2**18
_NAME_POINTS = 6.5  # of the GPUs' names, where no width is asked for
_AXES_SHARE = 0.8  # of a figure's width, about


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
    upper = tuple(best_gemm_schedule(gemm, Room.of_values(max(3, c // gemm.widest_bytes), gemm)).bytes for c in caches)
    formulas = [{f.name: f.elements * width for f in GEMM.published(gemm, max(3, c // width))} for c in caches]
    published = {name: tuple(values[name] for values in formulas) for name in _PUBLISHED}
    refuted = frozenset(
        name for name, values in published.items() if any(v > best for v, best in zip(values, upper, strict=True))
    )
    order_caches = tuple(_step(2**20, 2**27, i, 2 * points) for i in range(2 * points + 1))
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
    """Log-log: the gap between bound and best schedule shaded, orders as marked steps, GPUs' L2 sizes above."""
    mib = [c / 2**20 for c in slope.caches]
    gb = 1e9
    ax.fill_between(
        mib, [x / gb for x in slope.lower], [x / gb for x in slope.upper], color=BLUE, alpha=0.15, lw=0, step="post"
    )
    ax.plot(
        mib,
        [x / gb for x in slope.upper],
        color=BLUE,
        lw=1.4,
        drawstyle="steps-post",
        label="cache alone: best schedule",
    )
    ax.plot(
        mib,
        [x / gb for x in slope.lower],
        color=BLUE,
        lw=1,
        ls=(0, (6, 2)),
        label="cache-only bound, which kernels may beat",
    )
    # black is the bound of what is simulated: a kernel also holds values on its SMs and may go below the one above
    kernel = [x / gb for x in slope.kernel_lower]
    ax.plot(mib, kernel, color="black", lw=1.8, label="kernel bound: cache and SMs")
    for name, values in slope.published.items():
        kept = [(x, v / gb) for x, v in zip(mib, values, strict=True) if v > 0]
        if kept:
            verdict = " (refuted here)" if name in slope.refuted else ""
            ax.plot(
                *zip(*kept, strict=True), color=GREY, lw=1, ls=_PUBLISHED[name], label=f"published: {name}{verdict}"
            )
    at = [c / 2**20 for c in slope.order_caches]
    for (name, values), (colour, marker) in zip(slope.orders.items(), _ORDER_STYLES, strict=False):
        ax.plot(
            at, [v / gb for v in values], color=colour, marker=marker, ms=3.5, lw=1, drawstyle="steps-post",
            markevery=max(1, len(at) // 8), label=f"{name}, LRU",
        )  # fmt: skip
    ax.axhline(slope.gemm.compulsory_bytes / gb, color=GREEN, lw=1, ls=(0, (6, 1, 1, 1, 1, 1)), label="compulsory")
    log_axes(ax)
    low = slope.gemm.compulsory_bytes / gb / 1.8
    ax.set_ylim(low, max(max(v) for v in [slope.upper, *slope.orders.values()]) / gb * 1.5)
    ax.set_xlim(mib[0], mib[-1])
    ax.set_xlabel("cache, MiB")
    ax.set_ylabel("DRAM traffic, GB")
    tall = _mark_gpus(ax)
    small_title(ax, f"{slope.gemm.label}; simulated: tile 128x128, {slope.sms} blocks at once, waves", pad=tall)
    return ax


def _mark_gpus(ax: Axes) -> float:
    """L2 sizes as thin lines, each led to its name above the axes; how many points high the names are.

    Equal sizes share a line. Names that would run into each other stand beside their lines.
    """
    low, high = ax.get_xlim()
    sizes: dict[float, list[str]] = {}
    for name in machine_names():
        if name in MARKED and low < (mib := load_machine(name).l2_bytes / 2**20) < high:
            sizes.setdefault(mib, []).append(name.partition("-")[0])
    points = look().base_points * (_NAME_POINTS / POINTS if look().width_inches is None else 1)
    gap = math.log(high / low) * 1.3 * points / (_AXES_SHARE * 72 * ax.figure.bbox.width / ax.figure.dpi)
    at = sorted(sizes)
    for x, place in zip(at, map(math.exp, _apart([math.log(x) for x in at], gap)), strict=True):
        above: dict[str, Any] = {"transform": ax.get_xaxis_transform()}
        ax.axvline(x, color=GREY, lw=0.6, zorder=0)
        ax.plot([x, place], [1, 1.03], color=GREY, lw=0.6, clip_on=False, **above)
        ax.text(
            place, 1.04, "/".join(sizes[x]), rotation=90, ha="center", va="bottom", fontsize=points, color=RED, **above
        )
    return 12 + 0.7 * points * max((len("/".join(names)) for names in sizes.values()), default=0)


def _apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Places in order, no two nearer than ``gap``, as near to those wanted as squares tell: neighbours pooled."""
    pools: list[list[float]] = []
    for i, place in enumerate(wanted):
        pools.append([place - i * gap])
        while len(pools) > 1 and fmean(pools[-2]) > fmean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    return [fmean(pool) + i * gap for i, pool in enumerate(pool for pool in pools for _ in pool)]


def ski_slope_figure(slope: SkiSlope) -> Figure:
    """The figure of ``pebble figure ski-slope``."""
    with page(6.4, 4.9) as figure:
        plot_ski_slope(slope, figure.add_subplot())
        figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=6.5)
    return figure
