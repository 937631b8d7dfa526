"""Which tile and how many stages a kernel runs with, whether the chip can run it at all, and the cache model that a
user names for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from pebble.errors import InputError
from pebble.families import KernelFamily
from pebble.models.caches import CachePolicy, parse_policy
from pebble.models.kernel_fit import Fit, fits, most_stages
from pebble.models.machine import Machine
from pebble.reports.target import Target
from pebble.schedules.tile import TileShape
from pebble.traces import LINE_BYTES
from pebble.units import format_capacity
from pebble.workloads.workload import Workload

HARDWARE, IDEAL = "hardware", "lru"


@dataclass(frozen=True)
class CacheModel:
    """The cache that is simulated.

    Attributes
    ----------
    policy : str
    bytes : int
    machine : Machine or None
    default : bool
        Whether it is the chip's own model, as its machine file has it.
    """

    policy: str
    bytes: int
    machine: Machine | None
    default: bool = False

    @property
    def parsed(self) -> CachePolicy:
        """What the policy's name says."""
        return parse_policy(self.policy)


def read_cache_model(name: str | None, target: Target, element_bytes: int) -> CacheModel:
    """The cache that is simulated.

    Without a name it is the chip's own, or one LRU where no machine is named.

    Raises
    ------
    InputError
        An unknown policy, or ``hardware`` without a machine.
    """
    machine = target.machine
    cache_bytes = target.size_bytes(element_bytes)
    if target.cache is not None and cache_bytes < LINE_BYTES:
        raise InputError(
            f"--cache: got {target.cache.text} ({cache_bytes} bytes), expected at least a line, {LINE_BYTES} bytes."
        )
    if name is None:
        name = HARDWARE if machine is not None else IDEAL
    if name == HARDWARE:
        if machine is None:
            raise InputError("--policy hardware: expected --gpu or --machine beside it, whose cache model is meant.")
        return CacheModel(machine.default_model.policy, cache_bytes, machine, default=True)
    if isinstance(name, str) and name.startswith(f"{HARDWARE}+") and machine is not None:  # the chip's own with options
        name = machine.default_model.policy + name.removeprefix(HARDWARE)
    parse_policy(name)  # said here what is wrong with it
    return CacheModel(name, cache_bytes, machine)


_LEAST_SIDE = 8
ALLOW = "simulate it all the same with --allow-infeasible"
# where a tile, or a number of stages, that was not given comes from, for a reader
ORIGINS = {"default": "default", "halved": "default, halved to fit", "fits": "what shared memory holds"}
ADVISED = "advise"


class Fitted(NamedTuple):
    """A tile and its stages, and how they were found.

    Attributes
    ----------
    tile : TileShape
        Cut to the problem.
    stages : int
    fit : Fit or None
        How it sits on an SM; None without a machine.
    requested : TileShape
        As it was given, or the family's own.
    lacks : str
        What that one would need, where a half of it was taken; else empty.
    tile_from, stages_from : str
        ``given``, ``advised``, or another key of ``ORIGINS``.
    """

    tile: TileShape
    stages: int
    fit: Fit | None
    requested: TileShape
    lacks: str
    tile_from: str
    stages_from: str


class Refusal(NamedTuple):
    """Which option asks for too much, what it got, why that is too much, and what to do."""

    option: str
    got: str
    why: str
    remedy: str


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
        A kernel that does not fit is no error.

    Raises
    ------
    InputError
        A malformed tile, or a kernel that breaks a limit of the machine.
    """
    default = family.default_tile(workload)
    tile_from = "default" if tile is None else "given"
    stages_from = "given" if stages is not None else "default" if machine is None else "fits"
    requested = default if tile is None else TileShape.parse(tile, default.bk)
    cut, lacks = family.cut_tile(requested, workload), ""
    if machine is None:
        return Fitted(cut, stages or 1, None, requested, "", tile_from, stages_from)

    def sit(tile: TileShape, stages: int | None = None) -> Fit:
        held = stages or most_stages(machine, family.kernel_needs(workload, tile), blocks_per_sm)
        return fits(machine, family.kernel_needs(workload, tile, held), blocks_per_sm)

    if tile is None:
        own = cut
        halves = list(_halves(own, family.chained))
        # where nothing fits, what the smallest lacks is the reason
        cut = next((each for each in halves if sit(each).fits), own if allow_infeasible else halves[-1])
        if cut != own:
            tile_from, lacks = "halved", str(sit(own).over[0])
    fit = sit(cut, stages)  # stages that do not fit are refused: no smaller tile is taken for them
    if not fit.fits and not allow_infeasible:
        option, got, why, remedy = why_not(family.tile_text(cut), fit)
        raise InputError(
            f"{option}: got {got}, expected a kernel that {machine.name} can run: {why}; {remedy}, or {ALLOW}."
        )
    return Fitted(cut, fit.needs.stages, fit, requested, lacks, tile_from, stages_from)


def beyond_chip(machine: Machine | None, sms: int, policy: CachePolicy) -> tuple[str, ...]:
    """Which options ask for more SMs, or a larger memory-side cache, than the machine has: a sentence each."""
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
    return tuple(broken)


def _halves(tile: TileShape, chained: bool) -> Iterator[TileShape]:
    """The tile, then its longer side halved again and again; in a chain BK stays at most BN, as FFNs ask for."""
    yield tile
    while max(tile.bm, tile.bn) > _LEAST_SIDE:
        bm, bn = (tile.bm, tile.bn // 2) if tile.bn >= tile.bm else (tile.bm // 2, tile.bn)
        tile = TileShape(bm, bn, min(tile.bk, bn) if chained else tile.bk)
        yield tile


def why_not(tile: str, fit: Fit) -> Refusal:
    """Why a kernel that breaks a limit of its machine cannot run, by the first limit."""
    over, needs = fit.over[0], fit.needs
    if over.limit.startswith("shared"):
        got = ("--stages", f"{needs.stages} stages of tile {tile}") if needs.stages > 1 else ("--tile", tile)
        return Refusal(*got, f"it needs {over}", "use fewer stages, a smaller tile or fewer blocks per SM")
    if over.limit.startswith(("threads", "blocks")):
        return Refusal("--blocks-per-sm", f"{fit.blocks_per_sm} of tile {tile}", f"they need {over}", "use fewer")
    sums = format_capacity(needs.accumulator_bytes)
    why = f"with {sums} of fp32 accumulators a block it needs {over}"
    return Refusal("--tile", tile, why, "use a smaller tile or fewer blocks per SM")
