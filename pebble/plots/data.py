"""The numbers that a figure shows, read off the figure itself, so that they are those that are drawn."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
else:  # drawing loads matplotlib, importing a figure does not
    Axes = Axis = Figure = Any


def drawn_data(figure: Figure) -> list[dict[str, Any]]:
    """Every named line, mark, bar and cell.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        One of ours: what has no name in it (a frame, a guide to a label) is no number.

    Returns
    -------
    list of dict
        Keys panel (from 1), series, x, y, x_is and y_is (what the axes say), and value, of a cell of a map. A place on
        an axis of names is its name.
    """
    shown = [ax for ax in figure.axes if ax.get_visible() and ax.get_label() != "<colorbar>"]
    return [{"panel": panel, **row} for panel, ax in enumerate(shown, start=1) for row in _of_axes(ax)]


def _of_axes(ax: Axes) -> list[dict[str, Any]]:
    said = {"x_is": _said(ax.get_xlabel()), "y_is": _said(ax.get_ylabel())}
    across, up = _names(ax.xaxis), _names(ax.yaxis)
    results = []
    for name, x, y, value in [*_bars(ax), *_lines(ax), *_marks(ax), *_cells(ax)]:
        row = {"series": _said(name), "x": across.get(x, x), "y": up.get(y, y), **said}
        results.append(row if value is None else {**row, "value": value})
    return results


Number = tuple[str, float, float, float | None]


def _bars(ax: Axes) -> list[Number]:
    from matplotlib.container import BarContainer

    results: list[Number] = []
    for bars in ax.containers:
        if isinstance(bars, BarContainer):
            upright = bars.orientation == "vertical"
            for bar in bars.patches:
                middle = bar.get_x() + bar.get_width() / 2, bar.get_y() + bar.get_height() / 2
                x, y = (middle[0], bar.get_height()) if upright else (bar.get_width(), middle[1])
                results.append((str(bars.get_label()), _plain(x), _plain(y), None))
    return results


def _lines(ax: Axes) -> list[Number]:
    results: list[Number] = []
    for line in ax.lines:
        if not str(line.get_label()).startswith("_"):
            across = line.get_transform() != ax.transData  # a line from edge to edge has one number
            points = np.asarray(line.get_xydata(), dtype=float)[: 1 if across else None]
            results += [(str(line.get_label()), _plain(x), _plain(y), None) for x, y in points.tolist()]
    return results


def _marks(ax: Axes) -> list[Number]:
    from matplotlib.collections import PathCollection

    results: list[Number] = []
    for marks in ax.collections:
        if isinstance(marks, PathCollection) and not str(marks.get_label()).startswith("_"):
            points = np.asarray(marks.get_offsets(), dtype=float)
            results += [(str(marks.get_label()), _plain(x), _plain(y), None) for x, y in points.tolist()]
    return results


def _cells(ax: Axes) -> list[Number]:
    """Maps: the column is x, the row y."""
    results: list[Number] = []
    for image in ax.images:
        name = ax.get_title().split("\n")[0] or ax.get_title(loc="left").split("\n")[0]
        cells: list[list[float]] = np.ma.filled(np.ma.asarray(image.get_array(), dtype=float), np.nan).tolist()
        for y, row in enumerate(cells):
            results += [(name, x, y, _plain(value)) for x, value in enumerate(row) if not isnan(value)]
    return results


def _said(label: str) -> str:
    return " ".join(label.split())


def _plain(value: float) -> float:
    """Without the last digits, which are of the arithmetic; a whole number as one."""
    rounded = float(f"{value:.12g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded


def _names(axis: Axis) -> dict[float, str]:
    """The names of places along an axis that has names for ticks."""
    from matplotlib.ticker import FixedFormatter, FixedLocator

    formatter, locator = axis.get_major_formatter(), axis.get_major_locator()
    if not (isinstance(formatter, FixedFormatter) and isinstance(locator, FixedLocator)):
        return {}
    return {_plain(place): " ".join(name.split()) for place, name in zip(locator(), formatter.seq, strict=False)}
