"""A lower bound on what a state of the game with several memories still pays, compiled.

Loads and stores are at least what is due in any case, and with the counted game of all memories as one, what must
leave it. Loads, stores and copies together are at least the entries of `pebble.solvers.several.ideals`, less the
values initialised in them, and the stores due. A copy costs w = min(omega, 1) at least, so the cost is at least
(1 - w) times the first bound and w times the second; without copies, the second.
"""

from __future__ import annotations

import numpy as np

from pebble.solvers.search.bits import ONE, U64, ZERO, lowest, popcount, signed
from pebble.solvers.search.dag_counts import counted_bound
from pebble.solvers.several import ideals as ideal_table
from pebble.solvers.several.ideals import I32, Ideals, weigh
from pebble.solvers.several.rules import ANY_SPLIT, COMPUTED, FULL, GRAIN, MOST, SHARE, UNIT, Rules
from pebble.solvers.several.states import CLEAN, COUNTS, DONE, NEVER, RED
from pebble.traces.jit import inner


@inner
def _entries(rules: Rules, ideals: Ideals, i: int, words: U64) -> int:
    """What at least enters the SMs for the full tasks left: see `pebble.solvers.several.ideals`."""
    row, r = signed(ideals.numbers[i, ideal_table.CHAIN]), signed(ideals.numbers[i, ideal_table.FULL_LEFT])
    sms, useful = len(words) - RED, ideals.words[i, ideal_table.USEFUL]
    chains = ideals.chains
    if r == 0:
        return signed(0)
    left = rules.masks[FULL] & ~words[DONE]
    total = np.zeros(r + 1, np.int64)
    for q in range(sms):
        red = words[RED + q] & useful
        most = rules.sizes[MOST] - signed(words[COUNTS] >> np.uint64(8 * q) & np.uint64(255))
        most = min(most, r) if not rules.sizes[ANY_SPLIT] else r
        lack, pair = _lacks(rules, left, red, most)
        full = ideal_table.rows_of(rules)
        at = row + min((weigh(rules, red) + rules.sizes[GRAIN] - 1) // rules.sizes[GRAIN], full - 1) * (r + 1)
        after = row + full * (r + 1)
        if q == 0:
            for n in range(r + 1):
                total[n] = NEVER if n > most else _first(chains, at, after, lack, pair, n)
        else:
            for n in range(r, -1, -1):
                best = signed(NEVER)
                for m in range(min(n, most) + 1):
                    if q + 1 < sms or n == r:
                        best = min(best, total[n - m] + _first(chains, at, after, lack, pair, m))
                total[n] = best
    entries: int = total[r]
    return entries


@inner
def _lacks(rules: Rules, left: np.uint64, red: np.uint64, most: int) -> tuple[int, int]:
    """Of the full tasks left, what at least one lacks of what an SM holds, and what two do."""
    lack, pair = signed(NEVER), signed(NEVER)
    while left:
        missing = rules.needs[lowest(left)] & ~red
        left &= left - ONE
        own = weigh(rules, missing)
        lack = min(lack, own)
        others = left if most > 1 and own < pair else ZERO
        while others:
            pair = min(pair, own + weigh(rules, rules.needs[lowest(others)] & ~red & ~missing))
            others &= others - ONE
    return lack, pair


@inner
def _first(chains: I32, at: int, after: int, lack: int, pair: int, n: int) -> int:
    """Entries of an SM that does n tasks: the first window is one that lacks so much, a pair, or the best of any."""
    if n == 0:
        return signed(0)
    entries = max(signed(chains[at + n]), lack + signed(chains[after + n - 1]))
    if n > 1:
        entries = max(entries, pair + signed(chains[after + n - 2]))
    return entries


@inner
def estimate(rules: Rules, ideals: Ideals, i: int, words: U64) -> int:
    """A lower bound on what is still to be paid."""
    anywhere = ZERO
    for q in range(RED, len(words)):
        anywhere |= words[q]
    unit, share = rules.sizes[UNIT], rules.sizes[SHARE]
    out = signed(ideals.numbers[i, ideal_table.OUT])
    slow = out + weigh(rules, ideals.words[i, ideal_table.OWED] & ~anywhere)
    place = signed(ideals.numbers[i, ideal_table.PLACE])
    if place >= 0:
        dirty = popcount(anywhere & rules.masks[COMPUTED] & ~words[CLEAN])
        slow += counted_bound(ideals.counted.values, ideals.counted.dirty, place, popcount(anywhere), dirty)
    if ideals.numbers[i, ideal_table.CHAIN] < 0:
        bound: int = unit * slow
        return bound
    entered = out + _entries(rules, ideals, i, words) - ideals.numbers[i, ideal_table.UNINITIALISED]
    bound = (unit - share) * slow + share * max(slow, entered)
    return bound
