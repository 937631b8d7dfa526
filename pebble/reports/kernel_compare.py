"""``compare``: schedules of one workload on one GPU against the proved bound."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Unpack

from pebble.families import Explicit, kernel_family
from pebble.models.caches import parse_policy
from pebble.models.machine import Machine
from pebble.models.rates import peak_dram
from pebble.reports.capacity import best_in_kernel, cache_capacity, chip_capacity
from pebble.reports.default_kernel import advised_kernel
from pebble.reports.kernel_notes import (
    BYTES_ALONE,
    kernel_notes,
    what_counters_do_not_see,
    what_drifts,
    what_execution_changes,
    what_lru_ranks_first,
    what_no_chip_holds,
    what_stays_in_the_cache,
)
from pebble.reports.ranking import Ranking, ranked_row
from pebble.reports.refusals import check_residual
from pebble.reports.report import Report
from pebble.reports.schedule_names import Schedules, named_schedules
from pebble.reports.simulated_kernel import Bounded, KernelOptions, SimulatedKernel, bounded, trace_bound
from pebble.reports.simulated_orders import Progress, simulate_all
from pebble.reports.target import PARTIAL_SUMS
from pebble.reports.timed import WorkloadTime, check_time_options
from pebble.simulation import Traffic
from pebble.simulation.merging import KEYS, Requested
from pebble.timing.energy import Energy
from pebble.timing.floor import MICRO, verdict_of_orders
from pebble.units import Size, format_bytes, format_capacity, format_ratio
from pebble.workloads.workload import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pebble.plots.compare import ComparedSchedules


class Ordered(Protocol):
    """What is of one order."""

    @property
    def order(self) -> str:
        """The order's name."""


