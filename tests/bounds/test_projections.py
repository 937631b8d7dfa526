"""Any einsum: the inequality on sets of points, bounds against exact optima, and what a certificate may not say."""

from __future__ import annotations

import copy
import random
from fractions import Fraction
from itertools import permutations, product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pebble
from pebble.bounds import Piece
from pebble.bounds.projections import Projections, Weights
from pebble.cdag.einsum import einsum_dag
from pebble.certificate import RefusedError, check
from pebble.certificate.statement import read_workload
from pebble.errors import InputError
from pebble.families import accounting, lower_bound
from pebble.proof.certificate import bound_certificate, workload_statement
from pebble.reports.capacity import known_of
from pebble.solvers import solve
from pebble.workloads import Conv2d, Einsum, Gemm, GroupedGemm
from pebble.workloads.nest import Nest
from pebble.workloads.widths import FastMemory
from tests.brute_force import brute_force

NESTS = [
    ("mk,kn->mn", ()),
    ("ik,jk->ij", ("A", "A")),
    ("ij,jk->ik", ("A", "A")),
    ("ik,jk,lk->ijl", ("A", "A", "A")),
    ("ij,jk,ki->", ("A", "A", "A")),
    ("ij,ji->ij", ("A", "A")),
    ("ijk,jr,kr->ir", ()),
    ("ik,kl,lj->ij", ()),
    ("bik,bkj->bij", ()),
    ("iil,lj->ij", ()),
    ("ijl,kj->ik", ()),
    ("y+r, r -> y", ()),
    ("2y+r, r -> y", ()),
    ("2y+3r, r -> y", ()),
    ("c y+r, o c r -> o y", ()),
    ("y+r, r y -> y", ()),
    ("y+r, y, r -> y", ("X", "W", "W")),
    ("y+r, k -> y r k", ()),
    ("y+r x+s, r s -> y x", ()),
]


def nest_of(subscripts: str, names: tuple[str, ...], rng: random.Random, most: int) -> Nest:
    """With random sizes; those that one array's dimension has in two places agree."""
    letters = sorted({c for c in subscripts if c.isalpha()})
    size = rng.randint(1, most)
    return Nest.read(subscripts, {c: size if names else rng.randint(1, most) for c in letters}, names)


def points_of(nest: Nest) -> list[dict[str, int]]:
    return [dict(zip(nest.size, at, strict=True)) for at in product(*(range(n) for n in nest.size.values()))]


def met(nest: Nest, at: dict[str, int], output: bool = False) -> list[tuple[str, tuple[int, ...]]]:
    accesses = (nest.output,) if output else nest.inputs
    return [(a.array, tuple(sum(f * at[i] for f, i in dim) for dim in a.dims)) for a in accesses]


@pytest.mark.parametrize(("subscripts", "names"), NESTS)
def test_sets_of_points_touch_at_least_what_any_weights_say(subscripts: str, names: tuple[str, ...]) -> None:
    """Random sets closed under the symmetry; values met are counted one by one, of symmetric cells one."""
    rng = random.Random(f"{subscripts}{names}")
    for _ in range(60):
        nest = nest_of(subscripts, names, rng, 4)
        if not nest.counted:
            continue
        nest = nest.summed()
        ways = [projections_of(nest, order) for order in nest.orders()]
        orbits = orbits_of(nest)
        likely = rng.choice((0.2, 0.5, 0.9, 1.1))
        chosen = [points for points in orbits if rng.random() < likely]
        inside = [at for points in chosen for at in points]
        assert max(map(len, orbits)) <= nest.symmetry
        for points in orbits:  # they have one product
            assert len({tuple(sorted(met(nest, at))) for at in points}) == 1
        values = {value for at in inside for value in met(nest, at)}
        # cells that hold one value: those of the points that share products, closed under chains of them
        cells = {frozenset(c for at in points for c in met(nest, at, True)) for points in chosen}
        touched = len(values) + len(_joined(cells))
        for problem in ways:
            for weights in (problem.weights(max(1, len(inside))), random_weights(problem, rng)):
                assert Fraction(problem.touched(weights, len(inside)), 2**148) <= touched


