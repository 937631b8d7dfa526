"""Attention in two kernels between which the maximum and sum of each row pass: played, and counted by the checker."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pebble.certificate import RefusedError
from pebble.certificate.schedules import Memory, check_upper_bytes, traffic_of
from pebble.certificate.statement import read_workload
from pebble.families import family_of, lower_bound
from pebble.proof.certificate import upper_claim, workload_statement
from pebble.reports.bound import bound_workload
from pebble.schedules.explicit.attention import (
    FAMILY,
    RowState,
    _with_row_state,
    attention_schedules,
    best_attention_schedule,
    best_row_state,
)
from pebble.schedules.explicit.moves import gemm_moves
from pebble.workloads import Attention, Gemm
from pebble.workloads.widths import FastMemory, Widths
from tests.rooms import in_values
from tests.schedules.fused_replay import replay as replay_fused

WIDTHS = [Widths(2, 4, 4, 2), Widths(1, 4, 4, 2), Widths(4, 4, 4, 2), Widths(2, 4, 8, 2)]
side = st.integers(1, 9)


def replay(both: RowState, memory: FastMemory) -> None:
    """Every move, each value at its width: scores complete when stored, a row's state there while it is needed."""
    widths, (first, last) = memory.widths, both.kernels
    each = max(widths.hidden, widths.partial)
    m, f, k, l = first.gemm.m, first.gemm.n, first.gemm.k, last.gemm.n
    traffic, stored, states = 0, set(), set()
    for kernel, terms, initialised in ((first, k, widths.hidden), (last, f, widths.partial)):
        cells, per_row = {(i, j): terms for i in range(m) for j in range(kernel.gemm.n)}, Counter[int]()
        red: set[tuple[str, tuple[int, ...]]] = set()
        state: set[int] = set()
        complete = widths.read if kernel is first else widths.written

        def width(
            name: str,
            index: tuple[int, ...],
            cells: dict[tuple[int, int], int] = cells,
            whole: tuple[int, int, int] = (terms, initialised, complete),
        ) -> int:
            if name != "C":
                return widths.read
            return whole[2] if cells[index] in (0, whole[0]) else whole[1]

        for op, name, index in gemm_moves(kernel):
            if op == "compute":
                i, j, _ = index
                red.add(("C", (i, j)))
                cells[i, j] -= 1
                per_row[i] += 1
                if kernel is first and not cells[i, j]:
                    state.add(i)  # the score is complete: maximum and sum of its row
                assert kernel is first or i in state
            else:
                traffic += width(name, index) if op in ("load", "store") else 0
                if kernel is first and op == "store" and not cells[index]:
                    stored.add(index)
                if kernel is last and name == "A" and op == "load":
                    assert index in stored
                    if index[0] not in state:
                        assert index[0] in states
                        traffic, state = traffic + 2 * each, state | {index[0]}
                (red.discard if op == "delete" else red.add)((name, index))
            held = sum(width(*item) for item in red) + 2 * each * len(state)
            assert held <= memory.bytes
            assert memory.holds(len(red) + 2 * len(state)) and len(red) + 2 * len(state) <= both.peak_elements
            for i in [i for i in state if per_row[i] == terms * kernel.gemm.n]:
                state.remove(i)
                if kernel is first:
                    traffic, states = traffic + 2 * each, states | {i}
        assert not state and not any(cells.values())
    assert len(stored) == m * f and l == last.gemm.n
    assert traffic == both.bytes


@settings(max_examples=20, deadline=None)
@given(side, side, side, side, st.integers(20, 500), st.sampled_from(WIDTHS), st.none() | st.integers(5, 120))
def test_every_move_is_legal_and_counted(
    m: int, k: int, f: int, l: int, size: int, widths: Widths, values: int | None
) -> None:
    memory = FastMemory(size, widths, values)
    both = best_row_state(Gemm(m, f, k), Gemm(m, l, f), memory)
    if both is not None:
        replay(both, memory)


