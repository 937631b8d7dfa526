"""The rates that kernels sustain, for modelled times.

DRAM and what a miss adds are those of `pebble.models.rates`; writes among reads slow DRAM where that was measured
(`Rates.with_writes`, ``benchmarks/gpu/bandwidth.py``). The rest is fitted to times of launches on an H100 and an H200
(``benchmarks/hardware/fit_clocks.py``):

- `SUSTAINED_FLOPS` is a share of the peak. On chips of compute capability 9.0 tensor cores take their operands from
  shared memory, 64 rows of A and up to 256 columns of B at a time: `SHARED_BYTES_PER_CLOCK`, of 128 that it moves.
- `L2_BYTES_PER_CLOCK` is not fitted: the plateau of an H200's read test by SM, where no plateau of the chip is known;
  `PORT_BYTES_PER_CLOCK`, what one SM takes at most, is recalled and not verified.
- `HIT_NS`, `DRAIN_NS`, `LAUNCH_NS` and `STEP_NS` are what short kernels and small tiles wait for.
- At the power limit of 700 W the clock falls: where tensor cores rest little all that comes after `BOOST_NS` takes
  `THROTTLE` longer. Of other chips it is not known, and left out.
- `SPECIAL_PER_CLOCK` is what the special-function units of an SM do, published. A step with exponentials also waits
  `WAIT_NS`, for its products, for the largest score of each row and for its barriers: fitted to attention.
- An activation is one operation of the special-function units, a sum that is promoted to fp32 one addition of the
  vector pipes, as many in a cycle as is published.
- `PART_BYTES_PER_CLOCK`, where k is cut, is chosen on five products of an H200 (``benchmarks/hardware/split_k.py``);
  from 14.5 to 16 the miss is alike, and of these the one at which the fastest of ten is picked best.
- `AFTER_A_PAUSE` is what a product in the exported kernel takes of all but DRAM's time when the chip rested before:
  older kernels, to which the rates are fitted, take more cycles. Chosen on 20 products (``fit_power.py``).
- `CONTENTION`, of kernels side by side, is chosen, to a tenth, on the H100's splits of a product beside a reader.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from pebble.errors import InputError
from pebble.models.machine import Machine
from pebble.models.rates import (
    FITTED,
    SPECIAL_PER_CLOCK,
    Rate,
    dram_writes,
    speeds_of,
    sustained_dram,
    sustained_l2,
    sustained_operations,
    vector_per_clock,
)
from pebble.traces import LINE_BYTES

SUSTAINED_FLOPS = 0.76
CONTENTION = 0.3
SHARED_BYTES_PER_CLOCK = 94.0
PART_BYTES_PER_CLOCK = 15.5
L2_BYTES_PER_CLOCK, PORT_BYTES_PER_CLOCK = 38.0, 64.0
WAIT_NS = 480.0
HIT_NS, DRAIN_NS, LAUNCH_NS, STEP_NS = 230.0, 1500.0, 2700.0, 290.0
THROTTLE, BOOST_NS = 0.17, 2.1e6
AFTER_A_PAUSE = 0.89
_HOPPER = 9.0  # compute capability


@dataclass(frozen=True)
class Rates:
    """What kernels sustain; times in nanoseconds.

    Attributes
    ----------
    flops, exps : float
        Operations, and exponentials, of one SM in a nanosecond.
    wait : float
        What a step with exponentials waits besides, while other blocks of its SM go on.
    vector : float
        Additions in fp32 of one SM in a nanosecond.
    promotions : float
        How often in a step all sums are added to others, in fp32: 1/4 for once in four steps.
    shared : float
        Bytes that one SM moves through its shared memory in a nanosecond; infinite where that is not known.
    port : float
        128-byte lines that one SM loads from L2 in a nanosecond, if others leave it enough.
    lines : float
        Lines that all SMs together load from L2 in a nanosecond.
    dram_lines : float
        Lines between L2 and DRAM in a nanosecond, all of them read.
    written_ns, turned_ns : float
        What a written line takes longer than a read one, and what a line takes longer where half of them are written,
        besides; 0 where that was not measured.
    hit, miss : float
        From the request of a tile to its arrival from L2, and what a miss adds.
    drain : float
        From the last step of a block to the first request of the next one in its slot.
    launch : float
        Of a kernel.
    step : float
        The least of a step of a block.
    throttle, boost : float
        By which share longer all takes at the power limit, and when it is reached.
    parts : float
        Lines of parts of tiles that one SM writes or adds in a nanosecond, where k is cut.
    contention : float
        Of kernels side by side: `pebble.timing.modelled`.
    copies : float
        Bytes that one SM copies from the shared memories of others in a nanosecond; 0 where that is not known.
    exported : bool
        Whether the kernel is that of an exported file: its exponentials run beside products, and it takes some tiles in
        pairs (`pebble.traces.program.Phase`).
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
    step: float = 0.0
    throttle: float = 0.0
    boost: float = 0.0
    contention: float = 0.0
    parts: float = math.inf
    exported: bool = False
    written_ns: float = 0.0
    turned_ns: float = 0.0
    wait: float = 0.0
    vector: float = math.inf
    promotions: float = 0.0
    copies: float = 0.0

    def compute(self, flops: float, exps: float, overlapped: bool) -> tuple[float, float]:
        """Nanoseconds in which a step of a block holds the pipes of its SM, and those that it waits besides.

        Tensor cores and exponentials work one after the other, also those of several blocks. ``overlapped``, in an
        exported file: two warp groups, each with half of the rows, take turns, and each waits while the other works.

        Examples
        --------
        >>> rates = Rates(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, wait=3.0, exported=True)
        >>> rates.compute(10, 4, False), rates.compute(10, 4, True), rates.compute(10, 0, False)
        ((14.0, 3.0), (10.0, 0.0), (10.0, 0.0))
        """
        products, exponentials = flops / self.flops, exps / self.exps
        if self.exported and overlapped:
            return max(products, exponentials, (products + exponentials) / 2 + self.wait), 0.0
        return products + exponentials, self.wait if exps else 0.0

    def promoted(self, flops: float, depth: int) -> float:
        """Nanoseconds in which vector pipes promote the sums of a step of so many operations, so deep in k.

        Tensor cores and their shared memory rest meanwhile.
        """
        return self.promotions * flops / (2 * depth) / self.vector if self.promotions else 0.0

    def with_writes(self, share: float) -> Rates:
        """The same where so much of what moves between L2 and DRAM is written: DRAM turns round for it.

        The time of a line is that of its reads and its writes, and ``4 w (1 - w) turned_ns`` for a share ``w``.

        Examples
        --------
        >>> from pebble.models.machine import load_machine
        >>> rates = sustained_rates(load_machine("h200"), "bf16")
        >>> [round(128 * rates.with_writes(share).dram_lines) for share in (0, 0.5, 1)]  # bytes in a nanosecond
        [4480, 3290, 4350]
        """
        a_line = 1 / self.dram_lines + share * self.written_ns + 4 * share * (1 - share) * self.turned_ns
        return replace(self, dram_lines=1 / a_line) if a_line else self


