"""`pebble.bound`, `pebble.compare` and `pebble.simulate`: what moves at least, and what schedules move.

Each answers several kinds of question. The kind is seen here, once: which options it takes, which report is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Unpack

from pebble.cdag.io import SUFFIXES
from pebble.errors import InputError, check_flag, check_text
from pebble.families import family_of, kernel_family, read_workload
from pebble.models.machine import Machine
from pebble.reports.chosen import Own
from pebble.reports.given import check_residual
from pebble.reports.options import Beside, Buffers, refuse, spelled_out
from pebble.reports.simulated_kernel import KernelOptions
from pebble.reports.target import TargetOptions, check_options
from pebble.units import Size
from pebble.workloads.base import Workload

if TYPE_CHECKING:
    from pebble.reports.bound import Bound
    from pebble.reports.dag_bound import DagBounds
    from pebble.reports.exact import ExactComparison
    from pebble.reports.kernel_compare import Comparison
    from pebble.reports.simulate import Simulation, TraceSimulation, WrittenTrace
    from pebble.reports.sm_bound import SmBound
    from pebble.reports.sm_compare import SmComparison


def bound(
    what: Any,
    *,
    gpu: str | Machine | None = None,
    machine: str | None = None,
    cache: str | Size | None = None,
    sms: int | str | None = None,
    recompute: bool = False,
    accumulators: str | None = None,
    buffers: str | None = None,
    omega: str | float | None = None,
    topology: str | None = None,
    multicast: int | str | None = None,
    level: str | None = None,
    accumulator: str | None = None,
    energy: str | None = None,
    capacity: int | None = None,
    variant: str | None = None,
    time_limit: float = 10.0,
    stop: Event | None = None,
    **parameters: Any,
) -> Bound | SmBound | DagBounds:
    """The least traffic any schedule can have, proved, beside the best schedule known.

    Parameters
    ----------
    what : workload, networkx.DiGraph or str
        `Gemm`, `Ffn`, `Attention` ...; or a DAG, a file of one, with ``capacity``; or the name of a family or layer,
        with its ``parameters`` by keyword.
    gpu, machine, cache
        Exactly one for a workload: a SKU or what `pebble.gpu` gives; a machine file; a size such as ``"40MiB"``.
    sms : int, optional
        Processors; by default those of the GPU, else 1.
    recompute : bool
        The bound holds for schedules that compute a value twice, too.
    accumulators : {"fp32", "off"}, optional
        Whether partial sums take 4 bytes, as on a GPU (by default with ``gpu`` and ``machine``), or what they end as.
    buffers : {"single", "sm-local", "pooled", "connected"}, optional
        Other than single: the boundary between L2 and SMs, ``cache`` being the storage of one SM.
    omega, topology
        Connected: the cost of a value copied between SMs, and the network.
    multicast : int, optional
        sm-local: SMs that one read of L2 may feed.
    level : {"dram", "l2"}, optional
        The boundary; by default l2 with buffers.
    accumulator : {"fp32", "fp16"}, optional
        With a GPU: the type that sums are kept in, which may change the peak that the floor on time uses (fp32).
    energy : {"7nm", "k40"}, optional
        With a GPU: the published table of an energy estimate.
    capacity, variant, time_limit
        For a DAG: pebbles (weight units), the game, seconds for each theorem that can use them.
    stop : threading.Event, optional
        For a DAG: set it to get what is proved by then.

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
    where = {"gpu": gpu, "machine": machine, "cache": cache}
    named = isinstance(what, str) and Path(what).suffix.lower() not in SUFFIXES
    if named and capacity is None and any(value is not None for value in where.values()):
        what, parameters = read_workload(what, parameters), {}
    check_flag("recompute", recompute)
    of_bytes = {"accumulators": accumulators, "accumulator": accumulator, "energy": energy}
    if isinstance(what, str | Path) or hasattr(what, "pred"):
        from pebble.reports.dag_bound import bound_dag

        of_sms = {"level": level, "buffers": buffers, "omega": omega, "topology": topology, "multicast": multicast}
        refuse("a DAG", {**where, **of_bytes, **of_sms, "sms": sms, "recompute": recompute})
        return bound_dag(what, parameters, capacity, variant, time_limit=time_limit, stop=stop)
    family_of(what)  # says what a workload is
    check_options(parameters, _KEYWORDS, "bound")
    refuse("a workload", {"capacity": capacity, "variant": variant})
    boundary = Buffers(level, buffers, omega, topology, multicast)
    if boundary.l2:
        from pebble.reports.sm_bound import bound_sms

        refuse(boundary.words, of_bytes)
        return bound_sms(what, boundary, sms=sms, recompute=recompute, gpu=gpu, machine=machine, cache=cache)
    from pebble.reports.bound import bound_workload

    return bound_workload(
        what, sms=sms, recompute=recompute, accumulator=accumulator, energy=energy,
        gpu=gpu, machine=machine, cache=cache, accumulators=accumulators,
    )  # fmt: skip


