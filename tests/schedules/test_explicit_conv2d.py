"""Convolution schedules: every one is replayed by the referee, and counted again by the checker of certificates."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pebble.cdag.conv2d import conv2d_dag
from pebble.certificate.statement import read_workload
from pebble.errors import InfeasibleError
from pebble.families import lower_bound
from pebble.game import Game, Pebbling, moves_cost
from pebble.game.referee import replay
from pebble.proof.certificate import workload_statement
from pebble.proof.upper import upper_claim
from pebble.schedules.explicit.conv2d import ConvProduct, ConvSchedule, best_conv_schedule, conv_schedules
from pebble.schedules.explicit.gemm_search import best_gemm_schedule
from pebble.workloads import Conv2d, Gemm
from tests.schedules.conv_moves import conv_moves


@st.composite
def convolutions(draw: st.DrawFn) -> Conv2d:
    """Small ones, of any stride: windows overlap, touch or leave gaps."""
    kernel = draw(st.integers(1, 3))
    height, width = (kernel + draw(st.integers(0, 4)) for _ in range(2))
    batch, ins, outs = (draw(st.integers(1, 3)) for _ in range(3))
    return Conv2d(batch, ins, outs, height, width, kernel, draw(st.integers(1, 3)))


def played(schedule: ConvSchedule) -> None:
    """Legal, with the traffic that it claims, in the room that it claims."""
    c = schedule.conv
    sizes = (c.batch, c.in_channels, c.out_channels, c.height, c.width, c.kernel)
    game = Game.from_dag(conv2d_dag(*sizes, stride=c.stride), "in-place")
    moves = tuple(conv_moves(schedule))
    found = replay(game, Pebbling(game.variant, schedule.capacity, moves, moves_cost(game, moves)))
    assert found.loads == sum(schedule.loads.values())
    assert found.stores == sum(schedule.stores.values())
    assert found.per_sm[0].peak <= schedule.peak_elements <= schedule.capacity


@settings(max_examples=60, deadline=None)
@given(convolutions(), st.integers(3, 200))
def test_the_best_of_each_family_is_legal(conv: Conv2d, capacity: int) -> None:
    for schedule in conv_schedules(conv, capacity):
        if isinstance(schedule, ConvSchedule):
            played(schedule)
        upper_claim(read_workload(workload_statement(conv), "workload"), schedule)
        assert schedule.elements >= lower_bound(conv, capacity).elements


@settings(max_examples=150, deadline=None)
@given(convolutions(), st.sampled_from(["outputs", "inputs", "weights"]), st.integers(0, 60), st.data())
def test_any_tile_is_legal_and_counted(conv: Conv2d, stays: str, more: int, data: st.DataObject) -> None:
    images, rows, columns, channels = (
        data.draw(st.integers(1, most)) for most in (conv.batch, conv.out_height, conv.out_width, conv.out_channels)
    )
    if stays == "inputs":
        columns, channels = conv.out_width, conv.out_channels
        rows = conv.out_height if images > 1 else rows
    elif stays == "weights":
        images, rows = conv.batch, conv.out_height
    tight = ConvSchedule(conv, 0, stays, images, rows, columns, channels).own_peak
    schedule = ConvSchedule(conv, max(3, tight + more), stays, images, rows, columns, channels)
    played(schedule)
    claim = upper_claim(read_workload(workload_statement(conv), "workload"), schedule)
    assert claim["elements"] == schedule.elements
    assert claim["moved"]["peak_elements"] == schedule.peak_elements


@settings(max_examples=60, deadline=None)
@given(convolutions(), st.integers(3, 150), st.integers(1, 60))
def test_more_room_never_costs_more(conv: Conv2d, capacity: int, more: int) -> None:
    assert best_conv_schedule(conv, capacity + more).elements <= best_conv_schedule(conv, capacity).elements


def test_without_overlap_it_is_a_product() -> None:
    conv = Conv2d(8, 64, 96, 28, 28, 2, stride=2)
    assert conv.overlap == 1
    gemm = best_gemm_schedule(Gemm(conv.pixels, 96, conv.taps), 6000)
    best = best_conv_schedule(conv, 6000)
    assert best.elements <= gemm.elements
    assert any(isinstance(s, ConvProduct) and s.elements == gemm.elements for s in conv_schedules(conv, 6000))


@pytest.mark.parametrize("kibibytes", [192, 1024])
def test_overlap_is_loaded_once_where_it_fits(kibibytes: int) -> None:
    """A layer of ResNet: far below its product of pixels and taps, whose first operand repeats values."""
    conv = Conv2d(32, 64, 64, 58, 58, 3)
    best = best_conv_schedule(conv, kibibytes * 512)
    assert best.elements == conv.compulsory_elements
    assert best.elements < 0.4 * best_gemm_schedule(Gemm(conv.pixels, 64, conv.taps), kibibytes * 512).elements


@settings(max_examples=30, deadline=None)
@given(convolutions())
def test_everything_fits_at_last(conv: Conv2d) -> None:
    enough = conv.compulsory_elements + conv.height * conv.width + conv.taps
    assume(conv.overlap > 1)
    assert best_conv_schedule(conv, enough).elements == conv.compulsory_elements


def test_capacity_below_three() -> None:
    with pytest.raises(InfeasibleError, match="at least 3"):
        best_conv_schedule(Conv2d(1, 1, 1, 3, 3, 2), 2)
