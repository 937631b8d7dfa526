"""Writing figures: PDF, SVG or PNG, the same bytes for the same input."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pebble.errors import InputError
from pebble.system.files import check_output, faults

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

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
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    if isinstance(ax, Axes):
        return ax
    if ax is not None:
        raise InputError(f"ax: got {ax!r}, expected matplotlib Axes, such as those of `plt.subplots()`, or None.")

    return Figure(figsize=(6.4, 4.8), layout="constrained").add_subplot()


def save_figure(figure: Figure | SubFigure, path: str) -> None:
    """Write the figure without dates, so that equal inputs give equal files."""
    import matplotlib

    check_figure_path(path)
    with faults(path, "--figure: ", "written"), matplotlib.rc_context(style()):
        figure.figure.savefig(path, dpi=200, metadata=_NO_DATE[Path(path).suffix.lower()])
