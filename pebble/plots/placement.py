"""The owner map: which SM does each tile, and which holds each panel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pebble.plots.save import Axes, Figure, page, panels
from pebble.solvers.placement import Placement

_MOST_NUMBERS = 400


def plot_owners(placement: Placement, title: str, ax: Axes) -> Axes:
    """Tiles coloured by the SM that does them; left and above the SMs that hold the panels of A and of B."""
    rows, cols = placement.slot_of.shape
    sms = placement.topology.sms
    shown = np.full((rows + 2, cols + 2), np.nan)
    shown[2:, 2:] = placement.owner
    shown[2:, 0] = placement.row_home
    shown[0, 2:] = placement.col_home
    cmap = "tab20" if sms <= 20 else "nipy_spectral"
    image = ax.imshow(shown, cmap=cmap, vmin=0, vmax=max(sms - 1, 1), aspect="equal")
    if shown.size <= _MOST_NUMBERS:
        for (i, j), value in np.ndenumerate(shown):
            if not np.isnan(value):
                red, green, blue, _ = image.to_rgba(value)
                ink = "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.5 else "black"
                ax.text(j, i, f"{int(value)}", ha="center", va="center", fontsize=5, color=ink)
    proved = "proved least" if placement.gap == 0 else f"at most {placement.gap:.1%} above the least"
    ax.set_title(f"{title}\n{placement.topology.name}: {placement.cost} panel hops, {proved}", fontsize=7)
    ax.set_xlabel("above: who holds the columns of B", fontsize=7)
    ax.set_ylabel("left: who holds the rows of A", fontsize=7)
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_visible(False)
    return ax


def placement_figure(placements: Sequence[tuple[str, Placement]]) -> Figure:
    """Owner maps side by side."""
    with page(2.9 * len(placements), 3.3) as figure:
        axes = figure.subplots(*panels(len(placements)), squeeze=False)
        for (title, placement), ax in zip(placements, axes.flat, strict=True):
            plot_owners(placement, title, ax)
    return figure
