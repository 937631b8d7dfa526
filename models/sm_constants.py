"""What one SM does in a clock, and how long it waits: the constants of tile arithmetic, each with its source.

Rates are bytes per clock and SM: the share that an SM has when all load at once. For the A100 two sets are named:
``published``, the figures as they circulate, and ``corrected``. 1,555 GB/s at 1,410 MHz is 10.21 bytes per clock and
SM; 11.84 is about what it is at the clock of the memory, 1,215 MHz, which does not count the cycles of an SM. And a
latency of DRAM that was measured from an SM holds the way through L2 already: the two are not added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from pebble.errors import InputError
from pebble.models.machine import Machine
from pebble.models.rates import L2_BYTES_PER_CLOCK

MMA = (16, 16, 16)  # m, n, k of the instruction that operations are counted in
TENSOR_CORES = 4  # of an SM, since Volta's eight
SETS = ("published", "corrected")
_L2_LATENCY, _DRAM_LATENCY = 250.0, 600.0  # where the machine file has none


@dataclass(frozen=True)
class Constant:
    """One number, and how far to trust it.

    Attributes
    ----------
    value : float
    source : str
    mark : str
        ``vendor``, ``measured``, ``guess``, ``user``; or ``published``, as it circulates.
    """

    value: float
    source: str
    mark: str


def own_constant(name: str, value: float) -> Constant:
    """A number of the user's own; InputError if it is not above zero."""
    if not 0 < value < 1e12:
        raise InputError(f"--{name.replace('_', '-')}: got {value:g}, expected a number above zero.")
    return Constant(value, "given by the user", "user")


@dataclass(frozen=True)
class SmConstants:
    """The constants of tile arithmetic.

    Attributes
    ----------
    name : str
        ``machine``, ``published``, ``corrected`` ...
    mma : tuple of int
        m, n, k of a tensor-core instruction.
    mma_cycles, tensor_cores : Constant
        Cycles of one on one tensor core, and tensor cores of an SM.
    l2_latency, dram_latency : Constant
        Cycles.
    l2_rate, dram_rate : Constant
        Bytes per clock and SM.
    adds : bool
        Whether the latency of DRAM comes on top of that of L2, and its transfer after that from L2.
    reason : str
        Why this set is as it is.
    """

    name: str
    mma: tuple[int, int, int]
    mma_cycles: Constant
    tensor_cores: Constant
    l2_latency: Constant
    l2_rate: Constant
    dram_latency: Constant
    dram_rate: Constant
    adds: bool = False
    reason: str = ""

    @property
    def flops_per_clock(self) -> float:
        """Operations of an SM in a clock."""
        return 2 * math.prod(self.mma) / self.mma_cycles.value * self.tensor_cores.value

    @property
    def miss_latency(self) -> float:
        """Cycles until the first byte of a load that misses L2."""
        return self.dram_latency.value + (self.l2_latency.value if self.adds else 0)

    def with_values(self, **values: float) -> SmConstants:
        """The same with the user's own numbers.

        Raises
        ------
        InputError
            A number that is not above zero.
        """
        changed: dict[str, Any] = {key: own_constant(key, value) for key, value in values.items()}
        return replace(self, **changed)

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        numbers = ("mma_cycles", "tensor_cores", "l2_latency", "l2_rate", "dram_latency", "dram_rate")
        units = {"l2_rate": "bytes_per_clock_per_sm", "dram_rate": "bytes_per_clock_per_sm", "tensor_cores": "per_sm"}
        result: dict[str, object] = {"name": self.name, "mma": list(self.mma), "latencies_add": self.adds}
        for key in numbers:
            constant: Constant = vars(self)[key]
            unit = units.get(key, "cycles")
            result[key] = {"value": constant.value, "unit": unit, "source": constant.source, "mark": constant.mark}
        return {**result, "reason": self.reason}


def tensor_flops_per_clock(machine: Machine, dtype: str) -> float | None:
    """Operations of an SM in a clock, to the nearest power of two, as tensor cores are built; None if not known.

    A vendor's peak is often that of another clock than the one it names beside.

    Examples
    --------
    >>> from pebble.models.machine import load_machine
    >>> tensor_flops_per_clock(load_machine("a100-sxm4-40gb"), "fp16")
    2048.0
    """
    peak, clock = machine.peak_flops(dtype), machine.boost_hertz
    if not peak or not clock:
        return None
    return 2.0 ** round(math.log2(peak / (machine.sms * clock)))


