"""The S-partition bound (Hong and Kung 1981), with the least number of parts found by integer programming.

Cut a pebbling into phases of at most S moves between the memories. Leave out computations whose result is dropped
unused. V_i, the values first computed in phase i, has a dominator of at most 2 S values (what was red at its start and
what it loaded: every path from an input to V_i meets one of them), and at most 2 S of its values have no child in V_i
(they are red at its end or stored in it, for a child in a later phase or as outputs). Operands come from the same or
earlier phases. So the values that are computed can be split into at most ceil(Q / S) such parts, in order; if they
cannot be split into fewer than H,

    cost >= S (H - 1).

Recomputation does no harm, since only the first computation of a value counts.
"""

from __future__ import annotations

import time
from typing import Any

from pebble.bounds.dag.windows import EVERY_PLAIN, DagBound, edges, same_weight
from pebble.game import Game
from pebble.system.isolation import Library, StoppedError, call

NAME = "hong-kung"
SOURCE = "Hong, Kung 1981, S-partition by dominators"
MOST_ITEMS = 80
_GRACE_SECONDS = 1.0  # for HiGHS to see that its time is over


def bound(game: Game, capacity: int, seconds: float) -> DagBound:
    """Holds with and without recomputation, for equal weights; as many parts as are refuted in the time given."""
    weight = same_weight(game)
    if game.variant not in EVERY_PLAIN or weight is None:
        return DagBound(NAME, SOURCE, None, EVERY_PLAIN, "holds for equal weights and games without cells")
    if game.size > MOST_ITEMS:
        return DagBound(NAME, SOURCE, None, EVERY_PLAIN, f"the DAG has {game.size} values, the limit is {MOST_ITEMS}")
    held = capacity // weight
    deadline = time.monotonic() + seconds
    parts = 1  # the least number not yet refuted
    why = "no fewer parts are possible"
    while parts < len(game.tasks):
        left = deadline - time.monotonic()
        refuted = _refuted(game, held, parts, left) if left > 0 else None
        if refuted is None:
            why = f"more parts may be needed, {seconds:g} s did not tell"
            break
        if not refuted:
            break
        parts += 1
    return DagBound(NAME, SOURCE, held * (parts - 1) * weight, EVERY_PLAIN, f"{parts} parts at least; {why}")


def _refuted(game: Game, held: int, parts: int, seconds: float) -> bool | None:
    """Whether no such partition exists; None when time ran out."""
    until = time.monotonic() + seconds + _GRACE_SECONDS

    def late() -> bool:
        return time.monotonic() > until

    try:
        status = call(Library.HIGHS, "pebble.bounds.dag.hong_kung:_solve", game, held, parts, seconds, until=late)
    except StoppedError:
        return None
    return {"infeasible": True, "optimal": False}.get(status)


def _solve(game: Game, held: int, parts: int, seconds: float) -> str:
    """In the worker."""
    from pebble.system.isolation.highs import minimise

    return minimise(_program(game, held, parts), seconds)


def _program(game: Game, held: int, parts: int) -> Any:
    """Feasible exactly when the computed values have a 2S-partition into ``parts`` ordered, possibly empty parts."""
    import pulp

    program = pulp.LpProblem("partition", pulp.LpMinimize)  # without an objective: any solution will do
    pairs = edges(game)
    computed = [v for v in range(game.size) if game.updates[v]]
    children: dict[int, list[int]] = {v: [] for v in range(game.size)}
    for u, v in pairs:
        children[u].append(v)

    def binary(name: str) -> Any:
        return program.add_variable(name, cat="Binary")

    inside = {(v, p): binary(f"in_{v}_{p}") for v in computed for p in range(parts)}
    for v in computed:
        program += pulp.lpSum(inside[v, p] for p in range(parts)) == 1
    for u, v in pairs:
        if game.updates[u]:
            for p in range(parts):  # an operand's part does not come after
                program += pulp.lpSum(inside[u, q] for q in range(p + 1)) >= pulp.lpSum(
                    inside[v, q] for q in range(p + 1)
                )
    for p in range(parts):
        dominates = {v: binary(f"dom_{v}_{p}") for v in range(game.size)}
        open_path = {v: program.add_variable(f"open_{v}_{p}", 0, 1) for v in range(game.size)}
        for v in range(game.size):
            if game.is_input[v]:
                program += open_path[v] >= 1 - dominates[v]
        for u, v in pairs:
            program += open_path[v] >= open_path[u] - dominates[v]
        lowest = []
        for v in computed:
            program += open_path[v] <= 1 - inside[v, p]
            last = program.add_variable(f"last_{v}_{p}", 0, 1)
            program += last >= inside[v, p] - pulp.lpSum(inside[c, p] for c in children[v])
            lowest.append(last)
        program += pulp.lpSum(dominates.values()) <= 2 * held
        program += pulp.lpSum(lowest) <= 2 * held
    return program
