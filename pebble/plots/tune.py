"""The schedules that a search found, over the proved bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pebble.plots.save import BLUE, GREY, ORANGE, axes, value_axis
from pebble.units import format_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