def orbits_of(nest: Nest) -> list[list[dict[str, int]]]:
    """Points by what renamings of indices make of them that leave what is met of each operand."""
    now, names = sorted((a.array, a.dims) for a in nest.inputs), list(nest.size)
    renamings = []
    for order in permutations(names):
        new = dict(zip(names, order, strict=True))
        same = all(nest.size[a] == nest.size[b] for a, b in new.items()) and (
            {new[i] for i in nest.output.indices} == nest.output.indices
        )
        if same and sorted((b.array, b.dims) for b in (a.renamed(new) for a in nest.inputs)) == now:
            renamings.append(new)
    result: dict[frozenset[tuple[int, ...]], list[dict[str, int]]] = {}
    for at in points_of(nest):
        around = frozenset(tuple(at[new[i]] for i in names) for new in renamings)
        result.setdefault(around, []).append(at)
    return list(result.values())


def _joined(cells: set[frozenset[Any]]) -> list[set[Any]]:
    result: list[set[Any]] = []
    for group in cells:
        near = [other for other in result if other & group]
        result = [other for other in result if not other & group] + [set(group).union(*near)]
    return result


def projections_of(nest: Nest, order: tuple[str, ...]) -> Projections:
    names = list(dict.fromkeys(access.array for access in nest.accesses))
    arrays = tuple(names.index(access.array) for access in nest.accesses)
    return Projections(order, nest.coordinates(order), arrays, nest.points, max(1, nest.symmetry))


def random_weights(problem: Projections, rng: random.Random) -> Weights:
    return Weights(rng.randint(0, 2**23), tuple(rng.randint(0, 2**22) for _ in problem.arrays))


@pytest.mark.parametrize(("subscripts", "names"), NESTS)
def test_values_of_an_access_are_those_that_points_meet(subscripts: str, names: tuple[str, ...]) -> None:
    rng = random.Random(f"{subscripts}{names}")
    for _ in range(10):
        nest = nest_of(subscripts, names, rng, 6 if len(subscripts) < 14 else 3)
        for access in nest.accesses:
            values = {tuple(sum(f * at[i] for f, i in dim) for dim in access.dims) for at in points_of(nest)}
            assert nest.values(access) == len(values)


SMALL = [
    ("mk,kn->mn", {"m": 2, "k": 2, "n": 2}, ()),
    ("ik,jk->ij", {"i": 2, "j": 2, "k": 2}, ("A", "A")),
    ("ij,jk->ik", {"i": 2, "j": 2, "k": 2}, ("A", "A")),
    ("ijk,jr,kr->ir", {"i": 2, "j": 2, "k": 1, "r": 2}, ()),
    ("ik,kl,lj->ij", {"i": 2, "k": 2, "l": 1, "j": 2}, ()),
    ("y+r, r -> y", {"y": 4, "r": 3}, ()),
    ("2y+r, r -> y", {"y": 3, "r": 3}, ()),
    ("c y+r, o c r -> o y", {"c": 2, "y": 2, "o": 2, "r": 2}, ()),
    ("y+r x+s, r s -> y x", {"y": 2, "x": 2, "r": 2, "s": 2}, ()),
    ("i,j,k->", {"i": 2, "j": 3, "k": 2}, ()),
    ("i,j,k->ijk", {"i": 2, "j": 2, "k": 2}, ()),
    ("ij,ik,jk->", {"i": 2, "j": 2, "k": 2}, ("A", "A", "A")),
]


@pytest.mark.parametrize(("subscripts", "sizes", "names"), SMALL, ids=lambda x: str(x))
def test_below_exact_optima(subscripts: str, sizes: dict[str, int], names: tuple[str, ...]) -> None:
    workload = Einsum(subscripts, tuple(sizes.items()), names)
    dag, least = einsum_dag(subscripts, sizes, names), len(workload.nest.inputs) + 1
    for capacity in range(max(3, least), least + 4):
        result = solve(dag, capacity, time_limit=60)
        bound = lower_bound(workload, capacity).elements
        assert bound >= workload.compulsory_elements
        if result.upper_bound is not None:
            assert bound <= result.upper_bound


