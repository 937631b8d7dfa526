"""A game as a pseudo-Boolean formula: if a pebbling costs no more than a limit, the formula has a solution.

So a proof that the formula has none is a proof that every pebbling costs more. For games without recomputation and
without slides, where every pebbling does every task once: one task at each position 0, 1, ...

======  ==================================================================================================
x t p   task t is done at position p
r v p   value v is in fast memory while the task at p is done
l v p   v is loaded between the tasks at p - 1 and p
s v p   v is stored between the tasks at p and p + 1; computed values only
g v p   v has been initialised before p; computed values only
b v p   the copy of v in slow memory is valid when the task at p begins (after the last one: p = number of tasks)
======  ==================================================================================================

A pebbling gives a solution: read the variables off it, a value stored only while it is red at a task (a copy that is
loaded and stored again before the next task was valid already). The constraints, in this order:

1. Each task has one position and each position one task; one of the tasks of ``first`` is done at 0.
2. At p the operands and the target of the task are red; tasks that make its operands, or must come before, are done.
3. What is red at p weighs no more than the capacity.
4. What is red at p and was not at p - 1 is loaded, but for a value initialised at p (one that is not initialised may be
   red: it costs nothing). A loaded value has a valid copy. A copy is valid if it was stored since the last update.
5. Outputs have a valid copy at the end. Each input is loaded and each computed output stored at least once, which
   follows from the rules, but spares a prover work.
6. Loads and stores cost their weights, together no more than the limit.

``first`` is no loss where the symmetries of the game, which are checked, take every task to one of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .games import Game
from .reading import RefusedError, array, integer
from .symmetry import read_symmetries

MAX_TASKS = 40
MAX_PLACES = 200_000  # operands and values, at every position
Terms = dict[int, int]
"""Coefficients, all positive, of literals: variable x as x, its negation as -x."""


@dataclass(frozen=True)
class Constraint:
    """The sum of coefficients of true literals is at least the degree."""

    terms: Terms
    degree: int


def at_least(terms: Iterable[tuple[int, int]], degree: int) -> Constraint:
    """In normal form: positive coefficients, each variable once."""
    of_variable: Terms = {}
    for coefficient, literal in terms:
        if literal < 0:  # c * not x = c - c * x
            degree -= coefficient
            coefficient, literal = -coefficient, -literal
        of_variable[literal] = of_variable.get(literal, 0) + coefficient
    degree += sum(-c for c in of_variable.values() if c < 0)
    return Constraint({(x if c > 0 else -x): abs(c) for x, c in of_variable.items() if c}, degree)


class Formula:
    """The constraints, and the variables by name."""

    def __init__(self, game: Game, limit: int, first: Iterable[int]) -> None:
        _check_size(game)
        self.game, self.limit = game, limit
        self.variables: dict[tuple[str, int, int], int] = {}
        self.positions = range(len(game.tasks))
        self.updates = game.updates
        costs: list[tuple[int, int]] = []
        self.constraints = [
            *self._order(first), *self._residency(), *self._moves(costs), *self._ends(),
            at_least(((-weight, x) for weight, x in costs), -limit),
        ]  # fmt: skip

    def _name(self, kind: str, which: int, position: int) -> int:
        return self.variables.setdefault((kind, which, position), len(self.variables) + 1)

    def _order(self, first: Iterable[int]) -> Iterator[Constraint]:
        for t in self.positions:
            places = [self._name("x", t, p) for p in self.positions]
            yield at_least(((1, x) for x in places), 1)
            yield at_least(((-1, x) for x in places), -1)
        for p in self.positions:
            tasks = [self._name("x", t, p) for t in self.positions]
            yield at_least(((1, x) for x in tasks), 1)
            yield at_least(((-1, x) for x in tasks), -1)
        yield at_least(((1, self._name("x", t, 0)) for t in first), 1)

    def _residency(self) -> Iterator[Constraint]:
        game = self.game
        for t, task in enumerate(game.tasks):
            before = {u for y in task.operands for u in self.updates[y]} | set(task.after)
            for p in self.positions:
                here = (-1, self._name("x", t, p))
                for v in (*task.operands, task.target):
                    yield at_least((here, (1, self._name("r", v, p))), 0)
                for u in sorted(before):
                    yield at_least((here, *((1, self._name("x", u, q)) for q in range(p))), 0)
        for p in self.positions:
            held = ((-weight, self._name("r", v, p)) for v, weight in enumerate(game.weights))
            yield at_least(held, -game.capacity)

    def _moves(self, costs: list[tuple[int, int]]) -> Iterator[Constraint]:
        for v, weight in enumerate(self.game.weights):
            computed, blue = bool(self.updates[v]), self.game.is_input[v]
            for p in self.positions:
                red = (-1, self._name("r", v, p))
                stays = [(1, self._name("r", v, p - 1))] if p else []
                if not p and not blue:
                    continue  # nothing can be loaded before the first task
                load = self._name("l", v, p)
                costs.append((weight, load))
                if not computed:
                    yield at_least(((1, load), red, *stays), 0)
                    continue
                initialised = self._name("g", v, p)
                if blue:
                    yield at_least(((1, initialised),), 1)
                elif p > 1:
                    yield at_least(((1, initialised), (-1, self._name("g", v, p - 1))), 0)
                for t in self.updates[v] if p else ():
                    yield at_least(((1, initialised), (-1, self._name("x", t, p - 1))), 0)
                yield at_least(((1, load), red, *stays, (-1, initialised)), -1)
                yield at_least(((-1, load), (1, self._name("b", v, p))), 0)
            if computed:
                yield from self._copies(v, weight, costs)

    def _copies(self, v: int, weight: int, costs: list[tuple[int, int]]) -> Iterator[Constraint]:
        """When the copy of a computed value is valid; an input's is at the start."""
        for p in self.positions:
            store, valid = self._name("s", v, p), (-1, self._name("b", v, p + 1))
            costs.append((weight, store))
            yield at_least(((-1, store), (1, self._name("r", v, p))), 0)
            if p or self.game.is_input[v]:
                yield at_least((valid, (1, store), (1, self._name("b", v, p))), 0)
            else:
                yield at_least((valid, (1, store)), 0)
            for t in self.updates[v]:
                yield at_least((valid, (1, store), (-1, self._name("x", t, p))), -1)

    def _ends(self) -> Iterator[Constraint]:
        game = self.game
        used = {y for task in game.tasks for y in (*task.operands, task.target)}
        for v, output in enumerate(game.is_output):
            if game.is_input[v] and v in used:
                yield at_least(((1, self._name("l", v, p)) for p in self.positions), 1)
            if output and self.updates[v]:
                yield at_least(((1, self._name("b", v, len(game.tasks))),), 1)
                yield at_least(((1, self._name("s", v, p)) for p in self.positions), 1)

    def opb(self) -> str:
        """The formula as a file for any pseudo-Boolean solver or checker."""
        lines = [f"* #variable= {len(self.variables)} #constraint= {len(self.constraints)}"]
        lines += [f"* x{x} = {kind} {which} {p}" for (kind, which, p), x in self.variables.items()]
        return "\n".join(lines + [f"{shown(result)} ;" for result in self.constraints]) + "\n"


