"""Upper bounds: good orders of the tasks, and for each order a good choice of what to evict.

For a fixed order, evicting the value whose next use is farthest away (Belady 1966) is optimal when all transfers cost
the same; dirty values cost a store besides, so several rules are tried. Orders: as given, depth first from each
output, greedily the task that needs the fewest loads, a beam of the same, and local changes to the best.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil

from pebble.bounds.task_splits import least_split
from pebble.game import Game, at_sm
from pebble.solvers.lower import best_simple_bound, bound_for_several
from pebble.solvers.plan import Plan, read_plan, write_moves
from pebble.solvers.result import Incumbent, Problem
from pebble.solvers.several.common import Phases, common_schedules, split_schedules
from pebble.solvers.several.play import play

_GREEDY_TASKS = 3000  # above, only the orders that need no look at the memory
_LOCAL_TASKS = 120
_BEAM_TASKS = 80
_BEAM_WIDTH = 40
_LOCAL_TRIES = 1500
# next use, cost of evicting and reloading one unit (1 clean, 2 dirty) -> the largest is evicted
_RULES: tuple[Callable[[float, int], float], ...] = (
    lambda next_use, cost: next_use,
    lambda next_use, cost: next_use - 1e7 * cost,
    lambda next_use, cost: next_use / cost,
)


def solve_heuristic(best: Incumbent) -> str:
    """Offer the best pebbling of some hundred schedules; proves nothing beyond the simple bounds."""
    game, capacity = best.problem.game, best.problem.capacity
    champion: tuple[int, tuple[int, ...]] | None = None

    def consider(order: Sequence[int]) -> int:
        nonlocal champion
        plan, cost = min((belady(game, capacity, order, rule) for rule in _RULES), key=lambda result: result[1])
        if champion is None or cost < champion[0]:
            champion = (cost, tuple(order))
            if best.upper is None or cost < best.upper:
                best.offer(write_moves(game, plan), "heuristic")
        return cost

    if best.pebbling is not None and (plan_read := read_plan(game, best.pebbling)) is not None:
        consider(plan_read.order)
    for order in _orders(game, capacity, best):
        consider(order)
        if best.stopped:
            break
    if champion is not None and len(game.tasks) <= _LOCAL_TASKS:
        _improve(game, champion[1], champion[0], consider, best)
    return "proved optimal" if best.closed else "heuristic finished"


def solve_alone(best: Incumbent) -> str:
    """Offer what SMs do by schedules in common use, and what one SM can do alone, as the heuristic plays it."""
    problem = best.problem
    if len(problem.game.tasks) <= _GREEDY_TASKS:
        _share(best)
    limited = problem.most_tasks_per_sm is not None and problem.most_tasks_per_sm < len(problem.game.tasks)
    if not limited and not problem.game.allowed:
        single = Problem(problem.game, problem.capacity, problem.seed)
        alone = Incumbent(single, max(0.1, best.seconds_left / 10), best.stop)
        alone.raise_lower(*best_simple_bound(single.game, single.capacity))
        solve_heuristic(alone)
        if alone.pebbling is not None:
            best.offer(at_sm(alone.pebbling.moves), "heuristic at one SM")
    return "proved optimal" if best.closed else "heuristic finished"


def _share(best: Incumbent) -> None:
    """Offer the schedules in common use; where there is a limit on tasks, the least split within it as well."""
    problem = best.problem
    game, sms, most = problem.game, problem.buffers.memories, problem.most_tasks_per_sm
    _offer(best, common_schedules(game, sms))
    if most is None or best.stopped:
        return
    bound = bound_for_several(problem)
    best.raise_lower(ceil(bound.cost * best.unit), bound.name)
    # the split that is best without copies is a start with them too
    for at in dict.fromkeys(least_split(game, sms, most, copies).sms for copies in (False, problem.buffers.copies_pay)):
        if at and not best.stopped:
            _offer(best, split_schedules(game, at, sms, "least split"))


def _offer(best: Incumbent, schedules: Mapping[str, Phases]) -> None:
    """Play schedules, those that keep to the limit on tasks and to the SMs that tasks have."""
    problem, most = best.problem, best.problem.most_tasks_per_sm
    for name, phases in schedules.items():
        done = Counter(sm for phase in phases for _, sm in phase)
        legal = all(problem.game.may_do(t, sm) for phase in phases for t, sm in phase)
        if legal and (most is None or max(done.values(), default=0) <= most):
            best.offer(play(problem.game, problem.capacity, problem.buffers, phases), f"heuristic, {name}")
        if best.stopped:
            break


def belady(
    game: Game, capacity: int, order: Sequence[int], rule: Callable[[float, int], float] = _RULES[0]
) -> tuple[Plan, int]:
    """Play all tasks in an order that the game allows, evicting by the rule; the schedule and its cost.

    The rule scores (position of next use, 1 if clean or 2 if dirty): the largest goes. Time O(tasks * (in-degree +
    values held)).
    """
    weights, tasks, slides = game.weights, game.tasks, game.variant.sliding
    touched: list[list[int]] = [[] for _ in weights]
    for position, t in reversed(list(enumerate(order))):
        task = tasks[t]
        for item in (*task.operands, task.target):
            touched[item].append(position)
    left = [len(t) for t in game.updates]
    blue, initialised = list(game.is_input), list(game.is_input)
    held: set[int] = set()
    held_weight = cost = 0
    keep: list[set[int]] = [set() for _ in order]
    last_touch = [0] * len(weights)
    sources: list[int | None] = []

    for position, t in enumerate(order):
        task = tasks[t]
        target = task.target
        need = {*task.operands, target}
        for item in need:
            touched[item].pop()
            if item not in held:
                if item != target or initialised[item]:
                    cost += weights[item]
                held.add(item)
                held_weight += weights[item]
            else:
                for between in range(last_touch[item], position):
                    keep[between].add(item)
            last_touch[item] = position

        def score(item: int) -> float:
            return rule(touched[item][-1], 1 if blue[item] else 2) if touched[item] else float("inf")

        source = None
        if held_weight > capacity:
            others = sorted(held - need, key=lambda i: (score(i), -i))
            if slides:
                # the operand that is missed least gives its pebble, if it goes before the other values do
                source = max(task.operands, key=lambda i: (score(i), weights[i]))
                rest = held_weight - sum(weights[i] for i in others)
                wanted = not others or score(source) >= score(others[-1])
                if not wanted and rest <= capacity:
                    source = None
                elif rest - weights[source] > capacity or rest - weights[target] > capacity:
                    source = max(task.operands, key=lambda i: weights[i])
            if source is not None:
                held.discard(source)
                held_weight -= weights[source]
            # with a slide, operands and result are never red together, so each side must fit alone
            before = held_weight - weights[target] + (weights[source] if source is not None else 0)
            while others and (held_weight > capacity or (source is not None and before > capacity)):
                victim = others.pop()
                held.discard(victim)
                held_weight -= weights[victim]
                before -= weights[victim]
                if not blue[victim]:
                    cost += weights[victim]
                    blue[victim] = True
            if source is not None and touched[source] and not blue[source]:
                cost += weights[source]
                blue[source] = True
        initialised[target], blue[target] = True, False
        left[target] -= 1
        if not left[target] and game.is_output[target]:
            cost += weights[target]
            blue[target] = True
        for item in need:
            if item in held and not touched[item]:
                held.discard(item)
                held_weight -= weights[item]
        sources.append(source)
    return Plan(tuple(order), tuple(map(frozenset, keep)), tuple(sources)), cost


def _orders(game: Game, capacity: int, best: Incumbent) -> Iterator[Sequence[int]]:
    preds = game.preds
    yield range(len(game.tasks))
    yield _depth_first(game, preds, heavy_first=False)
    yield _depth_first(game, preds, heavy_first=True)
    if len(game.tasks) <= _GREEDY_TASKS:
        yield from _beam(game, capacity, preds, 1, best)
    if len(game.tasks) <= _BEAM_TASKS:
        yield from _beam(game, capacity, preds, _BEAM_WIDTH, best)


def _depth_first(game: Game, preds: Sequence[frozenset[int]], heavy_first: bool) -> list[int]:
    """Finish one output before the next is begun; larger sub-DAGs first or last."""
    depth = [0] * len(preds)
    for t, before in enumerate(preds):
        depth[t] = 1 + sum(depth[u] for u in before)
    done: set[int] = set()
    order: list[int] = []
    roots = [t for i in range(game.size) if game.is_output[i] for t in game.updates[i]]
    stack = roots[::-1]
    while stack:
        t = stack[-1]
        waiting = sorted((u for u in preds[t] if u not in done), key=lambda u: (depth[u], u), reverse=not heavy_first)
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        if t not in done:
            done.add(t)
            order.append(t)
    return order


def _beam(
    game: Game, capacity: int, preds: Sequence[frozenset[int]], width: int, best: Incumbent
) -> Iterator[Sequence[int]]:
    """Orders from a beam: next comes a task that brings in the least and lets the most go.

    What is evicted is guessed here (the values with most uses left stay); ``belady`` decides it afterwards.
    """
    tasks, weights = game.tasks, game.weights
    succs: list[list[int]] = [[] for _ in tasks]
    for t, before in enumerate(preds):
        for u in before:
            succs[u].append(t)
    touches = tuple(len(u) + len(t) for u, t in zip(game.uses, game.updates, strict=True))
    ready = frozenset(t for t, before in enumerate(preds) if not before)
    # cost, order as a linked list, ready tasks, how many predecessors wait, red items, touches left
    waits = tuple(len(before) for before in preds)
    layer: list[_State] = [(0, None, ready, waits, frozenset(), touches)]
    for _ in tasks:
        if best.stopped:
            return
        result: dict[object, tuple[tuple[int, ...], tuple[int, _State]]] = {}
        for index, state in enumerate(layer):
            cost, _trail, now_ready, _waits, red, left = state
            for t in sorted(now_ready):
                need = (*tasks[t].operands, tasks[t].target)
                miss = sum(weights[i] for i in need if i not in red)
                dies = sum(weights[i] for i in need if left[i] == 1)
                key = (cost + miss, -dies, left[tasks[t].target], t, index)
                same = (now_ready - {t}, red.union(need)) if width > 1 else 0
                if same not in result or key < result[same][0]:
                    result[same] = (key, (t, state))
        beam = sorted(result.values(), key=lambda pair: pair[0])[:width]
        layer = [_advance(game, capacity, succs, t, state, key[0]) for key, (t, state) in beam]
    for state in layer[:4]:
        order: list[int] = []
        trail = state[1]
        while trail is not None:
            t, trail = trail
            order.append(t)
        yield order[::-1]


_Trail = tuple[int, "_Trail | None"]
_State = tuple[int, "_Trail | None", frozenset[int], tuple[int, ...], frozenset[int], tuple[int, ...]]


def _advance(game: Game, capacity: int, succs: list[list[int]], t: int, state: _State, cost: int) -> _State:
    _cost, trail, ready, waits, red, left = state
    task = game.tasks[t]
    need = (*task.operands, task.target)
    touches, waiting = list(left), list(waits)
    for item in need:
        touches[item] -= 1
    new = list(succs[t])
    for s in new:
        waiting[s] -= 1
    held = {i for i in red.union(need) if touches[i]}
    weight = sum(game.weights[i] for i in held)
    if weight > capacity:
        for item in sorted(held, key=lambda i: (i in need, touches[i], i)):
            held.discard(item)
            weight -= game.weights[item]
            if weight <= capacity:
                break
    now_ready = (ready - {t}).union(s for s in new if not waiting[s])
    return (cost, (t, trail), now_ready, tuple(waiting), frozenset(held), tuple(touches))


def _improve(
    game: Game,
    order: tuple[int, ...],
    cost: int,
    consider: Callable[[Sequence[int]], int],
    best: Incumbent,
) -> None:
    """Move one task or a run of them elsewhere, keep what is not worse."""
    preds = game.preds
    rng = random.Random(best.problem.seed)
    current = list(order)
    count = len(current)
    for _ in range(_LOCAL_TRIES if count > 2 else 0):
        if best.stopped:
            return
        length = min(rng.choice((1, 1, 1, 2, 3, 5)), count - 1)
        start = rng.randrange(count - length + 1)
        run = current[start : start + length]
        rest = current[:start] + current[start + length :]
        place = rng.randrange(len(rest) + 1)
        changed = rest[:place] + run + rest[place:]
        if not _allowed(changed, preds):
            continue
        changed_cost = consider(changed)
        if changed_cost <= cost:
            current, cost = changed, changed_cost


def _allowed(order: Sequence[int], preds: Sequence[frozenset[int]]) -> bool:
    done: set[int] = set()
    for t in order:
        if not preds[t] <= done:
            return False
        done.add(t)
    return True
