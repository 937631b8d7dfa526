"""Search that proves optima: best-first over positions in normal form, with bounds that are themselves proofs.

The in-place GEMM has its own search, with symmetry and a pattern table; games with recomputation have one over red and
stored values; every other game goes to the general one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from pebble.cdag.base import Dag
from pebble.cdag.gemm import gemm_dag
from pebble.cdag.patterns import diamond_dag, tree_dag
from pebble.game import Game, Variant
from pebble.solvers.gemm_shape import Shape, recognise
from pebble.solvers.result import Incumbent, Problem
from pebble.traces.jit import Lazy, tell_compiling

__all__ = ["find_small_gemm", "solve_search"]

LARGEST_SIDE = 5  # symmetries are packed with 8 bits per side, and 5! = 120
LARGEST_BITS = 64

_PATIENCE_SECONDS = 600.0


def solve_search(best: Incumbent) -> str:
    """Search for the optimum and prove it; InputError where the game is too large, or weighted with recomputation."""
    game = best.problem.game
    kind = "recompute" if game.variant.recompute else "general" if find_small_gemm(game) is None else "gemm"
    _compile(kind, best)
    return _run(kind, best)


def find_small_gemm(game: Game) -> Shape | None:
    """The GEMM that a game is, when it is small enough for the tables."""
    if set(game.weights) != {1} or max(game.size, len(game.tasks)) > LARGEST_BITS:
        return None
    shape = recognise(game)
    return None if shape is None or max(shape.m, shape.n, shape.k) > LARGEST_SIDE else shape


def _run(kind: str, best: Incumbent) -> str:
    if kind == "recompute":
        from pebble.solvers.search.recompute import RecomputeSearch

        return RecomputeSearch(best).run()
    if kind == "general":
        from pebble.solvers.search.general import GeneralSearch

        return GeneralSearch(best).run()
    from pebble.solvers.search.gemm_search import GemmSearch

    shape = find_small_gemm(best.problem.game)
    assert shape is not None
    return GemmSearch(best, shape).run()


_SMALL: dict[str, tuple[Callable[[], Dag], Variant, int]] = {
    "gemm": (lambda: gemm_dag(2, 3, 3), Variant.IN_PLACE, 5),
    "general": (lambda: diamond_dag(4), Variant.ONE_SHOT, 3),
    "recompute": (lambda: tree_dag(4), Variant.RECOMPUTE, 3),
}
# the function of each search that calls all the others
_COMPILED = {
    "gemm": "pebble.solvers.search.gemm_astar:advance",
    "general": "pebble.solvers.search.dag_layers:advance",
    "recompute": "pebble.solvers.search.recompute:_advance",
}
_TOLD = {
    "gemm": "small GEMMs",
    "general": "games without recomputation",
    "recompute": "games with recomputation",
}
_compiled: set[str] = set()


def _is_cold(kind: str) -> bool:
    """Whether numba has no compiled code of a search in its folder."""
    module, _, name = _COMPILED[kind].partition(":")
    loop = getattr(import_module(module), name)
    cache = getattr(loop.made() if isinstance(loop, Lazy) else loop, "_cache", None)
    folder = getattr(cache, "cache_path", None)
    short = module.rpartition(".")[2]
    return folder is not None and not any(Path(folder).glob(f"{short}.{name}-*.nbi"))


def _compile(kind: str, best: Incumbent) -> None:
    """Compile the loops on a small game, once per process, outside the time that was given for the answer.

    The first time on a machine that takes tens of seconds; later the compiled code is read from a file.
    """
    if kind in _compiled:
        return
    if _is_cold(kind):
        tell_compiling(f"the search for {_TOLD[kind]}", "15 to 60 s, which no time limit counts")
    build, variant, capacity = _SMALL[kind]
    began = time.monotonic()
    best.put_off(_PATIENCE_SECONDS)
    small = Problem(Game.from_dag(build(), variant), capacity)
    _run(kind, Incumbent(small, _PATIENCE_SECONDS, best.stop))
    took = time.monotonic() - began
    best.put_off(took - _PATIENCE_SECONDS, started=took)
    if took > 3:
        best.details["compile_seconds"] = round(took, 1)
    _compiled.add(kind)
