"""``tune``: the schedule of a workload that takes least time, moves least, or costs least energy on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from pebble.errors import InputError
from pebble.families import kernel_family
from pebble.models.machine import Machine
from pebble.reports.export import Exported, export
from pebble.reports.options import spelled_out
from pebble.reports.report import Report
from pebble.reports.simulated_kernel import KernelOptions, SimulatedKernel
from pebble.reports.tune_alternatives import Alternatives, search_notes, teller
from pebble.reports.tune_target import (
    check_execution,
    default_conditions,
    read_conditions,
    read_kernels,
    read_objective,
)
from pebble.reports.tune_time import Clocked, TuneTimes, times_of_ties, tuned_times
from pebble.reports.tuned import (
    Beyond,
    Tuned,
    has_set_aside,
    launch_json,
    set_aside_json,
)
from pebble.schedules.tables import TileTable
from pebble.system.clock import Clock, check_seconds
from pebble.tuning import (
    BYTES,
    Objective,
    OtherLaunch,
    Progress,
    Scored,
    Search,
    SetAside,
    TuningProblem,
    as_progress,
    objective_of,
    with_bar,
)
from pebble.units import format_bytes
from pebble.workloads.workload import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SECONDS = 60.0


@dataclass(frozen=True, repr=False)
class Tuning(Report):
    """What ``pebble tune`` found.

    Attributes
    ----------
    workload : Workload
    objective : Objective
        What is to be least.
    executions : tuple of str
        Schedules are ranked by the objective where it is largest of these.
    schedules : tuple of Tuned
        The least first; in a tie what moves least, for the first place the fastest by the model, then what has a name.
    baseline : Tuned or None
        The best of the named schedules with their customary numbers, at any tile that was tried; None where the search
        ended before one was simulated.
    beyond : tuple of Beyond
        With less cache, and without a barrier.
    tiles : tuple of str
        Block tiles that were tried.
    counts : tuple of int
        Schedules looked at, simulated in full, and of these with names; and named ones in all.
    seconds : float
        That it took.
    notes : tuple of str
    ended : str
        Why the search ended early: ``interrupted``, or the time limit; empty when nothing better was near.
    set_asides : tuple of SetAside
        With an operand kept in L2: the least over all schedules, the best schedule, a common one. Only what moves at
        least 1 % less than the same schedule, and the best or the best common one, without; ``best`` has none.
    launches : tuple of OtherLaunch
        The best few and a common schedule launched staggered, where the cache is one; a common one with k in slices,
        where a GEMM has fewer tiles than run at once.
    times : TuneTimes or None
        How long the best, the best common one and the fastest take by the model; None where that has no time for them.
    """

    workload: Workload
    objective: Objective
    executions: tuple[str, ...]
    schedules: tuple[Tuned, ...]
    baseline: Tuned | None
    beyond: tuple[Beyond, ...]
    tiles: tuple[str, ...]
    counts: tuple[int, int, int, int]
    seconds: float
    notes: tuple[str, ...]
    ended: str = ""
    set_asides: tuple[SetAside[Tuned], ...] = ()
    launches: tuple[OtherLaunch[Tuned], ...] = ()
    times: TuneTimes | None = None

    question = "tune"
    table_keys = ("name", "tile", "worst_dram_bytes", "ratio_to_lower_bound", "worst_over_daily")

    @property
    def machine(self) -> Machine | None:
        return self.best.kernel.target.machine

    @property
    def best(self) -> Tuned:
        """The schedule with the least worst case."""
        return self.schedules[0]

    @property
    def best_table(self) -> Tuned | None:
        """The best of those that have a table, which `save` writes; interleaved kernels, for one, have none."""
        return next((s for s in self.schedules if self._has_table(s)), None)

    def _has_table(self, result: Tuned) -> bool:
        if isinstance(result.schedule, TileTable):
            return True
        try:
            kernel_family(self.workload).table(self.workload, result.schedule, result.kernel.config)
        except InputError:
            return False
        return True

    @property
    def least_by_execution(self) -> tuple[Tuned, ...]:
        """The schedule that is best under each of them alone; in a tie what moves least."""
        return tuple(
            min(self.schedules, key=lambda s: (s.values[i], s.traffic[i].dram_bytes))
            for i in range(len(self.executions))
        )

    @property
    def set_aside(self) -> SetAside[Tuned] | None:
        """The one that moves least; None where none moves less than the best without."""
        less = [s for s in self.set_asides if s.traffic.dram_bytes < self.best.traffic[0].dram_bytes]
        return min(less, key=lambda s: s.traffic.dram_bytes, default=None)

    @property
    def distinct(self) -> tuple[tuple[Tuned, ...], ...]:
        """The schedules, those that move the same under every execution at the same tile together."""
        result: dict[tuple[Any, ...], list[Tuned]] = {}
        for s in self.schedules:
            key = (s.kernel.tile, *((t.dram_read_bytes, t.dram_write_bytes) for t in s.traffic))
            result.setdefault(key, []).append(s)
        return tuple(map(tuple, result.values()))

    def summary(self) -> str:
        best, baseline = self.best, self.baseline
        traffic, bound = format_bytes(best.worst.dram_bytes), format_bytes(best.bound.bound.bytes)
        text = self.objective.text
        least = "" if self.objective.name == BYTES else f"{text(best.worst_value)} {self.objective.what}, "
        against = f"; common best {baseline.name} {text(baseline.worst_value)}" if baseline else ""
        return (
            f"{self.workload.label}: {best.name}, tile {best.kernel.tile}, {least}moves {traffic}, {best.ratio:.2f}x "
            f"the bound of {bound}{against} ({best.kernel.cache}, {', '.join(self.executions)})"
        )

    def rows(self) -> list[dict[str, Any]]:
        """A row per schedule."""
        results = []
        for s in self.schedules:
            row: dict[str, Any] = {"name": s.name, "tile": s.kernel.tile}
            for name, t in zip(self.executions, s.traffic, strict=True):
                row |= {f"{name}_read_bytes": t.dram_read_bytes, f"{name}_write_bytes": t.dram_write_bytes}
            row |= {
                "worst_value": s.worst_value,
                "worst_dram_bytes": s.worst.dram_bytes,
                "ratio_to_lower_bound": s.ratio,
            }
            row["worst_over_daily"] = s.worst.dram_bytes / self.baseline.worst.dram_bytes if self.baseline else None
            results.append({**row, "words": s.words})
        return results

    def document(self) -> dict[str, Any]:
        looked, simulated, named, all_named = self.counts
        return {
            "workload": {"label": self.workload.label, **self.workload.to_json()},
            "kernel": self.best.kernel.to_dict(),
            "objective": self.objective.name,
            "robust": list(self.executions),
            "lower_bound": self.best.bound.to_json(),
            "best": self.best.to_json(self.executions),
            "best_daily": self.baseline.to_json(self.executions) if self.baseline else None,
            "best_by_execution": {
                name: {"name": s.name, "tile": s.kernel.tile, "dram_bytes": s.traffic[i].dram_bytes}
                for i, (name, s) in enumerate(zip(self.executions, self.least_by_execution, strict=True))
            },
            "beyond": [
                {"what": b.what, "best_dram_bytes": b.best_bytes, "daily_dram_bytes": b.baseline_bytes}
                for b in self.beyond
            ],
            "set_aside": set_aside_json(self.set_aside) if self.set_aside else None,
            "set_asides": [set_aside_json(s) for s in self.set_asides],
            "launches": [launch_json(launch) for launch in self.launches],
            "modelled_time": self.times.to_json() if self.times else None,
            "schedules": [s.to_json(self.executions) for s in self.schedules],
            "search": {
                "tiles": list(self.tiles), "looked_at": looked, "simulated": simulated, "named_simulated": named,
                "named": all_named, "seconds": round(self.seconds, 2),
            },
            "notes": list(self.notes),
            "complete": not self.ended,
        }  # fmt: skip

    def export(self, format: str = "json", result: Tuned | None = None) -> Exported:
        """A schedule (the best) as a table, a Triton file or a CUDA header; arguments and errors as `pebble.export`."""
        best = result or self.best
        machine = best.kernel.target.machine
        options: KernelOptions = {"gpu": machine} if machine is not None else {"cache": best.kernel.target.cache}
        config = best.kernel.config
        schedule = best.schedule if isinstance(best.schedule, TileTable) else best.name
        options |= {"tile": str(config.tile), "sms": config.sms, "blocks_per_sm": config.blocks_per_sm}
        options |= {"policy": config.policy, "execution": config.execution.name}
        return export(schedule, self.workload, format, **options)

    def save(self, path: str | Path, result: Tuned | None = None) -> None:
        """Write a schedule (the best) as a table (.json), which `pebble export` and `pebble simulate` read.

        Raises
        ------
        InputError
            It cannot be written, or is a named schedule that has no table.
        """
        self.export("json", result).save(path)

    def plot(self, ax: Axes | None = None) -> Axes:
        """The best schedules and the best common one over the bound, as bars."""
        from pebble.plots.bars import MOST_BARS, TunedBar, plot_tuning

        shown = [tied[0] for tied in self.distinct[:MOST_BARS]]
        if self.baseline is not None and self.baseline not in shown:
            shown.append(self.baseline)
        bars = [
            TunedBar(
                f"{s.name} ({s.kernel.tile})",
                s.worst.dram_read_bytes / s.bound.bound.bytes,
                s.worst.dram_write_bytes / s.bound.bound.bytes,
                s == self.baseline,
            )
            for s in shown
        ]
        of = ", worst case" if len(self.executions) > 1 else ""
        return plot_tuning(bars, self.best.bound.bound.bytes, of, ax)


@with_bar
@spelled_out(KernelOptions)
def tune(
    workload: Workload,
    *,
    objective: str | None = None,
    robust: str | Sequence[str] | None = None,
    time_limit: float = SECONDS,
    progress: Progress | bool = True,
    **options: Unpack[KernelOptions],
) -> Tuning:
    """Search for the schedule that takes least time, moves least between L2 and DRAM, or costs least energy.

    Parameters
    ----------
    workload : Gemm, GroupedGemm, Ffn or Attention
    objective : str, optional
        ``"time"`` (modelled: sustained where that is known, then bytes), ``"bytes"`` or ``"energy"``; by default time
        on a machine whose rates are known, else bytes.
    robust : str or sequence of str, optional
        Executions, such as ``"waves,dynamic-5"``: schedules are ranked by the worst of them. ``waves`` is a kernel that
        keeps its waves together by a barrier; ``waves@90`` the same with 90 % of the cache; by default these two, and
        ``free`` where ranked by time or energy, but ``free,free@90`` for causal attention on a GPU, whose waves would
        wait long.
    time_limit : float
        Seconds, after which the best so far is returned. What is searched is counted in work, not in time: where that
        ends the search first, a busy machine finds the same.
    progress : bool or callable
        False: no bar, which else is shown on a terminal and in a notebook. Or a function: called with
        what is done, how many of it, and of how many.
    **options
        Where and how it runs: `KernelOptions`, without ``execution``; ``tile`` may be several, separated by commas.

    Returns
    -------
    Tuning
        With what was found by then when interrupted by KeyboardInterrupt. Never worse than a named schedule that was
        simulated; ``counts`` says how many were.

    Raises
    ------
    InputError
        Arguments that are malformed or contradict each other.
    UnknownNameError
        No such execution, policy or GPU.

    Examples
    --------
    >>> import pebble
    >>> found = pebble.tune(pebble.Gemm(1024, 1024, 1024), cache="1MiB", sms=16)
    >>> found.best.worst.dram_bytes <= found.baseline.worst.dram_bytes, found.best.ratio >= 1
    (True, True)
    """
    if options.get("execution") is not None:
        raise InputError("execution: expected robust instead, the executions to rank by, such as 'waves,dynamic-5'.")
    clock = Clock(check_seconds("--time-limit", time_limit))
    wanted = read_objective(objective, workload, options, robust)
    wanted_conditions = None if robust is None else (read_conditions(robust), ())
    conditions, why = wanted_conditions or default_conditions(workload, options, wanted != BYTES)
    for condition in conditions:  # refused before any work is done for it
        check_execution(workload, options, condition)
    options["execution"] = conditions[0].execution.name
    kernels = {kernel.config.tile: kernel for kernel in read_kernels(workload, options)}
    family = kernel_family(workload)
    first = next(iter(kernels.values()))
    family.check(workload, first.config)
    spec = teller(workload, kernels)
    least = objective_of(wanted, TuningProblem(family, workload, first.config.sms, conditions), first.target.machine)
    configs = [kernel.config for kernel in kernels.values()]
    search = Search(family, workload, configs, conditions, least, clock, as_progress(progress))
    search.run()
    return _tuning(search, list(kernels.values()), spec, options, why)


def _tuning(
    search: Search, kernels: Sequence[SimulatedKernel], spec: Callable[[Scored], Tuned], options: KernelOptions,
    why: Sequence[str],
) -> Tuning:  # fmt: skip
    """The report of a search that is over: what ties is timed, and what is looked at beside the best."""
    workload, conditions = search.workload, search.conditions
    ties = search.ties()
    machine, sms = kernels[0].target.machine, kernels[0].config.sms
    clocked = Clocked.of(workload, machine, sms, conditions[0])
    seconds = times_of_ties(clocked, [spec(tie) for tie in ties])
    search.seconds = {tie.candidate.key: of_tie for tie, of_tie in zip(ties, seconds, strict=True)}
    ranked = search.ranked()
    baseline = next((s for s in ranked if s.baseline), None)
    schedules = tuple(map(spec, ranked))
    of_baseline = None if baseline is None else schedules[ranked.index(baseline)]
    has_pinned = has_set_aside(machine)
    alternatives = Alternatives()
    try:
        alternatives.look(search, has_pinned, options)
        if search.why_over != "interrupted":
            every = [spec(scored) for scored in search.scored.values()]
            alternatives.times = tuned_times(clocked, schedules[0], of_baseline, every, search.is_late)
    except KeyboardInterrupt:
        search.why_over = "interrupted"
    return Tuning(
        workload,
        search.objective,
        tuple(condition.name for condition in conditions),
        schedules,
        of_baseline,
        alternatives.beyond,
        tuple(kernel.tile for kernel in kernels),
        (len(search.looks), len(search.scored), *search.named_count),
        search.clock.passed,
        (*why, *search_notes(search, kernels, alternatives), *search.family.notes(False)),
        search.why_over or "",
        tuple(item.of(spec(item.schedule)) for item in alternatives.pinned),
        tuple(launch.of(spec(launch.schedule)) for launch in alternatives.launched),
        alternatives.times,
    )
