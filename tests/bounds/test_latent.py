"""Latent attention: bounds against exact optima and played schedules, and what the checker counts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pebble
from pebble.cdag.attention import latent_dag
from pebble.certificate import RefusedError, check
from pebble.certificate.schedules import Memory, traffic_of
from pebble.certificate.statement import read_workload
from pebble.errors import InfeasibleError, InputError
from pebble.families import lower_bound
from pebble.families.latent import LATENT
from pebble.game import Game, Move, Pebbling, Variant, replay
from pebble.proof.certificate import bound_certificate, workload_statement
from pebble.reports.capacity import known_of
from pebble.schedules.explicit.latent import (
    LatentSchedule,
    best_latent_schedule,
    floor_sum,
    keys_seen,
    with_separate_operands,
)
from pebble.solvers import solve
from pebble.workloads import LatentAttention
from pebble.workloads.widths import FastMemory, Widths
from tests.brute_force import brute_force
from tests.rooms import in_values

side = st.integers(1, 7)
SMALL = [
    LatentAttention(1, 2, 1, 1),
    LatentAttention(1, 2, 2, 1),
    LatentAttention(1, 3, 1, 1),
    LatentAttention(2, 2, 1, 1),
    LatentAttention(1, 2, 1, 1, heads=2),
    LatentAttention(1, 1, 1, 1, heads=3),
    LatentAttention(1, 3, 2, 1),
    LatentAttention(2, 2, 1, 1, causal=True),
    LatentAttention(2, 2, 2, 1, heads=1, causal=True),
    LatentAttention(1, 1, 2, 1, batch=2),
]


def dag_of(w: LatentAttention) -> object:
    return latent_dag(w.queries, w.keys, w.latent, w.rope, heads=w.heads, batch=w.batch, causal=w.causal)


@pytest.mark.parametrize("workload", SMALL, ids=lambda w: w.label)
@pytest.mark.parametrize("capacity", [4, 5, 6, 8, 12])
def test_below_the_optimum_and_a_schedule_above_it(workload: LatentAttention, capacity: int) -> None:
    result = solve(dag_of(workload), capacity, time_limit=3600)
    if result.status == "infeasible":
        return
    assert result.status == "optimal" and result.upper_bound is not None
    assert lower_bound(workload, capacity).elements <= result.upper_bound
    assert lower_bound(workload, capacity, recompute=True).elements <= result.upper_bound
    try:
        schedule = in_values(best_latent_schedule, workload, capacity)
    except InfeasibleError:
        return
    assert schedule.elements >= result.upper_bound


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (1, 2, 1, 1)])
def test_below_brute_force(shape: tuple[int, int, int, int]) -> None:
    for capacity in (3, 4):
        optimum = brute_force(latent_dag(*shape), capacity, "in-place")
        if optimum is not None:
            assert lower_bound(LatentAttention(*shape), capacity).elements <= optimum


def test_one_latent_moves_less_than_keys_and_values_apart() -> None:
    decode = LatentAttention(1, 32768, heads=128)
    assert decode.compulsory_bytes == 38_027_264
    assert lower_bound(decode, 10**7).bytes == 38_027_264
    assert with_separate_operands(decode).compulsory_bytes == 71_581_696
    assert in_values(best_latent_schedule, decode, 10**7).bytes == 38_027_264


def moves_of(schedule: LatentSchedule) -> list[Move]:
    """The schedule move by move, as the module says it runs, from its rows alone."""
    w, moves = schedule.workload, list[Move]()
    both, rope = w.latent + w.rope, range(w.latent, w.latent + w.rope)

    def do(op: str, *names: str) -> None:
        moves.extend(Move(op, name) for name in names)

    for b in range(w.batch):
        here = f"{b}," if w.batch > 1 else ""
        rows = [
            (f"{here}{h},{i}" if w.heads > 1 else f"{here}{i}", i) for i in range(w.queries) for h in range(w.heads)
        ]

        def latent(j: int, t: int, here: str = here) -> str:
            return f"KV[{here}{j},{t}]"

        def sees(i: int) -> int:
            return w.keys - w.queries + i + 1 if w.causal else w.keys

        def used(row: str, j: int, latent=latent) -> None:
            do("compute", f"r[{row}]+=S[{row},{j}]")
            for t in range(w.latent):
                do("compute", f"O[{row},{t}]+=S[{row},{j}]*{latent(j, t)}")
            do("delete", f"S[{row},{j}]")

        def done(row: str, t: int) -> None:
            do("compute", f"O[{row},{t}]/=r[{row}]")
            do("store", f"O[{row},{t}]")
            do("delete", f"O[{row},{t}]")

        if not schedule.rows:
            do("load", *(latent(j, t) for j in range(w.keys) for t in range(both)))
            for row, i in rows:
                for t in range(both):
                    do("load", f"Q[{row},{t}]")
                    do("compute", *(f"S[{row},{j}]+=Q[{row},{t}]*{latent(j, t)}" for j in range(sees(i))))
                    do("delete", f"Q[{row},{t}]")
                do("compute", *(f"r[{row}]+=S[{row},{j}]" for j in range(sees(i))))
                for t in range(w.latent):
                    do("compute", *(f"O[{row},{t}]+=S[{row},{j}]*{latent(j, t)}" for j in range(sees(i))))
                    done(row, t)
                do("delete", *(f"S[{row},{j}]" for j in range(sees(i))), f"r[{row}]")
            do("delete", *(latent(j, t) for j in range(w.keys) for t in range(both)))
            continue
        for start in range(0, len(rows), schedule.rows):
            panel = rows[start : start + schedule.rows]
            do("load", *(f"Q[{row},{t}]" for row, _ in panel for t in range(both)))
            for j in range(sees(panel[-1][1])):
                there = [row for row, i in panel if j < sees(i)]
                for t in (*rope, *range(w.latent)):
                    do("load", latent(j, t))
                    do("compute", *(f"S[{row},{j}]+=Q[{row},{t}]*{latent(j, t)}" for row in there))
                    do("delete", *([latent(j, t)] if t in rope else []))
                for row in there:
                    used(row, j)
                do("delete", *(latent(j, t) for t in range(w.latent)))
            for row, _ in panel:
                for t in range(w.latent):
                    done(row, t)
                do("delete", f"r[{row}]", *(f"Q[{row},{t}]" for t in range(both)))
    return moves


@settings(max_examples=50, deadline=None)
@given(side, side, side, side, st.integers(1, 3), st.integers(1, 2), st.booleans(), st.data())
def test_schedules_are_legal_and_move_what_they_say(
    queries: int, keys: int, latent: int, rope: int, heads: int, batch: int, causal: bool, data: st.DataObject
) -> None:
    assume(not causal or keys >= queries)
    w = LatentAttention(queries, keys, latent, rope, heads, batch, causal)
    rows = data.draw(st.integers(0, w.stacked_queries))
    schedule = LatentSchedule(w, FastMemory.of_values(10**9, w), rows)
    game = Game.from_dag(dag_of(w), Variant.IN_PLACE)
    pebbling = Pebbling(Variant.IN_PLACE, schedule.peak_elements, tuple(moves_of(schedule)), schedule.elements)
    counted = replay(game, pebbling)
    assert (counted.loads, counted.stores) == (sum(schedule.loads.values()), sum(schedule.stores.values()))
    assert lower_bound(w, max(3, schedule.peak_elements)).elements <= schedule.elements
    kind = {"kind": "latent panels", "rows": rows} if rows else {"kind": "latents stay"}
    statement = read_workload(workload_statement(w), "workload")
    traffic = traffic_of(statement, Memory(10**9), kind, "schedule")
    assert (traffic.loads, traffic.stores, traffic.peak) == (schedule.loads, schedule.stores, schedule.peak_elements)


@settings(max_examples=50, deadline=None)
@given(side, side, side, side, st.integers(1, 4), st.booleans(), st.integers(3, 120))
def test_bounds_below_the_best_schedule_and_falling(
    queries: int, keys: int, latent: int, rope: int, heads: int, causal: bool, capacity: int
) -> None:
    assume(not causal or keys >= queries)
    w = LatentAttention(queries, keys, latent, rope, heads, causal=causal)
    bound = lower_bound(w, capacity)
    assert lower_bound(w, capacity + 1).elements <= bound.elements
    assert lower_bound(w, capacity, recompute=True).elements <= bound.elements
    assert bound.elements <= lower_bound(with_separate_operands(w), capacity).elements  # a schedule of that is one of w
    batch = LatentAttention(queries, keys, latent, rope, heads, 3, causal)
    assert lower_bound(batch, capacity).elements == 3 * bound.elements
    try:
        assert in_values(best_latent_schedule, w, capacity).elements >= bound.elements
    except InfeasibleError:
        assert causal


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(1, 30), st.integers(1, 6), st.integers(1, 99))
def test_keys_that_panels_see(queries: int, more: int, heads: int, rows: int) -> None:
    w = LatentAttention(queries, queries + more, 1, 1, heads, causal=True)
    last = [min(start + rows, w.stacked_queries) - 1 for start in range(0, w.stacked_queries, rows)]
    assert keys_seen(w, rows) == sum(more + row // heads + 1 for row in last)
    assert floor_sum(rows, queries, more, heads) == sum((queries * i + more) // heads for i in range(rows))


def certificate(w: LatentAttention, capacity: int) -> dict[str, Any]:
    return bound_certificate(w, known_of(w, capacity, FastMemory.of_values(capacity, w)))


@pytest.mark.parametrize("theorem", ["passes", "priced lines", "recompute, cut by second products", "tied segments"])
def test_theorems_about_keys_and_values_apart_are_refused(theorem: str) -> None:
    w = LatentAttention(40, 96, 24, 8, heads=4)
    document = certificate(w, 2000)
    document["claims"][0]["proof"] = {"theorem": theorem}
    with pytest.raises(RefusedError):
        check(document)
    document = certificate(w, 2000)
    document["claims"][0]["game"]["kernels"] = "separate"
    with pytest.raises(RefusedError):
        check(document)


@pytest.mark.parametrize("theorem", ["segments", "lines", "passes", "priced lines"])
def test_theorems_in_bytes_are_refused(theorem: str) -> None:
    w = LatentAttention(40, 96, 24, 8, heads=4)
    document = certificate(w, 2000)
    kernel = {"theorem": theorem, "form": "latent", "segments": 1, "shares": [], "mu": "0", "rho": "1", "minima": []}
    kernel |= {"unit_bytes": 2, "work_weights": [1, 1], "hidden_cell_bytes": 2, "output_cell_bytes": 2, "cuttings": []}
    claim = {
        "claim": "lower bound in bytes", "game": {"recompute": "forbidden", "kernels": "fused"},
        "widths_bytes": {"partial_hidden": 4, "partial_output": 4}, "capacity_bytes": 4000, "bytes": w.compulsory_bytes,
        "proof": {"theorem": "segments in bytes", "kernels": [{"theorem": "compulsory"}]},
    }  # fmt: skip
    assert check(document | {"claims": [claim]})  # every operand moves, in bytes as in values
    with pytest.raises(RefusedError):
        check(document | {"claims": [claim | {"proof": {"theorem": "segments in bytes", "kernels": [kernel]}}]})


@pytest.mark.parametrize("causal", [False, True])
def test_schedules_in_bytes_are_what_the_checker_counts(causal: bool) -> None:
    w = LatentAttention(33, 70, 12, 5, heads=3, causal=causal)
    statement = read_workload(workload_statement(w), "workload")
    widths = Widths.of(w, 4)
    for size in (300, 900, 2_000, 5_000, 20_000):
        schedule = best_latent_schedule(w, FastMemory(size, widths))
        if schedule.separate is None:
            kind = {"kind": "latent panels", "rows": schedule.rows} if schedule.rows else {"kind": "latents stay"}
            traffic = traffic_of(statement, Memory(size, statement_widths(widths)), kind, "schedule")
            assert traffic.peak <= size and traffic.loads == schedule.loads
            assert schedule.bytes == 2 * traffic.elements
        assert lower_bound(w, size // 2).bytes <= schedule.bytes


def statement_widths(widths: Widths) -> object:
    from pebble.certificate.statement import ClaimedWidths as Told

    return Told(widths.read, widths.hidden, widths.partial, widths.written)


def test_what_is_wrong_is_one_sentence() -> None:
    with pytest.raises(InputError, match="at least as many keys as queries"):
        LatentAttention(8, 4, causal=True)
    with pytest.raises(InputError, match="loads keys and values at different times"):
        LATENT.parse_schedule("fa1")
    with pytest.raises(InputError, match="only these are bounded for several SMs"):
        pebble.bound(LatentAttention(4, 4), cache="1MiB", buffers="sm-local", sms=4)
