"""A schedule gap by gap, and the moves that carry it out."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.game import Game, Move, Op
from pebble.solvers.result import Problem


@dataclass(frozen=True)
class GapPlan:
    """What each position does and what each gap moves.

    ``order``: (task, SM) at each position. ``keep``: (item, SM) held through the gap after a position. ``copies``:
    (item, from, to), and ``loads``: (item, SM), in the gap before a position.
    """

    order: tuple[tuple[int, int], ...]
    keep: list[set[tuple[int, int]]]
    copies: list[list[tuple[int, int, int]]]
    loads: list[list[tuple[int, int]]]


class Mover:
    """Plays a plan: puts the copies of a gap in an order, and sends one through slow memory where there is none."""

    def __init__(self, problem: Problem, plan: GapPlan) -> None:
        self.game: Game = problem.game
        self.capacity, self.plan = problem.capacity, plan
        self.held: list[set[int]] = [set() for _ in range(problem.buffers.memories)]
        self.blue = {i for i, blue in enumerate(self.game.is_input) if blue}
        self.left = [len(updates) for updates in self.game.updates]
        self.moves: list[Move] = []

    def play(self) -> tuple[Move, ...]:
        """The moves."""
        for p, (t, q) in enumerate(self.plan.order):
            self.gap(p)
            task = self.game.tasks[t]
            self.moves.append(Move("compute", task.name, sm=q))
            for held in self.held:
                held.discard(task.target)
            self.held[q].add(task.target)
            self.blue.discard(task.target)
            self.left[task.target] -= 1
            if self.stored_now(task.target, p):
                self.store(task.target, q)
        return tuple(self.moves)

    def say(self, op: Op, item: int, sm: int, source: int | None = None) -> None:
        self.moves.append(Move(op, self.game.names[item], source, sm))

    def stored_now(self, item: int, p: int) -> bool:
        """Whether the item just updated at p is loaded before its next update, or is an output."""
        if not self.left[item]:
            return self.game.is_output[item] or any(item == i for loads in self.plan.loads[p + 1 :] for i, _ in loads)
        for later in range(p + 1, len(self.plan.order)):
            if any(item == i for i, _ in self.plan.loads[later]):
                return True
            if self.game.tasks[self.plan.order[later][0]].target == item:
                return False
        return False

    def store(self, item: int, sm: int) -> None:
        if item not in self.blue:
            self.say("store", item, sm)
            self.blue.add(item)

    def drop(self, item: int, sm: int) -> None:
        self.say("delete", item, sm)
        self.held[sm].discard(item)

    def fits(self, item: int, sm: int) -> bool:
        weights = self.game.weights
        return sum(weights[i] for i in self.held[sm]) + weights[item] <= self.capacity

    def gap(self, p: int) -> None:
        keep = self.plan.keep[p - 1] if p else set()
        waiting = [copy for copy in self.plan.copies[p] if copy[0] not in self.held[copy[2]]]
        keep = keep | {(item, sm) for item, _, sm in self.plan.copies[p] if item in self.held[sm]}  # idle, at omega 0
        loads = list(self.plan.loads[p])
        # what a copy still needs stays; leaving sources go first, since they make room
        waiting.sort(key=lambda c: ((c[0], c[1]) in keep, c))
        self.sweep(keep, waiting)
        while waiting:
            ready = next((c for c in waiting if self.fits(c[0], c[2])), None)
            if ready is not None:
                item, source, sm = ready
                self.say("copy", item, sm, source)
                self.held[sm].add(item)
                waiting.remove(ready)
                keep = keep | {(item, sm)}
            else:  # no order exists: one value goes through slow memory
                item, source, _ = waiting[0]
                self.store(item, source)
                loads += [(i, to) for i, _, to in waiting if i == item]
                waiting = [c for c in waiting if c[0] != item]
            self.sweep(keep, waiting)
        for item, sm in loads:
            self.say("load", item, sm)
            self.held[sm].add(item)

    def sweep(self, keep: set[tuple[int, int]], waiting: list[tuple[int, int, int]]) -> None:
        """Delete what neither stays nor is the source of a copy to come."""
        needed = {(item, source) for item, source, _ in waiting}
        for sm, held in enumerate(self.held):
            for item in sorted(held):
                if (item, sm) not in keep and (item, sm) not in needed:
                    self.drop(item, sm)
