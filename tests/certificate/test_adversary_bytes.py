"""Opponents of the checker in a memory of bytes: no claims contradict each other, nor the optimum of a tiny game.

Every seed is a parameter of its test. The slow suite runs many more.
"""

from __future__ import annotations

import json
import random
from functools import lru_cache
from typing import Any

import pytest

from pebble.bounds import in_bytes
from pebble.bounds.accounting import lower_bound
from pebble.certificate.statement import ClaimedWidths, read_workload
from pebble.errors import InfeasibleError, InputError
from pebble.families import FAMILIES, accounting, family_of
from pebble.reports.bound import bound_workload
from pebble.workloads.widths import FastMemory
from pebble.workloads.widths import Widths as Wide
from tests.bounds.weighted_game import chain_game, product_game
from tests.certificate.persuade import mutant, persuade
from tests.certificate.strongest_bytes import lower_in_bytes, lower_proofs, some_widths, upper_in_bytes
from tests.certificate.test_adversary_workloads import medium
from tests.certificate.test_played_bytes import played, turns

SEEDS = [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 125))]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", ["gemm", "ffn", "attention"])
def test_no_two_claims_contradict_each_other(family: str, seed: int) -> None:
    """The cheapest of schedules at random against the strongest bounds, in the room of the schedule."""
    rnd = random.Random(f"{family} {seed}")
    spec = medium(rnd, family)
    workload = read_workload(spec, "workload")
    widths, met = some_widths(workload, rnd), 0
    uppers = [result for _ in range(80) if (result := upper_in_bytes(workload, widths, rnd)) is not None]
    proofs = lower_proofs(workload, widths, rnd)
    for capacity, traffic in sorted(uppers, key=lambda found: (found[0] * found[1] ** 2, found))[:6]:
        lower = lower_in_bytes(spec, widths, capacity, proofs)
        if lower is not None:
            # attention: one of equal groups
            assert lower["bytes"] <= traffic, (capacity, widths, lower)
            met += 1
    assert met or not uppers


@lru_cache
def optimum(told: tuple[tuple[str, Any], ...], widths: ClaimedWidths, capacity: int) -> int | None:
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
    return {
        "family": "ffn",
        **dict(zip(("tokens", "d_model", "hidden", "d_out"), sides, strict=True)),
        "gated": False,
        **types,
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_no_claim_is_beyond_the_optimum(seed: int) -> None:
    rnd = random.Random(seed)
    met = 0
    for _ in range(4):
        spec = tiny(rnd)
        workload = read_workload(spec, "workload")
        widths = some_widths(workload, rnd)
        cheapest: dict[int, int] = {}
        for _ in range(40):
            result = upper_in_bytes(workload, widths, rnd)
            if result is not None:
                cheapest[result[0]] = min(result[1], cheapest.get(*result))
        proofs = lower_proofs(workload, widths, rnd)
        for capacity, traffic in sorted(cheapest.items())[:3]:
            least = optimum(tuple(spec.items()), widths, capacity)
            assert least is not None and traffic >= least, (spec, widths, capacity, traffic, least)
            lower = lower_in_bytes(spec, widths, capacity, proofs)
            assert lower is None or lower["bytes"] <= least, (spec, widths, capacity, least, lower)
            met += lower is not None
    assert met


def shape_of(told: dict[str, Any]) -> Any:
    """The workload of a statement."""
    sizes = dict(told)
    if "accumulate_into" in sizes:
        sizes["accumulate"] = sizes.pop("accumulate_into")
    return FAMILIES[sizes.pop("family")].shape(**sizes)


def false_claim(told: dict[str, Any], claim: dict[str, Any]) -> str | None:
    """Why an accepted claim in bytes cannot be true, if that is found.

    A schedule moves no less than is proved for its room, and what its play counts; no bound is above what is known.
    """
    shape, partial, capacity = shape_of(told), claim["widths_bytes"], claim["capacity_bytes"]
    widths = Wide(shape.in_bytes, partial["partial_hidden"], partial["partial_output"], shape.out_bytes)
    memory = FastMemory(capacity, widths)
    if claim["claim"] == "lower bound in bytes":
        try:
            known = family_of(shape).best_schedule(shape, memory)
        except (InfeasibleError, InputError):
            return None
        too_large = claim["game"]["kernels"] == "fused" and known is not None and known.bytes < claim["bytes"]
        return f"a schedule moves {known.bytes}" if too_large else None
    values = lower_bound(accounting(shape), max(3, capacity // shape.narrowest_bytes))
    if claim["bytes"] < in_bytes(accounting(shape), values, memory).bytes:
        return "it is below a bound"
    if not turns(claim["schedule"]):
        workload = read_workload(told, "workload")
        held, traffic = played(
            workload, ClaimedWidths(widths.read, widths.hidden, widths.partial, widths.written), claim["schedule"]
        )
        if (held > capacity, traffic) != (False, claim["bytes"]):
            return f"a play holds {held} and moves {traffic}"
    return None


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", ["gemm", "ffn", "attention"])
def test_no_false_claim_about_a_workload(family: str, seed: int) -> None:
    """Certificates with one to three changes anywhere, the rest made to agree as far as the checker tells."""
    rnd = random.Random(f"{family} {seed} mutants")
    shape = shape_of({**medium(rnd, family), "dtype": "bf16", "out_dtype": "bf16"})
    try:
        result = bound_workload(shape, cache=f"{rnd.randint(20, 900)}B", accumulators="fp32")
    except InfeasibleError:
        return
    original = json.loads(json.dumps(result.certificate()))
    claims = [item for item in original["claims"] if "in bytes" in item["claim"]]
    if not claims:  # counting values proves more, and no schedule is known
        return
    taken = 0
    for number in range(500):
        changed = mutant({**original, "claims": [rnd.choice(claims)]}, rnd)
        if persuade(changed) is None:
            continue
        taken += 1
        spec = changed["statement"]["workload"]
        if max(value for value in spec.values() if type(value) is int) > 60:
            continue  # too long a play
        for claim in changed["claims"]:
            if "in bytes" in claim["claim"] and claim["capacity_bytes"] < 10**6:
                why = false_claim(spec, claim)
                assert why is None, (number, why, spec, claim)
    assert taken > 15
