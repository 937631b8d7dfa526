"""Every cache model against a literal one that follows single lines, as the model's text defines it."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.errors import InputError, UnknownNameError
from pebble.models.caches import parse_policy
from pebble.models.caches import CacheCounts, get_policy
from pebble.models.caches.oldest_of_k import simulate_oldest_of_k
from pebble.models.caches.sm_map import part_of_sm
from pebble.schedules.lockstep import TileShape, lockstep_trace
from pebble.schedules.orders import parse_order
from pebble.traces import OperandTiles, Trace, TraceChunk
from pebble.workloads import Gemm

Touched = tuple[int, int, int]  # tile, operation, SM
Case = tuple[list[int], list[Touched], int]
SMS = 4


def make_trace(sizes: list[int], touches: list[Touched], cut: int = 0) -> Trace:
    ids, ops, sms = (np.array([t[i] for t in touches], d) for i, d in enumerate((np.int32, np.uint8, np.int32)))
    none: np.ndarray = np.empty(0, np.int64)
    parts = [
        TraceChunk(ids[s], ops[s], none, 0, lambda s=s: sms[s])  # type: ignore[misc]
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


@settings(max_examples=250, deadline=None)
@given(cases(), st.sampled_from(["lru", "fifo"]), st.booleans(), st.booleans(), st.integers(0, 50))
def test_residue_warm_start_and_no_write_allocate(case: Case, name: str, allocate: bool, warm: bool, cut: int) -> None:
    sizes, touches, capacity = case
    text = name + "+no-write-allocate" * (not allocate) + "+warm" * warm
    found = get_policy(text)(make_trace(sizes, touches, cut), capacity)
    count, cache = Line(), OrderedDict[int, None]()
    for last in (False, True) if warm else (True,):
        queue_model(
            ((x, op) for x, _, op, _ in lines_of(sizes, touches)), capacity, name == "lru", allocate, count, cache
        )
        if not last:
            count.reads = count.writes = count.backs = 0
    assert totals(found) == count.totals()
    assert found.accesses_lines == sum(sizes[t] for t, _, _ in touches)


class Xorshift:
    def __init__(self, seed: int) -> None:
        self.state = int(np.random.default_rng(seed).integers(1, 2**63))

    def below(self, limit: int) -> int:
        x = self.state
        x ^= x << 13 & (1 << 64) - 1
        x ^= x >> 7
        x ^= x << 17 & (1 << 64) - 1
        self.state = x
        return (x >> 32) * limit >> 32


class Part:
    """One partition: slots in order of filling, and when each line was last touched."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.slots, self.age = capacity, list[int](), dict[int, int]()

    def insert(self, line: int, now: int, k: int, random: Xorshift) -> int | None:
        victim = None
        if len(self.slots) < self.capacity:
            self.slots.append(line)
        else:
            drawn = [random.below(self.capacity) for _ in range(k)]
            slot = min(drawn, key=lambda s: self.age[self.slots[s]])
            victim, self.slots[slot] = self.slots[slot], line
            del self.age[victim]
        self.age[line] = now
        return victim