@st.composite
def heads(draw: st.DrawFn) -> Attention:
    groups = draw(st.integers(1, 2))
    return Attention(
        draw(side), draw(side), draw(side), draw(side), heads=groups * draw(st.integers(1, 2)), kv_heads=groups,
        softmax=draw(st.sampled_from(["online", "strict"])),
    )  # fmt: skip


@settings(max_examples=17, deadline=None)
@given(heads(), st.integers(20, 300))
def test_the_checker_counts_the_same(attention: Attention, size: int) -> None:
    memory = FastMemory(size, Widths.of(attention, 4))
    result = _with_row_state(attention, memory, True)
    assume(result)
    workload = read_workload(workload_statement(attention), "workload")
    claim = upper_claim(workload, result[0])
    assert claim is not None
    check_upper_bytes(workload, claim, "claim")
    for wrong in ({"bytes": claim["bytes"] - 1}, {"capacity_bytes": 15}):
        with pytest.raises(RefusedError):
            check_upper_bytes(workload, claim | wrong, "claim")
    assert result[0].bytes >= family_of(attention).lower_bound(attention, size // 2, memory=memory).bytes


@settings(max_examples=20, deadline=None)
@given(heads(), st.integers(5, 150), st.booleans())
def test_in_values(attention: Attention, capacity: int, state: bool) -> None:
    """Every move is legal and counted, by the checker too."""
    results = [s for s in in_values(attention_schedules, attention, capacity, state) if s.family == FAMILY]
    assume(results)
    assert replay_fused(results[0]) <= results[0].peak_elements <= capacity
    assert results[0].elements >= lower_bound(attention, capacity).elements
    if state:
        statement = read_workload(workload_statement(attention), "workload")
        claim = upper_claim(statement, results[0])
        assert claim is not None
        assert claim["elements"] == results[0].elements
        with pytest.raises(RefusedError, match="the capacity is"):
            traffic_of(statement, Memory(claim["moved"]["peak_elements"] - 1), claim["schedule"], "schedule")


def test_long_vectors_need_no_kernel_for_the_softmax() -> None:
    """Before: 1,043 MB of 8192 queries, 5,543 of sixteen heads that share keys, with a softmax of its own."""
    best_of_values = in_values(best_attention_schedule, Attention(8192, 8192, 512), 64 << 9)
    assert best_of_values.family == FAMILY and best_of_values.elements < 0.9 * 938_601_320
    for attention, kib, most in (
        (Attention(8192, 8192, 256), 96, 785e6),
        (Attention(4096, 4096, 576, 512, heads=16, kv_heads=1), 228, 4520e6),
    ):
        best = best_attention_schedule(attention, FastMemory(kib << 10, Widths(2, 4, 4, 2)))
        assert best.family == FAMILY
        assert best.bytes < most


def test_certified() -> None:
    result = bound_workload(Attention(2048, 2048, 256), cache="96KiB", accumulators="fp32")
    assert result.upper is not None
    claim = result.certificate()["claims"][-1]
    assert claim["schedule"]["kind"] == "kernels with row state" and claim["bytes"] == result.upper.bytes


@pytest.mark.parametrize(
    ("change", "why"),
    [({"axis": "n"}, "A-stationary|bands|axis|extents"), ({"kind": "blocks"}, "kind")],
)  # fmt: skip
def test_what_cannot_be_is_refused(change: dict[str, Any], why: str) -> None:
    attention = Attention(64, 64, 32)
    result = _with_row_state(attention, FastMemory(2048, Widths(2, 4, 4, 2)), True)
    workload = read_workload(workload_statement(attention), "workload")
    claim = upper_claim(workload, result[0])
    assert claim is not None
    check_upper_bytes(workload, claim, "claim")
    claim["schedule"]["kernels"][0] |= change
    with pytest.raises(RefusedError, match=why):
        check_upper_bytes(workload, claim, "claim")
    causal = read_workload(workload_statement(Attention(64, 64, 32, causal=True)), "workload")
    with pytest.raises(RefusedError):
        check_upper_bytes(causal, claim, "claim")
