"""Named numbers as bars: the figure of every answer that is a short table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pebble.plots.save import BLUE, GREEN, ORANGE, RED, axes, small_title, value_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    left = [0.0] * len(bars)
    for number, (part, color) in enumerate(zip(parts, (BLUE, ORANGE, GREEN, RED), strict=False)):
        widths = [values[number] for _, values in bars]
        ax.barh(range(len(bars)), widths, left=left, color=color, height=0.75, label=part or None)
        left = [a + b for a, b in zip(left, widths, strict=True)]
    if line is not None:
        ax.axvline(line, color="black", lw=1.4, label="proved bound")
    value_axis(ax.xaxis, [*left, *([] if line is None else [line])])
    ax.set_yticks(range(len(bars)), names)
    ax.invert_yaxis()
    ax.set_xlabel(xlabel)
    small_title(ax, title)
    if line is not None or any(parts):
        ax.legend(frameon=False, fontsize=7)
    return ax
