"""`pebble.figure`: every figure by name, drawn for the page it is for, with the numbers that it shows."""

from __future__ import annotations

import csv
import io
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from pebble.api.drawn import FIGURES, FigureSpec
from pebble.errors import InputError, UnknownNameError
from pebble.models.machine import Machine
from pebble.plots.look import Look, looking, read_look
from pebble.plots.save import save_figure
from pebble.reports.options import spelled_out
from pebble.reports.report import Report
from pebble.system.files import check_output, faults
from pebble.workloads.workload import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class FigureOptions(TypedDict, total=False):
    """What some figures take; one that a figure does not take is refused.

    Attributes
    ----------
    cache : str
        projections, segments, pebbling, stationarity: fast memory, ``"60el"`` or ``"6MiB"``.
    schedules : str or sequence of str
        ski-slope, walk: tile orders, up to four; roofline, energy: any number (all).
    gpu : str or Machine
        omega, roofline, bands, energy: a SKU.
    machine : str
        omega, roofline, bands, energy: a machine file of your own.
    accumulator : {"fp32", "fp16"}
        roofline: the type of sums.
    energy : {"7nm", "k40", "h100"}
        energy: the table (7nm).
    sms : int
        ski-slope, walk: SMs of the kernel (108); placement: SMs (8).
    grid : str
        walk, placement: the tile grid (``"32x32"``, ``"16x16"``).
    segments : int
        segments: how many (as many as prove most).
    solution : str
        pebbling: a file that ``pebble solve ... --json`` printed.
    """

    cache: str | None
    schedules: str | list[str] | None
    gpu: str | Machine | None
    machine: str | None
    accumulator: str | None
    energy: str | None
    sms: int | str | None
    grid: str | None
    segments: int | str | None
    solution: str | None


@dataclass(frozen=True, repr=False)
class Drawing(Report):
    """A figure, and the numbers that it shows; a notebook shows the figure.

    Attributes
    ----------
    name : str
    drawn : matplotlib.figure.Figure
    data : tuple of dict
        A row per number drawn: ``panel``, ``series``, ``x`` and ``y`` in the units of the axes, which ``x_is`` and
        ``y_is`` name.
    more : dict
        Further numbers, exact, where the figure has some.
    look : Look
        The look it was drawn in.
    """

    name: str
    drawn: Figure
    data: tuple[dict[str, Any], ...]
    more: dict[str, Any]
    look: Look

    question = "figure"

    def summary(self) -> str:
        width, height = self.drawn.get_size_inches()
        return f"{self.name}: {width:.2f} x {height:.2f} in, {len(self.data)} numbers"

    def rows(self) -> list[dict[str, Any]]:
        """A row per number drawn."""
        return [dict(row) for row in self.data]

    def document(self) -> dict[str, Any]:
        return {"figure": self.name, **self.more, "data": self.rows()}

    def figure(self) -> Figure:
        """The figure."""
        return self.drawn

    def plot(self, ax: Axes | None = None) -> Axes:
        """The first axes of the figure.

        Raises
        ------
        InputError
            ``ax`` is given: the figure is drawn already.
        """
        if ax is not None:
            raise InputError("ax: got axes for a figure that is drawn already; leave it out.")
        first: Axes = self.drawn.axes[0]
        return first

    def save(self, path: str | Path) -> None:
        """Write the figure, .pdf, .svg or .png, or its numbers, .csv.

        Raises
        ------
        InputError
            Another suffix, or a file that cannot be written.
        """
        if str(path).lower().endswith(".csv"):
            with faults(str(path), "--data: ", "written"):
                Path(path).write_text(self.csv, encoding="utf-8")
            return
        with looking(self.look):
            save_figure(self.drawn, str(path))

    @property
    def csv(self) -> str:
        """The numbers as a table with commas."""
        text = io.StringIO()
        names = list(dict.fromkeys(name for row in self.data for name in row))
        writer = csv.DictWriter(text, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.data)
        return text.getvalue()

    def _repr_html_(self) -> str:
        import matplotlib

        image = io.BytesIO()
        with matplotlib.rc_context(self.look.rc()):
            self.drawn.savefig(image, format="png", dpi=150)
        return f'<img alt="{self.name}" src="data:image/png;base64,{b64encode(image.getvalue()).decode()}">'


def check_data_path(path: str) -> None:
    """Refuse a table of numbers that could not be written; errors as for `check_output`."""
    check_output(path, "--data", (".csv",))


@spelled_out(FigureOptions)
def figure(
    name: str,
    workload: Workload | None = None,
    *,
    width: str | float | None = None,
    font: str | None = None,
    style: str = "colour",
    log: bool = False,
    title: bool = True,
    **options: Unpack[FigureOptions],
) -> Drawing:
    """A figure of a proof or a model, as ``pebble figure`` draws it.

    Parameters
    ----------
    name : str
        ski-slope, projections, segments, pebbling, walk, gap, fusion, buffers, omega, placement, roofline,
        stationarity, bands or energy.
    workload : Workload, optional
        By default one that shows the point.
    width : str or float, optional
        ``"column"`` (3.33 in) or ``"text"`` (7 in) of a paper, or inches; its type is then 8 points or more.
    font : str, optional
        A typeface, points, or both: ``"serif:9"``.
    style : str
        ``"colour"``, ``"grey"``, or a file of matplotlib's, ``FILE.mplstyle``.
    log : bool
        A logarithmic axis of values.
    title : bool
        Whether the figure has its title; a paper has captions.
    **options
        What some figures take: `FigureOptions`.

    Returns
    -------
    Drawing
        ``.figure()`` for matplotlib, ``.save("f.pdf")``, ``.rows()`` and ``.save("f.csv")`` for the numbers.

    Raises
    ------
    UnknownNameError
        No such figure.
    InputError
        An option or a workload that the figure does not take, or one that is malformed.

    Examples
    --------
    >>> import pebble
    >>> drawn = pebble.figure("segments", pebble.Gemm(12, 12, 12), cache="40el", width="column")
    >>> drawn.rows()[0]["series"]
    'held at the start'
    """
    if name not in FIGURES:
        raise UnknownNameError("figure", name, FIGURES, "pebble figure --help")
    wanted = read_look(width, font, style, log, title)
    draw, allowed = FIGURES[name]
    keywords: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    for option in keywords:
        if option not in FigureOptions.__optional_keys__:
            raise UnknownNameError("option", option, sorted(FigureOptions.__optional_keys__), "help(pebble.figure)")
        if option not in allowed:
            raise InputError(f"{name}: got --{option}, which this figure does not take; leave it out.")
    if "workload" not in allowed and workload is not None:
        raise InputError(f"{name}: got the workload {workload.label}, which this figure does not take; leave it out.")
    if not isinstance(keywords.get("schedules", ""), str):
        keywords["schedules"] = ",".join(map(str, keywords["schedules"]))
    with looking(wanted):
        result = draw(FigureSpec(name, workload, **keywords))
    drawn, more = result if isinstance(result, tuple) else (result, {})
    from pebble.plots.data import drawn_data

    return Drawing(name, drawn, tuple(drawn_data(drawn)), more, wanted)
