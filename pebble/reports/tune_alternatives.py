"""What ``tune`` says besides what it found: alternatives, looked at afterwards, and what a reader must know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pebble.reports.kernel_notes import kernel_notes
from pebble.reports.kernel_time import time_notes
from pebble.reports.simulated_kernel import KernelOptions, SimulatedKernel, trace_bound
from pebble.reports.tune_time import TuneTimes
from pebble.reports.tuned import LESS, LESS_CACHE, SAME, Beyond, Tuned, tried_beyond
from pebble.schedules.tile import TileShape
from pebble.tuning import BYTES, OtherLaunch, Scored, Search, SetAside, launches, runnable, set_asides
from pebble.units import format_bytes
from pebble.workloads.workload import Workload

CLIFF = 1.1  # times as much with so much less cache is worth a warning


def teller(workload: Workload, kernels: Mapping[TileShape, SimulatedKernel]) -> Callable[[Scored], Tuned]:
    """What makes a reader's schedule of one that was simulated."""
    bounds = {tile: trace_bound(workload, kernel) for tile, kernel in kernels.items()}

    def described(scored: Scored) -> Tuned:
        plan, config = scored.candidate.plan, scored.candidate.config
        kernel = kernels[config.tile]
        words = "a named schedule" if scored.named else plan.words
        schedule = runnable(workload, scored.candidate)
        bound = bounds[config.tile]
        return Tuned(plan.name, words, kernel, schedule, scored.traffic, scored.values, bound, scored.named)

    return described


@dataclass
class Alternatives:
    """What is looked at beside the schedules of a search; each stays empty where it was interrupted before."""

    pinned: tuple[SetAside[Scored], ...] = ()
    launched: tuple[OtherLaunch[Scored], ...] = ()
    beyond: tuple[Beyond, ...] = ()
    times: TuneTimes | None = None

    def look(self, search: Search, has_pinned: bool, options: KernelOptions) -> None:
        """An operand kept in L2, other launches, and what the schedules move where they were not tuned for."""
        ranked = search.ranked()
        if has_pinned:
            self.pinned = set_asides(search)
        self.launched = launches(search)
        if search.why_over != "interrupted":
            baseline = next((s for s in ranked if s.baseline), ranked[0])
            self.beyond = tried_beyond(search, options, ranked[0], baseline)


def search_notes(search: Search, kernels: Sequence[SimulatedKernel], alternatives: Alternatives) -> list[str]:
    """What a reader must know of the kernels, of how the search ended, and of what it found."""
    best, baseline = search.ranked()[0], next((s for s in search.ranked() if s.baseline), None)
    notes = list(dict.fromkeys(note for kernel in kernels for note in kernel_notes(search.workload, kernel)))
    if search.why_over:
        notes.append(f"{search.why_over}: this is the best until then")
    if search.left_out:
        names = ", ".join(condition.name for condition in search.left_out)
        notes.append(f"no time was left to rank by {names}: ask for it with a longer --time-limit")
    for b in alternatives.beyond:
        if b.what == LESS and b.best_bytes > CLIFF * best.traffic[0].dram_bytes:
            first = search.conditions[0]
            notes.append(
                f"the best stands at a cliff: {b.what} it moves {format_bytes(b.best_bytes)}; "
                f"`--robust {first.name},{first.execution.name}@{100 - LESS_CACHE}` ranks by both"
            )
    if baseline is not None and not best.baseline:
        name, least = baseline.candidate.plan.name, search.objective
        if baseline.worst_bytes <= SAME * best.worst_bytes:
            notes.append(f"the common order {name} moves the same to 0.5 %: the search saves no bytes")
        if least.name != BYTES and baseline.worst <= SAME * best.worst:
            notes.append(f"the common order {name} has the same {least.what} to 0.5 %: the search saves little of it")
    if any(each.condition.execution.kind == "split-k" for each in alternatives.launched):
        notes.append("fewer tiles than blocks that run at once: with k in slices more are busy, which moves more")
    return [*notes, *(time_notes(search.workload) if alternatives.times else ())]
