"""``time --beside``: two workloads on one GPU, side by side on SMs of their own, or one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from pebble.errors import InputError
from pebble.families import kernel_family, read_workload
from pebble.models.machine import Machine
from pebble.reports.kernel_time import MILLI, TimedSchedule, fastest, time_notes, time_row, timed_kernel
from pebble.reports.report import Report
from pebble.reports.schedule_names import Schedules
from pebble.reports.simulated_kernel import KernelOptions, SimulatedKernel
from pebble.reports.target import whole
from pebble.schedules.execution import parse_execution
from pebble.system.parallel import each
from pebble.timing.modelled import ModelledTime
from pebble.timing.sustained import LAUNCH_NS
from pebble.timing.waves import modelled_time
from pebble.workloads.workload import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SPLITS = 8


class SmSplit(NamedTuple):
    """Some SMs for the second workload, the rest for the first."""

    sms: int
    time: ModelledTime

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        first, second = self.time.ended_seconds
        return {
            "second_sms": self.sms, "modelled_ms": self.time.seconds * MILLI, "first_ms": first * MILLI,
            "second_ms": second * MILLI, "dram_ms": self.time.dram_seconds * MILLI, "dram_bytes": self.time.dram_bytes,
        }  # fmt: skip


@dataclass(frozen=True, repr=False)
class SideBySide(Report):
    """What ``pebble time --beside`` found; blocks run free in all of it.

    Attributes
    ----------
    workloads : tuple of two Workload
    kernels : tuple of two Kernel
    alone : tuple of two Timed
        Each on all SMs.
    splits : tuple of Split
        By the SMs of the second.
    notes : tuple of str
    """

    workloads: tuple[Workload, Workload]
    kernels: tuple[SimulatedKernel, SimulatedKernel]
    alone: tuple[TimedSchedule, TimedSchedule]
    splits: tuple[SmSplit, ...]
    notes: tuple[str, ...]

    question = "time"

    @property
    def machine(self) -> Machine | None:
        return self.kernels[0].target.machine

    @property
    def in_turn_seconds(self) -> float:
        """One after the other."""
        return sum(item.time.seconds for item in self.alone)

    @property
    def least_seconds(self) -> float:
        """What the busiest resource needs for both at sustained rates: no split is faster by the model."""
        times = [item.time for item in self.alone]
        return max(
            sum(t.compute_seconds for t in times),
            sum(t.shared_seconds for t in times),
            sum(t.l2_seconds for t in times),
            sum(t.dram_seconds for t in times),
        )

    @property
    def best(self) -> SmSplit:
        """The fastest split."""
        return min(self.splits, key=lambda split: split.time.seconds)

    @property
    def gain(self) -> float:
        """The time of one after the other over that of the best split; below 1 side by side loses."""
        return self.in_turn_seconds / self.best.time.seconds

    def summary(self) -> str:
        single, two = (workload.label for workload in self.workloads)
        verdict = "beats" if self.gain > 1 else "does not beat"
        sms = self.kernels[0].config.sms
        return (
            f"side by side {verdict} one after the other: {self.best.time.seconds * MILLI:.3f} ms with {single} on "
            f"{sms - self.best.sms} SMs and {two} on {self.best.sms}, {self.in_turn_seconds * MILLI:.3f} ms in turn "
            f"({self.gain:.2f}x)"
        )

    def rows(self) -> list[dict[str, Any]]:
        """A row per split."""
        return [split.to_json() for split in self.splits]

    def document(self) -> dict[str, Any]:
        alone = [
            {
                "workload": {"label": workload.label, **workload.to_json()},
                "kernel": kernel.to_dict(),
                "name": timed.order,
                **time_row(timed.time),
            }
            for workload, kernel, timed in zip(self.workloads, self.kernels, self.alone, strict=True)
        ]
        return {
            "alone": alone,
            "in_turn_ms": self.in_turn_seconds * MILLI,
            "least_ms": self.least_seconds * MILLI,
            "best": self.best.to_json(),
            "gain": self.gain,
            "splits": self.rows(),
            "notes": list(self.notes),
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Time against the SMs of the second workload."""
        from pebble.plots.time import SharedTimes, plot_concurrent

        single, two = self.workloads
        splits = [(split.sms, split.time) for split in self.splits]
        sms = self.kernels[0].config.sms
        shared = SharedTimes((single.label, two.label), sms, splits, self.in_turn_seconds, self.least_seconds)
        return plot_concurrent(shared, ax)

    def figure(self) -> Figure:
        """The same with its legend below."""
        from pebble.plots.time import time_figure

        return time_figure(self.plot, f"{self.summary()}\n{'' if self.machine is None else self.machine.name}")


