"""The game with several memories: its solvers against brute force and each other, and what holds between the models."""

from __future__ import annotations

import dataclasses
import random
from fractions import Fraction

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pebble.bounds.splits import cheapest_split
from pebble.cdag.attention import attention_dag
from pebble.cdag.products import ffn_dag, gemm_dag
from pebble.errors import IllegalMoveError, InfeasibleError, InputError
from pebble.game import BufferModel, Game, minimum_capacity, replay
from pebble.solvers import SolveResult, solve
from pebble.solvers.lower import bound_for_several
from pebble.solvers.result import Incumbent, Problem
from pebble.solvers.several.common import product_sms
from pebble.solvers.several.fewer import FewerMemories, fewer_memories
from pebble.solvers.several.symmetry import automorphisms
from tests.solvers import random_dags
from tests.solvers.brute_force_several import brute_force_several
from tests.solvers.stopping import ANY, at_most

# above 1 a far read is dearer than one of slow memory
OMEGAS = st.sampled_from([Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(5, 2)])
MODELS = st.one_of(st.just(BufferModel("sm-local", 2)), OMEGAS.map(lambda w: BufferModel("connected", 2, w)))


def solved(game, capacity: int, buffers: BufferModel, variant: str | None = None, **options) -> SolveResult:
    return solve(game, capacity, variant, buffers=buffers, **options)


def bound(game: Game, capacity: int, buffers: BufferModel, most: int | None = None) -> Fraction:
    return bound_for_several(Problem(game, capacity, 0, buffers, most)).cost


QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}


def read(dag: nx.DiGraph, extra: int) -> tuple[Game, int] | None:
    try:
        game = Game.from_dag(dag)
    except InputError:  # a node that no output needs
        return None
    return game, minimum_capacity(game) + extra


def agree(game: Game, capacity: int, buffers: BufferModel, solvers=("cpsat", "search"), limit: float = 300) -> Fraction:
    """What all solvers prove, each replayed and above the simple bound."""
    results = [solved(game, capacity, buffers, solver=name, time_limit=limit) for name in solvers]
    for result in results:
        assert result.status == "optimal", (result.solver, result.stop_reason)
        assert replay(game, result.pebbling).cost == result.upper_bound
    assert len({r.upper_bound for r in results}) == 1, [(r.solver, r.upper_bound) for r in results]
    assert bound(game, capacity, buffers) <= results[0].upper_bound
    return results[0].upper_bound


@settings(max_examples=12, **QUIET)
@given(st.tuples(random_dags.dags(5), MODELS, st.integers(0, 1)))
def test_solvers_against_brute_force(case) -> None:
    dag, buffers, extra = case
    result = read(dag, extra)
    if result is None:
        return
    assert agree(*result, buffers) == brute_force_several(dag, result[1], 2, buffers.copy_cost)


@pytest.mark.slow
@settings(max_examples=150, **QUIET)
@given(st.tuples(st.booleans().flatmap(lambda w: random_dags.dags(5, w)), MODELS, st.integers(0, 2)))
def test_solvers_against_brute_force_on_many(case) -> None:
    dag, buffers, extra = case
    best = read(dag, extra)
    if best is None:
        return
    game, capacity = best
    optimum = brute_force_several(dag, capacity, 2, buffers.copy_cost)
    for solver in ("cpsat", "milp", "search"):
        result = solved(game, capacity, buffers, solver=solver)
        assert result.lower_bound <= optimum <= result.upper_bound
        if set(game.weights) == {1}:
            assert result.status == "optimal"


LIMITED = st.tuples(
    st.one_of(st.booleans().flatmap(lambda w: random_dags.dags(6, w)), st.booleans().flatmap(random_dags.cell_dags)),
    MODELS,
    st.integers(0, 2),
    st.booleans(),
)


