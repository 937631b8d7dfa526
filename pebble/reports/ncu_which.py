"""``ncu which``: what one launch of a profiler's report computes, by its counters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pebble.counters import MeasuredLaunch, Profile
from pebble.counters.datatypes import TypeVerdict, data_type
from pebble.counters.limits import choose, computes
from pebble.counters.names import Operation
from pebble.counters.shapes import ShapeReading, read_shapes, stored_sectors, stores_of, value_sizes
from pebble.counters.stores import StoreVerdict, read_heads
from pebble.errors import InputError
from pebble.reports.report import Report


@dataclass(frozen=True, repr=False)
class Identified(Report):
    """What ``pebble ncu which`` found of one launch.

    Attributes
    ----------
    profile : Profile
    launch : MeasuredLaunch
    why : str
        Why this one.
    computes : {"gemm", "ffn", "attention", "other"}
    stored : tuple of (int, str) or None
        Stored sectors, and how they are known.
    shapes : tuple of ShapeReading
        For a GEMM: the shapes that fit.
    stores : StoreVerdict or None
        With rows and columns: what the stores say of the data type.
    heads : tuple of (int, int, int)
        For attention with rows: heads, values a head and bytes a value that fit, and fill the columns where those are
        known.
    """

    profile: Profile
    launch: MeasuredLaunch
    why: str
    computes: str
    stored: tuple[int, str] | None
    shapes: tuple[ShapeReading, ...]
    stores: StoreVerdict | None
    heads: tuple[tuple[int, int, int], ...]

    question = "ncu which"

    @property
    def shape(self) -> ShapeReading | None:
        """The shape, if the counters determine it: one is left, with K, but for an exchange of M and N."""
        left = {(min(s.m, s.n), max(s.m, s.n), s.k, s.out_bytes) for s in self.shapes}
        return self.shapes[0] if len(left) == 1 and self.shapes[0].k else None

    @property
    def input_bytes(self) -> int | None:
        """Bytes of the two operands, if the counters determine the shape and how wide their values are."""
        sizes = value_sizes(self.launch)[0]
        if self.shape is None:
            return None
        size = sizes[0] if len(sizes) == 1 else self.shape.out_bytes
        return (self.shape.m + self.shape.n) * self.shape.k * size

    @property
    def data_type(self) -> TypeVerdict:
        """The type that is multiplied."""
        return data_type(self.launch)

    @property
    def ambiguous(self) -> bool:
        """More than one reading of something is left."""
        stores = self.stores is not None and self.stores.ambiguous
        return stores or len(self.heads) > 1 or (len(self.shapes) > 1 and self.shape is None)

    def summary(self) -> str:
        said = f"{self.launch.ident} {self.launch.short_name} ({self.why}): {self.computes}"
        if self.shape is not None:
            return f"{said}, {self.shape.text}"
        return said + (", its shape is ambiguous" if self.shapes else "")

    def rows(self) -> list[dict[str, Any]]:
        """A row per shape that fits."""
        return [
            {
                "m": s.m, "n": s.n, "k": s.k or None, "tile": str(s.tile), "out_bytes": s.out_bytes,
                "sectors_touched_times": s.factor, "rests_on": "; ".join(s.rests_on),
            }
            for s in self.shapes
        ]  # fmt: skip

    def document(self) -> dict[str, Any]:
        return {
            "file": self.profile.path,
            "id": self.launch.ident,
            "kernel": self.launch.short_name,
            "why": self.why,
            "computes": self.computes,
            "data_types": list(self.data_type.types),
            "data_type": self.data_type.text,
            "stored_sectors": self.stored[0] if self.stored else None,
            "stored_sectors_from": self.stored[1] if self.stored else None,
            "ambiguous": self.ambiguous,
            "shapes": self.rows(),
            "stores": None
            if self.stores is None
            else {
                "rows": self.stores.rows,
                "cols": self.stores.cols,
                "ambiguous": self.stores.ambiguous,
                "readings": [
                    {
                        "value_bytes": r.value_bytes, "sectors_touched_times": r.factor,
                        "log_sum_exp_sectors": r.extra_sectors, "heads": r.heads or None,
                    }
                    for r in self.stores.readings
                ],
            },
            "heads": [{"heads": h, "head_dim": d, "value_bytes": b} for h, d, b in self.heads],
        }  # fmt: skip


def identify(
    profile: Profile, launch: str | None = None, rows: int | None = None, cols: int | None = None
) -> Identified:
    """What one launch computes; by default the critical one.

    Parameters
    ----------
    profile : Profile
    launch : str, optional
        ID or part of a name.
    rows, cols : int, optional
        Shape of the result, where known: it tells the data type, of flash attention the number of heads, and which
        of several shapes of a GEMM it is.

    Raises
    ------
    InputError
        No such launch, or ``cols`` without ``rows``.
    """
    if cols is not None and rows is None:
        raise InputError("--cols: expected --rows beside it, the rows of the result.")
    (single, *_), why = choose(profile, [launch] if launch is not None else [])
    kind, stored = computes(single), stored_sectors(single)
    verdict: StoreVerdict | None = None
    heads: tuple[tuple[int, int, int], ...] = ()
    if stored is not None and rows is not None:
        if cols is not None:
            verdict = stores_of(single, stored[0], rows, cols)
        if kind is Operation.ATTENTION:
            heads = read_heads(stored[0], rows) if verdict is None else verdict.heads
    shapes = read_shapes(single, rows, cols) if kind is Operation.GEMM else ()
    if verdict is not None and verdict.readings and not verdict.ambiguous:
        spec = (verdict.plain[0].value_bytes, 1)
        shapes = tuple(shape for shape in shapes if (shape.out_bytes, shape.factor) == spec)
    return Identified(profile, single, why, str(kind), stored, shapes, verdict, heads)
