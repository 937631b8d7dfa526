"""`pebble.bound`, `pebble.compare` and `pebble.simulate`: what moves at least, and what schedules move.

Each answers several kinds of question. The kind is seen here, once: which options it takes, which report is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Unpack

from pebble.api.games import watched_interval
from pebble.cdag.building import is_dag
from pebble.cdag.io import SUFFIXES
from pebble.errors import InputError, check_flag, check_text
from pebble.families import family_of, kernel_family, read_workload
from pebble.models.machine import Machine
from pebble.reports.options import (
    BoundaryOptions,
    BoundOptions,
    Buffers,
    ConcurrentFfn,
    refuse,
    spelled_out,
    split_options,
)
from pebble.reports.refusals import check_residual
from pebble.reports.schedule_names import Own, Schedules, named
from pebble.reports.simulated_kernel import KernelOptions
from pebble.reports.target import PlaceOptions, TargetOptions, check_options, scratchpads_of
from pebble.system.clock import counting, shown
from pebble.units import Size
from pebble.workloads.workload import Workload

if TYPE_CHECKING:
    from pebble.reports.bound import Bound
    from pebble.reports.dag_bound import DagBounds
    from pebble.reports.dataflows import DataflowComparison
    from pebble.reports.exact import ExactComparison
    from pebble.reports.explicit_schedules import ScheduleComparison
    from pebble.reports.kernel_compare import Comparison
    from pebble.reports.simulate import Simulation, TraceSimulation, WrittenTrace
    from pebble.reports.sm_bound import SmBound
    from pebble.reports.sm_compare import SmComparison


@spelled_out(BoundOptions, "parameters")
def bound(
    what: Any,
    *,
    gpu: str | Machine | None = None,
    machine: str | None = None,
    cache: str | Size | None = None,
    sms: int | str | None = None,
    recompute: bool = False,
    capacity: int | None = None,
    variant: str | None = None,
    time_limit: float = 10.0,
    stop: Event | None = None,
    **options: Any,
) -> Bound | SmBound | DagBounds:
    """The least traffic any schedule can have, proved, beside the best schedule known.

    Parameters
    ----------
    what : workload, networkx.DiGraph, str, sequence of pairs or mapping
        `Gemm`, `Ffn` ...; with ``capacity`` a DAG, as for `pebble.dag`; or the name of a family or layer and keywords.
    gpu, machine, cache
        Exactly one for a workload: a SKU or what `pebble.gpu` gives; a machine file; a size such as ``"40MiB"``.
    sms : int, optional
        Processors; by default those of the GPU, else 1.
    recompute : bool
        The bound holds for schedules that compute a value twice, too.
    capacity, variant, time_limit
        For a DAG: pebbles (weight units), the game, seconds for each theorem that can use them.
    stop : threading.Event, optional
        For a DAG: set it to get what is proved by then.
    cases : int, optional
        Of an FFN or attention in up to 8 segments: cases of their shares that the proof may tell apart (0, up to
        10,000), for a higher bound. Each takes a tenth to a third of a second.
    accumulators : {"fp32", "off"}, optional
        Whether partial sums take 4 bytes, as on a GPU (by default with ``gpu`` and ``machine``), or what they end as.
    buffers : {"single", "sm-local", "pooled", "connected"}, optional
        Other than single: the boundary between L2 and SMs, ``cache`` being the storage of one SM.
    omega, topology, multicast
        Connected: the cost of a value copied between SMs, and the network. sm-local: SMs that one read of L2 feeds.
    level : {"dram", "l2"}, optional
        The boundary; by default l2 with buffers.
    accumulator : {"fp32", "fp16"}, optional
        With a GPU: the type that sums are kept in, which may change the peak that the floor on time uses (fp32).
    energy : {"7nm", "k40", "h100"}, optional
        With a GPU, and with ``buffers`` in `compare`: the table of an energy estimate.

    Returns
    -------
    Bound, SmBound or DagBounds

    Raises
    ------
    InputError
        Arguments that are malformed or contradict each other.
    InfeasibleError
        The capacity is below the least that works.

    Examples
    --------
    >>> import pebble
    >>> pebble.bound(pebble.Gemm(4096, 4096, 4096), cache="40MiB").lower.elements
    50331648
    """
    where: PlaceOptions = {"gpu": gpu, "machine": machine, "cache": cache}
    own, parameters = split_options(options, BoundOptions)
    by_name = isinstance(what, str) and Path(what).suffix.lower() not in SUFFIXES
    if by_name and capacity is None and any(value is not None for value in where.values()):
        what, parameters = read_workload(what, parameters), {}
    check_flag("recompute", recompute)
    plain = isinstance(what, list | tuple | Mapping)
    if (plain or is_dag(what)) and capacity is None:
        sizes = (f"{name}: got {value!r}" for name, value in where.items() if value is not None)
        got = next(sizes, "capacity: got none")
        raise InputError(f"{got} with a DAG, expected its pebbles, such as capacity=4; bytes are no pebbles.")
    if plain or isinstance(what, str | Path) or is_dag(what):
        from pebble.reports.dag_bound import bound_dag

        refuse("a DAG", {**where, **own, "sms": sms, "recompute": recompute})
        return bound_dag(what, parameters, capacity, variant, time_limit=time_limit, stop=stop)
    family_of(what)  # says what a workload is
    check_options(parameters, [*signature(bound).parameters][1:-1], "bound")  # all but ``what`` and its parameters
    refuse("a workload", {"capacity": capacity, "variant": variant})
    return _bound_workload(what, own, sms, recompute, where)


def _bound_workload(
    workload: Workload, own: Mapping[str, Any], sms: int | str | None, recompute: bool, where: PlaceOptions
) -> Bound | SmBound:
    """At the boundary asked about, from every option of `BoundOptions`."""
    of_boundary = dict(own)
    of_bytes = {name: of_boundary.pop(name) for name in ("cases", "accumulators", "accumulator", "energy")}
    boundary = Buffers(**of_boundary)
    if boundary.l2:
        from pebble.reports.sm_bound import bound_sms

        refuse(boundary.words, of_bytes)
        return bound_sms(workload, boundary, sms=sms, recompute=recompute, **where)
    from pebble.reports.bound import bound_workload

    return bound_workload(workload, sms=sms, recompute=recompute, **of_bytes, **where)


class CompareOptions(KernelOptions, BoundaryOptions, total=False):
    """Where and how the kernels of a comparison run, and the boundary compared at."""


@spelled_out(CompareOptions)
def compare(
    workload: Workload,
    schedules: Schedules = "all",
    schedule: Schedules | None = None,
    *,
    residual: bool = False,
    exact: bool = False,
    time_limit: float | None = None,
    progress: Callable[[Any], Any] | bool | None = True,
    stop: Event | None = None,
    **options: Unpack[CompareOptions],
) -> Comparison | SmComparison | ExactComparison | DataflowComparison | ScheduleComparison:
    """What schedules move, against the least that any can move: between L2 and DRAM, between L2 and SMs, or exactly.

    Parameters
    ----------
    workload : Gemm, GroupedGemm, Ffn or Attention
    schedules : str or sequence
        ``"all"``, or names: the tile orders of ``pebble schedules`` for a GEMM, schedules of the family for others.
        Among them, or alone, tiles of your own: a function ``(rows, cols)`` that yields tiles, a generator or list.
    schedule : str, Path, callable or TileTable, or a sequence of these
        Beside them, tiles of your own; see `pebble.simulate`.
    residual : bool
        ffn: read the input again to add it to the output.
    exact : bool
        Solve the tile game of a small grid, in a ``cache`` of a few tiles, and play the orders of a GEMM in it, one
        tile operation at a time; of the kernel's options only ``tile`` has a meaning.
    time_limit, stop
        With ``exact``: seconds for the solver (60), and an event that ends it.
    progress : bool or callable
        False: no bar on a terminal or in a notebook. A function is called with the number of schedules, and what it
        returns with the name of each that is done; with ``exact``, with the interval now and then, a `Progress`.
    **options
        Where and how it runs: `KernelOptions`. The boundary, and the time and energy told: `BoundaryOptions`; by
        default ``level`` is l2 with ``buffers``, and these, at l2, are sm-local. At l2 schedules under explicit control
        are compared, ``cache`` is the storage of one SM, and of a kernel only ``sms`` and ``tile`` have a meaning.

    Returns
    -------
    Comparison, SmComparison, ExactComparison, DataflowComparison or ScheduleComparison
        The first, with what was done by then where interrupted; the second for l2, the third with ``exact``, the fourth
        on a machine of scratchpads, where nothing but ``energy`` is to be chosen, the last of a backward pass.

    Raises
    ------
    InputError
        Arguments that are malformed or contradict each other; UnknownNameError: no such schedule, policy, level or GPU.

    Examples
    --------
    >>> import pebble
    >>> found = pebble.compare(pebble.Gemm(1024, 1024, 1024), ["row", "hilbert"], cache="1MiB", sms=16)
    >>> [t.order for t in found.orders], found.orders[0].dram_bytes >= found.trace.bound.bytes
    (['hilbert', 'row'], True)
    """
    of_orders = {"schedules": named(schedules), "schedule": schedule, "residual": residual}
    if _side_by_side(workload, options):
        return _compare_explicit(workload, options, {**of_orders, "exact": exact, "time_limit": time_limit})
    _check_comparison(workload, options, residual, exact)
    others, kernel = split_options(options, BoundaryOptions)
    timed = {name: others.pop(name) for name in ("accumulator", "energy")}
    boundary = Buffers(**others)
    where, of_kernels = split_options(kernel, PlaceOptions)
    tile = of_kernels.pop("tile", None)
    if boundary.l2:
        from pebble.reports.sm_compare import compare_sms

        sms = of_kernels.pop("sms", None)
        energy = timed.pop("energy")
        refuse(boundary.words, {"exact": exact, "time_limit": time_limit, **timed, **of_kernels, **of_orders})
        return compare_sms(workload, boundary, sms=sms, tile=tile, energy=energy, **where)
    if not exact and scratchpads_of(where) is not None:
        from pebble.reports.dataflows import compare_dataflows

        refuse("a machine of scratchpads", {"time_limit": time_limit, "tile": tile, **of_kernels, **of_orders})
        return compare_dataflows(workload, **timed, **where)
    if exact:
        from pebble.reports.exact import compare_exactly

        refuse("--exact", {**timed, **of_kernels, "schedule": schedule})
        limit = 60.0 if time_limit is None else time_limit
        with watched_interval(progress) as tell:
            return compare_exactly(workload, schedules, tile=tile, time_limit=limit, progress=tell, stop=stop, **where)
    from pebble.reports.kernel_compare import compare_kernels

    refuse("schedules that are simulated", {"time_limit": time_limit})
    with shown(progress) as update:
        counted = progress if callable(progress) else counting(update)
        return compare_kernels(workload, schedules, schedule, residual=residual, progress=counted, **timed, **kernel)


def _side_by_side(workload: Workload, options: CompareOptions) -> bool:
    """Whether schedules under explicit control are compared in one memory, since no kernel is simulated."""
    family = family_of(workload)  # first: what is no workload may come with the sizes of one
    check_options(options, CompareOptions.__optional_keys__)
    return family.side_by_side and scratchpads_of(options) is None


def _compare_explicit(
    workload: Workload, options: CompareOptions, of_kernels: Mapping[str, object]
) -> ScheduleComparison:  # fmt: skip
    """Schedules under explicit control, to which nothing that is about kernels applies."""
    from pebble.reports.explicit_schedules import compare_explicit

    target, more = split_options(options, TargetOptions)
    refuse("schedules under explicit control", {**of_kernels, **more})
    return compare_explicit(workload, **target)


def _check_comparison(workload: Workload, options: CompareOptions, residual: bool, exact: bool) -> None:
    """Refuse what is no comparison of any kind before anything else is looked at."""
    family_of(workload) if scratchpads_of(options) is not None else kernel_family(workload)
    check_options(options, CompareOptions.__optional_keys__)
    check_flag("residual", residual)
    check_flag("exact", exact)


@spelled_out(KernelOptions)
def simulate(
    workload: Workload | None = None,
    schedule: Own | None = None,
    *,
    trace: str | None = None,
    write_trace: str | Path | None = None,
    residual: bool = False,
    sensitivity: bool = False,
    beside: str | None = None,
    beside_sms: int | str | None = None,
    beside_schedule: str | None = None,
    **options: Unpack[KernelOptions],
) -> Simulation | TraceSimulation | WrittenTrace:
    """One schedule, or a trace of your own, through one cache.

    Parameters
    ----------
    workload : Gemm, GroupedGemm, Ffn or Attention
        With ``trace``: optional, the trace is set against its bound.
    schedule : str, Path, callable, iterator or TileTable
        A name from ``pebble schedules``. Or tiles of your own: a .csv, .npy or .json file, ``"FILE.py:FUNCTION"``, a
        function ``(rows, cols, params)`` that returns or yields (row, col), or such a generator.
    trace : str, optional
        A .csv or .npz file instead of a schedule.
    write_trace : str or Path, optional
        Write the schedule's trace to this file and stop.
    residual : bool
        ffn: read the input again to add it to the output.
    sensitivity : bool
        gemm: how far the answer moves with its assumptions.
    beside, beside_sms, beside_schedule
        Attention of a named model: the model's FFN (``"llama-3-8b:mlp"``) on some of the SMs at the same time, how many
        SMs it gets, and its schedule (row-fused-16).
    **options
        Where and how it runs: `KernelOptions`.

    Returns
    -------
    Simulation, TraceSimulation or WrittenTrace
        The second of a trace of your own, the third with ``write_trace``.

    Raises
    ------
    InputError
        Arguments that are malformed or contradict each other; UnknownNameError: no such schedule, policy or GPU.

    Examples
    --------
    >>> import pebble
    >>> found = pebble.simulate(pebble.Gemm(512, 512, 512), "row", cache="1MiB", sms=8)
    >>> found.traffic.dram_bytes
    1572864
    """
    if workload is not None:
        family_of(workload)  # first, as in `compare`
    check_options(options, KernelOptions.__optional_keys__)
    check_flag("residual", residual)
    check_flag("sensitivity", sensitivity)
    from pebble.reports.simulate import simulate_file, simulate_schedule, simulate_side_by_side, write_schedule_trace

    of_schedules = {"residual": residual, "write_trace": write_trace, "sensitivity": sensitivity}
    of_concurrent = {"beside_sms": beside_sms, "beside_schedule": beside_schedule}
    if trace is not None:
        _refuse_with_trace({"schedule": schedule, "beside": beside, **of_schedules, **of_concurrent}, options, workload)
        return simulate_file(trace, workload, **options)
    if workload is None or schedule is None:
        raise InputError(
            "simulate: expected WORKLOAD and --schedule NAME (`pebble schedules` lists the names), or --trace FILE."
        )
    check_residual(workload, residual)
    if beside is not None:
        refuse("--beside", of_schedules)
        other = ConcurrentFfn(
            check_text("--beside", beside, "MODEL:mlp"), beside_sms, beside_schedule or "row-fused-16"
        )
        return simulate_side_by_side(workload, schedule, other, **options)
    refuse("one workload", of_concurrent)
    if write_trace is not None:
        refuse("--write-trace", {"sensitivity": sensitivity})
        return write_schedule_trace(workload, schedule, write_trace, residual=residual, **options)
    return simulate_schedule(workload, schedule, residual=residual, sensitivity=sensitivity, **options)


def _refuse_with_trace(others: Mapping[str, object], options: KernelOptions, workload: Workload | None) -> None:
    """Refuse what is given for a schedule, what a trace says itself and, with no workload, what a bound would use."""
    refuse("--trace", {**others, **{key: options.get(key) for key in ("execution", "cluster", "seed")}})
    if workload is None:
        of_bound = {key: options.get(key) for key in ("tile", "sms", "blocks_per_sm", "stages", "allow_infeasible")}
        refuse("--trace and no workload, whose bound it is for", of_bound)
