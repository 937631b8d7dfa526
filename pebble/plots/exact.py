"""Orders against the exact optimum of the tile game."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pebble.plots.look import look
from pebble.plots.save import BLUE, ORANGE, RED, Axes, Figure, axes, page, small_title, value_axis
from pebble.units import format_bytes, format_capacity

if TYPE_CHECKING:
    from pebble.reports.exact import ExactComparison


def plot_exact(result: ExactComparison, ax: Axes | None = None) -> Axes:
    """Two bars per order, OPT and LRU, in bytes; the optimum as a line, or its interval as a band.

    Orders that move the same share a pair of bars.
    """
    ax = axes(ax)
    totals = {(p.order, p.eviction): p.bytes for p in result.orders}
    names = [tied[0] for tied in _tied(result)]
    at = np.arange(len(names))
    for eviction, color, shift in (("opt", BLUE, -0.2), ("lru", ORANGE, 0.2)):
        values = [totals[name, eviction] / 1e6 for name in names]
        ax.barh(at + shift, values, height=0.38, color=color, label=f"{eviction.upper()} eviction")
        for y, value, name in zip(at + shift, values, names, strict=True):
            ratio = totals[name, eviction] / result.upper_bytes
            ax.text(value, y, f" {ratio:.2f}", va="center", fontsize=6.5)
    if result.optimal:
        ax.axvline(result.upper_bytes / 1e6, color=RED, lw=1.4, label=f"optimum, {format_bytes(result.upper_bytes)}")
    else:
        low, high = result.lower_bytes / 1e6, result.upper_bytes / 1e6
        ax.axvspan(low, high, color=RED, alpha=0.25, label="optimum lies here (proved to found)")
    ax.set_yticks(at, [_shared_name(tied) for tied in _tied(result)])
    ax.set_ylim(len(names) - 0.4, -0.6)
    if not value_axis(ax.xaxis, [value / 1e6 for value in (result.lower_bytes, *totals.values())]):
        ax.set_xlim(0, max(totals.values()) / 1e6 * 1.18)
    ax.set_xlabel("loads + stores, MB (numbers: times the best known)")
    return ax


def _tied(result: ExactComparison) -> list[list[str]]:
    """Orders that move the same under both evictions, together."""
    totals = {(p.order, p.eviction): p.bytes for p in result.orders}
    found: dict[tuple[int, int], list[str]] = {}
    for name in dict.fromkeys(p.order for p in result.orders):
        found.setdefault((totals[name, "opt"], totals[name, "lru"]), []).append(name)
    return list(found.values())


def _shared_name(tied: list[str]) -> str:
    between = "\n" if look().narrow else " "
    return tied[0] if len(tied) == 1 else f"{tied[0]}{between}and {len(tied) - 1} more"


def exact_figure(result: ExactComparison) -> Figure:
    """The figure of ``pebble compare --exact``."""
    count = len(_tied(result))
    with page(6.4, 1.5 + 0.3 * count) as figure:
        ax = plot_exact(result, figure.add_subplot())
        grid = "x".join(map(str, result.grid))
        small_title(
            ax,
            f"{result.gemm.label}\n{grid} tiles of {result.tile}, "
            f"one memory of {format_capacity(result.capacity_bytes)}",
        )
        figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=7)
    return figure
