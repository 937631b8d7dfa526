"""``compare --exact``: tile orders against the exact optimum over all tile schedules, on small grids."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, Any, Unpack, cast

from pebble.cdag.products import gemm_dag
from pebble.errors import InputError
from pebble.families import family_of
from pebble.families.gemm import GEMM
from pebble.game import Game, Move, Pebbling, Variant, check_capacity, moves_cost, replay
from pebble.game.moves import Op
from pebble.reports.report import Report
from pebble.reports.schedule_names import Schedules, read_schedules
from pebble.reports.target import TargetOptions, read_target
from pebble.schedules.orders import OrderParams, TileOrder
from pebble.schedules.tile import TileShape
from pebble.schedules.tile_game import EVICTIONS, Item, play_order, tile_operations
from pebble.solvers import Known, SolveResult, solve
from pebble.solvers.result import Progress
from pebble.system.clock import Clock
from pebble.units import format_bytes, format_capacity
from pebble.workloads import Gemm
from pebble.workloads.workload import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pebble.plots.walk import PlayedOrders

MAX_OPERATIONS = 64


@dataclass(frozen=True)
class PlayedOrder:
    """One order under one eviction rule, as the referee counted it.

    Attributes
    ----------
    order, eviction : str
    load_bytes, store_bytes : int
    """

    order: str
    eviction: str
    load_bytes: int
    store_bytes: int

    @property
    def bytes(self) -> int:
        """Loads plus stores."""
        return self.load_bytes + self.store_bytes


@dataclass(frozen=True, repr=False)
class ExactComparison(Report):
    """What ``pebble compare --exact`` found.

    Attributes
    ----------
    gemm : Gemm
    tile : TileShape
    grid : tuple of int
        Tiles along m, n, k.
    capacity_bytes : int
        One explicitly managed memory.
    unit_bytes : int
        Largest number of bytes that divides every tile; the game is solved in this unit.
    solved : SolveResult
        Interval of the optimum over all tile schedules, in units.
    orders : tuple of PlayedOrder
        Least traffic first.
    """

    gemm: Gemm
    tile: TileShape
    grid: tuple[int, int, int]
    capacity_bytes: int
    unit_bytes: int
    solved: SolveResult
    orders: tuple[PlayedOrder, ...]

    @property
    def lower_bytes(self) -> int:
        """No tile schedule moves less."""
        return int(self.solved.lower_bound) * self.unit_bytes

    @property
    def upper_bytes(self) -> int:
        """The best tile schedule found moves this."""
        results = [p.bytes for p in self.orders]
        if self.solved.upper_bound is not None:
            results.append(int(self.solved.upper_bound) * self.unit_bytes)
        return min(results)

    @property
    def optimal(self) -> bool:
        """Whether the two meet."""
        return self.lower_bytes == self.upper_bytes

    question = "compare"

    def summary(self) -> str:
        result = "optimum" if self.optimal else f"at least {format_bytes(self.lower_bytes)}, best found"
        grid = "x".join(map(str, self.grid))
        return f"{self.gemm.label}, {grid} tiles of {self.tile}: {result} {format_bytes(self.upper_bytes)}"

    def rows(self) -> list[dict[str, Any]]:
        """A row per order and eviction rule."""
        keys = ("name", "policy", "dram_read_bytes", "dram_write_bytes", "dram_bytes", "ratio_to_optimum")
        return [{key: row[key] for key in keys} for row in self.document()["schedules"]]

    def document(self) -> dict[str, Any]:
        return {
            "workload": {"label": self.gemm.label, **self.gemm.to_json()},
            "tile": str(self.tile),
            "grid": list(self.grid),
            "capacity_bytes": self.capacity_bytes,
            "exact": {
                "lower_bound": self.lower_bytes,
                "upper_bound": self.upper_bytes,
                "status": "optimal" if self.optimal else "feasible",
                "stop_reason": self.solved.stop_reason,
                "variant": str(self.solved.variant),
                "solver": self.solved.solver,
                "proof": list(self.solved.proof),
                "seconds": self.solved.seconds,
                "moves": [move.to_json() for move in self.solved.moves],
            },
            "schedules": [
                {
                    "name": p.order,
                    "policy": p.eviction,
                    "dram_read_bytes": p.load_bytes,
                    "dram_write_bytes": p.store_bytes,
                    "dram_bytes": p.bytes,
                    "load_bytes": p.load_bytes,
                    "store_bytes": p.store_bytes,
                    "bytes": p.bytes,
                    "ratio_to_optimum": p.bytes / self.upper_bytes,
                    "ratio_to_lower_bound": p.bytes / self.lower_bytes,
                }
                for p in self.orders
            ],
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Each order's traffic under LRU and OPT, as bars, and the optimum."""
        from pebble.plots.walk import plot_exact

        return plot_exact(self._drawn, ax)

    def figure(self) -> Figure:
        """The same on a page, as high as it has bars."""
        from pebble.plots.walk import exact_figure

        return exact_figure(self._drawn)

    @property
    def _drawn(self) -> PlayedOrders:
        from pebble.plots.walk import PlayedOrders

        held = f"one memory of {format_capacity(self.capacity_bytes)}"
        title = f"{self.gemm.label}\n{'x'.join(map(str, self.grid))} tiles of {self.tile}, {held}"
        totals = {(p.order, p.eviction): p.bytes for p in self.orders}
        return PlayedOrders(title, self.lower_bytes, self.upper_bytes, totals)


