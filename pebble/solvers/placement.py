"""Which SM should do and hold what: a schedule's work and its panels, placed on a topology so that values travel least.

A schedule deals the tiles of C to P slots, one per SM. A slot needs the row panel of A and the column panel of B of
each of its tiles, once each. A placement puts every slot on an SM of its own and every panel in the memory of one SM,
at most ceil(panels / P) per SM. Cost = panels fetched times hops from where they are held.

**Exact.** For slots at given SMs the panels are an assignment problem (min-cost flow). All P! placements of slots are
priced with the room for panels left out, a lower bound for each; in ascending order of it the assignment problems are
solved until the next lower bound is not below the best cost. What is left when the limit of problems is reached gives
the gap. **Heuristic**, for real chips: swap the SMs of two slots while the price without room falls, then solve one
assignment problem. Its lower bound: a panel that u slots need costs at least the u shortest hops of some SM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from pebble.errors import InputError
from pebble.game.buffer_model import Topology
from pebble.system.isolation import Library, call

IntArray = npt.NDArray[np.int64]
MAX_EXACT_SMS = 8
_MAX_ASSIGNMENTS = 2000


@dataclass(frozen=True, eq=False)
class Placement:
    """Where slots and panels go, and the panels times hops that this costs.

    ``slot_of`` each tile, the SM of each slot, and the SM that holds each row panel of A and column panel of B. No
    placement of this schedule costs less than ``lower_bound``.
    """

    topology: Topology
    slot_of: IntArray
    sm_of_slot: IntArray
    row_home: IntArray
    col_home: IntArray
    cost: int
    lower_bound: int
    method: str

    @property
    def owner(self) -> IntArray:
        """The SM that does each tile."""
        return self.sm_of_slot[self.slot_of]

    @property
    def gap(self) -> float:
        """Cost over lower bound, minus 1."""
        return self.cost / self.lower_bound - 1 if self.lower_bound else float(self.cost > 0)


def deal(
    tiles: Sequence[Sequence[int]] | npt.NDArray[np.integer[Any]], rows: int, cols: int, sms: int, in_turn: bool = False
) -> IntArray:
    """The slot of each tile when a tile order, a permutation of the grid, is dealt to P slots: an array of rows x cols.

    ``in_turn``: tile p goes to slot p mod P (waves); otherwise each slot gets consecutive tiles (persistent blocks).

    Examples
    --------
    >>> deal([(0, 0), (0, 1), (1, 0), (1, 1)], 2, 2, 2).tolist()
    [[0, 0], [1, 1]]
    """
    order = np.asarray(tiles, dtype=np.int64)
    slots = np.empty((rows, cols), dtype=np.int64)
    position = np.arange(len(order))
    slots[order[:, 0], order[:, 1]] = position % sms if in_turn else position * sms // len(order)
    return slots


def block_deal(rows: int, cols: int, down: int, across: int) -> IntArray:
    """A grid of down x across slots, each a rectangle of tiles: what a grid of blocks per SM does."""
    i, j = np.indices((rows, cols))
    return np.asarray(i * down // rows * across + j * across // cols, dtype=np.int64)


class _Problem:
    def __init__(self, slot_of: IntArray, topology: Topology) -> None:
        self.sms = topology.sms
        if slot_of.size and (slot_of.min() < 0 or slot_of.max() >= self.sms):
            raise InputError(f"placement: got slots up to {slot_of.max()}, expected 0 to {self.sms - 1}.")
        far = 4 * self.sms  # unconnected: dearer than any way there is
        self.hops = np.array(
            [[far if (h := topology.hops(a, b)) is None else h for b in range(self.sms)] for a in range(self.sms)]
        )
        rows = [np.bincount(line, minlength=self.sms) > 0 for line in slot_of]
        cols = [np.bincount(line, minlength=self.sms) > 0 for line in slot_of.T]
        self.rows = len(rows)
        self.users = np.array(rows + cols, dtype=np.int64)  # panels x slots
        self.capacity = -(-len(self.users) // self.sms)

    def cost(self, sm_of_slot: IntArray) -> IntArray:
        """Cost of each panel at each home: panels x SMs."""
        return np.asarray(self.users @ self.hops[sm_of_slot], dtype=np.int64)

    def homes(self, sm_of_slot: IntArray) -> tuple[int, IntArray]:
        """The cheapest homes with room for all."""
        home: IntArray
        cost, home = call(Library.ORTOOLS, "pebble.solvers.placement:_assign", self.cost(sm_of_slot), self.capacity)
        return cost, home

    def simple_bound(self) -> int:
        """A panel that u slots need costs at least the u shortest hops of some SM."""
        nearest = np.cumsum(np.sort(self.hops, axis=1), axis=1).min(axis=0)
        return int(sum(nearest[u - 1] for u in self.users.sum(axis=1)))

    def swapped(self, start: IntArray) -> IntArray:
        """Swap the SMs of two slots while the price without room falls."""
        place = start.copy()
        cost = self.cost(place)
        best = int(cost.min(axis=1).sum())
        improved = True
        while improved:
            improved = False
            for a in range(self.sms):
                for b in range(a + 1, self.sms):
                    change = np.outer(self.users[:, a] - self.users[:, b], self.hops[place[b]] - self.hops[place[a]])
                    total = int((cost + change).min(axis=1).sum())
                    if total < best:
                        best, cost = total, cost + change
                        place[[a, b]] = place[[b, a]]
                        improved = True
        return place


def _assign(cost: IntArray, capacity: int) -> tuple[int, IntArray]:
    """In the worker of `pebble.system.isolation`: each panel to an SM, at most ``room`` to one, by min-cost flow."""
    from ortools.graph.python import min_cost_flow

    panels, sms = cost.shape
    flow = min_cost_flow.SimpleMinCostFlow()
    tails, heads = np.divmod(np.arange(panels * sms), sms)
    flow.add_arcs_with_capacity_and_unit_cost(tails, heads + panels, np.ones_like(tails), cost.ravel())
    last = panels + sms
    ends = np.arange(panels, last)
    flow.add_arcs_with_capacity_and_unit_cost(
        ends, np.full(sms, last), np.full(sms, capacity), np.zeros(sms, dtype=np.int64)
    )
    flow.set_nodes_supplies(np.arange(panels), np.ones(panels, dtype=np.int64))
    flow.set_node_supply(last, -panels)
    status = flow.solve()
    assert status == flow.OPTIMAL
    used_arcs = np.flatnonzero(flow.flows(np.arange(panels * sms)))
    home = np.empty(panels, dtype=np.int64)
    home[tails[used_arcs]] = heads[used_arcs]
    return int(flow.optimal_cost()), home


def place_fast(slot_of: IntArray, topology: Topology, starts: int = 4) -> Placement:
    """The heuristic: swaps from a few starts, one assignment problem each; ``slot_of`` is from `deal` or `block_deal`.

    The first start is slot p at SM p, the others are random.
    """
    problem = _Problem(slot_of, topology)
    random = np.random.default_rng(0)
    result: tuple[int, IntArray, IntArray] | None = None
    for number in range(starts):
        start = np.arange(problem.sms) if number == 0 else random.permutation(problem.sms)
        place = problem.swapped(start)
        cost, home = problem.homes(place)
        if result is None or cost < result[0]:
            result = cost, place, home
    assert result is not None
    return _answer(problem, slot_of, topology, result, problem.simple_bound(), "swaps and an assignment problem")


def place_exact(slot_of: IntArray, topology: Topology) -> Placement:
    """The best placement, or a proved gap; InputError above eight SMs, for which there is `place_fast`."""
    if topology.sms > MAX_EXACT_SMS:
        raise InputError(f"placement: got {topology.sms} SMs, expected at most {MAX_EXACT_SMS}; use the heuristic.")
    fast = place_fast(slot_of, topology)
    problem = _Problem(slot_of, topology)
    places = np.array(list(permutations(range(problem.sms))), dtype=np.int64)
    bounds = np.concatenate(
        [
            np.einsum("pg,ngh->nph", problem.users, problem.hops[chunk]).min(axis=2).sum(axis=1)
            for chunk in np.array_split(places, max(1, len(places) // 2000))
        ]
    )
    order = np.argsort(bounds, kind="stable")
    best = (fast.cost, fast.sm_of_slot, np.concatenate([fast.row_home, fast.col_home]))
    lower = fast.cost
    for count, index in enumerate(order):
        if bounds[index] >= best[0]:
            break
        if count == _MAX_ASSIGNMENTS:
            lower = int(bounds[index])
            break
        cost, home = problem.homes(places[index])
        if cost < best[0]:
            best = cost, places[index], home
    lower = min(lower, best[0])
    method = "all placements of slots, assignment problems in ascending order"
    return _answer(problem, slot_of, topology, best, lower, method)


def _answer(
    problem: _Problem,
    slot_of: IntArray,
    topology: Topology,
    best: tuple[int, IntArray, IntArray],
    lower: int,
    method: str,
) -> Placement:
    cost, place, home = best
    return Placement(topology, slot_of, place, home[: problem.rows], home[problem.rows :], cost, lower, method)
