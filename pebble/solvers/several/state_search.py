"""Best-first search over the states of the game with several memories: exact, without a model, for tiny DAGs.

A state is what each memory holds, what is blue and what is done. The estimate is what must still move: outputs not yet
stored in their final form, and blue values that tasks to come need and no memory holds. Where SMs are alike, states
that differ by their numbering alone are one. Only values that some task to come needs are loaded or copied.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from pebble.game import Move
from pebble.solvers.heuristic import solve_alone
from pebble.solvers.result import NO_PEBBLING, Incumbent

MAX_STATES = 2_000_000


class _State(NamedTuple):
    red: tuple[int, ...]
    blue: int
    done: int


def solve_by_search(best: Incumbent) -> str:
    """Prove the optimum, or stop at the limit of time or states."""
    solve_alone(best)
    return "proved optimal" if best.closed else _Search(best).run()


class _Search:
    def __init__(self, best: Incumbent) -> None:
        game, buffers = best.problem.game, best.problem.buffers
        self.best, self.game, self.capacity = best, game, best.problem.capacity
        self.sms = buffers.memories
        self.weights = game.weights
        self.alike = buffers.kind == "sm-local" or buffers.net.uniform
        self.prices = {
            (r, q): int(price * best.unit)
            for r in range(self.sms)
            for q in range(self.sms)
            if (price := buffers.copy_cost(r, q)) is not None
        }
        self.masks = [
            (sum(1 << o for o in task.operands), 1 << task.target, sum(1 << u for u in game.preds[t]))
            for t, task in enumerate(game.tasks)
        ]
        self.all_done = (1 << len(game.tasks)) - 1
        self.updates = [sum(1 << t for t in ts) for ts in game.updates]
        self.uses = [sum(1 << t for t in ts) for ts in game.uses]

    def run(self) -> str:
        """A* with the estimate of `rest`, which never overestimates."""
        best, game = self.best, self.game
        start = _State((0,) * self.sms, sum(1 << i for i, b in enumerate(game.is_input) if b), 0)
        cost = {start: 0}  # by `key`
        came: dict[_State, tuple[_State, Move]] = {}
        heap = [(self.rest(start), 0, start)]
        closed: set[_State] = set()
        tie = 0
        while heap:
            estimate, _, state = heapq.heappop(heap)
            key = self.key(state)
            if key in closed:
                continue
            closed.add(key)
            if len(closed) % 1024 == 0:
                best.raise_lower(estimate if best.upper is None else min(estimate, best.upper), "search")
                if best.stopped:
                    return "proved optimal" if best.closed else "stopped"
                if len(closed) > MAX_STATES:
                    return f"stopped after {MAX_STATES} states"
            if state.done == self.all_done and self.rest(state) == 0:
                best.raise_lower(cost[key] if best.upper is None else min(cost[key], best.upper), "search")
                best.offer(self.moves(state, came), "search")
                return "proved optimal"
            for extra, after, move in self.after(state):
                total = cost[key] + extra
                other = self.key(after)
                if other not in cost or total < cost[other]:
                    cost[other] = total
                    came[after] = state, move
                    tie -= 1
                    heapq.heappush(heap, (total + self.rest(after), tie, after))
        return NO_PEBBLING

    def key(self, state: _State) -> _State:
        """States that differ by the numbering of SMs that are alike have one key."""
        return state._replace(red=tuple(sorted(state.red))) if self.alike else state

    def rest(self, state: _State) -> int:
        """A lower bound on what must still be paid."""
        anywhere = 0
        for red in state.red:
            anywhere |= red
        total = 0
        for i, weight in enumerate(self.weights):
            bit = 1 << i
            undone = self.updates[i] & ~state.done
            if self.game.is_output[i] and (undone or not state.blue & bit):
                total += weight
            if not anywhere & bit and (self.uses[i] & ~state.done or (undone and state.blue & bit)):
                begun = self.updates[i] & state.done
                if self.game.is_input[i] or (begun and state.blue & bit):
                    total += weight
        return total * self.best.unit

    def after(self, state: _State) -> Iterator[tuple[int, _State, Move]]:
        """Every move that can matter."""
        game, unit, capacity = self.game, self.best.unit, self.capacity
        for q, red in enumerate(state.red):
            room = capacity - sum(w for i, w in enumerate(self.weights) if red >> i & 1)
            for i, weight in enumerate(self.weights):
                bit, name = 1 << i, game.names[i]
                wanted = (self.uses[i] | self.updates[i]) & ~state.done
                if red & bit:
                    yield 0, self.state(state, q, red & ~bit), Move("delete", name, None, q)
                    if not state.blue & bit:
                        blue = state._replace(blue=state.blue | bit)
                        yield weight * unit, blue, Move("store", name, None, q)
                elif wanted and weight <= room:
                    if state.blue & bit:
                        yield weight * unit, self.state(state, q, red | bit), Move("load", name, None, q)
                    for r, other in enumerate(state.red):
                        if other & bit and (r, q) in self.prices:
                            price = weight * self.prices[r, q]
                            yield price, self.state(state, q, red | bit), Move("copy", name, r, q)
            for t, (operands, target, before) in enumerate(self.masks):
                if state.done >> t & 1 or red & operands != operands or state.done & before != before:
                    continue
                item = game.tasks[t].target
                begun = game.is_input[item] or bool(self.updates[item] & state.done)
                if not red & target and (begun or self.weights[item] > room):
                    continue
                reds = tuple((r | target) if p == q else (r & ~target) for p, r in enumerate(state.red))
                following = _State(reds, state.blue & ~target, state.done | 1 << t)
                yield 0, following, Move("compute", game.tasks[t].name, None, q)

    @staticmethod
    def state(state: _State, q: int, red: int) -> _State:
        return state._replace(red=(*state.red[:q], red, *state.red[q + 1 :]))

    def moves(self, state: _State, came: dict[_State, tuple[_State, Move]]) -> tuple[Move, ...]:
        found = []
        while state in came:
            state, move = came[state]
            found.append(move)
        return tuple(found[::-1])