@dataclass(frozen=True, repr=False)
class Comparison(Report):
    """What ``pebble compare`` found.

    Attributes
    ----------
    workload : Workload
    kernel : Kernel
        How the simulated kernels run.
    trace : Bounded
        What the simulated kernel can hold; holds for every schedule in ``orders``.
    chip : Bounded or None
        Every on-chip store of the GPU, when one was named; None for a kernel that holds more than that.
    cache_only : Bounded
        One explicitly managed memory of the cache's size; real kernels may go below it.
    separate : Bounded or None
        For chains: the least when each kernel passes its whole result through memory, at the trace capacity. Simulated
        separate kernels may move less: the second finds in the cache what the first left there.
    explicit : Explicit or None
        The best schedule under explicit control at the trace capacity.
    orders : tuple of Traffic
        Simulated schedules, least traffic first.
    notes : tuple of str
        What a reader must know of the assumptions.
    complete : bool
        False when the simulation was interrupted.
    alternatives : mapping of str to mapping of str to int
        What each schedule moves, in bytes, if one thing were otherwise: ``lru``, through one LRU of the nominal L2 size
        in place of the chip's own model; ``free`` in place of waves, or ``waves`` in place of free-running blocks.
    accumulator : str
        The type that sums are kept in, for the floor on time.
    energy : str or None
        The table of an energy estimate, if one was asked for.
    alternative_traffic : mapping of str to mapping of str to Traffic
        The same in full, reads and writes apart.
    stateless : Explicit or None
        For attention: the best schedule under explicit control if softmax state took no room.
    requested : mapping of str to Requested
        What each schedule asks of L2, modelled; empty on a chip whose merging of requests was not measured.
    ranking : Ranking or None
        The same by modelled time, and the verdict.
    """

    workload: Workload
    kernel: SimulatedKernel
    trace: Bounded
    chip: Bounded | None
    cache_only: Bounded
    separate: Bounded | None
    explicit: Explicit
    orders: tuple[Traffic, ...]
    notes: tuple[str, ...]
    complete: bool = True
    alternatives: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    accumulator: str = "fp32"
    energy: str | None = None
    alternative_traffic: Mapping[str, Mapping[str, Traffic]] = field(default_factory=dict)
    stateless: Explicit | None = None
    requested: Mapping[str, Requested] = field(default_factory=dict)
    ranking: Ranking | None = None

    question = "compare"
    old_names = (("beside", "alternatives"),)
    table_keys = ("name", "dram_bytes", "ratio_to_lower_bound", "sustained_ms", "least_time_us")

    @property
    def best(self) -> Traffic | None:
        """The schedule that moves least between L2 and DRAM; None where nothing was simulated."""
        return next(iter(self.orders), None)

    @property
    def machine(self) -> Machine | None:
        return self.kernel.target.machine

    @cached_property
    def timed(self) -> WorkloadTime | None:
        """The floor on the time of any order of this kernel, and energy; None without a machine."""
        if self.machine is None:
            return None
        return WorkloadTime.of(self.workload, self.machine, self.trace.bound, self.accumulator, energy=self.energy)

    @property
    def verdict(self) -> str:
        """What sets the floor, and what DRAM needs for the bytes of schedules, in a line; empty without a machine."""
        if self.timed is None:
            return ""
        return verdict_of_orders(self.timed.floor, {t.order: t.dram_bytes for t in self.orders})

    def least_seconds(self, traffic: Traffic) -> float | None:
        """The time that the simulated bytes of a schedule allow; None where the bandwidth of DRAM is not known."""
        if self.timed is None or self.timed.floor.part("dram") is None:
            return None
        return self.timed.floor.with_dram(traffic.dram_bytes)

    def energy_of(self, traffic: Traffic) -> Energy | None:
        """An estimate of what a schedule takes; None where it was not asked for."""
        return None if self.timed is None else self.timed.energy_of(traffic.dram_bytes, traffic.l2_bytes)

    @property
    def lru_bytes(self) -> Mapping[str, int]:
        """What each schedule moves through one LRU of the nominal L2 size, where that is not the model."""
        return self.alternatives.get("lru", {})

    def ratio(self, traffic_bytes: int) -> float:
        """Bytes over the trace bound."""
        return traffic_bytes / self.trace.bound.bytes

    @property
    def best_band(self) -> Traffic | None:
        """For an FFN: the fused schedule that moves least, not the fastest; its name tells the band height."""
        fused = [t for t in self.orders if t.order.startswith("row-fused")]
        return min(fused, key=lambda t: t.dram_bytes, default=None)

    @property
    def best_known(self) -> tuple[int, str]:
        """Bytes and name of the best schedule known, explicit or simulated."""
        best = min(self.orders, key=lambda t: t.dram_bytes, default=None)
        if best is not None and best.dram_bytes < self.explicit.bytes:
            return best.dram_bytes, best.order
        return self.explicit.bytes, self.explicit.name

    @property
    def best_described(self) -> str:
        """The name of the best schedule known, and, of one that is no kernel, what it is for."""
        traffic, name = self.best_known
        if traffic < self.explicit.bytes:
            return name
        held = format_capacity(self.trace.capacity.bytes)
        return f"{name}; it manages one memory of {held} by hand: a schedule, not a kernel"

    @property
    def best_orders(self) -> tuple[Traffic, ...]:
        """The simulated schedules that share the least traffic."""
        return tuple(t for t in self.orders if t.dram_bytes == self.orders[0].dram_bytes)

    @property
    def equals(self) -> tuple[tuple[Traffic, ...], ...]:
        """The simulated schedules, those that read, write and hit the same together, least traffic first."""
        return self.together(lambda t: (t.hit_rate, *(traffic[t.order] for traffic in self.alternatives.values())))

    def together(self, shown: Callable[[Traffic], Hashable]) -> tuple[tuple[Traffic, ...], ...]:
        """The simulated schedules, those alike in reads, writes and what else is shown together, least first."""
        result: dict[Hashable, list[Traffic]] = {}
        for t in self.orders:
            result.setdefault((t.dram_read_bytes, t.dram_write_bytes, shown(t)), []).append(t)
        return tuple(map(tuple, result.values()))

    @staticmethod
    def name_of(tied: Sequence[Ordered]) -> str:
        """What stands for schedules that are alike: the first, and how many more."""
        return tied[0].order + f" and {len(tied) - 1} more" * (len(tied) > 1)

    def summary(self) -> str:
        best = "nothing simulated"
        if self.orders:
            tied = len(self.best_orders) - 1
            best = f"{self.orders[0].order}{f' (and {tied} more)' if tied else ''} moves " + format_bytes(
                self.orders[0].dram_bytes
            )
            over = format_ratio(self.ratio(self.orders[0].dram_bytes), ".2f")
            best += f", {over}x the bound of {format_bytes(self.trace.bound.bytes)} ({self.kernel.model})"
        return f"{self.workload.label}, tile {self.kernel.tile}: {best}"

    def rows(self) -> list[dict[str, Any]]:
        """A row per schedule."""
        return [
            {
                "name": t.order,
                "tile": self.kernel.tile,
                "dram_read_bytes": t.dram_read_bytes,
                "dram_write_bytes": t.dram_write_bytes,
                "dram_bytes": t.dram_bytes,
                "l2_hit_rate": t.hit_rate,
                "both_tiles_hit_share": t.both_hit_share,
                "ratio_to_lower_bound": self.ratio(t.dram_bytes),
                "dirty_residue_bytes": t.residue_bytes,
                **(requested.to_json() if (requested := self.requested.get(t.order)) else dict.fromkeys(KEYS)),
                **ranked_row(None if self.ranking is None else self.ranking.times.get(t.order)),
                **({} if t.saved_bytes is None else {"saved_by_set_aside_bytes": t.saved_bytes}),
                **{f"{name}_dram_bytes": traffic[t.order] for name, traffic in self.alternatives.items()},
                **({} if (least := self.least_seconds(t)) is None else {"least_time_us": least * MICRO}),
                **({} if (energy := self.energy_of(t)) is None else energy.to_json()),
            }
            for t in self.orders
        ]

    def document(self) -> dict[str, Any]:
        upper_bytes, upper_name = self.best_known
        document: dict[str, Any] = {
            "workload": {"label": self.workload.label, **self.workload.to_json()},
            "kernel": self.kernel.to_dict(),
            "accumulate": self.kernel.target.accumulate,
            "lower_bound": self.trace.to_json(),
            "chip_bound": self.chip.to_json() if self.chip else None,
            "cache_only_bound": self.cache_only.to_json(),
            "upper_bound": {"bytes": upper_bytes, "schedule": upper_name, "details": self.explicit.to_json()},
            "best_order": None,
            "schedules": [
                {**row, "by_operand": t.by_operand()} for row, t in zip(self.rows(), self.orders, strict=True)
            ],
            "verdict": None if self.ranking is None else self.ranking.to_json(),
            "notes": list(self.notes),
            "complete": self.complete,
        }
        if self.orders:
            best = self.orders[0]
            tied = [t.order for t in self.best_orders]
            document["best_order"] = {"name": best.order, "dram_bytes": best.dram_bytes, "tied": tied}
        band = self.best_band
        if band is not None:
            document["best_band"] = {"name": band.order, "dram_bytes": band.dram_bytes}
        if self.separate is not None:
            document["separate_kernels_bound"] = self.separate.to_json()
        if self.stateless is not None:
            document["upper_bound_without_softmax_state"] = {
                "bytes": self.stateless.bytes,
                "schedule": self.stateless.name,
                "details": self.stateless.to_json(),
                "ratio_to_lower_bound": self.ratio(self.stateless.bytes),
            }
        return document if self.timed is None else document | self.timed.to_json(self.verdict)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Each schedule's traffic over the bound, as bars."""
        from pebble.plots.compare import plot_ratios

        return plot_ratios(self._drawn, ax)

    def figure(self) -> Figure:
        """The same, and below it the walks of a GEMM, or the band heights of an FFN."""
        from pebble.plots.compare import comparison_figure

        return comparison_figure(self._drawn)

    @property
    def _drawn(self) -> ComparedSchedules:
        from pebble.plots.compare import ComparedSchedules

        together = self.together(lambda t: self.lru_bytes.get(t.order))
        return ComparedSchedules(
            f"{self.workload.label}\n{self.kernel.runs}, {self.kernel.cache}",
            self.kernel.config,
            kernel_family(self.workload).grid(self.workload, self.kernel.config.tile),
            self.trace.bound.bytes,
            *self.best_known,
            [(self.name_of(tied), tied) for tied in together],
            self.lru_bytes,
        )

    def energy_figure(self) -> Figure:
        """What each schedule takes in energy, part by part, where an energy table was asked for."""
        from pebble.plots.bars import EnergyBar, energy_figure

        timed = self.timed
        assert timed is not None and timed.energy is not None and timed.table is not None
        bars = [EnergyBar(("at the bounds",), "", timed.energy.joules)]
        for tied in self.together(lambda t: t.l2_bytes):
            energy = self.energy_of(tied[0])
            assert energy is not None
            bars.append(EnergyBar(tuple(t.order for t in tied), self.name_of(tied), energy.joules))
        return energy_figure(bars, f"{self.workload.label}\n{timed.machine.name}, table {timed.table.key}")


