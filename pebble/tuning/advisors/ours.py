"""The kernel whose modelled time is least under the chip's own cache model.

Tiles of powers of two and what lies between, as many stages as the latency asks for, one to three blocks an SM, and on
chips with clusters multicast to two blocks, all that fit. Each is first timed as if it moved no more than the compulsory
bytes. From the least of these on, the orders that move least at a quick look are simulated: a dozen tiles, and more as
long as one might be faster with compulsory bytes than the best found. What the other advisors choose is timed beside, so that the first is
never slower than theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from pebble.errors import InputError
from pebble.families import KernelFamily, kernel_family
from pebble.models.kernel_fit import KernelNeeds, fits, most_stages
from pebble.models.machine import Machine
from pebble.models.tile_model import tile_needs
from pebble.schedules.orders.base import Multicast
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.traces import LINE_BYTES
from pebble.tuning.advisors.base import Advice, Advisor
from pebble.tuning.advisors.modelled import Modelled, Rates, modelled, rates_of, step_compute
from pebble.tuning.advisors.work import Launch, launches
from pebble.units import ceil_div
from pebble.workloads.base import Workload

ROWS = (16, 32, 64, 128, 192, 256)
COLUMNS = (16, 32, 64, 96, 128, 160, 192, 256)
_BLOCKS = (1, 2, 3)
_MOST_STAGES = 8
_SHOWN, _TILES = 12, 48  # tiles that are simulated in full: so many, and at most, while one may still be faster
_ORDERS = 2  # of each, after a quick look
_AS_LRU = 0.6  # of the capacity: an LRU of so much does about what partitions that draw their victims do
_NAMES = {
    "gemm": ("row", "column", "grouped-4", "grouped-8", "grouped-16", "cutlass3-8", "snake-strips-16", "hilbert"),
    "grouped": ("row", "column", "grouped-8"),
    "ffn": ("separate:grouped-8", "row-fused-8", "row-fused-16"),
    "attention": ("fa2", "fa2-heads-first", "fa3", "flash-decoding"),
}


@dataclass(frozen=True)
class Timed:
    """A kernel with its simulated bytes and modelled time."""

    advice: Advice
    dram_bytes: int
    time: Modelled


class Ours(Advisor):
    """``ours``."""

    name = "ours"
    what = "least modelled time under the chip's own cache model"
    source = "pebble.tuning.advisors.ours"

    def advise(self, workload: Workload, machine: Machine, sms: int) -> list[Advice]:
        """What was timed, the fastest first."""
        return [timed.advice for timed in best_timed(workload, machine, sms, ())]


class Timer:
    """Simulates kernels on a chip, each walk under a tile once."""

    def __init__(self, workload: Workload, machine: Machine) -> None:
        self.workload, self.machine = workload, machine
        self.family: KernelFamily[Any, Any] = kernel_family(workload)
        self.rates: Rates = rates_of(machine, workload.dtype)
        self._known: dict[tuple[Any, ...], int] = {}

    def config(self, advice: Advice) -> KernelConfig:
        """How a kernel is simulated: its tile cut to the problem, through the chip's own cache model."""
        tile = self.family.cut_tile(advice.tile, self.workload)
        policy = self.machine.default_model.policy
        return KernelConfig(tile, advice.sms, advice.blocks_per_sm, self.machine.l2_bytes, policy)

    def timed(self, advice: Advice) -> Timed:
        """Simulate and time.

        Raises
        ------
        InputError
            Too large to simulate.
        """
        config = self.config(advice)
        key = config.tile, advice.slots, advice.schedule.name
        if key not in self._known:
            self.family.check(self.workload, config)
            self._known[key] = self.family.simulate(self.workload, advice.schedule, config).dram_bytes
        moved = self._known[key]
        return Timed(advice, moved, modelled(self.workload, advice, self.rates, moved))

    def orders(self, advice: Advice) -> list[Any]:
        """The orders to simulate: for a GEMM those that move least through an LRU, which has a closed form."""
        named = [self.family.parse_schedule(name) for name in _NAMES[self.family.name]]
        if self.family.name != "gemm":
            return named
        config = self.config(advice)
        lines = config.cache_bytes if config.policy == "lru" else int(_AS_LRU * config.cache_bytes)
        quick = replace(config, policy="lru", cache_bytes=lines)

        def glance(order: Any) -> int:
            return self.family.simulate(self.workload, order, quick).dram_bytes

        return sorted(named, key=glance)[:_ORDERS]