def sampled(sizes: list[int], touches: list[Touched], capacity: int, k: int, parts: int, seed: int) -> Line:
    count, random, stale = Line(), Xorshift(seed), set[tuple[int, int]]()
    caches = [Part(capacity // parts) for _ in range(parts)]
    where = part_of_sm(SMS, parts, "random", seed)

    def place(part: int, line: int, now: int) -> None:
        victim = caches[part].insert(line, now, k, random)
        if victim is not None and home_of[victim] == part and victim in count.dirty:
            count.dirty.remove(victim)
            count.backs += 1

    home_of = {
        line: (line + tile) % parts for line, tile, _, _ in lines_of(sizes, [(t, 0, 0) for t in range(len(sizes))])
    }
    for now, (line, _, op, sm) in enumerate(lines_of(sizes, touches), start=1):
        home, here = home_of[line], int(where[sm])
        if op:
            if line in caches[home].age:
                caches[home].age[line] = now
            else:
                count.writes += 1
                place(home, line, now)
            count.dirty.add(line)
            for other in range(parts):
                if other != home and line in caches[other].age:
                    (stale.add if other != here else stale.discard)((other, line))
            continue
        if home != here:
            if line in caches[here].age:
                caches[here].age[line] = now
                if (here, line) not in stale:
                    continue
            else:
                place(here, line, now)
            stale.discard((here, line))
        if line in caches[home].age:
            caches[home].age[line] = now
        else:
            count.reads += 1
            place(home, line, now)
    return count


@settings(max_examples=250, deadline=None)
@given(cases(), st.integers(1, 5), st.integers(1, 3), st.integers(0, 3), st.integers(0, 50))
def test_oldest_of_k_and_random(case: Case, k: int, parts: int, seed: int, cut: int) -> None:
    sizes, touches, capacity = case
    capacity = max(capacity, parts * max(sizes))
    text = (f"partitions-{parts}:" if parts > 1 else "") + f"oldest-of-{k}+seed-{seed}"
    trace = make_trace(sizes, touches, cut)
    found = simulate_oldest_of_k(trace, capacity, k, parts, seed=seed)
    assert totals(found) == sampled(sizes, touches, capacity, k, parts, seed).totals()
    if parts == 1:
        assert get_policy(text)(trace, capacity) == found


@settings(max_examples=100, deadline=None)
@given(cases(), st.integers(0, 3))
def test_oldest_of_many_is_nearly_lru(case: Case, seed: int) -> None:
    sizes, touches, capacity = case  # 1024 draws among at most 80 slots miss the oldest with probability below 1e-5
    found = get_policy(f"oldest-of-1024+seed-{seed}")(make_trace(sizes, touches), capacity)
    count = Line()
    queue_model(((x, op) for x, _, op, _ in lines_of(sizes, touches)), capacity, True, True, count, OrderedDict())
    assert totals(found) == count.totals()


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
    found = get_policy(f"partitions-{parts}+seed-{seed}")(make_trace(sizes, touches, cut), capacity)
    assert totals(found) == partitioned(sizes, touches, capacity, parts, seed).totals()


@settings(max_examples=100, deadline=None)
@given(cases())
def test_one_partition_is_lru(case: Case) -> None:
    sizes, touches, capacity = case
    trace = make_trace(sizes, touches)
    assert get_policy("partitions-1")(trace, capacity) == get_policy("lru")(trace, capacity)


@settings(max_examples=250, deadline=None)
@given(cases(), st.integers(1, 4), st.booleans(), st.booleans(), st.sampled_from(["lru", "fifo"]))
def test_sets(case: Case, ways: int, hashed: bool, allocate: bool, order: str) -> None:
    sizes, touches, capacity = case
    ways = min(ways, capacity)
    text = f"set-{ways}" + "-hashed" * hashed + f":{order}" + "+no-write-allocate" * (not allocate)
    found = get_policy(text)(make_trace(sizes, touches), capacity)
    sets = capacity // ways
    count, caches = Line(), [OrderedDict[int, None]() for _ in range(sets)]
    for line, _, op, _ in lines_of(sizes, touches):
        mixed = (line * 0x9E3779B97F4A7C15 & (1 << 64) - 1) >> 32
        cache = caches[mixed * sets >> 32 if hashed else line % sets]
        queue_model([(line, op)], ways, order == "lru", allocate, count, cache)
    assert totals(found) == count.totals()


def test_sets_use_row_major_addresses() -> None:
    """Columns of a power-of-two matrix crowd into few sets; a padded pitch spreads them."""
    ids = np.array([0, 0], np.int32)  # a tile column of one line, 128 rows, of a matrix 64 lines wide, twice
    chunk = TraceChunk(ids, np.zeros(2, np.uint8), np.empty(0, np.int64), 0)
    shape = OperandTiles(0, 0, 1, 128, 4096, 128, 64, 2)
    trace = Trace(
        ("A",), np.full(64, 128, np.int32), np.zeros(64, np.uint8), 2, lambda: iter([chunk]), operands=(shape,)
    )
    misses = {p: get_policy(p)(trace, 256).misses_lines for p in ("lru", "set-4", "set-4+pad-1", "set-4-hashed")}
    assert misses["lru"] == misses["set-4+pad-1"] == 128
    assert misses["lru"] <= misses["set-4-hashed"] < misses["set-4"] == 256


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 30), st.integers(1, 90), st.integers(1, 90), st.sampled_from([8, 16, 24, 48]),
       st.integers(20, 400), st.booleans())  # fmt: skip