def shown(constraint: Constraint) -> str:
    """As OPB writes it."""
    terms = (f"+{c} {'~' if x < 0 else ''}x{abs(x)} " for x, c in constraint.terms.items())
    return "".join(terms) + f">= {constraint.degree}"


def _check_size(game: Game) -> None:
    """Refuse a game whose formula is not defined, or too large."""
    if game.variant not in ("one-shot", "in-place") or not 0 < len(game.tasks) <= MAX_TASKS:
        raise RefusedError("game", f"formulas are for one-shot and in-place games of 1 to {MAX_TASKS} tasks")
    places = len(game.tasks) * (len(game.names) + sum(len(task.operands) for task in game.tasks))
    if places > MAX_PLACES:
        raise RefusedError("game", f"its formula would have {places:,} places of a value, at most {MAX_PLACES:,}")


def check_first(game: Game, first: Any, symmetries: Any, at: str) -> list[int]:
    """Tasks to one of which the symmetries take each task.

    A symmetry is a list: the value that each value goes to.
    """
    _check_size(game)
    last = len(game.tasks) - 1
    chosen = [integer(t, f"{at}.first", 0, last) for t in array(first, f"{at}.first", 1, last + 1)]
    reached = set(chosen)
    moves = [tasks for _, tasks in read_symmetries(game, symmetries, MAX_TASKS, f"{at}.symmetries")]
    growing = True
    while growing:
        grown = reached | {traffic[t] for traffic in moves for t in reached}
        growing, reached = grown != reached, grown
    if len(reached) != len(game.tasks):
        raise RefusedError(f"{at}.first", "the symmetries do not take these tasks to all others")
    return chosen
