"""Solve an in-place GEMM: pattern table, beam, then A* level by level, within time and memory."""

from __future__ import annotations

import time

import numpy as np

from pebble.errors import PebbleError
from pebble.game import Move
from pebble.solvers.gemm_shape import GemmShape
from pebble.solvers.plan import Plan, write_moves
from pebble.solvers.result import Incumbent
from pebble.solvers.search import gemm_astar as astar
from pebble.solvers.search import gemm_table as tables
from pebble.solvers.search.bits import FULL, bits_of
from pebble.solvers.search.gemm_model import build_model, make_classes
from pebble.solvers.search.levels import LEVELS, LevelSearch, Positions, Table, chain_to, make_positions

PROBE_POSITIONS = 100_000
PROBE_SHARE = 0.2  # of the time, before a table is built
TABLE_SHARE = 0.5  # of what is left then
# entries of a table with detail, per entry without (measured; they grow with the depth k), and seconds for each
DETAIL_FACTOR = {1: 3, 2: 8, 3: 30, 4: 250, 5: 1000}
ENTRY_SECONDS = 3e-5
BEAM_WIDTHS = (30, 300, 3000)
BEAM_SHARE = 0.05  # of the time left, each
BEAM_FEW = 3
BEAM_POSITIONS = 1 << 22
_NODE_BYTES = 14 + 8 + 4
_EDGE_BYTES = 6


class GemmSearch(LevelSearch):
    """One search; the sums of loads and spill stores it handles leave out the final stores."""

    def __init__(self, best: Incumbent, shape: GemmShape) -> None:
        super().__init__(best, shape.m * shape.n)
        self.shape = shape
        self.model = build_model(shape.m, shape.n, shape.k, best.problem.capacity)
        self.classes = make_classes(1 << 22)
        offsets, _ = tables.row_offsets(shape.m, shape.n, shape.k)
        nodes, values = np.zeros(2, dtype=np.int32), np.zeros((0, 0), dtype=np.uint8)
        self.table = tables.Table(tables.make_patterns(2, 2), nodes, values, offsets)  # empty

    def run(self) -> str:
        """Search; the reason why it stopped."""
        best = self.best
        probe_until = time.monotonic() + PROBE_SHARE * best.seconds_left
        positions = self.positions(2)
        if self.search(positions, probe_until, PROBE_POSITIONS) in ("found", "exhausted") or best.stopped:
            return self.reason("")
        self._beam(BEAM_WIDTHS[0])
        if self._choose_table():
            edges = int(self.table.patterns.counts[1])
            positions = self.positions(2, taken=self.table.values.nbytes + edges * _EDGE_BYTES)
        for width in BEAM_WIDTHS:
            self._beam(width)
        return self.reason("" if best.closed else self.search(positions))

    def _choose_table(self) -> bool:
        """Build the small table, then the detailed one if time and memory seem to suffice."""
        until = time.monotonic() + TABLE_SHARE * self.best.seconds_left
        small = self._build_table(until, 0)
        if small is None:
            return False
        self.table, self.model = small, self.model._replace(detail=0)
        entries = int(small.patterns.counts[0]) * DETAIL_FACTOR[self.shape.k]
        if time.monotonic() + entries * ENTRY_SECONDS < until:
            large = self._build_table(until, 1)
            if large is not None:
                self.table, self.model = large, self.model._replace(detail=1)
        return True

    def _build_table(self, until: float, detail: int) -> tables.Table | None:
        """The pattern table, or None when time or memory do not suffice for it."""
        model = self.model._replace(detail=detail)
        _, rows = tables.row_offsets(self.shape.m, self.shape.n, self.shape.k)
        most_nodes = min(self.memory // 2 // (rows + _NODE_BYTES + 10 * _EDGE_BYTES), 1 << 28)
        table = tables.build_table(
            model, self.classes, most_nodes, lambda: self.best.stopped or time.monotonic() > until
        )
        if table is not None:
            self.best.details |= {"table_entries": int(table.patterns.counts[0]), "table_detail": detail}
            root = int(table.values[table.offsets[self.base], 0])
            self.best.raise_lower(root + self.base, "pattern table")
        return table

    def _space(self, positions: Positions, slots: Table) -> astar.SearchSpace:
        return astar.SearchSpace(self.model, self.classes, self.table, positions, slots)

    def _beam(self, width: int) -> None:
        """An upper bound from the best `width` positions at each number of products done."""
        if self.best.stopped:
            return
        positions = make_positions(BEAM_POSITIONS, 2)
        space = self._space(positions, np.zeros(2 * BEAM_POSITIONS, dtype=np.int32))
        astar.advance(space, LEVELS, 0)
        positions.head[:] = -1
        positions.head[0] = 0
        until = time.monotonic() + BEAM_SHARE * self.best.seconds_left
        for layer in range(self.model.products_count):
            status = astar.beam_layer(space, self.upper, layer, width, BEAM_FEW)
            if self.best.stopped or status == FULL or time.monotonic() > until:
                break
        if positions.counts[3] >= 0:
            self.report(positions, "beam")

    def advance(self, positions: Positions, table: Table, work: int) -> int:
        """Some work of the A*."""
        return astar.advance(self._space(positions, table), self.upper, work)

    def moves(self, positions: Positions) -> tuple[Move, ...]:
        """The products in order, and what is red while each runs, in the game's own numbers."""
        chain = chain_to(positions, int(positions.counts[3]))
        end = np.array([self.model.full, 0], dtype=np.uint64)
        goals = [(positions.words[s], int(positions.cost[s])) for s in chain[1:]] + [(end, int(positions.counts[6]))]
        space = self._space(positions, np.zeros(2, dtype=np.int32))
        log = np.zeros((2 * self.model.products_count + 4, 2), dtype=np.uint64)
        order: list[int] = []
        red: list[frozenset[int]] = []
        done, image = 0, np.zeros(2, dtype=np.uint64)
        for s, (goal, cost) in zip(chain, goals, strict=True):
            if astar.expand(space, s, image[0], image[1], LEVELS - 1, False, astar.Sought(goal, cost, log)) != -2:
                raise PebbleError("search: a recorded position has no move to the next; please report this.")
            image = positions.found[:2].copy()
            for after, held in log[1 : int(log[0, 0]) + 1].tolist():
                for product in bits_of(after & ~done):
                    order.append(self.shape.tasks[product])
                    red.append(frozenset(self.shape.items[x] for x in bits_of(held)))
                done = after
        keep = [now & then for now, then in zip(red, [*red[1:], frozenset()], strict=True)]
        return write_moves(self.game, Plan(tuple(order), tuple(keep), (None,) * len(order)))
