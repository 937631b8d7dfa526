"""Lower bounds beside a solver: those cheap enough to compute for every solve, and the theorems of `pebble.bounds.dag`.

The latter need longer: a worker process tries them beside a solver that takes its time, or after one that left a gap
open. The former hold in the game at hand.

One memory: what is compulsory; the windows of :mod:`pebble.bounds.task_windows`; for a GEMM, equation (2) of
`pebble bound`. Several, with S per SM, L + W for loads plus stores, R for weight copied (each copy at least one hop):

- One memory of P S: what is compulsory and the segment bound, for L + W.
- Groups of g SMs as one memory each (`pebble.bounds.groupings`): L + W and the copies that cross from group to group
  are at least what windows say, and what the least split of the tasks says.

  - Windows: a group that does r tasks sees at least E(r) weight enter (loaded, copied in or initialised there). A value
    is initialised once in all, so the least sum of E(r_p) over splits, - initialised + stores of outputs.
  - The least split (:mod:`pebble.bounds.task_splits`), where an SM may do so many tasks: it knows no S, but that all
    groups need what tasks on all of them touch. Between clusters there are no copies.
- The cost is at least the best sum of these inequalities, a linear program. Where all SMs are one hop apart it is, with
  w = min(omega, 1), (1 - w) times the first and w times that of each SM alone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from pebble.bounds import Piece
from pebble.bounds.groupings import Grouping, best_program, groupings
from pebble.bounds.splits import cheapest_split
from pebble.bounds.task_splits import least_split
from pebble.bounds.task_windows import entries, segment_bound
from pebble.game import Game
from pebble.solvers.gemm_shape import recognise
from pebble.solvers.result import Incumbent, Problem
from pebble.system.isolation import Library, solve_in_worker
from pebble.units import ceil_div


def simple_bounds(problem: Problem) -> Iterator[tuple[int, str]]:
    """Bounds on the cost, in units of the denominator of omega, each with its name; the last is the best."""
    game, buffers = problem.game, problem.buffers
    yield game.compulsory * buffers.omega.denominator, "compulsory bound"
    if buffers.memories == 1:
        yield best_simple_bound(game, problem.capacity)
    else:
        several = bound_for_several(problem, splits=False)
        yield ceil(several.cost * buffers.omega.denominator), several.name


def best_simple_bound(game: Game, capacity: int) -> tuple[int, str]:
    """The best of these bounds for one memory, and its name."""
    results = [(game.compulsory, "compulsory bound"), (segment_bound(game, capacity), "segment bound")]
    shape = recognise(game)
    if shape is not None:
        weight, product = game.weights[0], Piece.product(shape.m, shape.n, shape.k)
        results.append((product.bound(capacity // weight).elements * weight, "GEMM bound"))
    return max(results, key=lambda x: x[0])  # the first of equals


class SeveralBound(NamedTuple):
    """What is proved of a game on several SMs."""

    cost: Fraction
    slow: int
    """Of loads + stores."""
    everything: int
    """Of loads + stores + weight copied."""
    name: str
    groups: tuple[tuple[Grouping, Fraction, int], ...]
    """The ways to group the SMs: each with its multiplier, and what the least split between such groups costs."""


def bound_for_several(problem: Problem, splits: bool = True) -> SeveralBound:
    """The best sum of the inequalities of all groupings of the SMs.

    With ``splits`` the least split of the tasks too, which may take a second for each grouping.
    """
    buffers, joined = problem.buffers, problem.buffers.kind == "connected"
    cases = groupings(buffers.net) if joined else (Grouping(1, (Fraction(0),)),)
    pooled = best_simple_bound(problem.game, problem.capacity * buffers.memories)[0]
    windows = [max(pooled, _by_windows(problem, case)) for case in cases]
    least = [_by_split(problem, case, len(cases)) if splits else 0 for case in cases]
    values = list(map(max, windows, least))
    values[-1] = max(values)  # what crosses between groups goes from SM to SM
    cost, multipliers = best_program(values, cases, buffers.omega)
    split = any(y and value > low for y, value, low in zip(multipliers, values, windows, strict=True))
    name = f"bound per {'split' if split else 'SM'}"
    if len(cases) > 2:
        name = "program over groups of SMs"
    elif joined:
        name = f"pooled bound and {name}"
    return SeveralBound(cost, values[0], values[-1], name, tuple(zip(cases, multipliers, least, strict=True)))


def _limit(problem: Problem, group: int) -> tuple[int, int]:
    """Groups of so many SMs, and the tasks of one at most."""
    tasks, most = len(problem.game.tasks), problem.most_tasks_per_sm
    return ceil_div(problem.buffers.memories, group), tasks if most is None else min(tasks, group * most)


def _by_windows(problem: Problem, case: Grouping) -> int:
    """What enters the groups as one memory each; 0 for all in one, which has bounds of its own."""
    game, (groups, most) = problem.game, _limit(problem, case.sms)
    if groups == 1:
        return 0
    initialised = sum(w for i, w in enumerate(game.weights) if game.updates[i] and not game.is_input[i])
    stores = sum(w for i, w in enumerate(game.weights) if game.updates[i] and game.is_output[i])
    return cheapest_split(entries(game, problem.capacity * case.sms), groups, most) - initialised + stores


def _by_split(problem: Problem, case: Grouping, cases: int) -> int:
    """What every split of the tasks among the groups costs, by copies too where some cross from group to group."""
    groups, most = _limit(problem, case.sms)
    if groups == 1:
        return 0
    copies, parts = problem.buffers.copies_pay and any(case.rates), 1 if case.sms == 1 or cases <= 3 else cases
    return least_split(problem.game, groups, most, copies, parts).weight


_PATIENCE_SECONDS = 0.5  # a solver that is done by then is left alone
_POLL_SECONDS = 0.05


class GeneralBounds:
    """Raises an incumbent from below, in a worker process, once the solver has been given some time alone."""

    def __init__(self, best: Incumbent) -> None:
        self._best = best
        self._over, self._due, self._finished = threading.Event(), threading.Event(), threading.Event()
        self._error: BaseException | None = None
        threading.Thread(target=self._work, daemon=True, name="pebble-bounds").start()

    def done(self) -> bool:
        """Begin if need be, and wait a moment; whether there is nothing more to hope for."""
        self._due.set()
        return self._best.closed or self._finished.wait(_POLL_SECONDS)

    def end(self) -> None:
        """Stop, and raise what went wrong."""
        self._over.set()
        self._due.set()
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        self._due.wait(_PATIENCE_SECONDS)

        def over() -> bool:
            return self._over.is_set() or self._best.closed

        try:
            from pebble.bounds.dag import MOST_ITEMS

            if not over() and self._best.problem.game.size <= MOST_ITEMS:
                solve_in_worker(Library.HIGHS, "pebble.solvers.lower:raise_bounds", self._best, over)
        except BaseException as error:
            self._error = error
        self._finished.set()


def raise_bounds(best: Incumbent, seconds: float = 20.0) -> str:
    """Raise an incumbent by the theorems that solvers do not begin with, each in at most that time.

    It is twice what `dag_bounds` takes, since a solver runs beside.
    """
    from pebble.bounds.dag import hong_kung, spectral, wavefront

    for theorem in (wavefront.bound, spectral.bound, hong_kung.bound):
        if best.stopped:
            break
        result = theorem(best.problem.game, best.problem.capacity, min(seconds, best.seconds_left))
        if result.value is not None and result.value > best.lower:
            best.raise_lower(result.value, f"{result.name} bound")
    return "stopped"
