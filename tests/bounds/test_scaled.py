"""Products with block scales: compulsory bytes, bounds against exact optima, and schedules played move by move."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pebble
from pebble.cdag.building import add_input, add_sum, name_of, new_dag
from pebble.errors import InfeasibleError, InputError, UnknownNameError
from pebble.families.scaled import SCALED
from pebble.game import Game, Move, Pebbling, Variant, replay
from pebble.reports.bound import bound_workload
from pebble.schedules.explicit.scaled import ScaledSchedule, slice_of
from pebble.solvers import solve
from pebble.workloads import Gemm, ScaledGemm
from pebble.workloads.scaled import FORMATS, UNITS
from pebble.workloads.widths import FastMemory, Widths

QUARTER = UNITS // 2  # units of four bits, of which every width here is a whole number


def scaled_dag(w: ScaledGemm) -> object:
    """A, B and their scales are inputs, each as heavy as it is wide, in units of four bits; C is bf16."""
    dag = new_dag(10 * w.multiply_adds + 100)
    for operand, rows, of in zip("AB", (w.m, w.n), w.formats, strict=True):
        for i, l in product(range(rows), range(w.k)):
            add_input(dag, operand, (i, l), of.bits // 4)
            if of.block:
                add_input(dag, f"S{operand}", (i, l // of.block), 2)
    for i, j in product(range(w.m), range(w.n)):
        terms = [[*values_of(w, "A", i, l), *values_of(w, "B", j, l)] for l in range(w.k)]
        add_sum(dag, "in-place", "C", (i, j), terms, weight=4, output=True)
    return dag


def values_of(w: ScaledGemm, operand: str, row: int, l: int) -> list[str]:
    of = w.formats["AB".index(operand)]
    return [name_of(operand, (row, l)), *([name_of(f"S{operand}", (row, l // of.block))] if of.block else [])]


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

    def come(*values: str) -> None:
        moves.extend(Move("load", value) for value in values if value[0] != "C" or value in seen)

    def go(*values: str) -> None:
        for value in values:
            if value[0] == "C":
                moves.append(Move("store", value))
                seen.add(value)
            moves.append(Move("delete", value))

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
                held = [names("A", i, ls) for i in rows] if of_a else [names("B", j, ls) for j in cols]
                for vector in held:
                    come(*vector)
                for x in cols if of_a else rows:
                    passing = names("B" if of_a else "A", x, ls)
                    come(*passing)
                    for y in rows if of_a else cols:
                        add(*((y, x) if of_a else (x, y)), ls)
                    go(*passing)
                for vector in held:
                    go(*vector)
            go(*(f"C[{i},{j}]" for i in rows for j in cols))
        return moves
    own, other = ("A", "B") if schedule.stays == "A" else ("B", "A")
    formats = dict(zip("AB", w.formats, strict=True))
    cells_held = s * UNITS * 2 + formats[other].size(deep) <= formats[other].size(t) + UNITS * 2
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
        for vector in block:
            go(*vector)
    return moves


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 4), st.integers(1, 4), st.integers(1, 70), st.sampled_from(["mxfp4", "mxfp8", "nvfp4", "bf16"]),
    st.sampled_from(["mxfp4", "nvfp4", "fp8"]), st.sampled_from("ABC"), st.integers(1, 4), st.integers(1, 4),
)  # fmt: skip
def test_schedules_are_legal_and_move_what_they_say(
    m: int, n: int, k: int, a: str, b: str, stays: str, s: int, t: int
) -> None:
    k += k % 2  # whole bytes
    w = ScaledGemm(m, n, k, a, b)
    s, t = (min(s, n if stays == "B" else m), min(t, n) if stays == "C" else min(k, t * slice_of(w)))
    schedule = ScaledSchedule(w, FastMemory(10**9, Widths(1, 2, 2, 2)), stays, (s, t))
    game = Game.from_dag(scaled_dag(w), Variant.IN_PLACE)
    cost = 2 * schedule.bytes
    counted = replay(
        game, Pebbling(Variant.IN_PLACE, -(-schedule.peak_units // QUARTER), tuple(moves_of(schedule)), cost)
    )
    assert counted.cost == cost


@settings(max_examples=60, deadline=None)
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
        "mxfp8": 33 / 32, "mxfp4": 17 / 32, "nvfp4": 18 / 32,
    }  # fmt: skip
    halves = ScaledGemm(8192, 8192, 8192, "mxfp8", "mxfp4")
    assert bound_workload(halves, cache="40MiB").lower.bytes == halves.compulsory_bytes == 239_075_328


def test_what_is_not_known_is_one_sentence() -> None:
    w = ScaledGemm(64, 64, 64, "mxfp4")
    with pytest.raises(UnknownNameError):
        ScaledGemm(4, 4, 4, "mxfp6")
    with pytest.raises(InputError, match="expected bytes"):
        pebble.bound(w, cache="100el")
    with pytest.raises(InputError, match="the checker knows"):
        bound_workload(w, cache="1MiB").certificate()
    with pytest.raises(InfeasibleError, match="expected more"):
        pebble.compare(w, cache="8B")
    assert "Theorem B8" in pebble.prove(ScaledGemm(640, 640, 640, "mxfp4"), cache="8KiB").text