def check_search(dag: nx.DiGraph, buffers: BufferModel, extra: int, balanced: bool) -> None:
    """The search alone against the literal game, with any split or the tasks shared evenly."""
    best = read(dag, extra)
    if best is None or best[0].size > 7:
        return
    game, capacity = best
    most = -(-len(game.tasks) // 2) if balanced else None
    optimum = brute_force_several(dag, capacity, 2, buffers.copy_cost, most)
    result = solved(game, capacity, buffers, solver="search", most_tasks_per_sm=most, time_limit=3600)
    if optimum is None:
        assert result.status == "infeasible"
        return
    assert (result.status, result.lower_bound, result.upper_bound) == ("optimal", optimum, optimum)
    replayed = replay(game, result.pebbling)
    assert most is None or max(sm.computations for sm in replayed.per_sm) <= most


@settings(max_examples=8, **QUIET)
@given(LIMITED)
def test_search_against_brute_force(case) -> None:
    check_search(*case)


@pytest.mark.slow
@settings(max_examples=400, **QUIET)
@given(LIMITED)
def test_search_against_brute_force_on_many(case) -> None:
    check_search(*case)


def check_placed(dag: nx.DiGraph, buffers: BufferModel, extra: int, balanced: bool, seed: int, solvers) -> None:
    """Solvers against the literal game where some tasks have their SM."""
    best = read(dag, extra)
    if best is None or best[0].size > 6:
        return
    rng = random.Random(seed)
    game = dataclasses.replace(best[0], allowed=tuple(rng.choice((1, 2, 3)) for _ in best[0].tasks))
    most = -(-len(game.tasks) // 2) if balanced else None
    optimum = brute_force_several(
        dag, best[1], 2, buffers.copy_cost, most, lambda task, sm: game.may_do(game.task_index[task], sm)
    )
    for name in solvers:
        try:
            result = solved(game, best[1], buffers, solver=name, most_tasks_per_sm=most, time_limit=3600)
        except InputError:  # an SM would have to do more than its share
            assert optimum is None
            continue
        if optimum is None:
            assert result.status == "infeasible"
            continue
        assert result.lower_bound <= optimum <= result.upper_bound
        if name == "search" or set(game.weights) == {1}:
            assert result.status == "optimal", (name, result, game.allowed, buffers)
        assert replay(game, result.pebbling).cost == result.upper_bound


@settings(max_examples=12, **QUIET)
@given(LIMITED, st.integers(0, 99))
def test_tasks_on_their_sms_against_brute_force(case, seed: int) -> None:
    check_placed(*case, seed, ("search",))


@pytest.mark.slow
@settings(max_examples=200, **QUIET)
@given(LIMITED, st.integers(0, 10**6))
def test_tasks_on_their_sms_against_brute_force_on_many(case, seed: int) -> None:
    check_placed(*case, seed, ("search", "cpsat", "milp"))


# capacity, omega or None for sm-local, optimum where each product of ffn 2x2x2 has its SM
SPLIT = ((3, None, 34), (4, None, 28), (5, None, 26), (6, None, 24), (4, "1/4", 19), (5, "1/4", "71/4"), (6, "1/2", 18))


@pytest.mark.parametrize(
    ("capacity", "omega", "optimum"),
    [pytest.param(*row, marks=pytest.mark.slow if row[:2] in ((5, None), (6, None)) else ()) for row in SPLIT],
)
def test_optima_where_each_product_has_its_sm(capacity: int, omega: str | None, optimum: object) -> None:
    buffers = BufferModel("sm-local", 2) if omega is None else BufferModel("connected", 2, Fraction(omega))
    game = Game.from_dag(ffn_dag(2, 2, 2))
    placed = dataclasses.replace(game, allowed=product_sms(game, 1, 1))
    result = solved(placed, capacity, buffers, solver="search", time_limit=600)
    assert (result.status, result.upper_bound) == ("optimal", Fraction(str(optimum)))
    assert result.upper_bound >= solved(game, capacity, buffers, solver="search", time_limit=600).upper_bound


def test_programs_prove_what_the_search_proves_of_products_on_their_sms() -> None:
    for dag, first, second in ((ffn_dag(1, 2, 1), 1, 1), (ffn_dag(2, 1, 1), 2, 1), (attention_dag(1, 2, 1), 1, 1)):
        game = Game.from_dag(dag)
        placed = dataclasses.replace(game, allowed=product_sms(game, first, second))
        for kind in ("sm-local", "connected"):
            buffers = BufferModel(kind, first + second, *([Fraction(1, 2)] if kind == "connected" else []))
            solvers = ("search", "cpsat", "milp") if first + second == 2 else ("search", "cpsat")
            agree(placed, minimum_capacity(game), buffers, solvers)


def test_the_referee_refuses_a_task_elsewhere() -> None:
    dag = ffn_dag(1, 1, 1)
    game = Game.from_dag(dag)
    placed = dataclasses.replace(game, allowed=product_sms(game, 1, 1))
    result = solved(game, 3, BufferModel("sm-local", 2), solver="heuristic")
    with pytest.raises(IllegalMoveError, match="may not do it") as error:
        replay(placed, result.pebbling)
    assert error.value.rule == "not-allowed"
    with pytest.raises(InputError, match="not those of two products in a row"):
        product_sms(Game.from_dag(gemm_dag(2, 2, 2)), 1, 1)
    with pytest.raises(InputError, match="no memory may do"):
        dataclasses.replace(game, allowed=tuple(0 for _ in game.tasks))


# capacity, omega or None for sm-local, optimum with any split, with the tasks shared evenly
FFN = ((4, None, 24, 24), (4, "1/4", 18, 18), (4, "1/2", 20, 20), (3, "1/4", "45/2", None), (3, None, 33, None))
ATTENTION = ((4, None, 24, None), (4, "1/4", 18, None), (5, "1/4", "71/4", None))


@pytest.mark.parametrize(
    ("dag", "capacity", "omega", "free", "even"),
    [(ffn_dag(2, 2, 2), *row) for row in FFN] + [(attention_dag(2, 2, 2), *row) for row in ATTENTION],
)
def test_optima_of_chains(dag: nx.DiGraph, capacity: int, omega: str | None, free: object, even: object) -> None:
    """Of a feed-forward network of 2 x 2 x 2 and of attention of 2 queries, 2 keys, head dimension 2, on two SMs."""
    buffers = BufferModel("sm-local", 2) if omega is None else BufferModel("connected", 2, Fraction(omega))
    game = Game.from_dag(dag)
    for most, known in ((None, free), (len(game.tasks) // 2, even)):
        if known is not None:
            result = solved(game, capacity, buffers, solver="search", most_tasks_per_sm=most, time_limit=600)
            assert (result.status, result.upper_bound) == ("optimal", Fraction(str(known)))


def test_a_value_is_pushed_from_an_sm_that_is_not_full() -> None:
    """14 is the optimum; pushes from full memories alone reach 14.25."""
    buffers = BufferModel("connected", 2, Fraction(1, 4))
    assert solved(gemm_dag(2, 2, 2), 3, buffers, solver="search").upper_bound == 14


def test_automorphisms_are_a_group_that_keeps_the_game() -> None:
    game = Game.from_dag(ffn_dag(2, 2, 2))
    task_maps, item_maps = automorphisms(game)
    assert len(task_maps) == 16 and len(set(item_maps)) == 16
    every = set(item_maps)
    for tasks, items in zip(task_maps, item_maps, strict=True):
        assert {tuple(items[x] for x in other) for other in item_maps} == every
        for t, task in enumerate(game.tasks):
            image = game.tasks[tasks[t]]
            assert image.target == items[task.target]
            assert image.operands == tuple(sorted(items[o] for o in task.operands))


def tangled(seed: int, most: int) -> nx.DiGraph:
    """A random DAG in which little room means spills: two or three inputs, all else with two or three operands."""
    rng = random.Random(seed)
    inputs, size = rng.randint(2, 3), rng.randint(6, most)
    dag = nx.DiGraph()
    dag.add_nodes_from(f"v{i}" for i in range(size))
    for v in range(inputs, size):
        dag.add_edges_from((f"v{u}", f"v{v}") for u in rng.sample(range(v), min(v, rng.choice([2, 2, 3]))))
    return dag


def check_tangled(seed: int, most: int, sms: int, limit: float) -> None:
    best = read(tangled(seed, most), seed % 2)
    if best is None:
        return
    omega = Fraction(seed % 3, 2)
    for buffers in (BufferModel("sm-local", sms), BufferModel("connected", sms, omega)):
        exact = solved(*best, buffers, solver="search", time_limit=limit)
        program = solved(*best, buffers, solver="cpsat", time_limit=limit)
        assert bound(*best, buffers) <= exact.upper_bound
        if exact.status == "optimal":
            assert program.lower_bound <= exact.upper_bound <= program.upper_bound
        if sms == 2:
            assert exact.status == program.status == "optimal"
        for result in (exact, program):
            assert replay(best[0], result.pebbling).cost == result.upper_bound


@pytest.mark.parametrize("seed", range(10))
def test_solvers_agree(seed: int) -> None:
    check_tangled(seed, 7, 2, 300)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 180))
def test_solvers_agree_on_larger(seed: int) -> None:
    check_tangled(seed, 9, 2, 300)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 220))
