"""``replay``: a user's own pebbling, checked, costed, beside the optimum."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pebble.errors import InputError, check_flag
from pebble.game import SINGLE, BufferModel, Cost, Game
from pebble.reports.game_rules import MAX_CAPACITY, GameRules
from pebble.reports.report import Report
from pebble.reports.solve import memories_document, read_game, shown, shown_memories
from pebble.reports.target import whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pebble.solvers import ReplayedMoves


@dataclass(frozen=True, repr=False)
class Replayed(Report):
    """What became of a user's own pebbling.

    Attributes
    ----------
    label : str
    game : Game
    capacity : int
    replayed : ReplayedMoves
        Legal or not, cost, loads, stores, peak; and the interval around the optimum.
    buffers : BufferModel
        The memories.
    """

    label: str
    game: Game
    capacity: int
    replayed: ReplayedMoves
    buffers: BufferModel = SINGLE

    question = "replay"
    old_names = (("found", "replayed"),)

    @property
    def legal(self) -> bool:
        """Whether every move obeys the rules and every output ends in slow memory."""
        return self.replayed.legal

    @property
    def cost(self) -> Cost | None:
        """Loads + stores + omega * hops; None when illegal."""
        return self.replayed.cost

    @property
    def optimal(self) -> bool:
        """Whether it is proved to be as cheap as any."""
        return self.replayed.optimal

    def summary(self) -> str:
        result = self.replayed
        low, high = shown(result.lower_bound), shown(result.upper_bound)
        known = f"the optimum is {low}" if low == high else f"the optimum is between {low} and {high}"
        what = str(result.illegal) if result.illegal else f"legal, costs {shown(result.cost)}; {known}"
        return f"{self.label}, {shown_memories(self.capacity, self.buffers)}, {self.game.variant}: {what}"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Which value is in fast memory when; errors as for `Solution.plot`."""
        from pebble.plots.pebbling import move_events, plot_pebbling
        from pebble.plots.save import axes, small_title

        pebbling = self.replayed.pebbling
        if pebbling is None or self.buffers != SINGLE:
            raise InputError("plot: expected a legal pebbling of one memory.")
        ax = plot_pebbling(move_events([move.to_json() for move in pebbling.moves]), self.capacity, axes(ax))
        small_title(ax, self.summary())
        return ax

    def rows(self) -> list[dict[str, Any]]:
        """One row: cost, loads, stores, peak, and the interval around the optimum."""
        spec = self.replayed.to_json()
        keys = ("legal", "cost", "loads", "stores", "peak", "lower_bound", "upper_bound", "optimal")
        return [{key: spec[key] for key in keys}]

    def document(self) -> dict[str, Any]:
        game = {"instance": self.label, "capacity": self.capacity, "variant": str(self.game.variant)}
        return game | memories_document(self.buffers) | self.replayed.to_json()


def replay_game(
    dag: Any,
    parameters: Mapping[str, Any],
    moves: Iterable[Any] | str | Path,
    capacity: int | str,
    rules: GameRules,
    *,
    time_limit: float = 10.0,
    stop: threading.Event | None = None,
) -> Replayed:
    """A pebbling of the user's own, checked and costed; arguments and errors as for `pebble.replay`."""
    from pebble.solvers import replay_moves

    memories = rules.memories
    label, game = read_game(dag, parameters, rules.variant, check_flag("unit_weights", rules.unit_weights))
    size = whole("--capacity", capacity, 0, MAX_CAPACITY)
    result = replay_moves(game, moves, size, buffers=memories, time_limit=time_limit, stop=stop)
    return Replayed(label, game, size, result, SINGLE if memories is None else memories)
