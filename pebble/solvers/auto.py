"""``auto``: bounds, then the heuristic, then the solvers that suit the game."""

from __future__ import annotations

from contextlib import suppress

from pebble.errors import InputError
from pebble.solvers.registry import find_solver
from pebble.solvers.result import Incumbent


def solve_auto(best: Incumbent) -> str:
    """Heuristic first. While a gap is open: search, then CP-SAT, where they can play the game and it is small enough.

    With several memories CP-SAT alone follows, since the search there is for tiny games.
    """
    chosen, reason = "heuristic", find_solver("heuristic", best.problem)(best)
    for name in ("search", "cpsat") if best.problem.buffers.memories == 1 else ("cpsat",):
        best.details["solver"] = name
        if not best.stopped:
            with suppress(InputError):  # too large for it, or a game that it does not play
                chosen, reason = name, find_solver(name, best.problem)(best)
        best.details["solver"] = chosen
    return reason
