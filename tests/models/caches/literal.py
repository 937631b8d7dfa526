"""What the literal models share: small random traces, and counting line by line as the models' texts define it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator

import numpy as np
from hypothesis import strategies as st

from pebble.models.caches import CacheCounts
from pebble.traces import Trace, TraceChunk

Touched = tuple[int, int, int]  # tile, operation, SM
Case = tuple[list[int], list[Touched], int]
SMS = 4


def make_trace(sizes: list[int], touches: list[Touched], cut: int = 0) -> Trace:
    ids, ops, sms = (np.array([t[i] for t in touches], d) for i, d in enumerate((np.int32, np.uint8, np.int32)))
    none: np.ndarray = np.empty(0, np.int64)
    parts = [
        TraceChunk(ids[s], ops[s], none, 0, lambda s=s: sms[s])
        for s in (slice(0, cut), slice(cut, None))
        if len(ids[s])
    ]
    operand = np.array([i % 2 for i in range(len(sizes))], np.uint8)
    return Trace(("A", "B"), np.array(sizes, np.int32), operand, len(ids), lambda: iter(parts), sms=SMS)


@st.composite
def cases(draw: st.DrawFn, even: int = 1) -> Case:
    sizes = [even * n for n in draw(st.lists(st.integers(1, 6), min_size=1, max_size=7))]
    touch = st.tuples(st.integers(0, len(sizes) - 1), st.integers(0, 1), st.integers(0, SMS - 1))
    touches = draw(st.lists(touch, min_size=1, max_size=50))
    return sizes, touches, draw(st.integers(max(sizes) + even, max(sizes) + sum(sizes)))


class Line:
    """What the literal models count."""

    def __init__(self) -> None:
        self.reads = self.writes = self.backs = 0
        self.dirty: set[int] = set()

    def totals(self) -> tuple[int, int, int, int]:
        return self.reads, self.writes, self.backs + len(self.dirty), len(self.dirty)


def totals(counts: CacheCounts) -> tuple[int, int, int, int]:
    return sum(counts.read_misses), sum(counts.write_misses), sum(counts.write_backs), sum(counts.residue)


def lines_of(sizes: list[int], touches: Iterable[Touched]) -> Iterator[tuple[int, int, int, int]]:
    """(line, tile, operation, SM)."""
    first = np.cumsum([0, *sizes])
    for tile, op, sm in touches:
        for line in range(first[tile], first[tile + 1]):
            yield int(line), tile, op, sm


def queue_model(lines: Iterable[tuple[int, int]], capacity: int, renew: bool, allocate: bool, count: Line,
                cache: OrderedDict[int, None]) -> None:  # fmt: skip
    for line, op in lines:
        if line in cache:
            if renew:
                cache.move_to_end(line)
        else:
            count.writes += op
            count.reads += not op
            if op and not allocate:
                count.backs += 1
                continue
            if len(cache) == capacity:
                victim, _ = cache.popitem(last=False)
                count.backs += victim in count.dirty
                count.dirty.discard(victim)
            cache[line] = None
        if op:
            count.dirty.add(line)
