"""Which tile and how many stages a kernel runs with, and whether the chip can run it at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pebble.errors import InputError
from pebble.families import KernelFamily
from pebble.models.caches import CachePolicy
from pebble.models.kernel_fit import Fit, fits, most_stages
from pebble.models.machine import Machine
from pebble.schedules.tile import TileShape
from pebble.units import format_capacity
from pebble.workloads.base import Workload

_LEAST_SIDE = 8
ALLOW = "simulate it all the same with --allow-infeasible"
# where a tile, or a number of stages, that was not given comes from, for a reader
ORIGINS = {"default": "default", "halved": "default, halved to fit", "fits": "what shared memory holds"}


class Fitted(NamedTuple):
    """A tile, cut to the problem, its stages, how it sits on an SM (None without a machine), and what to say of it.

    ``tile_from`` and ``stages_from``: ``given``, or a key of ``ORIGINS``.
    """

    tile: TileShape
    stages: int
    fit: Fit | None
    notes: tuple[str, ...]
    tile_from: str
    stages_from: str


def fit_kernel(
    family: KernelFamily[Any, Any],
    workload: Workload,
    machine: Machine | None,
    tile: str | None = None,
    *,
    blocks_per_sm: int = 1,
    stages: int | None = None,
    allow_infeasible: bool = False,
) -> Fitted:
    """The kernel that was asked for, or the family's own where nothing was.

    Parameters
    ----------
    family, workload
    machine : Machine or None
        None: nothing is known of the SMs, and nothing refused.
    tile : str, optional
        By default the family's tile, or the largest of its halves that fits.
    blocks_per_sm : int
    stages : int, optional
        By default as many as fit in shared memory, which a bound that must hold for fewer may assume; 1 without a
        machine.
    allow_infeasible : bool
        A kernel that does not fit gets a note rather than an error.

    Raises
    ------
    InputError
        A malformed tile, or a kernel that breaks a limit of the machine.
    """
    default = family.default_tile(workload)
    tile_from = "default" if tile is None else "given"
    stages_from = "given" if stages is not None else "default" if machine is None else "fits"
    if machine is None:
        cut, notes = _cut(family, workload, default if tile is None else TileShape.parse(tile, default.bk))
        return Fitted(cut, stages or 1, None, notes, tile_from, stages_from)

    def sit(tile: TileShape, stages: int | None = None) -> Fit:
        held = stages or most_stages(machine, family.kernel_needs(workload, tile), blocks_per_sm)
        return fits(machine, family.kernel_needs(workload, tile, held), blocks_per_sm)

    if tile is None:
        own = family.cut_tile(default, workload)
        halves = list(_halves(own, family.chained))
        # where nothing fits, what the smallest lacks is the reason
        cut = next((each for each in halves if sit(each).fits), own if allow_infeasible else halves[-1])
        notes = _cut(family, workload, default)[1]
        if cut != own:
            tile_from, lacks = "halved", sit(own).over[0]
            notes += (f"the tile {family.tile_text(own)} would need {lacks}; {family.tile_text(cut)} fits",)
    else:
        cut, notes = _cut(family, workload, TileShape.parse(tile, default.bk))
    fit = sit(cut, stages)  # stages that do not fit are refused: no smaller tile is taken for them
    if not fit.fits:
        option, got, why, fix = _refusal(family.tile_text(cut), fit)
        if not allow_infeasible:
            raise InputError(
                f"{option}: got {got}, expected a kernel that {machine.name} can run: {why}; {fix}, or {ALLOW}."
            )
        notes += (f"{machine.name} cannot run this kernel, simulated as asked: {why}",)
    return Fitted(cut, fit.needs.stages, fit, notes, tile_from, stages_from)


def check_chip(machine: Machine | None, sms: int, policy: CachePolicy, allow_infeasible: bool) -> tuple[str, ...]:
    """SMs and a memory-side cache that the machine has; notes on what it has not, where that is allowed.

    Raises
    ------
    InputError
        More SMs, or a larger memory-side cache, than the machine has.
    """
    if machine is None:
        return ()
    broken = []
    if sms > machine.sms:
        broken.append(f"--sms: got {sms}, expected at most the {machine.sms} of {machine.name}")
    if policy.last_level_bytes > machine.memory_side_cache_bytes:
        has = machine.memory_side_cache_bytes
        broken.append(
            f"--policy: got a last-level cache of {format_capacity(policy.last_level_bytes)}, expected "
            f"{'at most ' + format_capacity(has) if has else 'none'}, as {machine.name} has"
        )
    if broken and not allow_infeasible:
        raise InputError(f"{broken[0]}; or {ALLOW}.")
    return tuple(f"no such chip exists, simulated as asked: {each}" for each in broken)


def _halves(tile: TileShape, chained: bool) -> Iterator[TileShape]:
    """The tile, then its longer side halved again and again; in a chain BK stays at most BN, as FFNs ask for."""
    yield tile
    while max(tile.bm, tile.bn) > _LEAST_SIDE:
        bm, bn = (tile.bm, tile.bn // 2) if tile.bn >= tile.bm else (tile.bm // 2, tile.bn)
        tile = TileShape(bm, bn, min(tile.bk, bn) if chained else tile.bk)
        yield tile


def _cut(family: KernelFamily[Any, Any], workload: Workload, asked: TileShape) -> tuple[TileShape, tuple[str, ...]]:
    tile = family.cut_tile(asked, workload)
    now, was = family.tile_text(tile), family.tile_text(asked)
    return tile, () if now == was else (f"the tile {was} is larger than the problem and is cut short to {now}",)


def _refusal(tile: str, fit: Fit) -> tuple[str, str, str, str]:
    """Which option asks for too much, what it got, why that is too much, and what to do."""
    over, needs = fit.over[0], fit.needs
    if over.limit.startswith("shared"):
        got = ("--stages", f"{needs.stages} stages of tile {tile}") if needs.stages > 1 else ("--tile", tile)
        return *got, f"it needs {over}", "use fewer stages, a smaller tile or fewer blocks per SM"
    if over.limit.startswith(("threads", "blocks")):
        return "--blocks-per-sm", f"{fit.blocks_per_sm} of tile {tile}", f"they need {over}", "use fewer"
    kept = format_capacity(needs.accumulator_bytes)
    why = f"with {kept} of fp32 accumulators a block it needs {over}"
    return "--tile", tile, why, "use a smaller tile or fewer blocks per SM"
