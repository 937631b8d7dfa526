"""``simulate``: one schedule, or a trace of the user's own, through one cache."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from pebble.families import kernel_family
from pebble.families.concurrent import concurrent_pairs, simulate_concurrent
from pebble.families.ffn import FFN
from pebble.models.caches import parse_policy
from pebble.models.machine import Machine
from pebble.reports.default_kernel import advised_kernel
from pebble.reports.fit import fit_kernel, read_cache_model
from pebble.reports.kernel_notes import cache_notes, kernel_notes
from pebble.reports.options import ConcurrentFfn
from pebble.reports.refusals import LESS_THAN_BOUND, check_seed, check_trace_of
from pebble.reports.report import Report
from pebble.reports.schedule_names import Own
from pebble.reports.sensitivity import Sensitivity
from pebble.reports.sensitivity import sensitivity as vary
from pebble.reports.simulated_kernel import Bounded, KernelOptions, SimulatedKernel, read_kernel, trace_bound
from pebble.reports.simulated_orders import simulated
from pebble.reports.target import Target, target_of, whole
from pebble.schedules.tables.own import FixedTable
from pebble.simulation import KernelConfig, Traffic, simulate_trace
from pebble.simulation.cliff import far_range, read_range
from pebble.simulation.merging import KEYS, Requested
from pebble.system.files import check_output, check_path
from pebble.traces.files import read_trace, write_trace
from pebble.units import format_bytes, format_capacity, format_ratio
from pebble.workloads.workload import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_CLIFF = (
    "at a cliff: with a quarter more cache it would read less than nine tenths of this; a launch that runs free may "
    "read anything from {} to {} there"
)
_FAR = "blocks of so long a product drift far apart: nine of ten launches read from {} to {}"


def traffic_document(traffic: Traffic) -> dict[str, Any]:
    """The counts as plain data."""
    counts = traffic.counts
    return {
        "accesses_lines": counts.accesses_lines,
        "hits_lines": counts.hits_lines,
        "fetched_lines": sum(counts.read_misses),
        "allocated_by_write_lines": sum(counts.write_misses),
        "dram_read_bytes": traffic.dram_read_bytes,
        "dram_write_bytes": traffic.dram_write_bytes,
        "dram_bytes": traffic.dram_bytes,
        "dirty_residue_bytes": traffic.residue_bytes,
        "unit_bytes": counts.unit_bytes,
        "l2_hit_rate": traffic.hit_rate,
        "block_steps": counts.block_steps,
        "both_tiles_hit_share": traffic.both_hit_share,
        "by_operand": traffic.by_operand(),
        **({} if traffic.saved_bytes is None else {"saved_by_set_aside_bytes": traffic.saved_bytes}),
    }


class _TrafficReport(Report):
    """What two kinds of simulation share."""

    traffic: Traffic

    question = "simulate"

    def rows(self) -> list[dict[str, Any]]:
        """A row per operand, and the sum."""
        rows: list[dict[str, Any]] = [{"operand": n, **traffic} for n, traffic in self.traffic.by_operand().items()]
        total = {"read_bytes": self.traffic.dram_read_bytes, "write_bytes": self.traffic.dram_write_bytes}
        return [*rows, {"operand": "total", **total}]

    def plot(self, ax: Axes | None = None) -> Axes:
        """What is read and written of each operand, as bars."""
        from pebble.plots.bars import plot_bars

        bars = [(row["operand"], (row["read_bytes"] / 1e6, row["write_bytes"] / 1e6)) for row in self.rows()]
        return plot_bars(bars, "DRAM traffic, MB", self.summary().partition(":")[0], ax, parts=("read", "written"))


@dataclass(frozen=True, repr=False)
class Simulation(_TrafficReport):
    """What one schedule moves.

    Attributes
    ----------
    workload : Workload
    kernel : Kernel
    traffic : Traffic
        DRAM bytes and hits, by operand.
    bound : Bounded or None
        At what the kernel can hold; None for a cache that starts warm, and for two workloads side by side.
    sensitivity : Sensitivity or None
        How far the answer moves with its assumptions, if asked.
    notes : tuple of str
        What a reader must know of the assumptions.
    read_range : tuple of int, or None
        Between what it reads where blocks run free and chance decides: at a cliff, or in a long product
        (`pebble.simulation.cliff`).
    requested : Requested or None
        What L2 serves of the bytes that SMs receive, and what crosses its fabric: modelled, where the chip is known to
        merge requests.
    """

    workload: Workload
    kernel: SimulatedKernel
    traffic: Traffic
    bound: Bounded | None
    sensitivity: Sensitivity | None = None
    notes: tuple[str, ...] = ()
    requested: Requested | None = None
    read_range: tuple[int, int] | None = None

    @property
    def machine(self) -> Machine | None:
        return self.kernel.target.machine

    def summary(self) -> str:
        over = ""
        if self.bound is not None:
            over = f", {format_ratio(self.traffic.dram_bytes / self.bound.bound.bytes, '.2f')}x the bound"
        return (
            f"{self.workload.label}, {self.traffic.order}: {format_bytes(self.traffic.dram_bytes)}{over} "
            f"({self.kernel.model})"
        )

    def document(self) -> dict[str, Any]:
        kernel = self.kernel.to_dict()
        flat = {key: kernel[key] for key in ("sms", "blocks_per_sm", "cache_bytes", "policy", "execution", "cluster")}
        bound = self.bound.to_json() if self.bound else None
        return {
            "workload": {"label": self.workload.label, **self.workload.to_json()},
            "schedule": self.traffic.order,
            "tile": str(self.kernel.config.tile),
            **flat,
            "kernel": kernel,
            **traffic_document(self.traffic),
            "lower_bound": bound,
            "ratio_to_lower_bound": self.traffic.dram_bytes / bound["bytes"] if bound else None,
            **({"sensitivity": self.sensitivity.to_json()} if self.sensitivity else {}),
            **({"dram_read_bytes_at_cliff": list(self.read_range)} if self.read_range else {}),
            **(self.requested.to_json() if self.requested else dict.fromkeys(KEYS)),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, repr=False)
class WrittenTrace(Report):
    """The trace of one schedule, in a file.

    Attributes
    ----------
    path : str
    workload : Workload
    kernel : Kernel
    schedule : str
    touches, sms : int
    operands : tuple of str
    """

    path: str
    workload: Workload
    kernel: SimulatedKernel
    schedule: str
    touches: int
    sms: int
    operands: tuple[str, ...]

    question = "simulate"

    @property
    def machine(self) -> Machine | None:
        return self.kernel.target.machine

    def summary(self) -> str:
        return f"{self.path}: {self.schedule} of {self.workload.label}, {self.touches:,} touches"

    def rows(self) -> list[dict[str, Any]]:
        """One row: the file, the schedule, and how long the trace is."""
        return [{"trace": self.path, "schedule": self.schedule, "touches": self.touches, "sms": self.sms}]

    def document(self) -> dict[str, Any]:
        return {**self.rows()[0], "operands": list(self.operands)}


@dataclass(frozen=True, repr=False)
class TraceSimulation(_TrafficReport):
    """What a trace of the user's own moves.

    Attributes
    ----------
    name : str
        The file.
    target : Target
    touches, sms : int
    cache_bytes : int
    policy : str
    traffic : Traffic
    footprint_bytes : int
        Of the tiles that it touches.
    bound : dict or None
        Of the workload that it belongs to, if one was named.
    notes : tuple of str
    """

    name: str
    target: Target
    touches: int
    sms: int
    cache_bytes: int
    policy: str
    traffic: Traffic
    footprint_bytes: int
    bound: dict[str, Any] | None
    notes: tuple[str, ...]

    @property
    def machine(self) -> Machine | None:
        return self.target.machine

    def summary(self) -> str:
        return (
            f"{self.name}: {self.touches:,} touches, {parse_policy(self.policy).title} cache of "
            f"{format_capacity(self.cache_bytes)}; its tiles have {format_bytes(self.footprint_bytes)} in all"
        )

    def document(self) -> dict[str, Any]:
        return {
            "trace": self.name,
            "touches": self.touches,
            "sms": self.sms,
            "cache_bytes": self.cache_bytes,
            "policy": self.policy,
            **traffic_document(self.traffic),
            "footprint_bytes": self.footprint_bytes,
            "lower_bound": self.bound,
            "ratio_to_lower_bound": self.traffic.dram_bytes / self.bound["bytes"] if self.bound else None,
            "notes": list(self.notes),
        }


def simulate_schedule(
    workload: Workload,
    schedule: Own,
    *,
    residual: bool = False,
    sensitivity: bool = False,
    **options: Unpack[KernelOptions],
) -> Simulation:
    """One schedule through one cache; arguments as for `pebble.simulate`."""
    family = kernel_family(workload)
    options = _with_its_kernel(workload, schedule, options)
    kernel = advised_kernel(workload, **options)
    check_seed(options, kernel.config.execution.kind)
    order = family.read_schedule(schedule)
    traffic = simulated(workload, order, kernel.config, residual)
    traffic_bytes = vary(workload, order, kernel.config) if sensitivity else None
    warm = "+warm" in kernel.config.policy
    bound = None if warm else trace_bound(workload, kernel)
    notes, between, words = kernel_notes(workload, kernel, [order.name]), None, _CLIFF
    if kernel.config.execution.is_asynchronous and family.hides_phases:
        between = read_range(traffic.dram_read_bytes, partial(_read_in, workload, order, kernel.config))
    elif kernel.config.execution.is_asynchronous and family.drifts(workload, order.name, kernel.config):
        between, words = far_range(traffic.dram_read_bytes), _FAR
    if between is not None:
        notes = (words.format(*map(format_bytes, between)), *notes)
    requested = kernel.requested(workload, order, traffic, residual)
    return Simulation(workload, kernel, traffic, bound, traffic_bytes, notes, requested, between)


def _read_in(workload: Workload, schedule: Any, config: KernelConfig, times: float) -> int:
    """What a kernel reads in a cache so many times as large."""
    larger = replace(config, cache_bytes=int(times * config.cache_bytes))
    return kernel_family(workload).simulate(workload, schedule, larger).dram_read_bytes


def simulate_side_by_side(
    workload: Workload, schedule: Own, beside: ConcurrentFfn, **options: Unpack[KernelOptions]
) -> Simulation:
    """An attention and, on some of the SMs, an FFN of the same tokens; arguments as for `pebble.simulate`."""
    kernel = read_kernel(workload, **options)
    check_seed(options, kernel.config.execution.kind)
    named = kernel_family(workload).named_schedule(schedule)
    both = _side_by_side(workload, kernel, named, beside)
    return Simulation(workload, kernel, both, None, notes=kernel_notes(workload, kernel))


def _with_its_kernel(workload: Workload, schedule: Own, options: KernelOptions) -> KernelOptions:
    """The options; what they do not say of the kernel is that of a saved table, which runs in no other."""
    family = kernel_family(workload)
    order = family.read_schedule(schedule)
    if not isinstance(order, FixedTable):
        return options
    launch = order.tile_table.launch
    its: KernelOptions = {
        "tile": family.tile_text(launch.tile), "stages": launch.stages, "sms": launch.sms,
        "blocks_per_sm": launch.blocks_per_sm,
    }  # fmt: skip
    keywords: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    return cast("KernelOptions", {**options, **its, **keywords})


def _side_by_side(workload: Workload, kernel: SimulatedKernel, schedule: Any, beside: ConcurrentFfn) -> Traffic:
    """An attention and, on some of the SMs, an FFN of the same tokens, as one trace."""
    attention, ffn = concurrent_pairs(workload, beside.model, beside.sms is not None)
    share, blocks = whole("--beside-sms", beside.sms, 0, 10**9), kernel.config.blocks_per_sm
    tile = fit_kernel(FFN, ffn, kernel.target.machine, blocks_per_sm=blocks).tile
    return simulate_concurrent(
        attention, schedule, ffn, FFN.parse_schedule(beside.schedule), tile, kernel.config, share
    )


def write_schedule_trace(
    workload: Workload, schedule: Own, path: str | Path, *, residual: bool = False, **options: Unpack[KernelOptions]
) -> WrittenTrace:
    """The trace of one schedule, in a file; arguments as for `pebble.simulate`."""
    check_output(check_path("write_trace", path), "--write-trace", (".csv", ".npz"))
    family = kernel_family(workload)
    options = _with_its_kernel(workload, schedule, options)
    kernel = advised_kernel(workload, **options)
    check_seed(options, kernel.config.execution.kind)
    order = family.read_schedule(schedule)
    trace = family.trace(workload, order, kernel.config, residual)
    write_trace(trace, str(path))
    return WrittenTrace(str(path), workload, kernel, order.name, trace.touches, trace.sms, tuple(trace.operand_names))


def simulate_file(path: str, workload: Workload | None, **options: Unpack[KernelOptions]) -> TraceSimulation:
    """Simulate a trace file; with a workload, against its bound at what its kernel can hold."""
    target = target_of(options)
    cache = read_cache_model(options.get("policy", "lru"), target, 1)
    notes = cache_notes(cache)
    bound = None
    if workload is not None:
        # a trace does not say by which kernel it was written: the one that holds more, whose bound is lower
        kernels = read_kernel(workload, **options), advised_kernel(workload, **options)
        result = min((trace_bound(workload, kernel) for kernel in kernels), key=lambda bounded: bounded.bound.bytes)
        sizes = {"bytes": result.bound.bytes, "capacity_bytes": result.capacity.bytes}
        bound = {**sizes, "what": "trace", "workload": workload.label}
    trace = read_trace(path)
    if workload is not None:
        check_trace_of(workload, trace, str(path))
    traffic = simulate_trace(Path(path).name, trace, cache.bytes, cache.policy)
    footprint = trace.footprint_bytes
    if bound is not None and traffic.dram_bytes < result.bound.bytes:
        notes = [*notes, LESS_THAN_BOUND]
    return TraceSimulation(
        str(path), target, trace.touches, trace.sms, cache.bytes, cache.policy, traffic, footprint, bound, tuple(notes)
    )
