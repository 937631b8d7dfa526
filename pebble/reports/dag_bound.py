"""``bound dag.json``: every general theorem on a DAG, and a pebbling beside the best of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pebble.bounds.dag import best_bound, dag_bounds_in_turn
from pebble.bounds.dag.base import DagBound
from pebble.errors import InputError
from pebble.game import Cost, Game, Variant
from pebble.reports.base import Report
from pebble.reports.dags import read_dag_source
from pebble.reports.target import TargetOptions, whole
from pebble.solvers import solve
from pebble.system.clock import Clock, OutOfTimeError
from pebble.units import MAX_SIZE

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    best : DagBound
    upper : int or None
        Cost of a pebbling that was replayed.
    upper_from : str
        What found it.
    """

    label: str
    game: Game
    capacity: int
    bounds: tuple[DagBound, ...]
    best: DagBound
    upper: Cost | None
    upper_from: str

    question = "bound"

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
    label: str,
    read: Callable[[], Game],
    capacity: int,
    time_limit: float = 10.0,
    stop: threading.Event | None = None,
) -> DagBounds:
    """Bound a game from both sides.

    Parameters
    ----------
    label : str
    read : callable
        Makes the game; reading counts as work that can be stopped.
    capacity : int
        Pebbles, or weight units.
    time_limit : float
        Seconds for each theorem that can use it.
    stop : threading.Event, optional
        Set it to get what is proved by then.

    Raises
    ------
    KeyboardInterrupt
        Stopped before anything was proved.
    """
    clock = Clock(time_limit, stop)
    games: list[Game] = []
    known: list[DagBound] = []

    def prove() -> None:
        games.append(read())
        for bound in dag_bounds_in_turn(games[0], capacity, time_limit):
            known.append(bound)

    try:
        clock.finish(prove, limited=False)
    except OutOfTimeError:
        if not known:
            raise KeyboardInterrupt from None
    game, bounds = games[0], tuple(known)
    best = best_bound(bounds)
    assert best.value is not None
    found = solve(
        game,
        capacity,
        solver="heuristic",
        time_limit=time_limit,
        known_lower_bound=best.value,
        stop=clock.stop,
        general_bounds=False,
    )
    return DagBounds(label, game, capacity, bounds, best, found.upper_bound, found.upper_from)


def read_and_bound(
    what: Any,
    where: TargetOptions,
    capacity: int | None,
    variant: str | None,
    time_limit: float,
    stop: threading.Event | None,
    parameters: Mapping[str, Any],
) -> DagBounds:
    """The same from a file, a graph or a recipe with its parameters; arguments as for `pebble.bound`.

    Raises
    ------
    InputError
        A machine or cache, no capacity, or a DAG that cannot be read.
    """

    given = [key for key, value in where.items() if value is not None]
    if given:
        raise InputError(f"{str(what)[:80]}: got --{given[0]}, expected --capacity NUMBER: a DAG has no bytes.")
    if capacity is None:
        raise InputError("--capacity missing: expected --capacity NUMBER, the pebbles that fit in fast memory.")
    played = None if variant is None else Variant.parse(variant)
    words = [str(what), *(f"{key}={value}" for key, value in parameters.items())]
    label = " ".join(words) if isinstance(what, str | Path) else f"DAG of {len(what)} nodes"

    def read() -> Game:
        return Game.from_dag(read_dag_source(what, parameters, played)[1], played)

    return bound_dag(label, read, whole("--capacity", capacity, 1, MAX_SIZE), time_limit, stop)
