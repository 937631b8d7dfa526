"""A kernel as it is simulated, and the traffic that its trace causes in a cache, or in caches of many sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pebble.errors import InputError
from pebble.models.caches import CacheCounts, parse_policy
from pebble.models.caches.policy import check_capacity
from pebble.schedules.execution import WAVES, Execution
from pebble.schedules.orders import OrderParams, params_of
from pebble.schedules.tile import TileShape
from pebble.traces import LINE_BYTES, Trace
from pebble.traces.asynchronous import Speeds, asynchronous_trace
from pebble.traces.program import Program
from pebble.traces.touches import program_trace, timed_trace


@dataclass(frozen=True)
class KernelConfig:
    """How a tiled kernel runs on a GPU.

    Attributes
    ----------
    tile : TileShape
        Block tile, already cut to the problem.
    sms : int
        Streaming multiprocessors.
    blocks_per_sm : int
        Blocks that run at once on each.
    cache_bytes : int
        The cache between the SMs and DRAM.
    policy : str
        Its model, a name that `pebble.models.caches.parse_policy` reads.
    execution : Execution
        How the blocks run in time.
    stages : int
        Steps whose tiles a block holds at once; what free-running blocks fetch ahead.
    speeds : Speeds, optional
        Of the chip, which free-running blocks need.
    """

    tile: TileShape
    sms: int
    blocks_per_sm: int
    cache_bytes: int
    policy: str = "lru"
    execution: Execution = WAVES
    stages: int = 1
    speeds: Speeds | None = None

    @property
    def wave_blocks(self) -> int:
        """P: blocks that run at once on the chip."""
        return self.sms * self.blocks_per_sm

    def trace(self, program: Program) -> Trace:
        """The trace of a program of block steps, by its clock, in waves or free-running.

        Raises
        ------
        InputError
            Too long; or free-running, and nothing is known of the chip.
        """
        if program.clocks:
            return timed_trace(program, self.sms)
        if not self.execution.is_asynchronous:
            return program_trace(program.layout, program.groups, self.sms)
        if self.speeds is None:
            raise InputError("--execution free: expected --gpu or --machine, whose speeds tell when a block runs.")
        return asynchronous_trace(
            program.layout, program.groups, self.speeds, self.stages, self.sms, self.execution.seed
        )

    @property
    def order_params(self) -> OrderParams:
        """What tile orders need to know of the kernel."""
        return params_of(self.sms, self.tile)


@dataclass(frozen=True)
class Traffic:
    """What one schedule moves.

    Attributes
    ----------
    order : str
        Name of the tile order or schedule.
    counts : CacheCounts
        Lines by operand.
    plain_bytes : int, optional
        What the same schedule moves without the set-aside, where the policy has one.
    """

    order: str
    counts: CacheCounts
    plain_bytes: int | None = None

    @property
    def dram_read_bytes(self) -> int:
        """Bytes fetched from DRAM."""
        return sum(self.counts.read_misses) * self.counts.unit_bytes

    @property
    def dram_write_bytes(self) -> int:
        """Bytes written to DRAM, dirty lines at the end included."""
        return sum(self.counts.write_backs) * self.counts.unit_bytes

    @property
    def dram_bytes(self) -> int:
        """Bytes read and written."""
        return self.dram_read_bytes + self.dram_write_bytes

    @property
    def l2_bytes(self) -> int:
        """Bytes that SMs read from L2 and write to it, whole lines."""
        return self.counts.accesses_lines * LINE_BYTES

    @property
    def saved_bytes(self) -> int | None:
        """What the set-aside saves, where the policy has one; negative where it costs."""
        return None if self.plain_bytes is None else self.plain_bytes - self.dram_bytes

    @property
    def residue_bytes(self) -> int:
        """The part of the writes that was still dirty in the cache at the end."""
        return sum(self.counts.residue) * self.counts.unit_bytes

    @property
    def hit_rate(self) -> float:
        """Lines that needed no fetch over lines touched; a write needs none."""
        return self.counts.hits_lines / self.counts.accesses_lines

    @property
    def both_hit_share(self) -> float:
        """Share of block steps whose A tile and B tile were both in the cache."""
        return self.counts.block_steps_both_hit / max(1, self.counts.block_steps)

    def by_operand(self) -> dict[str, dict[str, int]]:
        """Bytes read and written of each operand."""
        counts = self.counts
        return {
            name: {
                "read_bytes": counts.read_misses[i] * counts.unit_bytes,
                "write_bytes": counts.write_backs[i] * counts.unit_bytes,
            }
            for i, name in enumerate(counts.operand_names)
        }


def simulate_trace(name: str, trace: Trace, cache_bytes: int, policy: str = "lru") -> Traffic:
    """Run any trace through a cache of ``cache_bytes``.

    Raises
    ------
    InputError
        The trace is too long, or the cache smaller than the largest tile.
    """
    return Traffic(name, parse_policy(policy).simulate(trace, cache_bytes // LINE_BYTES))


@dataclass(frozen=True)
class ScheduleCurve:
    """One schedule's DRAM bytes at each capacity of the report."""

    name: str  #: of the schedule
    read_bytes: tuple[int, ...]  #: fetched from DRAM
    write_bytes: tuple[int, ...]  #: written to DRAM

    @property
    def dram_bytes(self) -> tuple[int, ...]:
        """Bytes read and written."""
        return tuple(r + w for r, w in zip(self.read_bytes, self.write_bytes, strict=True))


def curve_of(name: str, trace: Trace, policy: str, capacities_lines: Sequence[int]) -> ScheduleCurve:
    """DRAM bytes at each capacity: LRU and OPT from one curve, other policies by one simulation each.

    Raises
    ------
    InputError
        A capacity below the largest tile.
    """
    check_capacity(trace, min(capacities_lines), what="curve")
    traffic = parse_policy(policy).curve(trace, capacities_lines)
    return ScheduleCurve(name, *(tuple(value * LINE_BYTES for value in part) for part in zip(*traffic, strict=True)))
