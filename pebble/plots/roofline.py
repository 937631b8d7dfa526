"""The roofline: what DRAM and L2 allow against operations per byte, a workload at its bound, and its orders."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from pebble.plots.look import look
from pebble.plots.save import BLUE, GREEN, GREY, ORANGE, RED, Axes, Figure, axes, log_axes, page, small_title
from pebble.timing.roofline import Point, Roofline

_TERA = 1e12
_TITLE_WIDTH = 42
_LEAST_SPAN, _APART, _BELOW = 100, 1.05, 30  # of operations per byte; of two names; room below for names, in TFLOPS
_NAMED, _NAMED_NARROW = 14, 9
_TOP, _LINE = 0.8, 0.08  # where the first name stands, and how far the next, in heights of the axes


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
    named = _labels(result.orders, _NAMED_NARROW if look().narrow else _NAMED)
    last = max([point.intensity for _, point in named], default=1.0)
    beside = ax.transAxes.inverted().transform(ax.transData.transform((last, peak)))[0] + 0.03
    for number, (name, point) in enumerate(reversed(named)):
        ax.annotate(
            name, (point.intensity, point.operations_per_second / _TERA), (beside, _TOP - number * _LINE),
            textcoords="axes fraction", fontsize=6.5, ha="left", va="center",
            arrowprops={"arrowstyle": "-", "lw": 0.4, "color": GREY, "shrinkA": 1, "shrinkB": 2, "relpos": (0, 0.5),
                        "connectionstyle": "angle,angleA=0,angleB=90"},
        )  # fmt: skip
    ax.set_xlabel("operations per byte")
    ax.set_ylabel("TFLOPS")
    small_title(ax, "\n".join([result.chip, *wrap(result.title, _TITLE_WIDTH, break_on_hyphens=False)]))
    return ax


def _labels(orders: Sequence[Point], most: int) -> list[tuple[str, Point]]:
    """Names for at most so many places, by rising intensity; orders near each other share one, which counts them."""
    groups: list[list[Point]] = []
    span = max((p.intensity for p in orders), default=1.0) / min((p.intensity for p in orders), default=1.0)
    apart = 1.0 if len(orders) <= most else max(_APART, span ** (1 / most))
    for point in sorted(orders, key=lambda p: (p.intensity, p.name)):
        if groups and point.intensity < apart * groups[-1][0].intensity:
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
