"""Warm starts, write-around and what is left dirty, against a literal LRU and FIFO."""

from __future__ import annotations

from collections import OrderedDict

from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.models.caches import parse_policy
from tests.models.caches.literal import Case, Line, cases, lines_of, make_trace, queue_model, totals


@settings(max_examples=250, deadline=None)
@given(cases(), st.sampled_from(["lru", "fifo"]), st.booleans(), st.booleans(), st.integers(0, 50))
def test_residue_warm_start_and_no_write_allocate(case: Case, name: str, allocate: bool, warm: bool, cut: int) -> None:
    sizes, touches, capacity = case
    text = name + "+no-write-allocate" * (not allocate) + "+warm" * warm
    result = parse_policy(text).simulate(make_trace(sizes, touches, cut), capacity)
    count, cache = Line(), OrderedDict[int, None]()
    for last in (False, True) if warm else (True,):
        queue_model(
            ((x, op) for x, _, op, _ in lines_of(sizes, touches)), capacity, name == "lru", allocate, count, cache
        )
        if not last:
            count.reads = count.writes = count.backs = 0
    assert totals(result) == count.totals()
    assert result.accesses_lines == sum(sizes[t] for t, _, _ in touches)
