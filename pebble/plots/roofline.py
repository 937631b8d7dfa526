"""The roofline: what DRAM and L2 allow against operations per byte, a workload at its bound, and its orders."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from pebble.plots.save import BLUE, GREEN, GREY, ORANGE, RED, Axes, Figure, axes, log_axes, page, small_title
from pebble.timing.roofline import Point, Roofline

_TERA = 1e12
_TITLE_WIDTH = 42
_LEAST_SPAN, _APART, _BELOW = 100, 1.3, 12  # of operations per byte; of two labels; of a label, in TFLOPS


def plot_roofline(found: Roofline, ax: Axes | None = None) -> Axes:
    """Roofs as lines, the bound as a diamond, orders as points, the SM boundary as a square on the roof of L2."""
    ax = axes(ax)
    peak = found.peak.per_second / _TERA
    roofs = [("DRAM", found.dram, BLUE), *([("L2", found.l2, GREEN)] if found.l2 is not None else [])]
    ridges = [peak * _TERA / rate.per_second for _, rate, _ in roofs]
    at = [found.bound.intensity, *ridges, *(point.intensity for point in found.orders)]
    at += [found.sm_intensity] if found.sm_intensity else []
    left, right = min(at) / 3, max(at) * 3
    wider = max(1.0, _LEAST_SPAN * left / right) ** 0.5  # so that labels of ticks have room
    left, right = left / wider, right * wider
    for (name, rate, color), ridge in zip(roofs, ridges, strict=True):
        tera = rate.per_second / _TERA
        ax.plot([left, ridge], [left * tera, peak], color=color, lw=1.4, label=f"{name}, {tera:.4g} TB/s")
    clock = "" if found.peak.clock_mhz is None else f" at {found.peak.clock_mhz:,g} MHz"
    ax.plot([min(ridges), right], [peak, peak], color="black", lw=1.4, label=f"{peak:,.4g} TFLOPS{clock}")
    if found.orders:
        ax.plot(
            [point.intensity for point in found.orders],
            [point.operations_per_second / _TERA for point in found.orders],
            "o", ms=4, mfc="none", mec=ORANGE, ls="none", label="orders, at their simulated DRAM bytes",
        )  # fmt: skip
    ax.plot(
        found.bound.intensity, found.bound.operations_per_second / _TERA, "D", color=RED, ms=5, ls="none",
        label=f"at the proved DRAM bound, {found.bound.intensity:,.0f} op/B",
    )  # fmt: skip
    lowest = [min(point.operations_per_second for point in (found.bound, *found.orders)) / _TERA]
    if found.sm_intensity is not None and found.l2 is not None:
        height = min(peak, found.sm_intensity * found.l2.per_second / _TERA)
        lowest.append(height)
        ax.plot(
            found.sm_intensity, height, "s", color=GREY, ms=5, ls="none",
            label=f"at the SM boundary, {found.sm_intensity:,.3g} op/B\n({found.sm_formula})",
        )  # fmt: skip
    log_axes(ax)
    ax.set_xlim(left, right)
    room = [point.operations_per_second / _TERA / _BELOW for point in found.orders[:1]]  # for its label
    ax.set_ylim(min([*lowest, left * found.dram.per_second / _TERA, *room]) / 1.5, peak * 1.6)
    for name, point in _labels(found.orders):
        ax.annotate(
            name, (point.intensity, point.operations_per_second / _TERA), (0, -6), textcoords="offset points",
            fontsize=6, rotation=-60, ha="left", va="top", rotation_mode="anchor",
        )  # fmt: skip
    ax.set_xlabel("operations per byte")
    ax.set_ylabel("TFLOPS")
    small_title(ax, "\n".join([found.chip, *wrap(found.title, _TITLE_WIDTH, break_on_hyphens=False)]))
    return ax


def _labels(orders: Sequence[Point]) -> list[tuple[str, Point]]:
    """The orders that move most and least; one label where they are too near for two."""
    if not orders:
        return []
    most, least = orders[0], orders[-1]
    if least.intensity > _APART * most.intensity:
        return [(most.name, most), (least.name, least)]
    return [(most.name if len(orders) == 1 else "all orders", most)]


def roofline_figure(found: Roofline) -> Figure:
    """The figure of ``pebble figure roofline``: as wide as a column of a paper."""
    with page(3.33, 3.7) as figure:
        plot_roofline(found, figure.add_subplot())
        figure.legend(loc="outside lower left", fontsize=6.5, frameon=False, ncols=1)
    return figure
