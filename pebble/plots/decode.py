"""A decode step: the KV cache's share of the least traffic, against the context length."""

from __future__ import annotations

from collections.abc import Mapping

from pebble.plots.look import look
from pebble.plots.save import Axes, Figure, axes, page, small_title, value_axis

Shares = Mapping[int, Mapping[int, float]]
"""The KV cache's share of the least traffic, by batch size and context length."""


def plot_decode(shares: Shares, title: str, ax: Axes | None = None) -> Axes:
    """A line per batch size, on a log axis of context lengths."""
    ax = axes(ax)
    for batch, by_context in shares.items():
        ax.plot(list(by_context), list(by_context.values()), marker="o", ms=3, lw=1, label=f"batch {batch}")
    ax.set_xscale("log", base=2)
    if not (
        look().log and value_axis(ax.yaxis, [share for by_context in shares.values() for share in by_context.values()])
    ):
        ax.set_ylim(0, 1)
    ax.set_xlabel("context, keys")
    ax.set_ylabel("share of the KV cache")
    small_title(ax, title)
    ax.legend(frameon=False, fontsize=7)
    return ax


def decode_figure(shares: Shares, title: str) -> Figure:
    """The figure of ``pebble decode --figure``: as wide as a column of a paper."""
    with page(3.33, 3.0) as figure:
        ax = plot_decode(shares, title, figure.add_subplot())
        contexts = sorted({context for by_context in shares.values() for context in by_context})
        ax.set_xticks(contexts, [f"{context // 1024}k" for context in contexts])
        handles, labels = ax.get_legend_handles_labels()
        legend = ax.get_legend()
        if legend is not None:  # seven lines leave no room for it inside
            legend.remove()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=6.5, frameon=False)
    return figure
