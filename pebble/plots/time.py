"""Modelled time: two workloads at each split of the SMs, and one workload at each value of a size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
from pebble.timing.modelled import ModelledTime

_MILLI = 1e3
_FAR_APART = 6  # the worst split over the first done, from where the splits that matter would be one line


@dataclass(frozen=True)
class SharedTimes:
    """Two workloads on one GPU, in seconds.

    Attributes
    ----------
    labels : tuple of two str
    sms : int
        In all.
    splits : sequence of (int, ModelledTime)
        By the SMs of the second.
    in_turn, least : float
        One after the other; what the busiest resource of both needs.
    """

    labels: tuple[str, str]
    sms: int
    splits: Sequence[tuple[int, ModelledTime]]
    in_turn: float
    least: float


def plot_concurrent(result: SharedTimes, ax: Axes | None = None) -> Axes:
    """When each is done, against the SMs of the second; one after the other as a line."""
    ax = axes(ax)
    at = [sms for sms, _ in result.splits]
    times = [result.least * _MILLI, result.in_turn * _MILLI]
    for number, (colour, label) in enumerate(zip((BLUE, ORANGE), result.labels, strict=True)):
        ends = [time.ended_seconds[number] * _MILLI for _, time in result.splits]
        ax.plot(at, ends, "o-", ms=3, lw=1, color=colour, label=f"{label} done")
        times += ends
    ax.plot(at, [time.seconds * _MILLI for _, time in result.splits], color="black", lw=2, alpha=0.5, label="both done")
    ax.axhline(result.in_turn * _MILLI, color=RED, lw=1.2, ls="--", label="one after the other, all SMs each")
    ax.axhline(result.least * _MILLI, color=GREY, lw=1, ls=":", label="busiest resource of both")
    logarithmic = value_axis(ax.yaxis, times, crushing=_FAR_APART)
    if not logarithmic:
        ax.set_ylim(bottom=0)
    ax.set_xlabel(f"SMs of the second, of {result.sms}")
    ax.set_ylabel("modelled time, ms" + ", logarithmic" * logarithmic)
    return ax


def plot_sweep(size: str, steps: Sequence[tuple[int, ModelledTime, float]], ax: Axes | None = None) -> Axes:
    """What each resource needs by itself, the modelled time and the floor (seconds), at each value of the size."""
    ax = axes(ax)
    at = [value for value, _, _ in steps]
    lines = (
        (BLUE, "compute", [time.compute_seconds for _, time, _ in steps]),
        (GREEN, "L2", [time.l2_seconds for _, time, _ in steps]),
        (ORANGE, "DRAM", [time.dram_seconds for _, time, _ in steps]),
    )
    for colour, of, seconds in lines:
        ax.plot(at, [each * _MILLI for each in seconds], color=colour, lw=1, label=of)
    ax.plot(at, [time.seconds * _MILLI for _, time, _ in steps], "k-", lw=1.6, label="modelled time")
    ax.plot(at, [floor * _MILLI for _, _, floor in steps], color=RED, lw=1, ls="--", label="proved floor")
    log_axes(ax)
    ax.set_xlabel(size)
    ax.set_ylabel("ms")
    return ax


def time_figure(plot: Callable[[Axes], Axes], title: str) -> Figure:
    """One of the two on a page, its legend below."""
    with page(6.4, 4.2) as figure:
        ax = plot(figure.add_subplot())
        small_title(ax, title, wrap=True)
        handles, labels = ax.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=6.5, frameon=False)
    return figure
