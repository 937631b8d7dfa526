"""How fast the blocks of a chip run, for free-running kernels: peaks of the machine file, and what kernels sustain.

What the machine file does not say is one number for all chips and families, from free-running launches on an H100 and
an H200. Shares of peaks and rates were read off times of launches; latencies are round numbers, to which bytes answer
little; the spread of the pace of SMs was fitted to bytes (``benchmarks/hardware/fit.py``).
"""

from __future__ import annotations

from pebble.errors import InputError
from pebble.models.machine import Machine
from pebble.traces import LINE_BYTES
from pebble.traces.asynchronous import Speeds

SUSTAINED_FLOPS = 0.72  # share of the peak: from times of launches that nothing but operations held up
SUSTAINED_DRAM = 0.9
L2_BYTES_PER_CLOCK = 32.5  # that one SM loads, from times of launches with 128 x 128 tiles, which L2 holds up
EXPS_PER_CLOCK = 6.4  # with what goes with each in a softmax, from times of attention with head-dim 64 and 128
HIT_NS, MISS_NS, TURN_NS = 600.0, 500.0, 2000.0  # round numbers
SPREAD = 0.0025  # of the pace of SMs: fitted to the bytes of free-running launches
LONG_STEPS, LONG_STEPS_ON_SM = 128, 6_000  # from where blocks of a product drift further apart than these speeds say


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
