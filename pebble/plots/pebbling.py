"""Pebblings: which value is in fast memory when, with its loads, stores and computations; on several SMs a lane an
SM; and which SM does each tile and holds each panel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.game import Move
from pebble.plots.look import look
from pebble.plots.save import BLUE, GREEN, GREY, ORANGE, RED, Axes, Figure, page, small_title
from pebble.schedules.explicit import best_gemm_schedule
from pebble.schedules.explicit.moves import gemm_moves
from pebble.solvers.placement import Placement
from pebble.workloads import Gemm
from pebble.workloads.widths import FastMemory

Event = tuple[str, str, tuple[str, ...]]
"""(load, store, delete or compute; the value, or the result of a computation; operands of a computation)"""

MAX_EVENTS = 1500
MAX_VALUES = 120


def gemm_events(gemm: Gemm, capacity: int) -> list[Event]:
    """The moves of the best explicit schedule of a small GEMM.

    Raises
    ------
    InputError
        The GEMM is too large to be drawn.
    """
    if gemm.multiply_adds > MAX_EVENTS // 3:
        raise InputError(
            f"figure: got {gemm.multiply_adds:,} multiply-adds, expected at most {MAX_EVENTS // 3} to draw."
        )

    def name(operand: str, i: int, j: int) -> str:
        return f"{operand}[{i},{j}]"

    events: list[Event] = []
    for op, operand, index in gemm_moves(best_gemm_schedule(gemm, FastMemory.of_values(capacity, gemm))):
        if op == "compute":
            i, j, l = index
            events.append((op, name("C", i, j), (name("A", i, l), name("B", l, j))))
        else:
            events.append((op, name(operand, *index), ()))
    return events


def move_events(moves: Iterable[Sequence[object]]) -> list[Event]:
    """The moves of a game of one memory, ``[op, node]`` or ``[op, node, source]``; a slide deletes what it leaves."""
    events: list[Event] = []
    for op, node, *source in moves:
        if op in ("compute", "slide"):
            if source:
                events.append(("delete", str(source[0]), ()))
            events.append(("compute", str(node).partition("+=")[0], ()))
        else:
            events.append((str(op), str(node), ()))
    return events


def plot_pebbling(events: Sequence[Event], capacity: int, ax: Axes, level_axes: Axes | None = None) -> Axes:
    """Draw a pebbling.

    Parameters
    ----------
    events : sequence of Event
        The moves, in order.
    capacity : int
        S.
    ax : matplotlib.axes.Axes
        A row per value, a bar while it is in fast memory.
    level_axes : matplotlib.axes.Axes, optional
        The number of values in fast memory.

    Raises
    ------
    InputError
        Too many moves or values.
    """
    from matplotlib.ticker import MaxNLocator

    values = sorted({value for _, value, operands in events for value in (value, *operands)})
    if len(events) > MAX_EVENTS or len(values) > MAX_VALUES:
        raise InputError(
            f"figure: got {len(events)} moves of {len(values)} values, expected at most {MAX_EVENTS} and {MAX_VALUES}."
        )
    row = {value: number for number, value in enumerate(values)}
    since: dict[str, int] = {}
    bars: dict[str, list[tuple[int, int]]] = {value: [] for value in values}
    marks: dict[str, list[tuple[int, int]]] = {"load": [], "store": [], "compute": []}
    level = [0]
    for time, (op, value, _) in enumerate(events):
        if op in ("load", "compute"):
            since.setdefault(value, time)
        elif op == "delete" and value in since:
            start = since.pop(value)
            bars[value].append((start, time - start))
        if op in marks:
            marks[op].append((time, row[value]))
        level.append(len(since))
    for value, start in since.items():
        bars[value].append((start, len(events) - start))
    letters = list(dict.fromkeys(v[0] for v in values))
    colours = dict(zip(letters, (BLUE, ORANGE, GREEN, GREY, RED) * 5, strict=False))
    for value, spans in bars.items():
        ax.broken_barh(spans, (row[value] - 0.4, 0.8), facecolors=colours[value[0]], alpha=0.45, lw=0)
    shapes = {"load": ("v", "black", "load"), "store": ("^", RED, "store"), "compute": (".", "black", "compute")}
    for op, (marker, colour, label) in shapes.items():
        if marks[op]:
            times, at = zip(*marks[op], strict=True)
            size = 9 if op == "compute" else 16
            ax.scatter(times, at, s=size, marker=marker, c=colour, lw=0, label=f"{label} ({len(times)})", zorder=3)
    ax.set_ylim(len(values) - 0.4, -0.6)
    ax.set_xlim(-1, len(events) + 1)
    ax.set_yticks(range(len(values)), values, fontsize=6 if len(values) <= 40 else 3.5)
    if level_axes is None:
        ax.set_xlabel("move")
        return ax
    ax.tick_params(axis="x", labelbottom=False)
    level_axes.step(range(len(level)), level, where="post", color="black", lw=1)
    level_axes.fill_between(range(len(level)), level, step="post", color=GREY, alpha=0.4, lw=0)
    level_axes.axhline(capacity, color=RED, lw=1, ls="--")
    level_axes.text(len(events) + 1, capacity, f" S = {capacity}", va="center", fontsize=7, color=RED)
    level_axes.set_ylim(0, capacity * 1.25)
    level_axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    level_axes.set_ylabel("held")
    level_axes.set_xlabel("move")
    return ax


def pebbling_figure(events: Sequence[Event], capacity: int, title: str) -> Figure:
    """The figure of ``pebble figure pebbling``."""
    count = len({value for _, value, operands in events for value in (value, *operands)})
    with page(7.2, min(9.0, 2.0 + 0.12 * count)) as figure:
        ax, level_axes = figure.subplots(2, 1, sharex=True, height_ratios=[max(3, count / 7), 1])
        plot_pebbling(events, capacity, ax, level_axes)
        small_title(ax, title)
        figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=7)
    return figure


MAX_SMS = 8


def plot_lane(moves: Sequence[Move], targets: Mapping[str, str], sm: int, ax: Axes) -> Axes:
    """Draw what one SM holds and does.

    Parameters
    ----------
    moves : sequence of Move
        Of all SMs, in order: the time is the number of the move.
    targets : mapping of str to str
        The value that each task computes.
    sm : int
        The SM.
    ax : matplotlib.axes.Axes
        A row per value that the SM ever holds, a bar while it does; a copy is drawn where it arrives.
    """
    bars: dict[str, list[tuple[int, int]]] = {}
    since: dict[str, int] = {}
    marks: dict[str, list[tuple[int, str]]] = {"load": [], "copy": [], "store": [], "compute": []}
    for time, move in enumerate(moves):
        value = targets.get(move.node, move.node) if move.op == "compute" else move.node
        if move.sm != sm:
            if move.op == "compute" and value in since:  # an update leaves no other copy
                start = since.pop(value)
                bars[value].append((start, time - start))
            continue
        if move.op == "delete":
            start = since.pop(value, time)
            bars[value].append((start, time - start))
            continue
        if move.op != "store":
            since.setdefault(value, time)
            bars.setdefault(value, [])
        marks[move.op].append((time, value))
    for value, start in since.items():
        bars[value].append((start, len(moves) - start))
    values = sorted(bars)
    row = {value: number for number, value in enumerate(values)}
    letters = list(dict.fromkeys(value[0] for value in values))
    colours = dict(zip(letters, (BLUE, ORANGE, GREEN, GREY, RED) * 8, strict=False))
    for value, spans in bars.items():
        ax.broken_barh(spans, (row[value] - 0.4, 0.8), facecolors=colours[value[0]], alpha=0.45, lw=0)
    shapes = {"load": ("v", "black"), "copy": (">", BLUE), "store": ("^", RED), "compute": (".", "black")}
    for op, (marker, colour) in shapes.items():
        times, at = [time for time, _ in marks[op]], [row[value] for _, value in marks[op]]
        size = 9 if op == "compute" else 16
        ax.scatter(times, at, s=size, marker=marker, c=colour, lw=0, label=op, zorder=3)
    ax.set_ylim(len(values) - 0.4, -0.6)
    ax.set_xlim(-1, len(moves) + 1)
    ax.set_yticks(range(len(values)), values, fontsize=6 if len(values) <= 40 else 3.5)
    counts = ", ".join(f"{len(marks[op])} {name}" for op, name in _COUNTED.items() if marks[op])
    ax.set_ylabel(f"SM {sm}")
    small_title(ax, f"SM {sm}: {counts}")
    return ax


_COUNTED = {"load": "loads", "copy": "copies in", "store": "stores", "compute": "computations"}


def lanes_figure(moves: Sequence[Move], targets: Mapping[str, str], sms: int, title: str) -> Figure:
    """The figure of ``pebble figure pebbling`` for several SMs.

    Raises
    ------
    InputError
        Too many moves, values or SMs.
    """
    values = {move.node for move in moves if move.op != "compute"}
    if not 0 < len(moves) <= MAX_EVENTS or len(values) > MAX_VALUES or not 1 <= sms <= MAX_SMS:
        raise InputError(
            f"figure: got {len(moves)} moves of {len(values)} values on {sms} SMs, expected 1 to {MAX_EVENTS}, at most "
            f"{MAX_VALUES} and {MAX_SMS}."
        )
    with page(7.2, min(9.5, 1.2 + sms * (0.6 + 0.09 * len(values)))) as figure:
        lanes = figure.subplots(sms, 1, sharex=True, squeeze=False)[:, 0]
        for sm, ax in enumerate(lanes):
            plot_lane(moves, targets, sm, ax)
        lanes[-1].set_xlabel("move")
        figure.suptitle(title, fontsize=8)
        handles, labels = lanes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=7)
    return figure


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
    # greys in equal steps: those of the colours come in twos and threes alike
    cmap = "gray" if look().style == "grey" else "tab20" if sms <= 20 else "nipy_spectral"
    ends = (-1, sms) if cmap == "gray" else (0, max(sms - 1, 1))  # neither black nor the white of the page
    image = ax.imshow(shown, cmap=cmap, vmin=ends[0], vmax=ends[1], aspect="equal")
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
