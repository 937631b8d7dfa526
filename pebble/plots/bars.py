"""Named numbers as bars: the figure of every answer that is a short table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pebble.plots.labels import in_lines
from pebble.plots.look import look
from pebble.plots.save import BLUE, GREEN, ORANGE, RED, axes, small_title, value_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINES_OF_A_BAR = 3


def name_of_bar(names: Sequence[str], short: str) -> str:
    """All that share a bar where a few lines hold them, else what stands for them."""
    longest = 25 if look().narrow else 40  # letters
    everyone = in_lines(", ".join(names), longest)
    return everyone if lines_of(everyone) <= _LINES_OF_A_BAR else in_lines(short, longest)


def lines_of(name: str) -> int:
    """Lines of type that the name of a bar takes."""
    return 1 + name.count("\n")


def places_of(names: Sequence[str]) -> tuple[Any, int]:
    """Where bars of such names stand, the first at 0, and how much they take together; a unit is a line of type."""
    lines = np.array([lines_of(name) for name in names])
    return np.cumsum(lines) - (lines + 1) / 2, int(lines.sum())


def plot_bars(
    bars: Sequence[tuple[str, Sequence[float]]],
    xlabel: str,
    title: str,
    ax: Axes | None = None,
    *,
    line: float | None = None,
    parts: Sequence[str] = ("",),
) -> Axes:
    """Horizontal bars, the first on top.

    Parameters
    ----------
    bars : sequence of (str, sequence of float)
        Name, and the parts that make up the bar, from left to right; four at most.
    xlabel, title : str
    ax : matplotlib.axes.Axes, optional
        By default those of a new figure.
    line : float, optional
        Where a proved bound lies.
    parts : sequence of str
        What the parts are, for the legend.
    """
    ax = axes(ax)
    names = [name for name, _ in bars]
    at, lines = places_of(names)
    left = [0.0] * len(bars)
    for number, (part, color) in enumerate(zip(parts, (BLUE, ORANGE, GREEN, RED), strict=False)):
        widths = [values[number] for _, values in bars]
        ax.barh(at, widths, left=left, color=color, height=0.75, label=part or None)
        left = [a + b for a, b in zip(left, widths, strict=True)]
    if line is not None:
        ax.axvline(line, color="black", lw=1.4, label="proved bound")
    value_axis(ax.xaxis, [*left, *([] if line is None else [line])])
    ax.set_yticks(at, names)
    ax.set_ylim(lines - 0.4, -0.6)
    ax.set_xlabel(xlabel)
    small_title(ax, title)
    if line is not None or any(parts):
        ax.legend(frameon=False, fontsize=7)
    return ax
