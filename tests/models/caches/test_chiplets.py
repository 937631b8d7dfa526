"""Chiplets with a memory-side cache against a literal model."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.models.caches import parse_policy
from tests.models.caches.literal import Case, Touched, cases, make_trace, totals


def chiplets(sizes: list[int], touches: list[Touched], each: int, last: int, parts: int) -> tuple[int, int, int, int]:
    """Tile by tile, as the module's text says."""
    private = [OrderedDict[int, None]() for _ in range(parts)]
    memory_side: OrderedDict[int, None] = OrderedDict()
    stale, owner, dirty = set[tuple[int, int]](), dict[int, int](), set[int]()
    count = Counter[str]()

    def room(cache: OrderedDict[int, None], limit: int) -> Iterator[int]:
        while sum(sizes[t] for t in cache) > limit:
            yield cache.popitem(last=False)[0]

    def touch_last(tile: int, dirties: bool) -> bool:
        hit = tile in memory_side
        memory_side[tile] = None
        memory_side.move_to_end(tile)
        for victim in room(memory_side, last):
            if victim in dirty:
                dirty.remove(victim)
                count["back"] += sizes[victim]
        if dirties:
            dirty.add(tile)
        return hit

    for tile, op, sm in touches:
        here = sm % parts
        hit = tile in private[here] and (here, tile) not in stale
        private[here][tile] = None
        private[here].move_to_end(tile)
        for victim in room(private[here], each):
            if owner.get(victim) == here:
                del owner[victim]
                touch_last(victim, True)
        stale.discard((here, tile))
        if op:
            count["write"] += 0 if hit else sizes[tile]
            owner[tile] = here
            stale |= {(other, tile) for other in range(parts) if other != here}
        elif not hit:
            if tile in owner:
                del owner[tile]
                touch_last(tile, True)
            count["read"] += 0 if touch_last(tile, False) else sizes[tile]
    residue = sum(sizes[t] for t in dirty | set(owner))
    return count["read"], count["write"], count["back"] + residue, residue


@settings(max_examples=300, deadline=None)
@given(cases(), st.integers(1, 3), st.integers(0, 20), st.integers(0, 50))
def test_chiplets(case: Case, parts: int, more: int, cut: int) -> None:
    sizes, touches, each = case
    last = max(sizes) + more
    model = parse_policy(f"chiplets-{parts}+llc-{last * 128}B").simulate
    result = model(make_trace(sizes, touches, cut), each * parts)
    assert totals(result) == chiplets(sizes, touches, each, last, parts)
