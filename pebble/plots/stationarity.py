"""Which operand should stay: traffic of A-, B- and C-stationary schedules against kappa = k / sqrt(S)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from pebble.families.gemm import GEMM
from pebble.plots.save import BLUE, GREEN, ORANGE, Axes, Figure, axes, log_axes, page, plain_numbers, small_title
from pebble.schedules.explicit.blocked import blocked_products
from pebble.units import format_capacity
from pebble.workloads import Gemm
from pebble.workloads.widths import FastMemory

_STYLES = {"A": (BLUE, "-"), "B": (GREEN, "--"), "C": (ORANGE, "-")}
_LEAST, _MOST, _STEPS = -3.0, 3.0, 48  # powers of two of kappa, and steps between them


@dataclass(frozen=True)
class Stationarity:
    """The best schedule of each stationary operand, k by k.

    Attributes
    ----------
    gemm : Gemm
        Its m, n and types; its k is not used.
    capacity : int
        S, in values.
    depths : tuple of int
        The k that were tried.
    moved : dict
        A, B and C: values moved at each k.
    bounds : tuple of int
        The proved least at each k, values.
    """

    gemm: Gemm
    capacity: int
    depths: tuple[int, ...]
    moved: dict[str, tuple[int, ...]]
    bounds: tuple[int, ...]

    @property
    def kappas(self) -> list[float]:
        """k over the square root of S."""
        return [k / math.sqrt(self.capacity) for k in self.depths]

    @property
    def winners(self) -> list[str]:
        """The operand that is best kept at each k; a tie goes to the first letter."""
        return [min(self.moved, key=lambda name: (self.moved[name][i], name)) for i in range(len(self.depths))]

    @property
    def switch(self) -> float | None:
        """The kappa from which on C-stationary wins at every k tried; None where another wins at the last."""
        lost = [i for i, name in enumerate(self.winners) if name != "C"]
        first = lost[-1] + 1 if lost else 0
        return self.kappas[first] if first < len(self.depths) else None

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        at = zip(self.depths, self.kappas, self.winners, self.bounds, strict=True)
        rows = [
            {
                "k": k,
                "kappa": kappa,
                "best": best,
                "bound_elements": bound,
                "best_over_bound": self.moved[best][i] / bound,
            }
            | {f"{name.lower()}_stationary_elements": traffic[i] for name, traffic in self.moved.items()}
            for i, (k, kappa, best, bound) in enumerate(at)
        ]
        return {"capacity_elements": self.capacity, "c_wins_from_kappa": self.switch, "depths": rows}


def stationarity(gemm: Gemm, capacity: int) -> Stationarity:
    """Try k from an eighth of sqrt(S) to eight times it.

    Parameters
    ----------
    gemm : Gemm
    capacity : int
        S, in values, 3 or more.

    Notes
    -----
    With m, n far above sqrt(S) a slab of A (rows x k, all that fits) is held while B passes: k^2 / S + 1 values for
    each output, besides A itself; a square of C while A and B pass: 2 k / sqrt(S) + 1. They meet at k = 2 sqrt(S).
    """
    powers = (_LEAST + (_MOST - _LEAST) * i / _STEPS for i in range(_STEPS + 1))
    depths = sorted({max(1, round(math.sqrt(capacity) * 2**power)) for power in powers})
    traffic: dict[str, list[int]] = {name: [] for name in _STYLES}
    bounds = []
    for k in depths:
        single = replace(gemm, k=k)
        best: dict[str, int] = {}
        for schedule in blocked_products(single, FastMemory.of_values(capacity)):
            name = schedule.stationary
            best[name] = min(best.get(name, schedule.elements), schedule.elements)
        for name, values in traffic.items():
            values.append(best[name])
        bounds.append(GEMM.lower_bound(single, capacity).elements)
    return Stationarity(gemm, capacity, tuple(depths), {n: tuple(v) for n, v in traffic.items()}, tuple(bounds))


def plot_stationarity(result: Stationarity, ax: Axes | None = None) -> Axes:
    """Values moved for each output, against kappa."""
    ax = axes(ax)
    outputs = result.gemm.m * result.gemm.n
    for name, (color, line) in _STYLES.items():
        each = [traffic / outputs for traffic in result.moved[name]]
        ax.plot(result.kappas, each, color=color, ls=line, lw=1.4, label=f"{name}-stationary")
    ax.plot(result.kappas, [bound / outputs for bound in result.bounds], color="black", lw=1, label="proved bound")
    log_axes(ax)
    ax.set_xticks([2.0**power for power in range(-3, 4)])
    ax.minorticks_off()
    ax.yaxis.set_ticks([value for value in (1, 2, 5, 10, 20, 50, 100) if ax.get_ylim()[0] < value < ax.get_ylim()[1]])
    plain_numbers(ax.xaxis, ax.yaxis)
    if result.switch is not None:
        ax.axvline(result.switch, color="0.6", lw=0.8, ls=":")
    ax.set_xlabel("kappa = k / sqrt(S)")
    ax.set_ylabel("values moved for each output")
    gemm = result.gemm
    held = format_capacity(result.capacity * gemm.widest_bytes)
    small_title(ax, f"{gemm.m} x {gemm.n} x k, S = {result.capacity:,} values ({held})")
    return ax


def stationarity_figure(result: Stationarity) -> Figure:
    """The figure of ``pebble figure stationarity``: as wide as a column of a paper."""
    with page(3.33, 2.8) as figure:
        plot_stationarity(result, figure.add_subplot()).legend(frameon=False, fontsize=7)
    return figure
