"""Which solver plays which game."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from pebble.errors import InputError, UnknownNameError
from pebble.solvers.result import Problem, Solver

RECOMPUTE = "recomputation"
SLIDING = "sliding"
CELLS = "accumulator cells"
WEIGHTS = "weights"
SEVERAL = "several memories"
LIMIT = "a limit on tasks per SM"
_ONCE = frozenset({SLIDING, CELLS, WEIGHTS})
_AGAIN = frozenset({RECOMPUTE, SLIDING, WEIGHTS})
_SEVERAL = frozenset({SEVERAL, CELLS, WEIGHTS})


class Entry(NamedTuple):
    """A solver and what it handles; games of one memory and of several have entries of their own.

    Attributes
    ----------
    name : str
        As in ``--solver``.
    where : str
        ``"module:function"``, imported when asked for.
    handles : frozenset of str
        What the game may have.
    """

    name: str
    where: str
    handles: frozenset[str]


ENTRIES = (
    Entry("search", "pebble.solvers.search:solve_search", _ONCE - {WEIGHTS}),
    Entry("search", "pebble.solvers.search:solve_search", _AGAIN),  # weights that are all equal
    Entry("search", "pebble.solvers.several.state_search:solve_by_search", _SEVERAL),
    Entry("cpsat", "pebble.solvers.cpsat:solve_cpsat", _ONCE),
    Entry("cpsat", "pebble.solvers.cpsat_recompute:solve_recompute", _AGAIN),
    Entry("cpsat", "pebble.solvers.several.program_cpsat:solve_by_cpsat", _SEVERAL | {LIMIT}),
    Entry("milp", "pebble.solvers.milp:solve_milp", _ONCE),
    Entry("milp", "pebble.solvers.several.program_highs:solve_by_milp", _SEVERAL | {LIMIT}),
    Entry("heuristic", "pebble.solvers.heuristic:solve_heuristic", _ONCE | _AGAIN),
    Entry("heuristic", "pebble.solvers.several:solve_alone", _SEVERAL | {LIMIT}),
    Entry("auto", "pebble.solvers.auto:solve_auto", _ONCE | _AGAIN),
    Entry("auto", "pebble.solvers.auto:solve_auto", _SEVERAL | {LIMIT}),
)
SOLVERS = tuple(dict.fromkeys(entry.name for entry in ENTRIES))


def traits(problem: Problem) -> frozenset[str]:
    """What a solver must handle to play this game."""
    game, most = problem.game, problem.most_tasks_per_sm
    found = {
        RECOMPUTE: game.variant.recompute,
        SLIDING: game.variant.sliding,
        CELLS: game.has_cells,
        WEIGHTS: set(game.weights) != {1},
        SEVERAL: problem.buffers.memories > 1,
        LIMIT: most is not None and most < len(game.tasks),
    }
    return frozenset(trait for trait, has in found.items() if has)


def find_solver(name: str, problem: Problem) -> Solver:
    """The solver of that name for this game.

    Raises
    ------
    UnknownNameError
        No such solver.
    InputError
        It does not play such a game.
    """
    if name not in SOLVERS:
        raise UnknownNameError("solver", name, SOLVERS, "pebble solve --help")
    needed = traits(problem)
    fit = [e for e in ENTRIES if needed <= e.handles and (SEVERAL in needed) == (SEVERAL in e.handles)]
    for entry in fit:
        if entry.name == name:
            module, function = entry.where.split(":")
            solver: Solver = getattr(import_module(module), function)
            return solver
    others = ", ".join(dict.fromkeys(e.name for e in fit))
    raise InputError(
        f"solver {name}: got a game with {' and '.join(sorted(needed))} ({problem.game.variant}), which "
        + (f"it does not play; use --solver {others}." if fit else "no solver plays; choose one-shot or in-place.")
    )
