"""Tile orders on the grid, coloured by time, and how soon each comes back to the same panels of A and B; and orders
against the exact optimum of the tile game.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pebble.plots.look import look
from pebble.plots.save import BLUE, GREEN, ORANGE, PURPLE, RED, Axes, Figure, axes, page, small_title, value_axis
from pebble.schedules.orders import OrderParams, TileOrder
from pebble.units import format_bytes

_STYLES = ((BLUE, "-"), (ORANGE, "--"), (GREEN, "-."), (PURPLE, ":"))


def reuse_distances(tiles: NDArray[np.signedinteger[Any]], cols_offset: int) -> NDArray[np.int64]:
    """Distinct panels used since the last use of each panel; -1 at a first use.

    Parameters
    ----------
    tiles : array of int, shape (tiles, 2)
        The walk. Each tile uses one row panel of A, then one column panel of B.
    cols_offset : int
        Rows of the grid, so that panels of A and B have different numbers.

    Returns
    -------
    array of int, shape (2 tiles,)
        Stack distances (Mattson et al. 1970). Time O(tiles * panels).
    """
    uses = np.empty(2 * len(tiles), dtype=np.int64)
    uses[0::2] = tiles[:, 0]
    uses[1::2] = tiles[:, 1] + cols_offset
    stack: list[int] = []
    result = np.empty(len(uses), dtype=np.int64)
    for number, panel in enumerate(uses.tolist()):
        if panel in stack:
            depth = stack.index(panel)
            result[number] = depth
            del stack[depth]
        else:
            result[number] = -1
        stack.insert(0, panel)
    return result


def plot_order(order: TileOrder, rows: int, cols: int, params: OrderParams, ax: Axes) -> Axes:
    """The grid coloured by time, dark first, with the path of the first half of it."""
    tiles = order.tiles(rows, cols, params)
    when = np.empty((rows, cols))
    when[tiles[:, 0], tiles[:, 1]] = np.arange(len(tiles))
    ax.imshow(when, cmap="cividis", interpolation="nearest", aspect="equal")
    first = tiles[: max(2, len(tiles) // 2)]
    ax.plot(first[:, 1], first[:, 0], color="white", lw=0.7)
    ax.plot(first[0, 1], first[0, 0], marker="o", ms=3, color="white", mec="black", mew=0.5, clip_on=False)
    ax.set_title(order.name, fontsize=7, pad=3)
    ax.set_xticks([])
    ax.set_yticks([])
    return ax


def plot_reuse(orders: Sequence[TileOrder], rows: int, cols: int, params: OrderParams, ax: Axes) -> Axes:
    """Share of panel uses that find their panel among the last x panels: hits of a cache of x panels."""
    for order, (colour, line) in zip(orders, _STYLES * len(orders), strict=False):
        distances = reuse_distances(order.tiles(rows, cols, params), rows)
        sizes = np.arange(0, rows + cols + 1)
        hits = [float(np.mean((distances >= 0) & (distances < size))) for size in sizes]
        ax.step(sizes, hits, where="post", color=colour, ls=line, lw=1.3, label=order.name)
    ax.set_xlabel("panels of A and B that stay (LRU)")
    ax.set_ylabel("share of uses found")
    ax.set_xlim(0, rows + cols)
    ax.set_ylim(0, 1)
    return ax


def walk_figure(orders: Sequence[TileOrder], rows: int, cols: int, params: OrderParams) -> Figure:
    """The figure of ``pebble figure walk``: up to four orders."""
    with page(7.2, 4.6) as figure:
        # a map as wide as half a page would leave the plot none
        across = 2 if look().narrow else max(len(orders), 3 if look().width_inches else 1)
        down = -(-len(orders) // across)
        lower_share = 1.6 if look().narrow else 1.15 if look().width_inches is None else 2.0
        parts: Any = figure.subfigures(2, 1, height_ratios=[down, lower_share])
        upper, lower = parts
        axes = upper.subplots(down, across, squeeze=False)
        for ax in axes.flat[len(orders) :]:
            ax.set_visible(False)
        for order, ax in zip(orders, axes.flat, strict=False):
            plot_order(order, rows, cols, params, ax)
        upper.suptitle(f"{rows} x {cols} tiles: dark first; white: the first half of the walk", fontsize=8)
        ax = plot_reuse(orders, rows, cols, params, lower.add_subplot())
        ax.legend(loc="lower right", frameon=False, fontsize=7)
        small_title(ax, "one row panel of A and one column panel of B per tile")
    return figure


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
