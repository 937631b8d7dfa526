"""Answers that are short tables, as bars: named numbers, a bound beside the best schedule and the published bounds,
energy part by part, and what a search found over the proved bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pebble.plots.labels import in_lines
from pebble.plots.look import look
from pebble.plots.save import BLUE, GREEN, GREY, ORANGE, RED, Axes, Figure, axes, page, small_title, value_axis
from pebble.units import format_bytes

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


_PARTS = {"operations": "operations", "dram": "DRAM", "l2": "L2", "shared": "shared memory"}


class EnergyBar(NamedTuple):
    """Schedules that take the same, by name; joules of each part."""

    names: tuple[str, ...]
    short: str
    joules: Mapping[str, float]

    @property
    def name(self) -> str:
        """What stands beside the bar."""
        return name_of_bar(self.names, self.short)


def plot_energy(energies: Sequence[EnergyBar], title: str, ax: Axes | None = None) -> Axes:
    """A bar for each schedule, those alike in one, and one for what is proved to be moved at least."""
    levels = [level for level in _PARTS if level in energies[0].joules]
    most = max(sum(energy.joules.values()) for energy in energies)
    unit, scale = ("J", 1.0) if most >= 0.1 else ("mJ", 1e3)
    bars = [(energy.name, [scale * energy.joules[level] for level in levels]) for energy in energies]
    ax = plot_bars(bars, f"{unit}, an estimate", title, ax, parts=[_PARTS[level] for level in levels])
    if ax.get_xscale() == "linear":
        ax.locator_params(axis="x", nbins=3 if look().narrow else 6)
    return ax


def energy_figure(energies: Sequence[EnergyBar], title: str) -> Figure:
    """The figure of ``pebble figure energy``: long names leave a column no room."""
    with page(6.4, 1.5 + 0.2 * sum(lines_of(energy.name) for energy in energies[1:])) as figure:
        ax = plot_energy(energies, title, figure.add_subplot())
        handles, labels = ax.get_legend_handles_labels()
        legend = ax.get_legend()
        if legend is not None:
            legend.remove()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=6.5, frameon=False)
    return figure


MOST_BARS = 12


class TunedBar(NamedTuple):
    """A schedule: what it reads and writes in its worst case, over the bound."""

    name: str
    reads: float
    writes: float
    baseline: bool


def plot_tuning(shown: Sequence[TunedBar], bound_bytes: int, of: str, ax: Axes | None = None) -> Axes:
    """Bars over the bound, the best first, a common one in grey; ``of`` says of which case they are."""
    ax = axes(ax)
    at = np.arange(len(shown))
    reads, writes = [bar.reads for bar in shown], [bar.writes for bar in shown]
    colours = [GREY if bar.baseline else BLUE for bar in shown]
    ax.barh(at, reads, color=colours, height=0.75, label="DRAM read")
    ax.barh(at, writes, left=reads, color=ORANGE, height=0.75, label="DRAM write")
    for i, bar in enumerate(shown):
        ax.text(bar.reads + bar.writes, i, f" {bar.reads + bar.writes:.2f}", va="center", fontsize=7)
    ax.axvline(1, color="black", lw=1.4, label=f"proved bound, {format_bytes(bound_bytes)}")
    ax.set_yticks(at, [bar.name for bar in shown], fontsize=7)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    totals = [r + w for r, w in zip(reads, writes, strict=True)]
    if not value_axis(ax.xaxis, [1, *totals], 0.8):
        ax.set_xlim(0, 1.12 * max(totals))
    ax.set_xlabel(f"DRAM traffic / proved lower bound{of}")
    return ax
