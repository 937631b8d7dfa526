"""Cache models. A policy reads a stream of tile touches and says what was missed and written back.

LRU, FIFO and OPT are fully associative over 128-byte lines and work on whole tiles at once ("run level").
That is exact, not an approximation, when every touch of a tile goes through all its lines once in a fixed
order and tiles share no line: then LRU and FIFO over tiles with capacity in lines miss exactly the lines that
the line-by-line policy misses, and for OPT it is enough to count how many lines of each tile are kept.
A stream whose tiles are single lines is the line-by-line policy itself. The other models (`pebble.models.cache_policy`
has the names) tell lines apart where they must. All share one interface: a stream and a capacity give `CacheCounts`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pebble.models.cache_policy import CachePolicy, parse_policy
from pebble.models.caches.base import LINE_BYTES, CacheCounts, CacheModel, Touches, drive
from pebble.models.caches.chiplets import simulate_chiplets
from pebble.models.caches.fifo import FifoEngine, simulate_fifo
from pebble.models.caches.lines import LineStream
from pebble.models.caches.lru import LruEngine, simulate_lru
from pebble.models.caches.oldest_of_k import common_granule, simulate_oldest_of_k
from pebble.models.caches.opt import simulate_opt
from pebble.models.caches.partitions import simulate_partitions
from pebble.models.caches.sectored import simulate_sectored
from pebble.models.caches.set_associative import FIFO, LRU, RANDOM, simulate_sets

# Partitions draw victims in granules of up to this many lines: the same to 0.5 % and several times faster.
PARTITION_GRANULE_LINES = 16

POLICIES: dict[str, Callable[[Touches, int], CacheCounts]] = {
    "lru": simulate_lru,
    "fifo": simulate_fifo,
    "opt": simulate_opt,
}
DESCRIPTIONS: dict[str, str] = {name: parse_policy(name).description for name in POLICIES}


def _partitions(policy: CachePolicy, stream: Touches, capacity_lines: int) -> CacheCounts:
    p = policy
    if p.replacement == "lru":
        return simulate_partitions(stream, capacity_lines, p.parts, p.sm_map, p.seed, p.warm)
    granule = common_granule(stream, p.parts, PARTITION_GRANULE_LINES)
    return simulate_oldest_of_k(
        stream, capacity_lines, p.k, p.parts, p.sm_map, p.seed, p.write_allocate, granule, p.warm
    )


def _write_around(policy: CachePolicy, stream: Touches, capacity_lines: int) -> CacheCounts:
    # a tile may then be in the cache in part, so lines are followed one by one
    lines = LineStream(stream)
    engine = LruEngine if policy.replacement == "lru" else FifoEngine
    return drive(engine(lines, capacity_lines, allocate=False), lines, policy.warm)


def cache_model(policy: CachePolicy) -> Callable[[Touches, int], CacheCounts]:
    """The simulator of a policy: a stream and a capacity in lines give counts."""
    p = policy
    if p.structure == "partitions":
        return partial(_partitions, p)
    if p.structure == "chiplets":
        last = p.last_level_bytes // LINE_BYTES
        return partial(
            simulate_chiplets, last_level_lines=last, parts=p.parts, sm_map=p.sm_map, seed=p.seed, warm=p.warm
        )
    if p.structure == "sets":
        order = {"lru": LRU, "fifo": FIFO, "oldest": RANDOM}[p.replacement]
        return partial(
            simulate_sets, ways=p.ways, hashed=p.hashed, order=order, allocate=p.write_allocate, seed=p.seed,
            pad_lines=p.pad_lines, warm=p.warm,
        )  # fmt: skip
    if p.structure == "sectored":
        return partial(simulate_sectored, warm=p.warm)
    if p.replacement == "oldest":
        return partial(simulate_oldest_of_k, k=p.k, seed=p.seed, allocate=p.write_allocate, warm=p.warm)
    if not p.write_allocate:
        return partial(_write_around, p)
    if p.replacement == "opt":
        return simulate_opt
    return partial(simulate_lru if p.replacement == "lru" else simulate_fifo, warm=p.warm)


def get_policy(name: str) -> Callable[[Touches, int], CacheCounts]:
    """The simulator of a policy by its name.

    Raises
    ------
    UnknownNameError
        Not a name of `pebble.models.cache_policy`.
    """
    return cache_model(parse_policy(name))


__all__ = [
    "DESCRIPTIONS",
    "POLICIES",
    "CacheCounts",
    "CacheModel",
    "CachePolicy",
    "Touches",
    "cache_model",
    "get_policy",
    "parse_policy",
]
