"""The optimum of the game with several memories by Dijkstra over all its states, for tests.

It reads the networkx graph itself and shares no code with the referee or a solver. Good up to some six or seven nodes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import lcm
from typing import Any


def brute_force_several(
    dag: Any,
    capacity: int,
    memories: int,
    price: Callable[[int, int], Fraction | None],
    most_tasks: int | None = None,
    may_do: Callable[[str, int], bool] = lambda task, sm: True,
) -> Fraction | None:
    """The least cost, or None when no pebbling exists; ``price(p, q)`` of a copy per value, tasks by their names."""
    data = dict(dag.nodes(data=True))
    items = [v for v in data if "accumulator" not in data[v]]
    bit = {v: 1 << i for i, v in enumerate(items)}
    weight = {bit[v]: data[v].get("weight", 1) for v in items}
    updaters: dict[Any, list[Any]] = {}
    for v in data:
        if "accumulator" in data[v]:
            updaters.setdefault(data[v]["accumulator"], []).append(v)
    steps = [v for v in data if "accumulator" in data[v] or (dag.in_degree(v) and v not in updaters)]
    own = {v: 1 << i for i, v in enumerate(steps)}
    rules = []
    for v in steps:
        target = data[v].get("accumulator", v)
        operands = [p for p in dag.predecessors(v) if p in bit]
        before = 0
        for p in dag.predecessors(v):
            for earlier in updaters.get(p, [p] if p in own else []):
                before |= own[earlier]
        siblings = sum(own[u] for u in updaters.get(target, [v]))
        starts_blue = bool(data[target].get("initial", False))
        places = [may_do(str(v), q) for q in range(memories)]
        rules.append((places, own[v], bit[target], sum(bit[p] for p in operands), before, siblings, starts_blue))
    outputs = [v for v in items if data[v].get("output", dag.out_degree(v) == 0)]
    goal_blue = sum(bit[v] for v in outputs)
    goal_done = sum(own[u] for v in outputs for u in updaters.get(v, [v] if v in own else []))
    blue0 = sum(bit[v] for v in items if not dag.in_degree(v) or data[v].get("initial", False))
    prices = {(p, q): price(p, q) for p in range(memories) for q in range(memories) if p != q}
    # costs in whole units, of which a load takes so many: fractions take many times as long
    unit = lcm(*(Fraction(each).denominator for each in prices.values() if each is not None))
    copy = {pair: None if each is None else int(each * unit) for pair, each in prices.items()}

    @cache
    def held(red: int) -> int:
        return sum(w for b, w in weight.items() if red & b)

    counts0 = (0,) * memories if most_tasks is not None else ()
    start = ((0,) * memories, blue0, 0, counts0)
    best: dict[Any, int] = {start: 0}
    heap = [(0, 0, start)]
    tie = 0
    closed = set()
    while heap:
        cost, _, state = heapq.heappop(heap)
        if state in closed:
            continue
        closed.add(state)
        reds, blue, done, counts = state
        if blue & goal_blue == goal_blue and done & goal_done == goal_done:
            return Fraction(cost, unit)
        after = []
        for q, red in enumerate(reds):
            free_capacity = capacity - held(red)

            def change(now: int, q: int = q, reds: tuple[int, ...] = reds) -> tuple[int, ...]:
                return (*reds[:q], now, *reds[q + 1 :])

            for b, w in weight.items():
                if red & b:
                    after.append((0, (change(red & ~b), blue, done, counts)))
                    if not blue & b:
                        after.append((w * unit, (reds, blue | b, done, counts)))
                elif w <= free_capacity:
                    if blue & b:
                        after.append((w * unit, (change(red | b), blue, done, counts)))
                    for p in range(memories):
                        if p != q and reds[p] & b and copy[p, q] is not None:
                            after.append((copy[p, q] * w, (change(red | b), blue, done, counts)))
            for places, me, target, operands, before, siblings, starts_blue in rules:
                if not places[q] or done & me or red & operands != operands or done & before != before:
                    continue
                fresh = not done & siblings and not starts_blue
                if not fresh and not red & target:
                    continue
                if not red & target and weight[target] > free_capacity:
                    continue
                if most_tasks is not None and counts[q] == most_tasks:
                    continue
                now = tuple((r & ~target) if p != q else (r | target) for p, r in enumerate(reds))
                tally = (*counts[:q], counts[q] + 1, *counts[q + 1 :]) if counts else counts
                after.append((0, (now, blue & ~target, done | me, tally)))
        for extra, following in after:
            total = cost + extra
            if following not in best or total < best[following]:
                best[following] = total
                tie += 1
                heapq.heappush(heap, (total, tie, following))
    return None
