"""Ski-slopes: what each schedule moves at every cache size, over the proved bound, drawn as SVG."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

from pebble.errors import InputError
from pebble.webpage.documents import Document, Fields
from pebble.webpage.drawing import HEIGHT, WIDTH, Frame, binary_ticks, cursor, mark, size_text
from pebble.webpage.shapes import setting

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


def svg(curve: Curve, ident: str) -> str:
    """The picture; ``ident`` tells it from others on the page."""
    frame = curve.frame
    ticks = binary_ticks(curve.capacities[0], curve.capacities[-1])
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" class="plot" role="img" tabindex="0" aria-labelledby="{ident}-t">'
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
    return "".join([*parts, cursor(), "</svg>"])
