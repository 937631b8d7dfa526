"""A drawn figure, fitted to the page it is for: type no smaller than asked for, nothing cut, panels tall enough."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any

from pebble.errors import InputError
from pebble.plots.labels import DASHES
from pebble.plots.look import POINTS, Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text
else:  # drawing loads matplotlib, importing a figure does not
    Axes = Figure = Text = Any

_EDGE = 0.04  # inches between text and the edge of the page
_ROUNDS = 4
_MARKERS = "osD^vPX<>"
_ALIKE = {"-": 0, "--": 1, ":": 2, "-.": 3}  # styles of matplotlib's, and which of the dashes look like them
# Okabe and Ito's colours as greys that differ, where luminance alone would make green and vermilion one
_GREYS = {
    "#d55e00": "0.0", "#cc79a7": "0.13", "#0072b2": "0.28", "#009e73": "0.44", "#999999": "0.58", "#e69f00": "0.71",
    "#56b4e9": "0.82", "#f0e442": "0.92",
}  # fmt: skip


def fit(figure: Figure, look: Look) -> None:
    """Carry out what a look asks of a figure that is drawn."""
    if look.log and not any("log" in (ax.get_xscale(), ax.get_yscale()) for ax in figure.axes):
        raise InputError("--log: got it for a figure that has no axis of values above 0; leave it out.")
    if not look.title:
        _drop_titles(figure)
    if look.style == "grey":
        _make_grey(figure)
    if look.width_inches is None and look.base_points == POINTS:
        return
    _set_sizes(figure, look)
    if look.width_inches is None:
        return
    _move_legends(figure, look)
    whole: dict[Text, str] = {}
    figure.set_figheight(max(figure.get_figheight(), 2 * look.width_inches))  # room for what is below the panels
    _wrap_texts(figure, whole)  # a title wider than the page would leave panels no room
    for _ in range(_ROUNDS):
        figure.draw_without_rendering()
        _wrap_texts(figure, whole)
        missing = _missing_height(figure, look)
        if abs(missing) < 0.02:
            break
        figure.set_figheight(max(1.2, figure.get_figheight() + missing))
    figure.draw_without_rendering()
    _wrap_texts(figure, whole)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # what was measured stays where it is
    _wrap_texts(figure, whole)


def _texts(figure: Figure) -> list[Text]:
    from matplotlib.text import Text

    return [text for text in figure.findobj(Text) if text.get_text()]


def _parts(figure: Any) -> list[Any]:
    """The figure and the subfigures in it."""
    return [figure, *(part for sub in figure.subfigs for part in _parts(sub))]


def _drop_titles(figure: Figure) -> None:
    for ax in figure.axes:
        ax.set_title("", loc="left")
    for part in _parts(figure):
        if part.get_suptitle():
            part.suptitle("").set_in_layout(False)


def _set_sizes(figure: Figure, look: Look) -> None:
    base = look.base_points
    for text in _texts(figure):
        size = float(text.get_fontsize()) * base / POINTS
        if size <= base * 1.5:  # not a mark that is drawn as a letter
            text.set_fontsize(size if look.width_inches is None else base)
    for ax in figure.axes:  # tick labels made later
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_tick_params(which="both", labelsize=base)


def _move_legends(figure: Figure, look: Look) -> None:
    """Legends below the figure, or below their panel, in as many columns as fit."""
    from matplotlib.axes import Axes
    from matplotlib.transforms import ScaledTranslation

    points = look.base_points
    handle = 4 * points
    alone = sum(ax.get_legend() is not None for ax in figure.axes) == 1 and len(figure.axes) == 1
    for owner in (*_parts(figure), *figure.axes):
        legends = [owner.get_legend()] if isinstance(owner, Axes) else list(owner.legends)
        for old in filter(None, legends):
            labels = []
            below_panel = isinstance(owner, Axes) and not alone
            space = figure.get_figwidth() * 72 / (_side_by_side(owner) if below_panel else 1) - 2 * points
            longest = max(text.get_window_extent().width for text in old.get_texts()) * 72 / figure.dpi
            columns = max(1, min(3, int(space / (longest + handle))))
            columns = -(-len(old.get_texts()) // -(-len(old.get_texts()) // columns))  # no more than these rows need
            for text in old.get_texts():
                _wrap({text: " ".join(text.get_text().split())}, text, (space - handle) * figure.dpi / 72)
                labels.append(text.get_text())
            title = old.get_title().get_text()
            more: dict[str, Any] = {
                "title": title or None, "fontsize": points, "title_fontsize": points, "frameon": False,
                "ncols": columns, "columnspacing": 1, "handlelength": 1.8,
            }  # fmt: skip
            handles = list(old.legend_handles)
            old.remove()
            if below_panel:
                below = owner.transAxes + ScaledTranslation(0, -4 * points / 72, figure.dpi_scale_trans)
                owner.legend(
                    handles, labels, loc="upper left", bbox_to_anchor=(-0.1, 0), bbox_transform=below,
                    borderaxespad=0, **more,
                )  # fmt: skip
            else:
                place = figure if isinstance(owner, Axes) else owner
                place.legend(handles, labels, loc="outside lower left", **more)


def _side_by_side(ax: Axes) -> int:
    """Panels in the row of this one, which share the width of the page."""
    spec = ax.get_subplotspec()
    return 1 if spec is None else max(1, spec.get_gridspec().ncols // len(spec.colspan))


def _wrap_texts(figure: Figure, whole: dict[Text, str]) -> None:
    """Titles from edge to edge, labels of axes broken where they would leave the page; ``whole``: as they were."""
    width = figure.get_figwidth() * figure.dpi
    edge = _EDGE * figure.dpi
    for ax in figure.axes:
        box = ax.get_window_extent()
        title: Text = getattr(ax, "_left_title")  # noqa: B009 - the only way to a title at the left
        if title.get_text():
            _wrap(whole, title, width - 2 * edge)
            title.set_x((edge - box.x0) / box.width)
        space = 2 * min((box.x0 + box.x1) / 2, width - (box.x0 + box.x1) / 2) - 2 * edge
        _wrap(whole, ax.xaxis.label, space)
        tall = max(box.height * 1.15, 30)
        _wrap(whole, ax.yaxis.label, tall, upright=True)
        _wrap(whole, ax.title, max(box.width * 1.1, 20))
    for part in _parts(figure):
        if part.get_suptitle():
            _wrap(whole, part._suptitle, width - 2 * edge)


def _wrap(whole: dict[Text, str], text: Text, space: float, upright: bool = False) -> None:
    """Break lines between words so that none is longer than so many pixels."""
    words = whole.setdefault(text, text.get_text())
    if not words:
        return

    def across() -> float:
        box = text.get_window_extent()
        return float(box.height if upright else box.width)

    text.set_wrap(False)
    text.set_text(words)
    lines = re.sub(r"\$[^$]*\$", lambda formula: formula[0].replace(" ", "\0"), words).split("\n")
    longest = max(map(len, lines))
    most = min(longest, int(1.2 * longest * space / max(1.0, across())))  # more than fit, then as many as do
    while across() > space and most > 7:
        pieces = [textwrap.wrap(line, most, break_on_hyphens=False, break_long_words=False) for line in lines]
        text.set_text("\n".join(piece for line in pieces for piece in line).replace("\0", " "))
        most -= 1


def _missing_height(figure: Figure, look: Look) -> float:
    """Inches of the page that the tightest panel lacks; negative where all have too much. Low strips do not count."""
    shown = [ax for ax in figure.axes if ax.get_visible() and ax.get_label() != "<colorbar>"]
    sides = {}  # of each panel, inches; its position is that in its subfigure
    rows = {}
    for ax in shown:
        box, part = ax.get_position(original=True), ax.figure.bbox
        sides[ax] = box.width * part.width / figure.dpi, box.height * part.height / figure.dpi
        rows[id(part), round(box.y0, 2)] = sides[ax][1]
    tallest = max(rows.values(), default=1.0)
    lacking = [
        (_wanted_height(ax, wide, look) / tall - 1) * sum(rows.values())  # panels share a page's gain as they share it
        for ax, (wide, tall) in sides.items()
        if tall > 0.3 * tallest
    ]
    return max(lacking, default=0.0)


def _wanted_height(ax: Axes, wide: float, look: Look) -> float:
    """Inches: a line of type for every named row, the true proportions of a map, else those of a plot."""
    from matplotlib.ticker import FixedLocator

    line = 1.3 * (look.base_points) / 72
    if ax.get_aspect() != "auto":
        return float(wide * ax.get_data_ratio() * float(ax.get_aspect()))
    names = [label.get_text() for label in ax.get_yticklabels()]
    if isinstance(ax.yaxis.get_major_locator(), FixedLocator) and any(re.match("[A-Za-z]", name) for name in names):
        numbers = {text.get_position()[1] for text in ax.texts}  # at the ends of bars, of which a name may have two
        return max(0.8, line * max(len(numbers), sum(1 + name.count("\n") for name in names)))
    if _rows(ax) > 2:  # so that they share a page
        return min(1.9, max(1.2, 0.45 * wide))
    return min(4.0, max(1.7, 0.68 * wide))


def _rows(ax: Axes) -> int:
    """Panels one below the other in the grid of this one."""
    spec = ax.get_subplotspec()
    return 1 if spec is None else spec.get_gridspec().nrows


def _spread(figure: Figure) -> None:
    """Dashes, and markers, for lines that without colour would look alike: where a panel has more than two of them."""
    from matplotlib.colors import to_hex

    legends = [ax.get_legend() for ax in figure.axes] + [legend for part in _parts(figure) for legend in part.legends]
    for ax in figure.axes:
        named = [line for line in ax.lines if not str(line.get_label()).startswith("_")]
        solid = [line for line in named if line.get_linestyle() == "-" and to_hex(line.get_color()) != "#000000"]
        plain = [line for line in solid if line.get_marker() in ("", "None", None)]
        marked = [line for line in solid if line not in plain]
        taken = {_ALIKE.get(str(line.get_linestyle())) for line in named if line not in solid}
        free = [dashes for number, dashes in enumerate(DASHES) if number not in taken]
        if len({line.get_marker() for line in marked}) == len(marked):
            marked = []  # they differ already
        for lines in (plain, marked):
            if len(lines) < 3:
                continue
            for number, line in enumerate(lines):
                entries = [line, *_handles(legends, str(line.get_label()))]
                for item in entries:
                    item.set_linestyle(free[number % len(free)])
                    if lines is marked:
                        item.set_marker(_MARKERS[number % len(_MARKERS)])


def _handles(legends: list[Any], label: str) -> list[Any]:
    """What stands for a label in the legends."""
    return [
        handle
        for legend in filter(None, legends)
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True)
        if text.get_text() == label
    ]


def _make_grey(figure: Figure) -> None:
    from matplotlib.collections import Collection
    from matplotlib.colors import ListedColormap, to_hex, to_rgb, to_rgba
    from matplotlib.image import AxesImage
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.text import Annotation, Text

    def grey(colour: Any) -> Any:
        if isinstance(colour, str) and colour in ("none", "auto"):
            return colour
        r, g, b, alpha = to_rgba(colour)
        known = _GREYS.get(to_hex((r, g, b)))
        level = to_rgb(known)[0] if known else 0.299 * r + 0.587 * g + 0.114 * b
        return (level, level, level, alpha)

    _spread(figure)
    for artist in figure.findobj():
        if isinstance(artist, Line2D):
            artist.set_markerfacecolor(grey(artist.get_markerfacecolor()))
            artist.set_markeredgecolor(grey(artist.get_markeredgecolor()))
            artist.set_color(grey(artist.get_color()))
        elif isinstance(artist, Text):
            artist.set_color(grey(artist.get_color()))
            if isinstance(artist, Annotation) and artist.arrow_patch is not None:
                artist.arrow_patch.set_color(grey(artist.arrow_patch.get_edgecolor()))
        elif isinstance(artist, Patch):
            artist.set_facecolor(grey(artist.get_facecolor()))
            artist.set_edgecolor(grey(artist.get_edgecolor()))
        elif isinstance(artist, Collection) and artist.get_array() is None:
            artist.set_facecolor([grey(c) for c in artist.get_facecolor()])
            artist.set_edgecolor([grey(c) for c in artist.get_edgecolor()])
        elif isinstance(artist, AxesImage):
            artist.set_cmap(ListedColormap([grey(artist.cmap(i)) for i in range(artist.cmap.N)]))
