"""`pebble.time`, `pebble.curve`, `pebble.cycles` and `pebble.coalesce`: how kernels run, and what their loads take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict, Unpack, cast

from pebble.errors import InputError, check_flag
from pebble.models.machine import Machine
from pebble.reports.options import refuse, spelled_out, split_options
from pebble.reports.refusals import check_residual
from pebble.reports.schedule_names import Schedules, named
from pebble.reports.simulated_kernel import KernelOptions
from pebble.reports.target import PlaceOptions, check_options, scratchpads_of
from pebble.system.clock import counting, shown
from pebble.workloads.workload import Workload

if TYPE_CHECKING:
    from pebble.reports.coalesce import CoalescingReport
    from pebble.reports.curve import CurveReport
    from pebble.reports.cycles import Cycles
    from pebble.reports.dataflows import DataflowComparison
    from pebble.reports.kernel_time import Timing
    from pebble.reports.time_concurrent import SideBySide
    from pebble.reports.time_sweep import Sweep


@spelled_out(KernelOptions)
def time(
    workload: Workload,
    schedules: Schedules = "all",
    schedule: Schedules | None = None,
    *,
    residual: bool = False,
    beside: str | Workload | None = None,
    beside_schedules: Schedules | None = None,
    beside_sms: str | int | Sequence[int] | None = None,
    sweep: str | Mapping[str, Sequence[int]] | None = None,
    promote_every: int | None = None,
    progress: Callable[[int], Callable[[str], object]] | bool = True,
    **options: Unpack[KernelOptions],
) -> Timing | SideBySide | Sweep | DataflowComparison:
    """How long schedules take on a GPU by the model, beside the floor that is proved, and what binds.

    Parameters
    ----------
    workload : Gemm, GroupedGemm, Ffn or Attention
    schedules : str or sequence of str
        ``"all"``, or names, as for `pebble.compare`.
    schedule : str, Path, callable or TileTable, or a sequence of these
        Beside them, tiles of your own; see `pebble.simulate`.
    residual : bool
        ffn: read the input again to add it to the output.
    beside : str or Workload, optional
        A second workload, each on SMs of its own: is that faster than one after the other? Text as on the command line:
        ``"ffn --tokens 512 --d-model 4096 --hidden 11008"``; without ``--tokens`` those of the first.
    beside_schedules : str or sequence of str, optional
        Of the second; the fastest is taken. By default those in common use.
    beside_sms : int, sequence of int or str, optional
        SMs of the second, by default seven splits.
    sweep : str or mapping, optional
        One size in many values: ``"tokens=1,16,256,4096"``. Of each the fastest schedule, and what binds.
    promote_every : int, optional
        fp8: sums are added to others, in fp32, every so many steps of k.
    progress : bool or callable
        As for `pebble.compare`; of one workload at one size.
    **options
        Where and how it runs: `KernelOptions`.

    Returns
    -------
    Timing, SideBySide (with ``beside``) or Sweep (with ``sweep``), after a KeyboardInterrupt of what was done by then;
    a DataflowComparison, as `pebble.compare` returns it, on a machine of scratchpads

    Raises
    ------
    InputError
        Arguments that are malformed or contradict each other, an execution that has no time, or a chip without rates.
    UnknownNameError
        No such schedule, policy or GPU.

    Examples
    --------
    >>> import pebble
    >>> found = pebble.time(pebble.Gemm(2048, 2048, 2048), ["row", "hilbert"], gpu="h100-sxm5-80gb")
    >>> [t.time.seconds > found.floor.seconds for t in found.orders]
    [True, True]
    """
    check_flag("residual", residual)
    if beside is not None and sweep is not None:
        raise InputError("--sweep: got it with --beside, expected one of them.")
    if beside is None and (beside_schedules is not None or beside_sms is not None):
        raise InputError("--beside-schedules, --beside-sms: expected --beside WORKLOAD with them.")
    of_one = {"schedule": schedule, "residual": residual, "promote_every": promote_every}
    if beside is None and sweep is None:
        if scratchpads_of(options) is not None:
            return _dataflows(workload, {"schedules": named(schedules), **of_one}, options)
        check_residual(workload, residual)
        from pebble.reports.kernel_time import time_schedules

        with shown(progress) as update:
            counted = progress if callable(progress) else counting(update)
            return time_schedules(
                workload, schedules, schedule, residual, promote_every=promote_every, progress=counted, **options
            )
    if schedule is not None or residual or promote_every is not None:
        raise InputError(
            "--schedule, --residual, --promote-every: got it with --beside or --sweep, expected one workload at one "
            "size with it."
        )
    if sweep is not None:
        from pebble.reports.time_sweep import read_sweep, time_sweep

        return time_sweep(workload, read_sweep(sweep), named(schedules), **options)
    assert beside is not None
    from pebble.reports.time_concurrent import read_concurrent, read_splits, time_concurrent

    other = read_concurrent(beside, workload)
    return time_concurrent(workload, other, named(schedules), beside_schedules, read_splits(beside_sms), **options)


def _dataflows(workload: Workload, of_gpus: Mapping[str, object], options: KernelOptions) -> DataflowComparison:
    """Of a machine of scratchpads: dataflows, to which nothing that is about kernels applies."""
    from pebble.reports.dataflows import compare_dataflows

    check_options(options, KernelOptions.__optional_keys__, "time")
    place, of_kernels = split_options(options, PlaceOptions)
    refuse("a machine of scratchpads", {**of_kernels, **of_gpus})
    return compare_dataflows(workload, **place)


@spelled_out(KernelOptions)
def curve(
    workload: Workload,
    schedules: Schedules = "all",
    *,
    least: str | None = None,
    most: str | None = None,
    points: int | str | None = None,
    capacities_bytes: Sequence[int] | None = None,
    residual: bool = False,
    progress: Callable[[str], None] | bool = True,
    **options: Unpack[KernelOptions],
) -> CurveReport:
    """Traffic of every schedule at every cache size, with the proved bound beneath.

    Parameters
    ----------
    workload, schedules, residual, **options
        As for `pebble.compare`.
    least, most : str, optional
        Smallest and largest cache, such as ``"1MiB"``; by default the largest tile (64 KiB or more), all operands.
    points : int, optional
        Cache sizes between the two: 48; where each is a simulation 24, of a large kernel fewer, and near its cache.
    capacities_bytes : sequence of int, optional
        The cache sizes themselves, instead.
    progress : bool or callable
        False: no bar, which else is shown on a terminal and in a notebook. Or a function: called with the name of each
        schedule that is done.

    Returns
    -------
    CurveReport
        With what was done by then when interrupted by KeyboardInterrupt.

    Raises
    ------
    InputError
        A capacity below the largest tile, more than 4096 of them, or a policy that starts warm.
    """
    from pebble.reports.curve import CurveSizes, traffic_curve

    sizes = CurveSizes(least, most, points, capacities_bytes)
    with shown(progress) as update:
        tell = progress if callable(progress) else counting(update)(0)
        return traffic_curve(workload, schedules, sizes, residual=residual, progress=tell, **options)


class Overrides(TypedDict, total=False):
    """Constants of an SM, instead of the machine file's.

    Attributes
    ----------
    l2_bandwidth, dram_bandwidth : float
        Bytes per clock and SM.
    l2_latency, dram_latency, mma_cycles : float
        Cycles.
    tensor_cores : float
        Of an SM.
    """

    l2_bandwidth: float | str | None
    dram_bandwidth: float | str | None
    l2_latency: float | str | None
    dram_latency: float | str | None
    mma_cycles: float | str | None
    tensor_cores: float | str | None


@spelled_out(Overrides)
def cycles(
    tile: str,
    *,
    dtype: str = "bf16",
    gpu: str | Machine | None = None,
    machine: str | None = None,
    constants: str | None = None,
    threads: int | str | None = None,
    registers: int | str | None = None,
    stages: int | str | None = None,
    mma: str | None = None,
    **overrides: Unpack[Overrides],
) -> Cycles:
    """The arithmetic of one k-tile: cycles of compute, from L2 and from DRAM, and the stages that hide the loads.

    Parameters
    ----------
    tile : str
        ``"256x128x16"``.
    dtype : str
        Of A and B.
    gpu, machine : str
        A SKU, or a machine file.
    constants : str, optional
        On an A100 the set to judge by: ``published`` or ``corrected`` (that); both are told.
    threads, registers, stages : int, optional
        Of a block; by default the fewest threads that have the accumulators and keep every tensor core busy. Registers
        are a budget for each thread.
    mma : str, optional
        Instruction, such as ``"16x8x16"`` (16x16x16).
    **overrides
        Constants instead of the machine file's: `Overrides`.

    Returns
    -------
    Cycles

    Raises
    ------
    InputError
        A malformed number; a tile that the SM cannot hold, with the sum; a machine file without what is needed.
    UnknownNameError
        An unknown type, set or option.

    Examples
    --------
    >>> import pebble
    >>> print(pebble.cycles("256x128x16", dtype="fp16", gpu="a100-sxm4-40gb", constants="published"))
    NVIDIA A100-SXM4-40GB, one k-tile of 256x128x16 fp16 (published): 512.0 cycles of compute, 459.2 from L2, \
