r"""A floor on the time of a workload on a chip, what sets it, in one line, how long DRAM is busy with the bytes of a
schedule alone, and where below the roofs of the chip a workload lies.

**Theorem.** *A launch that finds its inputs in DRAM and leaves its outputs there takes at least*

.. math:: T \ge \max\Big(\frac{\text{operations}}{\text{peak}},\; \frac{\text{DRAM bound}}{\text{DRAM bandwidth}},\;
   \frac{\text{SM traffic}}{\text{L2 bandwidth}}\Big),

*where no rate is ever exceeded.* Each part needs its time whatever the others do; that they overlap is the best case.

- **Operations**: two for each multiply-add of the computation DAG, which every schedule executes at least once.
  Recomputation only adds to them. An algorithm with fewer products (Strassen, Winograd) is another DAG.
- **DRAM bound**: the proved least traffic between DRAM and the chip, reads and writes together, which share the
  bandwidth.
- **SM traffic**: Theorem 5 for SMs with all their storage, however the work is split. Since one read of L2 may feed all
  SMs of a cluster, and SMs of a cluster may copy from each other, a cluster of the largest size counts as one memory:
  that bound holds for reads of L2 plus writes with multicast and without. The two directions have ways of their own, so
  what is charged is the busier one: at least half of the sum, all inputs, and all outputs. With a recomputed chain, and
  for families that Theorem 5 does not cover, all SMs count as one memory.

**A warm cache.** A launch among others may find values in L2, where the one before left them, and leave dirty lines
there. Load first what it finds, and write last what it leaves: that is a launch as in the theorem, with at most
:math:`2 C` more bytes, where :math:`C` is what the caches between DRAM and the SMs hold. So its DRAM traffic is at
least the bound minus :math:`2 C`, and the time with that in place of the bound is a floor for any launch. What the SMs
hold does not outlive a launch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pebble.bounds import Accounting, LowerBound, lower_bound
from pebble.bounds.memories import buffer_lower_bound, covers_memories, of_sms
from pebble.game.buffer_model import BufferModel
from pebble.models.machine import Machine
from pebble.models.rates import Rate, peak_dram, peak_l2, peak_operations
from pebble.timing.sustained import reached_rates
from pebble.units import ceil_div, format_seconds

MICRO = 1e6  # microseconds of a second
TITLES = {"operations": "operations", "dram": "DRAM", "l2": "L2"}
_UNITS = {"operations": "operations", "dram": "bytes", "l2": "bytes"}


@dataclass(frozen=True)
class FloorPart:
    """One resource, and the time that the workload keeps it busy.

    Attributes
    ----------
    name : str
        ``operations``, ``dram`` or ``l2``.
    amount : int
        Operations or bytes that no schedule goes below.
    theorem : str
        Why.
    rate : Rate
        That no kernel exceeds.
    sustained : Rate or None
        That kernels reach.
    """

    name: str
    amount: int
    theorem: str
    rate: Rate
    sustained: Rate | None

    @property
    def unit(self) -> str:
        """Of the amount."""
        return _UNITS[self.name]

    @property
    def seconds(self) -> float:
        """At the peak."""
        return self.amount / self.rate.per_second

    @property
    def sustained_seconds(self) -> float:
        """At the rate that kernels reach; at the peak where that is not known."""
        return self.seconds if self.sustained is None else self.amount / self.sustained.per_second

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "what": self.name,
            self.unit: self.amount,
            "theorem": self.theorem,
            "time_us": self.seconds * MICRO,
            "rate": self.rate.to_json(self.unit),
            "sustained_time_us": self.sustained_seconds * MICRO,
            "sustained_rate": None if self.sustained is None else self.sustained.to_json(self.unit),
        }


@dataclass(frozen=True)
class TimeFloor:
    """No launch takes less time.

    Attributes
    ----------
    accumulator : str
        The type that sums are kept in.
    parts : tuple of FloorPart
        Of operations, DRAM and L2, those that are known.
    missing : tuple of str
        Which are not, and why.
    resident_bytes : int
        What caches hold from one launch to the next.
    """

    accumulator: str
    parts: tuple[FloorPart, ...]
    missing: tuple[str, ...] = ()
    resident_bytes: int = 0

    @property
    def seconds(self) -> float:
        """The floor; 0 where no rate is known."""
        return max((part.seconds for part in self.parts), default=0.0)

    @property
    def warm_seconds(self) -> float:
        """The floor of a launch that may find values in L2 and leave dirty lines there."""
        dram = self.part("dram")
        others = [part.seconds for part in self.parts if part is not dram]
        traffic = 0 if dram is None else max(0, dram.amount - 2 * self.resident_bytes)
        return max([*others, self.dram_seconds(traffic) or 0.0], default=0.0)

    @property
    def sustained_seconds(self) -> float:
        """The same amounts at the rates that kernels reach: an estimate, no longer than any modelled time."""
        return max((part.sustained_seconds for part in self.parts), default=0.0)

    @property
    def unknown(self) -> list[str]:
        """The parts whose rates are not known, for a reader."""
        return [title for title in TITLES.values() if any(text.startswith(f"{title}: ") for text in self.missing)]

    @property
    def binds(self) -> FloorPart | None:
        """The part that sets the floor."""
        return max(self.parts, key=lambda part: part.seconds, default=None)

    def part(self, name: str) -> FloorPart | None:
        """The part of that name."""
        return next((part for part in self.parts if part.name == name), None)

    def dram_seconds(self, dram_bytes: int) -> float | None:
        """The time that so many bytes to and from DRAM take at the peak."""
        dram = self.part("dram")
        return None if dram is None else dram_bytes / dram.rate.per_second

    def with_dram(self, dram_bytes: int) -> float:
        """The least time of a schedule that moves so many bytes: what they allow, and the floor."""
        return max(self.seconds, self.dram_seconds(dram_bytes) or 0.0)

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "floor_us": self.seconds * MICRO if self.parts else None,
            "binds": None if self.binds is None else self.binds.name,
            "accumulator": self.accumulator,
            "parts": [part.to_json() for part in self.parts],
            "missing": list(self.missing),
            "sustained_us": self.sustained_seconds * MICRO if self.parts else None,
            "warm_floor_us": self.warm_seconds * MICRO if self.parts else None,
        }


def floor_of(
    machine: Machine,
    dtype: str,
    accumulator: str,
    operations: tuple[int, str],
    dram: tuple[int, str],
    l2: tuple[int, str] | None = None,
) -> TimeFloor:
    """The floor of amounts, each with its theorem.

    Parameters
    ----------
    machine : Machine
    dtype, accumulator : str
        Of the values multiplied, and of the sums.
    operations, dram, l2 : tuple of int and str
        Operations; bytes to and from DRAM; bytes of the busier direction between L2 and the SMs.
    """
    requested = [
        ("operations", operations, peak_operations(machine, dtype, accumulator), f"throughput.{dtype}"),
        ("dram", dram, peak_dram(machine), "dram_bandwidth"),
    ]
    if l2 is not None:
        requested.append(("l2", l2, peak_l2(machine), "l2_peak_bandwidth"))
    reached = reached_rates(machine, dtype, accumulator)
    parts = [
        FloorPart(name, amount, theorem, rate, reached[name])
        for name, (amount, theorem), rate, _ in requested
        if rate is not None
    ]
    missing = [
        f"{TITLES[name]}: the machine file of {machine.name} has no {key}"
        for name, _, rate, key in requested
        if rate is None
    ]
    resident_bytes = machine.l2_bytes + machine.memory_side_cache_bytes
    if machine.explicit:  # any scratchpad may keep values from one launch to the next
        resident_bytes = machine.on_chip_bytes
    return TimeFloor(accumulator, tuple(parts), tuple(missing), resident_bytes)


def time_floor(
    problem: Accounting, machine: Machine, dram: LowerBound, accumulator: str = "fp32", recompute: bool = False
) -> TimeFloor:
    """The floor of a workload on a chip.

    Parameters
    ----------
    problem : Accounting
        Of the workload, as `pebble.families.accounting` gives it.
    machine : Machine
    dram : LowerBound
        On the bytes between DRAM and what the kernel, or the chip, can hold.
    accumulator : {"fp32", "fp16"}
        The type that sums are kept in.
    recompute : bool
        Whether schedules may compute a value more than once.

    Examples
    --------
    >>> from pebble.families import accounting, lower_bound
    >>> from pebble.models.machine import load_machine
    >>> from pebble.workloads import Gemm
    >>> gemm = Gemm(8192, 8192, 8192)
    >>> floor = time_floor(accounting(gemm), load_machine("a100-sxm4-40gb"), lower_bound(gemm, 40 << 20))
    >>> floor.binds.name, round(floor.seconds * 1e3, 3)  # ms: 2 x 8192^3 / 312 TFLOPS
    ('operations', 3.524)
    """
    workload = problem.workload
    multiplied = "two for each multiply-add, each executed at least once"
    return floor_of(
        machine,
        workload.multiplied_dtype,
        accumulator,
        (workload.flops, multiplied),
        (dram.bytes, dram.method + f", for {dram.capacity:,} values on chip" * workload.whole_widths),
        None if machine.explicit else _busier_direction(of_sms(problem), *sm_traffic(problem, machine, recompute)),
    )


def sm_traffic(problem: Accounting, machine: Machine, recompute: bool = False) -> tuple[LowerBound, str]:
    """The least reads of L2 plus writes, and what shares one memory in that: the third part of the theorem."""
    cluster = min(machine.cluster_blocks, machine.sms)
    memories, held = ceil_div(machine.sms, cluster), problem.workload.values_in(machine.sm_bytes)
    if memories == 1 or not covers_memories(problem, recompute):
        return lower_bound(of_sms(problem), held * machine.sms, recompute), "all SMs as one memory"
    bound = buffer_lower_bound(problem, held * cluster, BufferModel("sm-local", memories))
    return bound, f"clusters of {cluster} SMs as one memory" if cluster > 1 else "each SM a memory"


def _busier_direction(problem: Accounting, both: LowerBound, who: str) -> tuple[int, str]:
    """Bytes that one direction between L2 and the SMs carries at least, and why."""
    operands = problem.workload.operands
    reads, writes = sum(o.bytes for o in operands if o.read), sum(o.bytes for o in operands if o.written)
    return max(ceil_div(both.bytes, 2), reads, writes), f"the busier direction: {both.method}, {who}"


_WORDS = {"operations": "compute-bound", "dram": "DRAM-bound", "l2": "L2-bound"}
_NEEDS = {"operations": "operations need", "dram": "DRAM needs", "l2": "L2 needs"}


def verdict_of_bound(floor: TimeFloor, best_bytes: int | None = None) -> str:
    """Of a bound: what sets the floor, and what DRAM needs for a schedule that moves ``best_bytes``."""
    return _verdict(floor, {} if best_bytes is None else {"the best schedule known": best_bytes})


def verdict_of_orders(floor: TimeFloor, traffic: Mapping[str, int]) -> str:
    """Of simulated orders: what sets the floor, and what DRAM needs for those that move most and least.

    The floor is the same whatever orders are compared; how long one takes is not said, only what its bytes take.

    Parameters
    ----------
    floor : TimeFloor
    traffic : mapping of str to int
        Bytes to and from DRAM of each order.
    """
    if len(traffic) < 2:
        return _verdict(floor, traffic)
    most, least = max(traffic, key=lambda name: traffic[name]), min(traffic, key=lambda name: traffic[name])
    took = [format_seconds(floor.dram_seconds(traffic[name]) or 0.0, floor.seconds) for name in (most, least)]
    if took[0] == took[1]:  # to three digits
        return _verdict(floor, {"every schedule": traffic[most]})
    return _verdict(floor, {f"{most}, which moves most": traffic[most], f"{least}, which moves least": traffic[least]})


def _verdict(floor: TimeFloor, traffic: Mapping[str, int]) -> str:
    """Which part is the floor, what the next needs of it, and DRAM for schedules told with ``moved``, their bytes."""
    times = {part.name: part.seconds for part in floor.parts}
    if not times:
        return ""
    longest = max(times, key=lambda name: times[name])
    word = ("" if "operations" in times else "of what is known ") + _WORDS[longest]
    schedules = {who: took for who, count in traffic.items() if (took := floor.dram_seconds(count)) is not None}
    unit_of = max(times[longest], *schedules.values(), 0)

    def of_the_floor(name: str) -> str:
        value, unit = format_seconds(times[name], unit_of).split()
        return f"{_NEEDS[name]} {value} {unit} of {bare(times[longest])}"

    def bare(seconds: float) -> str:
        return format_seconds(seconds, unit_of).split()[0]

    other = next((name for name in ("dram", "operations", "l2") if name in times and name != longest), None)
    parts = [] if other is None else [of_the_floor(other)]
    if schedules:
        if other != "dram":
            parts.append(f"DRAM needs {format_seconds(times['dram'], unit_of)}")
        parts[-1] += " at the bound, " + ", ".join(f"{bare(took)} with {who}" for who, took in schedules.items())
    return f"{word}: {'; '.join(parts)}" if parts else word


@dataclass(frozen=True)
class Point:
    """A schedule, or the bound.

    Attributes
    ----------
    name : str
    intensity : float
        Operations for each byte to and from DRAM.
    operations_per_second : float
        What the roofs allow at that intensity.
    """

    name: str
    intensity: float
    operations_per_second: float


@dataclass(frozen=True)
class Roofline:
    """Roofs, and points below them.

    Attributes
    ----------
    title, chip : str
    peak, dram : Rate
        Operations, and bytes to and from DRAM, per second.
    l2 : Rate or None
        Bytes from L2 per second; None where the machine file does not say.
    bound : Point
        At the proved least DRAM traffic.
    orders : tuple of Point
        At the simulated DRAM traffic, most first.
    sm_intensity : float or None
        Operations for each byte between L2 and the SMs; it has nothing to say of DRAM.
    sm_formula : str
        What that is.
    """

    title: str
    chip: str
    peak: Rate
    dram: Rate
    l2: Rate | None
    bound: Point
    orders: tuple[Point, ...] = ()
    sm_intensity: float | None = None
    sm_formula: str = ""
