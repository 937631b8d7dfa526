"""Names beside the ends of lines: in the colour of the line, none over another, a thin leader where one had to move."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:  # drawing loads matplotlib, importing a figure does not
    Axes = Figure = Any

# patterns that differ in print, the first solid; every family of lines takes them in turn
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (4, 1.2, 1.2, 1.2)), (0, (8, 2)),
                           (0, (5, 1.2, 1.2, 1.2, 1.2, 1.2)), (0, (2.5, 2.5)))  # fmt: skip
_GID = "end-label"
_AWAY = 9.0  # points from the edge of the axes
_LONGEST = 16  # letters of a line


def in_lines(text: str, longest: int) -> str:
    """Names in lines of so many letters; longer ones break behind a colon, before a plus sign or within."""
    lines = [""]
    for name in re.split("(?<=,)(?= )", text):
        parts = [name]
        if len(name.strip()) > longest:
            parts = re.findall(r" and \d+ more$|[ +]?[^:+ ]+:?|.", name.strip())
            lines += [""] * bool(lines[-1])
        for piece in (piece for part in parts for piece in textwrap.wrap(part, longest, drop_whitespace=False)):
            if lines[-1] and len(lines[-1] + piece) > longest:
                lines.append("")
            lines[-1] += piece if lines[-1] else piece.lstrip()
    return "\n".join(lines)


def end_label(ax: Axes, x: float, y: float, text: str, colour: str) -> None:
    """Name a line that ends at the right edge of its axes at (x, y); `settle` moves what would overlap."""
    note = ax.annotate(
        in_lines(text, _LONGEST), (x, y), (_AWAY, 0), textcoords="offset points",
        ha="left", va="center", fontsize=7, color=colour, annotation_clip=False, linespacing=1.0,
        arrowprops={"arrowstyle": "-", "lw": 0.5, "color": colour, "shrinkA": 1, "shrinkB": 0, "relpos": (0, 0.5)},
    )  # fmt: skip
    note.set_gid(_GID)


def settle(figure: Figure) -> None:
    """Move the names at the ends of lines up or down until none overlaps, as little as squares tell."""
    from matplotlib.text import Annotation

    traffic = False
    for ax in figure.axes:
        notes = [note for note in ax.texts if isinstance(note, Annotation) and note.get_gid() == _GID]
        if not notes:
            continue
        if not traffic:
            figure.draw_without_rendering()
            traffic = True
        notes.sort(key=lambda note: float(note.xy[1]))
        wanted = [float(ax.transData.transform(note.xy)[1]) for note in notes]
        heights = [note.get_window_extent().height + 1 for note in notes]
        centres = spread(wanted, heights)
        box = ax.get_window_extent()
        above = max(0.0, centres[-1] + heights[-1] / 2 - box.y1)  # where titles stand
        below = 0.0 if above else max(0.0, box.y0 - 0.15 * box.height - centres[0] + heights[0] / 2)
        for note, place, centre in zip(notes, wanted, centres, strict=True):
            note.xyann = (_AWAY, (centre - place - above + below) * 72 / figure.dpi)


def spread(wanted: Sequence[float], heights: Sequence[float]) -> list[float]:
    """Centres in the order wanted, no two boxes of such heights over each other, as near as squares tell: pooled.

    Examples
    --------
    >>> spread([0, 1, 10], [4, 4, 4])
    [-1.5, 2.5, 10.0]
    """
    at, offsets = 0.0, []
    for number, height in enumerate(heights):
        at += 0 if number == 0 else (heights[number - 1] + height) / 2
        offsets.append(at)
    pools: list[list[float]] = []
    for place, offset in zip(wanted, offsets, strict=True):
        pools.append([place - offset])
        while len(pools) > 1 and fmean(pools[-2]) > fmean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    starts = [fmean(pool) for pool in pools for _ in pool]
    return [start + offset for start, offset in zip(starts, offsets, strict=True)]