1,787.0 from DRAM
    """
    from pebble.reports.cycles import BlockSpec, cycles_of
    from pebble.reports.target import chip_of

    own = cast("dict[str, float | str | None]", overrides)
    block = BlockSpec(tile, threads, registers, stages)
    return cycles_of(chip_of(gpu, machine), block, dtype=dtype, constants=constants, mma=mma, overrides=own)


def coalesce(
    cols: int,
    rows: int = 1,
    *,
    value_bytes: int = 4,
    vector: int = 1,
    stride: int = 1,
    offset_bytes: int = 0,
    pitch: int = 0,
    threads: tuple[int, int] | None = None,
    each: tuple[int, int] = (1, 1),
) -> CoalescingReport:
    """Requests and sectors of the loads or stores of an array.

    Parameters
    ----------
    cols, rows : int
        Values that are touched.
    value_bytes : int
        Bytes of a value: 1, 2, 4, 8 or 16.
    vector : int
        Values that a lane moves in one instruction.
    stride : int
        Distance of neighbouring values, in values.
    offset_bytes : int
        Of the first value from a 128-byte line.
    pitch : int
        Distance of rows, in values; 0 for what the columns take.
    threads, each : tuple of int
        A block's threads along columns and rows, and the values of each thread, side by side; without ``threads``,
        lanes follow each other along a row.

    Returns
    -------
    CoalescingReport

    Raises
    ------
    InputError
        Numbers that make no pattern.

    Examples
    --------
    >>> import pebble
    >>> pebble.coalesce(8192).counted.sectors, pebble.coalesce(8192, stride=2).counted.sectors
    (1024, 2048)
    """
    from pebble.counters.coalescing import Pattern
    from pebble.reports.coalesce import coalesced

    try:
        pattern = Pattern(rows, cols, value_bytes, vector, stride, offset_bytes, pitch, threads, each)
    except TypeError:
        raise InputError("coalesce: got something that is no number, expected whole numbers.") from None
    return coalesced(pattern)
