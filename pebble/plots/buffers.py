"""Traffic into SMs under each buffer model: against P, against S, and against the price of a copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from pebble.bounds.memories import balanced_share, buffer_lower_bound
from pebble.families import accounting, family_of
from pebble.game.buffer_model import BufferModel
from pebble.plots.labels import DASHES, end_label
from pebble.plots.look import look
from pebble.plots.save import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    Axes,
    Figure,
    number_log_axis,
    page,
    small_title,
    value_axis,
)
from pebble.workloads.workload import Workload

_OMEGAS = tuple(Fraction(i, 20) for i in range(21))
_POINTS = tuple(Fraction(i, 20) for i in (0, 2, 5, 10, 20))
_QUARTER = Fraction(1, 4)
_TRAFFIC = "into and out of SMs, GB"
_BEST = ", best schedule"
_MARK: dict[str, Any] = {"ms": 4.5, "mfc": "white", "mew": 1.1}


@dataclass(frozen=True)
class Chip:
    """P SMs that each hold so many bytes."""

    name: str
    sms: int
    sm_bytes: int


def _models(sms: int) -> list[tuple[str, str, BufferModel]]:
    return [
        ("sm-local", RED, BufferModel("sm-local", sms)),
        ("connected, omega 1/4", BLUE, BufferModel("connected", sms, _QUARTER)),
        ("pooled", GREEN, BufferModel("pooled", sms)),
    ]


def _gb(workload: Workload, capacity: int, model: BufferModel) -> float:
    share = balanced_share(workload, model.sms) if model.memories > 1 else None
    return buffer_lower_bound(accounting(workload), capacity, model, share).bytes / 1e9


def _number(ax: Axes) -> None:
    number_log_axis(ax.xaxis)
    number_log_axis(ax.yaxis)


def plot_against_sms(workload: Workload, chip: Chip, ax: Axes) -> Axes:
    """Balanced bounds as SMs of one size are added."""
    counts = [p for p in (1, 2, 4, 8, 16, 32, 64, 108, 132, 192, 256, 512) if p <= 4 * chip.sms]
    capacity = chip.sm_bytes // workload.narrowest_bytes
    for number, (label, color, _) in enumerate(_models(1)):
        values = [_gb(workload, capacity, _models(p)[number][2]) for p in counts]
        ax.loglog(counts, values, color=color, ls=DASHES[number], label=label)
        end_label(ax, counts[-1], values[-1], label, color)
    ax.axvline(chip.sms, color=GREY, lw=0.8, ls=":")
    ax.set_xlim(counts[0], counts[-1])
    _number(ax)
    ax.set_xlabel(f"SMs of {chip.sm_bytes // 1024} KiB each")
    ax.set_ylabel(_TRAFFIC)
    return ax


def plot_against_size(workload: Workload, chip: Chip, ax: Axes) -> Axes:
    """Balanced bounds as the storage of an SM grows."""
    sizes = [2**i for i in range(14, 23)]
    for number, (label, color, model) in enumerate(_models(chip.sms)):
        values = [_gb(workload, size // workload.narrowest_bytes, model) for size in sizes]
        ax.loglog([size / 1024 for size in sizes], values, color=color, ls=DASHES[number], label=label)
        end_label(ax, sizes[-1] / 1024, values[-1], label, color)
    ax.set_xlim(sizes[0] / 1024, sizes[-1] / 1024)
    ax.axvline(chip.sm_bytes / 1024, color=GREY, lw=0.8, ls=":")
    _number(ax)
    ax.set_ylabel(_TRAFFIC)
    ax.set_xlabel(f"KiB per SM, {chip.sms} SMs")
    return ax


def plot_against_omega(
    workload: Workload,
    chips: Sequence[Chip],
    ax: Axes,
    omegas: Sequence[Fraction] = _OMEGAS,
    points: Sequence[Fraction] = _POINTS,
) -> Axes:
    """Bound (``omegas``) and schedules (``points``) against the price of a copy: all SMs joined, and clusters of 16."""
    for chip, color in zip(chips, (BLUE, ORANGE), strict=False):
        capacity = chip.sm_bytes // workload.narrowest_bytes
        fits = chip.sm_bytes // workload.widest_bytes
        for net, line, mark in (("all-to-all", "-", "o"), ("cluster-16", "--", "^")):
            values = [_gb(workload, capacity, BufferModel("connected", chip.sms, w, net)) for w in omegas]
            name, of_both = f"{chip.name}, {net}", {"color": color, "marker": mark, **_MARK}
            # the legend shows a line with the mark of its schedules; on the line itself there is none
            ax.plot([float(w) for w in omegas], values, ls=line, markevery=[], label=name, **of_both)
            costs = []
            for w in points:
                result = family_of(workload).best_in_buffers(workload, fits, BufferModel("connected", chip.sms, w, net))
                assert result is not None
                costs.append(float(result.cost_bytes(w)) / 1e9)
            ax.plot([float(w) for w in points], costs, ls="none", label=name + _BEST, **of_both)
    ax.set_xlabel("omega: cost of a copied value")
    if not value_axis(ax.yaxis, [y for line in ax.lines for y in np.asarray(line.get_ydata(), dtype=float).tolist()]):
        ax.set_ylim(0)
    ax.set_ylabel(_TRAFFIC)
    _legend(ax, 6.5)
    return ax


def _legend(ax: Axes, points: float) -> None:
    """Every line, each with the mark of its schedules."""
    lines = [line for line in ax.lines if not str(line.get_label()).endswith(_BEST)]
    title = "bound (lines), best schedule (marks)"
    ax.legend(handles=lines, frameon=False, fontsize=points, title=title, title_fontsize=points)


def buffers_figure(workload: Workload, chips: Sequence[Chip]) -> Figure:
    """The three on one page; the first chip is the one of the first two panels.

    Parameters
    ----------
    workload : Gemm, Ffn or Attention
    chips : sequence of Chip
        One or two.
    """
    with page(9.6, 3.4) as figure:
        axes = figure.subplots(*((1, 3) if look().width_inches is None else (3, 1)))
        plot_against_sms(workload, chips[0], axes[0])
        plot_against_size(workload, chips[0], axes[1])
        plot_against_omega(workload, chips, axes[2])
        figure.suptitle(
            f"{workload.label}: balanced bounds at the L2-to-SM boundary, {chips[0].name} (dotted)", fontsize=8
        )
    return figure


def omega_figure(workload: Workload, chip: Chip, measured: Fraction | None) -> Figure:
    """Bound and schedules against the price of a copy, with the measured price where it is known.

    Parameters
    ----------
    workload : Gemm, Ffn or Attention
    chip : Chip
    measured : Fraction or None
        Reads of L2 that a copy costs.
    """
    steps = tuple(Fraction(i, 10) for i in range(ceil(10 * max(Fraction(2), measured or 0)) + 1))
    with page(3.33, 2.9) as figure:
        ax = plot_against_omega(workload, [chip], figure.add_subplot(), steps, (Fraction(0), _QUARTER, *steps[5::5]))
        if measured is not None:
            ax.axvline(float(measured), color=RED, lw=1, ls="--", label=f"measured, {float(measured):.2f}")
        ax.axvline(float(_QUARTER), color=GREY, lw=0.8, ls=":", label="1/4, hypothetical")
        ax.set_xlabel("omega: cost of a copied value, in reads of L2")
        ax.set_ylabel("cost into and out of SMs, GB")
        _legend(ax, 6)
        small_title(ax, f"{workload.label}\n{chip.name}, balanced")
    return figure