@pytest.mark.parametrize(("subscripts", "names"), [("ij,jk->ik", ()), ("ik,jk->ij", ("A", "A")), ("y+r, r -> y", ())])
def test_below_brute_force(subscripts: str, names: tuple[str, ...]) -> None:
    sizes = {c: 2 if c != "k" else 1 for c in subscripts if c.isalpha()}
    workload = Einsum(subscripts, tuple(sizes.items()), names)
    for capacity in (3, 4, 5):
        optimum = brute_force(einsum_dag(subscripts, sizes, names), capacity, "in-place")
        if optimum is not None:
            assert lower_bound(workload, capacity).elements <= optimum


def test_a_symmetric_product_is_bounded_below_one_that_is_made_once() -> None:
    """Of A A^T only one triangle need be multiplied: exact optima of that game, its other cells stored besides."""
    for n, k in ((2, 2), (3, 1), (3, 2)):
        workload = Einsum("ik,jk->ij", (("i", n), ("k", k), ("j", n)), ("A", "A"))
        dag = einsum_dag("ik,jk->ij", {"i": n, "j": n, "k": k}, ("A", "A"))
        for i, j in product(range(n), repeat=2):
            if j > i:
                for p in range(k):
                    dag.remove_node(f"C[{i},{j}]+=A[{i},{p}]*A[{j},{p}]")
                dag.remove_node(f"C[{i},{j}]")
        for capacity in range(3, 9):
            result = solve(dag, capacity, time_limit=60)
            if result.upper_bound is not None:
                assert lower_bound(workload, capacity).elements <= result.upper_bound + n * (n - 1) // 2


dimension = st.integers(1, 200)


