r"""Sustained time and energy: at the limit of power every operation and every byte costs clock.

A chip that runs a kernel again and again draws what it may, and its clock falls until

.. math:: P_0 T(f) + \big(e_o\, O + e_r R + e_x X\big) \Big(\frac{f}{f_0}\Big)^2 + e_d D = P_{max}\, T(f)

for :math:`O` operations, :math:`R` bytes that L2 serves after merging, :math:`X` that cross its fabric and :math:`D`
to and from DRAM, each at its price at the clock :math:`f_0`; the square is that of the voltage, which rises with the
clock; DRAM has its own. :math:`T(f)` is the time model of `pebble.timing.waves` with all rates but DRAM's in
proportion to the clock, where DRAM and the rest of a wave overlap less well as they near each other. So orders that
move more take longer also where tensor cores bind.

:math:`f_0` is the clock at which a persistent TMA kernel takes what the rates of a single launch say; a kernel of
another make takes more cycles (`BLOCK_A_TILE`). Fitted to sustained runs of one product on an H200, and of two with
one block a tile, whose every order was measured (``benchmarks/hardware/fit_power.py``): runs of other products are a
check. What an H200 draws besides, :math:`P_0`, and the square were not fitted but set. The :math:`P_0` of an H100 is
that at which exported layers take what is modelled, on the mean (``benchmarks/hardware/fit_static.py``). One
operation of attention takes `SOFTMAX_OPERATIONS` as much, with the exponentials that come with it
(``benchmarks/hardware/fit_attention.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pebble.models.gpcs import Gpcs, gpcs_of
from pebble.models.machine import Machine
from pebble.simulation import KernelConfig
from pebble.simulation.merging import COPY_ENGINE, Requested, Shared
from pebble.system.renamed import Renamed
from pebble.timing.modelled import ModelledTime
from pebble.timing.sustained import AFTER_A_PAUSE
from pebble.traces.program import Program

OPERATION_JOULES, REQUEST_JOULES, FABRIC_JOULES, DRAM_JOULES = 0.70e-12, 20e-12, 20e-12, 69e-12
SOFTMAX_OPERATIONS = 1.9  # joules of an operation of attention, with its exponentials, over those of a product's
LIMIT_WATTS = 700.0
STATIC_WATTS = {"hbm3": 80.0, "hbm3e": 100.0}  # of an H100, by exported layers, and of an H200, by the chip's memory
REFERENCE_MHZ = 1558.0
BLOCK_A_TILE = 1.29  # cycles of a TMA kernel with one block a tile, over those of a persistent one
MEASURED_DTYPES = ("bf16", "fp16")
_LEAST_MHZ, _NEAR_MHZ = 300.0, 1e-6


class Power(NamedTuple):
    """What a chip takes; joules at the clock `reference_mhz`.

    Attributes
    ----------
    operation, request, fabric, dram : float
        Joules of an operation, and of a byte that L2 serves an SM, that crosses its fabric, to or from DRAM.
    static_watts, limit_watts : float
        What is drawn besides, and in all at most.
    reference_mhz, boost_mhz : float
        At which the rates of single launches hold, and the highest.
    gpcs : Gpcs
        Where requests are merged.
    """

    operation: float
    request: float
    fabric: float
    dram: float
    static_watts: float
    limit_watts: float
    reference_mhz: float
    boost_mhz: float
    gpcs: Gpcs


@dataclass(frozen=True)
class Sustained(Renamed):
    """A kernel run again and again; modelled.

    Attributes
    ----------
    seconds : float
        Of one launch.
    clock_mhz : float
    joules : mapping of str to float
        Of one launch, by what takes them: ``operations``, ``l2``, ``fabric``, ``dram``, ``static``.
    at_limit : bool
        Whether the limit of power holds the clock down.
    requested : Requested
        What L2 serves, and what crosses its fabric.
    """

    seconds: float
    clock_mhz: float
    joules: Mapping[str, float]
    at_limit: bool
    requested: Requested

    old_names = (("asked", "requested"),)

    @property
    def total_joules(self) -> float:
        """Of one launch."""
        return sum(self.joules.values())

    @property
    def watts(self) -> float:
        """On the mean."""
        return self.total_joules / self.seconds


def power_of(machine: Machine, dtype: str, sms: int) -> Power | None:
    """What a chip takes; None where no sustained run was measured on one like it, or of such values.

    Examples
    --------
    >>> from pebble.models.machine import load_machine
    >>> power_of(load_machine("a40"), "bf16", 84) is None
    True
    """
    gpcs = gpcs_of(machine, sms)
    if gpcs is None or machine.boost_hertz is None or dtype not in MEASURED_DTYPES:
        return None
    constants = (OPERATION_JOULES, REQUEST_JOULES, FABRIC_JOULES, DRAM_JOULES)
    static = STATIC_WATTS.get(machine.dram_kind, max(STATIC_WATTS.values()))
    return Power(*constants, static, LIMIT_WATTS, REFERENCE_MHZ, machine.boost_hertz / 1e6, gpcs)


def sustained(
    program: Program,
    config: KernelConfig,
    time: ModelledTime,
    power: Power,
    cycles: float = 1.0,
    most_waves: int | None = None,
) -> Sustained:
    """A kernel that runs again and again, its clock where the power limit leaves it.

    Parameters
    ----------
    program : Program
        As `KernelFamily.program` makes it.
    config : KernelConfig
    time : ModelledTime
        Of a single launch.
    power : Power
        Of the chip.
    cycles : float
        That its steps take, over those of a persistent TMA kernel: `BLOCK_A_TILE`.
    most_waves : int, optional
        Of each phase, in which who shares what is looked at; by default all.

    Notes
    -----
    Never faster than a launch that no power limit slows, of a product after a pause: the clock is at most that at which
    it takes as long.
    """
    shared = Shared.of(program, config, power.gpcs, most_waves)
    read = max(0, time.dram_bytes - shared.written_bytes)
    requested = shared.requested(COPY_ENGINE, read)
    return at_limit(time, program.flops, requested, power, cycles, softmax_flops(program))


def both_times(
    program: Program, config: KernelConfig, time: ModelledTime, power: Power | None, most_waves: int | None = None
) -> tuple[ModelledTime, Sustained | None]:
    """The time of a single launch, and `sustained`, which one of attention comes to by itself if it is long.

    A product's is that of the exported kernel after a pause: no limit of power slows it.

    None where no sustained run was measured: on other chips, and of kernels side by side.
    """
    if power is None or len(program.groups) > 1:
        return time, None
    again = sustained(program, config, time, power, most_waves=most_waves)
    single = time.at_most(again.seconds) if softmax_flops(program) else time.rested(AFTER_A_PAUSE)
    return single, again


def softmax_flops(program: Program) -> int:
    """Operations of phases that compute exponentials as well."""
    return sum(phase.all_steps * phase.flops for group in program.groups for phase in group.phases if phase.exps)


def at_limit(
    time: ModelledTime, flops: float, requested: Requested, power: Power, cycles: float = 1.0, softmax: float = 0.0
) -> Sustained:
    """The same where what is asked of L2 is known; ``softmax`` of the operations come with exponentials."""
    core = {
        "operations": power.operation * (flops + (SOFTMAX_OPERATIONS - 1) * softmax),
        "l2": power.request * (requested.request_bytes + requested.written_bytes),
        "fabric": power.fabric * requested.fabric_bytes,
    }
    dram = power.dram * time.dram_bytes

    def at(mhz: float, limited: bool) -> Sustained:
        seconds, square = time.seconds_at(power.reference_mhz / mhz * cycles), (mhz / power.reference_mhz) ** 2
        joules = {name: part * square for name, part in core.items()}
        joules |= {"dram": dram, "static": power.static_watts * seconds}
        return Sustained(seconds, mhz, joules, limited, requested)

    def too_much(mhz: float) -> float:
        """Joules beyond those that the limit leaves; it grows with the clock."""
        spared = (power.limit_watts - power.static_watts) * time.seconds_at(power.reference_mhz / mhz * cycles)
        return whole * (mhz / power.reference_mhz) ** 2 + dram - spared

    rested = 1.0 if softmax else AFTER_A_PAUSE
    whole, most = sum(core.values()), min(power.boost_mhz, power.reference_mhz * cycles / rested)
    if (beyond := too_much(most)) <= 0:
        return at(most, False)
    if (short := too_much(_LEAST_MHZ)) >= 0:
        return at(_LEAST_MHZ, True)
    return at(_root(too_much, (_LEAST_MHZ, short), (most, beyond)), True)


def _root(of: Callable[[float], float], low: tuple[float, float], high: tuple[float, float]) -> float:
    """Where a function that grows is 0, between two points with their values; false position, as Illinois has it."""
    (left, below), (right, above), at = low, high, low[0]
    while right - left > _NEAR_MHZ:
        before, at = at, (left * above - right * below) / (above - below)
        value = of(at)
        if abs(at - before) <= _NEAR_MHZ:
            break
        if value > 0:
            right, above = at, value
            below /= 2
        else:
            left, below = at, value
            above /= 2
    return at
