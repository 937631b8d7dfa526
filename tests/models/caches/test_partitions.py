"""Partitions with LRU against a literal model."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.errors import InputError
from pebble.models.caches import parse_policy
from pebble.models.caches.sm_map import part_of_sm
from pebble.traces import Trace
from tests.models.caches.literal import SMS, Case, Line, Touched, cases, make_trace, totals


def partitioned(sizes: list[int], touches: list[Touched], capacity: int, parts: int, seed: int) -> Line:
    count, stale = Line(), set[tuple[int, int]]()
    caches = [OrderedDict[int, None]() for _ in range(parts)]
    where = part_of_sm(SMS, parts, "random", seed)
    first = np.cumsum([0, *sizes])
    home_of = {int(x): int(x + t) % parts for t in range(len(sizes)) for x in range(first[t], first[t + 1])}

    def access(part: int, line: int) -> bool:
        cache = caches[part]
        hit = line in cache
        if hit:
            cache.move_to_end(line)
            return True
        if len(cache) == capacity // parts:
            victim, _ = cache.popitem(last=False)
            if home_of[victim] == part and victim in count.dirty:
                count.dirty.remove(victim)
                count.backs += 1
        cache[line] = None
        return False

    for tile, op, sm in touches:
        here = int(where[sm])
        for line in sorted(range(first[tile], first[tile + 1]), key=lambda x: (home_of[x], x)):
            home = home_of[line]
            if op:
                count.writes += not access(home, line)
                count.dirty.add(line)
                for other in range(parts):
                    if other != home:
                        (stale.add if other != here else stale.discard)((other, line))
                continue
            if home != here:
                copied = access(here, line) and (here, line) not in stale
                stale.discard((here, line))
                if copied:
                    continue
            count.reads += not access(home, line)
    return count


@settings(max_examples=300, deadline=None)
@given(cases(), st.integers(2, 3), st.integers(0, 3), st.integers(0, 50))
def test_partitions(case: Case, parts: int, seed: int, cut: int) -> None:
    sizes, touches, capacity = case
    capacity = max(capacity, parts * max(sizes))
    result = parse_policy(f"partitions-{parts}+seed-{seed}").simulate(make_trace(sizes, touches, cut), capacity)
    assert totals(result) == partitioned(sizes, touches, capacity, parts, seed).totals()


@settings(max_examples=100, deadline=None)
@given(cases())
def test_one_partition_is_lru(case: Case) -> None:
    sizes, touches, capacity = case
    trace = make_trace(sizes, touches)
    assert parse_policy("partitions-1").simulate(trace, capacity) == parse_policy("lru").simulate(trace, capacity)


def test_two_partitions_hold_shared_lines_twice() -> None:
    """What fits one cache does not fit two halves when all SMs read all of it."""
    touches = [(t, 0, sm) for _ in range(4) for t in range(8) for sm in range(SMS)]
    trace = make_trace([10] * 8, touches)
    assert parse_policy("lru").simulate(trace, 80).misses_lines == 80
    assert parse_policy("partitions-2").simulate(trace, 80).misses_lines > 160
    assert parse_policy("partitions-2").simulate(trace, 160).misses_lines == 80


def test_partitions_need_sms() -> None:
    trace = Trace(("A",), np.ones(1, np.int32), np.zeros(1, np.uint8), 0, lambda: iter(()))
    with pytest.raises(InputError, match="which SM"):
        parse_policy("partitions-2").simulate(trace, 100)


def test_sm_maps() -> None:
    assert part_of_sm(6, 2, "interleaved", 0).tolist() == [0, 1, 0, 1, 0, 1]
    assert part_of_sm(6, 2, "halves", 0).tolist() == [0, 0, 0, 1, 1, 1]
    assert sorted(part_of_sm(7, 2, "random", 3).tolist()) == [0, 0, 0, 0, 1, 1, 1]