def sustained_rates(machine: Machine, dtype: str) -> Rates:
    """The rates of a chip for operands of one type.

    Raises
    ------
    InputError
        The machine file lacks a number that time needs.
    """
    speeds = speeds_of(machine, dtype)
    clock = (machine.boost_hertz or 0.0) / 1e9
    plateau = machine.l2_bytes_per_second
    l2 = machine.sms * L2_BYTES_PER_CLOCK * clock if plateau is None else plateau / 1e9
    hopper, copies = machine.capability == _HOPPER, machine.get("dsmem_bandwidth")
    read, (written, half) = sustained_dram(machine), dram_writes(machine)
    dram = speeds.dram_lines if read is None else read.per_second / LINE_BYTES / 1e9
    read_ns, written_ns = 1 / dram, 1 / dram if written is None else LINE_BYTES / written.per_second * 1e9
    even_ns = (read_ns + written_ns) / 2
    return Rates(
        flops=(machine.peak_flops(dtype) or 0.0) * SUSTAINED_FLOPS / machine.sms / 1e9,
        exps=SPECIAL_PER_CLOCK * clock,
        wait=WAIT_NS,
        vector=vector_per_clock(machine) * clock,
        shared=SHARED_BYTES_PER_CLOCK * clock if hopper else math.inf,
        port=PORT_BYTES_PER_CLOCK * clock / LINE_BYTES,
        lines=l2 / LINE_BYTES,
        dram_lines=dram,
        written_ns=written_ns - read_ns,
        turned_ns=0.0 if half is None else LINE_BYTES / half.per_second * 1e9 - even_ns,
        hit=HIT_NS,
        miss=speeds.miss,
        step=STEP_NS,
        throttle=THROTTLE if hopper else 0.0,
        boost=BOOST_NS,
        contention=CONTENTION,
        parts=PART_BYTES_PER_CLOCK * clock / LINE_BYTES,
        copies=0.0 if copies is None else copies.base / machine.sms / 1e9,
        exported=hopper,
    )


def reached_rates(machine: Machine, dtype: str, accumulator: str = "fp32") -> dict[str, Rate | None]:
    """What kernels reach of ``operations``, ``dram`` and ``l2``, per second; None where it is not known.

    Never less than what modelled times are made of, so no modelled time is shorter than the same amounts at these.
    """
    dram_rates = (sustained_dram(machine), *dram_writes(machine))
    result = {
        "operations": sustained_operations(machine, dtype, accumulator),
        "dram": max((rate for rate in dram_rates if rate is not None), key=lambda rate: rate.per_second, default=None),
        "l2": sustained_l2(machine),
    }
    try:
        rates = sustained_rates(machine, dtype)
    except InputError:  # no time is modelled on this chip
        return result
    fastest = AFTER_A_PAUSE if rates.exported else 1.0
    clock, peak = (machine.boost_hertz or 0.0) / 1e6, machine.get(f"throughput.{dtype}")
    modelled: dict[str, tuple[float, float | None, str]] = {
        "operations": (
            rates.flops * machine.sms / fastest,
            peak.at_mhz if peak else None,
            f"{SUSTAINED_FLOPS / fastest:.0%} of the peak",
        ),
        "l2": (rates.lines * LINE_BYTES / fastest, clock, f"{L2_BYTES_PER_CLOCK / fastest:.1f} bytes per clock and SM"),
    }
    for name, (a_nanosecond, at_mhz, note) in modelled.items():
        known = result[name]
        if known is None or a_nanosecond * 1e9 > known.per_second * (1 + 1e-9):
            result[name] = Rate(float(round(a_nanosecond * 1e9)), "guess", FITTED, at_mhz, note)
    return result
