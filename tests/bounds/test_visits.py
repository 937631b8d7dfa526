"""The visit bound: its inequalities on played schedules, its minimum, and the bound against optima and schedules."""

from __future__ import annotations

import random
from functools import cache
from math import inf, log
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.bounds.memories import of_sms
from pebble.bounds.visit_search import SHARES, Cell, Layers, visit_bounds
from pebble.bounds.visits import BITS, Product, Slices
from pebble.errors import InfeasibleError
from pebble.families import accounting, family_of, lower_bound
from pebble.schedules.explicit import best_gemm_schedule
from pebble.workloads import Gemm, GroupedGemm
from pebble.workloads.widths import ALIKE, FastMemory, Widths
from tests.bounds.test_gemm import OPTIMA
from tests.rooms import in_values

WIDE = (ALIKE, Widths(2, 4, 4, 2), Widths(1, 4, 4, 2), Widths(3, 3, 5, 4))


def h(mu: float, d: float, room: float) -> float:
    """What one layer is owed for d drops when mu of the streamed values are held at the end."""
    if d <= 0:
        return 0.0
    if 2 * d <= room - mu:
        return -log(1 - d / (room - mu))
    if 2 * d <= room:
        return log(4 * d / (room - mu))
    return -log(1 - mu / room) + 2 * d / room - 1 + log(2)


def first(s: int, square: int = 1) -> int:
    """q_s."""
    return (s - 1) ** 2 // (4 * square) + 1


def slice_moves(slices: Slices, capacity: int, mu: float, used: float) -> float:
    """What Theorem 12 sums for one mu and D_1."""
    room = capacity / slices.width

    def w(s: int) -> float:
        q = first(s, slices.square)
        if s > slices.columns or 2 * q > slices.products:
            return 0.0
        owed = h(mu, used - q, room) + h(mu, slices.products - mu - used - q, room)
        return owed if slices.doubled else owed / 2

    layers = range(1, min(slices.rows, slices.columns) + 1)
    if not slices.spills:
        return sum(min(1.0, w(s)) for s in layers)
    return sum(min(2.0, w(s), 1 + w(s + slices.rows)) for s in layers)


@pytest.mark.parametrize("capacity", range(2, 9))
def test_what_drops_are_owed(capacity: int) -> None:
    """No walk of the number of streamed values, with so many drops, is owed less than h."""

    @cache
    def least(at: int, drops: int, steps: int, end: int) -> float:
        """From a number, with so many more drops and so many steps at most, to ``end``."""
        best = 0.0 if at == end and drops == 0 else inf
        if steps == 0:
            return best
        if at + 1 < capacity:
            best = min(best, 1 / (capacity - at - 1) + least(at + 1, drops, steps - 1, end))
        if at > 0:
            best = min(best, 1 / (capacity - at) + least(at - 1, max(0, drops - 1), steps - 1, end))
        return best

    for end in range(capacity - 1):
        for drops in range(2 * capacity):
            found = min(least(start, drops, 2 * drops + 2 * capacity, end) for start in range(capacity))
            assert found >= h(end, drops, capacity) - 1e-9


