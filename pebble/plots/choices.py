"""What a choice costs: which operand stays, against kappa = k / sqrt(S); fused or separate kernels of a feed-forward
network, by cache; and of a decode step the share of the KV cache, against the context length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pebble.bounds import separate_bound
from pebble.families.ffn import FFN
from pebble.families.gemm import GEMM
from pebble.plots.look import look
from pebble.plots.save import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    Axes,
    Figure,
    axes,
    log_axes,
    page,
    plain_numbers,
    small_title,
    value_axis,
)
from pebble.schedules.explicit.blocked import blocked_products
from pebble.schedules.explicit.ffn import ffn_schedules
from pebble.units import format_capacity
from pebble.workloads import Ffn, Gemm
from pebble.workloads.widths import FastMemory

# of squares A and B move the same: the gaps of B's line show A's below it
_STYLES: dict[str, tuple[str, Any]] = {"A": (BLUE, "-"), "B": (GREEN, (0, (3, 4))), "C": (ORANGE, "-.")}
_LEAST, _MOST, _STEPS = -3.0, 3.0, 48  # powers of two of kappa, and steps between them


@dataclass(frozen=True)
class Stationarity:
    """The best schedule of each stationary operand, k by k.

    Attributes
    ----------
    gemm : Gemm
        Its m, n and types; its k is not used.
    capacity : int
        S, in values.
    depths : tuple of int
        The k that were tried.
    traffic : dict
        A, B and C: values moved at each k.
    bounds : tuple of int
        The proved least at each k, values.
    """

    gemm: Gemm
    capacity: int
    depths: tuple[int, ...]
    traffic: dict[str, tuple[int, ...]]
    bounds: tuple[int, ...]

    @property
    def kappas(self) -> list[float]:
        """k over the square root of S."""
        return [k / math.sqrt(self.capacity) for k in self.depths]

    @property
    def winners(self) -> list[str]:
        """The operand that is best kept at each k; a tie goes to the first letter."""
        return [min(self.traffic, key=lambda name: (self.traffic[name][i], name)) for i in range(len(self.depths))]

    @property
    def switch(self) -> float | None:
        """The kappa from which on C-stationary wins at every k tried; None where another wins at the last."""
        lost = [i for i, name in enumerate(self.winners) if name != "C"]
        first = lost[-1] + 1 if lost else 0
        return self.kappas[first] if first < len(self.depths) else None

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        at = zip(self.depths, self.kappas, self.winners, self.bounds, strict=True)
        rows = [
            {
                "k": k,
                "kappa": kappa,
                "best": best,
                "bound_elements": bound,
                "best_over_bound": self.traffic[best][i] / bound,
            }
            | {f"{name.lower()}_stationary_elements": traffic[i] for name, traffic in self.traffic.items()}
            for i, (k, kappa, best, bound) in enumerate(at)
        ]
        return {"capacity_elements": self.capacity, "c_wins_from_kappa": self.switch, "depths": rows}


def stationarity(gemm: Gemm, capacity: int) -> Stationarity:
    """Try k from an eighth of sqrt(S) to eight times it.

    Parameters
    ----------
    gemm : Gemm
    capacity : int
        S, in values, 3 or more.

    Notes
    -----
    With m, n far above sqrt(S) a slab of A (rows x k, all that fits) is held while B passes: k^2 / S + 1 values for
    each output, besides A itself; a square of C while A and B pass: 2 k / sqrt(S) + 1. They meet at k = 2 sqrt(S).
    """
    powers = (_LEAST + (_MOST - _LEAST) * i / _STEPS for i in range(_STEPS + 1))
    depths = sorted({max(1, round(math.sqrt(capacity) * 2**power)) for power in powers})
    traffic: dict[str, list[int]] = {name: [] for name in _STYLES}
    bounds = []
    for k in depths:
        single = replace(gemm, k=k)
        best: dict[str, int] = {}
        for schedule in blocked_products(single, FastMemory.of_values(capacity)):
            name = schedule.stationary
            best[name] = min(best.get(name, schedule.elements), schedule.elements)
        for name, values in traffic.items():
            values.append(best[name])
        bounds.append(GEMM.lower_bound(single, capacity).elements)
    return Stationarity(gemm, capacity, tuple(depths), {n: tuple(v) for n, v in traffic.items()}, tuple(bounds))


def plot_stationarity(result: Stationarity, ax: Axes | None = None) -> Axes:
    """Values moved for each output, against kappa."""
    ax = axes(ax)
    outputs = result.gemm.m * result.gemm.n
    for name, (color, line) in _STYLES.items():
        each = [traffic / outputs for traffic in result.traffic[name]]
        ax.plot(result.kappas, each, color=color, ls=line, lw=1.4, label=f"{name}-stationary")
    ax.plot(result.kappas, [bound / outputs for bound in result.bounds], color="black", lw=1, label="proved bound")
    log_axes(ax)
    ax.set_xticks([2.0**power for power in range(-3, 4)])
    ax.minorticks_off()
    ax.yaxis.set_ticks([value for value in (1, 2, 5, 10, 20, 50, 100) if ax.get_ylim()[0] < value < ax.get_ylim()[1]])
    plain_numbers(ax.xaxis, ax.yaxis)
    if result.switch is not None:
        ax.axvline(result.switch, color="0.6", lw=0.8, ls=":")
    ax.set_xlabel("kappa = k / sqrt(S)")
    ax.set_ylabel("values moved for each output")
    gemm = result.gemm
    held = format_capacity(result.capacity * gemm.widest_bytes)
    small_title(ax, f"{gemm.m} x {gemm.n} x k, S = {result.capacity:,} values ({held})")
    return ax


def stationarity_figure(result: Stationarity) -> Figure:
    """The figure of ``pebble figure stationarity``: as wide as a column of a paper."""
    with page(3.33, 2.8) as figure:
        plot_stationarity(result, figure.add_subplot()).legend(frameon=False, fontsize=7)
    return figure


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
    bound, each_alone, fused, separate = [], [], [], []
    for cache in caches:
        bound.append(FFN.lower_bound(ffn, cache // width).bytes)
        each_alone.append(separate_bound(FFN.accounting(ffn), cache // width).bytes)
        schedules = ffn_schedules(ffn, FastMemory.of_values(cache // ffn.widest_bytes, ffn))
        fused.append(min(s.bytes for s in schedules if s.family != "unfused"))
        separate.append(min(s.bytes for s in schedules if s.family == "unfused"))
    return Fusion(ffn, caches, tuple(bound), tuple(each_alone), tuple(fused), tuple(separate))


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


Shares = Mapping[int, Mapping[int, float]]
"""The KV cache's share of the least traffic, by batch size and context length."""


