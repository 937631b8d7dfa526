"""Kernels side by side: how long each takes while others use L2 and DRAM too.

A request waits behind those of others. While both run, a kernel is stretched by `contention` times the share of its
time that it needs a resource times the share of that resource that the others take, summed over L2 and DRAM; and where
all together ask for more than there is, by as much. When one ends, the rest go on without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Use(NamedTuple):
    """What a kernel does with what it shares, alone on its SMs.

    Attributes
    ----------
    nanoseconds : float
        That it takes.
    needs, takes : tuple of float
        Of L2 and of DRAM: the share of that time in which it needs it, and the share of the whole that it takes.
    """

    nanoseconds: float
    needs: tuple[float, ...]
    takes: tuple[float, ...]

    @classmethod
    def of(cls, nanoseconds: float, loading: float, l2: float, dram: float) -> Use:
        """From the time that it takes, that its SMs load from L2, and that L2 and DRAM serve it."""
        at_l2, from_l2, dram = (min(1.0, part / nanoseconds) if part else 0.0 for part in (loading, l2, dram))
        return cls(nanoseconds, (at_l2, dram), (from_l2, dram))

    def stretch(self, others: Sequence[Use], contention: float) -> float:
        """By which factor it takes longer beside these."""
        waits = longest = 0.0
        for resource, needed in enumerate(self.needs):
            taken = sum(other.takes[resource] for other in others)
            waits += needed * taken
            longest = max(longest, needed * (self.takes[resource] + taken))
        return max(1 + contention * waits, longest)


def ends(uses: Sequence[Use], contention: float) -> list[float]:
    """When each of several kernels that begin together is done, in nanoseconds.

    Examples
    --------
    >>> both = [Use(100.0, (1.0, 0.0), (0.5, 0.0)), Use(50.0, (1.0, 0.0), (0.4, 0.0))]
    >>> [round(end, 6) for end in ends(both, 0.5)]  # 50 x 1.25, in which 52.1 of the first are done; then 47.9
    [110.416667, 62.5]
    """
    left, result, now = [use.nanoseconds for use in uses], [0.0] * len(uses), 0.0
    running = set(range(len(uses)))
    while running:
        longer = {i: uses[i].stretch([uses[j] for j in running if j != i], contention) for i in running}
        first = min(running, key=lambda i: left[i] * longer[i])
        passed = left[first] * longer[first]
        now += passed
        for i in running:
            left[i] = max(0.0, left[i] - passed / longer[i])
        result[first] = now
        running.remove(first)
    return result
