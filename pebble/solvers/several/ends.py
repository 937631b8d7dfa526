"""A bound between two prices of a copy: what a pebbling costs is linear in omega, so the least is concave in it.

With L loads, W stores and H hops, weighted, a pebbling costs (1 - omega) (L + W) + omega (L + W + H). So for omega from
0 to 1 the optimum is at least 1 - omega times the least L + W and omega times the optimum at omega 1. The least L + W
is at least the optimum of one memory of all SMs. Both are games of their own, often much easier: searched for some of
the time where the game itself stays open.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from math import ceil

from pebble.errors import InputError
from pebble.game import SINGLE, Move
from pebble.solvers.lower import bound_for_several, simple_bounds
from pebble.solvers.registry import find_solver
from pebble.solvers.result import Incumbent, Problem

NAME = "search at omega 0 and 1"
_LOW_SHARE, _HIGH_SHARE = 0.25, 0.7  # of the time left


class _End(Incumbent):
    """What is known of a game at one end; its pebblings go on to the game between, if they are legal there."""

    def __init__(self, problem: Problem, whole: Incumbent, share: float) -> None:
        super().__init__(problem, share * whole.seconds_left, whole.stop, within=whole)
        self.memory_share = whole.memory_share / 4
        for bound, name in simple_bounds(problem):
            self.raise_lower(bound, name)

    @property
    def stopped(self) -> bool:
        """Also where nothing is left to prove of the game between."""
        return super().stopped or (self.within is not None and self.within.closed)

    def offer(self, moves: tuple[Move, ...], source: str) -> bool:
        if not super().offer(moves, source):
            return False
        if self.within is not None and self.problem.buffers.memories > 1:
            self.within.offer(moves, f"{source} at omega 1")
        return True


def has_ends(problem: Problem) -> bool:
    """Whether a game lies between two prices."""
    return problem.buffers.kind == "connected" and 0 < problem.buffers.omega < 1


def raise_by_ends(best: Incumbent) -> None:
    """Raise the bound by what the searches of one memory, and of several at omega 1, prove in some of the time."""
    problem = best.problem
    omega, known = problem.buffers.omega, bound_for_several(problem)
    slow, everything = Fraction(known.slow), Fraction(known.everything)
    if problem.buffers.net.group == problem.buffers.memories:
        pooled = Problem(problem.game.anywhere(), problem.capacity * problem.buffers.memories, problem.seed, SINGLE)
        slow = max(slow, _searched(pooled, best, _LOW_SHARE))
    dearest = replace(problem, buffers=replace(problem.buffers, omega=Fraction(1)))
    everything = max(everything, _searched(dearest, best, _HIGH_SHARE))
    best.raise_lower(ceil(best.unit * ((1 - omega) * slow + omega * everything)), NAME)


def _searched(problem: Problem, best: Incumbent, share: float) -> Fraction:
    """What a search in that share of the time left proves."""
    end = _End(problem, best, share)
    with suppress(InputError):  # a game that this search does not play
        find_solver("search", problem)(end)
    return Fraction(end.lower, end.unit)
