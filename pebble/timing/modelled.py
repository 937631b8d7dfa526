"""What a modelled time is made of: its waves, what each resource needs, what kernels side by side take from each
other, and what the limit of power adds.

*Side by side.* A request waits behind those of others. While both run, a kernel is stretched by `contention` times
the share of its time that it needs a resource times the share of that resource that the others take, summed over L2
and DRAM; and where all together ask for more than there is, by as much. When one ends, the rest go on without it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.models.caches import CacheCounts
from pebble.timing.sustained import Rates
from pebble.traces.jit import jit


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


def in_turn(blocks: int, busy: float, wait: float) -> float:
    """Nanoseconds in which blocks that share an SM do a step each: the pipes serve one at a time, all wait at once.

    The mean of a closed queueing network of one server and one delay (Reiser and Lavenberg, Mean-Value Analysis of
    Closed Multichain Queuing Networks, JACM 1980).

    Examples
    --------
    >>> in_turn(1, 2.0, 3.0), round(in_turn(2, 2.0, 3.0), 6), in_turn(2, 2.0, 0.0)
    (5.0, 5.8, 4.0)
    """
    queue = cycle = 0.0
    for present in range(1, blocks + 1):
        served = busy * (1 + queue)
        cycle = served + wait
        queue = present * served / cycle if cycle else 0.0
    return cycle


BINDS = ("compute", "shared", "L2", "DRAM", "latency")


_RESTS_LITTLE = 0.7  # of the time that tensor cores compute: products lie above, attention with its softmax below


class Wave(NamedTuple):
    """One wave; seconds that each resource needs at the rates that kernels sustain."""

    blocks: int
    compute_seconds: float
    shared_seconds: float
    l2_seconds: float
    dram_seconds: float
    latency_seconds: float
    around_seconds: float  #: fill and drain

    @property
    def binds(self) -> str:
        """What takes longest."""
        return BINDS[int(np.argmax(self[1:6]))]

    @property
    def seconds(self) -> float:
        """From its first request to the first of the next wave."""
        return max(self[1:6]) + self.around_seconds


@dataclass(frozen=True)
class ModelledTime:
    """Time of one kernel, or of several side by side; an estimate, not a bound.

    Attributes
    ----------
    seconds : float
        From the launch to the last result.
    compute_seconds, shared_seconds, l2_seconds, dram_seconds, latency_seconds : float
        What each resource needs by itself at sustained rates: sums over waves; where blocks run free, of SMs that share
        the work evenly.
    around_seconds, launch_seconds : float
        Fill and drain of all waves; the launch.
    throttled_seconds : float
        What the power limit adds to all that.
    waves : tuple of Wave
        Empty where blocks run free.
    dram_bytes, l2_bytes : int
        Between L2 and DRAM, and from L2 to the SMs.
    ended_seconds : tuple of float
        Of each kernel side by side, when it is done, launch included; one number where there is one.
    simulated_share : float
        Of its loads from L2, how much went through the cache model; what the rest moves follows from that.
    busy_seconds : float
        Where blocks run free: what all but DRAM and the launch needs.
    counts : CacheCounts or None
        What went through the cache model; None where its bytes were known.
    pipes : mapping of str to float
        What each resource needs if nothing waits and all SMs share the work evenly.
    slots : int
        Blocks of a full wave; 0 where no barrier ends one.
    idle_seconds : float
        In which a slot has no block, on the mean over slots; in waves.
    """

    seconds: float
    compute_seconds: float
    shared_seconds: float
    l2_seconds: float
    dram_seconds: float
    latency_seconds: float
    around_seconds: float
    launch_seconds: float
    throttled_seconds: float
    waves: tuple[Wave, ...]
    dram_bytes: int
    l2_bytes: int
    ended_seconds: tuple[float, ...]
    simulated_share: float = 1.0
    busy_seconds: float = 0.0
    counts: CacheCounts | None = field(default=None, compare=False, repr=False)
    pipes: Mapping[str, float] = field(default_factory=dict)
    slots: int = 0
    idle_seconds: float = 0.0

    @property
    def occupancy(self) -> float:
        """The share of the time between launch and end in which a slot has a block, on the mean."""
        return 1 - self.idle_seconds / (self.seconds - self.launch_seconds)

    @property
    def busiest(self) -> str:
        """The resource that no schedule of this kernel could wait less for; empty where that is not known."""
        return max(self.pipes, key=lambda name: self.pipes[name], default="")

    @property
    def lost(self) -> dict[str, float]:
        """Seconds beyond what the busiest resource needs, by what they are lost to; they add up to the rest.

        ``last_wave``: SMs without a block; ``waits``: all that keeps the busiest resource idle while blocks run.
        """
        if self.waves and not self.slots:
            ragged = self.idle_seconds
        elif self.waves:
            on_sms = [wave for wave in self.waves if wave.binds not in ("L2", "DRAM")]
            ragged = sum(max(wave[1:6]) * (1 - wave.blocks / self.slots) for wave in on_sms)
        else:
            even = max(self.compute_seconds, self.shared_seconds, self.l2_seconds, self.latency_seconds)
            ragged = max(0.0, self.busy_seconds - even - self.around_seconds)
        beyond = max(0.0, self.seconds - self.pipes.get(self.busiest, self.seconds))
        result: dict[str, float] = {}
        for name, part in (
            ("launch", self.launch_seconds), ("power_limit", self.throttled_seconds),
            ("fill_and_drain", self.around_seconds), ("last_wave", ragged),
        ):  # fmt: skip
            result[name] = min(part, beyond - sum(result.values()))
        return result | {"waits": beyond - sum(result.values())}

    def seconds_at(self, slower: float) -> float:
        """What it takes where all but DRAM and the launch takes ``slower`` times as long, in a sustained run.

        DRAM and the rest of a wave overlap the less the nearer they are: two that are equal take 1.19 of one.
        """
        core, dram, around = self._parts
        return _overlapped(core, dram, slower) + around * slower + self.launch_seconds

    def at_most(self, seconds: float) -> ModelledTime:
        """The same where what the power limit adds is less, so that it takes no longer than a sustained run."""
        less = max(0.0, min(self.throttled_seconds, self.seconds - seconds))
        if not less:
            return self
        ended = tuple(end * (1 - less / self.seconds) for end in self.ended_seconds)
        throttled = self.throttled_seconds - less
        return replace(self, seconds=self.seconds - less, throttled_seconds=throttled, ended_seconds=ended)

    def rested(self, share: float) -> ModelledTime:
        """The same where all but DRAM and the launch takes such a share of it, and no limit of power slows it."""
        names = ("compute", "shared", "l2", "latency", "around", "busy", "idle")
        less = {f"{name}_seconds": share * getattr(self, f"{name}_seconds") for name in names}
        seconds, shares = self.seconds_at(share), np.array([share, share, share, 1, share, share])
        waves = tuple(Wave(wave.blocks, *(shares * wave[1:]).tolist()) for wave in self.waves)
        pipes = {name: part if name == "DRAM" else share * part for name, part in self.pipes.items()}
        return replace(
            self, **less, seconds=seconds, ended_seconds=(seconds,), throttled_seconds=0.0, waves=waves, pipes=pipes
        )  # fmt: skip

    @cached_property
    def _parts(self) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Of each wave all but DRAM, and DRAM, or of all where blocks run free; and what is around them all."""
        if not self.waves:
            return np.array([self.busy_seconds]), np.array([self.dram_seconds]), 0.0
        needs = np.array(self.waves)[:, 1:]
        return needs[:, [0, 1, 2, 4]].max(axis=1), needs[:, 3], float(needs[:, 5].sum())

    @property
    def binds(self) -> dict[str, int]:
        """In how many waves each resource binds, most first; where blocks run free, the one whose sum is largest: 1."""
        if self.waves:
            return dict(Counter(wave.binds for wave in self.waves).most_common())
        sums = (
            self.compute_seconds, self.shared_seconds, self.l2_seconds, self.dram_seconds, self.latency_seconds
        )  # fmt: skip
        return {BINDS[int(np.argmax(sums))]: 1}


