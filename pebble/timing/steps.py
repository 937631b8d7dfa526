"""What one step of a block needs of each resource, by itself and beside others on its SM."""

from __future__ import annotations

from typing import NamedTuple

from pebble.simulation import KernelConfig
from pebble.timing.modelled import in_turn
from pebble.timing.sample import step_lines
from pebble.timing.sustained import Rates
from pebble.traces.layout import Index
from pebble.traces.program import Phase


class Step(NamedTuple):
    """What one step of one block needs by itself, in nanoseconds, and the lines that it loads from L2.

    ``wait`` is what it waits while others compute; ``l2`` is at the SM's own port, ``loaded`` while all SMs load.
    """

    compute: float
    wait: float
    shared: float
    l2: float
    loaded: float
    lines: float

    def at_once(self, blocks: int) -> tuple[float, float, float]:
        """Of so many blocks that share an SM."""
        return in_turn(blocks, self.compute, self.wait), blocks * self.shared, blocks * self.l2

    def chain(self, blocks: int, stages: int, latency: float, least: float) -> float:
        """The least time of a step whose buffers are used again after so many steps."""
        compute, shared, _ = self.at_once(blocks)
        return max(least, (latency + blocks * self.loaded + max(compute, shared)) / stages)


def step_of(phase: Phase, sectors: Index, rates: Rates, config: KernelConfig) -> Step:
    lines, shared = step_lines(phase, sectors), phase.shared_bytes
    if phase.paired_bytes and rates.exported:  # two tiles share what they read first, that of A
        lines, shared = lines - step_lines(phase, sectors, 1) / 2, phase.paired_bytes
    compute, wait = rates.compute(phase.flops, phase.exps, phase.overlapped)
    promoted = 0.0 if phase.exps else rates.promoted(phase.flops, config.tile.bk)
    # what comes from another SM enters by the same port as what comes from L2
    copied = phase.copied_bytes / rates.copies if phase.copied_bytes else 0.0
    port, loaded = lines / rates.port + copied, lines / min(rates.port, rates.lines / config.sms) + copied
    return Step(compute + promoted, wait, shared / rates.shared + promoted, port, loaded, lines)
