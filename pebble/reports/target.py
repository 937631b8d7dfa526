"""Where a workload runs and how its kernel is tiled: what the user says, read once, with what a reader must know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypedDict, Unpack

from pebble.errors import InputError, UnknownNameError, check_flag
from pebble.families import kernel_family
from pebble.models.caches import parse_policy
from pebble.models.kernel_fit import MAX_STAGES, Fit
from pebble.models.machine import Machine, load_machine, load_machine_file
from pebble.models.speeds import speeds_of
from pebble.reports.accumulators import game_of, read_accumulators
from pebble.reports.cache_notes import IDEAL, read_cache_model
from pebble.reports.fit import ORIGINS, check_chip, fit_kernel
from pebble.reports.given import check_seed
from pebble.schedules.execution import WAVES, parse_execution
from pebble.simulation import KernelConfig
from pebble.units import Size, format_capacity, parse_size
from pebble.workloads.base import Workload

MAX_SMS = 100_000
WAVES_NOTE = "blocks run in waves, a barrier before each; those that run free drift apart"
FREE_NOTE = (
    "blocks run free, without a barrier: each at the pace that its data allow, by speeds fitted once to launches on an "
    "H100 and an H200; single launches drift by more or less than that"
)


class TargetOptions(TypedDict, total=False):
    """Where a workload runs: exactly one of the three.

    Attributes
    ----------
    gpu : str or Machine
        A SKU of ``pebble machines``, or what `pebble.gpu` returned.
    machine : str
        A machine file of your own.
    cache : str or Size
        One memory of this size: ``"40MiB"``, ``"8192el"``.
    accumulators : {"fp32", "off"}
        Whether partial sums take 4 bytes, as on a GPU (by default with ``gpu`` and ``machine``), or what they end as.
    """

    gpu: str | Machine | None
    machine: str | None
    cache: str | Size | None
    accumulators: str | None


class KernelOptions(TargetOptions, total=False):
    """How a tiled kernel runs, beside where.

    Attributes
    ----------
    tile : str
        Block tile BMxBN or BMxBNxBK; by default the family's.
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
    blocks_per_sm: int | str
    stages: int | str | None
    policy: str | None
    execution: str
    cluster: str
    seed: int | str
    allow_infeasible: bool


@dataclass(frozen=True)
class Target:
    """A machine, or a bare memory, never both.

    Attributes
    ----------
    machine : Machine or None
    cache : Size or None
    words : tuple of str
        How the command line says it.
    accumulator_bytes : int
        What a partial sum takes; 0: what it ends as.
    """

    machine: Machine | None
    cache: Size | None
    words: tuple[str, ...] = ()
    accumulator_bytes: int = 0

    @property
    def accumulate(self) -> str:
        """The game: ``"fp32"`` or ``"off"``."""
        return game_of(self.accumulator_bytes)

    def size_bytes(self, element_bytes: int) -> int:
        """The L2 of the machine, or the memory."""
        if self.machine is not None:
            return self.machine.l2_bytes
        assert self.cache is not None
        return self.cache.to_bytes(element_bytes)


def check_options(given: Iterable[str], known: Iterable[str], of: str = "compare") -> None:
    """Refuse an option that does not exist, which would change nothing.

    Raises
    ------
    UnknownNameError
        With the nearest that does.
    """
    for name in given:
        if name not in known:
            raise UnknownNameError("option", name, sorted(known), f"help(pebble.{of})")


def find_gpu(name: str | Machine) -> Machine:
    """A GPU that comes with pebble, or a machine file of your own.

    Parameters
    ----------
    name : str or Machine
        A SKU such as ``"a100-sxm4-40gb"``, or the path of a file that ends in ``.toml``.

    Returns
    -------
    Machine

    Raises
    ------
    UnknownNameError
        No such SKU.
    InputError
        A file that cannot be read.
    """
    if isinstance(name, Machine):
        return name
    if not isinstance(name, str):
        raise InputError(f"gpu: got {name!r}, expected the name of a GPU such as 'a100-sxm4-40gb', or a machine file.")
    return load_machine_file(name) if name.lower().endswith(".toml") else load_machine(name.lower())


def read_target(**where: Unpack[TargetOptions]) -> Target:
    """The machine or the memory.

    Raises
    ------
    InputError
        None or more than one of gpu, machine, cache.
    """
    check_options(where, TargetOptions.__optional_keys__, "bound")
    given = {key: value for key, value in where.items() if value is not None}
    accumulators = given.pop("accumulators", None)
    found = _read_where(given)
    width, words = read_accumulators(accumulators, found.machine is not None)
    return replace(found, words=found.words + words, accumulator_bytes=width)


