"""Modelled time: two workloads at each split of the SMs, and one workload at each value of a size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pebble.plots.save import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    Axes,
    Figure,
    axes,
    log_axes,
    page,
    small_title,
    value_axis,
)

if TYPE_CHECKING:
    from pebble.reports.time_beside import SideBySide
    from pebble.reports.time_sweep import Sweep

_MILLI = 1e3
_FAR_APART = 6  # the worst split over the first done, from where the splits that matter would be one line


def plot_beside(found: SideBySide, ax: Axes | None = None) -> Axes:
    """When each is done, against the SMs of the second; one after the other as a line."""
    ax = axes(ax)
    at = [split.sms for split in found.splits]
    times = [found.least_seconds * _MILLI, found.in_turn_seconds * _MILLI]
    for number, (colour, workload) in enumerate(zip((BLUE, ORANGE), found.workloads, strict=True)):
        ends = [split.time.ended_seconds[number] * _MILLI for split in found.splits]
        ax.plot(at, ends, "o-", ms=3, lw=1, color=colour, label=f"{workload.label} done")
        times += ends
    ax.plot(at, [s.time.seconds * _MILLI for s in found.splits], color="black", lw=2, alpha=0.5, label="both done")
    ax.axhline(found.in_turn_seconds * _MILLI, color=RED, lw=1.2, ls="--", label="one after the other, all SMs each")
    ax.axhline(found.least_seconds * _MILLI, color=GREY, lw=1, ls=":", label="busiest resource of both")
    logarithmic = value_axis(ax.yaxis, times, crushing=_FAR_APART)
    if not logarithmic:
        ax.set_ylim(bottom=0)
    ax.set_xlabel(f"SMs of the second, of {found.kernels[0].config.sms}")
    ax.set_ylabel("modelled time, ms" + ", logarithmic" * logarithmic)
    return ax


def plot_sweep(found: Sweep, ax: Axes | None = None) -> Axes:
    """What each resource needs by itself, the modelled time and the floor."""
    ax = axes(ax)
    at = [step.value for step in found.steps]
    times = [step.best.time for step in found.steps]
    for colour, of in ((BLUE, "compute"), (GREEN, "l2"), (ORANGE, "dram")):
        ms = [getattr(time, f"{of}_seconds") * _MILLI for time in times]
        ax.plot(at, ms, color=colour, lw=1, label={"l2": "L2", "dram": "DRAM"}.get(of, of))
    ax.plot(at, [time.seconds * _MILLI for time in times], "k-", lw=1.6, label="modelled time")
    ax.plot(at, [step.floor.seconds * _MILLI for step in found.steps], color=RED, lw=1, ls="--", label="proved floor")
    log_axes(ax)
    ax.set_xlabel(found.size)
    ax.set_ylabel("ms")
    return ax


def time_figure(found: SideBySide | Sweep) -> Figure:
    """The figure of one report."""
    with page(6.4, 4.2) as figure:
        ax = found.plot(figure.add_subplot())
        machine = "" if found.machine is None else found.machine.name
        small_title(ax, f"{found.summary()}\n{machine}", wrap=True)
        handles, labels = ax.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=6.5, frameon=False)
    return figure
