r"""What a split of the tasks among SMs costs at least, however much each of them holds.

Say which SM does each task. A value that ``n`` SMs touch reaches all but one of them by a load or a copy:

- an input is loaded once, and :math:`n - 1` times more or copied;
- a cell that ``u`` SMs update leaves :math:`u - 1` times unfinished. An update makes every other copy of the cell
  worthless, in slow memory and elsewhere, so each time is a copy, or a store and a load of its own;
- the :math:`n - u` SMs that only use a value that is computed load or copy it, after one store of it where none of
  them gets a copy; an output is stored in any case.

With no copies (sm-local) that is a cost; with copies, loads + stores + weight copied are at least what it is with 1 for
each way that a value takes. The least over all splits with at most so many tasks at an SM is an integer program. It is
solved by a depth-first search of the tasks, each next to what was split before, at a rising limit: a part of a split
that costs more than the limit is left. Where that takes too many steps, the limit that was refuted last is the bound.
Without a limit on the tasks of an SM all of them at one SM cost what is compulsory.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from pebble.game import Game

_MOST_STEPS = 250_000  # a second or less
_MOST_TASKS = 256  # the steps would not go round once, and Python calls itself no deeper


class Split(NamedTuple):
    """What every split costs at least, and one that costs no more."""

    weight: int
    sms: tuple[int, ...]
    """The SM of each task; empty where none was found in the steps allowed."""


@lru_cache(maxsize=64)
def least_split(game: Game, sms: int, most: int, copies: bool, parts: int = 1) -> Split:
    """Weight that loads, stores and copies move at least when no SM does more than ``most`` tasks.

    Parameters
    ----------
    game : Game
        Without recomputation; its P memories may be of any size.
    sms : int
        P.
    most : int
        Tasks of an SM; P times as many are all tasks at least.
    copies : bool
        Whether values may be copied from SM to SM.
    parts : int
        Of so many parts of the steps allowed it takes one: of several such questions about a game.

    Examples
    --------
    >>> from pebble.cdag.products import gemm_dag
    >>> least_split(Game.from_dag(gemm_dag(2, 2, 2)), 2, 4, copies=False).weight  # each SM loads one operand whole
    16
    """
    if most >= len(game.tasks):
        return Split(game.compulsory, (0,) * len(game.tasks))
    if len(game.tasks) > _MOST_TASKS:
        return Split(game.compulsory, ())
    return _Splits(game, sms, most, copies, _MOST_STEPS // parts).least()


class _OutOfStepsError(Exception):
    pass


def search_order(game: Game) -> list[int]:
    """The tasks in an order in which each shares much with those before."""
    needs = [frozenset((*task.operands, task.target)) for task in game.tasks]
    weights, seen, left = game.weights, frozenset[int](), set(range(len(needs)))
    order = []
    while left:
        t = max(left, key=lambda t: (sum(weights[x] for x in needs[t] & seen), -len(needs[t] - seen), -t))
        left.discard(t)
        seen |= needs[t]
        order.append(t)
    return order


class _Splits:
    """A search for the split that costs least beyond what is compulsory."""

    def __init__(self, game: Game, sms: int, most: int, copies: bool, most_steps: int) -> None:
        self.compulsory, self.order = game.compulsory, search_order(game)
        self.tasks = [(game.tasks[t].target, (*{*game.tasks[t].operands, game.tasks[t].target},)) for t in self.order]
        self.at = [0] * len(self.order)
        self.sms, self.most, self.steps, self.most_steps = sms, most, 0, most_steps
        self.extra = [_extra(game, x, sms, copies) for x in range(game.size)]
        self.counts = [0] * sms
        self.touched, self.updated = [0] * game.size, [0] * game.size  # by which SMs, as bits
        self.limit = self.beyond = 0

    def least(self) -> Split:
        """The least cost, or as much as the steps allow to prove."""
        try:
            while True:
                self.beyond = 1 << 60
                if self._fits(0, 0, 0):
                    return Split(self.compulsory + self.limit, tuple(self.at))
                self.limit = self.beyond
        except _OutOfStepsError:
            return Split(self.compulsory + self.limit, ())

    def _fits(self, place: int, cost: int, used: int) -> bool:
        """Whether the tasks from ``place`` on find SMs within the limit; SMs not used yet are alike."""
        if place == len(self.tasks):
            return True
        self.steps += 1
        if self.steps > self.most_steps:
            raise _OutOfStepsError
        target, needs = self.tasks[place]
        touched, updated, extra = self.touched, self.updated, self.extra
        for q in range(min(self.sms, used + 1)):
            if self.counts[q] == self.most:
                continue
            bit, after, before = 1 << q, cost, [(x, touched[x], updated[x]) for x in needs]
            for x, by, changed in before:
                touched[x] = by | bit
                updated[x] = changed | bit if x == target else changed
                after += extra[x][touched[x].bit_count()][updated[x].bit_count()]
                after -= extra[x][by.bit_count()][changed.bit_count()]
            if after > self.limit:
                self.beyond = min(self.beyond, after)
            else:
                self.counts[q] += 1
                self.at[self.order[place]] = q
                if self._fits(place + 1, after, max(used, q + 1)):
                    return True
                self.counts[q] -= 1
            for x, by, changed in before:
                touched[x], updated[x] = by, changed
        return False


def _extra(game: Game, x: int, sms: int, copies: bool) -> list[list[int]]:
    """What a value costs beyond what is compulsory, by the SMs that touch it (row) and that update it."""
    computed, again = bool(game.updates[x]) and not game.is_input[x], 1 if copies else 2
    stored = 0 if copies or not computed or game.is_output[x] else 1  # of a value that others use

    def cost(touching: int, updating: int) -> int:
        if not computed or updating == 0:
            return max(0, touching - 1)
        using = touching - updating
        return again * (updating - 1) + using + (stored if using > 0 else 0)

    return [[game.weights[x] * cost(n, u) for u in range(sms + 1)] for n in range(sms + 1)]
