"""Search that proves optima: best-first over positions in normal form, with bounds that are themselves proofs.

The in-place GEMM has its own search, with symmetry and a pattern table; games with recomputation have one over red and
stored values; every other game goes to the general one.
"""

from __future__ import annotations

import logging
import time
from importlib import import_module
from pathlib import Path

from pebble.game import Variant
from pebble.solvers.result import Incumbent, Problem

__all__ = ["solve_search"]

_PATIENCE_SECONDS = 600.0


def solve_search(problem: Problem, best: Incumbent) -> str:
    """Search for the optimum and prove it.

    Raises
    ------
    InputError
        The game is too large for bit masks, or is weighted and allows recomputation.
    """
    from pebble.solvers.search.gemm_shape import recognise

    shape = recognise(problem.game)
    kind = "recompute" if problem.game.variant.recompute else "general" if shape is None else "gemm"
    _compile(kind, best)
    return _run(kind, problem, best)


def _run(kind: str, problem: Problem, best: Incumbent) -> str:
    if kind == "recompute":
        from pebble.solvers.search.recompute import solve_recompute

        return solve_recompute(problem, best)
    if kind == "general":
        from pebble.solvers.search.general import solve_general

        return solve_general(problem, best)
    from pebble.solvers.search.gemm_search import solve_gemm
    from pebble.solvers.search.gemm_shape import recognise

    shape = recognise(problem.game)
    assert shape is not None
    return solve_gemm(problem, best, shape)


_SMALL = {
    "gemm": ("gemm", {"m": 2, "n": 3, "k": 3}, Variant.IN_PLACE, 5),
    "general": ("diamond", {"size": 4}, Variant.ONE_SHOT, 3),
    "recompute": ("tree", {"leaves": 4}, Variant.RECOMPUTE, 3),
}
# the function of each search that calls all the others
_COMPILED = {
    "gemm": "pebble.solvers.search.gemm_astar:advance",
    "general": "pebble.solvers.search.dag_astar:advance",
    "recompute": "pebble.solvers.search.recompute:_advance",
}
_compiled: set[str] = set()


def _is_cold(kind: str) -> bool:
    """Whether numba has no compiled code of a search in its folder."""
    module, _, name = _COMPILED[kind].partition(":")
    cache = getattr(getattr(import_module(module), name), "_cache", None)
    folder = getattr(cache, "cache_path", None)
    short = module.rpartition(".")[2]
    return folder is not None and not any(Path(folder).glob(f"{short}.{name}-*.nbi"))


def _compile(kind: str, best: Incumbent) -> None:
    """Compile the loops on a small game, once per process, outside the time that was given for the answer.

    The first time on a machine that takes tens of seconds; later the compiled code is read from a file.
    """
    if kind in _compiled:
        return
    from pebble.families import find_dag_family
    from pebble.game import Game

    if _is_cold(kind):
        logging.getLogger("pebble").warning(
            "pebble: compiling the search, once on this machine: 15 to 60 s, which no time limit counts"
        )
    family, values, variant, capacity = _SMALL[kind]
    began = time.monotonic()
    best.deadline += _PATIENCE_SECONDS
    small = Problem(Game.from_dag(find_dag_family(family).build(values, variant), variant), capacity)
    _run(kind, small, Incumbent(small, _PATIENCE_SECONDS, best.stop))
    took = time.monotonic() - began
    best.deadline += took - _PATIENCE_SECONDS
    best.started += took
    if took > 3:
        best.details["compile_seconds"] = round(took, 1)
    _compiled.add(kind)
