"""What a chip never exceeds, and what kernels sustain on it: operations, DRAM and L2, per second; and how fast the
blocks of free-running kernels run.

What the machine file does not say is one number for all chips and families, from free-running launches on an H100 and
an H200. Shares of peaks and rates were read off times of launches; latencies are round numbers, to which bytes answer
little; the spread of the pace of SMs was fitted to bytes (``benchmarks/hardware/fit.py``).

A peak is for floors on time, so it is the largest rate that is known: what the vendor states, carried to the boost
clock where it is stated at a lower one, or what was measured, if that is more. What is sustained is the machine file's
own (``[sustained]``, ``l2_bandwidth``), else what free-running kernels were found to reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from pebble.errors import InputError, UnknownNameError, check_text
from pebble.models.machine import Machine
from pebble.models.quantity import Quantity
from pebble.traces import LINE_BYTES
from pebble.traces.asynchronous import Speeds

SUSTAINED_FLOPS = 0.72  # share of the peak: from times of launches that nothing but operations held up
SUSTAINED_DRAM = 0.9
L2_BYTES_PER_CLOCK = 32.5  # that one SM loads, from times of launches with 128 x 128 tiles, which L2 holds up
EXPS_PER_CLOCK = 6.4  # with what goes with each in a softmax, from times of attention with head-dim 64 and 128
SPECIAL_PER_CLOCK = 16.0  # exponentials, tangents ... of an SM; published (CUDA programming guide), as is
VECTOR_PER_CLOCK = {8.0: 64.0}  # its additions in fp32, by compute capability; of all others 128
HIT_NS, MISS_NS, TURN_NS = 600.0, 500.0, 2000.0  # round numbers
SPREAD = 0.0025  # of the pace of SMs: fitted to the bytes of free-running launches
LONG_STEPS, LONG_STEPS_ON_SM = 128, 6_000  # from where blocks of a product drift further apart than these speeds say


def vector_per_clock(machine: Machine) -> float:
    """Additions in fp32 that an SM begins in a cycle."""
    return VECTOR_PER_CLOCK.get(machine.capability or 0.0, 128.0)


def drifts_far(steps: int, tiles: int, sms: int) -> bool:
    """Whether free-running blocks of a matrix product drift further apart than the model says.

    Launches of so long products are predicted badly, most too low (``benchmarks/hardware/predict.py``).

    Parameters
    ----------
    steps : int
        Of k, in a tile.
    tiles : int
        Of the product.
    sms : int
        That share them.

    Examples
    --------
    >>> drifts_far(172, 64 * 32, 84), drifts_far(172, 512 * 32, 84)  # an FFN's second product, 8192 and 65,536 tokens
    (False, True)
    """
    return steps >= LONG_STEPS and steps * tiles > LONG_STEPS_ON_SM * sms


def speeds_of(machine: Machine, dtype: str) -> Speeds:
    """The speeds of a chip for operands of one type.

    Raises
    ------
    InputError
        The machine file lacks a number that time needs.
    """
    result = {
        "boost_clock": machine.boost_hertz,
        f"throughput.{dtype}": machine.peak_flops(dtype),
        "dram_bandwidth": machine.dram_bytes_per_second,
    }
    lacking = [key for key, value in result.items() if not value]
    if lacking:
        raise InputError(
            f"the machine file of {machine.name} has no {' and no '.join(lacking)}, without which no time is modelled "
            "and no blocks run free: add it, or use `pebble compare` with --execution waves."
        )
    clock, peak, dram = (float(value) / 1e9 for value in result.values() if value)
    return Speeds(
        flops=peak * SUSTAINED_FLOPS / machine.sms,
        exps=EXPS_PER_CLOCK * clock,
        lines=L2_BYTES_PER_CLOCK * clock / LINE_BYTES,
        dram_lines=dram * SUSTAINED_DRAM / LINE_BYTES,
        hit=HIT_NS,
        miss=MISS_NS,
        turn=TURN_NS,
        spread=SPREAD,
    )


ACCUMULATORS = ("fp32", "fp16")
FITTED = "times of launches on an H100 and an H200"


@dataclass(frozen=True)
class Rate:
    """A rate, and how far to trust it.

    Attributes
    ----------
    per_second : float
        Operations, or bytes.
    mark : str
        ``vendor``, ``measured`` or ``guess``.
    source : str
    clock_mhz : float or None
        The clock it holds at; None where it does not follow the SMs' clock, or that is not known.
    note : str
        What was done to the number of the machine file; empty for nothing.
    """

    per_second: float
    mark: str
    source: str
    clock_mhz: float | None = None
    note: str = ""

    def to_json(self, unit: str) -> dict[str, object]:
        """Plain data for ``--json``; ``unit`` is ``operations`` or ``bytes``."""
        return {
            f"{unit}_per_second": self.per_second,
            "mark": self.mark,
            "clock_mhz": self.clock_mhz,
            "note": self.note or None,
            "source": self.source,
        }


@dataclass(frozen=True)
class CopyCost:
    """The price of a copy between SMs.

    Attributes
    ----------
    l2, copies : Rate
        Bytes per second from slow memory, and from the shared memories of other SMs.
    of : str
        The slow memory: L2, or DRAM.
    """

    l2: Rate
    copies: Rate
    of: str = "L2"

    @property
    def omega(self) -> Fraction:
        """Reads of that memory, to the hundredth: no bandwidth is known better."""
        return Fraction(round(100 * self.l2.per_second / self.copies.per_second), 100)

    def __str__(self) -> str:
        l2, far = (f"{rate.per_second / 1e12:.4g} TB/s" for rate in (self.l2, self.copies))
        text = f"{float(self.omega):g} reads of {self.of}"
        return f"{text}: {l2} of {self.of} ({self.l2.mark}) over {far} between SMs ({self.copies.mark})"

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        return {
            "omega": float(self.omega),
            self.of.lower(): self.l2.to_json("bytes"),
            "copies": self.copies.to_json("bytes"),
        }


def check_accumulator(name: object) -> str:
    """The type that sums are kept in.

    Raises
    ------
    UnknownNameError
        Not one of `ACCUMULATORS`.
    """
    text = check_text("--accumulator", name, ", ".join(ACCUMULATORS))
    if text not in ACCUMULATORS:
        raise UnknownNameError("accumulator", text, ACCUMULATORS, "pebble bound --help")
    return text


def _stated(machine: Machine, dtype: str, accumulator: str) -> list[Quantity]:
    """The throughputs of the file at which values of ``dtype`` may be multiplied."""
    keys = [dtype, f"{dtype}_accumulate_fp16"] if accumulator == "fp16" else [dtype]
    if dtype == "fp32":
        keys.append("tf32")  # through tensor cores, as less exact values
    if dtype == "fp8" and machine.capability is not None and machine.capability < 8.9:
        keys.append("fp16")  # these chips have no other way, and every such value is one of fp16
    return [quantity for key in keys if (quantity := machine.get(f"throughput.{key}")) is not None]


def peak_operations(machine: Machine, dtype: str, accumulator: str = "fp32") -> Rate | None:
    """Operations per second that no kernel exceeds, two for each multiply-add; None where the file does not say."""
    results = [_at_boost(machine, quantity) for quantity in _stated(machine, dtype, accumulator)]
    reached = machine.get(f"sustained.{dtype}")
    # what was reached is no peak, but a peak is not below it
    results += [_plain(reached)] if reached is not None and results else []
    return max(results, key=lambda rate: rate.per_second, default=None)


def peak_dram(machine: Machine) -> Rate | None:
    """Bytes per second to and from DRAM, both together, that no kernel exceeds."""
    keys = ("dram_bandwidth", "sustained.dram_bandwidth", "sustained.dram_writes", "sustained.dram_half_writes")
    results = [_plain(q) for key in keys if (q := machine.get(key))]
    return max(results, key=lambda rate: rate.per_second) if machine.get("dram_bandwidth") else None


def peak_l2(machine: Machine) -> Rate | None:
    """Bytes per second from L2 to all SMs together, one direction, that no kernel exceeds."""
    peak, reached = machine.get("l2_peak_bandwidth"), machine.get("l2_bandwidth")
    if peak is None:
        return None
    results = [_at_boost(machine, peak), *([_plain(reached)] if reached is not None else [])]
    return max(results, key=lambda rate: rate.per_second)


def sustained_operations(machine: Machine, dtype: str, accumulator: str = "fp32") -> Rate | None:
    """Operations per second that kernels reach."""
    reached = machine.get(f"sustained.{dtype}")
    if reached is not None and accumulator == "fp32":
        return _plain(reached)
    peak = max(_stated(machine, dtype, accumulator), key=lambda quantity: quantity.base, default=None)
    return None if peak is None else _share(peak, SUSTAINED_FLOPS)


def sustained_dram(machine: Machine) -> Rate | None:
    """Bytes per second from DRAM that kernels reach."""
    reached, peak = machine.get("sustained.dram_bandwidth"), machine.get("dram_bandwidth")
    if reached is not None:
        return _plain(reached)
    return None if peak is None else _share(peak, SUSTAINED_DRAM)


def dram_writes(machine: Machine) -> tuple[Rate | None, Rate | None]:
    """Bytes per second to and from DRAM where all of them are written, and where half are; None where not measured."""
    writes, half = machine.get("sustained.dram_writes"), machine.get("sustained.dram_half_writes")
    return None if writes is None else _plain(writes), None if half is None else _plain(half)


def sustained_l2(machine: Machine) -> Rate | None:
    """Bytes per second from L2 that kernels reach."""
    reached, clock = machine.get("l2_bandwidth"), machine.boost_hertz
    if reached is not None:
        return _plain(reached)
    if clock is None:
        return None
    rate = L2_BYTES_PER_CLOCK * machine.sms * clock
    note = f"{L2_BYTES_PER_CLOCK:g} bytes per clock and SM"
    return Rate(rate, "guess", FITTED, clock / 1e6, note)


def copy_cost(machine: Machine, level: str = "l2") -> CopyCost | None:
    """What a value from another SM's shared memory costs in reads of L2, by bandwidth; None where it was not measured.

    At level ``dram`` in reads of DRAM, which is the price where slow memory is DRAM.

    Both rates are those of all SMs together, so a price above 1 says that a load of L2 is over sooner. Latency is
    left out: it can be hidden, bandwidth cannot.

    Examples
    --------
    >>> from pebble.models.machine import load_machine
    >>> print(copy_cost(load_machine("h100-pcie-80gb")))
    2.14 reads of L2: 7 TB/s of L2 (measured) over 3.27 TB/s between SMs (guess)
    """
    far, dram = machine.get("dsmem_bandwidth"), machine.get("dram_bandwidth")
    if level == "dram":
        return None if far is None or dram is None else CopyCost(_plain(dram), _plain(far), "DRAM")
    l2 = sustained_l2(machine)
    return None if far is None or l2 is None else CopyCost(l2, _plain(far))


def _plain(quantity: Quantity) -> Rate:
    return Rate(float(quantity.base), quantity.mark, quantity.source, quantity.at_mhz)


def _share(quantity: Quantity, share: float) -> Rate:
    note = f"{share:.0%} of the peak"
    return Rate(share * quantity.base, "guess", FITTED, quantity.at_mhz, note)


def _at_boost(machine: Machine, quantity: Quantity) -> Rate:
    """A peak that grows with the clock of the SMs, at the highest clock."""
    boost = None if machine.boost_hertz is None else machine.boost_hertz / 1e6
    stated = quantity.at_mhz
    if boost is None or stated is None or stated >= boost:
        return Rate(float(quantity.base), quantity.mark, quantity.source, stated or boost)
    note = f"{quantity} at {stated:,g} MHz, carried to the boost clock"
    return Rate(quantity.base * boost / stated, quantity.mark, quantity.source, boost, note)
