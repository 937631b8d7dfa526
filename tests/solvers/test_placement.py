"""Placement of work and panels: against every placement, between its two methods, and on a real grid."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from pebble.errors import InputError
from pebble.game.buffer_model import Topology
from pebble.plots.pebbling import placement_figure
from pebble.solvers.placement import Placement, block_deal, deal, place_exact, place_fast


def cost_of(found: Placement) -> int:
    """Panels times hops, tile by tile."""
    fetched = set()
    owner = found.owner
    for (i, j), sm in np.ndenumerate(owner):
        fetched |= {("A", i, int(found.row_home[i]), int(sm)), ("B", j, int(found.col_home[j]), int(sm))}
    return sum(found.topology.hops(home, sm) for _, _, home, sm in fetched)


def brute_force(slot_of: np.ndarray, topology: Topology) -> int:
    """Every place of the slots with every home of the panels."""
    rows, cols = slot_of.shape
    sms, capacity = topology.sms, -(-(rows + cols) // topology.sms)
    users = [set(line) for line in slot_of] + [set(line) for line in slot_of.T]
    best = 10**9
    for place in permutations(range(sms)):
        for homes in product(range(sms), repeat=rows + cols):
            if max(homes.count(s) for s in range(sms)) <= capacity:
                total = sum(topology.hops(h, place[g]) for h, u in zip(homes, users, strict=True) for g in u)
                best = min(best, total)
    return best


@pytest.mark.parametrize("net", ["ring", "mesh-1x3", "all-to-all"])
@pytest.mark.parametrize("seed", range(3))
def test_exact_is_the_least_of_all(net: str, seed: int) -> None:
    slots = np.random.default_rng(seed).integers(0, 3, (3, 3))
    result = place_exact(slots, Topology(net, 3))
    assert result.cost == result.lower_bound == brute_force(slots, Topology(net, 3))


@pytest.mark.parametrize("net", ["all-to-all", "ring", "mesh-2x4", "partitions-2"])
@pytest.mark.parametrize("schedule", ["blocks", "rows", "turns"])
def test_sixteen_by_sixteen_on_eight(net: str, schedule: str) -> None:
    order = [(i, j) for i in range(16) for j in range(16)]
    slots = block_deal(16, 16, 4, 2) if schedule == "blocks" else deal(order, 16, 16, 8, schedule == "turns")
    topology = Topology(net, 8)
    result, fast = place_exact(slots, topology), place_fast(slots, topology)
    assert result.gap <= 0.05
    for placement in (result, fast):
        assert placement.cost == cost_of(placement)
        assert sorted(placement.sm_of_slot) == list(range(8))
        homes = np.concatenate([placement.row_home, placement.col_home])
        assert np.bincount(homes).max() <= 4
        assert np.bincount(placement.owner.ravel()).tolist() == [32] * 8
    assert fast.lower_bound <= result.lower_bound <= result.cost <= fast.cost <= 1.05 * result.cost


def test_a_real_grid() -> None:
    result = place_fast(block_deal(64, 64, 11, 12), Topology("mesh-11x12", 132), starts=1)
    assert result.lower_bound <= result.cost == cost_of(result)
    # better than slots at random with panels held one after the other
    shuffled = np.random.default_rng(0).permutation(132)
    naive = Placement(result.topology, result.slot_of, shuffled, np.arange(64), np.arange(64, 128), 0, 0, "")
    assert result.cost < cost_of(naive)
    apart = place_fast(block_deal(4, 4, 2, 2), Topology("cluster-2", 4))
    assert apart.cost == place_exact(block_deal(4, 4, 2, 2), Topology("cluster-2", 4)).cost


def test_mistakes() -> None:
    with pytest.raises(InputError, match="at most 8"):
        place_exact(block_deal(9, 9, 3, 3), Topology("ring", 9))
    with pytest.raises(InputError, match="0 to 3"):
        place_fast(block_deal(9, 9, 3, 3), Topology("ring", 4))


def test_figure_is_drawn() -> None:
    result = place_exact(block_deal(8, 8, 2, 2), Topology("ring", 4))
    assert len(placement_figure([("blocks", result), ("again", result)]).axes) == 2
