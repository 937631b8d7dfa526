"""Measured traffic beside the proved bound and what each order would move."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pebble.plots.save import BLUE, GREY, ORANGE, RED, SKY, YELLOW, Axes, Figure, axes, page, small_title, value_axis
from pebble.units import format_bytes

if TYPE_CHECKING:
    from pebble.reports.ncu_compare import Judgement

_MOST_ORDERS = 14


def plot_judgement(result: Judgement, ax: Axes | None = None) -> Axes:
    """Bars: the measured one first, then the orders, nearest first; lines: the bound and the best schedule."""
    ax = axes(ax)
    shown = result.alike[:_MOST_ORDERS]
    orders = [tied[0] for tied in shown]
    measured = result.measured
    labels = ["measured", *(f"{result.name_of(tied)}, {tied[0].execution}" for tied in shown)]
    at = range(1, len(labels))
    if measured.read_bytes is None or measured.write_bytes is None:
        ax.barh([0], [(measured.dram_bytes or 0) / 1e6], color=GREY, height=0.75, label="measured, read and written")
    else:
        ax.barh([0], [measured.read_bytes / 1e6], color=BLUE, height=0.75, label="measured reads")
        left = [measured.read_bytes / 1e6]
        ax.barh([0], [measured.write_bytes / 1e6], left=left, color=ORANGE, height=0.75, label="measured writes")
    reads = [one.read_bytes / 1e6 for one in orders]
    writes = [one.write_bytes / 1e6 for one in orders]
    ax.barh(at, reads, color=SKY, height=0.75, label="simulated reads")
    ax.barh(at, writes, left=reads, color=YELLOW, height=0.75, label="simulated writes before the end")
    for i, one in enumerate(orders):
        ax.text(reads[i] + writes[i], i + 1, f" {one.error:+.1%}", va="center", fontsize=7)
    bound, (best, name) = result.bound.bound.bytes, result.comparison.best_found
    ax.axvline(bound / 1e6, color="black", lw=1.4, label=f"proved bound, {format_bytes(bound)}")
    best_label = f"best schedule, {format_bytes(best)}: {name.partition(',')[0].partition('(')[0].strip()}"
    ax.axvline(best / 1e6, color=RED, ls="--", lw=1.2, label=best_label)
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    widest = max([bound, best, measured.dram_bytes or 0, *(one.read_bytes + one.write_bytes for one in orders)])
    totals = [one.read_bytes + one.write_bytes for one in orders]
    if not value_axis(ax.xaxis, [x / 1e6 for x in (bound, best, widest, *totals)]):
        ax.set_xlim(0, widest / 1e6 * 1.18)
    left_out = len(result.alike) - len(orders)
    more = f" (the nearest {len(orders)}; {left_out} more)" if left_out else ""
    ax.set_xlabel(f"DRAM traffic, MB{more}; behind the bars: error of the simulated reads")
    return ax


def judgement_figure(result: Judgement) -> Figure:
    """The bars on a page of their own."""
    with page(7.2, 2.0 + 0.19 * (1 + min(len(result.alike), _MOST_ORDERS))) as figure:
        ax = plot_judgement(result, figure.add_subplot())
        kernel = result.comparison.kernel
        names = ", ".join(dict.fromkeys(launch.short_name for launch in result.launches))
        small_title(ax, f"{names}: {result.workload.label}\nsimulated: {kernel.runs}\n{kernel.cache}")
        figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=7)
    return figure