def plot_decode(shares: Shares, title: str, ax: Axes | None = None) -> Axes:
    """A line per batch size, on a log axis of context lengths."""
    ax = axes(ax)
    for batch, by_context in shares.items():
        ax.plot(list(by_context), list(by_context.values()), marker="o", ms=3, lw=1, label=f"batch {batch}")
    ax.set_xscale("log", base=2)
    if not (
        look().log and value_axis(ax.yaxis, [share for by_context in shares.values() for share in by_context.values()])
    ):
        ax.set_ylim(0, 1)
    ax.set_xlabel("context, keys")
    ax.set_ylabel("share of the KV cache")
    small_title(ax, title)
    ax.legend(frameon=False, fontsize=7)
    return ax


def decode_figure(shares: Shares, title: str) -> Figure:
    """The figure of ``pebble decode --figure``: as wide as a column of a paper."""
    with page(3.33, 3.0) as figure:
        ax = plot_decode(shares, title, figure.add_subplot())
        contexts = sorted({context for by_context in shares.values() for context in by_context})
        ax.set_xticks(contexts, [f"{context // 1024}k" for context in contexts])
        handles, labels = ax.get_legend_handles_labels()
        legend = ax.get_legend()
        if legend is not None:  # seven lines leave no room for it inside
            legend.remove()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=6.5, frameon=False)
    return figure
