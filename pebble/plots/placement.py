"""The owner map: which SM does each tile, and which holds each panel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pebble.plots.look import look
from pebble.plots.save import Axes, Figure, page
from pebble.solvers.placement import Placement

_MOST_NUMBERS = 400
_STRIP = 2  # cells across, of the panels
_LEAST_AREA = 4  # cells that give a number room


def plot_owners(placement: Placement, title: str, ax: Axes) -> Axes:
    """Tiles coloured by the SM that does them; left and above the SMs that hold the panels of A and of B."""
    rows, cols = placement.slot_of.shape
    sms = placement.topology.sms
    shown = np.full((rows + _STRIP + 1, cols + _STRIP + 1), np.nan)
    shown[_STRIP + 1 :, _STRIP + 1 :] = placement.owner
    shown[_STRIP + 1 :, :_STRIP] = np.asarray(placement.row_home)[:, None]
    shown[:_STRIP, _STRIP + 1 :] = placement.col_home
    cmap = "tab20" if sms <= 20 else "nipy_spectral"
    image = ax.imshow(shown, cmap=cmap, vmin=0, vmax=max(sms - 1, 1), aspect="equal")
    for i, j, owner in _numbered(shown):
        red, green, blue, _ = image.to_rgba(np.asarray(owner, dtype=float))
        ink = "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.5 else "black"
        ax.text(j, i, f"{owner}", ha="center", va="center_baseline", fontsize=5, color=ink)
    narrow = look().narrow
    proved = f"at most {placement.gap:.1%} above the least"
    if placement.gap == 0:
        proved = "least" if narrow else "proved least"
    ax.set_title(f"{title}\n{placement.topology.name}: {placement.cost} panel hops, {proved}", fontsize=7)
    ax.set_xlabel("above: holders of B" if narrow else "above: who holds the columns of B", fontsize=7)
    ax.set_ylabel("left: holders of A" if narrow else "left: who holds the rows of A", fontsize=7)
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_visible(False)
    return ax


def _numbered(shown: NDArray[np.floating[Any]]) -> list[tuple[float, float, int]]:
    """Where the number of an SM stands: in every cell; on a page of a paper, whose type is larger, once in an area."""
    cells = [(int(i), int(j)) for i, j in np.argwhere(~np.isnan(shown))]
    if look().width_inches is None and look().points is None:
        return [(i, j, int(shown[i, j])) for i, j in cells] if shown.size <= _MOST_NUMBERS else []
    results: list[tuple[float, float, int]] = []
    seen: set[tuple[int, int]] = set()
    for start in cells:
        if start in seen:
            continue
        area, ahead = [], [start]
        while ahead:  # neighbours of the same SM
            i, j = ahead.pop()
            if (i, j) in seen:
                continue
            seen.add((i, j))
            area.append((i, j))
            near = ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1))
            ahead += [
                (a, b) for a, b in near
                if 0 <= a < shown.shape[0] and 0 <= b < shown.shape[1] and shown[a, b] == shown[start]
            ]  # fmt: skip
        if len(area) >= _LEAST_AREA:
            up, across = (float(x) for x in np.mean(area, axis=0))
            if (round(up), round(across)) not in area:  # of a bent area
                up, across = min(area, key=lambda cell: ((cell[0] - up) ** 2 + (cell[1] - across) ** 2, cell))
            results.append((up, across, int(shown[start])))
    return results


def placement_figure(placements: Sequence[tuple[str, Placement]]) -> Figure:
    """Owner maps side by side."""
    with page(2.9 * len(placements), 3.3) as figure:
        across = min(2 if look().narrow else 4, len(placements))
        axes = figure.subplots(-(-len(placements) // across), across, squeeze=False)
        for ax in axes.flat[len(placements) :]:
            ax.set_visible(False)
        for (title, placement), ax in zip(placements, axes.flat, strict=False):
            plot_owners(placement, title, ax)
    return figure