_KEYWORDS = [name for name in bound.__annotations__ if name not in ("what", "parameters", "return")]


@spelled_out(KernelOptions)
def compare(
    workload: Workload,
    schedules: str | Sequence[str] = "all",
    schedule: Own | Sequence[Own] | None = None,
    *,
    residual: bool = False,
    level: str | None = None,
    buffers: str | None = None,
    omega: str | float | None = None,
    topology: str | None = None,
    accumulator: str | None = None,
    energy: str | None = None,
    exact: bool = False,
    time_limit: float | None = None,
    progress: Callable[[Any], Any] | None = None,
    stop: Event | None = None,
    **options: Unpack[KernelOptions],
) -> Comparison | SmComparison | ExactComparison:
    """What schedules move, against the least that any can move: between L2 and DRAM, between L2 and SMs, or exactly.

    Parameters
    ----------
    workload : Gemm, GroupedGemm, Ffn or Attention
    schedules : str or sequence of str
        ``"all"``, or names: the tile orders of ``pebble schedules`` for a GEMM, schedules of the family for others.
    schedule : str, Path, callable or TileTable, or a sequence of these
        Beside them, tiles of your own; see `pebble.simulate`.
    residual : bool
        ffn: read the input again to add it to the output.
    level : {"dram", "l2"}, optional
        The boundary; by default l2 with buffers. At l2 schedules under explicit control are compared, ``cache`` is the
        storage of one SM, and of the kernel's options only ``sms`` and ``tile`` have a meaning.
    buffers : {"sm-local", "connected"}, optional
        Whether an SM can copy from others; by default, at l2, sm-local.
    omega, topology
        Connected: the cost of a value copied between SMs, in reads of L2 (0.25), and the network (all-to-all).
    accumulator : {"fp32", "fp16"}, optional
        With a GPU: the type that sums are kept in, which may change the peak that the floor on time uses (fp32).
    energy : {"7nm", "k40"}, optional
        With a GPU: the published table of an energy estimate.
    exact : bool
        Solve the tile game of a small grid, in a ``cache`` of a few tiles, and play the orders of a GEMM in it, one
        tile operation at a time; of the kernel's options only ``tile`` has a meaning.
    time_limit : float, optional
        With ``exact``: seconds for the solver (60).
    progress : callable, optional
        Called with the number of schedules; what it returns is called with the name of each that is done. With
        ``exact``: called with the interval now and then, a `Progress`.
    stop : threading.Event, optional
        With ``exact``: set it to get the interval at once.
    **options
        Where and how it runs: `KernelOptions`.

    Returns
    -------
    Comparison, SmComparison or ExactComparison
        The first with what was done by then, and a note, when interrupted by KeyboardInterrupt; the second for l2, the
        third with ``exact``.

    Raises
    ------
    InputError
        Arguments that are malformed or contradict each other.
    UnknownNameError
        No such schedule, policy, level or GPU.

    Examples
    --------
    >>> import pebble
    >>> found = pebble.compare(pebble.Gemm(1024, 1024, 1024), ["row", "hilbert"], cache="1MiB", sms=16)
    >>> [t.order for t in found.orders], found.orders[0].dram_bytes >= found.trace.bound.bytes
    (['hilbert', 'row'], True)
    """
    kernel_family(workload)  # refused before anything else is looked at
    check_options(options, KernelOptions.__optional_keys__)
    check_flag("residual", residual)
    check_flag("exact", exact)
    if progress is not None and not callable(progress):
        raise InputError(f"progress: got {repr(progress)[:40]}, expected a function.")
    boundary = Buffers(level, buffers, omega, topology)
    timed = {"accumulator": accumulator, "energy": energy}
    where: TargetOptions = {
        "gpu": options.get("gpu"), "machine": options.get("machine"), "cache": options.get("cache"),
    }  # fmt: skip
    tile, sms = options.get("tile"), options.get("sms")
    of_kernels = {key: value for key, value in options.items() if key not in (*where, "tile")}
    if boundary.l2:
        from pebble.reports.sm_compare import compare_sms

        names = None if schedules == "all" else schedules
        of_kernels |= {"sms": None, "residual": residual, "schedules": names, "schedule": schedule}
        refuse(boundary.words, {"exact": exact, "time_limit": time_limit, **timed, **of_kernels})
        return compare_sms(workload, boundary, sms=sms, tile=tile, **where)
    if exact:
        from pebble.reports.exact import compare_exactly

        refuse("--exact", {**timed, **of_kernels, "schedule": schedule})
        seconds = 60.0 if time_limit is None else time_limit
        return compare_exactly(
            workload, schedules, tile=tile, time_limit=seconds, progress=progress, stop=stop, **where
        )
    from pebble.reports.kernel_compare import compare_kernels

    refuse("schedules that are simulated", {"time_limit": time_limit})
    shown = progress or (lambda total: lambda name: None)
    return compare_kernels(workload, schedules, schedule, residual=residual, progress=shown, **timed, **options)


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
    schedule : str, Path, callable or TileTable
        A tile order of ``pebble schedules``, or a schedule of the family. Or tiles of your own: a .csv, .npy or .json
        file, ``"FILE.py:FUNCTION"``, or a function ``(rows, cols, params)`` that returns an array of (row, col), or
        (tiles, k_start, k_direction).
    trace : str, optional
        A .csv or .npz file instead of a schedule.
    write_trace : str or Path, optional
        Write the schedule's trace to this .csv or .npz file and stop.
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
    check_options(options, KernelOptions.__optional_keys__)
    check_flag("residual", residual)
    check_flag("sensitivity", sensitivity)
    of_schedules = {"residual": residual, "write_trace": write_trace, "sensitivity": sensitivity}
    of_beside = {"beside_sms": beside_sms, "beside_schedule": beside_schedule}
    if trace is not None:
        from pebble.reports.simulate import simulate_file

        in_time = {key: options.get(key) for key in ("execution", "cluster", "seed")}
        of_bound = {key: options.get(key) for key in ("tile", "sms", "blocks_per_sm", "stages", "allow_infeasible")}
        refuse("--trace", {"schedule": schedule, "beside": beside, **of_schedules, **of_beside, **in_time})
        refuse("--trace and no workload, whose bound it is for", {} if workload is not None else of_bound)
        return simulate_file(trace, workload, **options)
    if workload is None or schedule is None:
        raise InputError(
            "simulate: expected WORKLOAD and --schedule NAME, or --trace FILE; see `pebble simulate --help`."
        )
    check_residual(workload, residual)
    if beside is not None:
        from pebble.reports.simulate import simulate_side_by_side

        refuse("--beside", of_schedules)
        model = check_text("--beside", beside, "MODEL:mlp")
        other = Beside(model, beside_sms, beside_schedule or "row-fused-16")
        return simulate_side_by_side(workload, schedule, other, **options)
    refuse("one workload", of_beside)
    if write_trace is not None:
        from pebble.reports.simulate import write_schedule_trace

        refuse("--write-trace", {"sensitivity": sensitivity})
        return write_schedule_trace(workload, schedule, write_trace, residual=residual, **options)
    from pebble.reports.simulate import simulate_schedule

    return simulate_schedule(workload, schedule, residual=residual, sensitivity=sensitivity, **options)
