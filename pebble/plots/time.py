"""Time: the roofline with a workload and its orders below it, modelled time of two workloads at each split of the SMs
and of one at each value of a size, and one k-tile on one SM, compute beside its loads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import wrap

from pebble.models.tile_model import KTile
from pebble.plots.look import NARROW_INCHES, look
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
from pebble.timing.floor import Point, Roofline
from pebble.timing.modelled import ModelledTime

_TERA = 1e12
_TITLE_WIDTH = 42
_LEAST_SPAN, _LEAST_RATIO = 100, 1.05  # of operations per byte; of two names
_BELOW = 30  # the axis ends at such a part of the lowest point, so that names stand below it
_LINE_CHARS = 19  # of a name, in a column
_NAMED, _NAMED_NARROW = 14, 3
_TOP, _LINE = 0.8, 0.08  # where the first name stands, and how far the next, in heights of the axes
_LAST_NARROW, _LINE_NARROW = 0.1, 0.19  # in a column: of the last name, and a name takes two lines


def plot_roofline(result: Roofline, ax: Axes | None = None) -> Axes:
    """Roofs as lines, the bound as a diamond, orders as points, the SM boundary as a square on the roof of L2."""
    ax = axes(ax)
    peak = result.peak.per_second / _TERA
    roofs = [("DRAM", result.dram, BLUE), *([("L2", result.l2, GREEN)] if result.l2 is not None else [])]
    ridges = [peak * _TERA / rate.per_second for _, rate, _ in roofs]
    at = [result.bound.intensity, *ridges, *(point.intensity for point in result.orders)]
    at += [result.sm_intensity] if result.sm_intensity else []
    left, right = min(at) / 3, max(at) * 3
    wider = max(1.0, _LEAST_SPAN * left / right) ** 0.5  # so that labels of ticks have room
    left, right = left / wider, right * wider
    for (name, rate, color), ridge in zip(roofs, ridges, strict=True):
        tera = rate.per_second / _TERA
        ax.plot([left, ridge], [left * tera, peak], color=color, lw=1.4, label=f"{name}, {tera:.4g} TB/s")
    clock = "" if result.peak.clock_mhz is None else f" at {result.peak.clock_mhz:,g} MHz"
    ax.plot([min(ridges), right], [peak, peak], color="black", lw=1.4, label=f"{peak:,.4g} TFLOPS{clock}")
    if result.orders:
        ax.plot(
            [point.intensity for point in result.orders],
            [point.operations_per_second / _TERA for point in result.orders],
            "o", ms=4, mfc="none", mec=ORANGE, ls="none", label="orders, at their simulated DRAM bytes",
        )  # fmt: skip
    ax.plot(
        result.bound.intensity, result.bound.operations_per_second / _TERA, "D", color=RED, ms=5, ls="none",
        label=f"at the proved DRAM bound, {result.bound.intensity:,.0f} op/B",
    )  # fmt: skip
    lowest = [min(point.operations_per_second for point in (result.bound, *result.orders)) / _TERA]
    if result.sm_intensity is not None and result.l2 is not None:
        height = min(peak, result.sm_intensity * result.l2.per_second / _TERA)
        lowest.append(height)
        ax.plot(
            result.sm_intensity, height, "s", color=GREY, ms=5, ls="none",
            label=f"at the SM boundary, {result.sm_intensity:,.3g} op/B\n({result.sm_formula})",
        )  # fmt: skip
    log_axes(ax)
    ax.set_xlim(left, right)
    space = [point.operations_per_second / _TERA / _BELOW for point in result.orders[:1]]  # for its label
    ax.set_ylim(min([*lowest, left * result.dram.per_second / _TERA, *space]) / 1.5, peak * 1.6)
    _name(ax, result.orders, peak)
    ax.set_xlabel("operations per byte")
    ax.set_ylabel("TFLOPS")
    small_title(ax, "\n".join([result.chip, *wrap(result.title, _TITLE_WIDTH, break_on_hyphens=False)]))
    return ax


def _name(ax: Axes, orders: Sequence[Point], peak: float) -> None:
    """Names of orders right of their points; in a column, where there is no room, left of them and below the roof."""
    narrow = ax.figure.bbox.width < NARROW_INCHES * ax.figure.dpi
    named = _labels(orders, _NAMED_NARROW if narrow else _NAMED)
    if not narrow:
        named.reverse()
    marks = [ax.transAxes.inverted().transform(ax.transData.transform((p.intensity, peak)))[0] for _, p in named]
    line = _LINE_NARROW if narrow else _LINE
    top = _LAST_NARROW + line * (len(named) - 1) if narrow else _TOP
    for number, (name, point) in enumerate(named):
        at = (min(marks) - 0.03 if narrow else max(marks) + 0.03), top - number * line
        ax.annotate(
            _in_lines(name) if narrow else name, (point.intensity, point.operations_per_second / _TERA), at,
            textcoords="axes fraction", fontsize=6.5, ha="right" if narrow else "left", va="center",
            bbox={"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none"},
            arrowprops={"arrowstyle": "-", "lw": 0.4, "color": GREY, "shrinkA": 1, "shrinkB": 2,
                        "relpos": (1.0 if narrow else 0.0, 0.5), "connectionstyle": "angle,angleA=0,angleB=90"},
        )  # fmt: skip


def _in_lines(name: str) -> str:
    order, *more = name.split(" and ")
    order = order.replace("+", "\n+") if len(order) > _LINE_CHARS else order
    return "\nand ".join([order, *more])


def _labels(orders: Sequence[Point], most: int) -> list[tuple[str, Point]]:
    """Names for at most so many places, by rising intensity; orders near each other share one, which counts them."""
    groups: list[list[Point]] = []
    span = max((p.intensity for p in orders), default=1.0) / min((p.intensity for p in orders), default=1.0)
    ratio = 1.0 if len(orders) <= most else max(_LEAST_RATIO, span ** (1 / most))
    for point in sorted(orders, key=lambda p: (p.intensity, p.name)):
        if groups and point.intensity < ratio * groups[-1][0].intensity:
            groups[-1].append(point)
        else:
            groups.append([point])
    return [(g[0].name + f" and {len(g) - 1} more" * (len(g) > 1), g[0]) for g in groups]


def roofline_figure(result: Roofline) -> Figure:
    """The figure of ``pebble figure roofline``: as wide as a column of a paper."""
    with page(3.33, 3.7) as figure:
        plot_roofline(result, figure.add_subplot())
        figure.legend(loc="outside lower left", fontsize=6.5, frameon=False, ncols=1)
    return figure


_MILLI = 1e3
_MOST_SPREAD = 6  # the worst split over the first done, from where the splits that matter would be one line


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
    logarithmic = value_axis(ax.yaxis, times, crushing=_MOST_SPREAD)
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


def _bars(step: KTile) -> list[tuple[str, list[tuple[str, str, float]]]]:
    """Bars of parts: what it is in the legend, its colour, cycles."""
    c = step.constants
    leg = [("latency", GREY, c.l2_latency.value), ("transfer from L2", GREEN, step.l2_transfer)]
    more = [("latency", GREY, c.dram_latency.value), ("transfer from DRAM", ORANGE, step.dram_transfer)]
    compute = ("compute", BLUE, step.compute_cycles)
    return [("compute", [compute]), ("L2 hit", leg), ("L2 miss", [*leg, *more] if c.adds else more)]


def plot_cycles(steps: Sequence[KTile], title: str, ax: Axes | None = None) -> Axes:
    """Bars of compute, an L2 hit and a miss; a line where compute ends. The chosen set comes first."""
    ax = axes(ax)
    names: list[str] = []
    for step in steps:
        for name, parts in _bars(step):
            left = 0.0
            for label, color, cycles in parts:
                known = label in ax.get_legend_handles_labels()[1]
                ax.barh(len(names), cycles, left=left, color=color, height=0.7, label=None if known else label)
                left += cycles
            ax.text(left, len(names), f" {left:,.0f}", va="center", fontsize=7)
            names.append(f"{name}, {step.constants.name}" if len(steps) > 1 else name)
    ax.axvline(steps[0].compute_cycles, color="black", lw=0.8, ls=":")
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    parts_of = [cycles for step in steps for _, parts in _bars(step) for _, _, cycles in parts]
    if not (look().log and value_axis(ax.xaxis, [*parts_of, ax.get_xlim()[1]])):
        ax.set_xlim(0, 1.15 * ax.get_xlim()[1])
    ax.set_xlabel("cycles")
    small_title(ax, title)
    return ax


def cycles_figure(steps: Sequence[KTile], title: str) -> Figure:
    """The figure of ``pebble cycles --figure``: as wide as a column of a paper."""
    with page(3.33, 1.6 + 0.5 * len(steps)) as figure:
        ax = plot_cycles(steps, title, figure.add_subplot())
        figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=6.5, frameon=False)
    return figure
