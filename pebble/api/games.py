"""`pebble.solve` and `pebble.replay`: the cheapest pebbling of a small DAG, and one of your own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from pebble.game import BufferModel
from pebble.reports.solve import Effort, GameRules, Solution, solve_game

if TYPE_CHECKING:
    from pebble.reports.replay import Replayed
    from pebble.solvers import Progress


def solve(
    dag: Any,
    capacity: int | str,
    *,
    variant: str | None = None,
    solver: str = "auto",
    time_limit: float = 60.0,
    seed: int = 0,
    buffers: str | BufferModel | None = None,
    sms: int | str | None = None,
    omega: str | float | None = None,
    topology: str | None = None,
    tasks_per_sm: int | str | None = None,
    unit_weights: bool = False,
    progress: Callable[[Progress], None] | None = None,
    stop: Event | None = None,
    **parameters: Any,
) -> Solution:
    """The cheapest pebbling of a computation DAG, proved, or the tightest interval when time runs out.

    Parameters
    ----------
    dag : networkx.DiGraph, workload, str or Path
        As for `pebble.dag`; a family takes its ``parameters`` by keyword.
    capacity : int
        Pebbles (with weights: weight units) that fit in fast memory; with several SMs, in each.
    variant : str, optional
        ``one-shot``, ``one-shot-sliding``, ``recompute``, ``recompute-sliding`` or ``in-place``; by default in-place
        for a DAG with accumulators, one-shot for any other.
    solver : str
        ``auto``, ``search``, ``cpsat``, ``milp`` or ``heuristic``.
    time_limit : float
        Seconds, reading the DAG included.
    seed : int
    buffers : {"sm-local", "pooled", "connected"} or BufferModel, optional
        Several memories: ``sms`` of them, copies at ``omega`` over ``topology``, ``tasks_per_sm`` at most.
    unit_weights : bool
        Every value weighs 1, whatever the file or the tiles say.
    progress : callable, optional
        Called with the interval now and then, a `Progress`.
    stop : Event, optional
        Set it to get the interval at once.

    Returns
    -------
    Solution

    Raises
    ------
    InfeasibleError
        The capacity is below the least that works.
    GapOpenError
        The time was over before the DAG was read; its ``reason`` and ``seconds`` say why and when.
    InputError
        The DAG or an option is not usable.

    Examples
    --------
    >>> import pebble
    >>> pebble.solve("gemm", capacity=5, m=2, n=2, k=2)
    <Solution: gemm -m 2 -n 2 -k 2, capacity 5, in-place: the optimum is 13>
    """
    rules = GameRules(variant, buffers, sms, omega, topology, tasks_per_sm, unit_weights)
    return solve_game(dag, parameters, capacity, rules, Effort(solver, time_limit, seed, progress, stop))


def replay(
    dag: Any,
    moves: Iterable[Any] | str | Path,
    capacity: int | str,
    *,
    variant: str | None = None,
    buffers: str | BufferModel | None = None,
    sms: int | str | None = None,
    omega: str | float | None = None,
    topology: str | None = None,
    unit_weights: bool = False,
    time_limit: float = 10.0,
    stop: Event | None = None,
    **parameters: Any,
) -> Replayed:
    """A pebbling of your own: checked move by move, costed, and set beside the optimum.

    Parameters
    ----------
    dag, variant, buffers, sms, omega, topology, unit_weights, **parameters
        As for `pebble.solve`.
    moves : iterable, str or Path
        Plain moves, ``[("load", "A[0,0]"), ("compute", "C[0,0]+=A[0,0]*B[0,0]"), ...]``, or a JSON file of them;
        a node of the DAG stands for its name.
    capacity : int
        Pebbles (weight units) that fit in fast memory.
    time_limit : float
        Seconds to look for the optimum, where all moves are legal.
    stop : Event, optional
        Set it to get what is known at once.

    Returns
    -------
    Replayed
        An illegal move is an answer, not an error: ``legal`` is False and the summary names the move and the rule.

    Raises
    ------
    InputError
        What is given is no DAG, no list of moves, or no option.
    InfeasibleError
        The capacity is below the least that works.

    Examples
    --------
    >>> import networkx as nx, pebble
    >>> dag = nx.DiGraph([("a", "c"), ("b", "c")])
    >>> moves = [("load", "a"), ("load", "b"), ("compute", "c"), ("store", "c")]
    >>> pebble.replay(dag, moves, capacity=3)
    <Replayed: DAG of 3 nodes, capacity 3, one-shot: legal, costs 3; the optimum is 3>
    """
    from pebble.reports.replay import replay_game

    rules = GameRules(variant, buffers, sms, omega, topology, None, unit_weights)
    return replay_game(dag, parameters, moves, capacity, rules, time_limit=time_limit, stop=stop)
