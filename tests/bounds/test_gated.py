"""The bound that ties gate and up cells: its minimum by sampling, and schedules of small and large problems."""

import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.bounds import Chain, GatedBound
from pebble.bounds.gated import gated_bound
from pebble.bounds.gated_search import Segment, Tied, _cut, _hopes
from pebble.families import lower_bound
from pebble.schedules.explicit.ffn import best_ffn_schedule
from pebble.workloads import Ffn
from pebble.workloads.widths import FastMemory, Widths
from tests.bounds.weighted_game import WideGame
from tests.rooms import in_values


def gated(m: int, k: int, f: int, l: int) -> Tied:
    return Tied(Chain(m, k, f, l, m * f, gated=True))


def touched(shape: tuple[int, ...], t: float, e: float, v1: float, v2: float, w: int = 1, p: int = 1) -> float:
    """X, written down once more: cells, and the least inputs and outputs under Loomis and Whitney and the floors."""
    m, _, f, _ = shape

    def spread(v: float, cells: float, side: int) -> float:
        return v * (2 / cells**0.5 if cells <= side * side else 1 / side + side / cells) if v else 0.0

    down = w * spread(v2, e, min(m, f)) if w == p else 2 * v2 * (w * p / e) ** 0.5 if v2 else 0.0
    return w * t + w * spread(v1, t, min(m, 2 * f)) + down


WIDE = Widths(2, 4, 4, 2)  # bf16, sums in fp32


@pytest.mark.parametrize("shape", [(512, 64, 400, 64), (300, 20, 900, 70), (40, 100, 5000, 30), (2000, 8, 60, 90)])
@pytest.mark.parametrize("segments", [2, 7, 60])
@pytest.mark.parametrize("way", [None, 0, 1, 3], ids=["values", "fp32 sums", "fp32 sums by weight", "narrow outputs"])
def test_no_segment_is_below_phi(shape: tuple[int, int, int, int], segments: int, way: int | None) -> None:
    m, k, f, l = shape
    tied = gated(m, k, f, l) if way is None else gated(m, k, f, l).weighted(WIDE)[way]
    w, p, (alpha, beta) = tied.widths.in_units[0], tied.output, tied.weights
    share = m * f * (2 * alpha * k + beta * l) // segments
    segment = Segment(tied, segments)
    lam, tau, gain = segment.choose(segments)
    phi = segment.phi(lam, tau)
    assert segments * phi + (lam - tau * l) * m * f <= gain * (1 + 1e-12)
    rng = random.Random(1)
    least = float("inf")
    for _ in range(20_000 if way is None else 5000):
        e = m * f * rng.random() ** 3
        t = e + m * f * rng.random() ** 3
        work = share + rng.choice((-1, 1)) * (max(alpha, beta) - 1)
        low, high = max(0.0, (work - alpha * k * t) / beta), min(work / beta, l * e)
        if low <= high:
            v2 = rng.choice((low, high, rng.uniform(low, high)))
            v1 = (work - beta * v2) / alpha
            value = touched(shape, t, e, v1, v2, w, p) - lam * min(e, t - e) + tau * v2
            least = min(least, value)
    assert phi <= least * (1 + 1e-12)
    t, e = (a.ravel() for a in np.meshgrid(np.geomspace(1, 2 * m * f, 500), np.linspace(0.005, 1, 200)))
    e = np.minimum(t * e, m * f)
    grid = float(segment.below(t, t, e, e)(lam, tau).min())
    assert phi <= grid <= phi * 1.05  # and it is not far below, either


@settings(max_examples=8, deadline=None)
@given(*[st.integers(1, 12)] * 4, st.integers(3, 60))
def test_below_schedules_of_small_problems(m: int, k: int, f: int, l: int, capacity: int) -> None:
    cuts = [
        (h, segment.phi(lam, tau), Fraction(lam), Fraction(tau))
        for h in (2, 3, 6)
        if m * f * (2 * k + l) >= h and (segment := Segment(gated(m, k, f, l), h))
        for lam, tau, _ in [segment.choose(h)]
    ]
    best = in_values(best_ffn_schedule, Ffn(m, k, f, l, gated=True), capacity).elements
    for h, phi, lam, tau in cuts:
        assert h * phi + (lam - 2 - tau * l) * m * f - (h - 1) * capacity <= best + 1e-6


