"""The capacity figure: traffic of every schedule against the cache size, with the proved bound beneath."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log2

from pebble.plots.labels import DASHES, end_label
from pebble.plots.look import look
from pebble.plots.save import BLUE, GREEN, GREY, ORANGE, RED, Axes, Figure, axes, number_log_axis, page, small_title
from pebble.units import format_capacity

BOUND = "proved bound at cache + SMs"
_COLOURS = (BLUE, ORANGE, GREEN, RED, "#CC79A7", "#56B4E9")
_INK = (BLUE, "#8F6300", "#00694D", "#A34700", "#99406F", "#1F6E9C")  # the same, dark enough for type


@dataclass(frozen=True)
class Curves:
    """Traffic against the cache size, all in bytes.

    Attributes
    ----------
    title : str
    capacities : sequence of int
        Cache sizes, rising.
    bounds : sequence of int
        What is proved at each.
    schedules : sequence of (str, tuple of int)
        The name of a schedule and what it moves at each, the best at ``reference`` first.
    reference : int
        The cache size to look at first.
    stepped : bool
        Whether traffic falls in steps between the sizes.
    """

    title: str
    capacities: Sequence[int]
    bounds: Sequence[int]
    schedules: Sequence[tuple[str, tuple[int, ...]]]
    reference: int
    stepped: bool


def plot_curve(report: Curves, ax: Axes | None = None) -> Axes:
    """Curves on log axes; the best six at the capacity to look at first in colour, the others grey."""
    ax = axes(ax)
    x = [c / 2**20 for c in report.capacities]
    bound = [b / 1e9 for b in report.bounds]
    shown: dict[tuple[int, ...], list[str]] = {}
    for name, traffic in report.schedules:
        shown.setdefault(traffic, []).append(name)
    rest = sum(len(names) for names in list(shown.values())[len(_COLOURS) :])
    greys = f"{rest} more schedule{'s' * (rest > 1)}"
    for number, (traffic, names) in reversed(list(enumerate(shown.items()))):
        coloured = number < len(_COLOURS)
        label = ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")
        ax.plot(
            x,
            [m / 1e9 for m in traffic],
            color=_COLOURS[number] if coloured else GREY,
            lw=1.4 if coloured else 0.7,
            ls=DASHES[number] if coloured else "-",
            alpha=1 if coloured else 0.6,
            label=label if coloured else greys if number == len(_COLOURS) else None,
            drawstyle="steps-post" if report.stepped else "default",
            zorder=3 if coloured else 2,
        )
        if coloured:
            end_label(ax, x[-1], traffic[-1] / 1e9, label, _INK[number])
    ax.plot(x, bound, color="black", lw=2, label=BOUND, zorder=4)
    end_label(ax, x[-1], bound[-1], "proved bound", "black")
    lowest = min(bound) * 0.8
    ax.fill_between(x, bound, [lowest] * len(x), color="black", alpha=0.08, lw=0)
    ax.axvline(report.reference / 2**20, color=GREY, lw=0.8, ls=":")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xlim(x[0], x[-1])
    ax.set_ylim(lowest, None)
    few = 4 if look().narrow else 8
    powers = range(ceil(log2(x[0])), floor(log2(x[-1])) + 1)
    ticks = [2.0**power for power in powers if (power - powers[-1]) % ceil(len(powers) / few) == 0]
    ax.set_xticks(ticks, [format_capacity(round(tick * 2**20)) for tick in ticks])
    ax.minorticks_off()
    number_log_axis(ax.yaxis)
    ax.set_xlabel("cache size")
    ax.set_ylabel("DRAM traffic, GB")
    return ax


def curve_figure(report: Curves) -> Figure:
    """The figure of one report."""
    with page(6.4, 4.6) as figure:
        ax = plot_curve(report, figure.add_subplot())
        small_title(ax, report.title)
        handles, labels = ax.get_legend_handles_labels()
        entries = [
            (handle, text)
            for handle, text in zip(handles, labels, strict=True)
            if text == BOUND or text.endswith(("more schedule", "more schedules"))
        ]
        figure.legend(*zip(*entries, strict=True), loc="outside lower center", fontsize=6.5, frameon=False)
    return figure
