"""The search for any game without recomputation: branch and bound in excess cost, limit after limit."""

from __future__ import annotations

import time
from math import log

import numpy as np

from pebble.errors import PebbleError
from pebble.game import Move
from pebble.solvers.plan import Plan, write_moves
from pebble.solvers.result import Incumbent
from pebble.solvers.search import dag_layers as layers
from pebble.solvers.search import dag_model as kept
from pebble.solvers.search.bits import EXHAUSTED, FULL
from pebble.solvers.search.dag_counts import count_game
from pebble.solvers.search.dag_model import build_dag_model
from pebble.solvers.search.ideals import BYTES_PER_IDEAL, make_ideals
from pebble.system.parallel import memory_allowance

BEAM_WIDTHS = (30, 300, 3000)
BEAM_SHARE = 0.1  # of the time left, each
COUNT_SHARE = 0.3  # of the time left, for the counted game
SHORT_SECONDS = 0.05  # of a pass, before the last is tried
LAST_SHARE = 0.75  # of the time left, for one pass up to the upper bound
GROWTH = 3.0  # of the positions from one pass to the next, unless the last is near
_SLICE_SECONDS = 0.05
_LARGEST_SLICE = 1 << 13


class GeneralSearch:
    """One search; the costs it handles are excess over the compulsory."""

    def __init__(self, best: Incumbent) -> None:
        self.best, self.game = best, best.problem.game
        self.base = self.game.compulsory
        self.model = build_dag_model(self.game, best.problem.capacity)
        self.memory = int(best.memory_share * memory_allowance())
        self.ideals = make_ideals(max(1 << 12, self.memory // 2 // BYTES_PER_IDEAL))
        most = max(1 << 16, self.memory // 2 // kept.BYTES_PER_POSITION)
        self.positions = kept.make_positions(most, len(self.game.tasks))
        self.states = self.successors = 0
        self.seconds = 0.0

    def run(self) -> str:
        """Search; the reason why it stopped."""
        best = self.best
        best.raise_lower(self.base, "compulsory bound")
        if not self.game.tasks:
            best.offer(write_moves(self.game, Plan((), (), ())), "search")
        for width in BEAM_WIDTHS[:2]:
            self._beam(width, self.upper - 1)
        if not best.stopped:
            self._count()
        for width in BEAM_WIDTHS[1:]:
            self._beam(width, self.upper - 1)
        limit, step, states, took = best.lower - self.base, 1, 1, 0.0
        tried = not len(self.ideals.counted.values)  # without its bound the last pass is out of reach
        while not best.stopped:
            limit = max(min(limit, self.upper - 1), best.lower - self.base)
            if took > SHORT_SECONDS and not tried:  # small games are over by now
                tried = True
                self._pass(self.upper - 1, 0, time.monotonic() + LAST_SHARE * best.seconds_left)
            if states > BEAM_WIDTHS[1]:
                self._beam(BEAM_WIDTHS[1], limit)  # within the limit a beam knows better where to look
            if best.stopped:
                break
            began, before = time.monotonic(), states
            why = self._pass(limit)
            if why:
                return f"memory limit of {self.memory / 2**30:.1f} GiB" if why == "memory" else "stopped"
            took = time.monotonic() - began
            states = int(self.positions.counts[kept.STATES])
            growth = max(1.05, (states / before) ** (1 / step))
            last = max(1, self.upper - 1 - limit)
            step = max(1, int(log(GROWTH) / log(growth)))
            if best.seconds_left > 0 and log(max(took, 1e-6)) + last * log(growth) < log(best.seconds_left):
                step = last
            limit += step
        return "proved optimal" if best.closed else "stopped"

    def _count(self) -> None:
        """Play the counted game backwards, for its bound."""
        until = time.monotonic() + COUNT_SHARE * self.best.seconds_left
        counted = count_game(self.model, lambda: self.best.stopped or time.monotonic() > until)
        self.ideals = make_ideals(len(self.ideals.words), counted)
        if len(counted.values):
            self.best.raise_lower(self.base + int(counted.values[0, 0]), "search")

    def _beam(self, width: int, limit: int) -> None:
        """An upper bound within a limit, from the best positions of each layer."""
        if not self.best.stopped:
            self._pass(limit, width, time.monotonic() + BEAM_SHARE * self.best.seconds_left)

    @property
    def upper(self) -> int:
        """The excess of the cheapest pebbling known."""
        return layers.LEVELS - 1 if self.best.upper is None else self.best.upper - self.base

    def _pass(self, limit: int, width: int = 0, until: float = float("inf")) -> str:
        """Look at all that costs no more than a limit, or at the best of it; why it was cut short, or ""."""
        model, ideals, positions, counts = self.model, self.ideals, self.positions, self.positions.counts
        initialised, work = time.monotonic(), 256
        status = -1 if layers.begin(model, ideals, positions, limit) else FULL
        while status not in (EXHAUSTED, FULL) and not self.best.stopped and time.monotonic() < until:
            started = time.monotonic()
            status = layers.advance(model, ideals, positions, width, work)
            took = time.monotonic() - started
            work = min(_LARGEST_SLICE, 2 * work) if took < _SLICE_SECONDS else max(16, work // 2)
        self.seconds += time.monotonic() - initialised
        self.states += int(counts[kept.STATES])
        self.successors += int(counts[kept.SUCCESSORS])
        self.best.details |= {"states": self.states, "successors": self.successors, "ideals": int(ideals.counts[0])}
        if self.seconds > 0:
            self.best.details["states_per_second"] = round(self.states / self.seconds)
        if counts[kept.GOAL] >= 0:
            self.best.offer(self._moves(), "beam" if width else "search")
        if status == EXHAUSTED and not width:
            self.best.raise_lower(self.base + int(counts[kept.LIMIT]) + 1, "search")
        return "" if status == EXHAUSTED else "memory" if status == FULL else "time"

    def _moves(self) -> tuple[Move, ...]:
        """The play found, in the game's own numbers.

        Interchangeable inputs change places in the positions; here they keep theirs, so an evicted one stands for
        any of its kind that is red.
        """
        model, game, positions = self.model, self.game, self.positions
        counts, numbers = positions.counts, positions.numbers
        chain = [int(counts[kept.GOAL])]
        while numbers[chain[-1], kept.PARENT] >= 0:
            chain.append(int(numbers[chain[-1], kept.PARENT]))
        chain.reverse()
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

        ran = np.zeros((model.tasks + 2, 2), dtype=np.int64)
        for s, goal in zip(chain, [*chain[1:], -1], strict=True):
            cost = int(counts[kept.GOAL_COST] if goal < 0 else positions.words[goal, kept.COST])
            if layers.expand(model, self.ideals, positions, s, goal, cost, ran) != layers.MATCH:
                raise PebbleError("search: a recorded position has no move to the next; please report this.")
            task, source = int(positions.found[0]), int(positions.found[1]) - 1
            evicted = int(positions.found[2]) | int(positions.found[3]) << 64
            for x in range(model.items):
                if evicted >> x & 1:
                    red.discard(pick(x))
            if keep:
                keep[-1] = set(red)
            play(task, source)
            for entry in range(1, int(ran[0, 0]) + 1):
                play(int(ran[entry, 0]), int(ran[entry, 1]))
        return write_moves(game, Plan(tuple(order), tuple(map(frozenset, keep)), tuple(sources)))
