"""From coarse to fine: a quick look at everything, a full simulation of what looks best, then what lies beside that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from math import inf
from typing import Any

from pebble.errors import InputError
from pebble.families import FAMILIES, KernelFamily, kernel_family
from pebble.families.spaces.candidate import Candidate, Condition, measure
from pebble.families.spaces.space import Space
from pebble.schedules.recipes import SHIFTING, Recipe
from pebble.simulation import KernelConfig, Traffic
from pebble.system.clock import Clock
from pebble.system.parallel import each
from pebble.traces import LINE_BYTES
from pebble.tuning.objectives import Look, Objective
from pebble.tuning.progress import Progress, silent
from pebble.workloads.workload import Workload

_THIN = 6  # of the candidates, one in so many is looked at to choose tiles
_TILES = 2  # kept of those
_NEAR_TILE = 1.15  # a tile that looks worse than this times the best is not kept
_EARLY = 2  # of those are simulated at once, in one way, so that there is an answer when somebody interrupts
_FIRST = 16  # of what looks best, simulated in full
_PARENTS, _CHILDREN, _ROUNDS = 3, 8, 6
# a named schedule that looks worse than this times the best is simulated only if all are
_FAR, _FAR_BASELINE = 1.25, 2.0
FREE_STEPS = 20_000_000  # steps of blocks that are simulated in a few seconds
EFFORT_LINES = 200_000_000  # loads that simulations follow at most, for each second of the limit: 0.2 s of one core
_LEAST_FINALISTS = 3
_CLOSED_EFFORT = 0.02  # of what a simulation takes, where misses are known in closed form
_FREE_EFFORT = 2.0  # a simulation of blocks that run free takes about so many times as long
_AT_ONCE = 8
_SHARE = 0.8  # of the time, the rest is for what is tried beside
_WORTH = 1.04  # a neighbour is simulated if it looks no worse than this times what was found
_NOTHING = Look(inf, inf)


def space_of(workload: Workload) -> Space[Any, Any]:
    """What can be tried for a workload.

    Raises
    ------
    InputError
        Its kernels are simulated, but not searched for, or it has none.
    """
    family = kernel_family(workload)
    if family.space is None:
        searched = ", ".join(name for name, other in FAMILIES.items() if other.simulated and other.simulated.space)
        raise InputError(
            f"got {workload.label}, expected one of {searched}: no search for {family.name} kernels is "
            "written; `pebble compare` ranks their tile orders."
        )
    if refusal := family.space.refusal(workload):
        raise InputError(refusal)
    return family.space


@dataclass(frozen=True)
class Scored:
    """A candidate and what it moves under each condition, in the order asked for; fewer, if it was given up."""

    candidate: Candidate
    traffic: tuple[Traffic, ...]
    values: tuple[float, ...]  #: what the objective makes of each
    baseline: bool = False  #: a named schedule with its customary number
    named: bool = False  #: a named schedule

    @property
    def worst_bytes(self) -> int:
        """The most that it moves under any of them."""
        return max(t.dram_bytes for t in self.traffic)

    @property
    def worst(self) -> float:
        """The objective where it is largest."""
        return max(self.values)


@dataclass
class Search:
    """A search under way; what was found by then stands in ``scored``.

    Parameters
    ----------
    family, workload
    configs : sequence of KernelConfig
        One for each block tile.
    conditions : sequence of Condition
        Under each of which a schedule is to do well; the first decides what is simulated under the others.
    objective : Objective
        What is to be least.
    clock : Clock
        Its seconds say how much is simulated, counted in loads of lines: the same on a machine that is busy. It is a
        guard besides.
    progress : callable
    keep : int
        How many of the best are simulated under every condition, if the effort suffices; three at least.
    seconds : dict of key to float
        Modelled times of those that tie for the first place, once they are known: the fastest is the best.
    """

    family: KernelFamily[Any, Any]
    workload: Workload
    configs: Sequence[KernelConfig]
    conditions: Sequence[Condition]
    objective: Objective
    clock: Clock
    progress: Progress = silent
    keep: int = 10
    looks: dict[tuple[str, str], Look] = field(default_factory=dict)
    scored: dict[tuple[str, str], Scored] = field(default_factory=dict)
    _kinds: dict[tuple[str, str], tuple[bool, bool]] = field(default_factory=dict)
    _error: InputError | None = None
    _spent: float = 0.0
    left_out: Sequence[Condition] = ()  #: of the conditions, for want of time
    why_over: str | None = None
    seconds: dict[tuple[str, str], float] = field(default_factory=dict)

    @property
    def space(self) -> Space[Any, Any]:
        """What can be tried."""
        return space_of(self.workload)

    @property
    def effort(self) -> float:
        """Loads of lines that simulations may follow; none is begun that would go beyond."""
        return EFFORT_LINES * self.clock.seconds

    def run(self) -> None:
        """Search until nothing better is near, the time is over or somebody interrupts.

        Raises
        ------
        InputError
            No schedule can be simulated.
        KeyboardInterrupt
            Before anything was found.
        """
        try:
            self._run()
            self._finish_baseline()
        except KeyboardInterrupt:
            self.why_over = "interrupted"
            if not self.scored:
                raise
        reached = max((len(s.traffic) for s in self.scored.values()), default=len(self.conditions))
        self.left_out, self.conditions = self.conditions[reached:], self.conditions[:reached]
        if not self.ranked():
            raise self._error or InputError("tune: no schedule was simulated in time, expected a longer --time-limit.")

    def ranked(self) -> list[Scored]:
        """What was simulated under every condition, the least worst case first.

        In a tie what moves least in its worst case, then the fastest, then by name.
        """
        whole = [s for s in self.scored.values() if len(s.traffic) == len(self.conditions)]
        seconds, least = self.seconds, self.objective.tie * min((s.worst for s in whole), default=inf)
        return sorted(
            whole,
            key=lambda s: (
                max(s.worst, least),
                s.worst_bytes,
                seconds.get(s.candidate.key, 0),
                not s.baseline,
                not s.named,
                s.candidate.key,
            ),
        )

    def ties(self) -> list[Scored]:
        """Those of `ranked` that are as good as the first, and move as little."""
        ranked = self.ranked()
        near = self.objective.tie * min(s.worst for s in ranked)
        return [s for s in ranked if s.worst_bytes == ranked[0].worst_bytes and s.worst <= near]

    @property
    def named_count(self) -> tuple[int, int]:
        """Named schedules at the tiles that were kept: how many were simulated in full, how many there are."""
        named = [key for key, (_, is_named) in self._kinds.items() if is_named]
        return sum(key in self.scored for key in named), len(named)

    def _run(self) -> None:
        pools = [self._pool(config) for config in self.configs]
        pools = self._best_tiles(pools)
        everything = [candidate for pool in pools for candidate in pool]
        early = self._under(self._promising(everything)[:_EARLY], 0)
        self._look("looking at schedules", everything)
        promising = self._promising(everything)
        plain = [c for c in promising if not (isinstance(c.plan, SHIFTING) and c.plan.shift)]  # a look flatters shifts
        baseline = [c for c in promising if self._kinds[c.key][0]]
        first = [*baseline[:1], *promising[: _FIRST // 2], *plain[: _FIRST // 2], *baseline[: _FIRST // 4]]
        self._simulate("simulating what looks best", list(dict.fromkeys(first)), early)
        self._refine()
        rest = [c for c in promising if self._kinds[c.key][1]]
        least = self.looks[promising[0].key].value if promising else inf
        far, far_baseline = (self.objective.within(factor) * least for factor in (_FAR, _FAR_BASELINE))
        near = [c for c in rest if self.looks[c.key].value <= (far_baseline if self._kinds[c.key][0] else far)]
        near.sort(key=lambda c: not self._kinds[c.key][0])  # the common ones first: the best of them is always told
        self._simulate("simulating other named schedules", near)
        if sum(map(self.block_steps, rest)) <= FREE_STEPS:
            self._simulate("simulating the rest of the named", rest)

    def _pool(self, config: KernelConfig) -> list[Candidate]:
        """Everything to begin with under one tile, each once; what has a name goes by it."""
        baseline = list(self.family.all_schedules(self.workload, config.tile))
        named = [*baseline, *self.space.swept(self.workload, config)]
        known = {self.space.recipe(self.workload, schedule, config) for schedule in named}
        made = [recipe for recipe in self._robust(self.space.made(self.workload, config)) if recipe not in known]
        result = {}
        for number, plan in enumerate([*named, *made]):
            candidate = Candidate(plan, config)
            if candidate.key not in result:
                result[candidate.key] = candidate
                self._kinds[candidate.key] = (number < len(baseline), number < len(named))
        return list(result.values())

    def _best_tiles(self, pools: list[list[Candidate]]) -> list[list[Candidate]]:
        """The tiles that look best by a few of their candidates."""
        thin = [[*pool[::_THIN]] for pool in pools]
        self._look("looking at a few", [candidate for pool in thin for candidate in pool])
        best = [min(self.looks.get(c.key, _NOTHING).value for c in pool) for pool in thin]
        order = sorted(range(len(pools)), key=lambda i: best[i])
        near = self.objective.within(_NEAR_TILE) * best[order[0]]
        close = [i for i in order[:_TILES] if best[i] <= near]
        for i in set(order) - set(close):
            for candidate in pools[i]:
                del self._kinds[candidate.key]
        return [pools[i] for i in close]

    def _promising(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """What was looked at and not simulated, the best look first."""
        looks = self.looks
        left = [c for c in candidates if c.key not in self.scored and looks.get(c.key, _NOTHING).value < inf]
        least = self.objective.tie * min((looks[c.key].value for c in left), default=inf)
        return sorted(left, key=lambda c: (max(looks[c.key].value, least), looks[c.key].dram_bytes, c.key))

    def _look(self, what: str, candidates: Sequence[Candidate]) -> None:
        fresh = [c for c in candidates if c.key not in self.looks]
        for done, (i, look) in enumerate(each(self.objective.look, fresh, over=self._has_looked), 1):
            self.looks[fresh[i].key] = look
            self.progress(what, done, len(fresh))

    def _simulate(self, what: str, candidates: Sequence[Candidate], started: Sequence[Candidate] = ()) -> None:
        """In full, a few at a time, under one condition after the other as long as one can be among the best.

        ``started``: what was simulated under the first condition before, and goes on with the others.
        """
        fresh = [*started, *(c for c in candidates if c.key not in self.scored)]
        keep = self._finalists(fresh[0]) if fresh else self.keep
        for start in range(0, len(fresh), _AT_ONCE):
            left = fresh[start : start + _AT_ONCE]
            for at in range(len(self.conditions)):
                bar = sorted(s.worst for s in self.ranked())[keep - 1 : keep]
                left = [c for c in left if not bar or c.key not in self.scored or self.worst(c) <= bar[0]]
                left = self._under(left, at)
                if self._has_to_end():
                    return
            self.progress(what, min(start + _AT_ONCE, len(fresh)), len(fresh))

    def _under(self, candidates: Sequence[Candidate], at: int) -> list[Candidate]:
        """Under one condition, as far as the effort reaches; which have an answer, the best first.

        The first in line is simulated in any case, until something was under this condition.
        """
        reached = {key: len(scored.traffic) for key, scored in self.scored.items()}
        done = [c for c in candidates if reached.get(c.key, 0) > at]
        left: list[Candidate] = []
        none_yet = max(reached.values(), default=0) <= at
        for candidate in (c for c in candidates if reached.get(c.key, 0) <= at):
            if self._allowed(candidate, self.conditions[at], none_yet and not left):
                left.append(candidate)
        for n, answer in each(partial(self._measured, condition=self.conditions[at]), left, over=self._has_to_end):
            self._note(left[n], answer)
        return sorted((c for c in (*done, *left) if c.key in self.scored), key=self.worst)

    def block_steps(self, candidate: Candidate) -> float:
        """About so many steps of blocks that its simulation follows."""
        config = candidate.config
        return self.space.least_time(self.workload, config) * config.wave_blocks / self.space.step(config.tile)

    def _cost(self, candidate: Candidate, condition: Condition) -> float:
        """Lines that its simulation follows, about."""
        tile, times = candidate.config.tile, _FREE_EFFORT if condition.execution.is_asynchronous else 1.0
        if condition.execution.is_reference and self.family.timed and candidate.config.policy == "lru":
            times = _CLOSED_EFFORT
        lines = (tile.bm + tile.bn) * tile.bk * self.workload.in_bytes / LINE_BYTES
        return lines * times * self.block_steps(candidate)

    def _allowed(self, candidate: Candidate, condition: Condition, in_any_case: bool) -> bool:
        """Whether the effort that is left covers its simulation, which is charged."""
        cost = self._cost(candidate, condition)
        if self._spent + cost > self.effort and not in_any_case:
            return False
        self._spent += cost
        return True

    def _finalists(self, candidate: Candidate) -> int:
        """How many are simulated under every condition: for that a half of all effort is meant."""
        of_others = sum(self._cost(candidate, condition) for condition in self.conditions[1:])
        return max(_LEAST_FINALISTS, min(self.keep, int(self.effort / 2 / of_others))) if of_others else self.keep

    def worst(self, candidate: Candidate) -> float:
        """The objective of a candidate where it is largest of the conditions that it was simulated under."""
        return self.scored[candidate.key].worst

    def _note(self, candidate: Candidate, answer: tuple[Traffic, float] | None) -> None:
        if answer is not None:
            before = self.scored.get(candidate.key)
            baseline, named = self._kinds.get(candidate.key, (False, False))
            traffic, values = (before.traffic, before.values) if before else ((), ())
            self.scored[candidate.key] = Scored(
                candidate, (*traffic, answer[0]), (*values, answer[1]), baseline, named
            )  # fmt: skip

    def _measured(self, candidate: Candidate, condition: Condition) -> tuple[Traffic, float] | None:
        try:
            traffic = measure(self.family, self.workload, candidate, condition)
            return traffic, self.objective.value(candidate, condition, traffic)
        except InputError as error:  # a schedule that this tile or this cache cannot take
            self._error = error
            return None

    def _finish_baseline(self) -> None:
        """The best common schedule under every condition, though others leave it behind."""
        while baseline := [s for s in self.scored.values() if s.baseline]:
            best = min(baseline, key=lambda s: (s.worst, s.worst_bytes, s.candidate.key))
            if len(best.traffic) == len(self.conditions):
                return
            condition = self.conditions[len(best.traffic)]
            answers = dict(each(partial(self._measured, condition=condition), [best.candidate], over=self.is_late))
            if not answers:
                return
            self._note(best.candidate, answers[0])

    def _refine(self) -> None:
        expanded: set[tuple[str, str]] = set()
        for _ in range(_ROUNDS):
            parents = [s for s in islice(self.ranked(), 2 * _PARENTS) if s.candidate.key not in expanded][:_PARENTS]
            children = []
            for parent in parents:
                expanded.add(parent.candidate.key)
                children += self._children(parent.candidate)
            if not children or self._is_over():
                return
            fresh = [c for c in {c.key: c for c in children}.values() if c.key not in self.scored]
            self._look("looking beside the best", fresh)
            least = min(self.looks.get(s.candidate.key, _NOTHING).value for s in self.ranked()[:_PARENTS])
            near = self.objective.within(_WORTH) * least
            worth = [c for c in self._promising(fresh) if self.looks[c.key].value <= near]
            self._simulate("simulating beside the best", worth[:_CHILDREN])

    def _children(self, candidate: Candidate) -> list[Candidate]:
        plan, config = candidate.plan, candidate.config
        recipe = plan if isinstance(plan, Recipe) else self.space.recipe(self.workload, plan, config)
        if recipe is None:
            return []
        return [Candidate(near, config) for near in self._robust(self.space.near(self.workload, recipe, config))]

    def _robust(self, recipes: Iterable[Any]) -> list[Any]:
        """Those whose savings were found in launches under all the executions asked for."""
        free = any(condition.execution.is_asynchronous for condition in self.conditions)
        return [recipe for recipe in recipes if not (free and recipe.needs_waves)]

    def _is_over(self) -> bool:
        """Whether no more should be looked at or begun."""
        self.why_over = self.why_over or self.clock.why_over(_SHARE)
        return self.why_over is not None

    def _has_looked(self) -> bool:
        """Whether looks should end: not before there is one."""
        return bool(self.looks) and self._is_over()

    def _has_to_end(self) -> bool:
        """Whether what is being simulated should be left: not before there is an answer under the first condition."""
        return bool(self.scored) and self._is_over()

    def is_late(self) -> bool:
        """Whether the whole time is over, or somebody asked to stop."""
        self.why_over = self.why_over or self.clock.why_over()
        return self.why_over == "interrupted" or self.clock.why_over() is not None
