"""Tiles on several SMs: weighted values against brute force, schedules in common use by the referee, and timelines."""

from __future__ import annotations

import random
import re
from fractions import Fraction

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pebble
from pebble.cdag.attention import attention_dag
from pebble.cdag.products import ffn_dag, gemm_dag
from pebble.errors import InputError
from pebble.game import BufferModel, Game, Pebbling, minimum_capacity, moves_cost, replay
from pebble.models.machine import load_machine
from pebble.models.rates import copy_cost
from pebble.reports.on_sms import common_baselines, timeline
from pebble.solvers import solve
from pebble.solvers.lower import bound_for_several
from pebble.solvers.result import Problem
from pebble.solvers.several.common import COLUMNS, PRODUCTS, ROWS, SEPARATE, common_schedules
from pebble.solvers.several.play import play
from tests.solvers import random_dags
from tests.solvers.brute_force_several import brute_force_several

QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}
LOCAL = BufferModel("sm-local", 2)
OMEGAS = [Fraction(0), Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(127, 50)]
MODELS = st.one_of(st.just(LOCAL), st.sampled_from(OMEGAS).map(lambda w: BufferModel("connected", 2, w)))


def weighed(dag: nx.DiGraph, seed: int, unit: int) -> nx.DiGraph:
    """The same with weights of a few kinds, all multiples of a unit."""
    rng = random.Random(seed)
    for _, data in dag.nodes(data=True):
        if "accumulator" not in data:
            data["weight"] = unit * rng.choice([1, 2, 3, 7])
    return dag


def read(dag: nx.DiGraph) -> Game | None:
    try:
        return Game.from_dag(dag)
    except InputError:  # a node that no output needs
        return None


WEIGHTED = st.tuples(
    st.one_of(random_dags.dags(5), random_dags.cell_dags()),
    st.integers(0, 999),
    st.sampled_from([1, 16384]),
    MODELS,
    st.integers(0, 3),
    st.booleans(),
)


