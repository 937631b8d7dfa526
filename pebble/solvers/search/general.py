"""The search for any game without recomputation: A* in excess cost."""

from __future__ import annotations

import time

import numpy as np

from pebble.errors import PebbleError
from pebble.game import Move
from pebble.solvers.heuristic import solve_heuristic
from pebble.solvers.plan import Plan, write_moves
from pebble.solvers.result import Incumbent
from pebble.solvers.search import dag_astar as astar
from pebble.solvers.search.dag_model import build_dag_model
from pebble.solvers.search.dag_rules import WORDS, settle_dag
from pebble.solvers.search.levels import LevelSearch, Table
from pebble.solvers.search.positions import LEVELS, Positions, chain_to

FIRST_SHARE = 0.75  # of the time, before a heuristic is asked for an upper bound


class GeneralSearch(LevelSearch):
    """One search; the costs it handles are excess over the compulsory."""

    def __init__(self, best: Incumbent) -> None:
        super().__init__(best, best.problem.game.compulsory)
        self.model = build_dag_model(self.game, best.problem.capacity)

    def run(self) -> str:
        """Search; the reason why it stopped."""
        best = self.best
        best.raise_lower(self.base, "compulsory bound")
        positions = self.positions(WORDS, self.model.tasks + 1)
        why = self.search(positions, time.monotonic() + FIRST_SHARE * best.seconds_left)
        if why == "time" and not best.stopped:
            if best.upper is None:
                solve_heuristic(best)
            why = self.search(positions)
        return self.reason(why)

    def advance(self, positions: Positions, table: Table, work: int) -> int:
        """Some work of the A*."""
        return int(astar.advance(self.model, positions, table, self.upper, work))

    def moves(self, positions: Positions) -> tuple[Move, ...]:
        """The play found, in the game's own numbers.

        Interchangeable inputs change places in the positions; here they keep theirs, so an evicted one stands for
        any of its kind that is red.
        """
        model, game = self.model, self.game
        chain = chain_to(positions, int(positions.counts[3]))
        table = np.zeros(2, dtype=np.int32)
        log = np.zeros((model.tasks + 2, 2), dtype=np.int64)
        end = np.zeros(WORDS, dtype=np.uint64)
        for t in range(model.tasks):
            end[t >> 6] |= np.uint64(1 << (t & 63))
        kind = list(range(model.items))
        for x in range(model.items):
            if model.twin[x] >= 0:
                kind[x] = kind[model.twin[x]]
        order: list[int] = []
        keep: list[set[int]] = []
        sources: list[int | None] = []
        red: set[int] = set()
        left = [len(u) + len(t) for u, t in zip(game.uses, game.updates, strict=True)]

        def pick(item: int) -> int:
            return item if item in red else min(x for x in red if kind[x] == kind[item])

        def play(task: int, source: int) -> None:
            needs = (*game.tasks[task].operands, game.tasks[task].target)
            red.update(needs)
            for x in needs:
                left[x] -= 1
            order.append(task)
            sources.append(source if source >= 0 else None)
            if source >= 0:
                red.discard(source)
            for x in needs:
                if not left[x]:
                    red.discard(x)
            keep.append(set(red))

        settle_dag(model, np.zeros(WORDS, dtype=np.uint64), log)
        for number in range(1, int(log[0, 0]) + 1):
            play(int(log[number, 0]), int(log[number, 1]))
        for number, s in enumerate(chain):
            last = number + 1 == len(chain)
            if last and astar.is_end(model, positions.words[s]):
                break
            goal = end if last else positions.words[chain[number + 1]]
            cost = int(positions.counts[6] if last else positions.cost[chain[number + 1]])
            log[:] = 0
            status = astar.expand(model, positions, table, s, LEVELS, goal, cost, log)
            if status != -2:
                raise PebbleError("search: a recorded position has no move to the next; please report this.")
            task, source = int(positions.found[0]), int(positions.found[1]) - 1
            evicted = int(positions.found[2]) | int(positions.found[3]) << 64
            for x in range(model.items):
                if evicted >> x & 1:
                    red.discard(pick(x))
            if keep:
                keep[-1] = set(red)
            play(task, source)
            for entry in range(1, int(log[0, 0]) + 1):
                play(int(log[entry, 0]), int(log[entry, 1]))
        return write_moves(game, Plan(tuple(order), tuple(map(frozenset, keep)), tuple(sources)))
