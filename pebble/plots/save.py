"""Writing figures: PDF, SVG or PNG, the same bytes for the same input."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pebble.errors import InputError
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

_STYLE = {
    "svg.hashsalt": "pebble",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_NO_DATE = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}


def check_figure_path(path: str) -> None:
    """Refuse a figure that could not be written, before any work is done for it.

    Raises
    ------
    InputError
        Another suffix than .pdf, .svg, .png, or a folder that is not there or not writable.
    """
    check_output(path, "--figure", (".pdf", ".svg", ".png"))


def style() -> Any:
    """rcParams of every figure, for ``matplotlib.rc_context``."""
    return dict(_STYLE)


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
    """A figure of so many inches, to be drawn in the style of all of them."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(style()):
        yield Figure(figsize=(width, height), layout="constrained")


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
    ax.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:.0e}"[0] in "25" else "")


def save_figure(figure: Figure | SubFigure, path: str) -> None:
    """Write the figure without dates, so that equal inputs give equal files."""
    import matplotlib

    check_figure_path(path)
    with faults(path, "--figure: ", "written"), matplotlib.rc_context(style()):
        figure.figure.savefig(path, dpi=200, metadata=_NO_DATE[Path(path).suffix.lower()])
