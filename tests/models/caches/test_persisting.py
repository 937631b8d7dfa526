"""A set-aside: against one model of all its lines, and what it does to the traffic of schedules."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings

import pebble
from pebble.errors import InputError
from pebble.models.caches import parse_policy
from tests.models.caches.literal import Case, Line, cases, lines_of, make_trace, totals


class Literal(Line):
    """LRU beside lines of operand A that never leave: as many whole tiles as keep their even share."""

    def __init__(self, sizes: list[int], capacity: int, share: float) -> None:
        super().__init__()
        window = [tile for tile in range(len(sizes)) if tile % 2 == 0]
        free_capacity = int(capacity * share)
        ratio = min(1.0, free_capacity / max(1, sum(sizes[tile] for tile in window)))
        self.kept: set[int] = set()
        for i, tile in enumerate(window):
            held = sum(sizes[t] for t in self.kept)
            if held + sizes[tile] <= ratio * sum(sizes[t] for t in window[: i + 1]) + 1e-6:
                self.kept.add(tile)
        self.capacity = capacity - sum(sizes[t] for t in self.kept)
        self.seen: set[int] = set()
        self.lru: OrderedDict[int, None] = OrderedDict()

    def touch(self, line: int, tile: int, op: int) -> None:
        there = line in (self.seen if tile in self.kept else self.lru)
        self.reads += op == 0 and not there
        self.writes += op == 1 and not there
        if op == 1:
            self.dirty.add(line)
        if tile in self.kept:
            self.seen.add(line)
            return
        self.lru[line] = None
        self.lru.move_to_end(line)
        if len(self.lru) > self.capacity:
            victim, _ = self.lru.popitem(last=False)
            self.backs += victim in self.dirty
            self.dirty.discard(victim)


@settings(max_examples=150, deadline=None)
@given(cases())
def test_it_is_lru_beside_what_stays(case: Case) -> None:
    sizes, touches, capacity = case
    for share in (0.75, 0.3):
        literal = Literal(sizes, capacity, share)
        policy, trace = parse_policy(f"lru+persist-a-{share}"), make_trace(sizes, touches)
        if literal.capacity < max(sizes):
            with pytest.raises(InputError, match="largest tile"):
                policy.simulate(trace, capacity)
            continue
        result = policy.simulate(trace, capacity)
        for line, tile, op, _ in lines_of(sizes, touches):
            literal.touch(line, tile, op)
        assert totals(result) == literal.totals()


def test_an_operand_that_fits_is_read_once_and_half_of_it_between() -> None:
    gemm = pebble.Gemm(512, 2048, 512)

    def read(option: str) -> int:
        result = pebble.simulate(gemm, "column", cache="704KiB", sms=4, policy=f"lru{option}")
        return result.traffic.by_operand()["A"]["read_bytes"]

    assert read("+persist-A") == 512 * 512 * 2 < read("+persist-A-0.75-0-0.5") < read("")


@pytest.mark.parametrize("behind", ["lru", "fifo", "oldest-of-4", "partitions-2", "partitions-2:oldest-of-8"])
def test_every_schedule_stays_above_the_bound_and_says_what_it_saves(behind: str) -> None:
    gemm, where, orders = pebble.Gemm(1024, 1024, 512), {"cache": "1MiB", "sms": 8}, ["row", "column", "grouped-4"]
    with_it = pebble.compare(gemm, orders, policy=f"{behind}+persist-B-0.5", **where)
    without = {t.order: t.dram_bytes for t in pebble.compare(gemm, orders, policy=behind, **where).orders}
    for order in with_it.orders:
        assert with_it.ratio(order.dram_bytes) >= 1
        assert order.plain_bytes == without[order.order]
        assert order.saved_bytes == without[order.order] - order.dram_bytes
    kept = {t.order: t for t in with_it.orders}
    assert kept["row"].saved_bytes > 0  # B comes round with every row


def test_a_part_keeps_its_own_copy() -> None:
    gemm, where = pebble.Gemm(2048, 1024, 512), {"cache": "1MiB", "sms": 8}
    read = [
        pebble.simulate(gemm, "row", policy=f"{name}+persist-B-0.5", **where).traffic.by_operand()["B"]["read_bytes"]
        for name in ("lru", "partitions-2")
    ]
    assert read[0] < read[1]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lru+persist-D", "operands A, B, C"), ("lru+persist-B-0.9", "up to 0.75"), ("lru+persist-B-0", "above 0"),
        ("lru+persist-B-0.5-0.5-0.2", "0-0.5"), ("lru+persist-B-x", "persist-OPERAND"), ("lru+persist-", "persist-OP"),
        ("opt+persist-B", "expected [+]persist with lru"), ("sectored+persist-B", "expected [+]persist with lru"),
        ("lru+persist-A+persist-B", "one access-policy window"),
    ],
)  # fmt: skip
def test_what_has_no_set_aside_is_one_sentence(name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        pebble.simulate(pebble.Gemm(512, 512, 512), "row", cache="1MiB", sms=4, policy=name)


def test_it_may_start_warm() -> None:
    trace = make_trace([2, 2, 2], [(0, 0, 0), (1, 0, 0), (2, 1, 0)])
    result = parse_policy("lru+persist-a+warm").simulate(trace, 6)
    assert sum(result.read_misses) == 0 and np.sum(result.write_backs) == 2
