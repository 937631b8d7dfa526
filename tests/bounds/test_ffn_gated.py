"""The bound that ties gate and up cells: its minimum by sampling, and schedules of small and large problems."""

import random
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pebble.bounds.ffn import TIED, ffn_lower_bound
from pebble.bounds.ffn_gated import _Segment, gated_bound, gated_cuts

from pebble.bounds import ffn_gated
from pebble.schedules.explicit.ffn import best_ffn_schedule
from pebble.workloads import Ffn


def touched(m: int, k: int, f: int, l: int, t: float, e: float, v1: float, v2: float) -> float:
    """X, written down once more: cells, and the least inputs and outputs under Loomis and Whitney and the floors."""

    def spread(v: float, cells: float, p: int) -> float:
        return v * (2 / cells**0.5 if cells <= p * p else 1 / p + p / cells) if v else 0.0

    return t + spread(v1, t, min(m, 2 * f)) + spread(v2, e, min(m, f))


@pytest.mark.parametrize("shape", [(512, 64, 400, 64), (300, 20, 900, 70), (40, 100, 5000, 30), (2000, 8, 60, 90)])
@pytest.mark.parametrize("segments", [2, 7, 60])
def test_no_segment_is_below_phi(shape: tuple[int, int, int, int], segments: int) -> None:
    m, k, f, l = shape
    products = m * f * (2 * k + l) // segments
    segment = _Segment(m, k, f, l, products)
    lam, tau = segment.choose(segments, l)
    phi = segment.phi(lam, tau)
    rng = random.Random(1)
    least = float("inf")
    for _ in range(20_000):
        e = m * f * rng.random() ** 3
        t = e + m * f * rng.random() ** 3
        low, high = max(0.0, products - k * t), min(float(products), l * e)
        if low <= high:
            v2 = rng.choice((low, high, rng.uniform(low, high)))
            value = touched(m, k, f, l, t, e, products - v2, v2) - lam * min(e, t - e) + tau * v2
            least = min(least, value)
    assert phi <= least * (1 + 1e-12)
    t, e = (a.ravel() for a in np.meshgrid(np.geomspace(1, 2 * m * f, 500), np.linspace(0.005, 1, 200)))
    e = np.minimum(t * e, m * f)
    grid = float(segment.below(t, t, e, e, lam, tau).min())
    assert phi <= grid <= phi * 1.05  # and it is not far below, either


@settings(max_examples=20, deadline=None)
@given(*[st.integers(1, 12)] * 4, st.integers(3, 60))
def test_below_schedules_of_small_problems(m: int, k: int, f: int, l: int, capacity: int) -> None:
    cuts = [
        (h, segment.phi(lam, tau), Fraction(lam), Fraction(tau))
        for h in (2, 3, 6)
        if (segment := _Segment(m, k, f, l, max(1, m * f * (2 * k + l) // h)))
        for lam, tau in [segment.choose(h, l)]
        if m * f * (2 * k + l) >= h
    ]
    best = best_ffn_schedule(Ffn(m, k, f, l, gated=True), capacity).elements
    for h, phi, lam, tau in cuts:
        assert h * phi + (lam - 2 - tau * l) * m * f - (h - 1) * capacity <= best + 1e-6


@pytest.mark.parametrize(("k", "capacity"), [(64, 4096), (64, 16_384), (64, 60_000), (16, 2000), (200, 30_000)])
def test_below_schedules_of_larger_problems(k: int, capacity: int) -> None:
    ffn = Ffn(1024, k, 1500, k, gated=True)
    value, parameters = gated_bound(1024, k, 1500, k, capacity)
    assert value <= ffn_lower_bound(ffn, capacity).elements <= best_ffn_schedule(ffn, capacity).elements
    h, m_f = parameters["segments"], 1024 * 1500
    terms = h * Fraction(parameters["phi"]) - (h - 1) * capacity
    weight = Fraction(parameters["lambda"]) - 2 - Fraction(parameters["tau"]) * k
    assert value - 1 < terms + weight * m_f <= value


def test_it_matters_where_memory_is_large() -> None:
    ffn = Ffn(32768, 4096, 11008, gated=True)
    start = time.perf_counter()
    bound = ffn_lower_bound(ffn, 45_744_128)
    assert time.perf_counter() - start < 5
    assert bound.method == TIED
    assert bound.elements >= 766e6 > 1.2 * 634.9e6  # the bound without the tie says 634.9e6
    # no better than the even split: (sqrt 2 k + l)^2 m f / S
    assert bound.elements < (2**0.5 + 1) ** 2 * 4096**2 * 32768 * 11008 / 45_744_128
    values = [ffn_lower_bound(ffn, s).elements for s in range(20_000_000, 130_000_000, 10_000_000)]
    assert values == sorted(values, reverse=True)


def test_small_problems_do_without() -> None:
    assert gated_cuts(10, 10, 10, 10) == ()
    assert gated_bound(10, 10, 10, 10, 50) == (0, {})
    assert ffn_gated._LEAST_CELLS <= 1024 * 1500
