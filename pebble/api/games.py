"""`pebble.solve` and `pebble.replay`: the cheapest pebbling of a small DAG, and one of your own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from pebble.errors import InputError
from pebble.reports.game_rules import GameRules
from pebble.reports.options import GameOptions, MemoryOptions, spelled_out, split_options
from pebble.reports.solve import Effort, Solution, solve_game
from pebble.reports.solve import shown as cost_words
from pebble.system.clock import shown

if TYPE_CHECKING:
    from pebble.reports.replay import Replayed
    from pebble.solvers import Progress


@spelled_out(GameOptions, "parameters")
def solve(
    dag: Any,
    capacity: int | str | None = None,
    *,
    variant: str | None = None,
    solver: str = "auto",
    time_limit: float = 60.0,
    seed: int = 0,
    unit_weights: bool = False,
    progress: Callable[[Progress], None] | bool | None = True,
    stop: Event | None = None,
    **options: Any,
) -> Solution:
    """The cheapest pebbling of a computation DAG, proved, or the tightest interval when time runs out.

    Parameters
    ----------
    dag : networkx.DiGraph, workload, str, Path, sequence of pairs or mapping
        As for `pebble.dag`: ``[("a", "c"), ("b", "c")]`` or ``{"c": ["a", "b"]}`` will do; a family takes its
        ``parameters`` by keyword.
    capacity : int
        Pebbles (with weights: weight units) that fit in fast memory; with several SMs, in each.
    gpu, machine, cache : str, optional
        Instead of a capacity: the shared memory of one SM of a GPU or a machine file, or a size such as ``"228KiB"``;
        values then weigh their bytes, of bf16 unless ``dtype`` says otherwise.
    variant : str, optional
        ``one-shot``, ``one-shot-sliding``, ``recompute``, ``recompute-sliding`` or ``in-place``; by default in-place
        for a DAG with accumulators, one-shot for any other.
    solver : str
        ``auto``, ``search``, ``cpsat``, ``milp`` or ``heuristic``.
    time_limit : float
        Seconds, reading the DAG included.
    seed : int
    unit_weights : bool
        Every value weighs 1, whatever the file or the tiles say.
    progress : bool or callable
        False: no line with the interval, which else is shown on a terminal and in a notebook. Or a function: called
        with the interval now and then, a `Progress`.
    stop : Event, optional
        Set it to get the interval at once.
    buffers : {"sm-local", "pooled", "connected"} or BufferModel, optional
        Several memories: ``sms`` of them, copies at ``omega`` over ``topology``, ``tasks_per_sm`` at most, or an even
        share with ``balanced``. ``split="2:1"``: the first product of a chain is done by two SMs, the second by the
        next one. Omega ``"measured"`` is that of the machine, in reads of L2, or by ``level`` of DRAM.

    Returns
    -------
    Solution
        With the interval proved by then when interrupted by KeyboardInterrupt.

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
    memories, parameters = split_options(options, GameOptions)
    if capacity is None and isinstance(pebbles := options.get("cache"), int):
        raise InputError(f"cache: got {pebbles}, expected a size such as '228KiB'; pebbles are capacity={pebbles}.")
    rules = GameRules(variant, unit_weights=unit_weights, **memories)
    with watched_interval(progress) as show:
        return solve_game(dag, parameters, capacity, rules, Effort(solver, time_limit, seed, show, stop))


@contextmanager
def watched_interval(progress: Callable[[Progress], None] | bool | None) -> Iterator[Callable[[Progress], None] | None]:
    """What a solver tells of its interval: to the caller's function, or in a line where one is seen."""
    with shown(progress) as update:
        if update is None:
            yield progress if callable(progress) else None
            return

        def tell(now: Progress) -> None:
            update(f"lower bound {cost_words(now.lower_bound)}, upper bound {cost_words(now.upper_bound)}", 0, 0)

        yield tell


@spelled_out(MemoryOptions, "parameters")
def replay(
    dag: Any,
    moves: Iterable[Any] | str | Path,
    capacity: int | str,
    *,
    variant: str | None = None,
    unit_weights: bool = False,
    time_limit: float = 10.0,
    stop: Event | None = None,
    **options: Any,
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

    memories, parameters = split_options(options, MemoryOptions)
    rules = GameRules(variant, unit_weights=unit_weights, **memories)
    return replay_game(dag, parameters, moves, capacity, rules, time_limit=time_limit, stop=stop)
