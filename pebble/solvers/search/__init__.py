"""Search that proves optima: best-first over positions in normal form, with bounds that are themselves proofs.

The in-place GEMM has its own search, with symmetry and a pattern table; games with recomputation have one over red and
stored values; every other game goes to the general one.
"""

from __future__ import annotations

from pebble.solvers.result import Incumbent, Problem

__all__ = ["solve_search"]


def solve_search(problem: Problem, best: Incumbent) -> str:
    """Search for the optimum and prove it.

    Raises
    ------
    InputError
        The game is too large for bit masks, or is weighted and allows recomputation.
    """
    if problem.game.variant.recompute:
        from pebble.solvers.search.recompute import solve_recompute

        return solve_recompute(problem, best)
    from pebble.solvers.search.gemm_shape import recognise

    shape = recognise(problem.game)
    if shape is not None:
        from pebble.solvers.search.gemm_search import solve_gemm

        return solve_gemm(problem, best, shape)
    from pebble.solvers.search.general import solve_general

    return solve_general(problem, best)
