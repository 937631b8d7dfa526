"""What each schedule takes in energy, part by part: an estimate by a published table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pebble.plots.bars import lines_of, name_of_bar, plot_bars
from pebble.plots.look import look
from pebble.plots.save import Axes, Figure, page

_PARTS = {"operations": "operations", "dram": "DRAM", "l2": "L2", "shared": "shared memory"}


class EnergyBar(NamedTuple):
    """Schedules that take the same, by name; joules of each part."""

    names: tuple[str, ...]
    short: str
    joules: Mapping[str, float]

    @property
    def name(self) -> str:
        """What stands beside the bar."""
        return name_of_bar(self.names, self.short)


def plot_energy(energies: Sequence[EnergyBar], title: str, ax: Axes | None = None) -> Axes:
    """A bar for each schedule, those alike in one, and one for what is proved to be moved at least."""
    levels = [level for level in _PARTS if level in energies[0].joules]
    most = max(sum(energy.joules.values()) for energy in energies)
    unit, scale = ("J", 1.0) if most >= 0.1 else ("mJ", 1e3)
    bars = [(energy.name, [scale * energy.joules[level] for level in levels]) for energy in energies]
    ax = plot_bars(bars, f"{unit}, an estimate", title, ax, parts=[_PARTS[level] for level in levels])
    if ax.get_xscale() == "linear":
        ax.locator_params(axis="x", nbins=3 if look().narrow else 6)
    return ax


def energy_figure(energies: Sequence[EnergyBar], title: str) -> Figure:
    """The figure of ``pebble figure energy``: long names leave a column no room."""
    with page(6.4, 1.5 + 0.2 * sum(lines_of(energy.name) for energy in energies[1:])) as figure:
        ax = plot_energy(energies, title, figure.add_subplot())
        handles, labels = ax.get_legend_handles_labels()
        legend = ax.get_legend()
        if legend is not None:
            legend.remove()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=6.5, frameon=False)
    return figure
