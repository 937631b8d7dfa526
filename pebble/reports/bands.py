"""An FFN in bands of rows on several chips: what each height takes and moves, with barriers and with flags."""

from __future__ import annotations

from pebble.models.machine import Machine
from pebble.plots.bands import Bands, Point
from pebble.reports.kernel_time import MILLI, TimedSchedule, time_schedules
from pebble.reports.simulated_kernel import trace_bound
from pebble.units import ceil_div
from pebble.workloads import Ffn

CHIPS = ("a40", "a100-sxm4-40gb", "h100-sxm5-80gb")
TWO_KERNELS = "separate:deepgemm+sawtooth"
_GIGA = 1e9


def heights_of(rows: int) -> list[int]:
    """Powers of two, a third of the rows, and all of them in one band.

    Examples
    --------
    >>> heights_of(64)
    [1, 2, 4, 8, 16, 21, 32, 64]
    """
    return sorted({*(1 << i for i in range(rows.bit_length()) if 1 << i < rows), max(1, rows // 3), rows})


def bands_of(ffn: Ffn, gpu: str | Machine) -> Bands:
    """Single launches of every height under the tile that `pebble.advise` picks.

    Raises
    ------
    InputError
        No such GPU, or one whose file lacks a rate.
    """
    first = time_schedules(ffn, TWO_KERNELS, gpu=gpu)
    tile, machine = first.kernel.config.tile, first.machine
    assert machine is not None
    heights = heights_of(ceil_div(ffn.tokens, tile.bm))
    names = [f"row-fused-{height}{flags}" for height in heights for flags in ("", "-flags")]
    points = {timed.order: _point(timed) for timed in time_schedules(ffn, names, gpu=gpu).orders}
    bound = trace_bound(ffn, first.kernel).bound.bytes
    return Bands(
        machine.name.removeprefix("NVIDIA "),
        f"{tile.bm} x {tile.bn}",
        {height: (points[f"row-fused-{height}"], points[f"row-fused-{height}-flags"]) for height in heights},
        _point(first.orders[0]),
        (first.floor.seconds * MILLI, bound / _GIGA),
    )


def _point(timed: TimedSchedule) -> Point:
    time = timed.time
    return Point(time.seconds * MILLI, time.dram_bytes / _GIGA, 100 * time.occupancy)
