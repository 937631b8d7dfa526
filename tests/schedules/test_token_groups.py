"""Tokens in two groups: played move by move, counted again by the checker, and found where that moves less."""

import copy
import random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pebble.certificate import RefusedError
from pebble.certificate.schedules import Memory, traffic_bytes, traffic_of
from pebble.certificate.statement import ClaimedWidths as WidthsOfChecker
from pebble.certificate.statement import read_workload
from pebble.errors import InfeasibleError
from pebble.proof.certificate import upper_claim, workload_statement
from pebble.schedules.explicit.ffn import best_ffn_schedule, ffn_chain, ffn_schedules, fused_ffn
from pebble.schedules.explicit.fused import FusedSchedule, family_of_plan
from pebble.schedules.explicit.token_groups import FAMILY, best_groups, in_groups
from pebble.workloads import Ffn
from pebble.workloads.widths import FastMemory, Widths
from tests.rooms import in_values
from tests.schedules.fused_replay import replay

WIDTHS = [Widths(2, 4, 4, 2), Widths(1, 4, 4, 2), Widths(4, 4, 2, 2)]
side = st.integers(1, 6)


def groups_of(ffn: Ffn, tokens: int, memory: FastMemory, rnd: random.Random) -> FusedSchedule:
    """Any schedules of the first tokens and of the others."""
    sizes = (tokens, ffn.tokens - tokens)
    parts = [Ffn(count, ffn.d_model, ffn.hidden, ffn.d_out, ffn.gated) for count in sizes]
    try:
        schedules = [rnd.choice(ffn_schedules(part, memory)) for part in parts]
        return in_groups(ffn, tuple(zip(sizes, schedules, strict=True)))
    except InfeasibleError:
        assume(False)
        raise


def claimed(schedule: FusedSchedule) -> dict[str, Any]:
    """As the checker takes it."""
    claim: dict[str, Any] = upper_claim(statement(schedule.workload), schedule)
    return claim


def statement(ffn: Any) -> Any:
    return read_workload(workload_statement(ffn), "workload")


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 8), side, side, side, st.booleans(), st.integers(6, 80), st.randoms(use_true_random=False))
def test_any_groups_are_legal_and_counted(
    m: int, k: int, f: int, l: int, gated: bool, capacity: int, rnd: random.Random
) -> None:
    ffn = Ffn(m, k, f, l, gated)
    schedule = groups_of(ffn, rnd.randint(1, m - 1), FastMemory.of_values(capacity, ffn), rnd)
    assert replay(schedule) <= schedule.peak_elements <= capacity
    assert claimed(schedule)["elements"] == schedule.elements
    assert sum(tokens for tokens, _ in schedule.groups) == m


@settings(max_examples=20, deadline=None)
@given(
    st.integers(2, 8), side, side, side, st.booleans(), st.sampled_from(WIDTHS), st.integers(40, 400),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_bytes_of_groups(
    m: int, k: int, f: int, l: int, gated: bool, widths: Widths, size: int, rnd: random.Random
) -> None:
    """The checker counts the bytes of loads and stores of both groups at once."""
    ffn = Ffn(m, k, f, l, gated)
    schedule = groups_of(ffn, rnd.randint(1, m - 1), FastMemory(size, widths), rnd)
    of = WidthsOfChecker(widths.read, widths.hidden, widths.partial, widths.written)
    spec = claimed(schedule)["schedule"]
    traffic = traffic_of(statement(ffn), Memory(size, of), spec, "schedule")
    assert traffic_bytes(statement(ffn), traffic, of) == schedule.bytes


def test_a_band_that_is_full_and_two_kernels_for_the_others() -> None:
    """In bands of rows alone, or in two kernels for all tokens, 2,030,699,864 values move."""
    best = in_values(best_ffn_schedule, Ffn(8192, 8192, 28672), 40 * 2**19)
    assert best.family == FAMILY
    assert [(tokens, group.family) for tokens, group in best.groups] == [(3656, "hidden block"), (4536, "unfused")]
    assert best.elements <= 1_997_174_704
    assert claimed(best)["elements"] == best.elements


def test_a_panel_and_two_phases_for_the_others() -> None:
    """In bands of rows alone a gated network moves 268,388,751 values."""
    best = in_values(best_ffn_schedule, Ffn(8192, 1600, 6400, gated=True), 6 * 2**19)
    assert [(tokens, group.family) for tokens, group in best.groups] == [(982, "row panel"), (7210, "two phases")]
    assert best.elements <= 266_285_270
    assert claimed(best)["elements"] == best.elements


@pytest.mark.slow
def test_the_same_at_a_small_scale_is_played() -> None:
    """8192x(8192,28672) at 40 MiB, all sides 1/128: what the search builds is legal, value by value."""
    ffn, capacity = Ffn(64, 64, 224), 1280
    memory = FastMemory.of_values(capacity, ffn)

    def others(rest: Ffn, below: float) -> FusedSchedule:
        return next(s for s in ffn_schedules(rest, memory) if s.family == "unfused")

    found = best_groups(
        ffn, ffn_chain(ffn), memory, 10**9, lambda some, plan: fused_ffn(some, family_of_plan(plan), plan), others
    )
    assert found is not None
    assert replay(found) <= found.peak_elements <= capacity
    assert claimed(found)["elements"] == found.elements


def test_refused() -> None:
    """Tokens that are too many or too few, groups in groups, and groups of what is no network."""
    rnd = random.Random(1)
    ffn = Ffn(6, 3, 4, 3)
    schedule = groups_of(ffn, 2, FastMemory.of_values(30, ffn), rnd)
    memory, spec = Memory(30), claimed(schedule)["schedule"]
    assert traffic_of(statement(ffn), memory, spec, "schedule").elements == schedule.elements

    def refused(changed: dict[str, Any], workload: Any, why: str) -> None:
        with pytest.raises(RefusedError, match=why):
            traffic_of(statement(workload), memory, changed, "schedule")

    refused(spec, Ffn(7, 3, 4, 3), "tokens of all groups together")
    refused(spec, Ffn(5, 3, 4, 3), "tokens of all groups together")
    inside = copy.deepcopy(spec)
    inside["groups"][0]["schedule"] = spec
    refused(inside, ffn, "no groups of their own")
    less = {**spec, "groups": spec["groups"][:1]}
    refused(less, ffn, "groups")
