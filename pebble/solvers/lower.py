"""Lower bounds beside a solver: those cheap enough to compute for every solve, and the theorems of `pebble.bounds.dag`.

The latter need longer: a worker process tries them beside a solver that takes its time, or after one that left a gap
open. The former hold in the game at hand.

One memory: what is compulsory; the windows of :mod:`pebble.bounds.task_windows`; for a GEMM, equation (2) of
`pebble bound`. Several, with S per SM, L + W for loads plus stores, R for weight copied (each copy at least one hop):

- compulsory and the pooled segment bound: L + W >= B_pool, since a game of P memories is one of a pooled memory;
  with clusters of c SMs it is one of ceil(P / c) memories of c S.
- B_sum: an SM that does r tasks sees at least E(r) weight enter (loaded, copied in or initialised there), by the
  windows of its own tasks and its own memory. A value is initialised once in all, so L + W + R >= min over splits of
  the tasks (sum of E(r_p)) - initialised + stores of outputs.
- The least split of the tasks (:mod:`pebble.bounds.task_splits`), where an SM may do so many: it knows no S, but that
  both SMs need what tasks on both touch.
- With w = min(omega, 1) and D = omega * hops >= w R: cost >= L + W + w R >= (1 - w) max(L + W bounds) + w B_sum.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from fractions import Fraction
from math import ceil

from pebble.bounds import Piece
from pebble.bounds.splits import cheapest_split
from pebble.bounds.task_splits import least_split
from pebble.bounds.task_windows import entries, segment_bound
from pebble.game import Game
from pebble.solvers.gemm_shape import recognise
from pebble.solvers.result import Incumbent, Problem
from pebble.system.isolation import Library, solve_in_worker


def simple_bounds(problem: Problem) -> Iterator[tuple[int, str]]:
    """Bounds on the cost, in units of the denominator of omega, each with its name; the last is the best."""
    game, buffers = problem.game, problem.buffers
    yield game.compulsory * buffers.omega.denominator, "compulsory bound"
    if buffers.memories == 1:
        yield best_simple_bound(game, problem.capacity)
    else:
        bound, _, _, name = bound_for_several(problem, splits=False)
        yield ceil(bound * buffers.omega.denominator), name


def best_simple_bound(game: Game, capacity: int) -> tuple[int, str]:
    """The best of these bounds for one memory, and its name."""
    results = [(game.compulsory, "compulsory bound"), (segment_bound(game, capacity), "segment bound")]
    shape = recognise(game)
    if shape is not None:
        weight, product = game.weights[0], Piece.product(shape.m, shape.n, shape.k)
        results.append((product.bound(capacity // weight).elements * weight, "GEMM bound"))
    return max(results, key=lambda x: x[0])  # the first of equals


def bound_for_several(problem: Problem, splits: bool = True) -> tuple[Fraction, int, int, str]:
    """The bound on the cost, on L + W, on L + W + R, and the name of what gives the first.

    With ``splits`` the least split of the tasks too, which may take a second.
    """
    game, capacity, buffers = problem.game, problem.capacity, problem.buffers
    sms, tasks = buffers.memories, len(game.tasks)
    most = tasks if problem.most_tasks_per_sm is None else problem.most_tasks_per_sm
    initialised = sum(w for i, w in enumerate(game.weights) if game.updates[i] and not game.is_input[i])
    stores = sum(w for i, w in enumerate(game.weights) if game.updates[i] and game.is_output[i])

    def by_sms(size: int, groups: int, most: int) -> int:
        return cheapest_split(entries(game, size), groups, most) - initialised + stores

    pooled, per_sm = best_simple_bound(game, capacity * sms)[0], by_sms(capacity, sms, most)
    split = least_split(game, sms, most, buffers.copies_pay).weight if splits else 0
    everything = max(pooled, per_sm, split)
    name = "bound per split" if split > max(pooled, per_sm) else "bound per SM"
    if buffers.kind == "sm-local":
        return Fraction(everything), everything, everything, name
    group, share = buffers.net.group, min(buffers.omega, Fraction(1))
    slow = pooled if group == sms else max(pooled, by_sms(capacity * group, -(-sms // group), most * group))
    return (1 - share) * slow + share * everything, slow, everything, f"pooled bound and {name}"


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
