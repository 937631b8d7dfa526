"""What each schedule takes in energy, part by part: an estimate by a published table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pebble.plots.bars import lines_of, name_of_bar, plot_bars
from pebble.plots.look import look
from pebble.plots.save import Axes, Figure, page

if TYPE_CHECKING:
    from pebble.reports.kernel_compare import Comparison
    from pebble.simulation import Traffic

_PARTS = {"operations": "operations", "dram": "DRAM", "l2": "L2", "shared": "shared memory"}


def plot_energy(found: Comparison, ax: Axes | None = None) -> Axes:
    """A bar for each schedule, those alike in one, and one for what is proved to be moved at least.

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
        *((name, energy) for name, first in _bars(found) if (energy := found.energy_of(first))),
    ]
    levels = [level for level in _PARTS if level in timed.energy.joules]
    most = max(sum(energy.joules.values()) for _, energy in energies)
    unit, scale = ("J", 1.0) if most >= 0.1 else ("mJ", 1e3)
    bars = [(name, [scale * energy.joules[level] for level in levels]) for name, energy in energies]
    title = f"{found.workload.label}\n{'' if found.machine is None else found.machine.name}, table {timed.table.key}"
    ax = plot_bars(bars, f"{unit}, an estimate", title, ax, parts=[_PARTS[level] for level in levels])
    if ax.get_xscale() == "linear":
        ax.locator_params(axis="x", nbins=3 if look().narrow else 6)
    return ax


def _bars(found: Comparison) -> list[tuple[str, Traffic]]:
    """The name of each bar, and one of the schedules that share it."""
    return [
        (name_of_bar([t.order for t in tied], found.name_of(tied)), tied[0])
        for tied in found.together(lambda t: t.l2_bytes)
    ]


def energy_figure(found: Comparison) -> Figure:
    """The figure of ``pebble figure energy``: long names leave a column no room."""
    with page(6.4, 1.5 + 0.2 * sum(lines_of(name) for name, _ in _bars(found))) as figure:
        ax = plot_energy(found, figure.add_subplot())
        handles, labels = ax.get_legend_handles_labels()
        legend = ax.get_legend()
        if legend is not None:
            legend.remove()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=6.5, frameon=False)
    return figure
