"""Exact and heuristic pebblings behind one call, :func:`solve`.

A solver is a function ``incumbent -> stop reason``; an entry in :mod:`pebble.solvers.registry` makes it known.
"""

from pebble.solvers.driver import Known, solve
from pebble.solvers.registry import SOLVERS
from pebble.solvers.replayed import ReplayedMoves, replay_moves
from pebble.solvers.result import Progress, SolveResult, Status

__all__ = ["SOLVERS", "Known", "Progress", "ReplayedMoves", "SolveResult", "Status", "replay_moves", "solve"]