def _read_where(given: Mapping[str, object]) -> Target:
    if len(given) != 1:
        got = " and ".join(f"--{option}" for option in given) or "none"
        raise InputError(f"memory: got {got}, expected exactly one of --gpu SKU, --machine FILE, --cache SIZE.")
    ((key, value),) = given.items()
    if key == "cache":
        size = parse_size(value, "--cache") if isinstance(value, str) else _size(value)
        return Target(None, size, ("--cache", size.text))
    if key == "machine" and isinstance(value, str):
        return Target(load_machine_file(value), None, ("--machine", value))
    machine = find_gpu(value)  # type: ignore[arg-type]
    return Target(machine, None, ("--gpu", machine.sku))


def chip_of(gpu: str | Machine | None, machine: str | None) -> Machine:
    """The machine of a question that needs one.

    Raises
    ------
    InputError
        None or both.
    """
    if (gpu is None) == (machine is None):
        got = "neither" if gpu is None else "both"
        raise InputError(f"machine: got {got} of --gpu and --machine, expected exactly one: --gpu SKU, --machine FILE.")
    found = read_target(gpu=gpu, machine=machine).machine
    assert found is not None
    return found


def target_of(options: KernelOptions) -> Target:
    """The machine or memory among the options of a kernel; errors as `read_target`."""
    return read_target(
        gpu=options.get("gpu"),
        machine=options.get("machine"),
        cache=options.get("cache"),
        accumulators=options.get("accumulators"),
    )


def _size(value: object) -> Size:
    if isinstance(value, Size):
        return value
    raise InputError(f"--cache: got {value!r}, expected text with a unit such as '40MiB', '228KiB' or '8192el'.")


