"""The schedules that a search found, over the proved bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pebble.plots.save import BLUE, GREY, ORANGE, axes, value_axis
from pebble.units import format_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pebble.reports.tune import Tuning

_MOST_BARS = 12


def plot_tuning(result: Tuning, ax: Axes | None = None) -> Axes:
    """Bars of the worst case over the bound: the best schedules that differ, then the best daily one, in grey."""
    ax = axes(ax)
    shown = [tied[0] for tied in result.distinct[:_MOST_BARS]]
    if result.daily is not None and result.daily not in shown:
        shown.append(result.daily)
    at = np.arange(len(shown))
    reads, writes = (
        [getattr(s.worst, key) / s.bound.bound.bytes for s in shown] for key in ("dram_read_bytes", "dram_write_bytes")
    )
    colours = [GREY if s == result.daily else BLUE for s in shown]
    ax.barh(at, reads, color=colours, height=0.75, label="DRAM read")
    ax.barh(at, writes, left=reads, color=ORANGE, height=0.75, label="DRAM write")
    for i, s in enumerate(shown):
        ax.text(reads[i] + writes[i], i, f" {s.ratio:.2f}", va="center", fontsize=7)
    ax.axvline(1, color="black", lw=1.4, label=f"proved bound, {format_bytes(result.best.bound.bound.bytes)}")
    ax.set_yticks(at, [f"{s.name} ({s.kernel.tile})" for s in shown], fontsize=7)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    totals = [r + w for r, w in zip(reads, writes, strict=True)]
    if not value_axis(ax.xaxis, [1, *totals], 0.8):
        ax.set_xlim(0, 1.12 * max(totals))
    ax.set_xlabel("DRAM traffic / proved lower bound" + ", worst case" * (len(result.executions) > 1))
    return ax
