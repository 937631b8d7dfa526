"""An FFN in bands of rows: a band's height against time, bytes and the share of slots with a block, a column a chip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pebble.plots.look import look
from pebble.plots.save import BLUE, GREY, ORANGE, RED, Axes, Figure, page

_STYLES = (("barriers", BLUE, "o-"), ("flags", ORANGE, "s--"))
_TITLES = ("modelled ms", "simulated GB", "% of slots busy")


class Point(NamedTuple):
    """Of one schedule: modelled milliseconds of a launch, gigabytes to and from DRAM, percent of slots with a block."""

    milliseconds: float
    gigabytes: float
    busy: float


@dataclass(frozen=True)
class Bands:
    """Of one chip.

    Attributes
    ----------
    chip, tile : str
    points : mapping of int to (Point, Point)
        By the height of a band in tile rows: with barriers, and with flags.
    two_kernels : Point
        One product after the other.
    proved : tuple of float
        Milliseconds and gigabytes that every schedule needs.
    """

    chip: str
    tile: str
    points: Mapping[int, tuple[Point, Point]]
    two_kernels: Point
    proved: tuple[float, float]


def bands_figure(chips: Sequence[Bands], label: str) -> Figure:
    """The figure of ``pebble figure bands``."""
    with page(6.4, 5.2) as figure:
        panels = figure.subplots(len(_TITLES), len(chips), sharex="col", squeeze=False)
        for column, chip in enumerate(chips):
            for row, ax in enumerate(panels[:, column]):
                _panel(ax, chip, row)
                if column == 0 or not look().narrow:
                    ax.set_ylabel(_TITLES[row])
            name = chip.chip.split("-")[0] if look().narrow else f"{chip.chip}\ntiles of {chip.tile}"
            panels[0, column].set_title(name, fontsize=8)
            panels[-1, column].set_xlabel("tile rows" if look().narrow else "tile rows of a band")
        if look().title:
            figure.suptitle(label, fontsize=8)
        handles, labels = panels[0, 0].get_legend_handles_labels()
        columns = 2 if look().narrow else 4
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=6.5, frameon=False)
    return figure


def _panel(ax: Axes, chip: Bands, row: int) -> None:
    heights = sorted(chip.points)
    for number, (name, color, mark) in enumerate(_STYLES):
        values = [chip.points[height][number][row] for height in heights]
        ax.plot(heights, values, mark, color=color, ms=3, lw=1, label=f"bands, {name}")
    ax.axhline(chip.two_kernels[row], color=GREY, lw=1, ls="-.", label="two kernels")
    if row < len(chip.proved):
        ax.axhline(chip.proved[row], color=RED, lw=1, ls=":", label="proved to be needed")
        ax.set_ylim(bottom=0)
    ax.set_xscale("log", base=2)
    ticks = [height for height in heights if height.bit_count() == 1][:: 3 if look().narrow else 1]
    ax.set_xticks(ticks, [str(height) for height in ticks])
    ax.minorticks_off()
    ax.tick_params(labelsize=7)
