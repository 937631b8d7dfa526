"""Random replacement and the oldest of k drawn lines, whole and in partitions, against a literal model."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.models.caches import parse_policy
from pebble.models.caches.oldest_of_k import OldestOfKEngine
from pebble.models.caches.policy import Engine, counted
from pebble.models.caches.replacement import Draws, refill
from pebble.models.caches.sm_map import part_of_sm
from pebble.schedules.gemm import GemmKernel
from pebble.schedules.orders import parse_order
from pebble.schedules.tile import TileShape
from pebble.traces import Trace
from pebble.workloads import Gemm
from tests.models.caches.every_granule import EveryGranule
from tests.models.caches.literal import SMS, Case, Line, Touched, cases, lines_of, make_trace, queue_model, totals
from tests.schedules.lockstep import waves


class LineByLine(OldestOfKEngine):
    """The model itself, also in partitions."""

    most_granule = 1


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
    policy = parse_policy(text)
    result = counted(LineByLine(trace, capacity, policy))
    assert totals(result) == sampled(sizes, touches, capacity, k, parts, seed).totals()
    if parts == 1:
        assert policy.simulate(trace, capacity) == result


@settings(max_examples=100, deadline=None)
@given(cases(), st.integers(0, 3))
def test_oldest_of_many_is_nearly_lru(case: Case, seed: int) -> None:
    sizes, touches, capacity = case  # 1024 draws among at most 80 slots miss the oldest with probability below 1e-5
    result = parse_policy(f"oldest-of-1024+seed-{seed}").simulate(make_trace(sizes, touches), capacity)
    count = Line()
    queue_model(((x, op) for x, _, op, _ in lines_of(sizes, touches)), capacity, True, True, count, OrderedDict())
    assert totals(result) == count.totals()


def answers(engine: Engine) -> tuple[list[int], list[int], list[int]]:
    """Missed lines of each touch, lines written back, and lines left dirty."""
    missed = [int(lines) for chunk in engine.chunks() for lines in engine.touch(chunk)]
    return missed, engine.write_backs.tolist(), engine.dirty().tolist()


OPTIONS = st.sampled_from(["", "+no-write-allocate", "+map-halves", "+seed-7", "+seed-7+no-write-allocate"])


@settings(max_examples=100, deadline=None)
@given(cases(), st.sampled_from([1, 2, 4, 16, 32]), st.integers(1, 9), st.integers(1, 4), OPTIONS, st.integers(0, 50))
def test_every_touch_misses_what_it_misses_granule_by_granule(
    case: Case, scale: int, k: int, parts: int, options: str, cut: int
) -> None:
    sizes, touches, capacity = case
    trace = make_trace([scale * parts * n for n in sizes], touches, cut)
    policy = parse_policy((f"partitions-{parts}:" if parts > 1 else "") + f"oldest-of-{k}{options}")
    for lines in (scale * parts * capacity, scale * parts * max(sizes), 10 * scale * parts * sum(sizes)):
        assert answers(OldestOfKEngine(trace, lines, policy)) == answers(EveryGranule(trace, lines, policy))


class Padded(OldestOfKEngine):
    """Granules also where they do not divide tiles at all."""

    most_padding = 1e9


class EveryPadded(EveryGranule):
    most_padding = 1e9


@settings(max_examples=200, deadline=None)
@given(cases(), st.sampled_from([3, 7, 17, 40, 100]), st.integers(1, 9), st.integers(1, 3), OPTIONS, st.integers(0, 50))
def test_tiles_that_granules_do_not_divide(case: Case, scale: int, k: int, parts: int, options: str, cut: int) -> None:
    sizes, touches, capacity = case
    trace = make_trace([scale * n for n in sizes], touches, cut)
    policy = parse_policy((f"partitions-{parts}:" if parts > 1 else "") + f"oldest-of-{k}{options}")
    for lines in (scale * parts * capacity + 16 * parts, 10 * scale * parts * sum(sizes)):
        result = answers(Padded(trace, lines, policy))
        assert result == answers(EveryPadded(trace, lines, policy))
        assert all(missed <= scale * sizes[tile] for missed, (tile, _, _) in zip(result[0], touches, strict=True))


def gemm_trace(gemm: Gemm, tile: TileShape, order: str) -> Trace:
    kernel = GemmKernel(gemm, tile)
    result = parse_order(order)
    return waves(kernel, kernel.phase(result.tiles(*kernel.grid)), 12, result.sawtooth, 12)


@pytest.mark.parametrize(
    "gemm", [Gemm(1024, 1536, 2048), Gemm(1000, 904, 1096, accumulate=True), Gemm(1025, 1025, 1025)]
)
@pytest.mark.parametrize("order", ["row", "hilbert+sawtooth"])
@pytest.mark.parametrize("policy", ["partitions-2:oldest-of-8", "partitions-3:random", "oldest-of-3"])
def test_kernels_miss_what_they_miss_granule_by_granule(gemm: Gemm, order: str, policy: str) -> None:
    trace = gemm_trace(gemm, TileShape(128, 128, 64), order)
    for lines in (1600, 12_000, 60_000):
        parsed = parse_policy(policy)
        assert counted(OldestOfKEngine(trace, lines, parsed)) == counted(EveryGranule(trace, lines, parsed))


@pytest.mark.parametrize(("gemm", "lines"), [(Gemm(1025, 1025, 1025), 4000), (Gemm(1153, 1000, 2049), 9000)])
def test_a_ragged_edge_costs_no_granules_and_half_a_percent_at_most(gemm: Gemm, lines: int) -> None:
    trace, policy = gemm_trace(gemm, TileShape(128, 128, 64), "row"), parse_policy("partitions-2:oldest-of-8")
    engine = OldestOfKEngine(trace, lines, policy)
    result, exact = counted(engine), counted(LineByLine(trace, lines, policy))
    assert engine._granule > 1 and LineByLine(trace, lines, policy)._granule == 1
    for of in ("read_misses", "write_backs"):
        assert sum(getattr(result, of)) == pytest.approx(sum(getattr(exact, of)), rel=0.005)
    assert result.accesses == exact.accesses and result.write_misses == exact.write_misses


def test_the_curve_is_one_simulation_at_each_capacity() -> None:
    trace = gemm_trace(Gemm(512, 512, 512), TileShape(128, 128, 64), "row")
    policy = parse_policy("partitions-2:oldest-of-8")
    lines = [600, 4000, 9000, 14_000, 20_000, 30_000, 10**6, 10**12]
    results = [policy.simulate(trace, capacity) for capacity in lines]
    assert policy.curve(trace, lines) == [(sum(c.read_misses), sum(c.write_backs)) for c in results]
    engine = OldestOfKEngine(trace, 10**6, policy)
    full = counted(engine)
    assert engine.enough_lines is not None and engine.enough_lines > 9000
    assert policy.simulate(trace, engine.enough_lines) == full
    assert policy.simulate(trace, engine.enough_lines // 2) != full
    assert "simulated" in policy.curve_note and not parse_policy("lru").curve_note
    small = OldestOfKEngine(trace, 9000, policy)
    counted(small)
    assert small.enough_lines is None


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 9), st.integers(1, 1024), st.integers(1, 2**31))
def test_draws_made_ahead_are_those_made_one_by_one(seed: int, k: int, limit: int) -> None:
    draws, single = Draws(seed, k), Xorshift(seed)
    assert len(draws.drawn) % k == 0
    for _ in range(3):
        refill(draws.states, draws.ahead, limit, draws.drawn)
        assert draws.drawn.tolist() == [single.below(limit) for _ in range(len(draws.drawn))]
