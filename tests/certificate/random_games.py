"""Random small games of every variant as a certificate states them, odd ones and senseless ones among them."""

from __future__ import annotations

import random
from typing import Any

import networkx as nx

VARIANTS = ("one-shot", "one-shot-sliding", "recompute", "recompute-sliding", "in-place")


def random_game(
    rnd: random.Random, variant: str, flaws: float = 0.0, most: int = 4, weighted: bool = True
) -> dict[str, Any]:
    """A statement: inputs (some isolated, some outputs), values with none to three operands, cells when in-place.

    Parameters
    ----------
    rnd : random.Random
    variant : str
    flaws : float
        How likely it is, value by value, that no output needs it.
    most : int
        Values that are computed, at most.
    weighted : bool
        Whether values weigh more than 1 at times.
    """
    weights = [1, 1, 1, 2, 3] if weighted and rnd.random() < 0.4 else [1]
    values: list[list[Any]] = [[f"x{i}", rnd.choice(weights), "input"] for i in range(rnd.randint(1, 3))]
    tasks: list[list[Any]] = []
    for i in range(rnd.randint(1, most)):
        x = len(values)
        cell = variant == "in-place" and rnd.random() < 0.6
        starts = cell and rnd.random() < 0.3
        values.append([f"y{i}", rnd.choice(weights), "input" if starts else "between"])
        first = len(tasks)
        for u in range(rnd.randint(1, 3) if cell else 1):
            operands = rnd.sample(range(x), min(x, rnd.choice([0, 1, 1, 2, 2, 3]) if cell and u else rnd.randint(1, 3)))
            after = [t for t in range(first, first + u) if rnd.random() < 0.3]
            tasks.append([f"t{len(tasks)}" if cell else f"y{i}", x, sorted(operands), after])
    used = {x for _, _, operands, _ in tasks for x in operands}
    for x, value in enumerate(values):
        wanted = rnd.random() < 0.2 or (x not in used and rnd.random() >= flaws)
        if wanted:
            value[2] = {"input": "input and output", "between": "output"}[value[2]]
    capacity = 1 + max(values[target][1] + sum(values[x][1] for x in operands) for _, target, operands, _ in tasks)
    return {"variant": variant, "capacity": max(1, capacity - rnd.randrange(2)), "values": values, "tasks": tasks}


def shuffled(game: dict[str, Any], rnd: random.Random) -> dict[str, Any]:
    """The same game, values and tasks in another order."""
    places, turns = list(range(len(game["values"]))), list(range(len(game["tasks"])))
    rnd.shuffle(places)
    rnd.shuffle(turns)
    values = sorted(range(len(places)), key=places.__getitem__)
    tasks = [
        [name, places[target], [places[x] for x in operands], [turns[t] for t in after]]
        for name, target, operands, after in game["tasks"]
    ]
    return {
        **game,
        "values": [game["values"][x] for x in values],
        "tasks": [tasks[t] for t in sorted(range(len(turns)), key=turns.__getitem__)],
    }


def as_dag(game: dict[str, Any]) -> nx.DiGraph[Any] | None:
    """The game as a networkx DAG, every role written out; None where a DAG cannot say it (a cell without operands)."""
    dag: nx.DiGraph[Any] = nx.DiGraph()
    updates: dict[int, list[int]] = {}
    for number, (_, target, _, _) in enumerate(game["tasks"]):
        updates.setdefault(target, []).append(number)
    names = [name for name, _, _ in game["values"]]
    for x, (name, weight, role) in enumerate(game["values"]):
        dag.add_node(name, weight=weight, output="output" in role)
        if x in updates and "input" in role:
            dag.nodes[name]["initial"] = True
    for _number, (name, target, operands, after) in enumerate(game["tasks"]):
        node = names[target]
        if name != node:
            node = name
            dag.add_node(node, accumulator=names[target])
            dag.add_edge(node, names[target])
        dag.add_edges_from((names[x], node) for x in operands)
        dag.add_edges_from((game["tasks"][first][0], node) for first in after)
        if not dag.pred[node]:
            return None
    return dag
