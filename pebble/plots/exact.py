"""Orders against the exact optimum of the tile game."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pebble.plots.look import look
from pebble.plots.save import BLUE, ORANGE, RED, Axes, Figure, axes, page, small_title, value_axis
from pebble.units import format_bytes


@dataclass(frozen=True)
class PlayedOrders:
    """What orders move in the tile game.

    Attributes
    ----------
    title : str
    lower_bytes, upper_bytes : int
        The optimum lies between.
    totals : mapping of (str, str) to int
        Bytes, by order and eviction (``opt``, ``lru``), the least first.
    """

    title: str
    lower_bytes: int
    upper_bytes: int
    totals: Mapping[tuple[str, str], int]

    @property
    def tied(self) -> list[list[str]]:
        """Orders that move the same under both evictions, together."""
        result: dict[tuple[int, int], list[str]] = {}
        for name in dict.fromkeys(order for order, _ in self.totals):
            result.setdefault((self.totals[name, "opt"], self.totals[name, "lru"]), []).append(name)
        return list(result.values())


def plot_exact(result: PlayedOrders, ax: Axes | None = None) -> Axes:
    """Two bars per order, OPT and LRU, in bytes; the optimum as a line, or its interval as a band.

    Orders that move the same share a pair of bars.
    """
    ax = axes(ax)
    totals = result.totals
    names = [tied[0] for tied in result.tied]
    at = np.arange(len(names))
    for eviction, color, shift in (("opt", BLUE, -0.2), ("lru", ORANGE, 0.2)):
        values = [totals[name, eviction] / 1e6 for name in names]
        ax.barh(at + shift, values, height=0.38, color=color, label=f"{eviction.upper()} eviction")
        for y, value, name in zip(at + shift, values, names, strict=True):
            ratio = totals[name, eviction] / result.upper_bytes
            ax.text(value, y, f" {ratio:.2f}", va="center", fontsize=6.5)
    if result.lower_bytes == result.upper_bytes:
        ax.axvline(result.upper_bytes / 1e6, color=RED, lw=1.4, label=f"optimum, {format_bytes(result.upper_bytes)}")
    else:
        low, high = result.lower_bytes / 1e6, result.upper_bytes / 1e6
        ax.axvspan(low, high, color=RED, alpha=0.25, label="optimum lies here (proved to found)")
    ax.set_yticks(at, [_shared_name(tied) for tied in result.tied])
    ax.set_ylim(len(names) - 0.4, -0.6)
    if not value_axis(ax.xaxis, [value / 1e6 for value in (result.lower_bytes, *totals.values())]):
        ax.set_xlim(0, max(totals.values()) / 1e6 * 1.18)
    ax.set_xlabel("loads + stores, MB (numbers: times the best known)")
    return ax


def _shared_name(tied: list[str]) -> str:
    between = "\n" if look().narrow else " "
    return tied[0] if len(tied) == 1 else f"{tied[0]}{between}and {len(tied) - 1} more"


def exact_figure(result: PlayedOrders) -> Figure:
    """The figure of ``pebble compare --exact``."""
    with page(6.4, 1.5 + 0.3 * len(result.tied)) as figure:
        small_title(plot_exact(result, figure.add_subplot()), result.title)
        figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=7)
    return figure
