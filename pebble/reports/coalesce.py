"""``coalesce``: requests and sectors of the warps that load or store an array in a pattern."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pebble.counters.coalescing import Coalescing, Pattern, first_request
from pebble.counters.coalescing import coalesce as count
from pebble.reports.report import Report
from pebble.units import format_ratio

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class CoalescingReport(Report):
    """What ``pebble coalesce`` found.

    Attributes
    ----------
    counted : Coalescing
        Requests, sectors, and their bounds.
    contiguous : Coalescing
        The same values by full warps side by side.
    """

    counted: Coalescing
    contiguous: Coalescing

    question = "coalesce"
    old_names = (("found", "counted"),)

    @property
    def pattern(self) -> Pattern:
        """What was asked."""
        return self.counted.pattern

    @property
    def first_request_bytes(self) -> list[int]:
        """Where each lane of the first warp begins; -1 for a lane that is off."""
        return [int(place) for place in first_request(self.pattern)]

    def summary(self) -> str:
        f = self.counted
        return (
            f"{f.requests:,} requests, {f.sectors:,} sectors ({format_ratio(f.sectors_per_request)} a request), "
            f"{f.efficiency:.1%} of the bytes moved are asked for"
        )

    def rows(self) -> list[dict[str, Any]]:
        """The pattern, and the same values side by side."""
        return [
            {
                "name": name,
                "requests": item.requests,
                "sectors": item.sectors,
                "sectors_per_request": item.sectors_per_request,
                "efficiency": item.efficiency,
            }
            for name, item in (("pattern", self.counted), ("contiguous", self.contiguous))
        ]

    def document(self) -> dict[str, Any]:
        p = self.pattern
        return {
            "pattern": {
                "rows": p.rows, "cols": p.cols, "value_bytes": p.value_bytes, "vector": p.vector, "stride": p.stride,
                "offset_bytes": p.offset_bytes, "pitch": p.row_values,
                "threads": list(p.threads) if p.threads else None, "each": list(p.each),
            },
            "requests": self.counted.requests,
            "sectors": self.counted.sectors,
            "sectors_per_request": self.counted.sectors_per_request,
            "efficiency": self.counted.efficiency,
            "least_sectors": self.counted.least_sectors,
            "most_sectors": self.counted.most_sectors,
            "contiguous": {"requests": self.contiguous.requests, "sectors": self.contiguous.sectors},
            "first_request_bytes": self.first_request_bytes,
        }  # fmt: skip

    def plot(self, ax: Axes | None = None) -> Axes:
        """The sectors that the first warp touches, lane by lane."""
        from pebble.plots.ncu import plot_request

        return plot_request(self.pattern, ax)

    def figure(self) -> Figure:
        """The first request, and sectors against the distance of lanes."""
        from pebble.plots.ncu import coalescing_figure

        return coalescing_figure(self.counted, self.summary())


def coalesced(pattern: Pattern) -> CoalescingReport:
    """Requests and sectors of the loads or stores of an array, beside those of the same values side by side."""
    return CoalescingReport(count(pattern), count(Pattern(1, pattern.rows * pattern.cols, pattern.value_bytes)))
