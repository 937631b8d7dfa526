"""Lower bounds that are cheap enough to compute for every solve, and hold in the game at hand.

One memory: what is compulsory; the windows of :mod:`pebble.bounds.task_windows`; for a GEMM, equation (2) of
`pebble bound`. Several, with S per SM, L + W for loads plus stores, R for weight copied (each copy at least one hop):

- compulsory and the pooled segment bound: L + W >= B_pool, since a game of P memories is one of a pooled memory;
  with clusters of c SMs it is one of ceil(P / c) memories of c S.
- B_sum: an SM that does r tasks sees at least E(r) weight enter (loaded, copied in or begun there), by the windows
  of its own tasks and its own memory. A value is begun once in all, so
  L + W + R >= min over splits of the tasks (sum of E(r_p)) - begun + stores of outputs.
- With w = min(omega, 1) and D = omega * hops >= w R: cost >= L + W + w R >= (1 - w) max(L + W bounds) + w B_sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil

from pebble.bounds import Piece
from pebble.bounds.splits import cheapest_split
from pebble.bounds.task_windows import entries, segment_bound
from pebble.game import Game
from pebble.solvers.gemm_shape import recognise
from pebble.solvers.result import Problem


def simple_bounds(problem: Problem) -> Iterator[tuple[int, str]]:
    """Bounds on the cost, in units of the denominator of omega, each with its name; the last is the best."""
    game, buffers = problem.game, problem.buffers
    yield game.compulsory * buffers.omega.denominator, "compulsory bound"
    if buffers.memories == 1:
        yield best_simple_bound(game, problem.capacity)
    else:
        bound, _, _, name = bound_for_several(problem)
        yield ceil(bound * buffers.omega.denominator), name


def best_simple_bound(game: Game, capacity: int) -> tuple[int, str]:
    """The best of these bounds for one memory, and its name."""
    found = [(game.compulsory, "compulsory bound"), (segment_bound(game, capacity), "segment bound")]
    shape = recognise(game)
    if shape is not None:
        weight, product = game.weights[0], Piece.product(shape.m, shape.n, shape.k)
        found.append((product.bound(capacity // weight).elements * weight, "GEMM bound"))
    return max(found, key=lambda x: x[0])  # the first of equals


def bound_for_several(problem: Problem) -> tuple[Fraction, int, int, str]:
    """The bound on the cost, on L + W, on L + W + R, and the name of what gives the first."""
    game, capacity, buffers = problem.game, problem.capacity, problem.buffers
    sms, tasks = buffers.memories, len(game.tasks)
    most = tasks if problem.most_tasks_per_sm is None else problem.most_tasks_per_sm
    begun = sum(w for i, w in enumerate(game.weights) if game.updates[i] and not game.is_input[i])
    stores = sum(w for i, w in enumerate(game.weights) if game.updates[i] and game.is_output[i])

    def by_sms(size: int, groups: int, most: int) -> int:
        return cheapest_split(entries(game, size), groups, most) - begun + stores

    pooled = max(game.compulsory, segment_bound(game, capacity * sms))
    everything = max(pooled, by_sms(capacity, sms, most))
    if buffers.kind == "sm-local":
        return Fraction(everything), everything, everything, "bound per SM"
    group, share = buffers.net.group, min(buffers.omega, Fraction(1))
    slow = pooled if group == sms else max(pooled, by_sms(capacity * group, -(-sms // group), most * group))
    return (1 - share) * slow + share * everything, slow, everything, "pooled bound and bound per SM"
