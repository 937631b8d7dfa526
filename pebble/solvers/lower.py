"""Lower bounds that are cheap enough to compute for every solve, and hold in the game at hand.

``compulsory`` holds in every variant. ``segment bound`` holds where a value is computed once: cut the schedule into
windows of r consecutive tasks; each window touches at least x(r) values, all but what is held at its start
are loaded or begun in it, and the beginnings are known in number.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pebble.bounds import lower_bound
from pebble.game import Game, Variant
from pebble.workloads import Gemm

_SEARCH_STEPS = 20_000
_LARGEST_WINDOW = 24
_MOST_TASKS = 128  # above, the windows are left out
_ELEMENT = re.compile(r"([ABC])\[([0-9]+),([0-9]+)\]")


def best_simple_bound(game: Game, capacity: int) -> tuple[int, str]:
    """The best of these bounds, and its name; for a GEMM played in place also equation (2) of `pebble bound`."""
    found = [(game.compulsory, "compulsory bound"), (segment_bound(game, capacity), "segment bound")]
    shape = gemm_sides(game)
    if shape is not None:
        gemm = Gemm(*shape)
        found.append((lower_bound(gemm, capacity // game.weights[0]).elements * game.weights[0], "GEMM bound"))
    return max(found, key=lambda x: x[0])  # the first of equals


def gemm_sides(game: Game) -> tuple[int, int, int] | None:
    """m, n, k when the game is C := A B in place with equal weights, built by `pebble.dag.gemm`; else None.

    The names say what it may be, and every task is checked against them.
    """
    if game.variant is not Variant.IN_PLACE or len(set(game.weights)) != 1:
        return None
    last = dict.fromkeys("ABC", (-1, -1))
    places = []
    for name in game.names:
        match = _ELEMENT.fullmatch(name)
        if match is None:
            return None
        place = (match[1], int(match[2]), int(match[3]))
        places.append(place)
        last[place[0]] = max(last[place[0]][0], place[1]), max(last[place[0]][1], place[2])
    (m, k), (n, k2) = (last["A"][0] + 1, last["A"][1] + 1), (last["B"][1] + 1, last["B"][0] + 1)
    if k != k2 or last["C"] != (m - 1, n - 1) or len(game.tasks) != m * n * k or len(set(places)) != len(places):
        return None
    products = set()
    for task in game.tasks:
        operands = sorted(places[o] for o in task.operands)
        target = places[task.target]
        if [o[0] for o in operands] != ["A", "B"] or target[0] != "C" or task.after:
            return None
        (_, i, l), (_, l2, j) = operands
        if l != l2 or target != ("C", i, j):
            return None
        products.add((i, j, l))
    cells = [i for i, place in enumerate(places) if place[0] == "C"]
    if len(products) != m * n * k or any(game.is_input[c] or not game.is_output[c] for c in cells):
        return None
    return m, n, k


@lru_cache(maxsize=64)
def fewest_touched(game: Game, largest: int, steps: int = _SEARCH_STEPS) -> tuple[int, ...]:
    """For r = 0 .. largest, a weight that any r tasks together touch at least (operands and targets).

    Exact while ``steps`` last, then the last exact value goes on: it never falls as r grows.

    Notes
    -----
    Branch and bound over sets of tasks; ``steps`` bounds the time.
    """
    masks = [_touched(game, t) for t in range(len(game.tasks))]
    weigh = _Weigher(game.weights)
    found = [0]
    budget = steps
    for r in range(1, min(largest, len(masks) if len(masks) <= _MOST_TASKS else 1) + 1):
        best, budget = _fewest(masks, r, weigh, budget)
        if best is None:
            break
        found.append(best)
    return tuple(found + [found[-1]] * (largest + 1 - len(found)))


def segment_bound(game: Game, capacity: int) -> int:
    """The best segment bound over all chains of windows; 0 where values may be computed again.

    Windows overlap in one task. What is red during the task they share weighs at most the capacity, in sliding
    variants plus one operand that has just lost its pebble; the rest of what the window touches is loaded or
    begun in it.

    Notes
    -----
    Weights of values begun add up to those of the computed values, so
    loads >= sum over windows - weight computed, and every output computed is stored.
    """
    tasks = len(game.tasks)
    if game.variant.recompute or not tasks:
        return 0
    largest = min(tasks, _LARGEST_WINDOW)
    if tasks > _MOST_TASKS:  # windows of one task say no more than the compulsory cost
        return 0
    least = window_entries(game, capacity, largest)
    first = fewest_touched(game, largest + 1)
    best = [0] * (tasks + 1)  # best[p]: weight that enters in the first p tasks
    for p in range(1, tasks + 1):
        best[p] = max(first[r] if r == p else best[p - r] + least[r] for r in range(1, min(p, largest) + 1))
    begun = sum(game.weights[i] for i in range(game.size) if game.updates[i] and not game.is_input[i])
    stores = sum(game.weights[i] for i in range(game.size) if game.updates[i] and game.is_output[i])
    return best[tasks] - begun + stores


def window_entries(game: Game, capacity: int, largest: int) -> list[int]:
    """For r = 0 .. largest, the weight that at least enters fast memory during r consecutive tasks.

    The r tasks are not the first of the schedule; a value enters when it is loaded or begun.
    """
    touched = fewest_touched(game, largest + 1)
    extra = max(game.weights, default=0) if game.variant.sliding else 0
    # either the task before is counted in with all that is red in it, or only what survives it is
    return [max(0, touched[r + 1] - capacity - extra, touched[r] - capacity) if r else 0 for r in range(largest + 1)]


def _touched(game: Game, task: int) -> int:
    mask = 1 << game.tasks[task].target
    for operand in game.tasks[task].operands:
        mask |= 1 << operand
    return mask


class _Weigher:
    """Weight of a set of items given as bits."""

    def __init__(self, weights: tuple[int, ...]) -> None:
        self.weights = weights
        self.unit = weights[0] if weights and len(set(weights)) == 1 else 0

    def __call__(self, mask: int) -> int:
        if self.unit:
            return mask.bit_count() * self.unit
        total = 0
        while mask:
            low = mask & -mask
            total += self.weights[low.bit_length() - 1]
            mask ^= low
        return total


def _fewest(masks: list[int], r: int, weigh: _Weigher, budget: int) -> tuple[int | None, int]:
    """Least weight of a union of r masks, or None when the budget is spent."""
    best = _greedy(masks, r, weigh)
    stack = [(0, 0, r)]
    while stack:
        budget -= 1
        if budget <= 0:
            return None, 0
        start, union, left = stack.pop()
        for t in range(len(masks) - left, start - 1, -1):
            wider = union | masks[t]
            weight = weigh(wider)
            if weight >= best:
                continue
            if left == 1:
                best = weight
            else:
                stack.append((t + 1, wider, left - 1))
    return best, budget


def _greedy(masks: list[int], r: int, weigh: _Weigher) -> int:
    best = weigh(-1 & ((1 << max(m.bit_length() for m in masks)) - 1))
    for first in range(len(masks)):
        union, rest = masks[first], [m for t, m in enumerate(masks) if t != first]
        for _ in range(r - 1):
            nearest = min(rest, key=lambda m: weigh(union | m))
            union |= nearest
            rest.remove(nearest)
        best = min(best, weigh(union))
    return best