def test_solvers_agree_on_three_sms(seed: int) -> None:
    check_tangled(seed, 7, 3, 30)


@pytest.mark.slow
@settings(max_examples=60, **QUIET)
@given(st.tuples(st.one_of(random_dags.dags(7), random_dags.cell_dags()), MODELS, st.integers(0, 1)))
def test_solvers_agree_on_many(case) -> None:
    dag, buffers, extra = case
    result = read(dag, extra)
    if result is not None:
        agree(*result, buffers, ("cpsat", "milp", "search"), 60)


@pytest.mark.parametrize("seed", [3, 5, 8, 11, 13, 17])
def test_relations_between_the_models(seed: int) -> None:
    result = read(tangled(seed, 7), seed % 2)
    if result is None:
        return
    game, capacity = result
    omegas = [Fraction(0), Fraction(1, 4), Fraction(1), Fraction(3, 2), Fraction(3)]
    connected = [agree(game, capacity, BufferModel("connected", 2, w), ("cpsat",)) for w in omegas]
    local = agree(game, capacity, BufferModel("sm-local", 2), ("cpsat",))
    pooled = solved(game, capacity, BufferModel("pooled", 2)).upper_bound
    assert pooled == solve(game, 2 * capacity).upper_bound
    assert pooled <= connected[0] and connected == sorted(connected) and connected[-1] <= local
    # a copy that costs as much as a store and a load is of no use
    assert connected[-1] == local
    assert local <= solve(game, capacity).upper_bound
    # at omega 0 only a workbench of the least capacity that works separates it from pooled
    bench = 2 * capacity - minimum_capacity(game)
    assert connected[0] <= solve(game, bench).upper_bound if bench >= minimum_capacity(game) else True