def check_weights(case: tuple[nx.DiGraph, int, int, BufferModel, int, bool]) -> None:
    dag, seed, unit, buffers, extra, balanced = case
    weighed(dag, seed, unit)
    game = read(dag)
    if game is None or game.size > 6:
        return
    capacity = minimum_capacity(game) + extra * unit
    most = -(-len(game.tasks) // 2) if balanced else None
    optimum = brute_force_several(dag, capacity, 2, buffers.copy_cost, most)
    result = solve(game, capacity, solver="search", buffers=buffers, most_tasks_per_sm=most, time_limit=600)
    if optimum is None:
        assert result.status == "infeasible"
        return
    assert (result.status, result.lower_bound, result.upper_bound) == ("optimal", optimum, optimum)


@settings(max_examples=8, **QUIET)
@given(WEIGHTED)
def test_search_of_weighted_values_against_brute_force(case) -> None:
    check_weights(case)


@pytest.mark.slow
@settings(max_examples=400, **QUIET)
@given(WEIGHTED)
def test_search_of_weighted_values_against_brute_force_on_many(case) -> None:
    check_weights(case)


TILES = [
    ffn_dag(2, 2, 3, tile=(1, 1, 1), in_bytes=2, out_bytes=4),
    ffn_dag(3, 4, 6, gated=True, tile=(2, 3, 2), in_bytes=2, out_bytes=2),
    attention_dag(2, 4, 2, tile=(1, 1, 2), in_bytes=2, out_bytes=2),
    attention_dag(2, 3, 2, softmax="strict", heads=2, tile=(1, 1, 1)),
    gemm_dag(4, 4, 4, tile=(2, 2, 1)),
]


@pytest.mark.parametrize("dag", TILES)
@pytest.mark.parametrize(("sms", "omega"), [(2, None), (3, Fraction(1, 2)), (4, Fraction(3, 2))])
def test_schedules_in_daily_use_are_legal(dag: nx.DiGraph, sms: int, omega: Fraction | None) -> None:
    game = Game.from_dag(dag)
    buffers = BufferModel("sm-local", sms) if omega is None else BufferModel("connected", sms, omega)
    result = common_schedules(game, sms)
    linked = dag is not TILES[-1]
    assert {ROWS, COLUMNS} <= set(result) and ({SEPARATE, PRODUCTS} <= set(result)) == linked
    for extra in (0, 3):
        capacity = minimum_capacity(game) + extra
        for phases in result.values():
            moves = play(game, capacity, buffers, phases)
            replayed = replay(game, Pebbling(game.variant, capacity, moves, moves_cost(game, moves, buffers), buffers))
            assert sum(sm.computations for sm in replayed.per_sm) == len(game.tasks)
            check_timeline(game, moves, sms)
    for item in common_baselines(game, capacity, buffers):
        assert item.cost >= bound_for_several(Problem(game, capacity, 0, buffers)).cost


def check_timeline(game: Game, moves, sms: int) -> None:
    """What a line fetches is there by then, each SM does a task at most in it, and all moves are told."""
    lines = timeline(game, moves, sms)
    blue = {name for name, blue in zip(game.names, game.is_input, strict=True) if blue}
    held: list[set[str]] = [set() for _ in range(sms)]
    done: list[str] = []
    fields = {"load": 0, "copy": 0, "store": 0}
    for cells in lines:
        words = [cell.split("; ") if cell else [] for cell in cells]
        for sm, parts in enumerate(words):
            for part in parts:
                if part.startswith("load "):
                    assert set(part.split()[1:]) <= blue
                    held[sm] |= set(part.split()[1:])
                    fields["load"] += len(part.split()) - 1
        for sm, parts in enumerate(words):
            for part in parts:
                if match := re.fullmatch(r"copy from (\d+): (.*)", part):
                    assert set(match[2].split()) <= held[int(match[1])]
                    held[sm] |= set(match[2].split())
                    fields["copy"] += len(match[2].split())
        for sm, parts in enumerate(words):
            tasks = [part for part in parts if part in game.task_index]
            assert len(tasks) <= 1
            for name in tasks:
                task = game.tasks[game.task_index[name]]
                assert {game.names[x] for x in task.operands} <= held[sm]
                target = game.names[task.target]
                for other in held:
                    other.discard(target)
                held[sm].add(target)
                blue.discard(target)
                done.append(name)
        for sm, parts in enumerate(words):
            for part in parts:
                if part.startswith("store "):
                    assert part.removeprefix("store ") in held[sm]
                    blue.add(part.removeprefix("store "))
                    fields["store"] += 1
    assert sorted(done) == sorted(task.name for task in game.tasks)
    assert fields == {op: sum(move.op == op for move in moves) for op in fields}


@pytest.mark.parametrize(("omega", "copies"), [("measured", False), ("1/2", True)])
def test_tiles_of_a_product_on_two_sms(omega: str, copies: bool) -> None:
    """Each SM does half: 16 tiles of 16 KiB and 8 that are shared; at half the price of a load copies save four."""
    sizes = {"m": 256, "n": 256, "k": 256, "tile": "128x128x64"}
    result = pebble.solve("gemm", gpu="h100", buffers="connected", omega=omega, balanced=True, time_limit=600, **sizes)
    document = result.document()
    assert result.optimal and result.upper_bound == (458_752 if copies else 524_288)
    assert document["unit"] == "bytes" and document["capacity"] == 233_472 and document["per_sm"]["tasks"] == [8, 8]
    assert any("copy" in cell for line in document["timeline"] for cell in line) == copies
    assert ("measured_copy_price" in document) != copies
    least = document["common_schedules"][0]
    assert least["cost"] >= result.upper_bound and sum(least["tasks_per_sm"]) == 16
    local = pebble.solve("gemm", gpu="h100", buffers="sm-local", balanced=True, time_limit=600, **sizes)
    assert local.upper_bound == 524_288


def test_what_a_copy_costs_on_an_h100() -> None:
    """As the page says: more than two reads of L2, one of DRAM."""
    machine = load_machine("h100-sxm5-80gb")
    slow, dram = copy_cost(machine), copy_cost(machine, "dram")
    assert slow is not None and slow.omega > 2
    assert dram is not None and dram.omega == 1 and "reads of DRAM" in str(dram) and "dram" in dram.to_json()


def test_schedules_that_do_too_much_at_an_sm_say_so() -> None:
    game = Game.from_dag(ffn_dag(2, 2, 4, tile=(1, 1, 1)))
    half = -(-len(game.tasks) // 2)
    result = {item.name: item for item in common_baselines(game, minimum_capacity(game) + 2, LOCAL, half)}
    assert result[ROWS].fits and not result[PRODUCTS].fits and max(result[PRODUCTS].tasks) > half
    assert not result[PRODUCTS].to_json()["within_limit"]


def test_a_tile_of_a_network_is_that_of_a_kernel() -> None:
    four = ffn_dag(256, 128, 512, tile=(128, 64, 128, 128), in_bytes=2, out_bytes=2)
    three = ffn_dag(256, 128, 512, tile=(128, 128, 64), in_bytes=2, out_bytes=2)
    assert nx.utils.graphs_equal(four, three)


def test_what_is_refused() -> None:
    sizes = {"m": 256, "n": 256, "k": 256, "tile": "128x128x64"}
    with pytest.raises(InputError, match="dsmem_bandwidth"):
        pebble.solve("gemm", gpu="a100", buffers="connected", omega="measured", **sizes)
    with pytest.raises(InputError, match="expected a machine with it"):
        pebble.solve("gemm", 99, buffers="connected", omega="measured", **sizes)
    with pytest.raises(InputError, match="exactly one"):
        pebble.solve("gemm", 99, gpu="h100", **sizes)
    with pytest.raises(InputError, match="capacity missing"):
        pebble.solve("gemm", **sizes)
    with pytest.raises(InputError, match=r"measured.* with it"):
        pebble.solve("gemm", gpu="h100", level="dram", buffers="connected", **sizes)
    with pytest.raises(InputError, match="balanced: expected buffers"):
        pebble.solve("gemm", gpu="h100", balanced=True, **sizes)
    with pytest.raises(InputError, match="one of them"):
        pebble.solve("gemm", gpu="h100", buffers="sm-local", balanced=True, tasks_per_sm=9, **sizes)
