"""Solve an in-place GEMM: pattern table, beam, then A* level by level, within time and memory."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.errors import PebbleError
from pebble.solvers.gemm_shape import Shape
from pebble.solvers.plan import Plan, write_moves
from pebble.solvers.result import Incumbent
from pebble.solvers.search import gemm_astar as astar
from pebble.solvers.search import gemm_rules as rules
from pebble.solvers.search import gemm_table as tables
from pebble.solvers.search.bits import FULL
from pebble.solvers.search.gemm_canon import Classes, make_classes
from pebble.solvers.search.gemm_model import Model, build_model
from pebble.solvers.search.limits import Slices, search_levels
from pebble.system.memory import memory_allowance

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
_POSITION_BYTES = 26 + 8  # arrays, and a hash table that is at most half full
_NODE_BYTES = 14 + 8 + 4
_EDGE_BYTES = 6


class Table(NamedTuple):
    """A finished pattern table, or an empty one."""

    patterns: tables.Patterns
    nodes: NDArray[np.int32]
    values: NDArray[np.uint8]
    offsets: NDArray[np.int64]


class GemmSearch:
    """One search; the sums of loads and spill stores it handles leave out the final stores."""

    def __init__(self, best: Incumbent, shape: Shape) -> None:
        self.best, self.shape = best, shape
        self.model: Model = build_model(shape.m, shape.n, shape.k, best.problem.capacity)
        self.finals = shape.m * shape.n
        self.memory = memory_allowance()
        self.classes: Classes = make_classes(1 << 22)
        self.table = self._empty_table()
        self.visited = 0
        self.generated = 0
        self.searching = 0.0

    def run(self) -> str:
        """Search; the reason why it stopped."""
        best = self.best
        start = time.monotonic()
        probe_until = start + PROBE_SHARE * best.seconds_left
        positions = astar.make_positions(self._positions_allowed())
        if self._search(positions, probe_until, PROBE_POSITIONS) in ("found", "exhausted") or best.stopped:
            return self._reason("")
        self._beam(BEAM_WIDTHS[0])
        if self._choose_table():
            positions = astar.make_positions(self._positions_allowed())
        for width in BEAM_WIDTHS:
            self._beam(width)
        if best.closed:
            return self._reason("")
        return self._reason(self._search(positions, float("inf")))

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

    def _reason(self, why: str) -> str:
        self.best.details["states"] = self.visited
        self.best.details["successors"] = self.generated
        if self.searching > 0:
            self.best.details["states_per_second"] = round(self.visited / self.searching)
        if self.best.closed:
            return "proved optimal"
        return f"memory limit of {self.memory / 2**30:.1f} GiB" if why == "memory" else "stopped"

    def _positions_allowed(self) -> int:
        taken = self.table.values.nbytes + int(self.table.patterns.counts[1]) * _EDGE_BYTES
        return max(1 << 16, (self.memory - taken) // _POSITION_BYTES)

    def _empty_table(self) -> Table:
        offsets, _ = tables.row_offsets(self.shape.m, self.shape.n, self.shape.k)
        empty = tables.make_patterns(2, 2)
        return Table(empty, np.zeros(2, dtype=np.int32), np.zeros((0, 0), dtype=np.uint8), offsets)

    def _build_table(self, until: float, detail: int) -> Table | None:
        """The pattern table, or None when time or memory do not suffice for it."""
        shape, best = self.shape, self.best
        model = self.model._replace(detail=detail)
        offsets, rows = tables.row_offsets(shape.m, shape.n, shape.k)
        budget = self.memory // 2
        most_nodes = min(budget // (rows + _NODE_BYTES + 10 * _EDGE_BYTES), 1 << 28)
        patterns = tables.make_patterns(most_nodes, 16 * most_nodes)
        nodes = np.zeros(1 << 16, dtype=np.int32)
        slices = Slices(best, until)
        while True:
            status = tables.explore(model, self.classes, patterns, nodes, slices.start())
            if status == tables.GROW:
                nodes = np.zeros(4 * len(nodes), dtype=np.int32)
                tables.rehash_nodes(patterns, nodes)
            elif status == tables.DONE:
                break
            elif status == tables.FULL or slices.end():
                return None
        count = int(patterns.counts[0])
        sizes = np.bitwise_count(self.classes.red[: int(self.classes.counts[0])])
        order = np.argsort(sizes[patterns.node_class[:count]], kind="stable").astype(np.int32)
        values = np.full((rows, count), tables.NEVER, dtype=np.uint8)
        for left in range(shape.m * shape.n * shape.k + 1):
            for untouched in range(min(self.finals, left // shape.k) + 1):
                tables.fill_row(model, patterns, order, offsets, values, left, untouched)
                if best.stopped or time.monotonic() > until:
                    return None
        best.details["table_entries"] = count
        best.details["table_detail"] = detail
        root = int(values[offsets[self.finals], 0])
        best.raise_lower(root + self.finals, "pattern table")
        return Table(patterns, nodes, values, offsets)

    def _beam(self, width: int) -> None:
        """An upper bound from the best `width` positions at each number of products done."""
        if self.best.stopped:
            return
        positions = astar.make_positions(BEAM_POSITIONS)
        table = np.zeros(2 * BEAM_POSITIONS, dtype=np.int32)
        t = self.table
        arguments = (self.model, self.classes, t.patterns, t.nodes, t.values, t.offsets, positions, table)
        astar.advance(*arguments, astar.LEVELS, 0)
        positions.head[:] = -1
        positions.head[0] = 0
        until = time.monotonic() + BEAM_SHARE * self.best.seconds_left
        for layer in range(self.model.products_count):
            status = astar.beam_layer(*arguments, self._upper(), layer, width, BEAM_FEW)
            if self.best.stopped or status == FULL or time.monotonic() > until:
                break
        if positions.counts[3] >= 0:
            self._report(positions, "beam")

    def _upper(self) -> int:
        return astar.LEVELS - 1 if self.best.upper is None else self.best.upper - self.finals

    def _search(self, positions: astar.Positions, until: float, most: float = float("inf")) -> str:
        """A* until the interval closes, or why not: ``"time"`` or ``"memory"``."""
        t, begun = self.table, time.monotonic()

        def advance(table: NDArray[np.int32], work: int) -> int:
            return int(
                astar.advance(
                    self.model, self.classes, t.patterns, t.nodes, t.values, t.offsets,
                    positions, table, self._upper(), work,
                )
            )  # fmt: skip

        try:
            why = search_levels(
                self.best,
                positions.counts,
                self.finals,
                advance,
                lambda table: astar.rehash_positions(positions, table),
                until,
                most,
            )
            if why == "found":
                self._report(positions, "search")
            return why
        finally:
            self.searching += time.monotonic() - begun
            self.visited += int(positions.counts[0])
            self.generated += int(positions.counts[4])
            self._reason("")

    def _report(self, positions: astar.Positions, source: str) -> None:
        """Turn the play that was found into moves and hand it in."""
        self.best.offer(write_moves(self.best.problem.game, self._plan(positions)), source)

    def _plan(self, positions: astar.Positions) -> Plan:
        """The products in order, and what stays red in between, in the game's own numbers."""
        chain = [int(positions.counts[3])]
        while positions.parent[chain[-1]] >= 0:
            chain.append(int(positions.parent[chain[-1]]))
        chain.reverse()
        full = np.uint64((1 << self.model.products_count) - 1)
        writer = _PlanWriter(self.model, self.shape)
        done, red = np.uint64(0), np.uint64(0)
        for number, s in enumerate(chain):
            paid = int(positions.cost[s])
            if number + 1 < len(chain):
                following = chain[number + 1]
                target = (positions.done[following], positions.red[following], int(positions.cost[following]))
            else:
                target = (full, np.uint64(0), int(positions.counts[6]))
            product, evicted, after, red_after = rules.find_move(
                self.model, self.classes, done, red, target[0], target[1], target[2] - paid
            )
            if product < 0:
                raise PebbleError("search: a recorded position has no move to the next; please report this.")
            writer.move(int(product), int(evicted))
            done, red = np.uint64(after), np.uint64(red_after)
            writer.settle(int(done))
            assert writer.red == int(red)
        return writer.plan()


