"""``ncu report`` and ``ncu which``: the kernels of a profiler's report, and what their counters give away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from pebble.counters import Launch, Profile, read_profile
from pebble.counters.devices import MACHINES
from pebble.counters.kernels import Critical, choose, computes, critical_kernel
from pebble.counters.limits import Limit, limit_of
from pebble.counters.names import Kind
from pebble.counters.quantities import QUANTITIES
from pebble.counters.shapes import ShapeReading, read_shapes, stored_sectors, stores_of
from pebble.counters.stores import StoreVerdict, read_heads
from pebble.errors import InputError
from pebble.models.machine import load_machine
from pebble.reports.base import Report
from pebble.reports.simulated_kernel import KernelOptions
from pebble.system.files import shown
from pebble.units import format_bytes
from pebble.workloads.base import Workload

if TYPE_CHECKING:
    from pebble.reports.ncu_compare import Judgement

LISTED = tuple(key for key, quantity in QUANTITIES.items() if quantity.listed)


def number(value: float | None) -> int | float | None:
    """A count as a whole number where it is one."""
    return value if value is None or value != int(value) else int(value)


@dataclass(frozen=True, repr=False)
class NcuReport(Report):
    """What ``pebble ncu report`` found.

    Attributes
    ----------
    profile : Profile
        The launches with all their metrics.
    critical : Critical
        The launch that matters most, and why.
    """

    profile: Profile
    critical: Critical

    question = "ncu report"

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launches, in the report's order."""
        return self.profile.launches

    @property
    def limit(self) -> Limit:
        """What limits the critical kernel."""
        launch = self.critical.launch
        sku = MACHINES.get(launch.device)
        return limit_of([launch], load_machine(sku).dram_bytes_per_second if sku else None)

    def summary(self) -> str:
        count = len(self.launches)
        launch = self.critical.launch
        moved = launch.value("dram_bytes")
        about = "" if moved is None else f", {format_bytes(moved)} of DRAM traffic"
        return (
            f"{shown(self.profile.path)}: {count} launch{'es' * (count != 1)}; critical: {launch.ident} "
            f"{launch.short_name} ({self.critical.why}){about}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """A row per launch; None where the report does not say."""
        return [
            {
                "id": launch.ident,
                "kernel": launch.short_name,
                "grid": list(launch.grid) if launch.grid else None,
                "block": list(launch.block) if launch.block else None,
                **{key: number(launch.value(key)) for key in LISTED},
                "missing": [quantity.what for quantity in launch.missing],
            }
            for launch in self.launches
        ]

    def document(self) -> dict[str, Any]:
        return {
            "file": self.profile.path,
            "layout": self.profile.layout,
            "critical": {"id": self.critical.launch.ident, "why": self.critical.why, "limit": self.limit.to_json()},
            "launches": [
                {
                    **row,
                    "name": launch.kernel,
                    "computes": str(computes(launch)),
                    "device": launch.device,
                    "compute_capability": launch.compute_capability,
                    "metrics_used": {key: found.metric for key in LISTED if (found := launch.find(key))},
                    "notes": list(launch.notes),
                }
                for row, launch in zip(self.rows(), self.launches, strict=True)
            ],
            "command": self.profile.container.command if self.profile.container else None,
            "notes": list(self.profile.notes),
        }

    def which(self, launch: str | None = None, rows: int | None = None, cols: int | None = None) -> Identified:
        """What one launch computes; see `Identified`. By default the critical one.

        Parameters
        ----------
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
        (one, *_), why = choose(self.profile, [launch] if launch is not None else [])
        kind, stored = computes(one), stored_sectors(one)
        verdict: StoreVerdict | None = None
        heads: tuple[tuple[int, int, int], ...] = ()
        if stored is not None and rows is not None:
            if cols is not None:
                verdict = stores_of(one, stored[0], rows, cols)
            if kind is Kind.ATTENTION:
                heads = read_heads(stored[0], rows) if verdict is None else verdict.heads
        shapes = read_shapes(one, rows, cols) if kind is Kind.GEMM else ()
        if verdict is not None and verdict.readings and not verdict.ambiguous:
            told = (verdict.plain[0].value_bytes, 1)
            shapes = tuple(shape for shape in shapes if (shape.out_bytes, shape.factor) == told)
        return Identified(self.profile, one, why, str(kind), stored, shapes, verdict, heads)

    def compare(
        self,
        workload: Workload | None = None,
        launches: Sequence[str] = (),
        schedules: str | Sequence[str] = "all",
        *,
        cold: bool | None = None,
        **options: Unpack[KernelOptions],
    ) -> Judgement:
        """Measured beside proved and simulated; see `pebble.reports.ncu_compare.judge`."""
        from pebble.reports.ncu_compare import judge

        return judge(self.profile, workload, launches, schedules, cold=cold, **options)


@dataclass(frozen=True, repr=False)
class Identified(Report):
    """What ``pebble ncu which`` found of one launch.

    Attributes
    ----------
    profile : Profile
    launch : Launch
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
    launch: Launch
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


def ncu(path: str | Path) -> NcuReport:
    """The kernels of a report of Nsight Compute.

    Parameters
    ----------
    path : str or Path
        A ``.ncu-rep`` (needs NVIDIA's ``ncu-report`` package, the extra ``ncu`` of this one), or what ``ncu --csv``
        printed, the details or the raw page, old or new.

    Returns
    -------
    NcuReport

    Raises
    ------
    InputError
        A file that cannot be read or is no report.
    """
    profile = read_profile(path)
    return NcuReport(profile, critical_kernel(profile.launches))
