"""Backward passes: bounds against exact optima and played schedules, in values and in bytes."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pebble
from pebble.bounds.uses import Goal
from pebble.bounds.weighted import _kernels
from pebble.cdag.backward import attention_backward_dag, ffn_backward_dag, gemm_backward_dag
from pebble.errors import InfeasibleError, InputError
from pebble.families import accounting, lower_bound
from pebble.families.backward import ATTENTION_BACKWARD, FFN_BACKWARD, GEMM_BACKWARD
from pebble.game import Game, Move, Pebbling, Variant, replay
from pebble.reports.bound import bound_workload
from pebble.schedules.explicit.backward import BackwardSchedule
from pebble.schedules.explicit.panels import PanelSchedule, attention_panels, ffn_panels, rest_panels
from pebble.solvers import solve
from pebble.workloads import AttentionBackward, FfnBackward, GemmBackward
from pebble.workloads.widths import FastMemory, Widths
from tests.bounds.panels_played import PanelsPlayed, Script
from tests.bounds.weighted_game import WideGame
from tests.brute_force import brute_force

side = st.integers(1, 9)
WIDTHS = [Widths(2, 4, 4, 2), Widths(1, 4, 4, 2), Widths(4, 4, 4, 2), Widths(4, 4, 2, 2), Widths(1, 2, 2, 2)]


def surely(capacity: int, dag: object, solved: float = 60) -> int | None:
    """The optimum of a small game; None where no schedule exists, or it is not known in that time."""
    try:
        result = solve(dag, capacity, time_limit=solved)
    except InfeasibleError:
        return None
    return result.upper_bound if result.status == "optimal" else None


@pytest.mark.parametrize("shape", list(product((1, 2), repeat=3)))
def test_a_product_is_bounded_below_the_optimum(shape: tuple[int, int, int]) -> None:
    workload, dag = GemmBackward(*shape), gemm_backward_dag(*shape)
    for capacity in (3, 4, 5, 6, 8):
        optimum = surely(capacity, dag)
        if optimum is not None:
            assert lower_bound(workload, capacity).elements <= optimum
            assert lower_bound(workload, capacity, recompute=True).elements == lower_bound(workload, capacity).elements


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 2, 1), (2, 1, 1)])
def test_a_product_is_bounded_below_brute_force(shape: tuple[int, int, int]) -> None:
    for capacity in (3, 4, 5):
        optimum = brute_force(gemm_backward_dag(*shape), capacity, "in-place")
        assert optimum is not None and lower_bound(GemmBackward(*shape), capacity).elements <= optimum


def wide_game(m: int, n: int, k: int, widths: Widths) -> WideGame:
    """Inputs A, B, dC and cells dA, dB, each numbered row by row."""
    a, b = m * k, k * n
    tasks = []
    for i, j, t in product(range(m), range(n), range(k)):
        c = 1 << (a + b + i * n + j)
        tasks.append((c | 1 << (a + t * n + j), (), i * k + t))
        tasks.append((c | 1 << (i * k + t), (), a + t * n + j))
    return WideGame(a + b + m * n, tuple(tasks), (True,) * (a + b), widths)


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 2, 1), (2, 1, 1), (1, 1, 2), (1, 3, 1), (2, 2, 1)])
def test_no_schedule_of_a_product_moves_fewer_bytes(shape: tuple[int, int, int], widths: Widths) -> None:
    """Each theorem in bytes, by itself, against the optimum of the game of widths."""
    least = 2 * widths.read + max(widths.partial, widths.written)
    for capacity in (least, least + widths.read, least + 2 * widths.partial):
        optimum = wide_game(*shape, widths).least(capacity)
        assert optimum is not None
        for use in accounting(GemmBackward(*shape)).uses:
            for weighed in use.weighted(widths):
                for proof in weighed.proofs(Goal(capacity)):
                    assert proof.bytes <= optimum, (use, capacity)


def moves_of(schedule: BackwardSchedule) -> list[Move]:
    """The schedule move by move, as the module says it runs, from its block alone."""
    w, moves = schedule.workload, list[Move]()
    seen: set[str] = set()

    def do(op: str, *names: str) -> None:
        moves.extend(Move(op, name) for name in names)

    def come(name: str) -> None:
        if name[0] != "d" or name[1] == "C" or name in seen:
            do("load", name)

    def go(name: str) -> None:
        if name[0] == "d" and name[1] != "C":
            do("store", name)
            seen.add(name)
        do("delete", name)

    def da(i: int, j: int, t: int) -> str:
        return f"dA[{i},{t}]+=dC[{i},{j}]*B[{t},{j}]"

    def db(i: int, j: int, t: int) -> str:
        return f"dB[{t},{j}]+=A[{i},{t}]*dC[{i},{j}]"

    def cut(extent: int, size: int) -> list[range]:
        return [range(start, min(start + size, extent)) for start in range(0, extent, size)]

    stays, (s, t) = schedule.stays, schedule.block
    extents = {"A": (w.m, w.k, w.n), "B": (w.n, w.k, w.m), "C": (w.m, w.n, w.k)}[stays]
    for first, second in product(cut(extents[0], s), cut(extents[1], t)):
        block = list(product(first, second))
        name = {"A": "A[{0},{1}]", "B": "B[{1},{0}]", "C": "dC[{0},{1}]"}[stays]
        values = [name.format(p, q) for p, q in block]
        cells = [f"d{value}" for value in values] if stays != "C" else []
        for value in (*values, *cells):
            come(value)
        for r in range(extents[2]):
            if stays == "C":
                for vector, other, update in (("dA[{0},{2}]", "B[{2},{1}]", da), ("A[{0},{2}]", "dB[{2},{1}]", db)):
                    across = len(second) < len(first)
                    held, passing = (other, vector) if across else (vector, other)
                    kept, outer = (second, first) if across else (first, second)
                    names = [held.format(*((0, x) if across else (x, 0)), r) for x in kept]
                    for each in names:
                        come(each)
                    for y in outer:
                        one = passing.format(*((y, 0) if across else (0, y)), r)
                        come(one)
                        do("compute", *(update(*((y, x) if across else (x, y)), r) for x in kept))
                        go(one)
                    for each in names:
                        go(each)
                continue

            def place(p: int, q: int, r: int = r) -> tuple[int, int, int]:
                return (p, r, q) if stays == "A" else (r, p, q)

            shared = ["dC[{},{}]".format(*place(p, 0)[:2]) for p in first]
            others = [
                (f"B[{q},{r}]", f"dB[{q},{r}]") if stays == "A" else (f"A[{r},{q}]", f"dA[{r},{q}]") for q in second
            ]
            if len(first) <= 2 * len(second):
                for each in shared:
                    come(each)
                for q, pair in zip(second, others, strict=True):
                    for one, update in zip(pair, (da, db) if stays == "A" else (db, da), strict=True):
                        come(one)
                        do("compute", *(update(*place(p, q)) for p in first))
                        go(one)
                for each in shared:
                    go(each)
            else:
                for one in (x for pair in others for x in pair):
                    come(one)
                for p, each in zip(first, shared, strict=True):
                    come(each)
                    do("compute", *(update(*place(p, q)) for q in second for update in (da, db)))
                    go(each)
                for one in (x for pair in others for x in pair):
                    go(one)
        for value in (*values, *cells):
            go(value)
    return moves


@settings(max_examples=40, deadline=None)
@given(side, side, side, st.sampled_from("ABC"), side, side)
def test_schedules_are_legal_and_move_what_they_say(m: int, n: int, k: int, stays: str, s: int, t: int) -> None:
    w = GemmBackward(m, n, k)
    extents = {"A": (m, k), "B": (n, k), "C": (m, n)}[stays]
    schedule = BackwardSchedule(w, FastMemory.of_values(10**9, w), stays, (min(s, extents[0]), min(t, extents[1])))
    game = Game.from_dag(gemm_backward_dag(m, n, k), Variant.IN_PLACE)
    pebbling = Pebbling(Variant.IN_PLACE, schedule.peak_elements, tuple(moves_of(schedule)), schedule.elements)
    counted = replay(game, pebbling)
    assert (counted.loads, counted.stores) == (sum(schedule.loads.values()), sum(schedule.stores.values()))
    assert lower_bound(w, max(3, schedule.peak_elements)).elements <= schedule.elements


@settings(max_examples=13, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 60), st.integers(12, 9000), st.sampled_from(WIDTHS))
def test_bounds_are_below_every_schedule_and_fall(m: int, n: int, k: int, size: int, widths: Widths) -> None:
    w = GemmBackward(m, n, k)
    bound = lower_bound(w, size)
    assert lower_bound(w, size + 1).elements <= bound.elements
    for memory in (FastMemory.of_values(size, w), FastMemory(size, widths)):
        for item in GEMM_BACKWARD.schedules(w, memory).values():
            in_values = memory.widths.uniform
            of_bytes = [
                proof.bytes
                for use in accounting(w).uses
                for weighed in use.weighted(widths)
                for proof in weighed.proofs(Goal(size))
            ]
            assert item.elements >= bound.elements if in_values else item.bytes >= max(of_bytes)


@pytest.mark.parametrize(("size", "most"), [("64KiB", 1.02), ("1MiB", 1.05), ("6MiB", 1.11), ("40MiB", 1.21)])
def test_a_large_product_is_close_to_its_bound(size: str, most: float) -> None:
    found = bound_workload(GemmBackward(8192, 8192, 8192), cache=size)
    assert found.gap is not None and found.gap <= most


def test_short_sums_read_the_shared_operand_once() -> None:
    result = pebble.compare(GemmBackward(8192, 8192, 64), gpu="h100")
    rows = {row["name"]: row for row in result.rows()}
    assert rows["A and dA stay"]["dram_bytes"] == result.bound.lower.bytes == 138_412_032
    assert rows["one after the other"]["ratio_to_lower_bound"] > 1.9


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("recomputed", [False, True])
@pytest.mark.parametrize(
    "shape",
    [(1, 1, 1, 1), (1, 1, 2, 1), (2, 1, 1, 1), (1, 2, 1, 1)]
    + [pytest.param(shape, marks=pytest.mark.slow) for shape in ((2, 1, 1, 2), (2, 1, 2, 1))],
)
def test_a_network_is_bounded_below_the_optimum(
    shape: tuple[int, int, int, int], recomputed: bool, gated: bool
) -> None:
    workload = FfnBackward(*shape, recomputed, gated=gated)
    dag = ffn_backward_dag(*shape, recomputed=recomputed, gated=gated)
    assert sum(d.get("operation") == "multiply-add" for _, d in dag.nodes(data=True)) == workload.multiply_adds
    inputs = sum(d["weight"] for _, d in dag.nodes(data=True) if d.get("operation") == "input")
    assert inputs == sum(o.elements for o in workload.operands if o.read)
    for capacity in (3, 4, 5, 7):
        optimum = surely(capacity, dag, 6 if gated else 60)
        if optimum is not None:
            assert lower_bound(workload, capacity).elements <= optimum
            found = FFN_BACKWARD.schedules(workload, FastMemory.of_values(capacity, workload))
            assert all(item.elements >= optimum for item in found.values())


def network_game(m: int, d: int, f: int, e: int, widths: Widths) -> WideGame:
    """The backward pass of a network from the saved H; dZ is complete, and one width, after e products and that with H.

    Inputs X, W0, W1, dY and H, cells dZ, dX, dW0 and dW1, each numbered row by row.
    """
    starts = [0, m * d, m * d + d * f, m * d + d * f + f * e, m * d + d * f + f * e + m * e]
    x, w0, w1, dy, h = (lambda i, j, cols, at=at: 1 << (at + i * cols + j) for at in starts)
    dx, dw0, dw1 = m * f, m * f + m * d, m * f + m * d + d * f
    tasks: list[tuple[int, tuple[int, ...], int]] = []
    for i, j in product(range(m), range(f)):
        cell = i * f + j
        tasks.append((h(i, j, f), (), cell))
        for q in range(e):
            tasks.append((dy(i, q, e) | w1(j, q, e), (), cell))
            tasks.append((h(i, j, f) | dy(i, q, e), (), dw1 + j * e + q))
        for t in range(d):
            tasks.append((w0(t, j, f), (cell,), dx + i * d + t))
            tasks.append((x(i, t, d), (cell,), dw0 + t * f + j))
    return WideGame(starts[4] + m * f, tuple(tasks), (False,) * (m * f) + (True,) * (m * d + d * f + f * e), widths)


@pytest.mark.parametrize("widths", WIDTHS[:4])
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (1, 1, 2, 1), (2, 1, 1, 1), (1, 2, 1, 1), (1, 1, 1, 2)])
def test_no_schedule_of_a_network_moves_fewer_bytes(shape: tuple[int, int, int, int], widths: Widths) -> None:
    """Parts, and the middle by each of its theorems, against the optimum of the game of widths."""
    workload = FfnBackward(*shape)
    least = 2 * widths.read + max(widths.partial, widths.hidden, widths.written)
    for capacity in (least, least + widths.read, least + 2 * widths.partial):
        optimum = network_game(*shape, widths).least(capacity)
        assert optimum is not None
        problem = accounting(workload)
        for use in problem.uses:
            for weighed in use.weighted(widths):
                for proof in weighed.proofs(Goal(capacity)):
                    assert proof.bytes <= optimum, (use, capacity)
        values = lower_bound(workload, capacity)
        assert sum(kernel.bound(capacity, 0).bytes for kernel in _kernels(problem, values, widths)) <= optimum


@settings(max_examples=8, deadline=None)
@given(
    st.tuples(*[st.integers(1, 50)] * 4), st.booleans(), st.booleans(),
    st.sampled_from([("bf16", ""), ("fp8", "fp32"), ("fp32", "bf16")]), st.integers(40, 9000),
)  # fmt: skip
def test_networks_are_bounded_below_every_schedule(
    sizes: tuple[int, int, int, int], recomputed: bool, gated: bool, types: tuple[str, str], size: int
) -> None:
    workload = FfnBackward(*sizes, recomputed, *types, gated=gated)
    for sums in ("off", "fp32"):
        found = bound_workload(workload, cache=f"{size}B", accumulators=sums)
        assert found.lower.bytes >= workload.compulsory_bytes
        assert bound_workload(workload, cache=f"{size + 1}B", accumulators=sums).lower.elements <= found.lower.elements
        for item in FFN_BACKWARD.schedules(workload, found.capacity.schedules(workload)).values():
            assert item.bytes >= found.lower.bytes
            assert found.capacity.memory is not None or item.elements >= found.lower.elements


def played(dag: object, moves: list[Move], schedule: PanelSchedule) -> None:
    game = Game.from_dag(dag, Variant.IN_PLACE)
    counted = replay(game, Pebbling(Variant.IN_PLACE, schedule.peak_elements, tuple(moves), schedule.elements))
    assert (counted.loads, counted.stores) == (sum(schedule.loads.values()), sum(schedule.stores.values()))


def attention_moves(w: AttentionBackward, by_key: bool, size: int) -> list[Move]:
    s, inner, values = Script(), range(w.head_dim), range(w.value_dim)
    for g in range(w.groups):
        rows = [(h, i) for i in range(w.queries) for h in range(g * w.group, (g + 1) * w.group)]
        keys = list(range(w.keys))
        items, others = (keys, rows) if by_key else (rows, keys)
        for panel in (items[start : start + size] for start in range(0, len(items), size)):
            kept = {
                x: [f"K[{g},{x},{t}]" for t in inner] + [f"V[{g},{x},{t}]" for t in values]
                if by_key
                else [f"Q[{x[0]},{x[1]},{t}]" for t in inner]
                + [f"dO[{x[0]},{x[1]},{t}]" for t in values]
                + [f"{name}[{x[0]},{x[1]},0]" for name in ("L", "delta")]
                for x in panel
            }
            sums = {
                x: [f"dK[{g},{x},{t}]" for t in inner] + [f"dV[{g},{x},{t}]" for t in values]
                if by_key
                else [f"dQ[{x[0]},{x[1]},{t}]" for t in inner]
                for x in panel
            }
            for x in panel:
                s.come(*kept[x])
            for y in others:
                pairs = [(*(y if by_key else x), x if by_key else y) for x in panel]
                pairs = [p for p in pairs if not w.causal or p[2] <= w.keys - w.queries + p[1]]
                if not pairs:
                    continue
                row = f"{y[0]},{y[1]}" if by_key else ""
                held = [f"Q[{row},{t}]" if by_key else f"K[{g},{y},{t}]" for t in inner]
                s.come(*held)
                for h, i, j in pairs:
                    s.compute(*(f"P[{h},{i},{j}]+=Q[{h},{i},{t}]*K[{g},{j},{t}]" for t in inner))
                for name, symbol in (("L", "-="), ("delta", "*=")):
                    if by_key:
                        s.come(f"{name}[{row},0]")
                    for h, i, j in pairs:
                        cell = f"P[{h},{i},{j}]" if name == "L" else f"dS[{h},{i},{j}]*=P[{h},{i},{j}]"
                        s.compute(f"{cell}{symbol if name == 'L' else '*'}{name}[{h},{i},0]")
                    if by_key:
                        s.go(f"{name}[{row},0]")
                    for t in values if name == "L" else ():
                        one = [f"dO[{row},{t}]"] if by_key else [f"V[{g},{y},{t}]", f"dV[{g},{y},{t}]"]
                        for value in one:
                            s.come(value)
                            for h, i, j in pairs:
                                if value[:2] != "dV":
                                    s.compute(f"dS[{h},{i},{j}]+=dO[{h},{i},{t}]*V[{g},{j},{t}]")
                                if value[0] != "V":
                                    s.compute(f"dV[{g},{j},{t}]+=P[{h},{i},{j}]*dO[{h},{i},{t}]")
                            s.go(value)
                s.go(*(f"P[{h},{i},{j}]" for h, i, j in pairs))
                for t in inner:
                    value = f"dQ[{row},{t}]" if by_key else f"dK[{g},{y},{t}]"
                    s.come(value)
                    for h, i, j in pairs:
                        s.compute(f"dQ[{h},{i},{t}]+=dS[{h},{i},{j}]*K[{g},{j},{t}]")
                        s.compute(f"dK[{g},{j},{t}]+=dS[{h},{i},{j}]*Q[{h},{i},{t}]")
                    s.go(value)
                s.go(*(f"dS[{h},{i},{j}]" for h, i, j in pairs), *held)
            for x in panel:
                s.go(*kept[x], *sums[x])
    return s.moves


@settings(max_examples=27, deadline=None)
@given(
    st.integers(1, 5), st.integers(0, 4), st.integers(1, 3), st.integers(1, 3),
    st.sampled_from([(1, 1), (2, 1), (2, 2)]), st.booleans(), st.booleans(), st.integers(1, 9),
)  # fmt: skip
def test_panels_of_attention_are_legal_and_move_what_they_say(
    queries: int, more: int, k: int, l: int, heads: tuple[int, int], causal: bool, by_key: bool, size: int
) -> None:
    keys = queries + more if causal else 1 + more
    w = AttentionBackward(queries, keys, k, l, *heads, causal=causal)
    dag = attention_backward_dag(queries, keys, k, l, heads=heads[0], kv_heads=heads[1], causal=causal)
    assert sum(d.get("operation") == "multiply-add" for _, d in dag.nodes(data=True)) == w.multiply_adds
    panels = attention_panels(w)[0 if by_key else 1]
    schedule = PanelSchedule(w, FastMemory.of_values(10**9, w), panels, min(size, panels.items))
    played(dag, attention_moves(w, by_key, schedule.size), schedule)
    assert lower_bound(w, max(3, schedule.peak_elements)).elements <= schedule.elements


@settings(max_examples=67, deadline=None)
@given(
    st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 4), st.integers(1, 3)), st.booleans(), st.booleans(),
    st.booleans(), st.integers(0, 3), st.integers(0, 3), st.integers(1, 4), st.integers(1, 4),
)  # fmt: skip
def test_panels_of_a_network_are_legal_and_move_what_they_say(
    sizes: tuple[int, int, int, int], recomputed: bool, gated: bool, of_columns: bool, x: int, y: int, size: int,
    other: int,
) -> None:  # fmt: skip
    """Panels, and after them the rest of dX and dW0 in panels of either kind."""
    w = FfnBackward(*sizes, recomputed, gated=gated)
    x, y = min(x, w.d_model), min(y, w.d_model)
    memory = FastMemory.of_values(10**9, w)
    panels = ffn_panels(w, of_columns, x, y)
    if recomputed and panels.cells:
        return  # after a product that computes H again
    schedule = PanelSchedule(w, memory, panels, min(size, panels.items))
    moves, parts = PanelsPlayed(w, of_columns, x, y).moves(schedule.size), [schedule]
    if panels.left:
        other_panels = rest_panels(w, not of_columns, x, y)
        parts.append(PanelSchedule(w, memory, other_panels, min(other, other_panels.items)))
        moves += PanelsPlayed(w, not of_columns, x, y, rest=True).moves(parts[1].size)
    game = Game.from_dag(ffn_backward_dag(*sizes, recomputed=recomputed, gated=gated), Variant.IN_PLACE)
    peak, cost = (
        of(int(getattr(part, name)) for part in parts) for of, name in ((max, "peak_elements"), (sum, "elements"))
    )
    counted = replay(game, Pebbling(Variant.IN_PLACE, peak, tuple(moves), cost))
    for kind in ("loads", "stores"):
        assert getattr(counted, kind) == sum(sum(getattr(part, kind).values()) for part in parts)
    assert lower_bound(w, max(3, peak)).elements <= cost


@pytest.mark.parametrize(
    ("shape", "causal"),
    [
        *product([(1, 1, 1), (1, 2, 1), (1, 1, 2), (1, 3, 1)], [False, True]),
        ((2, 1, 1), False),
        pytest.param((2, 2, 1), False, marks=pytest.mark.slow),
        ((2, 2, 1), True),
    ],
)
def test_attention_is_bounded_below_the_optimum(shape: tuple[int, int, int], causal: bool) -> None:
    workload, dag = AttentionBackward(*shape, causal=causal), attention_backward_dag(*shape, causal=causal)
    for capacity in (4, 5, 6, 8):
        optimum = surely(capacity, dag, 20)
        if optimum is not None:
            assert lower_bound(workload, capacity).elements <= optimum
            found = ATTENTION_BACKWARD.schedules(workload, FastMemory.of_values(capacity, workload))
            assert all(item.elements >= optimum for item in found.values())


@settings(max_examples=8, deadline=None)
@given(
    st.integers(1, 400), st.integers(0, 300), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.booleans(),
    st.sampled_from([("bf16", ""), ("fp8", "fp32"), ("fp32", "bf16")]), st.integers(60, 9000),
)  # fmt: skip
def test_attention_is_bounded_below_every_schedule(
    queries: int, more: int, k: int, l: int, heads: int, causal: bool, types: tuple[str, str], size: int
) -> None:
    keys = queries + more if causal else 1 + more
    workload = AttentionBackward(queries, keys, k, l, heads, 1, 1, causal, *types)
    for sums in ("off", "fp32"):
        found = bound_workload(workload, cache=f"{size}B", accumulators=sums)
        again = bound_workload(workload, cache=f"{size}B", accumulators=sums, recompute=True)
        assert again.lower.bytes == workload.compulsory_bytes <= found.lower.bytes
        for item in ATTENTION_BACKWARD.schedules(workload, found.capacity.schedules(workload)).values():
            assert item.bytes >= found.lower.bytes
            assert found.capacity.memory is not None or item.elements >= found.lower.elements


def test_large_attention_is_between_these() -> None:
    found = bound_workload(AttentionBackward(32768, 32768, 128), cache="1MiB")
    assert (found.lower.elements, found.lower.theorem.name) == (470_740_672, "Theorem 9")
    assert found.upper is not None and found.upper.elements == 568_393_728
    assert bound_workload(AttentionBackward(32768, 32768, 128), cache="40MiB").gap == 1


def test_what_is_not_known_is_one_sentence() -> None:
    w = GemmBackward(64, 64, 64)
    with pytest.raises(InputError, match="only these are bounded for several SMs"):
        pebble.bound(w, cache="1MiB", buffers="sm-local", sms=4)
    for name, sizes in (
        ("ffn-backward", {"tokens": 1, "d_model": 1, "hidden": 1}),
        ("gemm-backward", dict.fromkeys("mnk", 1)),
    ):
        alone = pebble.solve(name, capacity=5, buffers="sm-local", sms=2, time_limit=20, **sizes)
        with pytest.raises(InputError, match="not those of two products in a row"):
            pebble.solve(name, capacity=5, buffers="sm-local", sms=2, split="1:1", **sizes)
        assert alone.result.status == "optimal"  # by the general theorems: none of these is about several memories
    with pytest.raises(InputError, match="no kernel of gemm-backward is simulated"):
        pebble.simulate(w, "row", cache="1MiB", sms=4)
    with pytest.raises(InputError, match="schedules under explicit control"):
        pebble.compare(w, "row", cache="1MiB")