def compare_exactly(
    workload: Workload,
    schedules: Schedules = "all",
    *,
    tile: str | None = None,
    time_limit: float = 60.0,
    progress: Callable[[Progress], None] | None = None,
    stop: threading.Event | None = None,
    **where: Unpack[TargetOptions],
) -> ExactComparison:
    """Solve the tile game of a small grid and play each order in it under LRU and OPT.

    Parameters
    ----------
    workload : Gemm
    schedules : str or sequence of str
        Orders to play. Those with the same sequence of operations give the same figures.
    tile : str, optional
        Tile of one operation, along m, n and k; edge tiles are short.
    time_limit : float
        Seconds for the solver.
    stop : threading.Event, optional
        Set it to get the interval at once.
    progress : callable, optional
        Passed to the solver.
    **where
        ``cache``: one memory that holds whole tiles, each at its own width.

    Raises
    ------
    InputError
        Not a GEMM, no cache, or more than 64 tile operations.
    InfeasibleError
        The three tiles of the largest operation do not fit.
    """
    gemm = GEMM.own(workload)
    if gemm is None:
        raise InputError(f"--exact: got {family_of(workload).name}, expected gemm: only its tile orders are solved.")
    target = read_target(**where)
    orders = read_schedules(schedules, GEMM.all_schedules(gemm, shape := GEMM.default_tile(gemm)), GEMM.parse_schedule)
    if target.cache is None:
        raise InputError("--exact: got a GPU, expected --cache SIZE: the tile game has one memory, of a few tiles.")
    shape = (shape if tile is None else TileShape.parse(tile, shape.bk)).cut_to(gemm)
    capacity_bytes = target.cache.to_bytes(gemm.narrowest_bytes)
    grid = shape.grid(gemm)
    operations = grid[0] * grid[1] * grid[2]
    if operations > MAX_OPERATIONS:
        raise InputError(
            f"--exact: got a grid of {grid[0]}x{grid[1]}x{grid[2]} tiles, {operations} operations, expected at most "
            f"{MAX_OPERATIONS}; use larger tiles, or leave --exact out to compare with the proved bound."
        )
    game, unit = _tile_game(gemm, shape, capacity_bytes)
    capacity = capacity_bytes // unit
    played = []
    best: Pebbling | None = None
    for order in orders:
        for eviction in EVICTIONS:
            pebbling = _pebbling(game, capacity, gemm, shape, order, eviction)
            counted = replay(game, pebbling)
            played.append(PlayedOrder(order.name, eviction, counted.loads * unit, counted.stores * unit))
            if best is None or pebbling.cost < best.cost:
                best = pebbling
    solved = solve(game, capacity, time_limit=Clock(time_limit, stop), progress=progress, known=Known(best))
    return ExactComparison(
        gemm, shape, grid, capacity_bytes, unit, solved, tuple(sorted(played, key=lambda p: (p.bytes, p.order)))
    )


def _tile_game(gemm: Gemm, shape: TileShape, capacity_bytes: int) -> tuple[Game, int]:
    """The game whose operations are those of whole tiles, and its unit: the most bytes that divide every tile.

    Raises
    ------
    InfeasibleError
        The three tiles of the largest operation do not fit.
    """
    dag = gemm_dag(
        gemm.m,
        gemm.n,
        gemm.k,
        tile=(shape.bm, shape.bn, shape.bk),
        accumulate=gemm.accumulate,
        in_bytes=gemm.in_bytes,
        out_bytes=gemm.out_bytes,
    )
    check_capacity(Game.from_dag(dag, Variant.IN_PLACE), capacity_bytes)  # before the unit: what it says is in bytes
    unit = gcd(*(data["weight"] for _, data in dag.nodes(data=True) if "weight" in data))
    for _, data in dag.nodes(data=True):
        if "weight" in data:
            data["weight"] //= unit
    return Game.from_dag(dag, Variant.IN_PLACE), unit


def _pebbling(game: Game, capacity: int, gemm: Gemm, shape: TileShape, order: TileOrder, eviction: str) -> Pebbling:
    """An order under one eviction rule, as moves of the game."""
    rows, cols, depth = shape.grid(gemm)
    # a task is named by the DAG; its items say which it is
    update = {(task.target, task.operands): task.name for task in game.tasks}

    def weight(item: Item) -> int:
        return game.weights[game.item_index[_name(item)]]

    def to_move(op: str, operand: str, index: tuple[int, ...]) -> Move:
        if op != "compute":
            return Move(cast(Op, op), _name((operand, (index[0], index[1]))))
        i, j, l = index
        a, b, c = (game.item_index[_name(x)] for x in (("A", (i, l)), ("B", (l, j)), ("C", (i, j))))
        return Move("compute", update[c, tuple(sorted((a, b)))])

    tiles = order.tiles(rows, cols, OrderParams(tile_m=shape.bm, tile_n=shape.bn))
    operations = tile_operations(tiles, depth, order.sawtooth)
    moves = tuple(to_move(*event) for event in play_order(operations, weight, capacity, eviction, gemm.accumulate))
    return Pebbling(Variant.IN_PLACE, capacity, moves, moves_cost(game, moves))


def _name(item: Item) -> str:
    operand, (row, column) = item
    return f"{operand}[{row},{column}]"
