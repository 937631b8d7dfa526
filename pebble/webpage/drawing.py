"""A log-log frame in SVG, and the ski-slopes in it: what each schedule moves at every cache size, over the proved
bound. Colours come from the page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

from pebble.errors import InputError
from pebble.webpage.documents import Document, Fields, setting

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 92, 40, 14, 64
_MOST_TICKS = 6
_MOST_ACROSS = 4  # words side by side above a column of bars
_MARKS = ("circle", "square", "triangle", "diamond", "cross")
_SHAPES = {
    "square": "m-4 -4h8v8h-8z",
    "triangle": "m0 -5.5l5 9h-10z",
    "diamond": "m0 -6l5 6l-5 6l-5 -6z",
    "cross": "m-5 -5l10 10m0 -10l-10 10",
}


@dataclass(frozen=True)
class Frame:
    """Ranges of both axes; all positive.

    Attributes
    ----------
    low_x, high_x, low_y, high_y : float
    """

    low_x: float
    high_x: float
    low_y: float
    high_y: float

    @classmethod
    def around(cls, xs: Sequence[float], ys: Iterable[float]) -> Frame:
        """The frame of some points: x to its ends, y with room above and below."""
        values = [y for y in ys if y > 0]
        high = xs[-1] if xs[-1] > xs[0] else 2 * xs[0]
        return cls(xs[0], high, min(values) / 1.3, max(values) * 1.3)

    def x(self, value: float) -> float:
        """Where a value lies across."""
        return LEFT + (WIDTH - LEFT - RIGHT) * _share(value, self.low_x, self.high_x)

    def y(self, value: float) -> float:
        """Where a value lies down; one that is below the frame on its edge."""
        share = _share(max(value, self.low_y), self.low_y, self.high_y)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    def line(self, xs: Sequence[float], ys: Sequence[float]) -> str:
        """The path through points."""
        points = (f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in zip(xs, ys, strict=True))
        return f'<path class="line" d="M{"L".join(points)}"/>'

    def axes(self, ticks: Sequence[float], words: Callable[[float], str], label: str) -> str:
        """Grid lines and words; ``ticks`` across, and 1, 2, 5 times powers of ten down, in bytes."""
        bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
        parts = []
        for tick in ticks:
            x = self.x(tick)
            parts.append(f'<path class="grid" d="M{x:.1f} {TOP}V{bottom}"/>')
            parts.append(f'<text x="{x:.1f}" y="{bottom + 24}" text-anchor="middle">{words(tick)}</text>')
        for tick in decimal_ticks(self.low_y, self.high_y):
            y = self.y(tick)
            parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>')
            parts.append(f'<text x="{LEFT - 8}" y="{y + 5:.1f}" text-anchor="end">{bytes_text(tick)}</text>')
        parts.append(f'<text x="{(LEFT + right) / 2:.0f}" y="{HEIGHT - 10}" text-anchor="middle">{label}</text>')
        middle = f"16 {(TOP + bottom) / 2:.0f}"
        turned = f'transform="translate({middle}) rotate(-90)" text-anchor="middle"'
        parts.append(f'<text class="upright" {turned}>moved to and from DRAM</text>')
        return "".join(parts)


@dataclass(frozen=True)
class LogAxis:
    """A log scale across, that begins and ends on a tick.

    Attributes
    ----------
    ticks : tuple of float
        At least two, at most four or so that are shown; the scale runs from ``low`` to ``high``.
    low, high : float
    """

    low: float
    high: float
    ticks: tuple[float, ...]

    @classmethod
    def around(cls, values: Sequence[float]) -> LogAxis:
        """From 1, 2 or 5 times a power of ten well below the least value to the next above the largest.

        Examples
        --------
        >>> LogAxis.around([445.4, 5442.1]).ticks
        (200.0, 1000.0, 5000.0)
        """
        least, most = (min(values) / 1.5, max(values)) if values else (1.0, 2.0)
        powers = range(math.floor(math.log10(least)) - 1, math.ceil(math.log10(most)) + 1)
        steps = [step * 10.0**e for e in powers for step in (1, 2, 5)]
        first = max(i for i, step in enumerate(steps) if step <= least)
        last = min(i for i, step in enumerate(steps) if step >= most)
        every = math.ceil((last - first + 1) / _MOST_ACROSS)
        return cls(steps[first], steps[last], tuple(steps[first : last + 1 : every]))

    def percent(self, value: float) -> float:
        """Where a value lies, from 0 to 100."""
        return 100 * _share(value, self.low, self.high)


def cursor() -> str:
    """The line that the script moves."""
    return f'<path class="cursor" d="M0 {TOP}V{HEIGHT - BOTTOM}" visibility="hidden"/>'


def mark(rank: int, x: float, y: float) -> str:
    """The mark of series number ``rank`` from 1 on, which tells it apart without colour."""
    kind = _MARKS[(rank - 1) % len(_MARKS)]
    if kind == "circle":
        return f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'
    return f'<path class="mark {kind}" d="M{x:.1f} {y:.1f}{_SHAPES[kind]}"/>'


def size_text(size: float) -> str:
    """A cache size, in binary units.

    Examples
    --------
    >>> size_text(2**21), size_text(128)
    ('2 MiB', '128 B')
    """
    for limit, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= limit:
            return f"{size / limit:.3g} {unit}"
    return f"{size:.3g} B"


def bytes_text(size: float) -> str:
    """Traffic, in decimal units.

    Examples
    --------
    >>> bytes_text(2e9)
    '2 GB'
    """
    for limit, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= limit:
            return f"{size / limit:.4g} {unit}"
    return f"{size:.4g} B"


def _share(value: float, low: float, high: float) -> float:
    return math.log(value / low) / math.log(high / low)


def _thinned(ticks: list[float]) -> list[float]:
    return ticks[:: max(1, math.ceil(len(ticks) / _MOST_TICKS))]


def binary_ticks(low: float, high: float) -> list[float]:
    """Powers of two, at most six.

    Examples
    --------
    >>> binary_ticks(3, 20)
    [4.0, 8.0, 16.0]
    """
    return _thinned([2.0**e for e in range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)])


def decimal_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten, or the powers alone where the range is wide; at most six."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high / low < 300 else (1,)
    return _thinned([step * 10.0**e for e in powers for step in steps if low <= step * 10.0**e <= high])


MAX_POINTS, MAX_SERIES = 512, 64
SHOWN = 5  # series with a colour, a dash and a mark of their own; the others are thin lines


@dataclass(frozen=True)
class Series:
    """One line: ``rank`` 0 is the bound, 1 to ``SHOWN`` the schedules that move least, 9 the rest."""

    name: str
    values: tuple[float, ...]
    rank: int


@dataclass(frozen=True)
class Curve:
    """The curves of one document, bytes over bytes; ``series`` by rank."""

    title: str
    where: str
    capacities: tuple[float, ...]
    series: tuple[Series, ...]
    notes: tuple[str, ...]
    cache_bytes: float  #: of the machine or memory that was asked about; 0 where it is not told

    @property
    def frame(self) -> Frame:
        """Around all points."""
        return Frame.around(self.capacities, (v for s in self.series for v in s.values))

    def to_json(self) -> dict[str, Any]:
        """What the script needs to tell values."""
        frame = self.frame
        return {
            "capacities": self.capacities,
            "x": [round(frame.x(c), 1) for c in self.capacities],
            "start": min(range(len(self.capacities)), key=lambda i: abs(self.capacities[i] - self.cache_bytes)),
            "series": [{"name": s.name, "values": s.values, "rank": s.rank} for s in self.series],
        }


def curve_of(document: Document) -> Curve:
    """The curves of a document.

    Raises
    ------
    InputError
        Lists of different lengths, capacities that do not rise, or too many of either.
    """
    fields = Fields(document.data, document.name)
    capacities = tuple(fields.numbers("capacities_bytes"))
    lines = [("proved lower bound", tuple(fields.numbers("lower_bound_bytes")))]
    lines += [(s.text("name"), tuple(s.numbers("dram_bytes"))) for s in fields.parts("schedules")]
    rises = all(0 < a < b for a, b in pairwise(capacities))
    if not 2 <= len(capacities) <= MAX_POINTS or len(lines) > MAX_SERIES or not rises:
        raise InputError(
            f"report: {document.name}: got {len(capacities)} cache sizes and {len(lines)} curves, expected 2 to "
            f"{MAX_POINTS} rising sizes and at most {MAX_SERIES} curves."
        )
    for name, values in lines:
        if len(values) != len(capacities) or not max(values) > 0:
            raise InputError(
                f"report: {document.name}: {name}: got {len(values)} values, expected {len(capacities)}, not all 0."
            )
    best = sorted(range(1, len(lines)), key=lambda i: sum(math.log(max(v, 1)) for v in lines[i][1]))
    rank = {0: 0, **{i: number + 1 for number, i in enumerate(best[:SHOWN])}}
    series = [Series(name, values, rank.get(i, 9)) for i, (name, values) in enumerate(lines)]
    kernel = fields.part("kernel") if "kernel" in fields else fields
    cache = kernel.number("cache_bytes") if "cache_bytes" in kernel else 0
    return Curve(
        fields.part("workload").text("label", document.name), setting(fields), capacities,
        tuple(sorted(series, key=lambda s: s.rank)), tuple(fields.texts("notes")),
        cache,
    )  # fmt: skip


def curve_svg(curve: Curve, ident: str) -> str:
    """The picture; ``ident`` tells it from others on the page."""
    frame = curve.frame
    ticks = binary_ticks(curve.capacities[0], curve.capacities[-1])
    parts = [
        f'<curve_svg viewBox="0 0 {WIDTH} {HEIGHT}" class="plot" role="img" tabindex="0" aria-labelledby="{ident}-t">'
        f'<title id="{ident}-t">Traffic at each cache size: {escape(curve.title)}. Left and right arrow keys tell the '
        "values.</title>",
        frame.axes(ticks, size_text, "cache size"),
    ]
    for series in reversed(curve.series):
        parts.append(f'<g class="s s{series.rank}">{frame.line(curve.capacities, series.values)}')
        if 0 < series.rank <= SHOWN:
            every = max(1, len(curve.capacities) // 8)
            at = range(series.rank % every, len(curve.capacities), every)  # marks of neighbours beside each other
            parts += [mark(series.rank, frame.x(curve.capacities[i]), frame.y(series.values[i])) for i in at]
        parts.append("</g>")
    return "".join([*parts, cursor(), "</curve_svg>"])
