"""``solve``: the cheapest pebbling of a small DAG, proved, or the tightest interval."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pebble.errors import GapOpenError, InputError, check_flag
from pebble.game import SINGLE, BufferModel, Cost, Game, Pebbling, Variant, minimum_capacity
from pebble.game import replay as play
from pebble.game.moves import cost_to_json
from pebble.reports.capacity import known_bound
from pebble.reports.dags import read_dag_source
from pebble.reports.game_rules import MAX_CAPACITY, GameRules
from pebble.reports.on_sms import Baseline, SmMemory, common_baselines, timeline
from pebble.reports.report import Report
from pebble.reports.target import whole
from pebble.system.clock import Clock, OutOfTimeError, check_seconds
from pebble.system.files import check_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pebble.plots.pebbling import Event
    from pebble.solvers import Progress, SolveResult


def shown(cost: Cost | None) -> str:
    """A cost for a reader."""
    return "none" if cost is None else str(cost) if isinstance(cost, int) else f"{float(cost):g}"


def shown_memories(capacity: int, buffers: BufferModel) -> str:
    """The memories of a game and what fits in each, for a reader."""
    return f"capacity {capacity}" if buffers == SINGLE else f"{buffers}, capacity {capacity} each"


def memories_document(buffers: BufferModel) -> dict[str, Any]:
    """The memories of a game as plain data; nothing for one."""
    spec = {} if buffers == SINGLE else buffers.to_json()
    return {"buffers": spec.pop("kind"), **spec} if spec else {}


@dataclass(frozen=True)
class Effort:
    """Who solves, and for how long, as `pebble.solve` takes it."""

    solver: str = "auto"
    time_limit: float = 60.0
    seed: int = 0
    progress: Callable[[Progress], None] | None = None
    stop: threading.Event | None = None


@dataclass(frozen=True, repr=False)
class Solution(Report):
    """The interval around the optimum, and the pebbling that costs its upper end.

    Attributes
    ----------
    label : str
    game : Game
    capacity : int
        Pebbles (weight units), of each memory.
    result : SolveResult
        Bounds, moves, what proved them, why it stopped.
    memory : SmMemory
        What the capacity is.
    most_tasks : int or None
        That an SM may do.
    split : str or None
        SMs of the first and of the second product, where each has its own, as in "2:1".
    """

    label: str
    game: Game
    capacity: int
    result: SolveResult
    memory: SmMemory
    most_tasks: int | None = None
    split: str | None = None

    question = "solve"

    @property
    def best(self) -> Pebbling | None:
        """The cheapest pebbling found; None where none was."""
        return self.result.pebbling

    @property
    def lower_bound(self) -> Cost:
        """No pebbling costs less."""
        return self.result.lower_bound

    @property
    def upper_bound(self) -> Cost | None:
        """The cheapest pebbling found, replayed, costs this."""
        return self.result.upper_bound

    @property
    def optimal(self) -> bool:
        """Whether the two meet."""
        return self.result.status == "optimal"

    @cached_property
    def common(self) -> list[Baseline]:
        """On several SMs, schedules in common use, replayed in the same game."""
        return common_baselines(self.game, self.capacity, self.result.buffers, self.most_tasks)

    @property
    def own(self) -> Baseline | None:
        """On several SMs, what was found, as these are told."""
        if self.result.pebbling is None:
            return None
        replayed = play(self.game, self.result.pebbling)
        tasks = tuple(sm.computations for sm in replayed.per_sm)
        return Baseline("found here", replayed.cost, tasks, len(self.timeline))

    @property
    def timeline(self) -> list[list[str]]:
        """On several SMs, the pebbling line by line, a column an SM."""
        return timeline(self.game, self.result.moves, self.result.buffers.sms)

    @property
    def moves(self) -> list[list[str | int]]:
        """The pebbling as plain moves, as `pebble.replay` takes them."""
        return [move.to_json() for move in self.result.moves]

    def summary(self) -> str:
        r = self.result
        each = f"capacity {self.capacity}" + ("" if r.buffers == SINGLE else f" each of {r.buffers}")
        if self.optimal:
            return f"{self.label}, {each}, {r.variant}: the optimum is {shown(r.upper_bound)}"
        return f"{self.label}, {each}, {r.variant}: between {shown(r.lower_bound)} and {shown(r.upper_bound)}"

    def rows(self) -> list[dict[str, Any]]:
        """A row per move."""
        return [{"step": step, "move": str(move)} for step, move in enumerate(self.result.moves, start=1)]

    def document(self) -> dict[str, Any]:
        result = self.result
        document: dict[str, Any] = {
            "instance": self.label,
            "capacity": self.capacity,
            "variant": str(result.variant),
        }
        if result.buffers != SINGLE:
            document |= {**memories_document(result.buffers), **self.memory.to_json(), "per_sm": None}
            document |= {} if self.split is None else {"split": self.split}
            document |= {} if self.most_tasks is None else {"tasks_per_sm": self.most_tasks}
            if result.pebbling is not None:
                each = [sm.to_json() for sm in play(self.game, result.pebbling).per_sm]
                document["per_sm"] = {key: [sm[key] for sm in each] for key in each[0]}
            if result.buffers.memories > 1:
                document["common_schedules"] = [item.to_json() for item in self.common]
                document["timeline"] = self.timeline
        return document | {
            "solver": result.solver,
            "status": result.status,
            "lower_bound": cost_to_json(result.lower_bound),
            "upper_bound": cost_to_json(result.upper_bound),
            "proof": list(result.proof),
            "upper_from": result.upper_from,
            "stop_reason": result.stop_reason,
            "seconds": round(result.seconds, 3),
            "details": dict(result.details),
            "moves": self.moves,
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Which value is in fast memory when, with its loads, stores and computations.

        Raises
        ------
        InputError
            No pebbling was found, it is too long to draw, or it is one of several memories.
        """
        from pebble.plots.pebbling import plot_pebbling
        from pebble.plots.save import axes, small_title

        ax = plot_pebbling(self._events, self.capacity, axes(ax))
        small_title(ax, self.summary())
        ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
        return ax

    def figure(self) -> Figure:
        """The same, and below it how many values are in fast memory."""
        from pebble.plots.pebbling import pebbling_figure

        return pebbling_figure(self._events, self.capacity, self.summary())

    @property
    def _events(self) -> list[Event]:
        from pebble.plots.pebbling import move_events

        if self.result.buffers != SINGLE:
            raise InputError(f"plot: got a pebbling of {self.result.buffers}, expected one of one memory.")
        if not self.result.moves:
            raise InputError("plot: no pebbling was found; give `pebble.solve` more time.")
        return move_events(self.moves)

    def certify(
        self,
        path: str | Path,
        seconds: float = 120.0,
        log: bool = False,
        tell: Callable[[str], object] = lambda stage: None,
        missed: Callable[[str], object] = lambda why: None,
    ) -> dict[str, Any]:
        """Write the pebbling and a proof of the bound for `pebble.verify`; looked for that long.

        With ``log`` the proof is one of cutting planes that other checkers read too: a formula, ``.opb``, and its
        refutation, ``.pbp``, beside ``path``. Needs the extra ``proofs``. ``tell`` is called with what begins,
        ``missed`` with why the whole bound was not proved, where it was not.

        Raises
        ------
        GapOpenError
            ``log``, and no refutation was found in time.
        InputError
            A log of several memories, pooled buffers, a game too large, or a file that cannot be written.
        """
        from pebble.proof.on_sms import game_certificate
        from pebble.proof.optimum import solve_certificate

        check_path("certify", path)
        check_seconds("seconds", seconds)
        if self.result.buffers != SINGLE:
            if log:
                raise InputError("certify: a log of cutting planes is of a game of one memory.")
            told = (Path(path), seconds, tell, missed)
            return game_certificate(self.game, self.capacity, self.result, self.most_tasks, *told)
        if log:
            from pebble.proof.refutation import check_can_refute

            check_can_refute(self.game)
        return solve_certificate(self.game, self.capacity, self.result, Path(path), seconds, log, tell, missed)


