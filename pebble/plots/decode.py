"""A decode step: the KV cache's share of the least traffic, against the context length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pebble.plots.save import axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pebble.reports.decode import Decode


def plot_decode(found: Decode, ax: Axes | None = None) -> Axes:
    """A line per batch size, on a log axis of context lengths."""
    ax = axes(ax)
    for batch in dict.fromkeys(step.batch for step in found.steps):
        steps = [step for step in found.steps if step.batch == batch]
        ax.plot([step.context for step in steps], [step.kv_share for step in steps], marker="o", label=f"batch {batch}")
    ax.set_xscale("log", base=2)
    ax.set_ylim(0, 1)
    ax.set_xlabel("context, keys")
    ax.set_ylabel("share of the KV cache")
    ax.set_title(f"{found.model}, one layer, one decode step", fontsize=8, loc="left")
    ax.legend(frameon=False, fontsize=7)
    return ax
