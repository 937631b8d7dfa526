"""The band heights of a feed-forward network: what each moves, and how much room it takes.

A band of rows of X is taken through both products before the next one begins, so every band reads all weights once:
higher bands move less, until a band no longer fits. Two answers stand side by side: a schedule under explicit control
that has the whole memory, from the same formulas as the upper bound; and the simulated orders of the document.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import Any

from pebble.errors import InputError
from pebble.families.ffn import FFN
from pebble.schedules.explicit.chain_bands import best_band
from pebble.schedules.explicit.ffn import ffn_chain
from pebble.schedules.tile import TileShape
from pebble.units import ceil_div
from pebble.webpage.documents import Document, Fields, setting, workload_of
from pebble.webpage.drawing import HEIGHT, WIDTH, Frame, binary_ticks, cursor, mark
from pebble.workloads import Ffn
from pebble.workloads.widths import FastMemory

_MOST_HEIGHTS, _MOST_BANDS, _EVERY_COUNT = 64, 256, 33
_FUSED = re.compile(r"row-fused-([0-9]{1,6})(\+sawtooth)?")


@dataclass(frozen=True)
class Bands:
    """Band heights of one document.

    Attributes
    ----------
    title, where : str
    capacity_bytes, bound_bytes : int
        Of the memory that explicit schedules have: what the cache and the SMs hold; and the proved bound there.
    heights : list of dict
        ``rows``, ``bands``, ``traffic_total`` and ``room_bytes``, None where a band does not fit.
    simulated : list of dict
        ``rows``, ``name``, ``traffic_total`` of the document's fused orders.
    """

    title: str
    where: str
    capacity_bytes: int
    bound_bytes: int
    heights: list[dict[str, Any]]
    simulated: list[dict[str, Any]]

    def to_json(self) -> dict[str, Any]:
        """What the script needs."""
        return {
            "capacity": self.capacity_bytes, "bound": self.bound_bytes, "heights": self.heights,
            "simulated": self.simulated, "x": [round(self.frame.x(h["rows"]), 1) for h in self.heights],
        }  # fmt: skip

    @property
    def frame(self) -> Frame:
        """Around all heights and all traffic."""
        results = [*self.heights, *self.simulated]
        traffic = [self.bound_bytes, *(entry["moved_bytes"] or 0 for entry in results)]
        return Frame.around([h["rows"] for h in self.heights], traffic)


def bands_of(document: Document) -> Bands | None:
    """The band heights of a compare document of a feed-forward network; None for any other.

    Raises
    ------
    InputError
        A workload or a capacity that is none.
    """
    fields = Fields(document.data, document.name)
    ffn = FFN.own(workload_of(fields))
    if ffn is None or "lower_bound" not in fields:
        return None
    bound = fields.part("lower_bound")
    capacity = bound.whole("capacity_elements")
    if capacity < 3:
        raise InputError(f"report: {document.name}: capacity_elements: got {capacity}, expected at least 3.")
    width = ffn.narrowest_bytes
    rows = sorted({ffn.tokens, *_spread(ffn.tokens)})
    tile = TileShape.parse(fields.part("kernel").text("tile"), 1)
    simulated = []
    for row in fields.parts("schedules"):
        match = _FUSED.fullmatch(row.text("name"))
        if match and int(match[1]):
            height = min(ffn.tokens, int(match[1]) * tile.bm)
            simulated.append({"rows": height, "name": row.text("name"), "moved_bytes": row.number("dram_bytes")})
    return Bands(
        ffn.label, setting(fields), capacity * width, bound.whole("bytes"),
        [height_of(ffn, extent, capacity, width) for extent in rows],
        sorted(simulated, key=lambda result: (result["rows"], result["moved_bytes"])),
    )  # fmt: skip


def _spread(tokens: int) -> set[int]:
    """Heights of every small number of bands, and of some larger ones: the least that make so many."""
    steps = (round(_MOST_BANDS ** (i / _MOST_HEIGHTS)) for i in range(_MOST_HEIGHTS + 1))
    return {ceil_div(tokens, bands) for bands in (*range(1, _EVERY_COUNT), *steps) if bands <= tokens}


def height_of(ffn: Ffn, rows: int, capacity: int, width: int) -> dict[str, Any]:
    """What bands of so many rows move, and the most that one holds; values are ``width`` bytes each."""
    chain = ffn_chain(ffn)
    full, rest = divmod(ffn.tokens, rows)
    results = [
        (best_band(chain, "rows", extent, FastMemory.of_values(capacity)), count)
        for extent, count in ((rows, full), (rest, 1))
        if extent
    ]
    fields: dict[str, Any] = {"rows": rows, "bands": full + bool(rest), "moved_bytes": None, "room_bytes": None}
    weights = ffn.hidden * chain.weights_per_column
    if all(band is not None for band, _ in results):
        traffic = sum((band.traffic + weights) * count for band, count in results if band is not None)
        fields |= {
            "moved_bytes": traffic * width,
            "room_bytes": max(band.peaks[0] for band, _ in results if band is not None) * width,
        }
    return fields


def svg(bands: Bands, ident: str) -> str:
    """Traffic over band height: a line for explicit control, marks for the simulated orders, the proved bound."""
    fitting = [h for h in bands.heights if h["moved_bytes"] is not None]
    rows = [h["rows"] for h in bands.heights]
    traffic = [h["moved_bytes"] for h in fitting]
    frame = bands.frame
    top = f'<title id="{ident}-t">Traffic of each band height: {escape(bands.title)}</title>'
    marks = "".join(mark(2, frame.x(s["rows"]), frame.y(s["moved_bytes"])) for s in bands.simulated)
    return "".join(
        [
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" class="plot" role="img" tabindex="0" aria-labelledby="{ident}-t">',
            top,
            frame.axes(binary_ticks(rows[0], max(rows[-1], 2 * rows[0])), lambda n: f"{n:,.0f}", "rows of a band"),
            f'<g class="s s0">{frame.line((frame.low_x, frame.high_x), (bands.bound_bytes,) * 2)}</g>',
            f'<g class="s s1">{frame.line([h["rows"] for h in fitting], traffic) if fitting else ""}</g>',
            f'<g class="s s2">{marks}</g>',
            cursor(),
            "</svg>",
        ]
    )