def read_game(
    source: Any, values: Mapping[str, Any], variant: Variant | str | None, unit_weights: bool
) -> tuple[str, Game]:
    """The game to be played on a family, a file or a DAG."""
    rules = None if variant is None else Variant.parse(str(variant))
    label, dag = read_dag_source(source, values, rules, unit_weights)
    return label, Game.from_dag(dag, rules)


def solve_game(
    dag: Any, parameters: Mapping[str, Any], capacity: int | str | None, rules: GameRules, effort: Effort
) -> Solution:
    """The cheapest pebbling, proved, or the tightest interval; arguments and errors as for `pebble.solve`."""
    progress = effort.progress
    if progress is not None and not callable(progress):
        raise InputError(f"progress: got {str(progress)[:40]!r}, expected a function that takes a Progress.")
    check_flag("unit_weights", rules.unit_weights)
    clock = Clock(effort.time_limit, effort.stop)
    memories, values = rules.memories, dict(parameters)
    memory, seed = rules.memory(values, capacity), whole("--seed", effort.seed, -MAX_CAPACITY, MAX_CAPACITY)
    size = memory.capacity
    try:
        label, game = clock.finish(lambda: read_game(dag, values, rules.variant, rules.unit_weights))
    except OutOfTimeError:
        error = GapOpenError(
            f"solve: nothing proved yet: {clock.why_over()}, before the DAG was ready; give it more time."
        )
        error.reason, error.seconds = f"{clock.why_over()}, before the DAG was ready", clock.passed
        raise error from None
    from pebble.solvers import Known
    from pebble.solvers import solve as run
    from pebble.solvers.explicit_start import explicit_start

    most = rules.share(len(game.tasks))
    game = rules.placed(game)
    known, model = 0, memories or SINGLE
    if size >= minimum_capacity(game):
        known = known_bound(dag, values, game, size, model, most)
    result = run(
        game,
        size,
        None,
        effort.solver,
        clock,
        seed,
        progress,
        Known(lambda: explicit_start(game, size, model, most), known),
        buffers=memories,
        most_tasks_per_sm=most,
    )
    label = label if rules.split is None else f"{label}, products on {rules.split} SMs"
    label = label if most is None else f"{label}, at most {most} tasks an SM"
    return Solution(label, game, size, result, memory, most, rules.split)
