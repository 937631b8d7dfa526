"""What the hit rates of L1 and L2 say of a launch: what passes L1 by, and what DRAM had to bring beside the inputs.

A hit rate is of look-ups, of which one chip makes more than another for the same kernel: copies to shared memory pass
L1 by, L2 looks up twice what lies in its other partition, a miss may bring its neighbours. The bytes of DRAM beside the
least, every input once, tell what a hit rate does not.
"""

from __future__ import annotations

from pebble.counters.profile import MeasuredLaunch
from pebble.counters.quantities import SECTOR_BYTES
from pebble.units import format_bytes

_LITTLE = 1.0  # percent of hits, below which nothing was found


def hits_of(launch: MeasuredLaunch, input_bytes: int | None = None) -> tuple[str, ...]:
    """A sentence for L1 and one for L2; none of a cache whose rate the report does not have.

    Parameters
    ----------
    launch : MeasuredLaunch
    input_bytes : int, optional
        Bytes of the inputs, where the shape is known: the least that must come from DRAM where L2 was empty.

    Examples
    --------
    >>> from pebble.counters import Metric
    >>> counters = {"lts__t_sector_hit_rate.pct": Metric(87.5, "%"), "dram__bytes_read.sum": Metric(64e6, "byte")}
    >>> hits_of(MeasuredLaunch("0", "gemm", counters), 32_000_000)
    ('L2 87.5 % of its look-ups; DRAM read 64.0 MB, 2.00 times the inputs (32.0 MB), the least from an empty L2',)
    """
    return (*_first_level(launch), *_second_level(launch, input_bytes))


def _first_level(launch: MeasuredLaunch) -> tuple[str, ...]:
    rate, loads = launch.value("l1_hit_percent"), launch.value("l1_load_sectors")
    past = launch.value("bypassing_sectors") or 0.0
    if rate is None:
        return ()
    said = f"L1 {rate:.1f} %"
    if launch.value("tma_load_instructions"):
        return (f"{said}: its loads go by TMA past L1 to shared memory, so this rate is of what little is left",)
    if loads and past >= 0.5 * loads:
        share = min(1.0, past / loads)
        return (f"{said}: {share:.0%} of its loads are copies (cp.async) past L1 to shared memory, which cannot hit",)
    if loads == 0 and (launch.value("tensor_percent") or 0) >= 1:
        return (f"{said}: no load passed L1's counters, as where TMA copies to shared memory, so it says little",)
    if rate > 100:
        return (f"{said}: more than all, as look-ups and hits are of different passes",)
    if rate < _LITTLE:
        return (f"{said} of its look-ups: nothing is loaded twice, or copies (cp.async, TMA) pass L1 by",)
    return (f"{said} of its look-ups; L2 is asked for the rest",)


def _second_level(launch: MeasuredLaunch, input_bytes: int | None) -> tuple[str, ...]:
    rate, lookups = launch.value("l2_hit_percent"), launch.value("l2_sectors")
    read, both = launch.value("dram_read_bytes"), launch.value("dram_bytes")
    if rate is None:
        return ()
    said = f"L2 {rate:.1f} % of its {'' if not lookups else f'{lookups:,.0f} '}look-ups"
    if rate > 100:
        said += ": more than all, as look-ups and hits are of different passes; take it as nearly all"
    if launch.value("l2_fabric_sectors"):
        said += ", two for each sector of its other partition"
    if input_bytes and lookups and lookups * SECTOR_BYTES > input_bytes:
        least = 100 * (1 - input_bytes / SECTOR_BYTES / lookups)
        said += f"; with each sector of the inputs missed once and no other it would be {least:.1f} %"
    if input_bytes and read:
        said += f"; DRAM read {format_bytes(read)}, {read / input_bytes:.2f} times the inputs"
        said += f" ({format_bytes(input_bytes)}), the least from an empty L2"
    elif both is not None:
        said += f"; DRAM moved {format_bytes(both)}"
    return (said,)