def played(rnd: random.Random, m: int, n: int, k: int, capacity: int) -> list[tuple[str, Any]]:
    """A legal schedule in any order and with any evictions: loads (or begun cells), drops and products."""
    products = [(i, l, j) for i in range(m) for l in range(k) for j in range(n)]
    axes, blocks = rnd.sample(range(3), 3), [rnd.randint(1, 3) for _ in range(3)]
    if rnd.random() < 0.3:
        rnd.shuffle(products)
    else:
        products.sort(key=lambda p: [p[x] // blocks[x] for x in axes] + [p[x] for x in axes])
    uses: dict[tuple[str, int, int], list[int]] = {}
    for time, (i, l, j) in enumerate(products):
        for value in (("A", i, l), ("B", l, j), ("C", i, j)):
            uses.setdefault(value, []).append(time)
    kept, held, moves = rnd.choice("ABC-"), dict[tuple[str, int, int], int](), list[tuple[str, Any]]()
    for time, (i, l, j) in enumerate(products):
        needed = (("A", i, l), ("B", l, j), ("C", i, j))
        for value in needed:
            if value not in held:
                while len(held) >= capacity:
                    out = max(
                        (x for x in held if x not in needed),
                        key=lambda x: (x[0] != kept, next((t for t in uses[x] if t > time), 10**6), rnd.random()),
                    )
                    del held[out]
                    moves.append(("drop", out))
                moves.append(("load", value))
            held[value] = time
        moves.append(("product", (i, l, j)))
        if uses[needed[2]][-1] == time:
            del held[needed[2]]
            moves.append(("drop", needed[2]))
    return [*moves, *(("drop", value) for value in held)]


class Slice:
    """What the theorem looks at of one slice while a schedule is played."""

    def __init__(self, streamed: str, number: int, m: int, n: int, k: int) -> None:
        at = {"A": (m, k, 2), "B": (n, k, 0), "C": (m, n, 1)}[streamed]
        self.streamed, self.number, self.rows, self.columns, self.axis = streamed, number, at[0], at[1], at[2]
        self.products, self.depth = self.rows * self.columns, {"A": n, "B": m, "C": k}
        self.done, self.gaps, self.held = dict[Any, int](), {"rows": 0, "columns": 0}, 0
        self.used, self.present = set[Any](), set[Any]()
        self.sums, self.moments = list[tuple[int, float]](), list[tuple[int, int, int]]()
        self.sides = {"A": ("C", "B"), "B": ("C", "A"), "C": ("A", "B")}[streamed]

    def owns(self, value: tuple[str, int, int]) -> bool:
        """Whether a value of the other two operands is one of this slice."""
        name, x, y = value
        index = {"A": y, "B": x, "C": y if name == "A" else x}[self.streamed]
        return name != self.streamed and index == self.number

    def take(self, move: str, value: Any, capacity: int) -> None:
        """Follow one move."""
        q = sum(self.done.values()) // 2
        if move == "product":
            i, l, j = value
            if value[self.axis] == self.number:
                self.used.add({"A": (i, l), "B": (l, j), "C": (i, j)}[self.streamed])
                for name, at in (("A", (i, l)), ("B", (l, j)), ("C", (i, j))):
                    if name != self.streamed:
                        self.done[name, *at] = self.done.get((name, *at), 0) + 1
        elif value[0] == self.streamed:
            others = len(self.present) - (move == "drop")
            assert self.held <= capacity - others - 1
            self.sums.append((q, 1 / (capacity - others - 1) if capacity > others + 1 else inf))
            (self.present.add if move == "load" else self.present.remove)(value[1:])
        elif self.owns(value):
            side = "rows" if value[0] == self.sides[0] else "columns"
            self.held += 1 if move == "load" else -1
            whole = self.columns if side == "rows" else self.rows
            self.gaps[side] += move == "drop" and 0 < self.done.get(value, 0) < whole
        self.moments.append((sum(self.done.values()) // 2, len(self.present), len(self.used - self.present)))

    def check(self, capacity: int) -> None:
        """Every layer is owed what the theorem says, whichever moment is taken."""
        for s in range(1, min(self.columns, self.rows + self.gaps["columns"]) + 1):
            q = first(s)
            owed = sum(f for at, f in self.sums if q <= at <= self.products - q)
            for at, mu, used in self.moments:
                if q <= at <= self.products - q and mu < capacity:
                    left = self.products - mu - used
                    assert owed >= h(mu, used - q, capacity) + h(mu, left - q, capacity) - 1e-9


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(s, marks=pytest.mark.slow) for s in range(12, 200))])
def test_played_schedules_hold_every_step(seed: int) -> None:
    """Partial values are held or in a gap, and each layer is owed h on both sides of every moment."""
    rnd = random.Random(seed)
    m, n, k = (rnd.randint(1, 5) for _ in range(3))
    capacity = rnd.randint(3, max(m * k, k * n, m * n, 3) + 3)
    moves = played(rnd, m, n, k, capacity)
    for streamed, count in (("A", n), ("B", m), ("C", k)):
        for number in range(count):
            one = Slice(streamed, number, m, n, k)
            held_at: list[tuple[int, int]] = []
            for move, value in moves:
                one.take(move, value, capacity)
                if move != "product":
                    held_at.append((sum(one.done.values()) // 2, one.held))
            a, b = one.gaps["columns"], one.gaps["rows"]
            for q, held in held_at:
                layers = range(a + b + 1, min(one.columns + b, one.rows + a) + 1)
                assert held >= sum(first(s) <= q <= one.products - first(s) for s in layers)
            one.check(capacity)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 60), st.integers(1, 60), st.floats(0.9, 3), st.sampled_from(WIDE), st.data())
def test_cells_are_below_every_point_of_them(rows: int, columns: int, share: float, widths: Widths, data: Any) -> None:
    for slices in Product(rows, 7, columns, widths=widths).slices():
        capacity = max(3, int(slices.products * slices.width / share))
        layers, part = Layers(slices, capacity), capacity / slices.width / SHARES
        mu, x = data.draw(st.integers(0, SHARES - 1)), data.draw(st.integers(0, layers.products))
        cell = Cell(mu, data.draw(st.integers(0, 64)), x, data.draw(st.integers(0, 64)))
        proved = layers.least(cell) / 2**BITS
        for _ in range(5):
            at = cell.mu + data.draw(st.floats(0, 1)) * cell.mus, cell.x + data.draw(st.floats(0, 1)) * cell.xs
            if at[0] < SHARES and sum(at) * part <= slices.products:
                assert proved <= slice_moves(slices, capacity, at[0] * part, at[1] * part) + 1e-9


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 40), st.integers(1, 40), st.floats(1, 3), st.sampled_from(WIDE), st.data())
def test_what_a_slice_moves_is_below_every_point(
    rows: int, columns: int, share: float, widths: Widths, data: Any
) -> None:
    product = Product(rows, 1000, columns, widths=widths)
    capacity = max(3 * product.slices()[0].width, int(product.slices()[0].products / share)) * widths.unit
    for proof in visit_bounds(product, capacity):
        room = proof.capacity / proof.slices.width
        for _ in range(20):
            mu = data.draw(st.floats(0, 0.9999)) * min(room, proof.slices.products)
            used = data.draw(st.floats(0, 1)) * (proof.slices.products - mu)
            assert proof.least / 2**BITS <= slice_moves(proof.slices, proof.capacity, mu, used) + 1e-9


