"""The bound that ties gate and up cells: its minimum by sampling, and schedules of small and large problems."""

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.bounds import Chain, GatedBound
from pebble.bounds.gated import Segment, _cut, _hopes, gated_bound
from pebble.families import lower_bound
from pebble.schedules.explicit.ffn import best_ffn_schedule
from pebble.workloads import Ffn
from tests.rooms import in_values


def gated(m: int, k: int, f: int, l: int) -> Chain:
    return Chain(m, k, f, l, m * f, gated=True)


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
    segment = Segment(gated(m, k, f, l), segments)
    lam, tau, gain = segment.choose(segments)
    phi = segment.phi(lam, tau)
    assert segments * phi + (lam - tau * l) * m * f <= gain * (1 + 1e-12)
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
    grid = float(segment.below(t, t, e, e)(lam, tau).min())
    assert phi <= grid <= phi * 1.05  # and it is not far below, either


@settings(max_examples=20, deadline=None)
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
    values = [lower_bound(ffn, s).elements for s in range(20_000_000, 130_000_000, 10_000_000)]
    assert values == sorted(values, reverse=True)


def test_small_problems_do_without() -> None:
    assert gated_bound(gated(10, 10, 10, 10), 50, -(10**9)) is None
