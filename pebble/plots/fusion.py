"""What fusing a feed-forward network saves: separate kernels, fused schedules and the bounds of both, by cache "
"size."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.bounds import separate_bound
from pebble.families.ffn import FFN
from pebble.plots.save import BLUE, GREY, ORANGE, Axes, Figure, log_axes, page, small_title
from pebble.schedules.explicit.ffn import ffn_schedules
from pebble.workloads import Ffn
from pebble.workloads.widths import FastMemory


@dataclass(frozen=True)
class Fusion:
    """Traffic in bytes at each cache size in bytes."""

    ffn: Ffn
    caches: tuple[int, ...]
    bound: tuple[int, ...]  #: of any schedule
    separate_bound: tuple[int, ...]  #: when H goes through memory
    fused: tuple[int, ...]  #: the best schedule known
    separate: tuple[int, ...]  #: the best of separate kernels


def fusion(ffn: Ffn, points: int = 24, least: int = 2**20, most: int = 2**29) -> Fusion:
    """Evaluate the curves from ``least`` to ``most`` bytes."""
    width = ffn.narrowest_bytes
    caches = tuple(round(least * (most / least) ** (i / (points - 1)) / 128) * 128 for i in range(points))
    bound, apart, fused, separate = [], [], [], []
    for cache in caches:
        bound.append(FFN.lower_bound(ffn, cache // width).bytes)
        apart.append(separate_bound(FFN.accounting(ffn), cache // width).bytes)
        schedules = ffn_schedules(ffn, FastMemory.of_values(cache // ffn.widest_bytes, ffn))
        fused.append(min(s.bytes for s in schedules if s.family != "unfused"))
        separate.append(min(s.bytes for s in schedules if s.family == "unfused"))
    return Fusion(ffn, caches, tuple(bound), tuple(apart), tuple(fused), tuple(separate))


def plot_fusion(result: Fusion, ax: Axes) -> Axes:
    """Log-log; between its bound and its best schedule each way of running is shaded."""
    mib = [c / 2**20 for c in result.caches]
    gb = [[v / 1e9 for v in values] for values in (result.bound, result.fused, result.separate_bound, result.separate)]
    ax.fill_between(mib, gb[2], gb[3], color=ORANGE, alpha=0.2, lw=0)
    ax.fill_between(mib, gb[0], gb[1], color=BLUE, alpha=0.2, lw=0)
    ax.plot(mib, gb[3], color=ORANGE, lw=1.5, marker="s", ms=3, markevery=3, label="separate kernels, best schedule")
    ax.plot(mib, gb[2], color=ORANGE, lw=1.2, ls="--", label="separate kernels, proved bound")
    ax.plot(mib, gb[1], color=BLUE, lw=1.5, marker="o", ms=3, markevery=3, label="fused, best schedule")
    ax.plot(mib, gb[0], color="black", lw=1.8, label="any schedule, proved bound")
    compulsory = result.ffn.compulsory_bytes / 1e9
    ax.axhline(compulsory, color=GREY, lw=1, ls=":", label="compulsory")
    log_axes(ax)
    ax.set_xlim(mib[0], mib[-1])
    ax.set_ylim(compulsory / 1.3, max(*gb[3], *gb[1]) * 1.2)
    ax.set_xlabel("fast memory, MiB")
    ax.set_ylabel("traffic, GB")
    small_title(ax, result.ffn.label)
    return ax


def fusion_figure(result: Fusion) -> Figure:
    """The figure of ``pebble figure fusion``."""
    with page(6.0, 4.2) as figure:
        ax = plot_fusion(result, figure.add_subplot())
        ax.legend(loc="upper right", frameon=True, framealpha=0.9, edgecolor="none", fontsize=7)
    return figure
