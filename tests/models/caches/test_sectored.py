"""The sectored cache against a literal model that names every sector."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.models.caches import parse_policy
from pebble.schedules.orders import parse_order
from pebble.schedules.tile import TileShape
from pebble.workloads import Gemm
from tests.models.caches.literal import totals
from tests.schedules.lockstep import lockstep_trace


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 30), st.integers(1, 90), st.integers(1, 90), st.sampled_from([8, 16, 24, 48]),
       st.integers(20, 400), st.booleans())  # fmt: skip
def test_sectored(m: int, n: int, k: int, bk: int, capacity: int, warm: bool) -> None:
    gemm, tile = Gemm(m, n, k, "bf16"), TileShape(8, 32, bk)
    cut = tile.cut_to(gemm)
    order = parse_order("morton").tiles(*cut.grid(gemm)[:2])
    trace = lockstep_trace(gemm, order, cut, 3)
    result = parse_policy("sectored" + "+warm" * warm).simulate(trace, capacity)
    cache: OrderedDict[tuple[str, int, int], tuple[set[int], set[int]]] = OrderedDict()
    totals_ = Counter[str]()
    for last in (False, True) if warm else (True,):
        totals_.clear()
        for line, sectors, op in sector_touches(gemm, cut, order, 3):
            if line not in cache:
                if len(cache) == capacity:
                    totals_["back"] += len(cache.popitem(last=False)[1][1])
                cache[line] = (set(), set())
            cache.move_to_end(line)
            valid, dirty = cache[line]
            totals_["touched"] += len(sectors)
            totals_["write" if op else "read"] += len(sectors - valid)
            valid |= sectors
            if op:
                dirty |= sectors
        assert last or warm
    residue = sum(len(dirty) for _, dirty in cache.values())
    assert totals(result) == (totals_["read"], totals_["write"], totals_["back"] + residue, residue)
    assert result.accesses_lines == totals_["touched"]
    assert result.unit_bytes == 32


def sector_touches(
    gemm: Gemm, tile: TileShape, order: np.ndarray, wave: int
) -> Iterator[tuple[tuple[str, int, int], set[int], int]]:
    def rectangle(name: str, rows: range, cols: range, width: int, op: int):
        for row in rows:
            sectors = range(cols.start * width // 32, (cols.stop * width - 1) // 32 + 1)
            for line in range(sectors.start // 4, (sectors.stop - 1) // 4 + 1):
                yield (name, row, line), {s for s in sectors if s // 4 == line}, op

    for start in range(0, len(order), wave):
        blocks = [
            (range(i * tile.bm, min(gemm.m, (i + 1) * tile.bm)), range(j * tile.bn, min(gemm.n, (j + 1) * tile.bn)))
            for i, j in order[start : start + wave].tolist()
        ]
        for step in range(-(-gemm.k // tile.bk)):
            ks = range(step * tile.bk, min(gemm.k, (step + 1) * tile.bk))
            for rows, cols in blocks:
                yield from rectangle("A", rows, ks, gemm.in_bytes, 0)
                yield from rectangle("B", ks, cols, gemm.in_bytes, 0)
        for rows, cols in blocks:
            yield from rectangle("C", rows, cols, gemm.out_bytes, 1)
