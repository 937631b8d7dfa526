"""How a figure looks on the page it is for: its width, type and colours; what ``--width`` and its like ask for."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from pebble.errors import InputError
from pebble.system.files import faults, shown

POINTS = 8.0  #: of labels, where nothing else is asked for
WIDTHS_INCHES = {"column": 3.33, "text": 7.0}
STYLES = ("colour", "grey")
GENERIC_FAMILIES = ("serif", "sans-serif", "monospace")
NARROW_INCHES = 5.0
_STYLE = {
    "svg.hashsalt": "pebble",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.size": POINTS,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


@dataclass(frozen=True)
class Look:
    """What is asked of a figure beyond its content.

    Attributes
    ----------
    width_inches : float, optional
        Of the whole figure, 2 to 20; by default each figure's own. With one, no text is smaller than ``points``.
    family : str, optional
        A typeface.
    points : float, optional
        Size of labels, 5 to 24; by default 8.
    style : str
        ``colour``, ``grey``, or a ``.mplstyle`` file of matplotlib.
    log : bool
        Whether the axis of values is logarithmic whatever they are.
    title : bool
        Whether the title is drawn; papers have captions.

    Raises
    ------
    InputError
        A size out of its range, or a style that is none.
    """

    width_inches: float | None = None
    family: str | None = None
    points: float | None = None
    style: str = "colour"
    log: bool = False
    title: bool = True

    def __post_init__(self) -> None:
        for option, value, least, most in (("--width", self.width_inches, 2, 20), ("--font", self.points, 5, 24)):
            if value is not None and not least <= value <= most:
                unit = "inches" if option == "--width" else "points"
                raise InputError(f"{option}: got {value:g}, expected {least} to {most} {unit}.")
        if self.style not in STYLES and not self.style.endswith(".mplstyle"):
            raise InputError(
                f"--style: got {self.style!r}, expected {', '.join(STYLES)}, or a file of matplotlib's that ends in "
                ".mplstyle."
            )
        if self.family is not None and self.family not in GENERIC_FAMILIES:
            from matplotlib import font_manager

            if self.family not in font_manager.get_font_names():
                raise InputError(
                    f"--font: got {self.family!r}, expected {', '.join(GENERIC_FAMILIES)} or an installed typeface, "
                    "such as 'DejaVu Serif'."
                )

    @property
    def narrow(self) -> bool:
        """Whether panels are put one below the other."""
        return self.width_inches is not None and self.width_inches < NARROW_INCHES

    def rc(self) -> Any:
        """matplotlib's rcParams."""
        result: dict[str, Any] = dict(_STYLE)
        if self.style not in STYLES:
            result |= _read_style(self.style)
        if self.family is not None:
            result["font.family"] = [self.family]
        return result | {"font.size": POINTS}  # figures are drawn in that, then fitted

    @property
    def base_points(self) -> float:
        """The size asked for, else the style file's, else 8."""
        if self.points is not None or self.style in STYLES:
            return self.points or POINTS
        return float(_read_style(self.style).get("font.size", POINTS))


def read_look(width: str | float | None, font: str | None, style: str, log: bool, title: bool) -> Look:
    """The look that the words of a user describe.

    Parameters
    ----------
    width : str or float, optional
        ``column``, ``text``, or inches.
    font : str, optional
        A typeface, points, or both: ``serif:9``.
    style, log, title
        As for `Look`.

    Raises
    ------
    InputError
        A malformed one.
    """
    return Look(_width(width), *_font(font), style, log, title)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _width(text: str | float | None) -> float | None:
    if text is None or text in WIDTHS_INCHES:
        return WIDTHS_INCHES.get(str(text))
    inches = _number(str(text))
    if inches is None:
        raise InputError(f"--width: got {text!r}, expected {', '.join(WIDTHS_INCHES)} or inches such as 3.33.")
    return inches


def _font(text: str | None) -> tuple[str | None, float | None]:
    if text is None:
        return None, None
    family, colon, points = text.rpartition(":")
    if (size := _number(points)) is not None:
        return family or None, size
    if colon or not points:
        raise InputError(f"--font: got {text!r}, expected a typeface, points, or both, such as serif:9.")
    return points, None


def _read_style(path: str) -> dict[str, Any]:
    """The settings of a style file; matplotlib only warns of a line that it cannot take, here it is refused."""
    import matplotlib

    warned: list[logging.LogRecord] = []

    def keep(record: logging.LogRecord) -> bool:
        warned.append(record)
        return False

    reader = logging.getLogger("matplotlib")
    reader.addFilter(keep)
    try:
        with faults(path, "--style: ", "read"):
            try:
                read: Any = matplotlib.rc_params_from_file(path, use_default_template=False)
                result: dict[str, Any] = {key: read[key] for key in read}
            except (ValueError, UnicodeDecodeError):
                result = dict[str, Any]()
    finally:
        reader.removeFilter(keep)
    for record in warned:
        if isinstance(record.args, dict) and "key" in record.args:
            raise InputError(
                f"--style: {shown(path)} sets {str(record.args['key'])!r}, which matplotlib has not; correct its name "
                "or leave it out."
            )
        raise InputError(f"--style: {shown(path)}: {' '.join(record.getMessage().split())}")
    if not result:
        raise InputError(f"--style: {shown(path)} holds no setting of matplotlib, expected lines such as font.size: 9.")
    return result


_current: ContextVar[Look] = ContextVar("look")
_PLAIN = Look()


def look() -> Look:
    """How figures look now."""
    return _current.get(_PLAIN)


@contextmanager
def looking(wanted: Look) -> Iterator[None]:
    """Figures drawn within look so."""
    token = _current.set(wanted)
    try:
        yield
    finally:
        _current.reset(token)
