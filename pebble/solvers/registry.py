"""Which solver plays which game, and the one that asks the others in turn."""

from __future__ import annotations

from contextlib import suppress
from pkgutil import resolve_name
from typing import NamedTuple

from pebble.errors import InputError, UnknownNameError
from pebble.solvers.result import Incumbent, Problem, Solver
from pebble.solvers.several.fewer import FewerMemories

RECOMPUTE = "recomputation"
SLIDING = "sliding"
CELLS = "accumulator cells"
WEIGHTS = "weights"
SEVERAL = "several memories"
PARTIAL = "partial sums that weigh more than what they end as"
LIMIT = "a limit on tasks per SM"
_ONCE = frozenset({SLIDING, CELLS, WEIGHTS})
_AGAIN = frozenset({RECOMPUTE, SLIDING, WEIGHTS})
_SEVERAL = frozenset({SEVERAL, CELLS, WEIGHTS})


class Entry(NamedTuple):
    """A solver by its name on the command line, ``"module:function"`` (imported when asked for), and what it handles.

    Games of one memory and of several have entries of their own.
    """

    name: str
    where: str
    handles: frozenset[str]


ENTRIES = (
    Entry("search", "pebble.solvers.search:solve_search", _ONCE - {WEIGHTS}),
    Entry("search", "pebble.solvers.search:solve_search", _AGAIN),  # weights that are all equal
    Entry("search", "pebble.solvers.search:solve_several", _SEVERAL | {LIMIT}),
    Entry("cpsat", "pebble.solvers.cpsat:solve_cpsat", _ONCE),
    Entry("cpsat", "pebble.solvers.cpsat_recompute:solve_recompute", _AGAIN),
    Entry("cpsat", "pebble.solvers.several.solvers:solve_by_cpsat", _SEVERAL | {LIMIT}),
    Entry("milp", "pebble.solvers.milp:solve_milp", _ONCE),
    Entry("milp", "pebble.solvers.several.solvers:solve_by_milp", _SEVERAL | {LIMIT}),
    Entry("heuristic", "pebble.solvers.heuristic:solve_heuristic", _ONCE | _AGAIN),
    Entry("heuristic", "pebble.solvers.heuristic:solve_alone", _SEVERAL | {LIMIT}),
    Entry("auto", "pebble.solvers.registry:solve_auto", _ONCE | _AGAIN),
    Entry("auto", "pebble.solvers.registry:solve_auto", _SEVERAL | {LIMIT}),
)
SOLVERS = tuple(dict.fromkeys(entry.name for entry in ENTRIES))


def traits(problem: Problem) -> frozenset[str]:
    """What a solver must handle to play this game."""
    game, most = problem.game, problem.most_tasks_per_sm
    result = {
        RECOMPUTE: game.variant.recompute,
        SLIDING: game.variant.sliding,
        CELLS: game.has_cells,
        WEIGHTS: set(game.weights) != {1},
        PARTIAL: game.weighted_partials,
        SEVERAL: problem.buffers.memories > 1,
        LIMIT: most is not None and most < len(game.tasks),
    }
    return frozenset(trait for trait, has in result.items() if has)


def find_solver(name: str, problem: Problem) -> Solver:
    """The solver of that name for this game; UnknownNameError, or InputError where it does not play such a game."""
    if name not in SOLVERS:
        raise UnknownNameError("solver", name, SOLVERS, "pebble solve --help")
    needed = traits(problem)
    fit = [e for e in ENTRIES if needed <= e.handles and (SEVERAL in needed) == (SEVERAL in e.handles)]
    for entry in fit:
        if entry.name == name:
            solver: Solver = resolve_name(entry.where)
            return solver
    others = ", ".join(dict.fromkeys(e.name for e in fit))
    raise InputError(
        f"solver {name}: got a game with {' and '.join(sorted(needed))} ({problem.game.variant}), which "
        + (f"it does not play; use --solver {others}." if fit else f"no solver plays; {_instead(needed)}.")
    )


def _instead(needed: frozenset[str]) -> str:
    if PARTIAL in needed:
        return "leave partial_weight out, or have the referee replay a pebbling of your own"
    return "choose one-shot or in-place"


def solve_auto(best: Incumbent) -> str:
    """Heuristic first. While a gap is open: search, then CP-SAT, where they can play the game and it is small enough.

    With several memories fewer of them are searched beside.
    """
    solver, reason = "heuristic", find_solver("heuristic", best.problem)(best)
    fewer = FewerMemories(best, solve_auto) if best.problem.buffers.memories > 1 else None
    if fewer is not None:
        fewer.head_start()
        solver = fewer.solver if best.closed and fewer.solver else solver
    for name in ("search", "cpsat"):
        best.details["solver"] = name
        if not best.stopped:
            with suppress(InputError):  # too large for it, or a game that it does not play
                solver, reason = name, find_solver(name, best.problem)(best)
        best.details["solver"] = solver
    if fewer is not None:
        fewer.wait()
        reason = "proved optimal" if best.closed else reason
    return reason


def first_pebbling(best: Incumbent, solver: str, variables: int, limit: int) -> str | None:
    """Have the heuristic's pebbling to start a model from; why to stop there, if there is a reason.

    InputError where the model would have more than ``limit`` variables.
    """
    game, sms = best.problem.game, best.problem.buffers.memories
    if variables > limit:
        raise InputError(
            f"solver {solver}: the DAG has {game.size} values and {len(game.tasks)} operations"
            f"{f', on {sms} SMs' if sms > 1 else ''}, a model of {variables} variables; the limit is {limit}. "
            "Use --solver heuristic for a pebbling and `pebble bound` for a lower bound."
        )
    if not best.upper_from.startswith("heuristic"):
        find_solver("heuristic", best.problem)(best)
    if best.stopped:
        return "proved optimal" if best.closed else "stopped"
    return None
