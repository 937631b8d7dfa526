"""The cheapest pebbling with several memories, proved, or an interval around it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING

from pebble.buffers.game import check_variant, from_single
from pebble.buffers.state import BufferResult, Incumbent
from pebble.errors import InputError, UnknownNameError
from pebble.game import Game, Variant, check_capacity
from pebble.models.buffers import BufferModel
from pebble.solvers import solve

if TYPE_CHECKING:
    import networkx as nx

SOLVERS: dict[str, str] = {
    "cpsat": "pebble.buffers.cpsat:solve_by_cpsat",
    "milp": "pebble.buffers.milp:solve_by_milp",
    "search": "pebble.buffers.search:solve_by_search",
}
MAX_VARIABLES = 60_000


def solve_buffers(
    dag: nx.DiGraph[Hashable] | Game,
    capacity: int,
    buffers: BufferModel,
    variant: Variant | str | None = None,
    solver: str = "auto",
    time_limit: float = 60.0,
    seed: int = 0,
    most_tasks_per_sm: int | None = None,
    stop: threading.Event | None = None,
    started: float | None = None,
) -> BufferResult:
    """Solve the game of :mod:`pebble.buffers.game`.

    Parameters
    ----------
    dag : networkx.DiGraph or Game
    capacity : int
        S, weight that one SM holds.
    buffers : BufferModel
    variant : Variant or str, optional
        With several memories one-shot or in-place.
    solver : str
        ``auto`` (cpsat), ``cpsat``, ``milp`` or ``search``; with one memory, a name of :data:`pebble.solvers.SOLVERS`.
    time_limit : float
        Seconds.
    most_tasks_per_sm : int, optional
        Load balance, which is the makespan when every task takes as long: no SM does more tasks. Not for ``search``.
    stop : threading.Event, optional
        Set it to get the interval soon.
    started : float, optional
        When the time limit began, by ``time.monotonic``; by default now.

    Raises
    ------
    InfeasibleError
        The capacity is below the least that works.
    InputError
        The DAG, the variant or an option is not usable, or the DAG is too large.
    SolverDisagreementError
        A proven bound exceeds the cost of a legal pebbling.

    Examples
    --------
    >>> import networkx as nx
    >>> found = solve_buffers(nx.DiGraph([("a", "c"), ("b", "c")]), 3, BufferModel("sm-local", 2))
    >>> found.upper_bound, found.status
    (Fraction(3, 1), 'optimal')
    """
    game = dag if isinstance(dag, Game) else Game.from_dag(dag, variant)
    check_capacity(game, capacity)
    if buffers.memories == 1:
        return _one_memory(game, capacity, buffers, solver, time_limit, seed, stop, started)
    check_variant(game)
    name = "cpsat" if solver == "auto" else solver
    if name not in SOLVERS:
        raise UnknownNameError("solver for several memories", solver, SOLVERS, "pebble solve --help")
    tasks, sms = len(game.tasks), buffers.memories
    size = tasks * sms * (tasks + game.size * (3 + sms))
    if name != "search" and size > MAX_VARIABLES:
        raise InputError(
            f"solver {name}: {game.size} values, {tasks} operations and {sms} SMs make a program of about {size} "
            f"variables; the limit is {MAX_VARIABLES}. Use `pebble bound --buffers` for a lower bound."
        )
    if most_tasks_per_sm is not None:
        if name == "search":
            raise InputError("solver search: got a limit on tasks per SM, which it does not know; use cpsat or milp.")
        if most_tasks_per_sm * sms < tasks:
            raise InputError(
                f"tasks per SM: got {most_tasks_per_sm} on {sms} SMs for {tasks} tasks, expected at least "
                f"{-(-tasks // sms)}."
            )
    best = Incumbent(game, capacity, buffers, time_limit, seed, most_tasks_per_sm, stop, started)
    if most_tasks_per_sm is None or most_tasks_per_sm >= tasks:
        # one SM can do everything alone
        limit = max(0.1, best.seconds_left / 10)
        alone = solve(
            game, capacity, solver="heuristic", time_limit=limit, seed=seed, stop=best.stop, general_bounds=False
        )
        if alone.pebbling is not None:
            best.offer(from_single(alone.pebbling, buffers, capacity).moves, "heuristic at one SM")
    if best.closed:
        return best.result(name, "proved optimal")
    module, function = SOLVERS[name].split(":")
    run: Callable[[Incumbent], str] = getattr(import_module(module), function)
    reason = run(best)
    if best.closed:
        reason = reason if reason.startswith("proved") else "proved optimal"
    elif best.stop.is_set():
        reason = "interrupted"
    elif best.seconds_left == 0:
        reason = f"time limit of {time_limit:g} s"
    return best.result(name, reason)


def _one_memory(
    game: Game,
    capacity: int,
    buffers: BufferModel,
    solver: str,
    time_limit: float,
    seed: int,
    stop: threading.Event | None,
    started: float | None,
) -> BufferResult:
    memory = buffers.memory_size(capacity)
    found = solve(game, memory, solver=solver, time_limit=time_limit, seed=seed, stop=stop, started=started)
    pebbling = None
    if found.pebbling is not None and not game.variant.sliding and not game.variant.recompute:
        pebbling = from_single(found.pebbling, buffers, capacity)
    return BufferResult(
        Fraction(found.lower_bound),
        None if found.upper_bound is None else Fraction(found.upper_bound),
        pebbling,
        found.status,
        found.stop_reason,
        found.variant,
        buffers,
        found.solver,
        found.seconds,
        found.proof,
        found.upper_from,
    )
