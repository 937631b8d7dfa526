"""GEMM in bands of blocks, in a memory of bytes where a partial sum is wider than what it ends as.

Bands, slabs, mixtures and turned corners are those of `gemm`; what is held, at a corner too, counts its width. An
accumulator that is let go leaves room for more than one value of an input, so corners carry more vectors than among
values alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from pebble.schedules.explicit.gemm import BandedProduct
from pebble.schedules.explicit.gemm_search import search_bands
from pebble.schedules.explicit.widths import WideGemmSchedule, gemm_bytes, gemm_schedules_in_bytes, operand_bytes
from pebble.workloads import Gemm
from pebble.workloads.widths import Room


@dataclass(frozen=True)
class WideBands(BandedProduct):
    """A GEMM in bands in a memory of bytes, which are the capacity."""

    room: Room

    @property
    def taken(self) -> Mapping[str, int]:
        """Bytes that a value of each operand may take."""
        return operand_bytes(self.room.widths)

    @property
    def spilled(self) -> int:
        """Partial sums stored, and loaded again."""
        return self.visits["C"] - self.gemm.m * self.gemm.n

    @property
    def bytes(self) -> int:
        """Loads plus stores in bytes, partial sums at the width of accumulators."""
        return gemm_bytes(self.gemm, self.room.widths, self.visits["A"] + self.visits["B"], self.spilled)

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        widths = self.room.widths.to_json()
        return {**super().to_json(), "partial_sums_spilled": self.spilled, "widths_bytes": widths}


WideProduct = WideBands | WideGemmSchedule


def bands_in_bytes(gemm: Gemm, room: Room) -> list[WideBands]:
    """Those that look best, built exactly, the one with the least bytes first; some milliseconds."""
    widths = room.widths
    empty = WideBands(gemm, room.bytes, "m", (), room)
    return search_bands(empty, {"A": widths.read, "B": widths.read}, widths.partial)


@lru_cache(maxsize=1 << 10)
def best_gemm_in_bytes(gemm: Gemm, room: Room) -> WideProduct:
    """The schedule with the least bytes moved, in bands or in equal blocks; ties go to the former.

    Raises
    ------
    InfeasibleError
        Not one value of each operand fits.
    """
    found: list[WideProduct] = [*gemm_schedules_in_bytes(gemm, room)]  # says when nothing fits
    return min([*bands_in_bytes(gemm, room)[:1], *found], key=lambda s: (s.bytes, s.elements))
