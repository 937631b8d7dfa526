"""The truth about a game as a certificate states it: its least cost, by Dijkstra over all states.

It reads the statement and knows the rules on its own; it shares no code with the checker, the referee or a solver.
Good up to some eight values.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

State = tuple[int, int, int]  # red, blue, tasks done: bit masks


def sensible(game: dict[str, Any]) -> bool:
    """Whether every output can be had, and needs every value and every task; judged backwards from the outputs."""
    values, tasks = game["values"], game["tasks"]
    by_target: dict[int, list[int]] = {}
    for number, (_, target, _, _) in enumerate(tasks):
        by_target.setdefault(target, []).append(number)
    for x, (_, _, role) in enumerate(values):
        updates = by_target.get(x, [])
        if not updates and "input" not in role:
            return False
        if game["variant"] != "in-place" and (len(updates) > 1 or (updates and "input" in role)):
            return False
    if any(tasks[first][1] != target for _, target, _, after in tasks for first in after):
        return False
    complete = {x for x in range(len(values)) if x not in by_target}
    done: set[int] = set()
    traffic = True
    while traffic:
        traffic = False
        for number, (_, target, operands, after) in enumerate(tasks):
            if number not in done and set(operands) <= complete and set(after) <= done:
                done.add(number)
                traffic = True
                if done.issuperset(by_target[target]):
                    complete.add(target)
    if len(done) < len(tasks):
        return False
    needed: set[int] = set()
    waiting = [x for x, (_, _, role) in enumerate(values) if "output" in role]
    while waiting:
        x = waiting.pop()
        if x not in needed:
            needed.add(x)
            waiting += [y for number in by_target.get(x, []) for y in tasks[number][2]]
    return len(needed) == len(values)


class Oracle:
    """A game in masks.

    Parameters
    ----------
    game : dict
        The statement: variant, capacity, values, tasks.
    prices : list of int, optional
        What moving each value costs; by default its weight.
    """

    def __init__(self, game: dict[str, Any], prices: list[int] | None = None) -> None:
        self.weights = [weight for _, weight, _ in game["values"]]
        self.prices = self.weights if prices is None else prices
        self.capacity = min(game["capacity"], sum(self.weights))
        self.recompute = game["variant"].startswith("recompute")
        self.sliding = game["variant"].endswith("sliding")
        roles = [role for _, _, role in game["values"]]
        self.inputs = sum(1 << x for x, role in enumerate(roles) if "input" in role)
        self.outputs = sum(1 << x for x, role in enumerate(roles) if "output" in role)
        self.updates = [0] * len(roles)
        for number, (_, target, _, _) in enumerate(game["tasks"]):
            self.updates[target] |= 1 << number
        self.tasks = []
        for number, (_, target, operands, after) in enumerate(game["tasks"]):
            before = sum(1 << first for first in after)
            for x in operands:
                before |= self.updates[x]
            cell = bool(self.inputs >> target & 1) or self.updates[target].bit_count() > 1
            self.tasks.append((1 << number, target, sum(1 << x for x in operands), before, cell))

    def least(self) -> int | None:
        """The least cost; None when no pebbling exists."""
        start: State = (0, self.inputs, 0)
        finish = 0
        for x, updates in enumerate(self.updates):
            finish |= updates if self.outputs >> x & 1 else 0
        best = {start: 0}
        heap = [(0, start)]
        while heap:
            cost, state = heapq.heappop(heap)
            if cost > best[state]:
                continue
            if not self.outputs & ~state[1] and not finish & ~state[2]:
                return cost
            for price, following in self._moves(*state):
                if cost + price < best.get(following, 1 << 60):
                    best[following] = cost + price
                    heapq.heappush(heap, (cost + price, following))
        return None

    def _moves(self, red: int, blue: int, done: int) -> Iterator[tuple[int, State]]:
        held = sum(w for x, w in enumerate(self.weights) if red >> x & 1)
        for x, weight in enumerate(self.weights):
            bit = 1 << x
            if red & bit:
                yield 0, (red & ~bit, blue, done)
                if not blue & bit:
                    yield self.prices[x], (red, blue | bit, done)
            elif blue & bit and held + weight <= self.capacity:
                yield self.prices[x], (red | bit, blue, done)
        for own, x, operands, before, cell in self.tasks:
            bit = 1 << x
            if operands & ~red or before & ~done or (done & own and not self.recompute):
                continue
            initialised = cell and bool(self.inputs & bit or done & self.updates[x])
            if initialised != bool(red & bit):
                continue
            after = (red | bit, blue if self.recompute else blue & ~bit, done | own)
            capacity = held + (0 if red & bit else self.weights[x])
            if capacity <= self.capacity:
                yield 0, after
            if self.sliding:
                for y, weight in enumerate(self.weights):
                    if operands >> y & 1 and capacity - weight <= self.capacity:
                        yield 0, (after[0] & ~(1 << y), after[1], after[2])


def least_cost(game: dict[str, Any], prices: list[int] | None = None) -> int | None:
    """The least cost of a stated game; None when no pebbling exists."""
    return Oracle(game, prices).least()
