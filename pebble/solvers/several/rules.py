"""A game with several memories as arrays of bit masks, for the compiled search."""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.bounds.task_windows import fewest_touched
from pebble.errors import InputError
from pebble.game import Game
from pebble.solvers.result import Problem
from pebble.solvers.search.bits import mask_of
from pebble.solvers.several.symmetry import SettledMaps, automorphisms, settled_maps
from pebble.units import ceil_div

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
MOST_ITEMS = 64
MOST_MEMORIES = 8
WORTHLESS = 2  # a price of copies from which a store and a load do the same for no more
NO_MULTIPLIER = 1 << 40  # where no copy is possible
_MOST_GRAINS = 16  # steps of what an SM holds, where weights make its capacity more than
_FINE_CAPACITY = 32
# columns of Rules.sizes
UNIT, CAPACITY, MOST, WIDEST, ALIKE, ANY_SPLIT, SHARE, LINES, EQUAL, GRAIN, LOCAL = range(11)
# columns of Rules.masks
INPUTS, OUTPUTS, FULL, ALL, COMPUTED, AT_ONCE, WORK = range(7)


class Rules(NamedTuple):
    """What the search asks of a game; bit i of a mask of values is value i, bit t of a mask of tasks task t."""

    operands: U64
    needs: U64
    """Per task, operands and target."""
    before: U64
    """Per task, those that must be done before it."""
    target: I64
    touch: U64
    """Per value, the tasks that have it as operand or target."""
    updates: U64
    weight: I64
    price: I64
    """Of a copy from an SM (row) to another, per weight, in units; NO_PRICE where there is none."""
    task_maps: NDArray[np.int16]
    """Per automorphism, where it takes each task."""
    form_tasks: NDArray[np.int16]
    """The same for maps of states; -1 for a task that is done at once (`pebble.solvers.several.symmetry`)."""
    form_items: NDArray[np.int16]
    """Of these, where values go before their last task, and after it."""
    last: U64
    """Per value the task that tells before from after, or none."""
    fewest: I64
    """For r = 0, 1, ...: weight that r tasks of the largest kind touch at least."""
    allowed: U64
    """Per task, the SMs that may do it."""
    kind: I64
    """Per SM, the first that may do the same tasks."""
    masks: U64
    """Values that are inputs, outputs; tasks of the largest kind; all tasks; values that tasks compute; tasks that are
    done at once; tasks with operands."""
    sizes: I64
    """Units of cost to a load of weight 1; capacity; most tasks per SM; heaviest task; 1 if SMs are alike; 1 if any
    split will do; units that any transfer costs; 1 if windows of tasks are counted; 1 if every value weighs 1; the
    grain to which what an SM holds is rounded up before windows are looked at; 1 if there are no copies."""


def check_size(problem: Problem) -> None:
    """InputError for a game that is too large."""
    game, sms, tasks = problem.game, problem.buffers.memories, len(problem.game.tasks)
    if game.size > MOST_ITEMS or tasks > MOST_ITEMS or sms > MOST_MEMORIES:
        raise InputError(
            f"solver search: with several memories it plays at most {MOST_ITEMS} values, {MOST_ITEMS} operations and "
            f"{MOST_MEMORIES} SMs, got {game.size}, {tasks} and {sms}; use --solver cpsat or heuristic."
        )


def weight_unit(game: Game) -> int:
    """What all weights are multiples of, and so are room and cost."""
    return gcd(*game.weights) or 1


def cost_unit(problem: Problem) -> int:
    """Levels to a load of the least weight: the denominator of omega, where a copy is ever worth its price."""
    buffers = problem.buffers
    return 1 if buffers.omega >= WORTHLESS else buffers.omega.denominator


def sm_kinds(game: Game, sms: int) -> list[int]:
    """Of each SM, the first that may do the same tasks."""
    tasks = range(len(game.tasks))
    may = [tuple(game.may_do(t, q) for t in tasks) for q in range(sms)]
    return [may.index(those) for those in may]


def read_rules(problem: Problem, *, settled: bool = False) -> Rules:
    """The arrays of a game that is small enough, for a search that keeps settled states alone if that is said."""
    game, buffers, scale = problem.game, problem.buffers, weight_unit(problem.game)
    sms, tasks = buffers.memories, len(game.tasks)
    weights, capacity = [weight // scale for weight in game.weights], problem.capacity // scale
    unit = cost_unit(problem)
    needs = [mask_of((*task.operands, task.target)) for task in game.tasks]
    widest = max((need.bit_count() for need in needs), default=0)
    full = [t for t, need in enumerate(needs) if need.bit_count() == widest]
    price = np.full((sms, sms), NO_MULTIPLIER, np.int64)
    for r in range(sms):
        for q in range(sms):
            cost = buffers.copy_cost(r, q)
            if cost is not None and cost < WORTHLESS:
                price[r, q] = int(cost * unit)
    alike = buffers.kind == "sm-local" or buffers.net.uniform
    most = tasks if problem.most_tasks_per_sm is None else min(tasks, problem.most_tasks_per_sm)
    local = price.min() >= NO_MULTIPLIER
    share = unit if buffers.kind == "sm-local" else int(min(buffers.omega, Fraction(1)) * unit)
    same = set(weights) <= {1} and bool(tasks)
    heaviest = max((sum(weights[x] for x in (*t.operands, t.target)) for t in game.tasks), default=0)
    task_maps, item_maps = automorphisms(game)
    maps = SettledMaps(task_maps, item_maps, item_maps, (-1,) * game.size)
    if settled and most >= tasks:
        maps = settled_maps(game)
    fewest = [weight // scale for weight in fewest_touched(game, len(full), tuple(full))]
    grain = 1 if capacity <= _FINE_CAPACITY or same else ceil_div(capacity, _MOST_GRAINS)
    inputs, outputs = (mask_of(i for i in range(game.size) if kind[i]) for kind in (game.is_input, game.is_output))
    computed = mask_of(i for i in range(game.size) if game.updates[i])
    work = mask_of(t for t, task in enumerate(game.tasks) if task.operands)
    at_once = mask_of(t for t in range(tasks) if maps.tasks[0][t] < 0)
    return Rules(
        np.array([mask_of(task.operands) for task in game.tasks], np.uint64),
        np.array(needs, np.uint64),
        np.array([mask_of(before) for before in game.preds], np.uint64),
        np.array([task.target for task in game.tasks], np.int64),
        np.array([mask_of((*u, *t)) for u, t in zip(game.uses, game.updates, strict=True)], np.uint64),
        np.array([mask_of(t) for t in game.updates], np.uint64),
        np.array(weights, np.int64),
        price,
        np.array(task_maps, np.int16),
        np.array(maps.tasks, np.int16),
        np.array([maps.before, maps.after], np.int16),
        np.array([0 if t < 0 else 1 << t for t in maps.last], np.uint64),
        np.array(fewest, np.int64),
        np.array([sum(1 << q for q in range(sms) if game.may_do(t, q)) for t in range(tasks)], np.uint64),
        np.array(sm_kinds(game, sms), np.int64),
        np.array([inputs, outputs, mask_of(full), (1 << tasks) - 1, computed, at_once, work], np.uint64),
        np.array(
            [unit, capacity, most, heaviest, alike, most >= tasks, share, tasks > 0, same, grain, local], np.int64
        ),
    )
