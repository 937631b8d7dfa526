"""Exact and heuristic pebblings behind one call, :func:`solve`.

A solver is a function ``(problem, incumbent) -> stop reason``; one line in ``SOLVERS`` makes it known.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from importlib import import_module, util
from typing import TYPE_CHECKING

from pebble.errors import IllegalMoveError, InputError, SolverDisagreementError, UnknownNameError
from pebble.game import Game, Pebbling, Variant, check_capacity
from pebble.solvers.general_bounds import GeneralBounds
from pebble.solvers.lower import best_simple_bound
from pebble.solvers.result import Incumbent, Problem, Progress, Solver, SolveResult, Status

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["SOLVERS", "Progress", "SolveResult", "Status", "cross_check", "solve"]

# name -> "module:function", imported when asked for
SOLVERS: dict[str, str] = {
    "search": "pebble.solvers.search:solve_search",
    "cpsat": "pebble.solvers.cpsat:solve_cpsat",
    "milp": "pebble.solvers.milp:solve_milp",
    "heuristic": "pebble.solvers.heuristic:solve_heuristic",
    "auto": "pebble.solvers.auto:solve_auto",
}
_GRACE_SECONDS = 0.4  # how long past its limit a solver may take to return before we answer without it


def solve(
    dag: nx.DiGraph[Hashable] | Game,
    capacity: int,
    variant: Variant | str | None = None,
    solver: str = "auto",
    time_limit: float = 60.0,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
    upper_hint: Pebbling | Callable[[], Pebbling | None] | None = None,
    known_lower_bound: int = 0,
    stop: threading.Event | None = None,
    started: float | None = None,
    general_bounds: bool = True,
) -> SolveResult:
    """The cheapest pebbling of a DAG, or a proven interval around its cost.

    Parameters
    ----------
    dag : networkx.DiGraph or Game
    capacity : int
        Weight of red values allowed at any moment (pebbles, where all weights are 1).
    variant : Variant or str, optional
        By default in-place for a DAG with accumulators, one-shot for any other.
    solver : str
        ``auto`` or a name of ``SOLVERS``.
    time_limit : float
        Seconds; the interval proved by then comes back at once.
    seed : int
    progress : callable, optional
        Called in the calling thread with the interval, when it changes and now and then.
    upper_hint : Pebbling, or callable that makes one or None, optional
        A pebbling to start from; the referee replays it.
    known_lower_bound : int
        A bound proved elsewhere, such as that of ``pebble bound``.
    stop : threading.Event, optional
        Set it to get the interval at once.
    started : float, optional
        When the time limit began, by ``time.monotonic``; by default now.
    general_bounds : bool
        Whether to try the theorems of `pebble.bounds.dag` as well where the solver leaves or keeps a gap open.

    Raises
    ------
    InfeasibleError
        The capacity is below the least that works, which the message names.
    InputError
        The DAG or an option is not usable, or the DAG is too large for the solver.
    SolverDisagreementError
        A proven lower bound exceeds the cost of a legal pebbling.

    Examples
    --------
    >>> import networkx as nx
    >>> result = solve(nx.DiGraph([("a", "c"), ("b", "c")]), capacity=3)
    >>> result.upper_bound, result.status
    (3, 'optimal')
    """
    game = dag if isinstance(dag, Game) else Game.from_dag(dag, variant)
    if isinstance(dag, Game) and variant is not None and Variant.parse(str(variant)) is not game.variant:
        raise InputError(f"variant: got {variant} for a game already read as {game.variant}; read the DAG again.")
    run = _load(solver)
    if not time_limit > 0:
        raise InputError(f"time limit: got {time_limit}, expected seconds, more than 0.")
    check_capacity(game, capacity)
    best = Incumbent(Problem(game, capacity, seed), time_limit, stop, started)
    if known_lower_bound:
        best.raise_lower(known_lower_bound, "given bound")
    best.details["solver"] = solver
    reason = _run_to_the_limit(run, best, progress, upper_hint, general_bounds)
    used = str(best.details.pop("solver"))
    if reason == "proved optimal" and best.upper_from != used and not any(used in name for name in best.proof):
        reason = f"proved optimal by {' and '.join(best.proof)} and {best.upper_from}, without {used}"
    return best.result(used, reason)


def _run_to_the_limit(
    run: Solver,
    best: Incumbent,
    progress: Callable[[Progress], None] | None,
    hint: Pebbling | Callable[[], Pebbling | None] | None,
    general_bounds: bool,
) -> str:
    """Run a solver in a thread, so that neither its library nor its model keeps the caller waiting."""
    outcome: list[str | BaseException] = []
    finished = threading.Event()

    def work() -> None:
        try:
            best.raise_lower(best.problem.game.compulsory, "compulsory bound")
            bound, name = best_simple_bound(best.problem.game, best.problem.capacity)
            best.raise_lower(bound, name)
            pebbling = hint() if callable(hint) else hint
            if pebbling is not None:
                best.offer(pebbling.moves, "given pebbling")
            outcome.append(run(best.problem, best))
        except BaseException as error:  # re-raised below, in the caller's thread
            outcome.append(error)
        finished.set()

    threading.Thread(target=work, daemon=True, name="pebble-solver").start()
    theorems = GeneralBounds(best) if general_bounds else None
    shown: tuple[int, int | None, int] | None = None
    late = False
    try:
        while not (finished.wait(0.05) and (theorems is None or not isinstance(outcome[0], str) or theorems.done())):
            now = best.snapshot()
            key = (now.lower_bound, now.upper_bound, int(now.seconds))
            if progress is not None and key != shown:
                shown = key
                progress(now)
            if theorems is not None:
                theorems.look()
            if best.stop.is_set() or best.seconds_left == 0:
                late = best.seconds_left == 0  # a solver that begins to compile puts the limit off
                finished.wait(_GRACE_SECONDS)
                break
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
        return f"time limit of {best.deadline - best.started:g} s"
    return outcome[0]  # type: ignore[return-value]


def cross_check(
    dag: nx.DiGraph[Hashable] | Game,
    capacity: int,
    variant: Variant | str | None = None,
    solvers: Sequence[str] = ("cpsat", "milp"),
    time_limit: float = 60.0,
    seed: int = 0,
) -> tuple[SolveResult, ...]:
    """Solve with each solver and compare what they prove.

    Returns
    -------
    tuple of SolveResult
        One per solver, in order.

    Raises
    ------
    SolverDisagreementError
        The proven lower bound of one exceeds the replayed cost of another; two different proven optima are
        such a case. The message names both.
    """
    game = dag if isinstance(dag, Game) else Game.from_dag(dag, variant)
    results = tuple(solve(game, capacity, solver=name, time_limit=time_limit, seed=seed) for name in solvers)
    for low in results:
        for high in results:
            if high.upper_bound is not None and low.lower_bound > high.upper_bound:
                raise SolverDisagreementError(
                    f"solvers disagree: {low.solver} proved at least {low.lower_bound}, {high.solver} found "
                    f"{high.upper_bound} ({game.variant}, capacity {capacity}); one of them is wrong."
                )
    return results


def available_solvers() -> tuple[str, ...]:
    """Names of ``SOLVERS`` whose modules are installed."""
    return tuple(name for name, where in SOLVERS.items() if util.find_spec(where.split(":")[0]) is not None)


def _load(name: str) -> Solver:
    if name not in SOLVERS:
        raise UnknownNameError("solver", name, SOLVERS, "pebble solve --help")
    module, function = SOLVERS[name].split(":")
    solver: Solver = getattr(import_module(module), function)
    return solver
