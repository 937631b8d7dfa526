"""Published formulas: what they are worth on instances that refute them, and their regimes."""

from __future__ import annotations

import pytest

from pebble.bounds.published import words_per_processor
from pebble.families import family_of, lower_bound
from pebble.families.gemm import GEMM
from pebble.schedules.explicit import best_gemm_schedule
from pebble.workloads import Attention, Conv2d, Ffn, Gemm
from tests.rooms import in_values

# (m, n, k, S) and what a legal schedule of C := A B costs there: several published formulas say more
COUNTER_EXAMPLES = [
    (400, 400, 10, 400, 212_000),
    (300, 300, 1, 100, 92_400),
    (300, 300, 4, 400, 96_000),
    (240, 240, 16, 400, 103_680),
]


@pytest.mark.parametrize(("m", "n", "k", "capacity", "cost"), COUNTER_EXAMPLES)
def test_counter_examples(m: int, n: int, k: int, capacity: int, cost: int) -> None:
    gemm = Gemm(m, n, k)
    lower = lower_bound(gemm, capacity).elements
    upper = in_values(best_gemm_schedule, gemm, capacity).elements
    assert lower <= upper <= cost
    formulas = {f.name: f for f in GEMM.published(gemm, capacity)}
    status = {name: f.judge(lower, upper)[0] for name, f in formulas.items()}
    assert status["cosma"] == "refuted_here"
    assert formulas["cosma"].elements > cost
    assert status["compulsory"] == status["irony-toledo-tiskin"] == "proven"


def test_smith_is_its_own_theorem_only_when_c_is_read() -> None:
    (smith,) = (f for f in GEMM.published(Gemm(64, 64, 64), 100) if f.name == "smith-et-al")
    assert not smith.holds
    (smith,) = (f for f in GEMM.published(Gemm(64, 64, 64, accumulate=True), 100) if f.name == "smith-et-al")
    assert smith.holds
    assert smith.elements == 2 * 64**3 // 10 - 200


def test_parallel_regimes() -> None:
    # D - (mn + mk + nk)/P of Al Daas et al. by hand, m >= n >= k
    assert words_per_processor(1000, 10, 10, 4) == ((10000 + 10000) // 4 + 100 - -(-20100 // 4), 1)
    assert words_per_processor(100, 100, 10, 25) == (400 + 400 - 480, 2)
    assert words_per_processor(64, 64, 64, 64) == (3 * 256 - 192, 3)
    assert words_per_processor(64, 10, 64, 64) == words_per_processor(10, 64, 64, 64)


def test_every_family_has_its_formulas() -> None:
    names = [
        [f.name for f in family_of(w).published(w, 100)]
        for w in (Ffn(8, 8, 8), Ffn(8, 8, 8, gated=True), Attention(8, 8, 8), Conv2d(1, 1, 1, 8, 8, 3))
    ]
    assert names == [["compulsory", "iolb-soap"], ["compulsory"], ["compulsory"], ["compulsory", "seven-nested-loops"]]


def test_what_is_open_and_what_counts_something_else() -> None:
    gemm = Gemm(64, 64, 64)
    formulas = {f.name: f for f in GEMM.published(gemm, 100, 8)}
    assert formulas["cosma"].judge(0, None)[0] == "not_proven_here"  # without a schedule nothing is refuted
    assert formulas["cosma"].judge(10**9, 10**9) == (
        "proven",
        "not by its own theorem, but our bound implies this number",
    )
    assert formulas["parallel-memory-independent"].judge(10**9, 10**9)[0] == "not_proven_here"
