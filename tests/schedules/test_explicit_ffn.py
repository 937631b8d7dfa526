"""FFN schedules: every one is played move by move, and the best beat the figures of other tools."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.errors import InfeasibleError
from pebble.schedules.explicit.chain import SIDES, Chain
from pebble.schedules.explicit.chain_search import best_chain_plan
from pebble.schedules.explicit.ffn import best_ffn_schedule, ffn_schedules
from pebble.workloads import Ffn
from tests.schedules.fused_replay import replay

side = st.integers(1, 7)


@settings(max_examples=80, deadline=None)
@given(side, side, side, side, st.booleans(), st.integers(3, 80))
def test_every_family_is_legal(m: int, k: int, f: int, l: int, gated: bool, capacity: int) -> None:
    schedules = ffn_schedules(Ffn(m, k, f, l, gated), capacity)
    for schedule in schedules:
        assert replay(schedule) <= schedule.peak_elements <= capacity
        assert schedule.elements >= schedule.workload.compulsory_elements
    assert [s.bytes for s in schedules] == sorted(s.bytes for s in schedules)


def test_mixed_bands_are_played_too() -> None:
    """Bands of different rules, parts that stay between blocks, values that stay between bands."""
    schedule = next(s for s in ffn_schedules(Ffn(16, 8, 22, 8), 89) if s.family == "bands of rows")
    assert schedule.plan is not None
    bands = [band for band, _ in schedule.plan.runs]
    assert len({(b.extent, b.blocks) for b in bands}) > 1
    assert replay(schedule) <= 89


@pytest.mark.parametrize(
    ("mebibytes", "at_most", "other_tools"),
    [(6, 993.6e6, 1001.4e6), (40, 367.4e6, 415.3e6), (50, 329.97e6, 330.0e6)],
)
def test_beats_other_tools(mebibytes: int, at_most: float, other_tools: float) -> None:
    best = best_ffn_schedule(Ffn(8192, 4096, 11008), mebibytes * 2**19)
    assert best.elements <= at_most < other_tools
    assert best.bytes == 2 * best.elements
    assert best.peak_elements <= mebibytes * 2**19


def test_families_at_40_mib() -> None:
    found = {s.family: s.elements for s in ffn_schedules(Ffn(8192, 4096, 11008), 40 * 2**19)}
    # four passes over the weights of 2048 rows each; what is free keeps weights from pass to pass
    assert found["row panel"] == 4 * 2 * 4096 * 11008 + 2 * 8192 * 4096 - 3 * (40 * 2**19 - 2048 * 8193 - 1)
    assert set(found) == {
        "row panel",
        "column panel",
        "hidden block",
        "Y stationary",
        "bands of rows",
        "bands of hidden units",
        "unfused",
    }


def test_gated_spills_a_band_where_that_pays() -> None:
    ffn = Ffn(8192, 4096, 11008, gated=True)
    found = {s.family: s for s in ffn_schedules(ffn, 50 * 2**19)}
    best = found["bands of rows"]
    assert best.elements < 436.1e6 < found["row panel"].elements < found["unfused"].elements
    assert best.plan is not None
    assert best.loads["H"] == best.stores["H"] == sum(b.extent * b.spilled for b in best.plan.bands) > 0


def test_what_fits_is_compulsory() -> None:
    ffn = Ffn(8192, 768, 3072)
    best = best_ffn_schedule(ffn, 40 * 2**19)
    assert best.elements == ffn.compulsory_elements == 17_301_504
    assert best.name.startswith("compulsory")
    assert best.to_json()["stores_elements"] == {"Y": 8192 * 768}


def test_gated_needs_room_for_two_cells() -> None:
    gated, plain = Ffn(6, 4, 9, 4, gated=True), Ffn(6, 4, 9, 4)
    for capacity in range(3, 60):
        assert best_ffn_schedule(gated, capacity).elements > best_ffn_schedule(plain, capacity).elements
    assert best_ffn_schedule(gated, 3).family == "unfused"
    assert len(best_ffn_schedule(gated, 3).kernels) == 4


def test_output_of_another_width() -> None:
    best = best_ffn_schedule(Ffn(64, 16, 32, 8, dtype="fp8"), 10_000)
    assert best.bytes == 64 * 16 + 16 * 32 + 32 * 8 + 2 * 64 * 8


def test_too_small() -> None:
    with pytest.raises(InfeasibleError, match="at least 3"):
        best_ffn_schedule(Ffn(2, 2, 2), 2)
    with pytest.raises(InfeasibleError, match="at least 3"):
        best_chain_plan(Chain(2, 2, 2, 2), SIDES[0], 2)
