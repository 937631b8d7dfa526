"""Measured traffic beside the proved bound and what each order would move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pebble.plots.save import BLUE, GREY, ORANGE, RED, SKY, YELLOW, Axes, Figure, axes, page, small_title, value_axis
from pebble.units import format_bytes

_MOST_ORDERS = 14


class SimulatedOrder(NamedTuple):
    """An order, what it moves before the kernel ends, and its error against what was measured."""

    name: str
    read_bytes: int
    write_bytes: int
    error: float


@dataclass(frozen=True)
class MeasuredComparison:
    """A measurement and what stands beside it.

    Attributes
    ----------
    title : str
    read_bytes, write_bytes : float or None
        Measured; None where only the sum is known.
    dram_bytes : float or None
        Their sum.
    orders : sequence of SimulatedOrder
        The nearest first.
    bound_bytes : int
    best_bytes, best_name
        The best schedule known.
    """

    title: str
    read_bytes: float | None
    write_bytes: float | None
    dram_bytes: float | None
    orders: Sequence[SimulatedOrder]
    bound_bytes: int
    best_bytes: int
    best_name: str


def plot_judgement(result: MeasuredComparison, ax: Axes | None = None) -> Axes:
    """Bars: the measured one first, then the orders, nearest first; lines: the bound and the best schedule."""
    ax = axes(ax)
    orders = result.orders[:_MOST_ORDERS]
    labels = ["measured", *(order.name for order in orders)]
    at = range(1, len(labels))
    measured = result.dram_bytes or 0
    if result.read_bytes is None or result.write_bytes is None:
        ax.barh([0], [measured / 1e6], color=GREY, height=0.75, label="measured, read and written")
    else:
        ax.barh([0], [result.read_bytes / 1e6], color=BLUE, height=0.75, label="measured reads")
        left = [result.read_bytes / 1e6]
        ax.barh([0], [result.write_bytes / 1e6], left=left, color=ORANGE, height=0.75, label="measured writes")
    reads = [element.read_bytes / 1e6 for element in orders]
    writes = [each_item.write_bytes / 1e6 for each_item in orders]
    ax.barh(at, reads, color=SKY, height=0.75, label="simulated reads")
    ax.barh(at, writes, left=reads, color=YELLOW, height=0.75, label="simulated writes before the end")
    for i, item in enumerate(orders):
        ax.text(reads[i] + writes[i], i + 1, f" {item.error:+.1%}", va="center", fontsize=7)
    bound, best, name = result.bound_bytes, result.best_bytes, result.best_name
    ax.axvline(bound / 1e6, color="black", lw=1.4, label=f"proved bound, {format_bytes(bound)}")
    best_label = f"best schedule, {format_bytes(best)}: {name.partition(',')[0].partition('(')[0].strip()}"
    ax.axvline(best / 1e6, color=RED, ls="--", lw=1.2, label=best_label)
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    widest = max([bound, best, measured, *(one.read_bytes + one.write_bytes for one in orders)])
    totals = [one.read_bytes + one.write_bytes for one in orders]
    if not value_axis(ax.xaxis, [x / 1e6 for x in (bound, best, widest, *totals)]):
        ax.set_xlim(0, widest / 1e6 * 1.18)
    left_out = len(result.orders) - len(orders)
    more = f" (the nearest {len(orders)}; {left_out} more)" if left_out else ""
    ax.set_xlabel(f"DRAM traffic, MB{more}; behind the bars: error of the simulated reads")
    return ax


def judgement_figure(result: MeasuredComparison) -> Figure:
    """The bars on a page of their own."""
    with page(7.2, 2.0 + 0.19 * (1 + min(len(result.orders), _MOST_ORDERS))) as figure:
        small_title(plot_judgement(result, figure.add_subplot()), result.title)
        figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=7)
    return figure
