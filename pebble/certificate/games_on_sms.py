"""The pebble game of several SMs: the replay of a pebbling, and a lower bound by windows of tasks.

Each of P SMs has a memory of S; a move names its SM, and red means red there. Besides the moves of one memory:

========  ==========================================================================================
copy      v is red at the source, another SM that is connected, and not here; it becomes red here too.
          Costs its weight times omega times the hops.
compute   leaves no copy of the target elsewhere: neither red nor blue.
========  ==========================================================================================

**Windows.** Let x(r) be the least weight that any r tasks touch. Cut what one SM does into windows of consecutive tasks
that share one task each. During the task that two share, at most S is held there; the rest of what a window of r + 1
tasks touches, x(r + 1) - S at least, enters that SM in it: by a load or a copy, or it is initialised. The first window
enters all that it touches. E(r), the best chain of windows for r tasks, is what enters an SM that does r tasks. A value
is initialised once in all, so

    loads + stores + copies >= min over splits of the tasks of E(r_1) + ... + E(r_P) - initialised + outputs computed.

The SMs as one memory of P S, without their copies, play the game of one memory: loads + stores are at least the same
with one SM of P S, and what is compulsory. A copy costs min(omega, 1) at least. In clusters of c SMs, which no copy
leaves, ceil(P / c) memories of c S stand for the one.

**Groups.** Any groups of g SMs are ceil(P / g) memories of g S, with g times the tasks: loads, stores and the copies
that cross are at least the bound B_g of these, by windows and by their split. Averaged over the ways to cut a net into
such groups, of the hops of a kind a share r_g crosses at most (see `on_sms` for a ring; from half to half a copy takes
two hops). With multipliers y_g >= 0 that add up to 1 at most, and sum of y_g r_g <= omega for each kind,
the cost is at least the sum of y_g B_g.

**Split.** Where an SM may do so many tasks, however much it holds. Of an input, each SM that touches it loads it or
gets a copy, and one of them loads it. A cell that u SMs update leaves u - 1 times unfinished: by a copy, or by a store
and a load of its own, for an update leaves no copy elsewhere. Another SM that uses a computed value loads it or gets a
copy; without copies it was stored before, which an output is in any case. (From omega 2 on a store and a load do what
a copy does for no more: the cheapest pebbling has none.) So a split has a least number of loads,
stores and copies. That every split has so many is seen by trying all, task by task in the order that the proof names,
and leaving a part of a split where it has as many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

from .games import MAX_MOVES, Game, read_game
from .memories import Memories, read_memories
from .reading import RefusedError, array, choice, equal, fields, fraction, integer, show, tagged, text
from .splits import cheapest_split
from .states import check_states

MAX_STEPS = 2_000_000  # of the search through sets of tasks
MAX_WINDOW = 64
MAX_SPLIT_TASKS = 256
MAX_SPLIT_STEPS = 4_000_000  # tasks looked at, in all parts of splits


def check_on_sms(statement: Any, claims: list[Any], folder: Path | None) -> list[str]:
    """Check the claims about a game of several SMs."""
    fields(statement, "statement", ("game", "memories"))
    game = read_game(statement["game"], "statement.game")
    if game.variant not in ("one-shot", "in-place"):
        raise RefusedError("statement.game.variant", "several SMs play one-shot or in-place games")
    memories = read_memories(statement["memories"], len(game.tasks), "statement.memories")
    name = f"this game of {len(game.names)} values and {len(game.tasks)} computations on {memories.sms} SMs"
    name += f" ({game.variant}, S = {game.capacity} each"
    name += ")" if memories.omega is None else f", omega {memories.omega}, {memories.net})"
    if memories.most < len(game.tasks):
        name += f", at most {memories.most} computations each,"
    if memories.allowed:
        name += " where tasks have SMs of their own,"
    bounds, costs, said = [], [], []
    for number, claim in enumerate(claims):
        at = f"claims[{number}]"
        if tagged(claim, at, "claim", ("pebbling", "no cheaper pebbling")) == "pebbling":
            fields(claim, at, ("claim", "cost", "moves"))
            costs.append(_replay(game, memories, claim["moves"], f"{at}.moves"))
            equal(fraction(claim["cost"], f"{at}.cost"), costs[-1], f"{at}.cost", "cost of the moves")
            said.append(f"a pebbling of {name} costs {costs[-1]}")
            continue
        fields(claim, at, ("claim", "cost", "proof"))
        lower = fraction(claim["cost"], f"{at}.cost")
        if tagged(claim["proof"], f"{at}.proof", "method", ("windows", "states")) == "states":
            check_states(game, memories, lower, claim["proof"], folder, f"{at}.proof")
        else:
            proved = _windows(game, memories, claim["proof"], f"{at}.proof")
            equal(lower, proved, f"{at}.cost", "what every pebbling costs, at least")
        bounds.append(lower)
        said.append(f"no pebbling of {name} costs less than {bounds[-1]}")
    if bounds and costs:
        if min(costs) < max(bounds):
            raise RefusedError("claims", "a pebbling costs less than is proved of all: one of the two is wrong")
        if min(costs) == max(bounds):
            said.append(f"so the optimum is {min(costs)}")
    return said


def windows_bound(statement: Any, proof: Any) -> Fraction:
    """What a proof by windows proves of a statement."""
    game = read_game(statement["game"], "statement.game")
    memories = read_memories(statement["memories"], len(game.tasks), "statement.memories")
    return _windows(game, memories, proof, "proof")


def _replay(game: Game, memories: Memories, moves: Any, at: str) -> Fraction:
    """Play the moves and return their cost."""
    value_of = {name: x for x, name in enumerate(game.names)}
    task_of = {task.name: t for t, task in enumerate(game.tasks)}
    red: list[set[int]] = [set() for _ in range(memories.sms)]
    blue = {x for x, start in enumerate(game.is_input) if start}
    initialised, done, counts = set(blue), set[int](), [0] * memories.sms
    left = [len(ts) for ts in game.updates]
    cost = Fraction(0)
    for step, move in enumerate(array(moves, at, 0, MAX_MOVES)):
        where = f"{at}[{step}]"
        words = array(move, where, 3, 4)
        op = choice(words[0], where, ("load", "store", "delete", "compute", "copy"))
        name, sm = text(words[1], where), integer(words[2], where, 0, memories.sms - 1)
        if (len(words) == 4) != (op == "copy"):
            raise RefusedError(where, "a copy, and no other move, names the SM that it is made from")
        number = (task_of if op == "compute" else value_of).get(name)
        if number is None:
            raise RefusedError(where, f"there is no such move as {op} {show(name)}")
        held = red[sm]
        if op == "compute":
            _check_compute(game, number, held, initialised, done, left, where)
            x = game.tasks[number].target
            for other in red:
                other.discard(x)
            blue.discard(x)
            held.add(x)
            initialised.add(x)
            if memories.allowed and not memories.allowed[number] >> sm & 1:
                raise RefusedError(where, f"SM {sm} may not do {name!r}")
            done.add(number)
            left[x] -= 1
            counts[sm] += 1
        else:
            x = number
            may = {"load": x in blue and x not in held, "store": x in held and x not in blue, "delete": x in held}
            hops = None
            if op == "copy":
                source = integer(words[3], where, 0, memories.sms - 1)
                hops = memories.hops(source, sm)
                may["copy"] = hops is not None and x in red[source] and x not in held
            if not may[op]:
                raise RefusedError(where, f"{op} of {name!r} is against the rules")
            if op == "delete":
                held.discard(x)
            elif op == "store":
                blue.add(x)
            else:
                held.add(x)
            if op != "delete":
                cost += game.weights[x] * (1 if hops is None else (memories.omega or Fraction(0)) * hops)
        if sum(game.weights[y] for y in held) > game.capacity:
            raise RefusedError(where, f"what SM {sm} holds weighs more than {game.capacity}")
    for x, output in enumerate(game.is_output):
        if output and not (x in blue and left[x] == 0):
            raise RefusedError(at, f"at the end the output {game.names[x]!r} is not complete in slow memory")
    if max(counts) > memories.most:
        raise RefusedError(at, f"an SM does {max(counts)} computations, {memories.most} are allowed")
    return cost


def _check_compute(
    game: Game, number: int, held: set[int], initialised: set[int], done: set[int], left: list[int], at: str
) -> None:
    task = game.tasks[number]
    if number in done or not all(first in done for first in task.after):
        raise RefusedError(at, f"{task.name!r} is done twice, or before a task that comes first")
    if not all(y in held and left[y] == 0 for y in task.operands):
        raise RefusedError(at, f"an operand of {task.name!r} is not complete at this SM")
    if (task.target in held) != (task.target in initialised):
        raise RefusedError(at, f"the target of {task.name!r} is initialised elsewhere, or held and not initialised")


def _windows(game: Game, memories: Memories, proof: Any, at: str) -> Fraction:
    """What every pebbling costs at least; ``touched``: x(1), x(2), ..., the last holds for more tasks too."""
    fields(proof, at, ("method", "touched"), ("split", "groups"))
    tasks, weights = len(game.tasks), game.weights
    spec = array(proof["touched"], f"{at}.touched", 1, min(tasks, MAX_WINDOW))
    least = [0, *(integer(x, f"{at}.touched[{i}]", 0) for i, x in enumerate(spec))]
    needs = [frozenset((*task.operands, task.target)) for task in game.tasks]
    steps = 0
    for r in range(1, len(least)):
        if least[r] < least[r - 1]:
            raise RefusedError(f"{at}.touched[{r - 1}]", "more tasks touch no less")
        steps = _none_touches_less(needs, weights, r, least[r], steps, f"{at}.touched[{r - 1}]")
    least += [least[-1]] * (tasks + 1 - len(least))
    updates = game.updates
    initialised = sum(w for x, w in enumerate(weights) if updates[x] and not game.is_input[x])
    stored = sum(w for x, w in enumerate(weights) if updates[x] and game.is_output[x])

    def by_shares(group: int) -> int:
        grouped = memories.taken_together(group, tasks)
        return cheapest_split(_entering(least, game.capacity * group), grouped.sms, grouped.most) - initialised + stored

    sms = memories.sms
    single = max(game.compulsory, by_shares(sms))
    every = max(single, by_shares(1))
    if "split" in proof:
        every = max(every, _split(game, memories, proof["split"], f"{at}.split"))
    if memories.omega is None:
        if "groups" in proof:
            raise RefusedError(f"{at}.groups", "without copies each SM is a group of its own")
        return Fraction(every)
    unit, w = memories.omega.denominator, min(memories.omega, Fraction(1))
    value = (1 - w) * max(single, by_shares(memories.near)) + w * every
    if "groups" in proof:
        value = _grouped(game, memories, (single, every), by_shares, proof["groups"], f"{at}.groups")
    return Fraction(ceil(unit * value), unit)


def _grouped(
    game: Game, memories: Memories, ends: tuple[int, int], by_shares: Callable[[int], int], proof: Any, at: str
) -> Fraction:
    """What multipliers prove; ``ends``: the bounds of all SMs as one memory, and of each."""
    used: list[tuple[Fraction, int, int]] = []
    for number, spec in enumerate(array(proof, at, 1, 4)):
        where = f"{at}[{number}]"
        fields(spec, where, ("sms", "multiplier"), ("split",))
        group = integer(spec["sms"], f"{where}.sms", 1, memories.sms)
        bound = max(ends[0], by_shares(group))
        if "split" in spec:
            grouped = memories.taken_together(group, len(game.tasks))
            bound = max(bound, _split(game, grouped, spec["split"], f"{where}.split"))
        used.append((fraction(spec["multiplier"], f"{where}.multiplier"), group, bound))
    every = max(ends[1], *(bound for _, _, bound in used))  # what crosses between groups goes from SM to SM
    crossing = [[y * rate for rate in memories.crossing(group, at)] for y, group, _ in used]
    if sum(y for y, _, _ in used) > 1:
        raise RefusedError(at, "the multipliers add up to more than a load costs")
    if memories.omega is None or any(sum(rates) > memories.omega for rates in zip(*crossing, strict=True)):
        raise RefusedError(at, "a hop is charged more than it costs")
    return sum((y * (every if group == 1 else bound) for y, group, bound in used), Fraction(0))


def _split(game: Game, memories: Memories, proof: Any, at: str) -> int:
    """What every split costs, after all are tried that might cost less."""
    fields(proof, at, ("weight", "order"))
    weight, tasks = integer(proof["weight"], f"{at}.weight", 0), len(game.tasks)
    order = [integer(t, f"{at}.order[{i}]", 0, tasks - 1) for i, t in enumerate(array(proof["order"], f"{at}.order"))]
    if sorted(order) != list(range(tasks)) or tasks > MAX_SPLIT_TASKS:
        raise RefusedError(f"{at}.order", f"it must name each of at most {MAX_SPLIT_TASKS} tasks once")
    at_sm: list[int] = []  # the SM of each task of the order so far
    loads = [0] * memories.sms
    steps = 0
    while True:
        steps += 1 + len(at_sm)
        if steps > MAX_SPLIT_STEPS:
            raise RefusedError(at, f"it takes more than {MAX_SPLIT_STEPS:,} steps to see that no split costs less")
        full = max(loads) > memories.most
        if not full and _split_costs(game, memories, order[: len(at_sm)], at_sm) < weight:
            if len(at_sm) == tasks:
                raise RefusedError(f"{at}.weight", f"there is a split that costs less than {weight}")
            at_sm.append(0)
            loads[0] += 1
            continue
        while at_sm:  # the next: another SM for the last task, of those that are not all alike
            q = at_sm.pop()
            loads[q] -= 1
            if q + 1 < memories.sms and q <= max(at_sm, default=-1):
                at_sm.append(q + 1)
                loads[q + 1] += 1
                break
        if not at_sm:
            return weight


def _split_costs(game: Game, memories: Memories, tasks: Sequence[int], at_sm: Sequence[int]) -> int:
    """What these tasks cost at these SMs, beside what is compulsory."""
    using: dict[int, set[int]] = {}
    updating: dict[int, set[int]] = {}
    for t, q in zip(tasks, at_sm, strict=True):
        updating.setdefault(game.tasks[t].target, set()).add(q)
        for x in game.tasks[t].operands:
            using.setdefault(x, set()).add(q)
    total, joined = game.compulsory, memories.omega is not None and memories.omega < 2
    for x in {*using, *updating}:
        users, updaters = using.get(x, set()), updating.get(x, set())
        times = len(users | updaters) - 1
        if updaters and not game.is_input[x]:
            far = len(users - updaters)
            times = (1 if joined else 2) * (len(updaters) - 1) + far
            times += 1 if far and not joined and not game.is_output[x] else 0
        total += game.weights[x] * times
    return total


def _none_touches_less(
    needs: Sequence[frozenset[int]], weights: Sequence[int], r: int, least: int, steps: int, at: str
) -> int:
    """Look for r tasks that touch less; steps so far. A set that touches as much already is left."""
    stack: list[tuple[int, int, frozenset[int]]] = [(0, r, frozenset())]
    while stack:
        start, left, union = stack.pop()
        for t in range(start, len(needs) - left + 1):
            steps += 1
            if steps > MAX_STEPS:
                raise RefusedError(at, f"it takes more than {MAX_STEPS:,} steps to see that no {r} tasks touch less")
            wider = union | needs[t]
            if sum(weights[x] for x in wider) >= least:
                continue
            if left == 1:
                raise RefusedError(at, f"there are {r} tasks that touch less than {least}")
            stack.append((t + 1, left - 1, wider))
    return steps


def _entering(least: Sequence[int], size: int) -> list[int]:
    """E(r) for r = 0 .. all tasks."""
    tasks = len(least) - 1
    after = [0] + [max(0, least[min(r + 1, tasks)] - size) for r in range(1, tasks + 1)]
    best = [0]
    for p in range(1, tasks + 1):
        best.append(max(best[-1], least[p], *(best[p - r] + after[r] for r in range(1, p))))
    return best
