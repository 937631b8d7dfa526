"""A user's own pebbling: checked by the referee, costed, and put beside the optimum or what is known of it."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pebble.errors import IllegalMoveError
from pebble.game import SINGLE, BufferModel, Cost, Game, Pebbling, Replay, check_capacity, read_moves
from pebble.game.moves import cost_to_json, read_moves_file
from pebble.game.referee import play
from pebble.solvers.driver import Known, solve
from pebble.solvers.result import SolveResult
from pebble.system.clock import Clock, check_seconds

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class ReplayedMoves:
    """What became of a pebbling.

    Attributes
    ----------
    pebbling, played : Pebbling and Replay, or None
        The pebbling with its cost, and what it does; None when a move is illegal, or the moves end too early.
    illegal : IllegalMoveError or None
        The first broken rule, with its step, rule and node; its text is one sentence.
    solved : SolveResult or None
        The solver's interval around the optimum, from this pebbling on; None where a move is illegal, or no solver
        plays such a game.
    compulsory : int
        What any pebbling moves.
    """

    pebbling: Pebbling | None
    illegal: IllegalMoveError | None
    played: Replay | None
    solved: SolveResult | None
    compulsory: int

    @property
    def legal(self) -> bool:
        """Whether every move obeys the rules and every output ends in slow memory."""
        return self.illegal is None

    @property
    def cost(self) -> Cost | None:
        """Loads + stores + omega * hops; None when illegal."""
        return None if self.played is None else self.played.cost

    @property
    def lower_bound(self) -> Cost:
        """No pebbling of this game costs less."""
        return self.compulsory if self.solved is None else max(self.solved.lower_bound, self.compulsory)

    @property
    def upper_bound(self) -> Cost | None:
        """The cheapest pebbling known, this one included, costs this; with `lower_bound` it encloses the optimum."""
        return self.cost if self.solved is None else self.solved.upper_bound

    @property
    def optimum(self) -> Cost | None:
        """The least cost of any pebbling, where it is known."""
        return self.lower_bound if self.lower_bound == self.upper_bound else None

    @property
    def optimal(self) -> bool:
        """Whether this pebbling is proved to be as cheap as any."""
        return self.cost is not None and self.cost == self.optimum

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        error, played, solved = self.illegal, self.played, self.solved
        return {
            "legal": self.legal,
            "illegal": error and {"step": error.step, "rule": error.rule, "node": error.node, "text": str(error)},
            "cost": cost_to_json(self.cost),
            "loads": played and played.loads,
            "stores": played and played.stores,
            "hops": played and played.hops,
            "peak": played and played.peak,
            "per_sm": played and [sm.to_json() for sm in played.per_sm],
            "lower_bound": cost_to_json(self.lower_bound),
            "upper_bound": cost_to_json(self.upper_bound),
            "optimum": cost_to_json(self.optimum),
            "optimal": self.optimal,
            "proof": ["compulsory bound"] if solved is None else list(solved.proof),
            "stop_reason": solved and solved.stop_reason,
        }


def replay_moves(
    dag: nx.DiGraph[Hashable] | Game,
    moves: Iterable[Any] | str | Path,
    capacity: int,
    variant: str | None = None,
    buffers: BufferModel | None = None,
    *,
    time_limit: float = 10.0,
    stop: threading.Event | None = None,
) -> ReplayedMoves:
    """Check a pebbling given as plain moves, cost it, and look for the optimum beside it where it is legal.

    Parameters
    ----------
    moves : iterable, str or Path
        Plain moves, as :func:`pebble.game.read_moves` takes them, or a JSON file of them; nodes of the DAG are
        named by their text.
    dag, capacity, variant, buffers, time_limit, stop
        As for :func:`pebble.solvers.solve`.

    Raises
    ------
    InputError
        What is given is no DAG, no list of moves, or no option. An illegal move is an answer, not an error.
    InfeasibleError
        The capacity is below the least that works.

    Examples
    --------
    >>> import networkx as nx
    >>> dag = nx.DiGraph([("a", "c"), ("b", "c")])
    >>> found = replay_moves(dag, [("load", "a"), ("load", "b"), ("compute", "c"), ("store", "c")], capacity=3)
    >>> found.cost, found.optimal
    (3, True)
    >>> print(replay_moves(dag, [("load", "a"), ("compute", "c")], capacity=3).illegal)
    illegal pebbling at step 2, node 'c', rule operand-not-red: its operand 'b' is not in fast memory.
    """
    game = dag if isinstance(dag, Game) else Game.from_dag(dag, variant)
    memories = SINGLE if buffers is None else buffers
    check_capacity(game, memories.memory_size(capacity))
    check_seconds("time limit", time_limit)  # before an illegal move leaves nothing to look for
    names = game.item_index.keys() | game.task_index.keys()
    if isinstance(moves, str | Path):
        moves_read = read_moves_file(moves, names, memories.memories)
    else:
        moves_read = read_moves(moves, names, memories.memories)
    try:
        played = play(game, Pebbling(game.variant, capacity, moves_read, 0, memories))
    except IllegalMoveError as error:
        return ReplayedMoves(None, error, None, None, game.compulsory)
    pebbling = Pebbling(game.variant, capacity, moves_read, played.cost, memories)
    solved = None
    if memories.memories == 1 or not (game.variant.recompute or game.variant.sliding):
        solved = solve(game, capacity, time_limit=Clock(time_limit, stop), known=Known(pebbling), buffers=memories)
    return ReplayedMoves(pebbling, None, played, solved, game.compulsory)
