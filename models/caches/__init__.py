"""Cache models. A policy reads a trace of tile touches and says what was missed and written back.

LRU, FIFO and OPT are fully associative over 128-byte lines and work on whole tiles at once ("run level").
That is exact, not an approximation, when every touch of a tile goes through all its lines once in a fixed
order and tiles share no line: then LRU and FIFO over tiles with capacity in lines miss exactly the lines that
the line-by-line policy misses, and for OPT it is enough to count how many lines of each tile are kept.
A trace whose tiles are single lines is the line-by-line policy itself. The other models tell lines apart where they
must. ``parse_policy(name).simulate(trace, capacity_lines)`` gives `CacheCounts`, whatever the model.
"""

from pebble.models.caches.policy import CacheCounts, CachePolicy, Engine
from pebble.models.caches.registry import HARDWARE, parse_policy, policies_help, policy_names, register

__all__ = [
    "HARDWARE",
    "CacheCounts",
    "CachePolicy",
    "Engine",
    "parse_policy",
    "policies_help",
    "policy_names",
    "register",
]
