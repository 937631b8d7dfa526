"""Opponents of the checker in a memory of bytes: no claims contradict each other, nor the optimum of a tiny game.

Every seed is a parameter of its test. The slow suite runs many more.
"""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any

import pytest

from pebble.certificate.statement import read_workload
from pebble.certificate.widths import Widths
from tests.bounds.wide_game import chain_game, product_game
from tests.certificate.strongest_bytes import lower_in_bytes, lower_proofs, some_widths, upper_in_bytes
from tests.certificate.test_adversary_workloads import medium

SEEDS = [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 160))]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", ["gemm", "ffn", "attention"])
def test_no_two_claims_contradict_each_other(family: str, seed: int) -> None:
    """The cheapest of schedules at random against the strongest bounds, in the room of the schedule."""
    rnd = random.Random(f"{family} {seed}")
    told = medium(rnd, family)
    workload = read_workload(told, "workload")
    widths, met = some_widths(workload, rnd), 0
    uppers = [found for _ in range(80) if (found := upper_in_bytes(workload, widths, rnd)) is not None]
    proofs = lower_proofs(workload, widths, rnd)
    for room, moved in sorted(uppers, key=lambda found: (found[0] * found[1] ** 2, found))[:6]:
        lower = lower_in_bytes(told, workload, widths, room, proofs)
        if lower is not None:
            # attention: one of equal groups
            assert lower["bytes"] <= moved, (room, widths, lower)
            met += 1
    assert met or not uppers


@lru_cache
def optimum(told: tuple[tuple[str, Any], ...], widths: Widths, capacity: int) -> int | None:
    """Exact, of a tiny product or chain."""
    sizes = dict(told)
    w: Any = widths
    if sizes["family"] == "gemm":
        return product_game(sizes["m"], sizes["n"], sizes["k"], w, sizes["accumulate_into"]).least(capacity)
    return chain_game(*(sizes[x] for x in ("tokens", "d_model", "hidden", "d_out")), w).least(capacity)


def tiny(rnd: random.Random) -> dict[str, Any]:
    """A product or chain whose optimum is found in no time."""
    types = {"dtype": rnd.choice(["bf16", "fp32", "fp8"]), "out_dtype": rnd.choice(["bf16", "fp32", "fp8"])}
    if rnd.random() < 0.5:
        m, n, k = rnd.choice([(1, 1, 4), (1, 2, 2), (2, 2, 1), (2, 1, 3), (1, 2, 3), (2, 1, 2), (2, 2, 2)])
        added = rnd.random() < 0.3
        return {"family": "gemm", "m": m, "n": n, "k": k, "accumulate_into": added, **types}
    sides = rnd.choice([(1, 1, 2, 1), (1, 2, 2, 1), (1, 1, 2, 2), (1, 2, 1, 2), (2, 1, 1, 2), (2, 2, 1, 1)])
    return {"family": "ffn", **dict(zip(("tokens", "d_model", "hidden", "d_out"), sides)), "gated": False, **types}


@pytest.mark.parametrize("seed", SEEDS)
def test_no_claim_is_beyond_the_optimum(seed: int) -> None:
    rnd = random.Random(seed)
    met = 0
    for _ in range(4):
        told = tiny(rnd)
        workload = read_workload(told, "workload")
        widths = some_widths(workload, rnd)
        cheapest: dict[int, int] = {}
        for _ in range(40):
            found = upper_in_bytes(workload, widths, rnd)
            if found is not None:
                cheapest[found[0]] = min(found[1], cheapest.get(*found))
        proofs = lower_proofs(workload, widths, rnd)
        for room, moved in sorted(cheapest.items())[:3]:
            least = optimum(tuple(told.items()), widths, room)
            assert least is not None and moved >= least, (told, widths, room, moved, least)
            lower = lower_in_bytes(told, workload, widths, room, proofs)
            assert lower is None or lower["bytes"] <= least, (told, widths, room, least, lower)
            met += lower is not None
    assert met
