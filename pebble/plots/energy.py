"""What each schedule takes in energy, part by part: an estimate by a published table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pebble.plots.bars import plot_bars
from pebble.plots.save import Axes, Figure, page

if TYPE_CHECKING:
    from pebble.reports.kernel_compare import Comparison

_PARTS = {"operations": "operations", "dram": "DRAM", "l2": "L2", "shared": "shared memory"}


def plot_energy(found: Comparison, ax: Axes | None = None) -> Axes:
    """A bar for each schedule, and one for what is proved to be moved at least.

    Parameters
    ----------
    found : Comparison
        Made with an energy table.
    ax : matplotlib.axes.Axes, optional
    """
    timed = found.timed
    assert timed is not None and timed.energy is not None and timed.table is not None
    energies = [
        ("at the bounds", timed.energy),
        *((t.order, energy) for t in found.orders if (energy := found.energy_of(t))),
    ]
    levels = [level for level in _PARTS if level in timed.energy.joules]
    bars = [(name, [energy.joules[level] for level in levels]) for name, energy in energies]
    title = f"{found.workload.label}\n{'' if found.machine is None else found.machine.name}, table {timed.table.key}"
    return plot_bars(bars, "J, an estimate", title, ax, parts=[_PARTS[level] for level in levels])


def energy_figure(found: Comparison) -> Figure:
    """The figure of ``pebble figure energy``: as wide as a column of a paper."""
    with page(3.33, 1.5 + 0.2 * len(found.orders)) as figure:
        ax = plot_energy(found, figure.add_subplot())
        handles, labels = ax.get_legend_handles_labels()
        legend = ax.get_legend()
        if legend is not None:
            legend.remove()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=6.5, frameon=False)
    return figure
