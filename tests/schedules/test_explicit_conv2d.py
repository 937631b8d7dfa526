"""Convolution schedules: every one is replayed by the referee, and counted again by the checker of certificates."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pebble.cdag.products import conv2d_dag
from pebble.certificate import RefusedError, check
from pebble.certificate.statement import ClaimedWidths as WidthsOfChecker
from pebble.certificate.statement import read_workload
from pebble.certificate.upper_conv import check_conv
from pebble.errors import InfeasibleError
from pebble.families import family_of, lower_bound
from pebble.game import Game, Move, Pebbling, moves_cost
from pebble.game.referee import replay
from pebble.proof.certificate import FORMAT, VERSION, upper_claim, workload_statement
from pebble.reports.bound import bound_workload
from pebble.schedules.explicit.conv2d import ConvProduct, ConvSchedule, Passing
from pebble.schedules.explicit.conv2d_search import best_conv_schedule, conv_schedules
from pebble.schedules.explicit.gemm_search import best_gemm_schedule
from pebble.workloads import Conv2d, Gemm
from pebble.workloads.widths import FastMemory, Widths
from tests.rooms import in_values
from tests.schedules.conv_moves import conv_moves


@st.composite
def convolutions(draw: st.DrawFn) -> Conv2d:
    """Small ones, of any stride: windows overlap, touch or leave gaps."""
    kernel = draw(st.integers(1, 3))
    height, width = (kernel + draw(st.integers(0, 4)) for _ in range(2))
    batch, ins, outs = (draw(st.integers(1, 3)) for _ in range(3))
    return Conv2d(batch, ins, outs, height, width, kernel, draw(st.integers(1, 3)))


@st.composite
def tilings(draw: st.DrawFn) -> ConvSchedule:
    """Any tile, with anything that may pass; of a capacity that is set later."""
    conv = draw(convolutions())
    stays = draw(st.sampled_from(["outputs", "outputs", "inputs", "weights"]))
    extents = (conv.batch, conv.out_height, conv.out_width, conv.out_channels)
    images, rows, columns, channels = (draw(st.integers(1, most)) for most in extents)
    if stays == "inputs":
        columns, channels = conv.out_width, conv.out_channels
        rows = conv.out_height if images > 1 else rows
    elif stays == "weights":
        images, rows = conv.batch, conv.out_height
    elif draw(st.booleans()):
        rows, columns = conv.out_sides
    plain = ConvSchedule(conv, FastMemory.of_values(0, conv), stays, images, rows, columns, channels)
    return replace(plain, passing=draw(passings(plain))) if stays == "outputs" else plain


@st.composite
def passings(draw: st.DrawFn, plain: ConvSchedule) -> Passing:
    """What may pass from one tile of outputs to the next."""
    conv, shared = plain.conv, draw(st.sampled_from(["W", "X"]))
    turns = replace(plain, passing=Passing(shared)).turns
    if turns == 0:
        return Passing(shared)
    turned, smallest = 0, conv.out_channels - (plain.rounds - 1) * plain.channels
    if shared == "W":
        height = -(-conv.out_height // plain.rows)
        of_one, of_all = conv.out_height - (height - 1) * plain.rows, conv.batch - (plain.tiles - 1) * plain.images
        smallest = of_one if plain.images == 1 else of_all
    if shared == "X" or plain.images == 1 or (plain.rows, plain.columns) == conv.out_sides:
        turned = draw(st.integers(0, conv.in_channels if turns == 1 else conv.in_channels // 2))
    resident = draw(st.integers(0, conv.in_channels - turned * min(turns, 2)))
    return Passing(shared, resident, turned, draw(st.integers(1, smallest)) if turned else 0)


def played(schedule: ConvSchedule) -> None:
    """Legal, with the traffic that it claims, in the room that it claims."""
    c = schedule.conv
    sizes = (c.batch, c.in_channels, c.out_channels, c.height, c.width, c.kernel)
    game = Game.from_dag(conv2d_dag(*sizes, stride=c.stride), "in-place")
    moves = tuple(conv_moves(schedule))
    result = replay(game, Pebbling(game.variant, schedule.peak_elements, moves, moves_cost(game, moves)))
    assert result.loads == sum(schedule.loads.values())
    assert result.stores == sum(schedule.stores.values())
    assert most_held(moves, schedule.read_width, schedule.sum_width) <= schedule.memory.bytes
    assert most_held(moves, 1, 1) == result.per_sm[0].peak <= schedule.peak_elements


def most_held(moves: Sequence[Move], read: int, sums: int) -> int:
    """The most that is in fast memory at once, where an input counts ``read`` and an output ``sums``."""
    there: set[str] = set()
    held = most = 0
    for move in moves:
        name = move.node.split("+=")[0]
        width = sums if name.startswith("Y") else read
        if move.op in ("load", "compute") and name not in there:
            there.add(name)
            held += width
        elif move.op == "delete":
            there.remove(name)
            held -= width
        most = max(most, held)
    return most


@settings(max_examples=20, deadline=None)
@given(convolutions(), st.integers(3, 200))
def test_the_best_of_each_family_is_legal(conv: Conv2d, capacity: int) -> None:
    for schedule in in_values(conv_schedules, conv, capacity):
        if isinstance(schedule, ConvSchedule):
            played(schedule)
            assert schedule.peak_elements <= capacity
        upper_claim(read_workload(workload_statement(conv), "workload"), schedule)
        assert schedule.elements >= lower_bound(conv, capacity).elements


@settings(max_examples=20, deadline=None)
@given(convolutions(), st.integers(8, 600), st.sampled_from(["bf16", "fp8"]))
def test_the_best_of_each_family_is_legal_in_bytes(conv: Conv2d, size: int, dtype: str) -> None:
    """Sums in fp32; the certificate says the same bytes."""
    conv = replace(conv, dtype=dtype)
    memory = FastMemory(size, Widths.of(conv, 4))
    document = workload_statement(conv)
    for schedule in conv_schedules(conv, memory):
        if isinstance(schedule, ConvSchedule):
            played(schedule)
        claim = upper_claim(read_workload(document, "workload"), schedule)
        assert claim is not None and claim["bytes"] == schedule.bytes
        check({"format": FORMAT, "version": VERSION, "statement": {"workload": document}, "claims": [claim]})
        assert schedule.bytes >= family_of(conv).lower_bound(conv, size // memory.widths.read, memory=memory).bytes


@settings(max_examples=83, deadline=None)
@given(tilings(), st.integers(0, 60))
def test_any_tile_is_legal_and_counted(plain: ConvSchedule, more: int) -> None:
    schedule = replace(plain, memory=FastMemory.of_values(max(3, plain.own_capacity + more), plain.conv))
    played(schedule)
    claim = upper_claim(read_workload(workload_statement(schedule.conv), "workload"), schedule)
    assert claim["elements"] == schedule.elements
    assert claim["moved"]["peak_elements"] == schedule.peak_elements


@settings(max_examples=100, deadline=None)
@given(tilings(), st.integers(0, 60), st.integers(2, 9), st.integers(2, 9))
def test_any_tile_is_legal_in_bytes(plain: ConvSchedule, more: int, read: int, partial: int) -> None:
    """Of any two widths; the checker takes the tightest room, and not a byte less."""
    conv = plain.conv
    memory = FastMemory(1, Widths(read, max(read, partial), partial, 2))
    sides = (plain.stays, plain.images, plain.rows, plain.columns, plain.channels, plain.passing)
    tight = ConvSchedule(conv, memory, *sides).own_capacity
    schedule = ConvSchedule(conv, replace(memory, bytes=tight + more), *sides)
    played(schedule)
    size = {name: getattr(conv, name) for name in Conv2d.DIMENSIONS}
    claim = upper_claim(read_workload(workload_statement(conv), "workload"), schedule)
    assert claim is not None
    of = WidthsOfChecker(read, max(read, partial), partial, 2)
    traffic = check_conv(size, tight + more, claim["schedule"], "schedule", of)
    assert traffic.elements == schedule.elements
    assert traffic.peak == schedule.own_capacity + read * schedule.carried
    if not schedule.carried:
        with pytest.raises(RefusedError, match="bytes, the capacity is"):
            check_conv(size, tight - 1, claim["schedule"], "schedule", of)


@pytest.mark.parametrize(
    ("passing", "why"),
    [
        ({"turned": 3}, "two turns that follow"),
        ({"group": 3}, "group"),
        ({"group": 0}, "group"),
        ({"resident": 5}, "resident"),
        ({"shared": "X"}, "a step that does not occur"),
        ({"shared": "Y"}, "shared"),
    ],
)
def test_what_cannot_pass_is_refused(passing: dict[str, Any], why: str) -> None:
    size = {"batch": 8, "in_channels": 4, "out_channels": 6, "height": 5, "width": 5, "kernel": 3, "stride": 1}
    fields = {"shared": "W", "resident": 0, "turned": 2, "group": 2}
    schedule = {"kind": "convolution", "stays": "outputs", "tile": [3, 3, 3, 6], "kept": 0, "passing": fields}
    check_conv(size, 10_000, schedule, "schedule")
    with pytest.raises(RefusedError, match=why):
        check_conv(size, 10_000, schedule | {"passing": fields | passing}, "schedule")
    with pytest.raises(RefusedError, match="whole ones"):
        check_conv(size, 10_000, schedule | {"tile": [3, 2, 3, 6]}, "schedule")
    check_conv(size, 10_000, schedule | {"tile": [1, 3, 3, 6]}, "schedule")  # groups of rows
    with pytest.raises(RefusedError, match="group"):
        check_conv(size, 10_000, schedule | {"tile": [1, 2, 3, 6]}, "schedule")  # the last tile has one row


@pytest.mark.parametrize(("kibibytes", "before"), [(192, 12_025_856), (1024, 6_062_080)])
def test_what_passes_saves_a_tenth(kibibytes: int, before: int) -> None:
    """A layer of which neither outputs nor weights fit: equal tiles with nothing kept moved this much."""
    conv = Conv2d(32, 256, 256, 16, 16, 3)
    best = in_values(best_conv_schedule, conv, kibibytes * 512)
    assert isinstance(best, ConvSchedule) and best.passing.turned > 0
    assert best.elements < 0.95 * before


def test_sums_in_fp32_share_the_memory_with_narrow_inputs() -> None:
    """Counting each value at the widest width, 15.66 MB was the best."""
    conv = Conv2d(32, 256, 256, 16, 16, 3)
    result = bound_workload(conv, cache="1MiB", accumulators="fp32")
    assert result.upper is not None and result.upper.bytes < 12_500_000
    assert result.certificate()["claims"][-1]["claim"] == "upper bound in bytes"


@settings(max_examples=60, deadline=None)
@given(convolutions(), st.integers(3, 150), st.integers(1, 60))
def test_more_room_never_costs_more(conv: Conv2d, capacity: int, more: int) -> None:
    assert (
        in_values(best_conv_schedule, conv, capacity + more).elements
        <= in_values(best_conv_schedule, conv, capacity).elements
    )


def test_without_overlap_it_is_a_product() -> None:
    conv = Conv2d(8, 64, 96, 28, 28, 2, stride=2)
    assert conv.overlap == 1
    gemm = in_values(best_gemm_schedule, Gemm(conv.pixels, 96, conv.taps), 6000)
    best = in_values(best_conv_schedule, conv, 6000)
    assert best.elements <= gemm.elements
    assert any(
        isinstance(s, ConvProduct) and s.elements == gemm.elements for s in in_values(conv_schedules, conv, 6000)
    )


@pytest.mark.parametrize("kibibytes", [192, 1024])
def test_overlap_is_loaded_once_where_it_fits(kibibytes: int) -> None:
    """A layer of ResNet: far below its product of pixels and taps, whose first operand repeats values."""
    conv = Conv2d(32, 64, 64, 58, 58, 3)
    best = in_values(best_conv_schedule, conv, kibibytes * 512)
    assert best.elements == conv.compulsory_elements
    assert (
        best.elements < 0.4 * in_values(best_gemm_schedule, Gemm(conv.pixels, 64, conv.taps), kibibytes * 512).elements
    )


@settings(max_examples=30, deadline=None)
@given(convolutions())
def test_everything_fits_at_last(conv: Conv2d) -> None:
    enough = conv.compulsory_elements + conv.height * conv.width + conv.taps
    assume(conv.overlap > 1)
    assert in_values(best_conv_schedule, conv, enough).elements == conv.compulsory_elements


def test_capacity_below_three() -> None:
    with pytest.raises(InfeasibleError, match="at least 3"):
        in_values(best_conv_schedule, Conv2d(1, 1, 1, 3, 3, 2), 2)
