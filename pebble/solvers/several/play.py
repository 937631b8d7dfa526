"""An order of the tasks, each at an SM, played as a pebbling of several memories.

What a task lacks is fetched when it is needed, from where that costs least: a copy from the nearest SM that holds it, a
load, or a store and a load. What leaves is what its SM needs again last; the last copy of a value is stored as it goes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pebble.game import BufferModel, Game, Move, Op, moves_cost

Placed = tuple[int, int]
"""A task, and the SM that does it."""
_NEVER = float("inf")
# next use at the SM, whether its departure costs a store -> what has most leaves first
_RULES: tuple[Callable[[float, bool], float], ...] = (
    lambda following, costs: following,
    lambda following, costs: following - (1e6 if costs else 0),
    lambda following, costs: following / (2 if costs else 1),
)


def play(game: Game, capacity: int, buffers: BufferModel, phases: Sequence[Sequence[Placed]]) -> tuple[Move, ...]:
    """The moves of an order, by the best of some rules of eviction.

    Parameters
    ----------
    game : Game
        Without recomputation.
    capacity : int
        Of each memory, at least that of the heaviest task.
    buffers : BufferModel
    phases : sequence of sequences of (task, SM)
        All tasks once, each after those that it needs. Between two phases nothing stays in a memory, as between two
        kernels.
    """
    played = [_Player(game, capacity, buffers, phases, rule).play() for rule in _RULES]
    return min(played, key=lambda moves: moves_cost(game, moves, buffers))


class _Player:
    def __init__(
        self,
        game: Game,
        capacity: int,
        buffers: BufferModel,
        phases: Sequence[Sequence[Placed]],
        rule: Callable[[float, bool], float],
    ) -> None:
        self.game, self.capacity, self.buffers, self.phases, self.rule = game, capacity, buffers, phases, rule
        self.moves: list[Move] = []
        self.held: list[set[int]] = [set() for _ in range(buffers.memories)]
        self.blue = {x for x, blue in enumerate(game.is_input) if blue}
        self.initialised = set(self.blue)
        # where and when each value is touched from now on, the next last
        self.touched: list[list[tuple[int, int]]] = [[] for _ in range(game.size)]
        placed = [item for phase in phases for item in phase]
        for at in range(len(placed) - 1, -1, -1):
            task, sm = game.tasks[placed[at][0]], placed[at][1]
            for x in (*task.operands, task.target):
                self.touched[x].append((at, sm))
        self.left = [len(updates) for updates in game.updates]

    def play(self) -> tuple[Move, ...]:
        """The moves."""
        for phase in self.phases:
            for t, sm in phase:
                self.task(t, sm)
            for sm in range(len(self.held)):
                for x in sorted(self.held[sm]):
                    self.leave(x, sm)
        return tuple(self.moves)

    def say(self, op: Op, x: int, sm: int, source: int | None = None) -> None:
        self.moves.append(Move(op, self.game.names[x], source, sm))

    def holders(self, x: int, but: int) -> list[int]:
        return [q for q, held in enumerate(self.held) if q != but and x in held]

    def leave(self, x: int, sm: int) -> None:
        if self.touched[x] and x not in self.blue and not self.holders(x, sm):
            self.say("store", x, sm)
            self.blue.add(x)
        self.say("delete", x, sm)
        self.held[sm].discard(x)

    def evict_for(self, needs: set[int], x: int, sm: int) -> None:
        weights = self.game.weights
        while sum(weights[y] for y in self.held[sm]) + weights[x] > self.capacity:
            self.leave(max(sorted(self.held[sm] - needs), key=lambda y: self.worth(y, sm)), sm)

    def worth(self, x: int, sm: int) -> float:
        """The more, the sooner it leaves."""
        following = next((at for at, q in reversed(self.touched[x]) if q == sm), _NEVER)
        costs = x not in self.blue and not self.holders(x, sm)
        if following == _NEVER and costs:
            following = self.touched[x][-1][0]  # another SM needs it
        return self.rule(following, costs)

    def fetch(self, x: int, sm: int) -> None:
        results = [(self.buffers.copy_cost(q, sm), q) for q in self.holders(x, sm)]
        copies = sorted((cost, q) for cost, q in results if cost is not None)
        if copies and copies[0][0] < (1 if x in self.blue else 2):
            self.say("copy", x, sm, copies[0][1])
        else:
            if x not in self.blue:
                self.say("store", x, results[0][1])
                self.blue.add(x)
            self.say("load", x, sm)
        self.held[sm].add(x)

    def task(self, t: int, sm: int) -> None:
        task = self.game.tasks[t]
        needs = {*task.operands, task.target}
        begun = task.target in self.initialised
        for x in sorted(needs - self.held[sm], key=lambda x: (x == task.target and not begun, x)):
            self.evict_for(needs, x, sm)
            if x != task.target or begun:
                self.fetch(x, sm)  # for what is not begun there is room, once all else is there
        self.moves.append(Move("compute", task.name, None, sm))
        for held in self.held:
            held.discard(task.target)
        self.held[sm].add(task.target)
        self.initialised.add(task.target)
        self.blue.discard(task.target)
        self.left[task.target] -= 1
        if self.game.is_output[task.target] and not self.left[task.target]:
            self.say("store", task.target, sm)
            self.blue.add(task.target)
        for x in needs:
            self.touched[x].pop()
            if not self.touched[x]:
                for q in range(len(self.held)):
                    if x in self.held[q]:
                        self.leave(x, q)