@jit
def _overlapped(some: NDArray[np.float64], others: NDArray[np.float64], slower: float) -> float:
    # The sum over pairs of which the first takes so many times as long, and that overlap, not quite: the fourth root of
    # the sum of their fourth powers, by products and square roots, which are the same on every machine.
    total = 0.0
    for i in range(some.shape[0]):
        mine = some[i] * slower
        longer = max(mine, others[i])
        share = min(mine, others[i]) / longer if longer > 0 else 0.0
        square = share * share
        total += longer * math.sqrt(math.sqrt(1 + square * square))
    return total


def throttled_seconds(flops: float, sms: int, rates: Rates, seconds: float) -> float:
    """What the power limit adds to a time, in seconds: until its tensor cores rest enough."""
    rested = flops / rates.flops / sms / 1e9 / _RESTS_LITTLE
    return max(0.0, min(rates.throttle * (seconds - rates.boost / 1e9), rested - seconds))


def time_of_waves(
    waves: Sequence[Wave], launch_seconds: float, dram_bytes: int, l2_bytes: int, throttled: float = 0.0
) -> ModelledTime:
    """The time of waves one after the other; ``throttled`` is what the power limit adds."""
    _, compute, shared, l2, dram, latency, around = (sum(column) for column in zip(*waves, strict=True))
    seconds = sum(wave.seconds for wave in waves) + launch_seconds + throttled
    return ModelledTime(
        seconds=seconds,
        compute_seconds=compute,
        shared_seconds=shared,
        l2_seconds=l2,
        dram_seconds=dram,
        latency_seconds=latency,
        around_seconds=around,
        launch_seconds=launch_seconds,
        throttled_seconds=throttled,
        waves=tuple(waves),
        dram_bytes=dram_bytes,
        l2_bytes=l2_bytes,
        ended_seconds=(seconds,),
    )
