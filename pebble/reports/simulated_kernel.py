"""A kernel as it is simulated: what is asked for, read once, fitted to the chip, and a value with questions; what its
trace can hold, and the bound that a capacity gives.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar, Unpack

from pebble.bounds.proofs import LowerBound
from pebble.errors import InputError, check_flag
from pebble.families import KernelFamily, kernel_family
from pebble.models.caches import parse_policy
from pebble.models.caches.persisting import without_persisting
from pebble.models.gpcs import gpcs_of
from pebble.models.kernel_fit import MAX_STAGES, Fit
from pebble.models.machine import Machine
from pebble.models.rates import speeds_of
from pebble.reports.capacity import Capacity, trace_capacity
from pebble.reports.fit import (
    ADVISED,
    ALLOW,
    IDEAL,
    ORIGINS,
    CacheModel,
    Fitted,
    beyond_chip,
    fit_kernel,
    read_cache_model,
)
from pebble.reports.refusals import check_seed
from pebble.reports.target import MAX_SMS, Target, TargetOptions, check_options, target_of, whole
from pebble.schedules.execution import WAVES, Execution, parse_execution
from pebble.simulation import KernelConfig, Traffic
from pebble.simulation.merging import Requested, requested
from pebble.traces.asynchronous import Speeds
from pebble.units import format_capacity
from pebble.workloads.workload import Workload

T = TypeVar("T")
_CACHED = 64  # bounds, of the questions asked last


class KernelOptions(TargetOptions, total=False):
    """How a tiled kernel runs, beside where.

    Attributes
    ----------
    tile : str
        Block tile BMxBN or BMxBNxBK; by default what `pebble.advise` picks; in a bare memory, and for `simulate`, the
        family's.
    sms : int
        SMs; by default those of the machine.
    blocks_per_sm : int
        Blocks that run at once on an SM (1).
    stages : int
        Steps whose tiles a block holds at once; by default what fits in shared memory, 1 with ``cache``.
    policy : str
        Cache policy; by default, and with ``"hardware"``, the chip's own of the machine file, ``"lru"`` with
        ``cache``.
    execution, cluster : str
        How blocks run in time, and the blocks that share fetches.
    seed : int
        Of the skew of ``dynamic-S``.
    allow_infeasible : bool
        Simulate also a kernel that the chip cannot run.
    """

    tile: str | None
    sms: int | str | None
    blocks_per_sm: int | str | None
    stages: int | str | None
    policy: str | None
    execution: str | None
    cluster: str | None
    seed: int | str | None
    allow_infeasible: bool | None


def _or_default(value: T | None, default: T) -> T:
    return default if value is None else value


@dataclass(frozen=True)
class KernelSpec:
    """The kernel asked for: every option read, its number in range.

    Attributes
    ----------
    target : Target
    tile : str or None
        None: the family's.
    sms, blocks_per_sm : int
    stages : int or None
        None: what fits.
    policy : str or None
        None: the chip's own cache model.
    execution : Execution
    allow_infeasible : bool
    """

    target: Target
    tile: str | None
    sms: int
    blocks_per_sm: int
    stages: int | None
    policy: str | None
    execution: Execution
    allow_infeasible: bool

    @classmethod
    def read(cls, options: KernelOptions) -> KernelSpec:
        """From what the user says.

        Raises
        ------
        InputError
            A malformed option, or no number of SMs where no machine is named.
        """
        check_options(options, KernelOptions.__optional_keys__)
        target = target_of(options)
        sms, stages = options.get("sms"), options.get("stages")
        if sms is not None:
            sms = whole("--sms", sms, 1, MAX_SMS)
        elif target.machine is not None:
            sms = target.machine.sms
        else:
            raise InputError("--sms missing: expected --sms NUMBER beside --cache, the number of SMs of the GPU.")
        blocks = whole("--blocks-per-sm", _or_default(options.get("blocks_per_sm"), 1), 1, 64)
        stages = None if stages is None else whole("--stages", stages, 1, MAX_STAGES)
        allow = _or_default(options.get("allow_infeasible"), False)
        if check_flag("allow_infeasible", allow) and target.machine is None:
            raise InputError("--allow-infeasible: got it with --cache, where no chip limits the kernel; leave it out.")
        seed = whole("--seed", _or_default(options.get("seed"), 0), 0, 10**6)
        name, cluster = _or_default(options.get("execution"), "waves"), _or_default(options.get("cluster"), "1x1")
        execution = parse_execution(name, cluster, seed)
        return cls(target, options.get("tile"), sms, blocks, stages, options.get("policy"), execution, allow)


@dataclass(frozen=True)
class SimulatedKernel:
    """A kernel as it is simulated.

    Attributes
    ----------
    target : Target
    config : KernelConfig
        Tile, SMs, cache, policy, execution.
    tile : str
        As the family writes it.
    fitted : Fitted
        How its tile and stages were found, and how it sits on an SM.
    cache_model : CacheModel
    no_speeds : str
        Why nothing is known of blocks that run free on this chip; empty where it is known, or there is no machine.
    kept_bytes : int
        What its schedules keep of an intermediate in all shared memories, beside stages, at most.
    """

    target: Target
    config: KernelConfig
    tile: str
    fitted: Fitted
    cache_model: CacheModel
    no_speeds: str = ""
    kept_bytes: int = 0

    @property
    def stages(self) -> int:
        """Steps whose tiles a block holds at once."""
        return self.fitted.stages

    @property
    def fit(self) -> Fit | None:
        """How it sits on an SM; None where no machine is named."""
        return self.fitted.fit

    @property
    def simulates_asynchronous(self) -> bool:
        """Whether its blocks can be simulated without a barrier."""
        return self.config.speeds is not None and not self.cache_model.parsed.looks_ahead

    @property
    def keeps_aside(self) -> bool:
        """Whether a part of its cache is kept for an operand."""
        return without_persisting(self.config.policy, self.cache_model.parsed) is not None

    @property
    def runs(self) -> str:
        """How it runs, for a reader."""
        return self._runs("", "")

    @property
    def runs_and_why(self) -> str:
        """How it runs, and where a tile and stages that were not given come from."""
        tile, stages = (ORIGINS.get(each, "") for each in (self.fitted.tile_from, self.fitted.stages_from))
        if self.fitted.tile_from == "advised":  # of stages it is not said again
            tile = ADVISED
        return self._runs(*(f" ({each})" * bool(each) for each in (tile, stages)))

    def _runs(self, tile: str, stages: str) -> str:
        count = f"{self.stages} stage{'s' * (self.stages != 1)}{stages}, {self.config.wave_blocks} blocks at once"
        return f"tile {self.tile}{tile}, {count}, {self.config.execution.name}"

    @property
    def cache(self) -> str:
        """Its cache model and size, for a reader."""
        return f"{self.cache_model.parsed.title} cache of {format_capacity(self.config.cache_bytes)}"

    @property
    def model(self) -> str:
        """Under which cache and execution its figures hold, for a reader."""
        return f"{self.cache}, {self.config.execution.name}"

    @property
    def alternatives(self) -> dict[str, KernelConfig]:
        """The same kernel with one thing otherwise, for a second column.

        ``lru`` beside the chip's own cache model: one LRU of the nominal size. ``free`` beside waves, where the speeds
        of the chip are known and the policy does not look ahead, and ``waves`` beside free.
        """
        machine, config = self.target.machine, self.config
        result = {}
        if config.execution.is_asynchronous:
            result["waves"] = replace(config, execution=WAVES)
        elif config.execution.is_reference and self.simulates_asynchronous:
            result["free"] = replace(config, execution=replace(config.execution, kind="free"))
        if machine is not None and config.policy == machine.default_model.policy != IDEAL:
            result["lru"] = replace(config, policy=IDEAL)
        return result

    def requested(self, workload: Workload, schedule: Any, traffic: Traffic, residual: bool) -> Requested | None:
        """What a schedule asks of L2; None on a chip, or under an execution, whose merging was not measured."""
        machine, config = self.target.machine, self.config
        gpcs = None if machine is None else gpcs_of(machine, config.sms)
        if gpcs is None or not (config.execution.is_reference or config.execution.is_asynchronous):
            return None
        program = kernel_family(workload).program(workload, schedule, config, residual)
        return requested(program, config, gpcs, traffic.dram_read_bytes)

    def to_dict(self) -> dict[str, Any]:
        """The full configuration."""
        config = self.config
        return {
            "tile": self.tile,
            "sms": config.sms,
            "blocks_per_sm": config.blocks_per_sm,
            "stages": self.stages,
            "tile_from": self.fitted.tile_from,
            "stages_from": self.fitted.stages_from,
            "fit": self.fit.to_json() if self.fit else None,
            "cache_bytes": config.cache_bytes,
            "policy": config.policy,
            "execution": config.execution.name,
            "cluster": list(config.execution.cluster),
            "seed": config.execution.seed,
        }


def read_kernel(workload: Workload, **options: Unpack[KernelOptions]) -> SimulatedKernel:
    """The kernel that the options describe.

    Raises
    ------
    InputError
        A malformed option, no number of SMs where no machine is named, or a kernel that the machine cannot run.
    """
    family = kernel_family(workload)
    spec = KernelSpec.read(options)
    machine, execution = spec.target.machine, spec.execution
    fitted = fit_kernel(
        family, workload, machine, spec.tile,
        blocks_per_sm=spec.blocks_per_sm, stages=spec.stages, allow_infeasible=spec.allow_infeasible,
    )  # fmt: skip
    _check_execution(family, workload, execution)
    cache = read_cache_model(spec.policy, spec.target, workload.narrowest_bytes)
    speeds, no_speeds = _speeds(machine, workload, execution)
    if execution.is_reference and speeds is None:  # with speeds it is of the column of free-running blocks
        check_seed(options, execution.kind)
    beyond = beyond_chip(machine, spec.sms, cache.parsed)
    if beyond and not spec.allow_infeasible:
        raise InputError(f"{beyond[0]}; or {ALLOW}.")
    how = (spec.sms, spec.blocks_per_sm, cache.bytes, cache.policy, execution, fitted.stages, speeds)
    config = KernelConfig(fitted.tile, *how)
    return SimulatedKernel(spec.target, config, family.tile_text(fitted.tile), fitted, cache, no_speeds)


def _check_execution(family: KernelFamily[Any, Any], workload: Workload, execution: Execution) -> None:
    """Refuse an execution that the family has not."""
    if execution.is_asynchronous or execution.is_reference or family.timed:
        return
    if execution.blocks_in_cluster > 1:
        cluster = "x".join(map(str, execution.cluster))
        raise InputError(
            f"--cluster: got {cluster} with {workload.label}, expected none: clusters are for gemm; leave it out."
        )
    raise InputError(
        f"--execution: got {execution.name} with {workload.label}, expected waves or free; others are for gemm."
    )


def _speeds(machine: Machine | None, workload: Workload, execution: Execution) -> tuple[Speeds | None, str]:
    """At what pace blocks run on the chip, or why that is not known.

    Raises
    ------
    InputError
        It is not known, and they are to run free.
    """
    if machine is None:
        return None, ""
    try:
        return speeds_of(machine, workload.dtype), ""
    except InputError as error:
        if execution.is_asynchronous:
            raise
        return None, str(error)


@dataclass(frozen=True)
class Bounded:
    """A capacity and the bound that it gives."""

    capacity: Capacity  #: what can be held, and how it adds up
    bound: LowerBound  #: no schedule that holds so much moves less

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "bytes": self.bound.bytes,
            "elements": self.bound.elements,
            "method": self.bound.method,
            "theorem": self.bound.theorem.to_json(),
            "capacity_bytes": self.capacity.bytes,
            "capacity_elements": self.capacity.elements,
            "what": self.capacity.what,
        }


def trace_bound(workload: Workload, kernel: SimulatedKernel) -> Bounded:
    """The bound at what the simulated kernel can hold.

    Raises
    ------
    InputError
        A cache that starts warm: the bounds count every first load.
    """
    config, policy = kernel.config, parse_policy(kernel.config.policy)
    if policy.warm:
        raise InputError("--policy: got a policy with +warm, expected a cold start: the bounds count every first load.")
    return bounded(workload, held_by_trace(workload, kernel, config.cache_bytes + kernel.kept_bytes))


def held_by_trace(workload: Workload, kernel: SimulatedKernel, cache_bytes: int) -> Capacity:
    """What the simulated kernel can hold with a cache of so many bytes."""
    family, config = kernel_family(workload), kernel.config
    # every line once, however many partitions keep it; a memory-side cache holds lines too
    return trace_capacity(
        cache_bytes + parse_policy(config.policy).last_level_bytes,
        workload,
        family.values_held(workload, config, kernel.stages),
        config.wave_blocks,
        held_bytes=family.bytes_held(workload, config, kernel.stages),
        accumulator_bytes=kernel.target.accumulator_bytes,
        rounded=family.rounds_partial_sums,
    )


@lru_cache(_CACHED)
def bounded(workload: Workload, capacity: Capacity) -> Bounded:
    """The bound at a capacity; kept, as the floor on time asks for it again."""
    bound = kernel_family(workload).lower_bound(workload, capacity.elements, memory=capacity.memory)
    return Bounded(capacity, bound)
