"""Writing figures: PDF, SVG or PNG, the same bytes for the same input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pebble.errors import InputError
from pebble.plots.fitting import fit
from pebble.plots.labels import settle
from pebble.plots.look import look
from pebble.system.files import check_output, faults

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure as Figure
    from matplotlib.figure import SubFigure
else:  # drawing loads matplotlib, importing a figure does not
    Axes = Figure = Any

# Okabe and Ito's palette: safe for colour-blind readers, distinct in grey.
BLUE, ORANGE, GREEN, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#999999"
PURPLE, SKY, YELLOW = "#CC79A7", "#56B4E9", "#F0E442"

CRUSHING = 20  # one value so many times another leaves nothing to see of that one

_NO_DATE = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}


def check_figure_path(path: str, option: str = "--figure") -> None:
    """Refuse a figure that could not be written, before any work is done for it.

    Raises
    ------
    InputError
        Another suffix than .pdf, .svg, .png, or a folder that is not there or not writable.
    """
    check_output(path, option, (".pdf", ".svg", ".png"))


def axes(ax: Axes | None) -> Axes:
    """``ax``, or the axes of a new figure; pyplot is not needed, and no window opens.

    Raises
    ------
    InputError
        ``ax`` is something else.
    """
    from matplotlib import axes, figure

    if isinstance(ax, axes.Axes):
        return ax
    if ax is not None:
        raise InputError(f"ax: got {ax!r}, expected matplotlib Axes, such as those of `plt.subplots()`, or None.")
    return figure.Figure(figsize=(6.4, 4.8), layout="constrained").add_subplot()


@contextmanager
def page(width: float, height: float) -> Iterator[Figure]:
    """A figure of so many inches, to be drawn as `pebble.plots.look` asks; when it is drawn, it is fitted."""
    import matplotlib
    from matplotlib.figure import Figure

    wanted = look()
    with matplotlib.rc_context(wanted.rc()):
        figure = Figure(figsize=(wanted.width_inches or width, height), layout="constrained")
        yield figure
        fit(figure, wanted)
        settle(figure)


def panels(count: int) -> tuple[int, int]:
    """Rows and columns for so many panels: side by side, in a column of a paper one below the other."""
    return (count, 1) if look().narrow else (1, count)


def value_axis(axis: Axis, values: Iterable[float], least: float | None = None, crushing: float = CRUSHING) -> bool:
    """Make the axis of values logarithmic where that was asked for, or where one value would crush the others.

    Parameters
    ----------
    axis : matplotlib.axis.Axis
    values : iterable of float
        What is drawn; below or at 0 they do not count.
    least : float, optional
        Where a logarithmic axis begins; by default a little below the least value.
    crushing : float
        From how many times the least value on one crushes the others.

    Returns
    -------
    bool
        Whether it is logarithmic now.
    """
    positive = [value for value in values if value > 0]
    if not positive or not (look().log or max(positive) > crushing * min(positive)):
        return False
    (axis.axes.set_xscale if axis is axis.axes.xaxis else axis.axes.set_yscale)("log")
    ends = (min(positive) / 1.3 if least is None else least, max(positive) * 1.6)
    (axis.axes.set_xlim if axis is axis.axes.xaxis else axis.axes.set_ylim)(*ends)
    number_log_axis(axis)
    return True


def number_log_axis(axis: Axis) -> None:
    """Plain numbers at powers of ten; between them at 2 and 5 too where the axis spans less than two."""
    plain_numbers(axis)
    low, high = sorted(axis.get_view_interval())
    few = high < 100 * low
    axis.set_minor_formatter(lambda value, _: f"{value:g}" if few and f"{value:.0e}"[0] in "25" else "")


def small_title(ax: Axes, text: str, **more: Any) -> None:
    """A title at the left, in small print."""
    ax.set_title(text, fontsize=8, loc="left", **more)


def plain_numbers(*axes: Axis) -> None:
    """Ticks as plain numbers, without powers of ten."""
    for axis in axes:
        axis.set_major_formatter(lambda value, _: f"{value:g}")


def log_axes(ax: Axes) -> None:
    """Both axes logarithmic with plain numbers; between the powers of ten 2 and 5 have a number too."""
    ax.set_xscale("log")
    ax.set_yscale("log")
    plain_numbers(ax.xaxis, ax.yaxis)
    ax.xaxis.set_minor_formatter(lambda value, _: "")
    ax.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:.0e}"[0] in "25" else "")


def save_figure(figure: Figure | SubFigure, path: str) -> None:
    """Write the figure without dates, so that equal inputs give equal files."""
    import matplotlib

    check_figure_path(path)
    with faults(path, "--figure: ", "written"), matplotlib.rc_context(look().rc()):
        figure.figure.savefig(path, dpi=200, metadata=_NO_DATE[Path(path).suffix.lower()])