def whole(option: str, value: object, least: int, most: int) -> int:
    """A whole number from ``least`` to ``most``, from text or a number.

    Raises
    ------
    InputError
        Not one.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        number = int(value) if isinstance(value, str) else int(value.__index__())  # type: ignore[attr-defined]
    except (ValueError, AttributeError, TypeError):
        raise InputError(f"{option}: got {str(value)[:40]!r}, expected a whole number such as 4096.") from None
    if not least <= number <= most:
        raise InputError(f"{option}: got {number}, expected a whole number from {least} to {most}.")
    return number


@dataclass(frozen=True)
class Kernel:
    """A kernel as it is simulated.

    Attributes
    ----------
    target : Target
    config : KernelConfig
        Tile, SMs, cache, policy, execution.
    stages : int
        Steps whose tiles a block holds at once.
    tile : str
        As the family writes it.
    notes : tuple of str
        What was cut or assumed.
    fit : Fit or None
        How it sits on an SM; None where no machine is named.
    tile_from, stages_from : str
        ``given``, or where each comes from: ``default``, ``halved`` to fit, ``fits`` in shared memory.
    """

    target: Target
    config: KernelConfig
    stages: int
    tile: str
    notes: tuple[str, ...]
    fit: Fit | None = None
    tile_from: str = "given"
    stages_from: str = "given"

    @property
    def runs(self) -> str:
        """How it runs, for a reader."""
        return self._runs("", "")

    @property
    def runs_and_why(self) -> str:
        """How it runs, and where a tile and stages that were not given come from."""
        origins = (ORIGINS.get(each, "") for each in (self.tile_from, self.stages_from))
        return self._runs(*(f" ({each})" * bool(each) for each in origins))

    def _runs(self, tile: str, stages: str) -> str:
        count = f"{self.stages} stage{'s' * (self.stages != 1)}{stages}, {self.config.wave_blocks} blocks at once"
        return f"tile {self.tile}{tile}, {count}, {self.config.execution.name}"

    @property
    def cache(self) -> str:
        """Its cache model and size, for a reader."""
        return f"{parse_policy(self.config.policy).title} cache of {format_capacity(self.config.cache_bytes)}"

    @property
    def model(self) -> str:
        """Under which cache and execution its figures hold, for a reader."""
        return f"{self.cache}, {self.config.execution.name}"

    @property
    def beside(self) -> dict[str, KernelConfig]:
        """The same kernel with one thing otherwise, for a second column.

        ``lru`` beside the chip's own cache model: one LRU of the nominal size. ``free`` beside waves, where the speeds
        of the chip are known and the policy does not look ahead, and ``waves`` beside free.
        """
        machine, config = self.target.machine, self.config
        found = {}
        if config.execution.is_free:
            found["waves"] = replace(config, execution=WAVES)
        elif (
            config.execution.is_reference and config.speeds is not None and not parse_policy(config.policy).looks_ahead
        ):
            found["free"] = replace(config, execution=replace(config.execution, kind="free"))
        if machine is not None and config.policy == machine.default_model.policy != IDEAL:
            found["lru"] = replace(config, policy=IDEAL)
        return found

    def to_dict(self) -> dict[str, Any]:
        """The full configuration."""
        config = self.config
        return {
            "tile": self.tile,
            "sms": config.sms,
            "blocks_per_sm": config.blocks_per_sm,
            "stages": self.stages,
            "tile_from": self.tile_from,
            "stages_from": self.stages_from,
            "fit": self.fit.to_json() if self.fit else None,
            "cache_bytes": config.cache_bytes,
            "policy": config.policy,
            "execution": config.execution.name,
            "cluster": list(config.execution.cluster),
            "seed": config.execution.seed,
        }


def read_kernel(workload: Workload, **options: Unpack[KernelOptions]) -> Kernel:
    """The kernel that the options describe.

    Raises
    ------
    InputError
        A malformed option, no number of SMs where no machine is named, or a kernel that the machine cannot run.
    """
    family = kernel_family(workload)
    check_options(options, KernelOptions.__optional_keys__)
    target = target_of(options)
    sms = options.get("sms")
    if sms is not None:
        sms = whole("--sms", sms, 1, MAX_SMS)
    elif target.machine is not None:
        sms = target.machine.sms
    else:
        raise InputError("--sms missing: expected --sms NUMBER beside --cache, the number of SMs of the GPU.")
    blocks = whole("--blocks-per-sm", options.get("blocks_per_sm", 1), 1, 64)
    asked = options.get("stages")
    stages = None if asked is None else whole("--stages", asked, 1, MAX_STAGES)
    allow = options.get("allow_infeasible", False)
    if check_flag("allow_infeasible", allow) and target.machine is None:
        raise InputError("--allow-infeasible: got it with --cache, where no chip limits the kernel; leave it out.")
    fitted = fit_kernel(
        family, workload, target.machine, options.get("tile"),
        blocks_per_sm=blocks, stages=stages, allow_infeasible=allow,
    )  # fmt: skip
    notes = [*fitted.notes]
    seed = whole("--seed", options.get("seed", 0), 0, 10**6)
    execution = parse_execution(options.get("execution", "waves"), options.get("cluster", "1x1"), seed)
    if execution.is_free:
        notes.append(FREE_NOTE)
    elif not execution.is_reference:
        if not family.timed and execution.blocks_in_cluster > 1:
            raise InputError(
                f"--cluster: got {options.get('cluster')} with {workload.label}, expected none: clusters are for gemm; "
                "leave it out."
            )
        if not family.timed:
            raise InputError(
                f"--execution: got {execution.name} with {workload.label}, expected waves or free; others are for gemm."
            )
        cluster = "x".join(map(str, execution.cluster))
        notes.append(f"execution {execution.name}, clusters of {cluster}; the reference is waves, 1x1")
    policy, cache_bytes, about = read_cache_model(options.get("policy"), target, workload.narrowest_bytes)
    speeds, unknown = None, ""
    if target.machine is not None:
        try:
            speeds = speeds_of(target.machine, workload.dtype)
        except InputError as error:
            if execution.is_free:
                raise
            unknown = f"not shown free-running: {error}"
    if execution.is_reference:
        simulates = speeds and not parse_policy(policy).looks_ahead
        notes.append(WAVES_NOTE + (", which execution free simulates" if simulates else " and may move more or less"))
    if execution.is_reference and speeds is None:  # with speeds it is of the column of free-running blocks
        check_seed(options, execution.kind)
    notes += [*check_chip(target.machine, sms, parse_policy(policy), allow), *about]
    if unknown and execution.is_reference:
        notes.append(unknown)
    elif speeds and execution.is_reference and parse_policy(policy).looks_ahead:
        notes.append(f"not shown free-running: {policy} looks ahead, and what free blocks do next depends on the cache")
    config = KernelConfig(fitted.tile, sms, blocks, cache_bytes, policy, execution, fitted.stages, speeds)
    return Kernel(target, config, fitted.stages, family.tile_text(fitted.tile), tuple(notes), fitted.fit, *fitted[-2:])