def test_sectored(m: int, n: int, k: int, bk: int, capacity: int, warm: bool) -> None:
    gemm, tile = Gemm(m, n, k, "bf16"), TileShape(8, 32, bk)
    cut = tile.cut_to(gemm)
    order = parse_order("morton").tiles(*cut.grid(gemm)[:2])
    trace = lockstep_trace(gemm, order, cut, 3, granularity="line")
    found = get_policy("sectored" + "+warm" * warm)(trace, capacity)
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
    assert totals(found) == (totals_["read"], totals_["write"], totals_["back"] + residue, residue)
    assert found.accesses_lines == totals_["touched"]
    assert found.unit_bytes == 32


def sector_touches(
    gemm: Gemm, tile: TileShape, order: np.ndarray, wave: int
) -> Iterator[tuple[tuple[str, int, int], set[int], int]]:
    def rectangle(name: str, rows: range, cols: range, width: int, op: int):  # type: ignore[no-untyped-def]
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
    model = get_policy(f"chiplets-{parts}+llc-{last * 128}B")
    found = model(make_trace(sizes, touches, cut), each * parts)
    assert totals(found) == chiplets(sizes, touches, each, last, parts)


def test_two_partitions_hold_shared_lines_twice() -> None:
    """What fits one cache does not fit two halves when all SMs read all of it."""
    touches = [(t, 0, sm) for _ in range(4) for t in range(8) for sm in range(SMS)]
    trace = make_trace([10] * 8, touches)
    assert get_policy("lru")(trace, 80).misses_lines == 80
    assert get_policy("partitions-2")(trace, 80).misses_lines > 160
    assert get_policy("partitions-2")(trace, 160).misses_lines == 80


def test_partitions_need_sms() -> None:
    trace = Trace(("A",), np.ones(1, np.int32), np.zeros(1, np.uint8), 0, lambda: iter(()))
    with pytest.raises(InputError, match="which SM"):
        get_policy("partitions-2")(trace, 100)


@pytest.mark.parametrize(
    "text",
    ["lru:fifo", "set-0", "set-99", "partitions-2:opt", "opt+warm", "opt+no-write-allocate", "chiplets-8",
     "lru+llc-1MiB", "lru+pad-1", "sectored:fifo", "oldest-of-0", "partitions-0", "chiplets-8+llc-5el",
     "partitions-2+no-write-allocate", "set-4:oldest-of-2"],
)  # fmt: skip
def test_names_without_meaning(text: str) -> None:
    with pytest.raises(InputError, match="got"):
        parse_policy(text)


@pytest.mark.parametrize("text", ["lruu", "", "set", "lru+hot", "oldest-of-x", "lru+map-mixed", "+", "lru+"])
def test_unknown_names(text: str) -> None:
    with pytest.raises(UnknownNameError):
        parse_policy(text)


def test_sm_maps() -> None:
    assert part_of_sm(6, 2, "interleaved", 0).tolist() == [0, 1, 0, 1, 0, 1]
    assert part_of_sm(6, 2, "halves", 0).tolist() == [0, 0, 0, 1, 1, 1]
    assert sorted(part_of_sm(7, 2, "random", 3).tolist()) == [0, 0, 0, 0, 1, 1, 1]


def test_set_conflicts_on_a_real_kernel() -> None:
    """Row-major 3072x3072x4608 at 40 MiB: 16 ways pick sets by modulo and miss 10 % more than full associativity."""
    trace = lockstep_trace(Gemm(3072, 3072, 4608), parse_order("row").tiles(24, 24), TileShape(128, 128, 64), 132)
    assert get_policy("lru")(trace, 40 * 8192).misses_lines == 589_824
    assert get_policy("set-16")(trace, 40 * 8192).misses_lines == 647_667
    assert get_policy("set-16-hashed")(trace, 40 * 8192).misses_lines > 600_000