def time_concurrent(
    first: Workload,
    second: Workload,
    schedules: Schedules | None = None,
    beside_schedules: Schedules | None = None,
    splits: Sequence[int] | None = None,
    **options: Unpack[KernelOptions],
) -> SideBySide:
    """Both at once and in turn, for each split of the SMs; arguments and errors as for `pebble.time`.

    The tile is the first workload's; the second has its family's own. Both hold as many stages as fit in both.
    """
    execution = options.get("execution")
    execution = "free" if execution is None else execution
    spec: KernelOptions = {**options, "execution": execution}
    if parse_execution(execution).is_reference:
        raise InputError("--execution: got waves with --beside, expected free: kernels side by side share no wave.")
    theirs: KernelOptions = {**spec}
    theirs.pop("tile", None)
    if first.dtype != second.dtype:
        raise InputError(f"--beside: got {second.dtype} beside {first.dtype}, expected one type for both.")
    single, rates = timed_kernel(first, **spec)
    two, _ = timed_kernel(second, **theirs)
    sms, stages = single.config.sms, min(single.stages, two.stages)
    if sms < 2:
        raise InputError(f"--beside: got {sms} SM, expected at least 2 to share out.")
    kernels = [
        replace(k, fitted=k.fitted._replace(stages=stages), config=replace(k.config, stages=stages))
        for k in (single, two)
    ]
    if splits is None:
        splits = sorted({max(1, min(sms - 1, round(sms * part / _SPLITS))) for part in range(1, _SPLITS)})
    for share in splits:
        if not 1 <= share < sms:
            raise InputError(f"--beside-sms: got {share} of {sms} SMs, expected 1 to {sms - 1}.")
    alone = [fastest(first, schedules, kernels[0], rates), fastest(second, beside_schedules, kernels[1], rates)]
    families = [kernel_family(first), kernel_family(second)]
    pair = [family.read_schedule(timed.order) for family, timed in zip(families, alone, strict=True)]

    def run(share: int) -> ModelledTime:
        configs = [replace(k.config, sms=n) for k, n in zip(kernels, (sms - share, share), strict=True)]
        programs = [
            family.program(workload, schedule, config)
            for family, workload, schedule, config in zip(families, (first, second), pair, configs, strict=True)
        ]
        if any(len(program.groups) > 1 for program in programs):
            raise InputError("--beside: got an interleaved schedule, which needs two sets of SMs by itself.")
        return modelled_time(programs[0].concurrent_with(programs[1]), kernels[0].config, rates)

    result = dict(each(run, list(splits)))
    notes = (
        *time_notes(first, second),
        f"blocks run free; a launch costs {LAUNCH_NS / 1e3:g} us, each; SMs of the one that ends first stay idle",
        f"each block holds {stages} stage{'s' * (stages != 1)}, as many as fit for both",
    )
    return SideBySide(
        (first, second),
        (kernels[0], kernels[1]),
        (alone[0], alone[1]),
        tuple(SmSplit(share, result[at]) for at, share in enumerate(splits)),
        notes,
    )


def read_concurrent(text: str | Workload, first: Workload) -> Workload:
    """The second workload, from text as on the command line.

    Raises
    ------
    InputError
        Malformed text.
    """
    if not isinstance(text, str):
        kernel_family(text)
        return text
    name, *words = text.split() or [""]
    named: dict[str, object] = {}
    while words:
        option = words.pop(0)
        if not option.startswith("-"):
            raise InputError(f"--beside: got {option!r} in {text!r}, expected an option such as --tokens 512.")
        value = words.pop(0) if words and not words[0].startswith("-") else True
        named[option.lstrip("-").replace("-", "_")] = value
    if ":" in name and "tokens" not in named and first.token_rows is not None:
        named["tokens"] = first.token_rows
    return read_workload(name, named)


def read_splits(named: str | int | Sequence[int] | None) -> list[int] | None:
    """SMs of the second workload.

    Raises
    ------
    InputError
        Not whole numbers.
    """
    if named is None:
        return None
    parts: Iterable[Any] = named.split(",") if isinstance(named, str) else [named] if isinstance(named, int) else named
    return [whole("--beside-sms", part, 1, 10**6) for part in parts]
