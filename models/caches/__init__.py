"""Cache models. A policy reads a stream of tile touches and says what was missed and written back.

All policies here are fully associative over 128-byte lines and work on whole tiles at once ("run level").
That is exact, not an approximation, when every touch of a tile goes through all its lines once in a fixed
order and tiles share no line: then LRU and FIFO over tiles with capacity in lines miss exactly the lines that
the line-by-line policy misses, and for OPT it is enough to count how many lines of each tile are kept.
A stream whose tiles are single lines is the line-by-line policy itself.
"""

from __future__ import annotations

from collections.abc import Callable

from pebble.errors import UnknownNameError
from pebble.models.caches.base import CacheCounts, CacheModel, Touches
from pebble.models.caches.fifo import simulate_fifo
from pebble.models.caches.lru import simulate_lru
from pebble.models.caches.opt import simulate_opt

POLICIES: dict[str, Callable[[Touches, int], CacheCounts]] = {
    "lru": simulate_lru,
    "fifo": simulate_fifo,
    "opt": simulate_opt,
}

DESCRIPTIONS: dict[str, str] = {
    "lru": "least recently used, fully associative",
    "fifo": "first in, first out, fully associative",
    "opt": "fewest misses possible for this touch order (Belady), fully associative, exact at line level",
}


def get_policy(name: str) -> Callable[[Touches, int], CacheCounts]:
    """The policy of that name.

    Raises
    ------
    UnknownNameError
        Not one of lru, fifo, opt.
    """
    if name not in POLICIES:
        raise UnknownNameError("policy", name, POLICIES, "pebble simulate --help")
    return POLICIES[name]


__all__ = ["DESCRIPTIONS", "POLICIES", "CacheCounts", "CacheModel", "Touches", "get_policy"]