@pytest.mark.parametrize("shape", OPTIMA)
def test_never_above_an_optimum(shape: tuple[int, int, int]) -> None:
    for capacity, optimum in enumerate(OPTIMA[shape], start=3):
        assert all(proof.elements <= optimum for proof in visit_bounds(Product(*shape), capacity))


sides = st.integers(1, 60)


@settings(deadline=None, max_examples=20)
@given(
    sides,
    sides,
    st.integers(1, 5000),
    st.floats(0.9, 3),
    st.sampled_from(WIDE),
    st.permutations(range(3)),
    st.booleans(),
)
def test_never_above_a_schedule(
    a: int, b: int, c: int, share: float, widths: Widths, order: list[int], accumulate: bool
) -> None:
    gemm = Gemm(*([a, b, c][x] for x in order), accumulate=accumulate)
    memory = FastMemory(max(3, int(a * b / share)) * max(widths.read, widths.partial), widths)
    try:
        schedule = family_of(gemm).best_schedule(gemm, memory)
    except InfeasibleError:
        return
    product = Product(gemm.m, gemm.n, gemm.k, accumulate, widths)
    assert schedule is not None
    assert all(proof.bytes <= schedule.bytes for proof in visit_bounds(product, memory.bytes))


@pytest.mark.parametrize(("mebibytes", "gap"), [(40, 1.079), (50, 1.079)])
def test_an_operand_that_just_does_not_fit(mebibytes: int, gap: float) -> None:
    """The worst rows of the catalogue before: 1.204 and 1.220."""
    gemm, capacity = Gemm(4096, 128256, 8192), mebibytes * 2**19
    bound = lower_bound(gemm, capacity)
    assert bound.theorem.name == "Theorem 12"
    assert 1 <= in_values(best_gemm_schedule, gemm, capacity).elements / bound.elements < gap


@pytest.mark.parametrize("transposed", [False, True])
def test_rows_and_columns_are_alike(transposed: bool) -> None:
    gemm = Gemm(20000, 300, 400) if transposed else Gemm(300, 20000, 400)
    assert lower_bound(gemm, 90_000).elements == lower_bound(Gemm(300, 20000, 400), 90_000).elements
    (proof,) = visit_bounds(Product(gemm.m, gemm.n, gemm.k), 90_000)
    assert proof.slices.streamed == ("B" if transposed else "A")


def test_where_outputs_are_streamed() -> None:
    """A deep product whose outputs just do not fit."""
    bound = lower_bound(Gemm(300, 300, 20000), 80_000)
    assert bound.certificate["streamed"] == "C"
    assert bound.elements <= in_values(best_gemm_schedule, Gemm(300, 300, 20000), 80_000).elements


def test_a_batch_adds_up() -> None:
    one, many = Gemm(300, 20000, 400), GroupedGemm((300,) * 3, 20000, 400)
    assert lower_bound(many, 90_000).elements == 3 * lower_bound(one, 90_000).elements


def test_not_with_atomic_adds() -> None:
    """A cell then leaves for one store."""
    spec = of_sms(accounting(GroupedGemm((300,) * 3, 20000, 400)))
    assert not of_sms(accounting(Gemm(300, 20000, 400))).of(Product)
    assert not any(part.of(Product) for part in spec.parts)


def test_a_product_that_fits_moves_no_more_than_it_must() -> None:
    assert visit_bounds(Product(64, 64, 64), 10_000, 3 * 64 * 64) == []
