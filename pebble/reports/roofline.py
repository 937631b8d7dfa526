"""``figure roofline``: a workload at its bound, and its orders at their simulated bytes, below the roofs of a chip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from pebble.errors import InputError
from pebble.families import family_of
from pebble.models.rates import peak_dram, peak_l2, peak_operations
from pebble.reports.bound import bound_workload
from pebble.reports.default_kernel import advised_kernel
from pebble.reports.schedule_names import named_schedules
from pebble.reports.simulated_kernel import trace_bound
from pebble.reports.target import TargetOptions, gpu_only, read_target
from pebble.reports.timed import WorkloadTime, check_time_options
from pebble.system.parallel import each
from pebble.timing.floor import Point, Roofline, TimeFloor
from pebble.workloads.workload import Workload


def roofline(
    workload: Workload,
    schedules: str | Sequence[str] = "all",
    accumulator: str | None = None,
    **where: Unpack[TargetOptions],
) -> Roofline:
    """Where a workload lies below the roofs of a machine.

    Parameters
    ----------
    workload : Workload
    schedules : str or sequence of str
        As for `pebble.compare`; a family without kernels is shown at its bound alone.
    accumulator : {"fp32", "fp16"}, optional
        The type that sums are kept in (fp32).
    **where
        ``gpu`` or ``machine``.

    Raises
    ------
    InputError
        No machine, or one whose file has no throughput or DRAM bandwidth.
    """
    machine = read_target(**where).machine
    if machine is None:
        raise InputError("roofline: expected --gpu or --machine: a bare memory has no roofs.")
    gpu_only(machine)
    sums = check_time_options(machine, accumulator)
    family = family_of(workload).simulated
    peak, dram, l2 = peak_operations(machine, workload.dtype, sums), peak_dram(machine), peak_l2(machine)
    if peak is None or dram is None:
        key = f"throughput.{workload.dtype}" if peak is None else "dram_bandwidth"
        raise InputError(f"roofline: the machine file of {machine.name} has no {key}, which a roof needs; add it.")
    types = workload.label + (f", sums in {sums}" if sums != "fp32" else "")
    if family is None:
        result = bound_workload(workload, accumulator=accumulator, **where)
        assert result.timed is not None
        return Roofline(
            types, machine.name, peak, dram, l2, _point(workload, result.timed.floor, "bound", result.lower.bytes)
        )
    kernel = advised_kernel(workload, **where)
    config = kernel.config
    family.check(workload, config)
    orders = named_schedules(workload, kernel, schedules)
    least = trace_bound(workload, kernel).bound
    floor = WorkloadTime.of(workload, machine, least, sums).floor
    walks = list({family.walk(workload, item, config): item for item in orders}.values())  # those alike move alike
    traffics = [traffic for _, traffic in each(lambda single: family.simulate(workload, single, config), walks)]
    traffics.sort(key=lambda traffic: (-traffic.dram_bytes, traffic.order))
    intensity, formula = family.sm_intensity(workload, config.tile), "2 BM BN / ((BM + BN) b)"
    if intensity is None:
        intensity, formula = workload.flops / traffics[-1].l2_bytes, f"simulated, {traffics[-1].order}"
    return Roofline(
        f"{types}, tile {kernel.tile}",
        machine.name,
        peak,
        dram,
        l2,
        _point(workload, floor, "bound", least.bytes),
        tuple(_point(workload, floor, traffic.order, traffic.dram_bytes) for traffic in traffics),
        intensity,
        formula,
    )


def _point(workload: Workload, floor: TimeFloor, name: str, dram_bytes: int) -> Point:
    return Point(name, workload.flops / dram_bytes, workload.flops / floor.with_dram(dram_bytes))
