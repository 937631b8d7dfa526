"""The rates that kernels sustain, for modelled times.

Operations and DRAM are those of `pebble.models.speeds`. The rest was read off times of launches on an H100 and an H200:

- On chips of compute capability 9.0 tensor cores take their operands from shared memory, 64 rows of A and up to 256
  columns of B at a time, and that is what most kernels wait for. `SHARED_BYTES_PER_CLOCK` was fitted to the times of
  the drift plans (two tiles and three numbers of stages); that it ranks ten tiles on shapes of their own is a check.
  The hardware moves 128 bytes a clock; a chip at its power limit runs well below its boost clock, which is in the 78.
- `L2_BYTES_PER_CLOCK` is the plateau of an H200's read test by SM, where no plateau of the chip is known;
  `PORT_BYTES_PER_CLOCK`, what one SM takes at most, is recalled and not verified.
- `EXPS_PER_CLOCK` was fitted to attention of the H200's daily plan, `DRAIN_NS` to the drift plans.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pebble.errors import InputError
from pebble.models.machine import Machine
from pebble.models.speeds import speeds_of
from pebble.traces import LINE_BYTES

SHARED_BYTES_PER_CLOCK = 78.0
L2_BYTES_PER_CLOCK, PORT_BYTES_PER_CLOCK = 38.0, 64.0
EXPS_PER_CLOCK = 8.0
DRAIN_NS, LAUNCH_NS = 3400.0, 4000.0
_TENSOR_CORES_READ_SHARED = 9.0  # compute capability


@dataclass(frozen=True)
class Rates:
    """What kernels sustain; times in nanoseconds.

    Attributes
    ----------
    flops, exps : float
        Operations, and exponentials, of one SM in a nanosecond.
    shared : float
        Bytes that one SM moves through its shared memory in a nanosecond; infinite where that is not known.
    port : float
        128-byte lines that one SM loads from L2 in a nanosecond, if others leave it enough.
    lines : float
        Lines that all SMs together load from L2 in a nanosecond.
    dram_lines : float
        Lines between L2 and DRAM in a nanosecond.
    hit, miss : float
        From the request of a tile to its arrival from L2, and what a miss adds.
    drain : float
        From the last step of a block to the first request of the next one in its slot.
    launch : float
        Of a kernel.
    """

    flops: float
    exps: float
    shared: float
    port: float
    lines: float
    dram_lines: float
    hit: float
    miss: float
    drain: float = DRAIN_NS
    launch: float = LAUNCH_NS


def sustained_rates(machine: Machine, dtype: str) -> Rates:
    """The rates of a chip for operands of one type.

    Raises
    ------
    InputError
        The machine file lacks a number that time needs.
    """
    try:
        speeds = speeds_of(machine, dtype)
    except InputError:
        raise InputError(
            f"time: the machine file of {machine.name} lacks boost_clock, throughput.{dtype} or dram_bandwidth: "
            "without them no time is modelled; add what is missing."
        ) from None
    clock = (machine.boost_hertz or 0.0) / 1e9
    plateau = machine.l2_bytes_per_second
    l2 = machine.sms * L2_BYTES_PER_CLOCK * clock if plateau is None else plateau / 1e9
    shared = SHARED_BYTES_PER_CLOCK * clock if machine.capability == _TENSOR_CORES_READ_SHARED else math.inf
    return Rates(
        flops=speeds.flops,
        exps=EXPS_PER_CLOCK * clock,
        shared=shared,
        port=PORT_BYTES_PER_CLOCK * clock / LINE_BYTES,
        lines=l2 / LINE_BYTES,
        dram_lines=speeds.dram_lines,
        hit=speeds.hit,
        miss=speeds.miss,
    )
