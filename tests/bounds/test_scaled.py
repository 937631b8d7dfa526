"""Products with block scales: compulsory bytes, bounds against exact optima, and schedules played move by move."""

from __future__ import annotations

from itertools import product
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pebble
from pebble.bounds import Chain
from pebble.bounds.chain_lines import ChainLines
from pebble.bounds.uses import Goal
from pebble.cdag.building import Dag, Finish, add_input, add_sum, name_of, new_dag
from pebble.errors import InfeasibleError, InputError, UnknownNameError
from pebble.families.scaled import SCALED, SCALED_FFN
from pebble.game import Game, Move, Pebbling, Variant, replay
from pebble.reports.bound import bound_workload
from pebble.schedules.explicit.scaled import ScaledPanels, ScaledSchedule, slice_of
from pebble.solvers import solve
from pebble.workloads import Ffn, Gemm, ScaledFfn, ScaledGemm
from pebble.workloads.scaled import FORMATS, UNITS, Format
from pebble.workloads.widths import FastMemory, Widths

TILES = {"tiles": Format(8, 2, 2, 2)}  # as fp8-128x128, but smaller
QUARTER = UNITS // 2  # units of four bits, of which every width here is a whole number


@pytest.fixture
def tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small format of which rows share scales."""
    monkeypatch.setitem(FORMATS, "tiles", TILES["tiles"])


def add_scaled(dag: Dag, operand: str, rows: int, depth: int, of: Format) -> None:
    """Values and their scales, each as heavy as it is wide, in units of four bits."""
    for i, l in product(range(rows), range(depth)):
        add_input(dag, operand, (i, l), of.bits // 4)
        if of.block:
            add_input(dag, f"S{operand}", (i // of.rows, l // of.block), 2 * of.scale)


def value(operand: str, row: int, l: int, of: Format) -> list[str]:
    """A value, and its scale."""
    scale = [name_of(f"S{operand}", (row // of.rows, l // of.block))] if of.block else []
    return [name_of(operand, (row, l)), *scale]


def scaled_dag(w: ScaledGemm) -> Dag:
    """A, B and their scales are inputs; C is bf16."""
    dag = new_dag(10 * w.multiply_adds + 100)
    for operand, rows, of in zip("AB", (w.m, w.n), w.formats, strict=True):
        add_scaled(dag, operand, rows, w.k, of)
    for i, j in product(range(w.m), range(w.n)):
        terms = [[*values_of(w, "A", i, l), *values_of(w, "B", j, l)] for l in range(w.k)]
        add_sum(dag, "in-place", "C", (i, j), terms, weight=4, output=True)
    return dag


def values_of(w: ScaledGemm, operand: str, row: int, l: int) -> list[str]:
    return value(operand, row, l, w.formats["AB".index(operand)])


def network_dag(w: ScaledFfn) -> Dag:
    """X, the weights (a row for each column) and their scales are inputs; H takes its format, Y is bf16."""
    dag = new_dag(40 * w.multiply_adds + 100)
    x, of, h = w.formats
    ups = ("Wg", "Wu") if w.gated else ("W1",)
    add_scaled(dag, "X", w.tokens, w.d_model, x)
    for name in ups:
        add_scaled(dag, name, w.hidden, w.d_model, of)
    add_scaled(dag, "W2", w.d_out, w.hidden, of)
    for i, j in product(range(w.tokens), range(w.hidden)):
        terms = {name: [[*value("X", i, t, x), *value(name, j, t, of)] for t in range(w.d_model)] for name in ups}
        gate = [add_sum(dag, "in-place", "U", (i, j), terms["Wu"], weight=max(2, h.bits // 4))] if w.gated else []
        last = [Finish("act", "*=", tuple(gate))] if gate else [Finish("act", "act")]
        add_sum(dag, "in-place", "H", (i, j), terms[ups[0]], weight=max(2, h.bits // 4), finish=last)
    for i, q in product(range(w.tokens), range(w.d_out)):
        terms_of_y = [[name_of("H", (i, j)), *value("W2", q, j, of)] for j in range(w.hidden)]
        add_sum(dag, "in-place", "Y", (i, q), terms_of_y, weight=4, output=True)
    return dag


@pytest.mark.parametrize("types", [("mxfp4", "mxfp4"), ("mxfp8", "mxfp4"), ("bf16", "nvfp4")])
@pytest.mark.parametrize("shape", [(1, 1, 2), (2, 1, 2), (1, 2, 2), (2, 2, 2), (1, 3, 2), (1, 1, 4)])
def test_below_the_optimum(shape: tuple[int, int, int], types: tuple[str, str]) -> None:
    w = ScaledGemm(*shape, *types)
    dag = scaled_dag(w)
    for capacity in (14, 16, 20, 26):
        result = solve(dag, capacity, time_limit=60)
        if result.status != "optimal" or result.upper_bound is None:
            continue
        found = bound_workload(w, cache=f"{capacity // 2}B")
        assert found.lower.bytes <= result.upper_bound / 2
        assert found.upper is None or found.upper.bytes >= result.upper_bound / 2


@pytest.mark.parametrize("capacity", [12, 16])
def test_more_than_compulsory_and_below_the_optimum(capacity: int) -> None:
    w = ScaledGemm(3, 2, 2)
    optimum = solve(scaled_dag(w), capacity, time_limit=60).upper_bound
    assert optimum is not None
    assert w.compulsory_bytes < bound_workload(w, cache=f"{capacity // 2}B").lower.bytes <= optimum / 2


def moves_of(schedule: ScaledSchedule) -> list[Move]:
    """The schedule move by move, as the module says it runs, from its block alone."""
    w, (s, t), moves, seen = schedule.workload, schedule.block, list[Move](), set[str]()
    deep = min(w.k, slice_of(w))

    def names(operand: str, row: int, ls: range) -> list[str]:
        return list(dict.fromkeys(name for l in ls for name in values_of(w, operand, row, l)))

    held: dict[str, int] = {}  # users of what is in fast memory; a scale may stay without one

    def end(*others: str) -> None:
        """Scales that wait for another row are dropped: all, or those of other rows than these are."""
        rows = {name.partition(",")[0] for name in others}
        idle = [x for x, users in held.items() if not users and (not others or x.partition(",")[0] not in rows)]
        for one in [x for x in idle if not others or x[:2] in {name[:2] for name in others}]:
            moves.append(Move("delete", one))
            del held[one]

    def come(*values: str) -> None:
        if scales := [value for value in values if value[0] == "S"]:
            end(*scales)
        for value in values:
            if value not in held and (value[0] != "C" or value in seen):
                moves.append(Move("load", value))
            held[value] = held.get(value, 0) + 1

    def go(*values: str) -> None:
        for value in values:
            if value[0] == "C":
                moves.append(Move("store", value))
                seen.add(value)
            held[value] = held.get(value, 1) - 1
            if not held[value] and (value[0] != "S" or formats[value[1]].rows == 1):
                moves.append(Move("delete", value))
                del held[value]

    formats = dict(zip("AB", w.formats, strict=True))

    def add(i: int, j: int, ls: range) -> None:
        for l in ls:
            term = "*".join([*values_of(w, "A", i, l), *values_of(w, "B", j, l)])
            moves.append(Move("compute", f"C[{i},{j}]+={term}"))

    def cut(extent: int, size: int) -> list[range]:
        return [range(start, min(start + size, extent)) for start in range(0, extent, size)]

    a, b = w.formats
    if schedule.stays == "C":
        for rows, cols in product(cut(w.m, s), cut(w.n, t)):
            for ls in cut(w.k, deep):
                of_a = s * a.size(deep) + b.size(deep) <= t * b.size(deep) + a.size(deep)
                kept = [names("A", i, ls) for i in rows] if of_a else [names("B", j, ls) for j in cols]
                for vector in kept:
                    come(*vector)
                for x in cols if of_a else rows:
                    passing = names("B" if of_a else "A", x, ls)
                    come(*passing)
                    for y in rows if of_a else cols:
                        add(*((y, x) if of_a else (x, y)), ls)
                    go(*passing)
                for vector in kept:
                    go(*vector)
                end()
            go(*(f"C[{i},{j}]" for i in rows for j in cols))
        return moves
    own, other = ("A", "B") if schedule.stays == "A" else ("B", "A")
    of = formats[other]
    linger = UNITS * of.scale * -(-t // of.block) if of.rows > 1 else 0
    cells_held = s * UNITS * 2 + of.size(deep) + linger <= of.size(t) + UNITS * 2
    for rows, ls in product(cut(w.m if own == "A" else w.n, s), cut(w.k, t)):
        block = [names(own, x, ls) for x in rows]
        for vector in block:
            come(*vector)
        for y in range(w.n if own == "A" else w.m):
            places = [(x, y) if own == "A" else (y, x) for x in rows]
            if cells_held:
                come(*(f"C[{i},{j}]" for i, j in places))
                for part in cut(len(ls), deep):
                    inside = range(ls[part[0]], ls[part[-1]] + 1)
                    come(*names(other, y, inside))
                    for i, j in places:
                        add(i, j, inside)
                    go(*names(other, y, inside))
                go(*(f"C[{i},{j}]" for i, j in places))
            else:
                come(*names(other, y, ls))
                for i, j in places:
                    come(f"C[{i},{j}]")
                    add(i, j, ls)
                    go(f"C[{i},{j}]")
                go(*names(other, y, ls))
            if y + 1 == (w.n if own == "A" else w.m):
                end()
        for vector in block:
            go(*vector)
        end()
    return moves


@pytest.mark.parametrize("types", [("mxfp8", "mxfp4", "bf16"), ("bf16", "nvfp4", "fp8"), ("tiles", "tiles", "mxfp8")])
@pytest.mark.parametrize(  # rows of whole bytes
    "shape", [(1, 2, 2, 1), pytest.param((2, 2, 2, 1), marks=pytest.mark.slow), (1, 2, 2, 2)]
)
@pytest.mark.parametrize("gated", [False, True])
def test_a_network_below_the_optimum(
    shape: tuple[int, int, int, int], types: tuple[str, str, str], gated: bool, tiles: None
) -> None:
    w = ScaledFfn(*shape, gated, *types)
    dag = network_dag(w)
    for capacity in (18, 24, 34):
        try:
            result = solve(dag, capacity, time_limit=4)
        except InfeasibleError:
            continue
        if result.upper_bound is None:
            continue
        found = bound_workload(w, cache=f"{capacity // 2}B")
        assert found.lower.bytes <= result.upper_bound / 2  # of some pebbling, the best where it is optimal


@settings(max_examples=27, deadline=None)
@given(
    st.tuples(st.integers(1, 4), st.integers(1, 9), st.integers(1, 9), st.integers(1, 4)), st.booleans(),
    st.sampled_from(["mxfp4", "tiles", "bf16"]), st.sampled_from(["mxfp4", "tiles", "fp8"]), st.integers(1, 4),
)  # fmt: skip
def test_panels_of_a_network_are_legal_and_move_what_they_say(
    sizes: tuple[int, int, int, int], gated: bool, x: str, weights: str, size: int
) -> None:
    with patch.dict(FORMATS, TILES):
        m, d, f, e = sizes
        d, f = d + d % 2, f + f % 2  # whole bytes
        w = ScaledFfn(m, d, f, e, gated, x, weights, "bf16")
        schedule = ScaledPanels(w, FastMemory(10**9, Widths(2, 2, 2, 2)), min(size, m))
        dag, moves = network_dag(w), list[Move]()
        (of_x, of, _), group = w.formats, min(f, slice_of(w))
        ups = ("Wg", "Wu") if gated else ("W1",)
        held: set[str] = set()

        def come(*names: str) -> None:
            moves.extend(Move("load", name) for name in dict.fromkeys(names) if name not in held)
            held.update(names)

        def leave(*names: str) -> None:
            moves.extend(Move("delete", name) for name in dict.fromkeys(names) if name in held)
            held.difference_update(names)

        for start in range(0, m, schedule.size):
            rows = range(start, min(start + schedule.size, m))
            come(*(name for i in rows for t in range(d) for name in value("X", i, t, of_x)))
            for first in range(0, f, group):
                columns = range(first, min(first + group, f))
                for j in columns:
                    passing = {up: [name for t in range(d) for name in value(up, j, t, of)] for up in ups}
                    # scales stay from one column to the next where that shares them
                    for up in ups:
                        stale = {name for name in held if name.startswith(f"S{up}[")} - set(passing[up])
                        leave(*stale)
                        come(*passing[up])
                    for i in rows:
                        for up, cell in zip(ups, "HU", strict=False):
                            for t in range(d):
                                term = "*".join([*value("X", i, t, of_x), *value(up, j, t, of)])
                                moves.append(Move("compute", f"{cell}[{i},{j}]+={term}"))
                        last = f"H[{i},{j}]*=U[{i},{j}]" if gated else f"H[{i},{j}]=act(H[{i},{j}])"
                        moves.append(Move("compute", last))
                        held.update([f"H[{i},{j}]", *([f"U[{i},{j}]"] if gated else [])])
                    leave(*(name for up in ups for name in passing[up] if not name.startswith("S")))
                leave(*(name for name in held if name.startswith(("SW1[", "SWg[", "SWu[", "U["))))
                for q in range(e):
                    passing_down = [name for j in columns for name in value("W2", q, j, of)]
                    leave(*({name for name in held if name.startswith("SW2[")} - set(passing_down)))
                    come(*passing_down)
                    for i, j in product(rows, columns):
                        term = "*".join([f"H[{i},{j}]", *value("W2", q, j, of)])
                        moves.append(Move("compute", f"Y[{i},{q}]+={term}"))
                    leave(*(name for name in passing_down if not name.startswith("S")))
                leave(*(name for name in held if name.startswith(("SW2[", "H["))))
            for i, q in product(rows, range(e)):
                moves += [Move("store", f"Y[{i},{q}]"), Move("delete", f"Y[{i},{q}]")]
            leave(*list(held))
        room = -(-schedule.peak_units(schedule.size) // QUARTER)
        cost = 2 * schedule.bytes
        counted = replay(Game.from_dag(dag, Variant.IN_PLACE), Pebbling(Variant.IN_PLACE, room, tuple(moves), cost))
        assert counted.cost == cost
        assert bound_workload(w, cache=f"{-(-room // 2)}B").lower.bytes <= schedule.bytes


@settings(max_examples=20, deadline=None)
@given(
    st.tuples(*[st.integers(1, 200)] * 4), st.booleans(),
    st.tuples(*[st.sampled_from(sorted(FORMATS))] * 3), st.integers(64, 40000), st.sampled_from(["off", "fp32"]),
)  # fmt: skip
def test_networks_are_bounded_below_every_schedule(
    sizes: tuple[int, int, int, int], gated: bool, types: tuple[str, str, str], size: int, sums: str
) -> None:
    w = ScaledFfn(*sizes, gated, *types)
    found = bound_workload(w, cache=f"{size}B", accumulators=sums)
    assert found.lower.bytes >= w.compulsory_bytes
    assert bound_workload(w, cache=f"{size + 1}B", accumulators=sums).lower.bytes <= found.lower.bytes
    again = bound_workload(w, cache=f"{size}B", accumulators=sums, recompute=True)
    assert again.lower.bytes == w.compulsory_bytes
    schedules = SCALED_FFN.schedules(w, found.capacity.schedules(w))
    assert all(item.bytes >= found.lower.bytes for item in schedules.values())


def test_a_network_of_plain_types_is_the_network_itself() -> None:
    for size in ("256KiB", "1MiB"):
        plain = bound_workload(Ffn(2048, 1024, 4096), cache=size, accumulators="fp32")
        scaled = bound_workload(ScaledFfn(2048, 1024, 4096), cache=size, accumulators="fp32").lower.bytes
        (lines,) = ChainLines(Chain(2048, 1024, 4096, 1024, 2048 * 4096)).weighted(Widths(2, 4, 4, 2))
        by_lines = max(proof.bytes for proof in lines.proofs(Goal(plain.capacity.bytes)))
        assert 0.999 * by_lines < scaled <= plain.lower.bytes  # the other theorems do not know formats


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 5), st.integers(1, 5), st.integers(1, 70), st.sampled_from(["mxfp4", "mxfp8", "tiles", "bf16"]),
    st.sampled_from(["mxfp4", "nvfp4", "tiles", "fp8"]), st.sampled_from("ABC"), st.integers(1, 4), st.integers(1, 4),
)  # fmt: skip
def test_schedules_are_legal_and_move_what_they_say(
    m: int, n: int, k: int, a: str, b: str, stays: str, s: int, t: int
) -> None:
    with patch.dict(FORMATS, TILES):
        _legal(ScaledGemm(m, n, k + k % 2, a, b), stays, s, t)  # whole bytes


def _legal(w: ScaledGemm, stays: str, s: int, t: int) -> None:
    m, n, k = w.m, w.n, w.k
    s, t = (min(s, n if stays == "B" else m), min(t, n) if stays == "C" else min(k, t * slice_of(w)))
    schedule = ScaledSchedule(w, FastMemory(10**9, Widths(1, 2, 2, 2)), stays, (s, t))
    game = Game.from_dag(scaled_dag(w), Variant.IN_PLACE)
    cost = 2 * schedule.bytes
    counted = replay(
        game, Pebbling(Variant.IN_PLACE, -(-schedule.peak_units // QUARTER), tuple(moves_of(schedule)), cost)
    )
    assert counted.cost == cost


@settings(max_examples=20, deadline=None)
@given(
    st.integers(1, 300), st.integers(1, 300), st.integers(1, 300), st.sampled_from(sorted(FORMATS)),
    st.sampled_from(sorted(FORMATS)), st.integers(64, 20000), st.sampled_from(["off", "fp32"]),
)  # fmt: skip
def test_bounds_are_below_every_schedule_and_fall(m: int, n: int, k: int, a: str, b: str, size: int, sums: str) -> None:
    w = ScaledGemm(m, n, k, a, b)
    found = bound_workload(w, cache=f"{size}B", accumulators=sums)
    assert found.lower.bytes >= w.compulsory_bytes
    assert bound_workload(w, cache=f"{size + 1}B", accumulators=sums).lower.bytes <= found.lower.bytes
    memory = found.capacity.schedules(w)
    assert all(item.bytes >= found.lower.bytes for item in SCALED.schedules(w, memory).values())


def test_plain_types_are_the_product_itself() -> None:
    for size in ("256KiB", "1MiB", "6MiB"):
        plain = bound_workload(Gemm(4096, 4096, 4096), cache=size, accumulators="fp32")
        scaled = bound_workload(ScaledGemm(4096, 4096, 4096), cache=size, accumulators="fp32")
        assert abs(scaled.lower.bytes / plain.lower.bytes - 1) < 1e-3


def test_bytes_of_scales_are_exact() -> None:
    w = ScaledGemm(3, 5, 33, "mxfp8", "nvfp4", out_dtype="fp32")
    assert {o.name: o.bytes for o in w.operands} == {
        "A": 3 * 33, "scales of A": 3 * 2, "B": 5 * 17, "scales of B": 5 * 3, "C": 60,
    }  # fmt: skip
    assert {name: of.units / UNITS for name, of in FORMATS.items() if of.block} == {
        "mxfp8": 33 / 32, "mxfp4": 17 / 32, "nvfp4": 18 / 32, "fp8-1x128": 33 / 32, "fp8-128x128": 1,
    }  # fmt: skip
    blocks = ScaledFfn(200, 300, 130, 50, dtype_x="fp8-1x128", dtype_w="fp8-128x128", dtype_h="fp8-1x128")
    assert {o.name: o.bytes for o in blocks.operands} == {
        "X": 200 * 300, "scales of X": 200 * 3 * 4, "W1": 130 * 300, "scales of W1": 2 * 3 * 4,
        "W2": 50 * 130, "scales of W2": 1 * 2 * 4, "Y": 200 * 50 * 2,
    }  # fmt: skip
    halves = ScaledGemm(8192, 8192, 8192, "mxfp8", "mxfp4")
    assert bound_workload(halves, cache="40MiB").lower.bytes == halves.compulsory_bytes == 239_075_328


def test_what_is_not_known_is_one_sentence() -> None:
    w = ScaledGemm(64, 64, 64, "mxfp4")
    with pytest.raises(UnknownNameError):
        ScaledGemm(4, 4, 4, "mxfp6")
    with pytest.raises(InputError, match="expected bytes"):
        pebble.bound(w, cache="100el")
    with pytest.raises(InputError, match="scaled-ffn: got a number of values, expected bytes"):
        pebble.bound(ScaledFfn(4, 4, 4), cache="100el")
    with pytest.raises(UnknownNameError, match="dtype-w"):
        ScaledFfn(4, 4, 4, dtype_w="mxfp5")
    with pytest.raises(InfeasibleError, match="expected more"):
        pebble.compare(w, cache="8B")
    assert "Theorem B8" in pebble.prove(ScaledGemm(640, 640, 640, "mxfp4"), cache="8KiB").text