@settings(max_examples=10, **QUIET)
@given(random_dags.dags(7), st.integers(0, 1), st.sampled_from(["single", "sm-local", "pooled", "connected"]))
def test_one_sm_is_one_memory(dag, extra, kind) -> None:
    result = read(dag, extra)
    if result is not None:
        assert solved(*result, BufferModel(kind, 1)).upper_bound == solve(*result).upper_bound


def test_gemm_with_cells_against_brute_force() -> None:
    dag = gemm_dag(2, 1, 2)
    buffers = BufferModel("connected", 2, Fraction(1, 4))
    assert agree(Game.from_dag(dag), 3, buffers, ("cpsat", "milp", "search")) == Fraction(17, 2)


def test_what_goes_wrong_beside_is_raised() -> None:
    best = Incumbent(Problem(Game.from_dag(LINE), 3, 0, JOINED), 600)

    def wrong(fewer: Incumbent) -> str:
        assert fewer.memory_share == best.memory_share == 0.5
        raise InputError("made to fail")

    with pytest.raises(InputError, match="made to fail"):
        FewerMemories(best, wrong).wait()


def test_fewer_memories_are_enough_for_the_tasks() -> None:
    game = Game.from_dag(gemm_dag(2, 2, 2))
    eight = BufferModel("connected", 8, Fraction(1, 2), "cluster-4")
    for most, sms in ((None, 4), (1, None), (2, 4), (3, 4), (8, 4)):
        fewer = fewer_memories(Problem(game, 4, 0, eight, most))
        assert (fewer and fewer.buffers.memories) == sms
    single = fewer_memories(Problem(game, 4, 0, BufferModel("sm-local", 2), 8))
    assert single is not None and single.buffers == BufferModel("single") and single.most_tasks_per_sm is None
    assert fewer_memories(Problem(game, 4, 0, BufferModel("sm-local", 2), 4)) is None


