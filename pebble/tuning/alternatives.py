"""Alternatives to the schedules that a search found: an operand kept in a set-aside, and other launches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from pebble.errors import InputError
from pebble.families.spaces.candidate import Condition, measure
from pebble.models.caches import parse_policy
from pebble.models.caches.persisting import MOST, OPTION
from pebble.schedules.execution import Execution
from pebble.schedules.tables.registry import kernel_of
from pebble.simulation import Traffic
from pebble.system.parallel import each
from pebble.tuning.search import FREE_STEPS, Scored, Search

SHARES = (0.25, 0.5, MOST)  # of the cache, at most set aside
WORTH = 0.01  # of what moves without: a set-aside that saves no more is not spoken of
_PAIRS = 4  # of a schedule and an operand, of all schedules and of the common ones
_STAGGERED = 3  # of the best schedules
_SPLITS = (2, 4)

Schedule = TypeVar("Schedule")
Other = TypeVar("Other")
Trial = TypeVar("Trial")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class SetAside(Generic[Schedule]):
    """A schedule of which an operand is kept in a set-aside of L2, by an access-policy window.

    Attributes
    ----------
    schedule : Scored
        Without it; a report puts its own record in the place (`of`).
    operand : str
    share : float
        Of the cache, at most set aside.
    traffic : Traffic
        Under the first condition, with it; ``saved_bytes`` is what it saves.
    """

    schedule: Schedule
    operand: str
    share: float
    traffic: Traffic

    @property
    def flag(self) -> str:
        """What runs an exported file with it."""
        return f"--persist {self.operand}:{self.share:g}"

    def policy(self, plain: str) -> str:
        """The cache model that simulates it, from the one without."""
        return f"{plain}+{OPTION}-{self.operand}-{self.share:g}"

    def of(self, schedule: Other) -> SetAside[Other]:
        """The same of another record of the schedule."""
        return SetAside(schedule, self.operand, self.share, self.traffic)


@dataclass(frozen=True)
class OtherLaunch(Generic[Schedule]):
    """A schedule launched otherwise than it was ranked for.

    Attributes
    ----------
    schedule : Scored
        As it was ranked; a report puts its own record in the place (`of`).
    condition : Condition
    traffic : Traffic
    """

    schedule: Schedule
    condition: Condition
    traffic: Traffic

    @property
    def execution(self) -> str:
        """The name of the launch."""
        return self.condition.name

    def of(self, schedule: Other) -> OtherLaunch[Other]:
        """The same of another record of the schedule."""
        return OtherLaunch(schedule, self.condition, self.traffic)


def set_asides(search: Search) -> tuple[SetAside[Scored], ...]:
    """What a set-aside saves: with the best, over all schedules, and with a common one.

    The pairs of schedule and operand that could move least are simulated with every share; the answer is the best
    share of the best pair of each kind, if it saves more than 1 % of what the same schedule, and the best of its
    kind, moves without.
    """
    trials = [
        SetAside(scored, operand, share, scored.traffic[0]) for scored, operand in _pairs(search) for share in SHARES
    ]

    def pinned(trial: SetAside[Scored]) -> SetAside[Scored] | None:
        scored = trial.schedule
        policy = trial.policy(scored.candidate.config.policy)
        traffic = _measured(search, scored, search.conditions[0], policy)
        return None if traffic is None else replace(trial, traffic=replace(traffic, plain_bytes=_plain_bytes(trial)))

    results = [
        set_aside
        for set_aside in _tried(search, "keeping an operand", pinned, trials)
        if set_aside.traffic.dram_bytes < (1 - WORTH) * _plain_bytes(set_aside)
    ]
    ranked = search.ranked()
    best, baseline = ranked[0], next((s for s in ranked if s.baseline), ranked[0])
    kinds = (
        (results, best),
        ([p for p in results if p.schedule is best], best),
        ([p for p in results if p.schedule.baseline], baseline),
    )
    answer = []
    for kind, plain in kinds:
        least = min(
            kind, key=lambda p: (p.traffic.dram_bytes, p.share, p.operand, p.schedule.candidate.key), default=None
        )
        if least is not None and least.traffic.dram_bytes < (1 - WORTH) * plain.traffic[0].dram_bytes:
            answer.append(least)
    return tuple({id(p): p for p in answer}.values())


def _plain_bytes(set_aside: SetAside[Scored]) -> int:
    """What the schedule moves without."""
    return set_aside.schedule.traffic[0].dram_bytes


def _pairs(search: Search) -> list[tuple[Scored, str]]:
    """Schedules and operands to try: if what is kept is read once and nothing else changes, these move least."""
    ranked = search.ranked()
    baseline = [s for s in search.scored.values() if s.baseline]
    steps = search.block_steps(ranked[0].candidate) * len(SHARES)
    most = int(max(1, min(_PAIRS, FREE_STEPS / 2 / steps)))
    results = []
    for schedules in (ranked[:1], ranked, baseline):
        hopes = sorted((hope for s in _differing(schedules) for hope in _hopes(search, s)), key=lambda hope: hope[0])
        results += [(s, operand) for _, s, operand in hopes[:most]]
    return list({(s.candidate.key, operand): (s, operand) for s, operand in results}.values())


def _differing(schedules: Iterable[Scored]) -> list[Scored]:
    """One of those that move the same."""
    result: dict[tuple[str, int, int], Scored] = {}
    for s in schedules:
        traffic = s.traffic[0]
        result.setdefault((s.candidate.key[1], traffic.dram_read_bytes, traffic.dram_write_bytes), s)
    return list(result.values())


def _hopes(search: Search, scored: Scored) -> Iterator[tuple[tuple[float, tuple[str, str], str], Scored, str]]:
    """For each operand what the schedule could move if that were kept, and what tells it in a tie."""
    config, traffic = scored.candidate.config, scored.traffic[0]
    layout = kernel_of(search.workload, config.tile).layout
    lines = np.bincount(layout.tile_operand(), layout.tile_lines(), len(layout.names))
    capacity = MOST * config.cache_bytes * search.conditions[0].cache_percent / 100 / parse_policy(config.policy).parts
    traffic_bytes = traffic.by_operand()
    for name, count in zip(layout.names, lines.tolist(), strict=True):
        if name in search.space.operands(search.workload):
            size = count * traffic.counts.unit_bytes
            saved = min(1.0, capacity / size) * (traffic_bytes[name]["read_bytes"] - size)
            if saved > WORTH * traffic.dram_bytes:
                yield (traffic.dram_bytes - saved, scored.candidate.key, name), scored, name


def launches(search: Search) -> tuple[OtherLaunch[Scored], ...]:
    """What the best move launched otherwise, the least of each launch first.

    Staggered, where the cache is one: blocks then are at different steps of k, which keeps more of a band in an LRU.
    With k in 2 or 4 slices, where a GEMM has fewer tiles than run at once: it moves more, and takes less time.
    """
    first = search.conditions[0]
    if not (search.family.timed and first.execution.is_reference):
        return ()
    ranked = search.ranked()
    baseline = [s for s in ranked if s.baseline][:1]
    trials = []
    if all(_is_one(config.policy) for config in search.configs):
        best = dict.fromkeys(s.candidate.key for s in [*_differing(ranked)[:_STAGGERED], *baseline])
        trials += [(search.scored[key], Execution("staggered")) for key in best]
    for scored in baseline:
        config = scored.candidate.config
        ((depth, tiles),) = search.family.loops(search.workload, config.tile)
        if tiles < config.wave_blocks:
            trials += [(scored, Execution("split-k", splits)) for splits in _SPLITS if splits <= depth]

    def launched(trial: tuple[Scored, Execution]) -> OtherLaunch[Scored] | None:
        scored, execution = trial
        condition = Condition(execution, first.cache_percent)
        traffic = _measured(search, scored, condition)
        return None if traffic is None else OtherLaunch(scored, condition, traffic)

    result = _tried(search, "launching otherwise", launched, trials)
    return tuple(sorted(result, key=lambda s: (s.execution, s.traffic.dram_bytes, s.schedule.candidate.key)))


def _is_one(policy: str) -> bool:
    """Whether a cache model is of one partition."""
    model = parse_policy(policy)
    return model.structure == "full" and model.parts == 1


def _measured(search: Search, scored: Scored, condition: Condition, policy: str | None = None) -> Traffic | None:
    try:
        return measure(search.family, search.workload, scored.candidate, condition, policy)
    except InputError:  # a schedule that cannot be launched so, or a cache model that has no set-aside
        return None


def _tried(search: Search, what: str, work: Callable[[Trial], Answer | None], trials: Sequence[Trial]) -> list[Answer]:
    """The answers in the order of the trials, those that there are when the time is over or somebody interrupts."""
    result: dict[int, Answer] = {}
    if search.is_late():
        return []
    try:
        for done, (i, answer) in enumerate(each(work, trials, over=search.is_late), 1):
            if answer is not None:
                result[i] = answer
            search.progress(what, done, len(trials))
            if search.is_late():
                break
    except KeyboardInterrupt:
        search.why_over = "interrupted"
    return [result[i] for i in sorted(result)]