def best_timed(workload: Workload, machine: Machine, sms: int, seeds: tuple[Advice, ...]) -> list[Timed]:
    """Kernels in full, the fastest first, each tile with its best order.

    Parameters
    ----------
    workload : Workload
        GEMM, grouped GEMM, FFN or attention.
    machine : Machine
    sms : int
    seeds : tuple of Advice
        Of other advisors, timed beside.

    Raises
    ------
    InputError
        No kernels of the family, a machine file without the numbers, or nothing that fits.
    """
    timer = Timer(workload, machine)
    least = workload.compulsory_bytes
    kernels = list(_kernels(timer, sms))
    hopeful = sorted(((modelled(workload, each, timer.rates, least).seconds, i) for i, each in enumerate(kernels)))
    found = [timer.timed(advice) for advice in seeds if fits(machine, advice.needs, advice.blocks_per_sm).fits]
    best = min((timed.time.seconds for timed in found), default=float("inf"))
    for tried, (seconds, i) in enumerate(hopeful[:_TILES]):
        if tried >= _SHOWN and seconds >= best:
            break
        here = [timer.timed(replace(kernels[i], schedule=order)) for order in timer.orders(kernels[i])]
        found.append(min(here, key=lambda timed: timed.time.seconds))
        best = min(best, found[-1].time.seconds)
    if not found:
        raise InputError(f"tile: got {workload.label}, expected a workload with a tile that fits {machine.name}.")
    ranked = sorted(found, key=lambda timed: timed.time.seconds)
    return [replace(t, advice=replace(t.advice, score=t.time.seconds)) for t in ranked]


def _kernels(timer: Timer, sms: int) -> Iterator[Advice]:
    """All that fit, with the first order of the family for the time being."""
    workload, machine, family = timer.workload, timer.machine, timer.family
    schedule = family.parse_schedule(_NAMES[family.name][0])
    seen = set()
    for tile in _tiles(timer):
        for blocks in _BLOCKS:
            one = _needs(timer, tile, 1)
            if not fits(machine, one, blocks).fits:
                break
            most = min(_MOST_STAGES, most_stages(machine, one, blocks))
            for multicast in _multicasts(machine, family):
                work = launches(workload, tile, schedule, multicast, sms)
                if multicast != "none" and work[0].blocks <= sms * blocks:
                    continue  # with one wave clusters only cost
                stages = min(most, _stages(timer.rates, work[0]))
                needs = _needs(timer, tile, stages)
                fit = fits(machine, needs, blocks)
                key = str(tile), blocks, multicast
                if fit.fits and stages >= 2 and key not in seen:
                    seen.add(key)
                    yield Advice(tile, stages, fit.threads, sms, blocks, needs, schedule, multicast, 0.0, Ours.name)


def _tiles(timer: Timer) -> Iterator[TileShape]:
    """Sides beyond the problem are cut to the next that covers it."""
    workload, family = timer.workload, timer.family
    own = family.default_tile(workload)
    depth = own.bk if family.name == "attention" else LINE_BYTES // workload.in_bytes
    widest = family.cut_tile(TileShape(1 << 16, 1 << 16, depth), workload)
    rows, cols = _covering(ROWS, widest.bm), _covering(COLUMNS, widest.bn)
    for bm in rows:
        for bn in cols:
            if family.name != "ffn" or bn % depth == 0:  # H is read in steps of BK
                yield TileShape(bm, bn, depth)


def _covering(sides: tuple[int, ...], extent: int) -> tuple[int, ...]:
    """The sides up to the first that covers the extent."""
    return tuple(side for i, side in enumerate(sides) if i == 0 or sides[i - 1] < extent)


def _needs(timer: Timer, tile: TileShape, stages: int) -> KernelNeeds:
    """Of a GEMM with its output tile, barriers and, for fp8, scales of A; of others as the family says."""
    workload, name = timer.workload, timer.family.name
    if name in ("gemm", "grouped"):
        scales = 4 * tile.bm if workload.dtype == "fp8" else 0
        return tile_needs(
            tile.bm, tile.bn, tile.bk, stages, workload.in_bytes, out_bytes=workload.out_bytes, scale_bytes=scales
        )
    return timer.family.kernel_needs(workload, tile, stages)


def _multicasts(machine: Machine, family: KernelFamily[Any, Any]) -> tuple[Multicast, ...]:
    capability = machine.compute_capability.partition(".")[0]
    clusters = capability.isdigit() and int(capability) in (9, 10) and family.name == "gemm"
    return ("none", "a", "b") if clusters else ("none",)


def _stages(rates: Rates, launch: Launch) -> int:
    """ceil(latency of a miss / time of a step) + 1; a step takes as long as its operations or its loads from L2."""
    loading = (launch.load_bytes / launch.blocks - launch.resident_bytes) / launch.steps / rates.l2
    return 1 + ceil((rates.hit + rates.miss) / max(step_compute(launch, rates), loading))
