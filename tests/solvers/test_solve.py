"""One call for all solvers: what it returns, refuses and cross-checks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest

from pebble.bounds.task_windows import segment_bound
from pebble.errors import IllegalMoveError, InfeasibleError, InputError, SolverDisagreementError, UnknownNameError
from pebble.families import build_dag
from pebble.game import BufferModel, Game, Move, Pebbling, Variant, minimum_capacity, replay
from pebble.solvers import SOLVERS, Known, solve
from pebble.solvers.heuristic import belady, solve_heuristic
from pebble.solvers.plan import read_plan, write_moves
from pebble.solvers.registry import ENTRIES, RECOMPUTE, SEVERAL, SLIDING, WEIGHTS
from pebble.solvers.result import Incumbent, Problem
from tests.solvers.stopping import ANY, PATIENCE, at_most, until

ROOT = Path(__file__).resolve().parents[2]


def gemm(m: int, n: int, k: int, **more: object) -> nx.DiGraph:
    return build_dag("gemm", {"m": m, "n": n, "k": k, **more})


@pytest.mark.parametrize("solver", ["cpsat", "milp"])
@pytest.mark.parametrize(("capacity", "optimum"), [(3, 17), (4, 14), (5, 13), (6, 12)])
def test_gemm_2x2x2_in_place(solver, capacity, optimum):
    result = solve(gemm(2, 2, 2), capacity, solver=solver)
    assert (result.status, result.lower_bound, result.upper_bound) == ("optimal", optimum, optimum)
    assert replay(gemm(2, 2, 2), result.pebbling).cost == optimum
    assert result.variant is Variant.IN_PLACE
    assert result.stop_reason.startswith("proved optimal")
    assert result.proof


@pytest.mark.parametrize(("capacity", "optimum"), [(3, 17), (4, 14), (5, 13), (6, 12)])
def test_bare_cpsat_model_proves_gemm_2x2x2(capacity, optimum):
    """Without the segment bound, which alone closes these."""
    from pebble.solvers.cpsat import new_solver
    from pebble.solvers.cpsat_oneshot import OneShotModel

    game = Game.from_dag(gemm(2, 2, 2))
    model = OneShotModel(game, capacity, windows=False)
    model.model.add(model.objective >= game.compulsory)
    model.model.minimize(model.objective)
    solver = new_solver(0, PATIENCE)
    assert solver.status_name(solver.solve(model.model)) == "OPTIMAL"
    assert solver.objective_value == optimum


@pytest.mark.parametrize(("capacity", "optimum"), [(3, 25), (4, 20), (5, 19), (6, 17), (7, 16)])
def test_cpsat_gemm_2x2x3_in_place(capacity, optimum):
    result = solve(gemm(2, 2, 3), capacity, solver="cpsat", time_limit=3600)
    assert (result.status, result.upper_bound) == ("optimal", optimum)


def test_weights_scale_with_their_common_divisor():
    light = solve(gemm(2, 2, 2), 4, solver="cpsat")
    heavy = solve(gemm(2, 2, 2, dtype="fp32"), 16, solver="cpsat")
    assert heavy.upper_bound == 4 * light.upper_bound
    assert heavy.status == "optimal"


def test_transposed_gemm_costs_the_same():
    for capacity in (3, 4, 6):
        assert solve(gemm(1, 3, 2), capacity).upper_bound == solve(gemm(3, 1, 2), capacity).upper_bound


@pytest.mark.parametrize("capacity", [4, 5])
def test_in_place_costs_at_most_the_sliding_chain(capacity):
    in_place = solve(gemm(2, 2, 2), capacity, time_limit=PATIENCE)
    chain = solve(gemm(2, 2, 2, form="chain"), capacity, "one-shot-sliding", time_limit=PATIENCE)
    assert in_place.status == chain.status == "optimal"
    assert in_place.upper_bound <= chain.upper_bound


def test_recompute_beats_one_shot_on_the_diamond():
    diamond = build_dag("diamond", {"size": 3})
    once = solve(diamond, 3, "one-shot", "cpsat")
    again = solve(diamond, 3, "recompute", "cpsat")
    assert (once.upper_bound, once.status) == (6, "optimal")
    assert (again.upper_bound, again.status) == (5, "optimal")
    assert again.details["horizon_proof"]


def test_an_open_horizon_is_no_proof():
    result = solve(build_dag("diamond", {"size": 4}), 3, "recompute", "cpsat", **at_most(ANY))
    assert result.status == "feasible"
    assert result.lower_bound <= 11 <= result.upper_bound


def test_sliding_reloads_for_the_very_next_step():
    """A model without evict-and-reload between neighbours says 22."""
    result = solve(build_dag("fft", {"size": 4}), 2, "one-shot-sliding", "cpsat")
    assert (result.upper_bound, result.status) == (17, "optimal")


def test_solvers_agree():
    dag = build_dag("fft", {"size": 4})
    results = [solve(dag, 3, solver=name) for name in ("cpsat", "milp", "heuristic")]
    assert [r.status for r in results[:2]] == ["optimal", "optimal"]
    assert results[0].upper_bound == results[1].upper_bound == 14
    assert max(r.lower_bound for r in results) <= min(r.upper_bound for r in results)


def test_a_disagreement_names_both():
    best = Incumbent(Problem(Game.from_dag(gemm(2, 2, 2)), 4), 60)
    solve_heuristic(best)
    with pytest.raises(SolverDisagreementError, match=r"liar.*heuristic"):
        best.raise_lower(best.upper + 1, "liar")
    late = Incumbent(best.problem, 60)
    late.raise_lower(best.upper + 1, "liar")
    with pytest.raises(SolverDisagreementError, match=r"liar.*other"):
        late.offer(best.pebbling.moves, "other")


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_plays_what_the_registry_says(name):
    """A game with every trait of an entry, or of as many as a game can have."""
    for entry in (e for e in ENTRIES if e.name == name):
        again = RECOMPUTE in entry.handles
        dag = build_dag("diamond", {"size": 3}) if again or SLIDING in entry.handles else gemm(2, 2, 1)
        if WEIGHTS in entry.handles:
            nx.set_node_attributes(dag, {v: 2 for v in dag if "accumulator" not in dag.nodes[v]}, "weight")
        variant = "recompute-sliding" if again else "one-shot-sliding" if SLIDING in entry.handles else None
        buffers = BufferModel("sm-local", 2) if SEVERAL in entry.handles else None
        game = Game.from_dag(dag, variant)
        result = solve(game, minimum_capacity(game), solver=name, time_limit=3600, buffers=buffers)
        assert result.lower_bound <= result.upper_bound == replay(game, result.pebbling).cost


def test_what_no_solver_plays_is_said():
    with pytest.raises(InputError, match="one-shot or in-place"):
        solve(build_dag("diamond", {"size": 3}), 3, "recompute", buffers=BufferModel("sm-local", 2))
    with pytest.raises(InputError, match="use solver='cpsat'"):
        solve(gemm(5, 5, 5), 5, solver="search", buffers=BufferModel("sm-local", 2))


def test_a_bound_above_a_pebbling_is_a_disagreement():
    with pytest.raises(SolverDisagreementError, match="known bound"):
        solve(gemm(2, 2, 2), 4, known=Known(lower_bound=15))


def test_capacity_too_small_names_the_least():
    with pytest.raises(InfeasibleError, match="at least 3"):
        solve(gemm(2, 2, 2), 2)


def test_too_large_says_the_limit_and_what_to_use():
    large = gemm(8, 8, 8)
    for solver in ("cpsat", "milp"):
        with pytest.raises(InputError, match=r"limit.*pebble bound"):
            solve(large, 10, solver=solver)


def test_milp_refuses_recomputation_by_name():
    with pytest.raises(InputError, match="recompute-sliding"):
        solve(build_dag("diamond", {"size": 3}), 3, "recompute-sliding", "milp")


def test_bad_requests():
    with pytest.raises(UnknownNameError, match="cpsat"):
        solve(gemm(2, 2, 2), 4, solver="cpsta")
    with pytest.raises(InputError, match="time limit"):
        solve(gemm(2, 2, 2), 4, time_limit=0)
    with pytest.raises(InputError, match="variant"):
        solve(Game.from_dag(gemm(2, 2, 2)), 4, "one-shot")


@pytest.mark.parametrize("solver", ["cpsat", "milp", "auto"])
def test_the_time_limit_ends_a_solver(solver):
    """None of them proves this one in hours."""
    result = solve(gemm(4, 4, 4), 9, solver=solver, time_limit=1.5)
    assert result.status != "optimal" and result.stop_reason == "time limit of 1.5 s"
    assert result.upper_bound is None or result.lower_bound < result.upper_bound


@pytest.mark.parametrize("solver", ["cpsat", "milp"])
def test_stop_ends_a_solver(solver):
    result = solve(gemm(4, 4, 4), 9, solver=solver, **at_most(ANY))
    assert result.stop_reason == "interrupted"
    assert result.pebbling is not None


def test_progress_rises_and_falls():
    seen = []
    solve(gemm(4, 4, 4), 9, solver="cpsat", **until(lambda now: seen.append(now) or len(seen) == 5))
    assert len(seen) >= 5
    lows = [p.lower_bound for p in seen]
    highs = [p.upper_bound for p in seen if p.upper_bound is not None]
    assert lows == sorted(lows)
    assert highs == sorted(highs, reverse=True)


def test_a_hint_is_replayed_and_used():
    dag = gemm(2, 2, 2)
    best = solve(dag, 4).pebbling
    result = solve(dag, 4, solver="heuristic", known=Known(best))
    assert result.upper_bound == best.cost
    with pytest.raises(IllegalMoveError, match=r"nothing"):
        solve(dag, 4, known=Known(Pebbling(Variant.IN_PLACE, 4, (Move("load", "nothing"),), 1)))


@pytest.mark.parametrize("variant", [v.value for v in Variant])
def test_heuristic_on_a_large_dag(variant):
    dag = gemm(12, 12, 12) if variant == "in-place" else build_dag("fft", {"size": 128})
    game = Game.from_dag(dag, variant)
    result = solve(game, minimum_capacity(game) + 20, solver="heuristic", time_limit=PATIENCE)
    assert game.compulsory <= result.lower_bound <= result.upper_bound


def test_plans_and_moves_are_inverse():
    game = Game.from_dag(build_dag("fft", {"size": 8}), "one-shot-sliding")
    plan, cost = belady(game, 4, range(len(game.tasks)))
    pebbling = Pebbling(game.variant, 4, write_moves(game, plan), cost)
    assert replay(game, pebbling).cost == cost
    assert read_plan(game, pebbling) == plan


def test_segment_bound_is_the_optimum_where_known():
    bounds = [segment_bound(Game.from_dag(gemm(2, 2, 2)), capacity) for capacity in (3, 4, 5, 6)]
    assert bounds == [17, 14, 13, 12]


def test_a_value_stored_after_the_last_computation_is_not_lost():
    # CP-SAT may keep an output red into a position without a computation and store it there
    dag = nx.DiGraph()
    edges = {"v0": "v1 v2 v3 v5", "v1": "v2 v3 v4", "v2": "v4 v5", "v3": "v4 v5"}
    dag.add_edges_from((u, v) for u, vs in edges.items() for v in vs.split())
    dag.nodes["v2"]["output"] = dag.nodes["v3"]["output"] = True
    for seed in range(4):
        result = solve(dag, 3, "recompute-sliding", solver="cpsat", time_limit=3600, seed=seed)
        assert (result.lower_bound, result.upper_bound) == (5, 5)


def test_large_games_have_a_bound_at_once():
    result = solve(gemm(20, 20, 20), 50, solver="heuristic", time_limit=PATIENCE)
    assert result.lower_bound >= 2330  # equation (2), which `pebble bound` prints
    assert result.proof == ("GEMM bound",)


@pytest.mark.slow
def test_the_milp_alone_proves_2x2x2_at_every_capacity():
    # `solve` never gets that far, because the segment bound meets the heuristic; HiGHS needs a process without ortools
    code = (
        "from pebble.cdag.products import gemm_dag; from pebble.game import Game\n"
        "from pebble.system.isolation.highs import minimise; from pebble.solvers.milp import MilpModel\n"
        "game = Game.from_dag(gemm_dag(2, 2, 2), 'in-place')\n"
        "for S in (3, 4, 5, 6):\n"
        "    model = MilpModel(game, S)\n"
        "    print('found', minimise(model.program, 3600), round(model.objective.value()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    results = [line for line in done.stdout.splitlines() if line.startswith("found")]
    assert results == [f"found optimal {cost}" for cost in (17, 14, 13, 12)]
