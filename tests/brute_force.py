"""The optimum by brute force, for tests: Dijkstra over all states of the game, rule by rule.

It shares no code with the referee or a solver: it reads the networkx graph itself and knows the rules on its
own. Good up to some ten nodes, a few more where the capacity is small.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Any


def brute_force(dag: Any, capacity: int, variant: str) -> int | None:
    """The least cost of pebbling a DAG, or None when no pebbling exists.

    A state is (red set, blue set, tasks done), as bit masks. Every legal move is tried from every state;
    nothing is assumed about what a good pebbling looks like.
    """
    sliding = variant in ("one-shot-sliding", "recompute-sliding")
    recompute = variant in ("recompute", "recompute-sliding")
    data: dict[Hashable, dict[str, Any]] = dict(dag.nodes(data=True))
    items = [v for v in data if "accumulator" not in data[v]]
    bit = {v: 1 << i for i, v in enumerate(items)}
    weight = [data[v].get("weight", 1) for v in items]
    updaters: dict[Hashable, list[Hashable]] = {}
    for v in data:
        if "accumulator" in data[v]:
            updaters.setdefault(data[v]["accumulator"], []).append(v)
    steps = [v for v in data if v in bit and dag.in_degree(v) and v not in updaters]
    steps += [t for ts in updaters.values() for t in ts]
    step_bit = {t: 1 << i for i, t in enumerate(steps)}

    # per step: own bit, result's bit and weight, operands' mask, operands one by one, mask of the steps that
    # must come before (order, completion of operands), all steps of the result, whether it starts blue
    table = []
    for t in steps:
        target = data[t].get("accumulator", t)
        operands = [p for p in dag.predecessors(t) if p in bit]
        before = sum(step_bit[p] for p in dag.predecessors(t) if p in step_bit and p not in bit)
        for p in operands:
            before |= sum(step_bit[u] for u in updaters.get(p, ()))
        siblings = sum(step_bit[u] for u in updaters.get(target, ()))
        begins_blue = bool(data[target].get("initial", False))
        pairs = [(bit[p], weight[items.index(p)]) for p in operands]
        mask = sum(b for b, _ in pairs)
        table.append(
            (
                step_bit[t],
                bit[target],
                weight[items.index(target)],
                mask,
                pairs,
                before,
                siblings,
                begins_blue,
            )
        )

    outputs = [v for v in items if data[v].get("output", dag.out_degree(v) == 0)]
    goal_blue = sum(bit[v] for v in outputs)
    goal_done = sum(step_bit[u] for v in outputs for u in updaters.get(v, ()))
    start_blue = sum(bit[v] for v in items if dag.in_degree(v) == 0 or data[v].get("initial", False))
    every = [(bit[v], weight[i]) for i, v in enumerate(items)]

    start = (0, start_blue, 0)
    best = {start: 0}
    heap: list[tuple[int, tuple[int, int, int]]] = [(0, start)]
    closed = set()
    while heap:
        cost, state = heapq.heappop(heap)
        if state in closed:
            continue
        closed.add(state)
        red, blue, done = state
        if blue & goal_blue == goal_blue and done & goal_done == goal_done:
            return cost
        used = sum(w for b, w in every if red & b)
        after: list[tuple[int, tuple[int, int, int]]] = []
        for b, w in every:
            if red & b:
                after.append((0, (red & ~b, blue, done)))  # delete
                if not blue & b:
                    after.append((w, (red, blue | b, done)))  # store
            elif blue & b and used + w <= capacity:
                after.append((w, (red | b, blue, done)))  # load
        for own, target, w, mask, pairs, before, siblings, begins_blue in table:
            if red & mask != mask or done & before != before or (done & own and not recompute):
                continue
            if siblings:
                fresh = not done & siblings and not begins_blue
                if not fresh and not red & target:
                    continue
                grows, blue_after = (0 if red & target else w), blue & ~target
            else:
                if red & target:
                    continue
                grows, blue_after = w, blue
            if used + grows <= capacity:
                after.append((0, (red | target, blue_after, done | own)))  # compute
            if sliding:
                for b, lost in pairs:
                    if used + grows - lost <= capacity:
                        after.append((0, ((red | target) & ~b, blue_after, done | own)))  # slide
        for price, state in after:
            if cost + price < best.get(state, 1 << 60):
                best[state] = cost + price
                heapq.heappush(heap, (cost + price, state))
    return None
