"""GEMM in bands of blocks, in a memory of bytes where a partial sum is wider than what it ends as.

Bands, slabs, mixtures and turned corners are those of `gemm`; what is held, at a corner too, counts its width. An
accumulator that is let go leaves room for more than one value of an input, so corners carry more vectors than among
values alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from pebble.errors import InfeasibleError
from pebble.schedules.explicit.apart import BandsApart, corners_apart
from pebble.schedules.explicit.corner import NO_CORNER, Corner, best_corner
from pebble.schedules.explicit.gemm import ALIKE, Band, BandedProduct, StationaryProduct
from pebble.schedules.explicit.gemm_search import search_bands
from pebble.schedules.explicit.widths import WideGemmSchedule, gemm_bytes, gemm_schedules_in_bytes, operand_bytes
from pebble.workloads import Gemm
from pebble.workloads.widths import Room

_TOLD = 12  # schedules in bands


class _InBytes(StationaryProduct):
    """What changes in a memory of bytes, which are the capacity."""

    room: Room

    @property
    def taken(self) -> Mapping[str, int]:
        """Bytes that a value of each operand may take."""
        return operand_bytes(self.room.widths)

    @property
    def fits(self) -> bool:
        return super().fits and self.room.holds(self.peak_elements)

    @property
    def spilled(self) -> int:
        """Partial sums stored, and loaded again."""
        return self.visits["C"] - self.gemm.m * self.gemm.n

    @property
    def bytes(self) -> int:
        """Loads plus stores in bytes, partial sums at the width of accumulators."""
        return gemm_bytes(self.gemm, self.room.widths, self.visits["A"] + self.visits["B"], self.spilled)

    def moved_json(self) -> dict[str, object]:
        widths = self.room.widths.to_json()
        return {**super().moved_json(), "partial_sums_spilled": self.spilled, "widths_bytes": widths}


@dataclass(frozen=True)
class WideBands(_InBytes, BandedProduct):
    """A GEMM in bands in a memory of bytes."""

    room: Room

    def _corner(self, band: Band, end: int, depth: int, limit: int) -> Corner:
        """With as many vectors as fit in bytes and, where these are limited, among so many values."""
        most = self.room.values
        if most is None:
            return super()._corner(band, end, depth, limit)
        wide, alike = self.sides(band, self.taken)[end], self.sides(band, ALIKE)[end]
        spare, few = self.spare(band), most - self.layout(band)[1] * band.width

        def within(limit: int) -> tuple[int, Corner]:
            """Of the best corners under either limit, how many vectors the smaller has, and one that is under both."""
            found = best_corner(spare, wide, depth, limit), best_corner(few, alike, depth, limit)
            fit = [one for one in found if one.room(wide) <= spare and one.room(alike) <= few]
            best = max(fit, key=lambda one: one.vectors, default=NO_CORNER)
            return min(one.vectors for one in found), best

        most, best = within(limit)
        low = best.vectors
        while low < most:
            middle = (low + most + 1) // 2
            found = within(middle)[1]
            best = max(best, found, key=lambda one: one.vectors)
            low, most = (middle, most) if found.vectors >= middle else (low, middle - 1)
        return best


@dataclass(frozen=True)
class WideApart(_InBytes, BandsApart):
    """A GEMM with a corner apart in a memory of bytes."""

    room: Room


WideProduct = WideBands | WideApart | WideGemmSchedule


def bands_in_bytes(gemm: Gemm, room: Room) -> list[WideBands]:
    """Those that look best, built exactly, the one with the least bytes first; some milliseconds."""
    widths = room.widths
    empty = WideBands(gemm, room.bytes, "m", (), room)
    return search_bands(empty, {"A": widths.read, "B": widths.read}, widths.partial)[:_TOLD]


@lru_cache(maxsize=1 << 10)
def best_gemm_in_bytes(gemm: Gemm, room: Room) -> WideProduct:
    """The schedule with the least bytes moved, in bands, with a corner apart or in equal blocks; ties go to the first.

    Raises
    ------
    InfeasibleError
        Not one value of each operand fits, or no schedule tried holds so few values.
    """
    found: list[WideProduct] = [*gemm_schedules_in_bytes(gemm, room)]  # says when nothing fits
    visit = {"A": room.widths.read, "B": room.widths.read, "C": 2 * room.widths.partial}
    apart = corners_apart(WideApart(gemm, room.bytes, "C", "m", 1, (0, 0), room), visit)
    every = [*bands_in_bytes(gemm, room)[:1], *apart, *(s for s in found if room.holds(s.peak_elements))]
    if not every:
        raise InfeasibleError(f"capacity: got {room.values} values, expected more: no schedule found holds so few.")
    return min(every, key=lambda s: (s.bytes, s.elements))