class _PlanWriter:
    """Repeats the moves of the search on item bits, and writes them as a plan."""

    def __init__(self, model: Model, shape: Shape) -> None:
        self.shape, self.capacity = shape, model.capacity
        self.needs = [int(w) for w in model.needs]
        self.touches = [int(w) for w in model.touches]
        self.done = 0
        self.red = 0
        self.order: list[int] = []
        self.keep: list[frozenset[int]] = []

    def _run(self, product: int) -> None:
        if self.order:
            self.keep.append(frozenset(self.shape.items[x] for x in _bits(self.red)))
        self.red |= self.needs[product]
        self.done |= 1 << product
        self.order.append(product)

    def _run_ready(self) -> None:
        for t, need in enumerate(self.needs):
            if not self.done >> t & 1 and not need & ~self.red:
                self._run(t)
        self.red &= ~sum(1 << x for x in _bits(self.red) if not self.touches[x] & ~self.done)

    def move(self, product: int, evicted: int) -> None:
        """Evict, then load what the product needs and run it."""
        self.red &= ~evicted
        self._run(product)

    def settle(self, done: int) -> None:
        """Run what is ready and take what is free to take, up to these products."""
        self._run_ready()
        while self.done != done:
            for x, touched in enumerate(self.touches):
                undone = touched & ~self.done
                if undone and not self.red >> x & 1 and not undone & ~done and self._ready_with(x, undone):
                    for t in _bits(undone):
                        self._run(t)
                    break
            self._run_ready()

    def _ready_with(self, item: int, products: int) -> bool:
        red = self.red | 1 << item
        return all(not self.needs[t] & ~red for t in _bits(products))

    def plan(self) -> Plan:
        """What was written."""
        keep = (*self.keep, frozenset())
        return Plan(tuple(self.shape.tasks[t] for t in self.order), keep, (None,) * len(self.order))


def _bits(word: int) -> list[int]:
    return [b for b in range(word.bit_length()) if word >> b & 1]


def solve_gemm(best: Incumbent, shape: Shape) -> str:
    """Search an in-place GEMM until the bounds meet or a limit is reached.

    Returns
    -------
    str
        Why it stopped.
    """
    return GemmSearch(best, shape).run()
