"""A bound, the best schedule and the published bounds of one instance, as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pebble.plots.save import BLUE, GREEN, GREY, RED, Axes, axes, small_title

_COLOURS = {"proven": BLUE, "legal schedule": GREEN, "refuted here": RED}


def plot_bound(rows: Sequence[Mapping[str, Any]], least: int, title: str, ax: Axes | None = None) -> Axes:
    """Bars of values moved, on a log axis; what is refuted or not proven here is named so.

    Parameters
    ----------
    rows : sequence of mapping
        ``what``, ``elements`` and ``status`` of each bar.
    least : int
        The proved bound, in values.
    title : str
    ax : matplotlib.axes.Axes, optional
    """
    ax = axes(ax)
    rows = [row for row in rows if row["elements"] > 0]
    names = [row["what"] + ("" if row["status"] == "proven" else f" ({row['status']})") for row in rows]
    ax.barh(names, [row["elements"] for row in rows], color=[_COLOURS.get(row["status"], GREY) for row in rows])
    ax.axvline(least, color="black", lw=1.2)
    ax.invert_yaxis()
    ax.set_xscale("log")
    ax.set_xlabel("loads + stores, values")
    small_title(ax, title)
    return ax