def compare_kernels(
    workload: Workload,
    schedules: Schedules = "all",
    schedule: Schedules | None = None,
    *,
    residual: bool = False,
    accumulator: str | None = None,
    energy: str | None = None,
    progress: Callable[[int], Progress] = lambda total: lambda name: None,
    **options: Unpack[KernelOptions],
) -> Comparison:
    """What each schedule moves between L2 and DRAM, against the least; arguments and errors as for `pebble.compare`."""
    family = kernel_family(workload)
    kernel = advised_kernel(workload, **options)
    check_residual(workload, residual)
    sums = check_time_options(kernel.target.machine, accumulator, energy)
    orders = named_schedules(workload, kernel, schedules, schedule)
    config = kernel.config
    family.check(workload, config)  # refused before any work is done for it
    trace = trace_bound(workload, kernel)
    held_bytes = config.cache_bytes + parse_policy(config.policy).last_level_bytes
    held_sums = kernel.target.accumulator_bytes
    cache = cache_capacity(Size(held_bytes, None, f"{held_bytes}B"), workload, held_sums)
    chip = None
    if kernel.target.machine is not None:
        chip = bounded(workload, chip_capacity(kernel.target.machine, workload, held_sums))
        if chip.capacity.bytes < trace.capacity.bytes or chip.bound.bytes > trace.bound.bytes:
            chip = None  # the kernel holds more than the chip has, which no bound of the chip is for
    separate = family.separate_bound(workload, trace.capacity.elements, trace.capacity.memory)
    explicit = best_in_kernel(workload, trace.capacity)
    assert explicit is not None
    notes = [*kernel_notes(workload, kernel), *family.notes(residual)]
    if chip is None and kernel.target.machine is not None:
        notes.append(what_no_chip_holds(trace.capacity.bytes, kernel.target.machine))
    if held_sums:
        notes.append(f"the bounds and the best schedule are for partial sums in fp32: {PARTIAL_SUMS}")
    done, others, requested, ranked, complete = simulate_all(workload, kernel, orders, residual, progress(len(orders)))
    alternatives = {name: {t.order: by_name[t.order].dram_bytes for t in done} for name, by_name in others.items()}
    if kernel.target.machine is not None and peak_dram(kernel.target.machine) is not None:
        notes.append(BYTES_ALONE)
    notes += what_counters_do_not_see(done)
    if separate is not None:
        notes += what_stays_in_the_cache(done, separate.bytes)
    for name, there in alternatives.items() if done else ():
        if name == "lru":
            notes.append(what_lru_ranks_first(there))
        else:
            notes.append(what_execution_changes({t.order: t.dram_bytes for t in done}, name, there))
    notes += what_drifts(workload, kernel, [t.order for t in done], "free MB" if "free" in alternatives else "")
    if not complete:
        notes.append(f"interrupted after {len(done)} schedule{'s' * (len(done) != 1)}; the rest are missing")
    return Comparison(
        workload,
        kernel,
        trace=trace,
        chip=chip,
        cache_only=bounded(workload, cache),
        separate=Bounded(trace.capacity, separate) if separate else None,
        explicit=explicit,
        orders=tuple(sorted(done, key=lambda t: t.dram_bytes)),
        notes=tuple(notes),
        complete=complete,
        alternatives=alternatives,
        accumulator=sums,
        energy=energy,
        alternative_traffic=others,
        stateless=family.stateless_schedule(workload, trace.capacity.schedules(workload)),
        requested=requested,
        ranking=Ranking.of(workload, kernel, ranked, trace, len(orders)),
    )