def test_load_balance_is_kept() -> None:
    game = Game.from_dag(gemm_dag(2, 2, 1))
    for kind in ("sm-local", "connected"):
        buffers = BufferModel(kind, 2, Fraction(1, 2) if kind == "connected" else Fraction(0))
        result = solved(game, 5, buffers, most_tasks_per_sm=2)
        assert result.status == "optimal"
        assert [sm.computations for sm in replay(game, result.pebbling).per_sm] == [2, 2]
        assert result.lower_bound >= solved(game, 5, buffers).upper_bound
        assert bound(game, 5, buffers, 2) <= result.upper_bound


def test_three_sms_and_hops() -> None:
    game = Game.from_dag(nx.DiGraph([("a", "x"), ("b", "x"), ("a", "y"), ("b", "y"), ("x", "z"), ("y", "z")]))
    local = agree(game, 3, BufferModel("sm-local", 3))
    ring = agree(game, 3, BufferModel("connected", 3, Fraction(1, 4), "ring"))
    mesh = agree(game, 3, BufferModel("connected", 3, Fraction(1, 4), "mesh-1x3"))
    apart = agree(game, 3, BufferModel("connected", 3, Fraction(1, 4), "cluster-1"))
    assert ring <= mesh <= apart == local


LINE = nx.DiGraph([("a", "c"), ("b", "c")])
JOINED = BufferModel("connected", 2, Fraction(1, 4))


def test_what_is_refused() -> None:
    game = Game.from_dag(LINE)
    with pytest.raises(InfeasibleError, match="at least 3"):
        solved(game, 2, JOINED)
    with pytest.raises(InputError, match="one-shot or in-place"):
        solved(LINE, 3, JOINED, "recompute")
    with pytest.raises(InputError, match="did you mean search"):
        solved(game, 3, JOINED, solver="serch")
    with pytest.raises(InputError, match="expected at least 2"):
        solved(gemm_dag(2, 2, 1), 3, JOINED, most_tasks_per_sm=1)
    with pytest.raises(InputError, match="limit is"):
        solved(gemm_dag(6, 6, 6), 9, JOINED, solver="cpsat")
    assert solved(gemm_dag(6, 6, 6), 9, JOINED, **at_most(ANY)).upper_from.startswith("heuristic")


def test_cheapest_split_tries_all() -> None:
    value = [0, 5, 6, 6, 9]
    assert cheapest_split(value, 2, 4) == 9
    assert cheapest_split(value, 2, 2) == 12
    assert cheapest_split(value, 4, 1) == 20
    with pytest.raises(ValueError, match="hold"):
        cheapest_split(value, 2, 1)


def check_gemm(shape: tuple[int, int, int], capacity: int, buffers: BufferModel, limit: float) -> None:
    game = Game.from_dag(gemm_dag(*shape))
    results = [solved(game, capacity, buffers, solver=s, time_limit=limit) for s in ("cpsat", "search")]
    for low in results:
        for high in results:
            assert low.lower_bound <= high.upper_bound


@pytest.mark.parametrize("omega", [Fraction(1, 2), Fraction(1, 4)])
def test_solvers_agree_on_cells(omega: Fraction) -> None:
    check_gemm((2, 2, 1), 3, BufferModel("connected", 2, omega), 300)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(3, 2, 1), (2, 1, 3), (1, 2, 4)])
@pytest.mark.parametrize("omega", [Fraction(1, 2), Fraction(1, 4), Fraction(0)])
def test_solvers_agree_on_more_cells(shape: tuple[int, int, int], omega: Fraction) -> None:
    check_gemm(shape, 3, BufferModel("connected", 2, omega), 30)
    check_gemm(shape, 3, BufferModel("connected", 3, omega, "ring"), 30)


@pytest.mark.slow
def test_values_may_be_parked_ahead_of_a_window() -> None:
    """15.5 is the cost of a known pebbling, with half of the work at each SM: no bound may be above it."""
    game = Game.from_dag(gemm_dag(2, 2, 2))
    buffers = BufferModel("connected", 2, Fraction(1, 2))
    known = solved(game, 3, buffers, time_limit=40, most_tasks_per_sm=4)
    assert known.upper_bound <= Fraction(16)
    free = solved(game, 3, buffers, time_limit=40)
    assert free.lower_bound <= min(known.upper_bound, Fraction(31, 2))
