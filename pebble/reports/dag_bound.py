"""``bound dag.json``: every general theorem on a DAG, and a pebbling beside the best of them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pebble.bounds.dag import best_bound, dag_bounds_in_turn
from pebble.bounds.dag.windows import DagBound
from pebble.errors import InputError
from pebble.game import Cost, Game, Variant
from pebble.reports.dags import plain_dag, read_dag_source
from pebble.reports.report import Report
from pebble.reports.target import whole
from pebble.solvers import Known, SolveResult, solve
from pebble.system.clock import Clock, OutOfTimeError
from pebble.units import MAX_SIZE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_SEARCHED = 24  # values of a game that is also searched, as `pebble solve` does
SEARCH_SECONDS = 5.0


@dataclass(frozen=True, repr=False)
class DagBounds(Report):
    """What is proved and known of a game.

    Attributes
    ----------
    label : str
    game : Game
    capacity : int
        Pebbles, or weight units.
    bounds : tuple of DagBound
        Every theorem, with its value here.
    upper : int or None
        Cost of a pebbling that was replayed.
    upper_from : str
        What found it.
    """

    label: str
    game: Game
    capacity: int
    bounds: tuple[DagBound, ...]
    upper: Cost | None
    upper_from: str

    question = "bound"
    table_keys = ("name", "value", "note")

    @property
    def best(self) -> DagBound:
        """The largest of those that hold."""
        return best_bound(self.bounds)

    def summary(self) -> str:
        upper = "no pebbling found" if self.upper is None else f"a pebbling of {self.upper} is known"
        return f"{self.label}, capacity {self.capacity}, {self.game.variant}: at least {self.best.value}, {upper}"

    def rows(self) -> list[dict[str, Any]]:
        """A row per theorem."""
        return [bound.to_json() for bound in self.bounds]

    def plot(self, ax: Axes | None = None) -> Axes:
        """What each theorem proves, as bars."""
        from pebble.plots.bars import plot_bars

        bars = [(bound.name, (bound.value,)) for bound in self.bounds if bound.value is not None]
        return plot_bars(bars, "loads + stores at least", self.label, ax)

    def document(self) -> dict[str, Any]:
        game, best, upper = self.game, self.best, self.upper
        shown = {"label": self.label, "family": "dag", "values": game.size, "operations": len(game.tasks)}
        lower = {
            "elements": best.value,
            "bytes": None,
            "method": best.name,
            "theorem": best.theorem.to_json(),
            "certificate": {"note": best.note},
        }
        return {
            "workload": shown,
            "capacity": {"elements": self.capacity, "bytes": None, "what": "pebbles"},
            "buffers": "single",
            "variant": str(game.variant),
            "recompute": "allowed" if game.variant.recompute else "forbidden",
            "lower_bound": lower,
            "upper_bound": None if upper is None else {"elements": upper, "bytes": None, "schedule": self.upper_from},
            "gap": None if upper is None or not best.value else upper / best.value,
            "bounds": self.rows(),
        }


def bound_dag(
    dag: Any,
    parameters: Mapping[str, Any],
    capacity: int | str | None,
    variant: str | None = None,
    *,
    time_limit: float = 10.0,
    stop: threading.Event | None = None,
) -> DagBounds:
    """Bound the game of a file, a graph or a recipe with its parameters from both sides; arguments as `pebble.bound`.

    Raises
    ------
    InputError
        No capacity, or a DAG that cannot be read.
    KeyboardInterrupt
        Stopped before anything was proved.
    """
    if capacity is None:
        raise InputError("--capacity missing: expected --capacity NUMBER, the pebbles that fit in fast memory.")
    size = whole("--capacity", capacity, 1, MAX_SIZE)
    played = None if variant is None else Variant.parse(variant)
    words = [str(dag), *(f"{key}={value}" for key, value in parameters.items())]
    dag = plain_dag(dag) or dag
    label = " ".join(words) if isinstance(dag, str | Path) else f"DAG of {len(dag)} nodes"
    clock = Clock(time_limit, stop)
    games: list[Game] = []
    known: list[DagBound] = []

    def prove() -> None:  # reading counts as work that can be stopped
        games.append(Game.from_dag(read_dag_source(dag, parameters, played)[1], played))
        for bound in dag_bounds_in_turn(games[0], size, time_limit):
            known.append(bound)

    try:
        clock.finish(prove, limited=False)
    except OutOfTimeError:
        if not known:
            raise KeyboardInterrupt from None
    game, bounds = games[0], tuple(known)
    best = best_bound(bounds)
    assert best.value is not None
    small = game.size <= MOST_SEARCHED
    result = solve(
        game,
        size,
        solver="auto" if small else "heuristic",
        time_limit=Clock(min(time_limit, SEARCH_SECONDS) if small else time_limit, clock.stop),
        known=Known(lower_bound=best.value, open_to_theorems=False),
    )
    return DagBounds(label, game, size, (*bounds, *_solved(game, result, best)), result.upper_bound, result.upper_from)


def _solved(game: Game, result: SolveResult, best: DagBound) -> tuple[DagBound, ...]:
    """What a solver proves beyond the theorems: by its own bounds, and by search where the game is small."""
    assert best.value is not None
    value = ceil(result.lower_bound)
    if value <= best.value:
        return ()
    note = f"{result.solver}: {result.stop_reason}" if result.status == "optimal" else ", ".join(result.proof)
    return (DagBound("solver", "this program, as `pebble solve` runs it", value, (game.variant,), note, searched=True),)
