"""How a figure looks: the options of every command that draws one, and the writing of its file."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pebble.cli import _output
from pebble.errors import InputError
from pebble.plots.look import STYLES, WIDTHS_INCHES, Look, looking, read_look
from pebble.plots.save import check_figure_path, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_OPTIONS = ("figure_width", "font", "style", "log", "no_title")


def add_look_arguments(parser: argparse.ArgumentParser, figure: str | None = "write the figure") -> None:
    """--figure FILE, explained so, and the options of its look; None: without --figure."""
    group = parser.add_argument_group("figure")
    if figure is not None:
        group.add_argument("--figure", metavar="FILE", help=f"{figure}: .pdf, .svg or .png")
    widths = ", ".join(f"{name} ({inches:g} in)" for name, inches in WIDTHS_INCHES.items())
    names = ["--figure-width"]
    if "--width" not in parser._option_string_actions:  # conv2d has a width of its own
        names.insert(0, "--width")
    help_text = f"for a paper: {widths}, or inches; its type is 8 pt or more"
    if len(names) == 1:
        help_text += "; also --width, except for conv2d"
    group.add_argument(*names, dest="figure_width", metavar="W", help=help_text)
    group.add_argument("--font", metavar="FONT", help="typeface, points, or both: serif, 9, serif:9")
    group.add_argument("--style", metavar="STYLE", help=f"{', '.join(STYLES)}, or FILE.mplstyle ({STYLES[0]})")
    group.add_argument("--log", action="store_true", help="a logarithmic axis of values")
    group.add_argument("--no-title", action="store_true", help="leave the title to the caption")


def look_of(args: argparse.Namespace) -> Look:
    """The look that the arguments describe.

    Raises
    ------
    InputError
        A malformed option.
    """
    return read_look(**look_arguments(args))


def look_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """The same as `pebble.figure` takes it."""
    _take_width(args)
    return {
        "width": args.figure_width, "font": args.font, "style": args.style or STYLES[0], "log": args.log,
        "title": not args.no_title,
    }  # fmt: skip


def check_figure(args: argparse.Namespace) -> None:
    """Refuse a figure that could not be drawn so or written, before the work for it.

    Raises
    ------
    InputError
        A malformed option, an option of a figure without --figure, or a file that cannot be written.
    """
    _take_width(args)
    if args.figure is not None:
        look_of(args)
        check_figure_path(args.figure)
        return
    for option in _OPTIONS:
        if vars(args)[option]:
            name = option.removeprefix("figure_").replace("_", "-")
            raise InputError(f"--{name}: got it without --figure, whose look it is; add --figure FILE or leave it out.")


def write_figure(
    args: argparse.Namespace, draw: Callable[[], Figure | tuple[Figure, dict[str, Any]]], path: str | None = None
) -> dict[str, Any]:
    """Draw in the look asked for, and write to ``path``, or to --figure and say so.

    Returns
    -------
    dict
        The numbers that ``draw`` gives beside the figure; most give none.
    """
    with looking(look_of(args)):
        drawn = draw()
        figure, numbers = drawn if isinstance(drawn, tuple) else (drawn, {})
        save_figure(figure, path or args.figure)
    if path is None:
        _output.tell(f"figure: {args.figure}")
    return numbers


def _take_width(args: argparse.Namespace) -> None:
    """--width is the figure's wherever the workload has none of that name."""
    options = vars(args)
    width = options.get("parameter_width")
    if width is not None and options.get("workload", options.get("dag")) != "conv2d":
        args.figure_width, args.parameter_width = width, None
