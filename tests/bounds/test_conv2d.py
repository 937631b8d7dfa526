"""Convolution bounds: the geometry by brute force, and the GEMM that a 1 x 1 kernel is."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pebble.bounds import Box
from pebble.bounds.box import FRACTION_BITS
from pebble.cdag.products import conv2d_dag
from pebble.errors import InfeasibleError
from pebble.families import family_of, lower_bound
from pebble.workloads import Conv2d, Gemm
from tests.brute_force import brute_force


@pytest.mark.parametrize(
    "conv", [Conv2d(1, 1, 1, 3, 3, 2), Conv2d(1, 1, 2, 2, 3, 2), Conv2d(1, 2, 1, 2, 3, 2), Conv2d(1, 1, 1, 2, 6, 2, 2)]
)
def test_every_set_of_products_touches_at_least_x(conv: Conv2d) -> None:
    products = [
        ((c, y * conv.stride + r, x * conv.stride + s), (o, c, r, s), (o, y, x))
        for o in range(conv.out_channels)
        for y in range(conv.out_height)
        for x in range(conv.out_width)
        for c in range(conv.in_channels)
        for r in range(conv.kernel)
        for s in range(conv.kernel)
    ]
    assert len(products) == conv.multiply_adds <= 16
    for chosen in itertools.product((False, True), repeat=len(products)):
        picked = list(itertools.compress(products, chosen))
        touched = sum(len(set(column)) for column in zip(*picked, strict=True))
        box = Box(conv.pixels, conv.out_channels, conv.taps, conv.overlap)
        assert box.touched(len(picked)) <= touched << FRACTION_BITS
    assert touched == conv.compulsory_elements


@settings(max_examples=60, deadline=None)
@given(*[st.integers(1, 12)] * 4, st.integers(3, 60))
def test_a_kernel_of_one_is_a_gemm(pixels: int, channels: int, taps: int, width: int, capacity: int) -> None:
    conv = Conv2d(1, taps, channels, pixels, width, 1)
    shape = (pixels * width, channels, taps)
    assert lower_bound(conv, capacity).elements <= lower_bound(Gemm(*shape), capacity).elements


@settings(max_examples=60, deadline=None)
@given(*[st.integers(1, 6)] * 6, st.integers(1, 3), st.integers(3, 60))
def test_falls_with_capacity(b: int, c: int, o: int, h: int, w: int, k: int, stride: int, capacity: int) -> None:
    assume(k <= min(h, w))
    conv = Conv2d(b, c, o, h, w, k, stride)
    more = lower_bound(conv, capacity + 1).elements
    assert conv.compulsory_elements <= more <= lower_bound(conv, capacity).elements


def test_below_brute_force() -> None:
    for capacity in (3, 4):
        optimum = brute_force(conv2d_dag(1, 1, 1, 1, 3, 1), capacity, "in-place")
        assert optimum is not None
        assert lower_bound(Conv2d(1, 1, 1, 1, 3, 1), capacity).elements <= optimum


def test_large_layer_and_its_published_bound() -> None:
    layer = Conv2d(32, 256, 256, 56, 56, 3)
    assert lower_bound(layer, 6 * 2**19).method == "compulsory"
    bound = lower_bound(layer, 1000)
    published = {f.name: f.elements for f in family_of(layer).published(layer, 1000)}
    assert published["compulsory"] == layer.compulsory_elements
    # inputs at the border stand for fewer products than the nine of the formula
    assert 1.02 * published["seven-nested-loops"] < bound.elements < 1.03 * published["seven-nested-loops"]
    assert bound.bytes == 2 * bound.elements
    assert bound.certificate["overlap"] == 9


def test_too_small() -> None:
    with pytest.raises(InfeasibleError, match="at least 3"):
        lower_bound(Conv2d(1, 1, 1, 3, 3, 2), 2)
