"""The optimum by brute force, for tests: Dijkstra over all states of the game, rule by rule.

It shares no code with the referee or a solver: it reads the networkx graph itself and knows the rules on its own.
Good up to some ten nodes, a few more where the capacity is small.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Any, NamedTuple

State = tuple[int, int, int]  # red, blue, done: bit masks
NamedMove = tuple[str, ...]  # (op, node), for a slide (op, node, source)


class Step(NamedTuple):
    """One computation, as masks."""

    name: str
    own: int
    target: int
    weight: int
    operands: tuple[tuple[str, int, int], ...]  # name, bit, weight
    before: int  # steps that must be done: those in its order, and all of each operand
    siblings: int  # all steps of the same cell; 0 for an ordinary value
    begins_blue: bool


def brute_force(dag: Any, capacity: int, variant: str) -> int | None:
    """The least cost of pebbling a DAG, or None when no pebbling exists.

    Raises
    ------
    ValueError
        No output needs a node, so this is no game.
    """
    result = brute_force_pebbling(dag, capacity, variant)
    return None if result is None else result[0]


def brute_force_pebbling(dag: Any, capacity: int, variant: str) -> tuple[int, list[NamedMove]] | None:
    """The least cost, and moves that have it.

    A state is (red set, blue set, computations done). Every legal move is tried from every state; nothing is assumed
    about what a good pebbling looks like.
    """
    sliding = variant in ("one-shot-sliding", "recompute-sliding")
    recompute = variant in ("recompute", "recompute-sliding")
    data: dict[Hashable, dict[str, Any]] = dict(dag.nodes(data=True))
    for v in data:
        if not (dag.out_degree(v) or data[v].get("output", True)):
            raise ValueError(f"no output needs {v}")
    items = [v for v in data if "accumulator" not in data[v]]
    bit = {v: 1 << i for i, v in enumerate(items)}
    weight = {v: data[v].get("weight", 1) for v in items}
    updaters: dict[Hashable, list[Hashable]] = {}
    for v in data:
        if "accumulator" in data[v]:
            updaters.setdefault(data[v]["accumulator"], []).append(v)
    computed = [v for v in items if dag.in_degree(v) and v not in updaters]
    steps = _steps(dag, data, computed, updaters, bit, weight)

    step_bit = {step.name: step.own for step in steps}
    outputs = [v for v in items if data[v].get("output", dag.out_degree(v) == 0)]
    goal_blue = sum(bit[v] for v in outputs)
    goal_done = sum(step_bit[str(u)] for v in outputs for u in updaters.get(v, ()))
    start_blue = sum(bit[v] for v in items if dag.in_degree(v) == 0 or data[v].get("initial", False))
    every = [(str(v), bit[v], weight[v]) for v in items]

    start: State = (0, start_blue, 0)
    best = {start: 0}
    came: dict[State, tuple[State, NamedMove]] = {}
    heap: list[tuple[int, State]] = [(0, start)]
    closed: set[State] = set()
    while heap:
        cost, state = heapq.heappop(heap)
        if state in closed:
            continue
        closed.add(state)
        red, blue, done = state
        if blue & goal_blue == goal_blue and done & goal_done == goal_done:
            moves = []
            while state != start:
                state, move = came[state]
                moves.append(move)
            return cost, moves[::-1]
        used = sum(w for _, b, w in every if red & b)
        after: list[tuple[int, State, NamedMove]] = []
        for name, b, w in every:
            if red & b:
                after.append((0, (red & ~b, blue, done), ("delete", name)))
                if not blue & b:
                    after.append((w, (red, blue | b, done), ("store", name)))
            elif blue & b and used + w <= capacity:
                after.append((w, (red | b, blue, done), ("load", name)))
        for step in steps:
            if not all(red & b for _, b, _ in step.operands) or done & step.before != step.before:
                continue
            if done & step.own and not recompute:
                continue
            if step.siblings:
                fresh = not done & step.siblings and not step.begins_blue
                if not fresh and not red & step.target:
                    continue
                blue_after = blue & ~step.target
            else:
                if red & step.target:
                    continue
                blue_after = blue
            weight_after = used + (0 if red & step.target else step.weight)
            state_after = (red | step.target, blue_after, done | step.own)
            if weight_after <= capacity:
                after.append((0, state_after, ("compute", step.name)))
            if sliding:
                for name, b, lost in step.operands:
                    if weight_after - lost <= capacity:
                        slid = (state_after[0] & ~b, *state_after[1:])
                        after.append((0, slid, ("slide", step.name, name)))
        for price, following, move in after:
            if cost + price < best.get(following, 1 << 60):
                best[following] = cost + price
                came[following] = state, move
                heapq.heappush(heap, (cost + price, following))
    return None


def _steps(
    dag: Any,
    data: dict[Hashable, dict[str, Any]],
    computed: list[Hashable],
    updaters: dict[Hashable, list[Hashable]],
    bit: dict[Hashable, int],
    weight: dict[Hashable, int],
) -> list[Step]:
    names = [*computed, *(task for tasks in updaters.values() for task in tasks)]
    own = {name: 1 << i for i, name in enumerate(names)}
    steps = []
    for name in names:
        target = data[name].get("accumulator", name)
        operands = [p for p in dag.predecessors(name) if p in bit]
        before = 0
        for p in dag.predecessors(name):
            for earlier in updaters.get(p, ()) if p in bit else (p,):
                before |= own[earlier]
        steps.append(
            Step(
                str(name),
                own[name],
                bit[target],
                weight[target],
                tuple((str(p), bit[p], weight[p]) for p in operands),
                before,
                sum(own[task] for task in updaters.get(target, ())),
                bool(data[target].get("initial", False)),
            )
        )
    return steps
