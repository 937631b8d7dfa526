"""A pebbling on several SMs over time, a lane an SM: what each holds, loads, copies, computes and stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pebble.errors import InputError
from pebble.game import Move
from pebble.plots.pebbling import MAX_EVENTS, MAX_VALUES
from pebble.plots.save import BLUE, GREEN, GREY, ORANGE, RED, Axes, Figure, page, small_title

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
