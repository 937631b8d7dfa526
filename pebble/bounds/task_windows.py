"""The least weight that windows of consecutive tasks touch, and the segment bound that follows.

Cut the schedule of any game that computes a value once into windows of r consecutive tasks; each window touches at
least x(r) values, all but what is held at its start are loaded or initialised in it, and the beginnings are known in
number.
"""

from __future__ import annotations

from functools import lru_cache

from pebble.game import Game

_SEARCH_STEPS = 20_000
_LARGEST_WINDOW = 24
_MOST_TASKS = 128  # above, the windows are left out


@lru_cache(maxsize=64)
def fewest_touched(game: Game, largest: int, among: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """For r = 0 .. largest, a weight that any r tasks together touch at least (operands and targets), of some tasks.

    Exact while the steps of a branch and bound over sets of tasks last, then the last exact value goes on: it never
    falls as r grows.
    """
    masks = [_touched(game, t) for t in (range(len(game.tasks)) if among is None else among)]
    weigh = _Weigher(game.weights)
    results = [0]
    budget = _SEARCH_STEPS
    for r in range(1, min(largest, len(masks) if len(masks) <= _MOST_TASKS else 1) + 1):
        best, budget = _fewest(masks, r, weigh, budget)
        if best is None:
            break
        results.append(best)
    return tuple(results + [results[-1]] * (largest + 1 - len(results)))


def segment_bound(game: Game, capacity: int) -> int:
    """The best segment bound over all chains of windows; 0 where values may be computed again.

    Windows overlap in one task. What is red during the task they share weighs at most the capacity, in sliding
    variants plus one operand that has just lost its pebble; the rest of what the window touches is loaded or
    initialised in it.

    Notes
    -----
    Weights of values initialised add up to those of the computed values, so
    loads >= sum over windows - weight computed, and every output computed is stored.
    """
    tasks = len(game.tasks)
    # windows of one task, all that larger games have, say no more than the compulsory cost
    if game.variant.recompute or not 0 < tasks <= _MOST_TASKS:
        return 0
    initialised = sum(game.weights[i] for i in range(game.size) if game.updates[i] and not game.is_input[i])
    stores = sum(game.weights[i] for i in range(game.size) if game.updates[i] and game.is_output[i])
    return entries(game, capacity)[tasks] - initialised + stores


def entries(game: Game, capacity: int) -> list[int]:
    """E(r) for r = 0 .. all tasks: weight that enters a memory in which any r tasks are done and no others."""
    tasks = len(game.tasks)
    if not tasks:
        return [0]
    largest = min(tasks, _LARGEST_WINDOW)
    least = window_entries(game, capacity, largest)
    first = fewest_touched(game, largest + 1)
    best = [0] * (tasks + 1)
    for p in range(1, tasks + 1):
        chained = max(first[r] if r == p else best[p - r] + least[r] for r in range(1, min(p, largest) + 1))
        best[p] = max(best[p - 1], chained)
    return best


def window_entries(game: Game, capacity: int, largest: int) -> list[int]:
    """For r = 0 .. largest, the weight that at least enters fast memory during r consecutive tasks.

    The r tasks are not the first of the schedule; a value enters when it is loaded or initialised.
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
