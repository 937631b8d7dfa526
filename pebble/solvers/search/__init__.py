"""Search that proves optima: best-first over positions in normal form, with bounds that are themselves proofs.

The in-place GEMM has its own search, with symmetry and a pattern table; games with recomputation have one over red and
stored values; every other game goes to the general one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from pathlib import Path

from pebble.cdag.patterns import diamond_dag, tree_dag
from pebble.cdag.products import gemm_dag
from pebble.game import BufferModel, Game, Variant
from pebble.solvers.gemm_shape import GemmShape, recognise
from pebble.solvers.heuristic import solve_alone
from pebble.solvers.result import Incumbent, Problem
from pebble.traces.jit import Lazy, tell_compiling

__all__ = ["find_small_gemm", "solve_search", "solve_several"]

LARGEST_SIDE = 5  # symmetries are packed with 8 bits per side, and 5! = 120
LARGEST_BITS = 64

_PATIENCE_SECONDS = 600.0


def solve_search(best: Incumbent) -> str:
    """Search for the optimum and prove it; InputError where the game is too large, or weighted with recomputation."""
    game = best.problem.game
    kind = "recompute" if game.variant.recompute else "general" if find_small_gemm(game) is None else "gemm"
    if kind == "general":
        from pebble.solvers.search.dag_model import build_dag_model

        build_dag_model(game, best.problem.capacity)  # what it refuses needs nothing compiled
    _compile(kind, best)
    return _run(kind, best)


def solve_several(best: Incumbent) -> str:
    """The same where there are several memories, from the best pebbling of one; InputError for what is too large."""
    from pebble.solvers.several.rules import check_size

    check_size(best.problem)
    solve_alone(best)
    if best.closed:
        return "proved optimal"
    _compile("several", best)
    if not best.problem.buffers.copies_pay:
        _compile("shares", best)
    return _run("several", best)


def find_small_gemm(game: Game) -> GemmShape | None:
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
    if kind == "several":
        from pebble.solvers.several.state_search import BufferSearch

        return BufferSearch(best).run()
    if kind == "shares":
        from pebble.solvers.several.shares import ShareBound

        best.raise_lower(best.problem.game.compulsory, "compulsory bound")  # what it is to prove
        ShareBound(best, 1 << 17).run(lambda: best.stopped)
        return "stopped"
    from pebble.solvers.search.gemm_search import GemmSearch

    shape = find_small_gemm(best.problem.game)
    assert shape is not None
    return GemmSearch(best, shape).run()


_SMALL: dict[str, Callable[[], Problem]] = {
    "gemm": lambda: Problem(Game.from_dag(gemm_dag(2, 3, 3), Variant.IN_PLACE), 5),
    "general": lambda: Problem(Game.from_dag(diamond_dag(4), Variant.ONE_SHOT), 3),
    "recompute": lambda: Problem(Game.from_dag(tree_dag(4), Variant.RECOMPUTE), 3),
    "shares": lambda: Problem(Game.from_dag(gemm_dag(2, 2, 1)), 3, buffers=BufferModel("sm-local", 2)),
    "several": lambda: Problem(
        Game.from_dag(gemm_dag(2, 2, 1)), 3, buffers=BufferModel("connected", 2, Fraction(1, 2)), most_tasks_per_sm=2
    ),
}
# the function of each search that calls all the others
_COMPILED = {
    "gemm": "pebble.solvers.search.gemm_astar:advance",
    "general": "pebble.solvers.search.dag_layers:advance",
    "recompute": "pebble.solvers.search.recompute:_advance",
    "shares": "pebble.solvers.several.shares:advance",
    "several": "pebble.solvers.several.astar:advance",
}
_DESCRIBED = {
    "gemm": "small GEMMs",
    "general": "games without recomputation",
    "recompute": "games with recomputation",
    "shares": "shares of SMs without copies",
    "several": "games with several memories",
}
_compiled: set[str] = set()


def _is_cold(kind: str) -> bool:
    """Whether numba has no compiled code of a search in its folder."""
    module, _, name = _COMPILED[kind].partition(":")
    loop = vars(import_module(module))[name]
    compiled = loop.made() if isinstance(loop, Lazy) else loop
    short = module.rpartition(".")[2]
    return not any(Path(compiled.stats.cache_path).glob(f"{short}.{name}-*.nbi"))


def _compile(kind: str, best: Incumbent) -> None:
    """Compile the loops on a small game, once per process, outside the time that was given for the answer.

    The first time on a machine that takes tens of seconds; later the compiled code is read from a file.
    """
    if kind in _compiled:
        return
    if _is_cold(kind):
        tell_compiling(f"the search for {_DESCRIBED[kind]}", "10 to 90 s, which no time limit counts")
    began = time.monotonic()
    best.put_off(_PATIENCE_SECONDS)
    _run(kind, Incumbent(_SMALL[kind](), _PATIENCE_SECONDS, best.stop))
    took = time.monotonic() - began
    best.put_off(took - _PATIENCE_SECONDS, started=took)
    if took > 3:
        best.details["compile_seconds"] = round(took, 1)
    _compiled.add(kind)
