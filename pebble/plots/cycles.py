"""One k-tile on one SM: compute beside its loads, by each set of constants."""

from __future__ import annotations

from collections.abc import Sequence

from pebble.models.tile_model import KTile
from pebble.plots.look import look
from pebble.plots.save import BLUE, GREEN, GREY, ORANGE, Axes, Figure, axes, page, small_title, value_axis


def _bars(step: KTile) -> list[tuple[str, list[tuple[str, str, float]]]]:
    """Bars of parts: what it is in the legend, its colour, cycles."""
    c = step.constants
    leg = [("latency", GREY, c.l2_latency.value), ("transfer from L2", GREEN, step.l2_transfer)]
    more = [("latency", GREY, c.dram_latency.value), ("transfer from DRAM", ORANGE, step.dram_transfer)]
    compute = ("compute", BLUE, step.compute_cycles)
    return [("compute", [compute]), ("L2 hit", leg), ("L2 miss", [*leg, *more] if c.adds else more)]


def plot_cycles(steps: Sequence[KTile], title: str, ax: Axes | None = None) -> Axes:
    """Bars of compute, an L2 hit and a miss; a line where compute ends. The chosen set comes first."""
    ax = axes(ax)
    names: list[str] = []
    for step in steps:
        for name, parts in _bars(step):
            left = 0.0
            for label, color, cycles in parts:
                known = label in ax.get_legend_handles_labels()[1]
                ax.barh(len(names), cycles, left=left, color=color, height=0.7, label=None if known else label)
                left += cycles
            ax.text(left, len(names), f" {left:,.0f}", va="center", fontsize=7)
            names.append(f"{name}, {step.constants.name}" if len(steps) > 1 else name)
    ax.axvline(steps[0].compute_cycles, color="black", lw=0.8, ls=":")
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    parts_of = [cycles for step in steps for _, parts in _bars(step) for _, _, cycles in parts]
    if not (look().log and value_axis(ax.xaxis, [*parts_of, ax.get_xlim()[1]])):
        ax.set_xlim(0, 1.15 * ax.get_xlim()[1])
    ax.set_xlabel("cycles")
    small_title(ax, title)
    return ax


def cycles_figure(steps: Sequence[KTile], title: str) -> Figure:
    """The figure of ``pebble cycles --figure``: as wide as a column of a paper."""
    with page(3.33, 1.6 + 0.5 * len(steps)) as figure:
        ax = plot_cycles(steps, title, figure.add_subplot())
        figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=6.5, frameon=False)
    return figure