@settings(max_examples=20, deadline=None)
@given(dimension, dimension, dimension, st.integers(1, 4), st.integers(3, 5000))
def test_two_operands_are_products_and_theorem_11_agrees_with_theorem_1(
    m: int, n: int, k: int, batch: int, capacity: int
) -> None:
    w = Einsum("bmk,bkn->bmn", (("b", batch), ("m", m), ("k", k), ("n", n)))
    same = Gemm(m, n, k) if batch == 1 else GroupedGemm((m,) * batch, n, k)
    assert lower_bound(w, capacity).elements == lower_bound(same, capacity).elements
    nest = w.nest.within_a_group()
    mine = projections_of(nest, ()).bound(capacity).elements
    box = accounting(same).parts[0].of(Piece)[0] if batch > 1 else accounting(same).of(Piece)[0]
    known, _ = box.box.bound(m * n * k, capacity, whole_numbers=False)
    assert mine <= known + 1
    assert max(mine, w.compulsory_elements // batch) >= known - 5 - known // 50


@settings(max_examples=8, deadline=None)
@given(
    st.integers(1, 3), st.integers(1, 9), st.integers(1, 9), st.integers(1, 6), st.integers(1, 3), st.integers(1, 3),
    st.integers(3, 400),
)  # fmt: skip
def test_a_convolution_is_no_more_than_its_own_family_proves(
    batch: int, ins: int, outs: int, side: int, kernel: int, stride: int, capacity: int
) -> None:
    height = (side - 1) * stride + kernel
    known = Conv2d(batch, ins, outs, height, height, kernel, stride)
    sizes = {"b": batch, "c": ins, "y": side, "x": side, "o": outs, "r": kernel, "s": kernel}
    f = stride if stride > 1 else ""
    w = Einsum(f"b c {f}y+r {f}x+s, o c r s -> b o y x", tuple(sizes.items()))
    assert w.compulsory_elements == known.compulsory_elements
    assert w.multiply_adds == known.multiply_adds
    assert lower_bound(w, capacity).elements >= lower_bound(w, capacity + 1).elements - 1
    schedule = known_of(known, capacity, FastMemory.of_values(capacity, known)).upper
    if schedule is not None:
        assert lower_bound(w, capacity).elements <= schedule.elements


def test_known_leading_terms() -> None:
    """A A^T: n^2 k / sqrt(2 S) (Beaumont, Eyraud-Dubois, Verite and Langou 2022); a product: 2 m n k / sqrt S."""
    n, s = 4096, 2**16
    syrk = Einsum("ik,jk->ij", (("i", n), ("k", n), ("j", n)), ("A", "A"))
    assert lower_bound(syrk, s).elements == pytest.approx(n**3 / (2 * s) ** 0.5, rel=1e-3)
    product = Einsum("ik,kj->ij", (("i", n), ("k", n), ("j", n)))
    assert lower_bound(product, s).elements == pytest.approx(2 * n**3 / s**0.5, rel=1e-3)
    sizes = {"i": 1024, "j": 1024, "k": 1024, "r": 2**14}  # 3 V / S^(2/3): Deinsum (Ziogas et al. 2022)
    mttkrp = Einsum("ijk,jr,kr->ir", tuple(sizes.items()))
    assert lower_bound(mttkrp, s).elements == pytest.approx(3 * 2**44 / s ** (2 / 3), rel=1e-3)
    image = {"b": 32, "c": 256, "y": 54, "x": 54, "o": 256, "r": 3, "s": 3}  # 2 V / sqrt(R S): Chen et al. 2020
    conv = Einsum("b c y+r x+s, o c r s -> b o y x", tuple(image.items()))
    assert lower_bound(conv, 2**12).elements == pytest.approx(2 * prod(image.values()) / (9 * 2**12) ** 0.5, rel=1e-2)
    chain = Einsum("ik,kl,lj->ij", (("i", 64), ("k", 64), ("l", 64), ("j", 64)))
    assert lower_bound(chain, 512).elements == 131_584


def test_what_is_not_counted_is_compulsory() -> None:
    for subscripts, names in (("y+r, k -> k", ()), ("y+r, k -> y r k", ()), ("ij,ik->i", ("A", "A"))):
        sizes = {c: 50 for c in subscripts if c.isalpha()}
        w = Einsum(subscripts, tuple(sizes.items()), names)
        assert lower_bound(w, 5).elements == w.compulsory_elements


def certificate(w: Einsum, capacity: int) -> dict[str, Any]:
    return bound_certificate(w, known_of(w, capacity, FastMemory.of_values(capacity, w)))


CERTIFIED = [
    (Einsum("ik,jk->ij", (("i", 64), ("k", 64), ("j", 64)), ("A", "A")), 200),
    (Einsum("ijk,jr,kr->ir", (("i", 32), ("j", 32), ("k", 32), ("r", 300))), 100),
    (Einsum("c 2y+r, o c r -> o y", (("c", 16), ("y", 64), ("o", 32), ("r", 5))), 60),
    (Einsum("bijl,bkj->bik", (("b", 3), ("i", 64), ("j", 64), ("l", 2), ("k", 64))), 60),
]


@pytest.mark.parametrize(("workload", "capacity"), CERTIFIED)
def test_certificates_are_accepted_and_no_greater_claim_is(workload: Einsum, capacity: int) -> None:
    document = certificate(workload, capacity)
    claim = document["claims"][0]
    assert claim["proof"]["theorem"] == "projections"
    assert "moves at least" in check(document)[0]
    numbers = ["touched", "segments", "theta", *range(len(claim["proof"]["weights"]))]
    for where, times in product(numbers, (Fraction(1, 2), Fraction(9, 10), Fraction(11, 10), Fraction(2))):
        other = copy.deepcopy(document)
        proof = other["claims"][0]["proof"]
        held, at = (proof["weights"], where) if isinstance(where, int) else (proof, where)
        new = Fraction(held[at]) * times
        held[at] = round(new) if isinstance(held[at], int) else str(new)
        if where == "touched":  # and with it what is claimed
            grown = workload.nest.groups * (proof["touched"] - claim["proof"]["touched"])
            other["claims"][0]["elements"] += grown
            other["claims"][0]["bytes"] += 2 * grown
        if where == "segments":
            less = (proof["segments"] - claim["proof"]["segments"]) * capacity * workload.nest.groups
            other["claims"][0]["elements"] -= less
            other["claims"][0]["bytes"] -= 2 * less
        if other["claims"][0]["elements"] > claim["elements"] or isinstance(where, int) or where == "theta":
            with pytest.raises(RefusedError):
                check(other)


@pytest.mark.parametrize(("workload", "capacity"), CERTIFIED)
def test_the_checker_counts_the_same_operands(workload: Einsum, capacity: int) -> None:
    stated = read_workload(workload_statement(workload), "workload")
    assert {name: o.elements for name, o in stated.operands.items()} == {o.name: o.elements for o in workload.operands}
    assert stated.nest is not None and stated.groups == workload.nest.groups
    assert stated.nest.symmetry == workload.nest.symmetry


@pytest.mark.parametrize(("subscripts", "names"), NESTS)
def test_the_checker_reads_every_nest_alike(subscripts: str, names: tuple[str, ...]) -> None:
    rng = random.Random(f"{subscripts}{names}")
    for _ in range(8):
        nest = nest_of(subscripts, names, rng, 9)
        w = Einsum(subscripts, nest.sizes, names)
        stated = read_workload(workload_statement(w), "workload")
        assert stated.nest is not None and stated.compulsory == w.compulsory_elements
        assert stated.nest.symmetry == (nest.symmetry if nest.counted else 0)
        for capacity in (3, 7, 40):
            check(certificate(w, capacity))


def test_an_einsum_of_numpy_is_the_same_sum() -> None:
    """What the subscripts mean is what numpy computes."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 9, (3, 4)), rng.integers(0, 9, (4, 5))
    nest = Nest.read("mk,kn->mn", {"m": 3, "k": 4, "n": 5})
    out = np.zeros((3, 5), int)
    for at in points_of(nest):
        (_, left), (_, right) = met(nest, at)
        out[met(nest, at, True)[0][1]] += a[left] * b[right]
    assert (out == np.einsum("mk,kn->mn", a, b)).all()
    assert nest.points == prod((3, 4, 5))


@pytest.mark.parametrize(
    ("subscripts", "sizes", "words"),
    [
        ("mk,kn", {"m": 2, "k": 2, "n": 2}, "without '->'"),
        ("mk->m", {"m": 2, "k": 2}, "two or more"),
        ("mk,kn->mm", {"m": 2, "k": 2, "n": 2}, "each index of the output once"),
        ("mk,kn->mz", {"m": 2, "k": 2, "n": 2}, "'z' in the output alone"),
        ("mk,kn->mn", {"m": 2, "k": 2}, "n missing"),
        ("mk,kn->mn", {"m": 2, "k": 2, "n": 2, "q": 3}, "got 'q'"),
        ("y+r+s, r -> y", {"y": 2, "r": 2, "s": 2}, "the sum of two"),
        ("y+r, y+s, r -> y", {"y": 2, "r": 2, "s": 2}, "two windows"),
        ("m0k,kn->mn", {"m": 2, "k": 2, "n": 2}, "expected an index"),
    ],
)
def test_what_is_wrong_is_one_sentence(subscripts: str, sizes: dict[str, int], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Einsum(subscripts, tuple(sizes.items()))


def test_names_and_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    from pebble.cli import main

    assert main(["bound", "einsum", "bhqd,bhkd->bhqk", "--sizes", "b=1,h=4,q=4k,k=4k,d=128", "--cache", "1MiB"]) == 0
    assert "no schedule moves less" in capsys.readouterr().out
    w = pebble.workload("einsum", subscripts="ik,jk->ij", sizes={"i": 8, "j": 8, "k": 8}, operand_names="A,A")
    assert [o.name for o in w.operands] == ["A", "C"]
    with pytest.raises(InputError, match="2, one for each operand"):
        pebble.workload("einsum", subscripts="ik,jk->ij", sizes="i=8,j=8,k=8", operand_names="A")
    with pytest.raises(InputError, match="other dimensions"):
        pebble.workload("einsum", subscripts="ik,jkl->ij", sizes="i=8,j=8,k=8,l=2", operand_names="A,A")
