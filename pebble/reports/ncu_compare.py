"""``ncu compare``: what a kernel was measured to move, beside the proved least and what each order would move."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any, Unpack

from pebble.counters import MeasuredLaunch, Profile
from pebble.counters.limits import Limit, choose, limit_of
from pebble.counters.names import Operation, kind_of, tile_of
from pebble.counters.profile import MACHINES, check_one_gpu
from pebble.counters.shapes import read_shapes
from pebble.errors import InputError, check_flag
from pebble.models.machine import load_machine
from pebble.reports.kernel_compare import Comparison, compare_kernels
from pebble.reports.ncu_verdict import Verdict, notes_of, verdict_on_reads, verdict_on_writes
from pebble.reports.ncu_which import identify
from pebble.reports.report import Report
from pebble.reports.simulated_kernel import Bounded, KernelOptions
from pebble.reports.simulated_orders import Progress
from pebble.simulation import Traffic
from pebble.units import format_bytes, format_capacity, format_ratio
from pebble.workloads import Gemm
from pebble.workloads.workload import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pebble.models.machine import Machine
    from pebble.plots.ncu import MeasuredComparison

_AS_NEAR = 0.02  # orders that differ by less are not told apart by a measurement


@dataclass(frozen=True)
class Measured:
    """What the counters of the chosen launches add up to; None where one of them does not say.

    Attributes
    ----------
    read_bytes, write_bytes, dram_bytes : float or None
    nanoseconds : float or None
    exact : bool
        False where a figure was worked out from rounded ones.
    """

    read_bytes: float | None
    write_bytes: float | None
    dram_bytes: float | None
    nanoseconds: float | None
    exact: bool

    @classmethod
    def of(cls, launches: Sequence[MeasuredLaunch]) -> Measured:
        """The sum of some launches."""
        exact = True

        def total(key: str) -> float | None:
            nonlocal exact
            results = [launch.find(key) for launch in launches]
            exact &= all(element is None or element.exact for element in results)
            return sum(item.value for item in results if item is not None) if None not in results else None

        read, written, both = (total(f"dram_{kind}bytes") for kind in ("read_", "write_", ""))
        return cls(read, written, both, total("time_nanoseconds"), exact)


@dataclass(frozen=True)
class Resemblance:
    """An order under an execution, beside what was measured.

    Attributes
    ----------
    order, execution : str
    read_bytes, write_bytes : int
        Simulated; writes before the kernel ends, without what stays dirty in L2.
    error : float
        Simulated over measured, less 1: of reads, or of both where only their sum was measured.
    """

    order: str
    execution: str
    read_bytes: int
    write_bytes: int
    error: float


@dataclass(frozen=True, repr=False)
class Judgement(Report):
    """What ``pebble ncu compare`` found.

    Attributes
    ----------
    profile : Profile
    launches : tuple of MeasuredLaunch
        Those that were added up, and why these.
    why : str
    measured : Measured
    comparison : Comparison
        Bounds, best schedule and simulated orders of the workload.
    orders : tuple of Resemblance
        The nearest to what was measured first.
    reads, writes : Verdict
    limit : Limit
        What the launches' time is limited by.
    cold : bool
        Whether L2 was empty when the kernel began.
    notes : tuple of str
    """

    profile: Profile
    launches: tuple[MeasuredLaunch, ...]
    why: str
    measured: Measured
    comparison: Comparison
    orders: tuple[Resemblance, ...]
    reads: Verdict
    writes: Verdict
    limit: Limit
    cold: bool
    notes: tuple[str, ...]

    question = "ncu compare"
    table_keys = ("name", "execution", "dram_read_bytes", "dram_write_bytes", "error")

    @property
    def machine(self) -> Machine | None:
        return self.comparison.machine

    @property
    def workload(self) -> Workload:
        """What the launches compute."""
        return self.comparison.workload

    @property
    def bound(self) -> Bounded:
        """What holds for any kernel on the chip; without a machine, for the kernel that was simulated."""
        return self.comparison.chip or self.comparison.trace

    @property
    def ratio(self) -> float | None:
        """Measured bytes over the bound."""
        traffic = self.measured.dram_bytes
        return None if traffic is None else traffic / self.bound.bound.bytes

    @property
    def nearest(self) -> Resemblance | None:
        """The order that moves most nearly what was measured."""
        return next(iter(self.orders), None)

    @property
    def as_near(self) -> tuple[Resemblance, ...]:
        """Others that the measurement does not tell from the nearest."""
        if not self.orders:
            return ()
        first = abs(log(1 + self.orders[0].error))
        return tuple(order for order in self.orders[1:] if abs(log(1 + order.error)) <= first + _AS_NEAR)

    @property
    def alike(self) -> tuple[tuple[Resemblance, ...], ...]:
        """The orders, those that read and write the same under one execution together, the nearest first."""
        result: dict[Hashable, list[Resemblance]] = {}
        for order in self.orders:
            result.setdefault((order.execution, order.read_bytes, order.write_bytes), []).append(order)
        return tuple(map(tuple, result.values()))

    def name_of(self, tied: Sequence[Resemblance]) -> str:
        """What stands for orders that are alike: the first, and how many more; of several, that it is all."""
        every = len(tied) == len(self.comparison.orders) > 1
        return f"each of the {len(tied)} orders" if every else self.comparison.name_of(tied)

    @property
    def distinguished(self) -> bool:
        """Whether the measurement is nearer to some orders than to others; one alone is nearest."""
        return len(self.as_near) + 1 < len(self.orders) or len(self.comparison.orders) == 1

    def summary(self) -> str:
        if self.measured.dram_bytes is None or self.ratio is None:
            return f"{self.workload.label}: the report has no DRAM bytes"
        said = f"{self.workload.label}: measured {format_bytes(self.measured.dram_bytes)}"
        said += f", {format_ratio(self.ratio, '.2f')}x the bound of {format_bytes(self.bound.bound.bytes)}"
        near = self.nearest
        if near is None:
            return said
        nearest = (
            f"nearest: {near.order}, {near.execution}" if self.distinguished else "no order is nearer than another"
        )
        return f"{said}; {nearest} ({near.error:+.1%})"

    def rows(self) -> list[dict[str, Any]]:
        """A row per order and execution, the nearest first."""
        return [
            {
                "name": order.order,
                "execution": order.execution,
                "dram_read_bytes": order.read_bytes,
                "dram_write_bytes": order.write_bytes,
                "error": order.error,
            }
            for order in self.orders
        ]

    def document(self) -> dict[str, Any]:
        upper_bytes, upper_name = self.comparison.best_known
        near = self.nearest
        return {
            "file": self.profile.path,
            "launches": [{"id": launch.ident, "kernel": launch.short_name} for launch in self.launches],
            "why": self.why,
            "workload": {"label": self.workload.label, **self.workload.to_json()},
            "kernel": self.comparison.kernel.to_dict(),
            "measured": {
                "dram_read_bytes": self.measured.read_bytes,
                "dram_write_bytes": self.measured.write_bytes,
                "dram_bytes": self.measured.dram_bytes,
                "nanoseconds": self.measured.nanoseconds,
                "exact": self.measured.exact,
            },
            "lower_bound": self.bound.to_json(),
            "kernel_bound": self.comparison.trace.to_json(),
            "ratio_to_lower_bound": self.ratio,
            "upper_bound": {"bytes": upper_bytes, "schedule": upper_name},
            "nearest": None if near is None else {"name": near.order, "execution": near.execution, "error": near.error},
            "as_near": [
                {"name": item.order, "execution": item.execution, "error": item.error} for item in self.as_near
            ],
            "cold": self.cold,
            "reads": self.reads.to_json(),
            "writes": self.writes.to_json(),
            "limit": self.limit.to_json(),
            "schedules": self.rows(),
            "notes": list(self.notes),
            "complete": self.comparison.complete,
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """The measured bar beside the bound and the orders."""
        from pebble.plots.ncu import plot_judgement

        return plot_judgement(self._drawn, ax)

    def figure(self) -> Figure:
        """The same on a page, as high as it has bars."""
        from pebble.plots.ncu import judgement_figure

        return judgement_figure(self._drawn)

    @property
    def _drawn(self) -> MeasuredComparison:
        from pebble.plots.ncu import MeasuredComparison, SimulatedOrder

        kernel, m = self.comparison.kernel, self.measured
        names = ", ".join(dict.fromkeys(launch.short_name for launch in self.launches))
        title = f"{names}: {self.workload.label}\nsimulated: {kernel.runs}\n{kernel.cache}"
        orders = [
            SimulatedOrder(f"{self.name_of(tied)}, {item.execution}", item.read_bytes, item.write_bytes, item.error)
            for tied in self.alike
            for item in tied[:1]
        ]
        traffic = (m.read_bytes, m.write_bytes, m.dram_bytes)
        return MeasuredComparison(title, *traffic, orders, self.bound.bound.bytes, *self.comparison.best_known)


def judge(
    profile: Profile,
    workload: Workload | None = None,
    launches: Sequence[str] = (),
    schedules: str | Sequence[str] = "all",
    *,
    cold: bool | None = None,
    progress: Callable[[int], Progress] = lambda total: lambda name: None,
    **options: Unpack[KernelOptions],
) -> Judgement:
    """Set what was measured beside what is proved and what each order would move.

    Parameters
    ----------
    profile : Profile
        A report.
    workload : Gemm, GroupedGemm, Ffn or Attention, optional
        What the launches compute; without it a GEMM whose shape the counters determine.
    launches : sequence of str
        IDs or parts of names of the launches to add up; by default the critical one.
    schedules : str or sequence of str
        As for `pebble.compare`.
    cold : bool, optional
        Whether L2 was empty when the kernel began, as ncu makes it unless told ``--cache-control none``; by default
        what a ``.ncu-rep`` says, else True.
    progress : callable
        As for `pebble.compare`.
    **options
        Where and how the kernel runs: `KernelOptions`. Without a GPU, that of the report, or where there is no machine
        file of it a cache and SMs as its attributes say; without a tile, that of the kernel's name.

    Raises
    ------
    InputError
        No workload, GPU or launch can be told; or options that are malformed.
    """
    if cold is None:
        cold = profile.option("cache-control", "all") != "none"
    check_flag("cold", cold)
    picked, why = choose(profile, [launches] if isinstance(launches, str) else launches)
    check_one_gpu(picked, "--launch")
    notes: list[str] = [*profile.notes, *(note for launch in picked for note in launch.notes)]
    if workload is None:
        workload = _shape_of(profile, picked[0])
        notes.append(f"the shape is read from the counters: {workload.label}; `--workload` says it otherwise")
    notes += _find_machine(picked[0], options)
    tile = tile_of(picked[0].kernel) if kind_of(picked[0].kernel) is Operation.GEMM else None
    if tile is not None and options.get("tile") is None:
        options["tile"] = str(tile)
    compared = compare_kernels(workload, schedules, progress=progress, **options)
    measured = Measured.of(picked)
    if measured.dram_bytes is None:
        requested = "dram__bytes_read.sum and dram__bytes_write.sum"
        raise InputError(f"{picked[0].short_name}: the report has no DRAM bytes; profile it again with {requested}.")
    bound = compared.chip or compared.trace
    reads = verdict_on_reads(measured.read_bytes, measured.write_bytes, workload, bound, compared, cold)
    writes = verdict_on_writes(measured.write_bytes, workload, compared)
    notes += notes_of(profile, picked, measured.exact, cold, compared)
    return Judgement(
        profile,
        picked,
        why,
        measured,
        compared,
        _resemblances(measured, compared),
        reads,
        writes,
        limit_of(picked, compared.machine.dram_bytes_per_second if compared.machine else None),
        cold,
        tuple(notes),
    )


def _shape_of(profile: Profile, launch: MeasuredLaunch) -> Workload:
    """The GEMM that the counters determine."""
    result = identify(profile, launch.ident)
    if result.shape is not None and (result.shape.out_bytes in (2, 4)):
        dtype = {2: "bf16", 4: "fp32"}[result.shape.out_bytes]
        return Gemm(result.shape.m, result.shape.n, result.shape.k, dtype)
    if result.shape is not None and result.shape.out_bytes == 8:
        raise InputError(
            f"{launch.short_name}: got a product of fp64, expected one of bf16, fp16, fp32 or fp8, which are "
            "simulated; `--launch` names another kernel."
        )
    several = f" ({len(read_shapes(launch))} shapes fit: `pebble ncu which` lists them)" if result.shapes else ""
    raise InputError(
        f"--workload: missing, and the counters of {launch.short_name} do not determine a shape{several}; expected one "
        "such as --workload gemm -m 4096 -n 4096 -k 4096."
    )


def _find_machine(launch: MeasuredLaunch, options: KernelOptions) -> tuple[str, ...]:
    """The GPU of the report, where none is named, with what to know of it; SMs beside a cache are the report's too."""
    sms, l2 = launch.value("sms"), launch.value("l2_bytes")
    if options.get("cache") is not None and options.get("sms") is None and sms:
        options["sms"] = int(sms)
        return (f"{sms:.0f} SMs, as the report says; `--sms` says it otherwise",)
    if any(options.get(key) is not None for key in ("gpu", "machine", "cache")):
        return ()
    sku = MACHINES.get(launch.device)
    if sku is not None:
        options["gpu"] = load_machine(sku)
        return ()
    said = f"the report's GPU is {launch.device!r}, of which there is no machine file" if launch.device else (
        "the report does not name its GPU"
    )  # fmt: skip
    # how fast blocks run is known of a GPU, not of a cache
    if not (sms and l2) or options.get("execution") in ("free", "asynchronous"):
        raise InputError(f"--gpu: missing, and {said}; expected --gpu SKU, --machine FILE or --cache SIZE --sms P.")
    options["cache"], options["sms"] = f"{l2:.0f}B", int(sms)
    return (
        f"{said}: simulated as {sms:.0f} SMs with a cache of {format_capacity(int(l2))}, as its attributes say; "
        "`--gpu` or `--machine` says it otherwise",
    )


def _resemblances(measured: Measured, compared: Comparison) -> tuple[Resemblance, ...]:
    """Every order under every execution, by how near it comes."""
    main = compared.kernel.config.execution.name
    executions: dict[str, list[Traffic]] = {main: list(compared.orders)}
    for name, by_order in compared.alternative_traffic.items():
        if name != "lru":
            executions[name] = [by_order[t.order] for t in compared.orders]
    results = []
    for execution, orders in executions.items():
        for t in orders:
            written = t.dram_write_bytes - t.residue_bytes
            both = (t.dram_read_bytes + written) / (measured.dram_bytes or 1)
            ratio = t.dram_read_bytes / measured.read_bytes if measured.read_bytes else both
            if ratio > 0:
                results.append(Resemblance(t.order, execution, t.dram_read_bytes, written, ratio - 1))
    return tuple(sorted(results, key=lambda single: abs(log(1 + single.error))))
