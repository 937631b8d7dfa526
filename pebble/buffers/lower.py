"""Lower bounds for the game with several memories that are cheap enough for every solve.

With S per SM, L + W for loads plus stores, R for weight copied (each copy at least one hop):

- compulsory and the pooled segment bound: L + W >= B_pool, since a game of P memories is one of a pooled memory;
  with clusters of c SMs it is one of ceil(P / c) memories of c S.
- B_sum: an SM that does r tasks sees at least E(r) weight enter (loaded, copied in or begun there), by the windows of
  :func:`pebble.solvers.lower.segment_bound` on its own tasks and its own memory. A value is begun once in all, so
  L + W + R >= min over splits of the tasks (sum of E(r_p)) - begun + stores of outputs.
- With D = omega * hops >= omega * R: cost >= (1 - omega) max(L + W bounds) + omega B_sum, for omega <= 1.
"""

from __future__ import annotations

from fractions import Fraction

from pebble.bounds.splits import cheapest_split
from pebble.game import Game
from pebble.models.buffers import BufferModel
from pebble.solvers.lower import fewest_touched, segment_bound, window_entries

_LARGEST_WINDOW = 24


def entries(game: Game, capacity: int) -> list[int]:
    """E(r) for r = 0 .. all tasks: weight that enters a memory in which any r tasks are done."""
    tasks = len(game.tasks)
    largest = min(tasks, _LARGEST_WINDOW)
    if not tasks:
        return [0]
    least = window_entries(game, capacity, largest)
    first = fewest_touched(game, largest + 1)
    best = [0] * (tasks + 1)
    for p in range(1, tasks + 1):
        best[p] = max(first[r] if r == p else best[p - r] + least[r] for r in range(1, min(p, largest) + 1))
        best[p] = max(best[p], best[p - 1])
    return best


def buffer_bound(
    game: Game, capacity: int, buffers: BufferModel, most_tasks: int | None = None
) -> tuple[Fraction, int, int, str]:
    """The bound on the cost, on L + W, on L + W + R, and the name of what gives the first."""
    sms = buffers.memories
    pooled = max(game.compulsory, segment_bound(game, buffers.memory_size(capacity) * sms))
    if sms == 1:
        return Fraction(pooled), pooled, pooled, "pooled bound"
    most = len(game.tasks) if most_tasks is None else most_tasks
    begun = sum(w for i, w in enumerate(game.weights) if game.updates[i] and not game.is_input[i])
    stores = sum(w for i, w in enumerate(game.weights) if game.updates[i] and game.is_output[i])

    def by_sms(size: int, groups: int, most: int) -> int:
        return cheapest_split(entries(game, size), groups, most) - begun + stores

    everything = max(pooled, by_sms(capacity, sms, most))
    if buffers.kind == "sm-local":
        return Fraction(everything), everything, everything, "bound per SM"
    group = buffers.net.group
    slow = pooled if group == sms else max(pooled, by_sms(capacity * group, -(-sms // group), most * group))
    bound = (1 - buffers.omega) * slow + buffers.omega * everything
    return bound, slow, everything, "pooled bound and bound per SM"
