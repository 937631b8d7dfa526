"""The one driver of solvers: it runs one on a game, until the bounds meet or the time is up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pebble.errors import IllegalMoveError, InputError
from pebble.game import SINGLE, BufferModel, Cost, Game, Pebbling, Variant, at_sm, check_capacity
from pebble.solvers.lower import GeneralBounds, simple_bounds
from pebble.solvers.registry import find_solver
from pebble.solvers.result import Incumbent, Problem, Progress, Solver, SolveResult
from pebble.system.clock import Clock

if TYPE_CHECKING:
    import networkx as nx

_GRACE_SECONDS = 0.4  # how long past its limit a solver may take to return before we answer without it


class Known(NamedTuple):
    """What is known of a game before it is solved.

    Attributes
    ----------
    pebbling : Pebbling, or callable that makes one or None, optional
        To start from; the referee replays it. One of a single memory is played at the first SM.
    lower_bound : int or Fraction
        Proved elsewhere, such as that of ``pebble bound``.
    open_to_theorems : bool
        Whether to try the theorems of `pebble.bounds.dag` as well where the solver leaves or keeps a gap open, and
        there is one memory; False where they were tried.
    """

    pebbling: Pebbling | Callable[[], Pebbling | None] | None = None
    lower_bound: Cost = 0
    open_to_theorems: bool = True


_NOTHING = Known()


def solve(
    dag: nx.DiGraph[Hashable] | Game,
    capacity: int,
    variant: Variant | str | None = None,
    solver: str = "auto",
    time_limit: float | Clock = 60.0,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
    known: Known = _NOTHING,
    *,
    buffers: BufferModel | None = None,
    most_tasks_per_sm: int | None = None,
) -> SolveResult:
    """The cheapest pebbling of a DAG, or a proven interval around its cost.

    Parameters
    ----------
    dag : networkx.DiGraph or Game
        A game is played in the variant that it was read for.
    capacity : int
        Weight of red values allowed at any moment (pebbles, where all weights are 1); with several SMs, per SM.
    variant : Variant or str, optional
        By default in-place for a DAG with accumulators, one-shot for any other.
    solver : str
        ``auto`` or a name of :data:`pebble.solvers.SOLVERS`.
    time_limit : float or Clock
        Seconds, or the clock of a question that began before; the interval proved by then comes back at once.
    seed : int
        Of the solvers that draw at random.
    progress : callable, optional
        Called in the calling thread with the interval, when it changes and now and then. A KeyboardInterrupt, there
        or elsewhere, ends the search as ``stop`` does.
    known : Known
        What is known before.
    buffers : BufferModel, optional
        The memories; by default one.
    most_tasks_per_sm : int, optional
        Load balance, which is the makespan when every task takes as long: no SM does more tasks.

    Raises
    ------
    InfeasibleError
        The capacity is below the least that works, which the message names.
    InputError
        The DAG or an option is not usable, or the DAG is too large for the solver, or of another kind.
    SolverDisagreementError
        A proven lower bound exceeds the cost of a legal pebbling.

    Examples
    --------
    >>> import networkx as nx
    >>> dag = nx.DiGraph([("a", "c"), ("b", "c")])
    >>> result = solve(dag, capacity=3)
    >>> result.upper_bound, result.status
    (3, 'optimal')
    >>> solve(dag, 3, buffers=BufferModel("sm-local", 2)).upper_bound
    3
    """
    game = dag if isinstance(dag, Game) else Game.from_dag(dag, variant)
    if isinstance(dag, Game) and variant is not None and Variant.parse(str(variant)) is not game.variant:
        raise InputError(f"variant: got {variant} for a game already read as {game.variant}; read the DAG again.")
    memories = SINGLE if buffers is None else buffers
    _check_tasks(most_tasks_per_sm, memories, game)
    size = memories.memory_size(capacity)
    # one memory of any model is one and the same game
    played = memories if memories.memories > 1 else SINGLE
    problem = Problem(game, size, seed, played, most_tasks_per_sm)
    run = find_solver(solver, problem)
    clock = time_limit if isinstance(time_limit, Clock) else Clock(time_limit)
    check_capacity(game, size)
    best = Incumbent(problem, clock.seconds, clock.stop, clock.started)
    if known.lower_bound:
        best.raise_lower(-int(-known.lower_bound * best.unit // 1), "known bound")
    best.details["solver"] = solver
    reason = _run_to_the_limit(run, best, progress, known)
    used = str(best.details.pop("solver"))
    if reason == "proved optimal" and used not in best.upper_from and not any(used in name for name in best.proof):
        unused = "" if used == "heuristic" else f", without {used}"
        reason = f"proved optimal by {' and '.join((*best.proof, best.upper_from))}{unused}"
    result = best.result(used, reason)
    return result if played == memories else _at_first_sm(result, capacity, memories)


def _check_tasks(most: int | None, memories: BufferModel, game: Game) -> None:
    """InputError where some SMs would have to do more tasks than they may."""
    everywhere = (1 << memories.memories) - 1
    for mask in {everywhere, *game.allowed}:
        sms, tasks = mask.bit_count(), len(game.tasks)
        if mask != everywhere:
            tasks = sum(not own & ~mask for own in game.allowed)
        if most is not None and most * sms < tasks:
            raise InputError(
                f"tasks per SM: got {most} on {sms} SMs for {tasks} tasks, expected at least {-(-tasks // sms)}."
            )


def _at_first_sm(result: SolveResult, capacity: int, memories: BufferModel) -> SolveResult:
    """What was found of the game of one memory, said of a model that has one."""
    pebbling = result.pebbling
    if pebbling is not None:
        pebbling = replace(pebbling, capacity=capacity, moves=at_sm(pebbling.moves), buffers=memories)
    return replace(result, pebbling=pebbling, buffers=memories)


def _run_to_the_limit(
    run: Solver,
    best: Incumbent,
    progress: Callable[[Progress], None] | None,
    known: Known,
) -> str:
    """Run a solver in a thread, so that neither its library nor its model keeps the caller waiting."""
    outcome: list[str | BaseException] = []
    finished = threading.Event()

    def work() -> None:
        try:
            for bound, name in simple_bounds(best.problem):
                best.raise_lower(bound, name)
            pebbling = known.pebbling() if callable(known.pebbling) else known.pebbling
            if pebbling is not None:  # one memory needs no number
                several, several_played = best.problem.buffers.memories > 1, pebbling.buffers.memories > 1
                moves = pebbling.moves if several_played else at_sm(pebbling.moves, 0 if several else None)
                best.offer(moves, "known schedule")
            outcome.append(run(best))
        except BaseException as error:  # re-raised below, in the caller's thread
            outcome.append(error)
        finished.set()

    threading.Thread(target=work, daemon=True, name="pebble-solver").start()
    theorems = GeneralBounds(best) if known.open_to_theorems and best.problem.buffers == SINGLE else None
    shown: tuple[Cost, Cost | None, int] | None = None
    late = False
    try:
        while not (finished.wait(0.05) and (theorems is None or not isinstance(outcome[0], str) or theorems.done())):
            now = best.snapshot()
            key = (now.lower_bound, now.upper_bound, int(now.seconds))
            if progress is not None and key != shown:
                shown = key
                progress(now)
            if best.stop.is_set() or best.seconds_left == 0:
                late = best.seconds_left == 0  # a solver that begins to compile puts the limit off
                finished.wait(_GRACE_SECONDS)
                break
    except KeyboardInterrupt:  # what is proved by now is the answer
        best.stop.set()
        finished.wait(_GRACE_SECONDS)
    except BaseException:
        best.stop.set()
        raise
    finally:
        if theorems is not None:
            theorems.end()
    if outcome and isinstance(outcome[0], IllegalMoveError) and best.pebbling is not None:
        return f"a pebbling of the solver was refused, what was known before stands: {outcome[0]}"
    if outcome and isinstance(outcome[0], BaseException):
        raise outcome[0]
    if best.closed:
        reason = str(outcome[0]) if outcome else ""
        return reason if reason.startswith("proved") else "proved optimal"
    if best.stop.is_set():
        return "interrupted"
    if late or best.seconds_left == 0 or outcome[0] == "stopped":  # a solver leaves a moment before its time is up
        return f"time limit of {best.time_limit:g} s"
    return str(outcome[0])
