"""The search for any game without recomputation."""

from __future__ import annotations

from pebble.errors import InputError
from pebble.solvers.result import Incumbent, Problem


def solve_general(problem: Problem, best: Incumbent) -> str:
    """Not there yet."""
    raise InputError("search: this game is not an in-place GEMM; use --solver cpsat.")
