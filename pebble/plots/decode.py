"""A decode step: the KV cache's share of the least traffic, against the context length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pebble.plots.look import look
from pebble.plots.save import Axes, Figure, axes, page, small_title, value_axis

if TYPE_CHECKING:
    from pebble.reports.decode import Decode


def plot_decode(found: Decode, ax: Axes | None = None) -> Axes:
    """A line per batch size, on a log axis of context lengths."""
    ax = axes(ax)
    for batch in dict.fromkeys(step.batch for step in found.steps):
        steps = [step for step in found.steps if step.batch == batch]
        ax.plot(
            [step.context for step in steps],
            [step.kv_share for step in steps],
            marker="o",
            ms=3,
            lw=1,
            label=f"batch {batch}",
        )
    ax.set_xscale("log", base=2)
    if not (look().log and value_axis(ax.yaxis, [step.kv_share for step in found.steps])):
        ax.set_ylim(0, 1)
    ax.set_xlabel("context, keys")
    ax.set_ylabel("share of the KV cache")
    small_title(ax, f"{found.model}, one layer, one decode step")
    ax.legend(frameon=False, fontsize=7)
    return ax


def decode_figure(found: Decode) -> Figure:
    """The figure of ``pebble decode --figure``: as wide as a column of a paper."""
    with page(3.33, 3.0) as figure:
        ax = plot_decode(found, figure.add_subplot())
        contexts = sorted({step.context for step in found.steps})
        ax.set_xticks(contexts, [f"{context // 1024}k" for context in contexts])
        handles, labels = ax.get_legend_handles_labels()
        legend = ax.get_legend()
        if legend is not None:  # seven lines leave no room for it inside
            legend.remove()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=6.5, frameon=False)
    return figure