def dram_constants(machine: Machine) -> tuple[Constant, Constant]:
    """Latency of a miss in cycles, and an SM's share of DRAM in bytes per clock; errors as `constants_of`."""
    _check(machine, {"boost_clock": machine.boost_hertz, "dram_bandwidth": machine.dram_bytes_per_second})
    rate = _rate(machine, "dram_bandwidth")
    assert rate is not None
    return _latency(machine, "dram", _DRAM_LATENCY), rate


def _check(machine: Machine, needed: dict[str, float | None]) -> None:
    for key, value in needed.items():
        if not value:
            raise InputError(
                f"tile arithmetic: the machine file of {machine.name} has no {key}, which cycles are counted from; "
                "add it to a file of your own and name that with --machine."
            )


def _latency(machine: Machine, key: str, guess: float) -> Constant:
    result = machine.get(f"latency.{key}")
    if result is None:
        return Constant(guess, "the machine file has none: a round number, near those of other chips", "guess")
    return Constant(float(result.base), result.source, result.mark)


def _rate(machine: Machine, key: str) -> Constant | None:
    result = machine.get(key)
    if result is None or not machine.boost_hertz:
        return None
    per_clock = float(result.base) / machine.boost_hertz / machine.sms
    return Constant(per_clock, f"{result.value:g} {result.unit}: {result.source}", result.mark)


def constants_of(machine: Machine, dtype: str) -> SmConstants:
    """The constants of a machine file; where it has no latency, or no L2 bandwidth, a guess that is marked so.

    Raises
    ------
    InputError
        The machine file has no clock, no DRAM bandwidth, or no throughput of the type.
    """
    flops = tensor_flops_per_clock(machine, dtype)
    latency, dram = dram_constants(machine)
    _check(machine, {f"throughput.{dtype}": flops})
    assert flops  # told above
    fitted = Constant(L2_BYTES_PER_CLOCK, "the machine file has none: from times of launches on an H100", "guess")
    cycles = 2 * math.prod(MMA) * TENSOR_CORES / flops
    peak = f"throughput.{dtype} of the machine file per SM and clock, to the nearest power of two"
    return SmConstants(
        "machine",
        MMA,
        Constant(cycles, peak, "vendor"),
        Constant(TENSOR_CORES, "four parts of an SM, each with its tensor core", "vendor"),
        _latency(machine, "l2_near", _L2_LATENCY),
        _rate(machine, "l2_bandwidth") or fitted,
        latency,
        dram,
        reason="from the machine file; a latency of DRAM is that seen from an SM, through L2",
    )


def is_a100(machine: Machine) -> bool:
    """Whether the named sets are about it."""
    return machine.sku.startswith("a100")


def a100_constants(machine: Machine, dtype: str, name: str) -> SmConstants:
    """``published`` or ``corrected``, for an A100; errors as `constants_of`.

    Examples
    --------
    >>> from pebble.models.machine import load_machine
    >>> a100 = load_machine("a100-sxm4-40gb")
    >>> [a100_constants(a100, "fp16", name).miss_latency for name in SETS]
    [490.0, 552.0]
    """
    own = constants_of(machine, dtype)
    circulates = "as it circulates"
    named = replace(
        own,
        name=name,
        l2_latency=Constant(200.0, circulates, "published"),
        l2_rate=Constant(47.41, "5,120 B/clk of the whole L2 over 108 SMs", "published"),
    )
    if name == "published":
        return replace(
            named,
            dram_latency=Constant(290.0, circulates, "published"),
            dram_rate=Constant(11.84, circulates, "published"),
            adds=True,
            reason="the figures as they circulate: the latency of DRAM on top of that of L2, the transfer from DRAM "
            "after that from L2, and the bandwidth at about the clock of the memory, 1,215 MHz",
        )
    gigabytes, megahertz = (machine.dram_bytes_per_second or 0) / 1e9, (machine.boost_hertz or 0) / 1e6
    return replace(
        named,
        dram_latency=Constant(552.0, "pointer chase, RRZE-HPC/gpu-benches gpu-latency, at 1410 MHz", "measured"),
        reason=f"{gigabytes:,.0f} GB/s at the {megahertz:,.0f} MHz of the SMs is {own.dram_rate.value:.2f} B/clk per "
        "SM; a latency of DRAM seen from an SM, about 552 cycles, already holds the L2 leg, so the two are not added, "
        "and what comes from DRAM passes L2 on the way rather than after",
    )
