"""``simulate``: one schedule, or a trace of the user's own, through one cache."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from pebble.errors import InputError, check_flag
from pebble.families import kernel_family, read_workload
from pebble.families.beside import simulate_beside
from pebble.models.caches import parse_policy
from pebble.models.machine import Machine
from pebble.reports.base import Report
from pebble.reports.compare import Bounded, Own, simulated, trace_bound
from pebble.reports.fit import fit_kernel
from pebble.reports.sensitivity import Sensitivity
from pebble.reports.sensitivity import sensitivity as vary
from pebble.reports.target import (
    Kernel,
    KernelOptions,
    Target,
    check_options,
    read_cache_model,
    read_kernel,
    target_of,
    whole,
)
from pebble.simulation import Traffic, simulate_trace
from pebble.traces import LINE_BYTES, Trace
from pebble.traces.files import read_trace, write_trace
from pebble.units import format_bytes, format_capacity
from pebble.workloads import Attention, Ffn
from pebble.workloads.base import Workload


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


class _Moved(Report):
    """What two kinds of simulation share."""

    traffic: Traffic

    question = "simulate"

    def rows(self) -> list[dict[str, Any]]:
        """A row per operand, and the sum."""
        rows: list[dict[str, Any]] = [{"operand": n, **moved} for n, moved in self.traffic.by_operand().items()]
        total = {"read_bytes": self.traffic.dram_read_bytes, "write_bytes": self.traffic.dram_write_bytes}
        return [*rows, {"operand": "total", **total}]


@dataclass(frozen=True, repr=False)
class Simulation(_Moved):
    """What one schedule moves.

    Attributes
    ----------
    workload : Workload
    kernel : Kernel
    traffic : Traffic
        DRAM bytes and hits, by operand.
    bound : Bounded or None
        At what the kernel can hold; None for a cache that starts warm, and for two workloads side by side.
    moved : Sensitivity or None
        How far the answer moves with its assumptions, if asked.
    """

    workload: Workload
    kernel: Kernel
    traffic: Traffic
    bound: Bounded | None
    moved: Sensitivity | None = None

    @property
    def machine(self) -> Machine | None:
        return self.kernel.target.machine

    def summary(self) -> str:
        over = f", {self.traffic.dram_bytes / self.bound.bound.bytes:.2f}x the bound" if self.bound else ""
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
            **({"sensitivity": self.moved.to_json()} if self.moved else {}),
            "notes": list(self.kernel.notes),
        }


@dataclass(frozen=True, repr=False)
class TraceSimulation(_Moved):
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
    sensitive: bool = False,
    beside: str | None = None,
    beside_sms: int | str | None = None,
    beside_schedule: str = "row-fused-16",
    **options: Unpack[KernelOptions],
) -> Simulation:
    """Simulate one schedule; arguments as `pebble.simulate`."""
    family = kernel_family(workload)
    kernel = read_kernel(workload, **options)
    if beside is not None:
        if sensitive:
            raise InputError("--sensitivity: got --beside with it, expected one workload.")
        named = family.parse_schedule(schedule)  # type: ignore[arg-type]  # it says what it got
        return Simulation(
            workload, kernel, _side_by_side(workload, kernel, named, beside, beside_sms, beside_schedule), None
        )
    chosen = family.read_schedule(schedule)
    traffic = simulated(workload, chosen, kernel.config, residual)
    moved = vary(workload, chosen, kernel.config) if sensitive else None
    warm = "+warm" in kernel.config.policy
    return Simulation(workload, kernel, traffic, None if warm else trace_bound(workload, kernel), moved)


def _side_by_side(
    workload: Workload, kernel: Kernel, schedule: Any, beside: str, sms: int | str | None, name: str
) -> Traffic:
    """An attention and, on some of the SMs, an FFN of the same tokens, as one trace."""
    other = None
    if ":" in beside and isinstance(workload, Attention) and workload.name:
        types = {"dtype": workload.dtype, "out_dtype": workload.out_dtype}
        other = read_workload(beside, {"tokens": workload.queries, **types})
    if not isinstance(workload, Attention) or not isinstance(other, Ffn) or sms is None:
        raise InputError(
            f"--beside: got {beside!r} beside {workload.label!r}, expected MODEL:attention --tokens T --beside "
            "MODEL:mlp --beside-sms P."
        )
    ffn, share = kernel_family(other), whole("--beside-sms", sms, 0, 10**9)
    blocks = kernel.config.blocks_per_sm
    tile = fit_kernel(ffn, other, kernel.target.machine, blocks_per_sm=blocks).tile
    return simulate_beside(workload, schedule, other, ffn.parse_schedule(name), tile, kernel.config, share)


def write_schedule_trace(
    workload: Workload, schedule: Own, path: str, *, residual: bool = False, **options: Unpack[KernelOptions]
) -> dict[str, Any]:
    """Write the trace of one schedule as .csv or .npz; what was written, as plain data."""
    family = kernel_family(workload)
    kernel = read_kernel(workload, **options)
    chosen = family.read_schedule(schedule)
    trace = family.trace(workload, chosen, kernel.config, residual)
    write_trace(trace, path)
    operands = list(trace.operand_names)
    return {"trace": path, "schedule": chosen.name, "touches": trace.touches, "sms": trace.sms, "operands": operands}


def simulate_file(path: str, workload: Workload | None = None, **options: Unpack[KernelOptions]) -> TraceSimulation:
    """Simulate a trace file; with a workload, against its bound at what its kernel can hold."""
    check_options(options, KernelOptions.__optional_keys__)
    target = target_of(options)
    policy, cache_bytes, notes = read_cache_model(options.get("policy", "lru"), target, 1)
    bound = None
    if workload is not None:
        found = trace_bound(workload, read_kernel(workload, **options))
        sizes = {"bytes": found.bound.bytes, "capacity_bytes": found.capacity.bytes}
        bound = {**sizes, "what": "trace", "workload": workload.label}
    trace = read_trace(path)
    traffic = simulate_trace(Path(path).name, trace, cache_bytes, policy)
    footprint = _footprint_bytes(trace)
    return TraceSimulation(
        str(path), target, trace.touches, trace.sms, cache_bytes, policy, traffic, footprint, bound, tuple(notes)
    )


def _footprint_bytes(trace: Trace) -> int:
    touched = np.zeros(len(trace.tile_lines), bool)
    for chunk in trace.chunks():
        touched[chunk.ids] = True
    return int(trace.tile_lines[touched].sum(dtype=np.int64)) * LINE_BYTES


def simulate(
    workload: Workload | None = None,
    schedule: Own | None = None,
    *,
    trace: str | None = None,
    residual: bool = False,
    sensitivity: bool = False,
    **options: Unpack[KernelOptions],
) -> Simulation | TraceSimulation:
    """One schedule, or a trace of your own, through one cache.

    Parameters
    ----------
    workload : Gemm, Ffn or Attention
        With ``trace``: optional, the trace is set against its bound.
    schedule : str, Path, callable or TileTable
        A tile order of ``pebble schedules``, or a schedule of the family. Or tiles of your own: a .csv, .npy or .json
        file, ``"FILE.py:FUNCTION"``, or a function ``(rows, cols, params)`` that returns an array of (row, col), or
        (tiles, k_start, k_direction).
    trace : str, optional
        A .csv or .npz file instead of a schedule.
    residual : bool
        ffn: read the input again to add it to the output.
    sensitivity : bool
        gemm: how far the answer moves with its assumptions.
    **options
        Where and how it runs: `KernelOptions`.

    Returns
    -------
    Simulation or TraceSimulation
        The latter of a trace of your own.

    Raises
    ------
    InputError
        Arguments that are malformed or contradict each other.
    UnknownNameError
        No such schedule, policy or GPU.

    Examples
    --------
    >>> import pebble
    >>> found = pebble.simulate(pebble.Gemm(512, 512, 512), "row", cache="1MiB", sms=8)
    >>> found.traffic.dram_bytes
    1572864
    """
    check_flag("residual", residual)
    check_flag("sensitivity", sensitivity)
    if trace is not None:
        if schedule is not None or sensitivity:
            option = "schedule" if schedule is not None else "sensitivity"
            raise InputError(f"--trace: got --{option} beside it; a trace says itself what runs when.")
        return simulate_file(trace, workload, **options)
    if workload is None or schedule is None:
        raise InputError(
            "simulate: expected WORKLOAD and --schedule NAME, or --trace FILE; see `pebble simulate --help`."
        )
    return simulate_schedule(workload, schedule, residual=residual, sensitive=sensitivity, **options)
