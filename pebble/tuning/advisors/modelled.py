"""Modelled time of a kernel: wave by wave the slowest of compute, shared memory, L2 and DRAM, and what lies between.

A wave lasts as long as its busiest SM needs for its operations, for what it loads from L2, for what it writes to and
reads from shared memory, or for the round of its stages (latency, transfer and compute of one step over the stages),
and as long as DRAM needs for the wave's share of the bytes that a cache model lets through. Rates are those that kernels
sustain (`pebble.models.speeds`), the L2 of the whole chip where the machine file has it. An estimate, no bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pebble.errors import InputError
from pebble.models.machine import Machine
from pebble.models.speeds import speeds_of
from pebble.models.tile_model import SHARED_BYTES_PER_CLOCK
from pebble.traces import LINE_BYTES
from pebble.tuning.advisors.base import Advice
from pebble.tuning.advisors.work import Launch, launches
from pebble.units import ceil_div
from pebble.workloads.base import Workload

_LANES = 128  # of fp32 in an SM, four parts of 32; 64 on the A100


@dataclass(frozen=True)
class Rates:
    """Of a chip, per nanosecond; latencies in nanoseconds.

    Attributes
    ----------
    flops, exps, lanes, shared, l2 : float
        Of one SM: operations, exponentials, fp32 lanes, bytes of shared memory, bytes from L2.
    dram : float
        Bytes of the chip.
    hit, miss, turn : float
        Until tiles come from L2, what a miss adds, and between two blocks of a slot.
    """

    flops: float
    exps: float
    lanes: float
    shared: float
    l2: float
    dram: float
    hit: float
    miss: float
    turn: float


def rates_of(machine: Machine, dtype: str) -> Rates:
    """The sustained rates of a chip.

    Raises
    ------
    InputError
        The machine file lacks a number that time needs.
    """
    for key in ("boost_clock", f"throughput.{dtype}", "dram_bandwidth"):
        if machine.get(key) is None:
            raise InputError(
                f"tile: the machine file of {machine.name} has no {key}, which modelled time needs; name another GPU, or "
                "a file of your own with it by --machine."
            )
    speeds, clock = speeds_of(machine, dtype), (machine.boost_hertz or 0) / 1e9
    l2 = speeds.lines * LINE_BYTES
    if machine.l2_bytes_per_second:
        l2 = min(l2, machine.l2_bytes_per_second / 1e9 / machine.sms)
    return Rates(
        speeds.flops,
        speeds.exps,
        _LANES * clock,
        SHARED_BYTES_PER_CLOCK * clock,
        l2,
        speeds.dram_lines * LINE_BYTES,
        speeds.hit,
        speeds.miss,
        speeds.turn,
    )


@dataclass(frozen=True)
class Modelled:
    """A modelled time.

    Attributes
    ----------
    seconds : float
    compute, shared, l2, dram, rounds, between : float
        Seconds of each by itself, all waves; what binds is the largest of all but ``between``, which comes on top.
    waves : int
    last_wave_use : float
        Of the longest launch.
    """

    seconds: float
    compute: float
    shared: float
    l2: float
    dram: float
    rounds: float
    between: float
    waves: int
    last_wave_use: float

    @property
    def bound_by(self) -> str:
        """What the waves wait for most."""
        parts = {
            "compute": self.compute,
            "L2": self.l2,
            "DRAM": self.dram,
            "shared memory": self.shared,
            "latency": self.rounds,
        }
        return max(parts, key=lambda part: parts[part])

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        parts = ("compute", "shared", "l2", "dram", "rounds", "between")
        return {
            "modelled_seconds": self.seconds,
            "bound_by": self.bound_by,
            "seconds": {part: getattr(self, part) for part in parts},
            "waves": self.waves,
            "last_wave_use": self.last_wave_use,
        }


def modelled(workload: Workload, advice: Advice, rates: Rates, dram_bytes: int) -> Modelled:
    """The time of one kernel that moves so many bytes between L2 and DRAM."""
    work = launches(workload, advice.tile, advice.schedule, advice.multicast, advice.sms)
    flops = sum(launch.flops for launch in work)
    parts = [_launch(launch, advice, rates, dram_bytes * launch.flops / flops) for launch in work]
    longest = max(parts, key=lambda part: part.seconds)
    sums = [sum(getattr(part, name) for part in parts) for name in list(Modelled.__dataclass_fields__)[:7]]
    return Modelled(*sums, sum(part.waves for part in parts), longest.last_wave_use)


def step_compute(launch: Launch, rates: Rates) -> float:
    """Nanoseconds of one step of one block that has the SM to itself."""
    return launch.step_flops / rates.flops + launch.step_exps / rates.exps + launch.step_rescales / rates.lanes


def _launch(launch: Launch, advice: Advice, rates: Rates, dram_bytes: float) -> Modelled:
    blocks, slots, most = launch.blocks, advice.slots, advice.blocks_per_sm
    full, last = divmod(blocks, slots)
    step_bytes = (launch.load_bytes / blocks - launch.resident_bytes) / launch.steps
    compute = step_compute(launch, rates)
    loading = step_bytes / rates.l2
    # each byte is written to shared memory once, and read from there at least once; what stays is read in each step
    received = (launch.received_bytes / blocks - launch.resident_bytes) / launch.steps
    shared = (2 * received + launch.resident_bytes) / rates.shared
    round_trip = (rates.hit + loading + compute) / advice.stages
    store = launch.store_bytes / blocks / rates.l2
    # of the waves: blocks on the busiest SM, blocks in all, steps of each, and how many such waves there are
    waves: list[tuple[int, float, float, float]] = [
        (most, slots, launch.steps, full),
        (ceil_div(last, advice.sms), last, launch.steps, last > 0),
    ]
    if launch.longest != launch.steps:  # unequal blocks fill each other's gaps, down to the longest of all
        rounds = blocks / slots
        if launch.steps * rounds > launch.longest:
            waves = [(most, slots, launch.steps, rounds)]
        else:
            waves = [(min(most, ceil_div(blocks, advice.sms)), blocks, launch.longest, 1)]
    sums = [0.0] * 7
    for here, running, steps, count in waves:
        own = [here * each * steps for each in (compute, shared, loading)]
        waiting, memory = round_trip * steps, dram_bytes / blocks * running / rates.dram
        # while one block of an SM begins or ends, the others go on
        between = (rates.turn + rates.hit + launch.resident_bytes / rates.l2 + store) / most
        parts = (max(*own, memory, waiting) + between, *own, memory, waiting, between)
        sums = [total + part * count * 1e-9 for total, part in zip(sums, parts, strict=True)]
    return Modelled(*sums, full + (last > 0), (last or slots) / slots)
