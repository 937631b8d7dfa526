"""``ncu report``: the kernels of a profiler's report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from pebble.counters import MeasuredLaunch, Profile, read_profile
from pebble.counters.datatypes import TypeVerdict, data_type
from pebble.counters.hits import hits_of
from pebble.counters.limits import Critical, Limit, computes, critical_kernel, limit_of
from pebble.counters.profile import MACHINES
from pebble.counters.quantities import QUANTITIES
from pebble.models.machine import load_machine
from pebble.reports.ncu_which import Identified, identify
from pebble.reports.report import Report
from pebble.reports.simulated_kernel import KernelOptions
from pebble.system.files import shown
from pebble.units import format_bytes
from pebble.workloads.workload import Workload

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
    def launches(self) -> tuple[MeasuredLaunch, ...]:
        """The launches, in the report's order."""
        return self.profile.launches

    @property
    def limit(self) -> Limit:
        """What limits the critical kernel."""
        launch = self.critical.launch
        sku = MACHINES.get(launch.device)
        return limit_of([launch], load_machine(sku).dram_bytes_per_second if sku else None)

    @property
    def data_type(self) -> TypeVerdict:
        """The type that the critical kernel multiplies in."""
        return data_type(self.critical.launch)

    @property
    def hits(self) -> tuple[str, ...]:
        """What the hit rates of the critical kernel say, a sentence a cache."""
        launch = self.critical.launch
        return hits_of(launch, identify(self.profile, launch.ident).input_bytes)

    def summary(self) -> str:
        count = len(self.launches)
        launch = self.critical.launch
        traffic = launch.value("dram_bytes")
        about = "" if traffic is None else f", {format_bytes(traffic)} of DRAM traffic"
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
            "critical": {
                "id": self.critical.launch.ident,
                "why": self.critical.why,
                "limit": self.limit.to_json(),
                "data_type": self.data_type.text,
                "hit_rates": list(self.hits),
            },
            "launches": [
                {
                    **row,
                    "name": launch.kernel,
                    "computes": str(computes(launch)),
                    "device": launch.device,
                    "compute_capability": launch.compute_capability,
                    "metrics_used": {key: result.metric for key in LISTED if (result := launch.find(key))},
                    "notes": list(launch.notes),
                }
                for row, launch in zip(self.rows(), self.launches, strict=True)
            ],
            "command": self.profile.container.command if self.profile.container else None,
            "notes": list(self.profile.notes),
        }

    def which(self, launch: str | None = None, rows: int | None = None, cols: int | None = None) -> Identified:
        """What one launch computes; arguments and errors as for `pebble.reports.ncu_which.identify`."""
        return identify(self.profile, launch, rows, cols)

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
