"""``bound dag.json``: every general theorem on a DAG, and a pebbling beside the best of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pebble.bounds.dag import best_bound, dag_bounds
from pebble.bounds.dag.base import DagBound
from pebble.game import Game
from pebble.reports.base import Report
from pebble.solvers import solve


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
    upper: int | None
    upper_from: str

    question = "bound"

    def summary(self) -> str:
        upper = "no pebbling found" if self.upper is None else f"a pebbling of {self.upper} is known"
        return f"{self.label}, capacity {self.capacity}, {self.game.variant}: at least {self.best.value}, {upper}"

    def rows(self) -> list[dict[str, Any]]:
        """A row per theorem."""
        return [bound.to_json() for bound in self.bounds]

    def document(self) -> dict[str, Any]:
        game, best, upper = self.game, self.best, self.upper
        shown = {"label": self.label, "family": "dag", "values": game.size, "operations": len(game.tasks)}
        lower = {"elements": best.value, "bytes": None, "method": best.name, "certificate": {"note": best.note}}
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


def bound_dag(label: str, game: Game, capacity: int, time_limit: float = 10.0) -> DagBounds:
    """Bound a game from both sides; ``time_limit`` in seconds for each theorem that can use it."""
    bounds = dag_bounds(game, capacity, time_limit)
    best = best_bound(bounds)
    assert best.value is not None
    found = solve(game, capacity, solver="heuristic", time_limit=time_limit, known_lower_bound=best.value)
    return DagBounds(label, game, capacity, tuple(bounds), best, found.upper_bound, found.upper_from)