@settings(max_examples=8, deadline=None)
@given(*[st.integers(1, 12)] * 4, st.integers(12, 160), st.sampled_from([(2, 4, 4, 2), (1, 4, 4, 2), (2, 2, 4, 2)]))
def test_below_schedules_in_bytes(m: int, k: int, f: int, l: int, room: int, widths: tuple[int, int, int, int]) -> None:
    """Every way to count, on games so small that the multipliers are far from the best."""
    memory = FastMemory(room, Widths(*widths))
    schedule = best_ffn_schedule(Ffn(m, k, f, l, gated=True), memory)
    for tied in gated(m, k, f, l).weighted(memory.widths):
        for h in (2, 3, 6):
            if schedule is None or tied.work // h <= tied.slack:
                continue
            segment, unit = Segment(tied, h), memory.widths.unit
            lam, tau, _ = segment.choose(h)
            weight = Fraction(lam) - Fraction(tau) * l
            proved = h * segment.phi(lam, tau) + weight * m * f - tied.taken_off - (h - 1) * (room // unit)
            assert unit * proved <= schedule.bytes + 1e-6


def gated_game(m: int, k: int, f: int, l: int, widths: Widths) -> WideGame:
    """Every order of gate, up and the elementwise products, which is one update of a gate cell more; then down."""
    x, w = m * k, k * f

    def first(cells: int, weights: int) -> list[tuple[int, tuple[int, ...], int]]:
        return [
            (1 << (i * k + t) | 1 << (weights + t * f + j), (), cells + i * f + j)
            for i, j, t in product(range(m), range(f), range(k))
        ]

    multiplies = [(0, (m * f + cell,), cell) for cell in range(m * f)]
    down = [
        (1 << (x + 2 * w + j * l + q), (i * f + j,), 2 * m * f + i * l + q)
        for i, q, j in product(range(m), range(l), range(f))
    ]
    products = (*first(0, x), *first(m * f, x + w), *multiplies, *down)
    return WideGame(x + 2 * w + f * l, products, (False,) * (2 * m * f) + (True,) * (m * l), widths)


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 1, 1, 1), (1, 1, 2, 1), (1, 1, 1, 2)])
@pytest.mark.parametrize("widths", [Widths(1, 2, 2, 1), Widths(1, 1, 1, 1), Widths(1, 2, 4, 2)])
def test_below_exact_optima_in_bytes(shape: tuple[int, int, int, int], widths: Widths) -> None:
    game, low, asked = gated_game(*shape, widths), 2 * widths.read + max(widths.hidden, widths.partial), 0
    for room in range(low, low + 3):
        optimum = game.least(room)
        for tied in gated(*shape).weighted(widths):
            for h in range(1, 5):
                if optimum is None or tied.work // h <= tied.slack:
                    continue
                segment = Segment(tied, h)
                lam, tau, _ = segment.choose(h)
                weight = (Fraction(lam) - Fraction(tau) * shape[3]) * shape[0] * shape[2]
                assert h * segment.phi(lam, tau) + weight - tied.taken_off - (h - 1) * room <= optimum + 1e-9
                asked += 1
    assert asked > 10


@pytest.mark.parametrize(("shape", "room"), [((4096, 64, 1500, 64), 1 << 15), ((3000, 40, 700, 100), 1 << 14)])
def test_bytes_prove_more_than_values_where_sums_are_wide(shape: tuple[int, int, int, int], room: int) -> None:
    values = gated_bound(gated(*shape), room // 2, 0)
    bounds = [gated_bound(tied, room // 2, 0) for tied in gated(*shape).weighted(WIDE)]
    best = max(bound.bytes for bound in bounds if bound is not None)
    assert values is not None and best > 1.03 * 2 * values.elements
    schedule = best_ffn_schedule(Ffn(*shape, gated=True), FastMemory(room, WIDE))
    assert schedule is not None and best <= schedule.bytes
    # no better than the even split, less what outputs are narrower in the end
    m, k, f, l = shape
    assert best < 2 * (2**0.5 * (k + l)) ** 2 * m * f / (room // 2)


@pytest.mark.parametrize(("k", "capacity"), [(64, 4096), (64, 16_384), (64, 60_000), (16, 2000), (200, 30_000)])
def test_below_schedules_of_larger_problems(k: int, capacity: int) -> None:
    ffn = Ffn(1024, k, 1500, k, gated=True)
    bound = gated_bound(gated(1024, k, 1500, k), capacity, -(10**9))
    assert bound is not None
    value, spec = bound.elements, bound.to_json()
    assert value <= lower_bound(ffn, capacity).elements <= in_values(best_ffn_schedule, ffn, capacity).elements
    h, m_f = spec["segments"], 1024 * 1500
    terms = h * Fraction(spec["phi"]) - (h - 1) * capacity
    weight = Fraction(spec["lambda"]) - 2 - Fraction(spec["tau"]) * k
    assert value - 1 < terms + weight * m_f <= value


@pytest.mark.parametrize(("k", "capacity"), [(64, 16_384), (16, 2000)])
def test_no_other_number_of_segments_proves_more(k: int, capacity: int) -> None:
    """What `_hopes` says of an h is never below what the h proves, so looking at the best few is enough."""
    chain = gated(1024, k, 1500, k)
    proved = {}
    for h, hope in _hopes(chain):
        cut = _cut(chain, h)
        if cut is not None:
            proved[h] = cut.bound(chain, capacity)
            assert proved[h] <= hope - (h - 1) * capacity
    bound = gated_bound(chain, capacity, -(10**9))
    assert bound is not None and bound.cut.bound(chain, capacity) == max(proved.values())
    assert gated_bound(chain, capacity, bound.elements) == bound
    assert gated_bound(chain, capacity, bound.elements + 1) is None


def test_it_matters_where_memory_is_large() -> None:
    ffn = Ffn(32768, 4096, 11008, gated=True)
    bound = lower_bound(ffn, 45_744_128)
    assert isinstance(bound.proof, GatedBound)
    assert bound.elements >= 766e6 > 1.2 * 634.9e6  # the bound without the tie says 634.9e6
    # no better than the even split: (sqrt 2 k + l)^2 m f / S
    assert bound.elements < (2**0.5 + 1) ** 2 * 4096**2 * 32768 * 11008 / 45_744_128
    values = [lower_bound(ffn, s).elements for s in range(20_000_000, 130_000_000, 27_000_000)]
    assert values == sorted(values, reverse=True)


def test_small_problems_do_without() -> None:
    assert gated_bound(gated(10, 10, 10, 10), 50, -(10**9)) is None
