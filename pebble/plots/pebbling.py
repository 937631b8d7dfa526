"""A pebbling over time: which value is in fast memory when, with its loads, stores and computations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pebble.errors import InputError
from pebble.plots.save import BLUE, GREEN, GREY, ORANGE, RED, Axes, Figure, page, small_title
from pebble.schedules.explicit import best_gemm_schedule
from pebble.schedules.explicit.moves import gemm_moves
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
