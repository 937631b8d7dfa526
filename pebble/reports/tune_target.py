"""What a search is asked for: the conditions to rank by, and the kernels whose tiles cost no time."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pebble.errors import InputError, check_text
from pebble.families import kernel_family
from pebble.reports.default_kernel import advised_kernel
from pebble.reports.simulated_kernel import KernelOptions, SimulatedKernel, read_kernel
from pebble.reports.target import target_of, whole
from pebble.schedules.execution import parse_execution
from pebble.tuning import BYTES, Condition, default_objective, space_of
from pebble.workloads.workload import Workload

ALL_TILES = "all"
ROBUST, UNEVEN = "waves,waves@90", "free,free@90"
ROBUST_IN_TIME = f"{ROBUST},free"
UNEVEN_NOTE = (
    f"ranked by {UNEVEN}: under a causal mask blocks are of unequal length, and waves wait for the longest: fa2 of 8 "
    f"heads and 32768 keys took 1.6 times as long in waves on an H100 and an H200; `--robust {ROBUST}` ranks by waves"
)
_LEAST_STAGES = 2  # so that a block loads while it multiplies
_SLOWER = 1.06  # a tile whose full waves take longer than this times those of the family's tile is not tried


def read_conditions(text: str | Sequence[str]) -> tuple[Condition, ...]:
    """The conditions named, each once: executions, with ``@90`` where 90 % of the cache is there.

    Raises
    ------
    InputError
        None, or a share that is no whole percentage.
    UnknownNameError
        An unknown execution.

    Examples
    --------
    >>> [condition.name for condition in read_conditions("waves,waves@90")]
    ['waves', 'waves@90']
    """
    results = []
    for each in text.split(",") if isinstance(text, str) else text:
        name, at, percent = check_text("--robust", each, "the name of an execution").strip().partition("@")
        share = whole("--robust: percent of the cache", percent, 1, 100) if at else 100
        results += [Condition(parse_execution(name), share)] if name else []
    if not results:
        raise InputError(f"--robust: got {text!r}, expected executions separated by commas, such as waves,dynamic-5.")
    return tuple(dict.fromkeys(results))


def default_conditions(
    workload: Workload, options: KernelOptions, in_time: bool
) -> tuple[tuple[Condition, ...], tuple[str, ...]]:
    """What schedules are ranked by where nothing is asked for, and a note where waves are not among it.

    Blocks of unequal length run free if the speeds of the chip are known: in waves all wait for the longest. Ranked by
    time or energy, others are to do well without a barrier too: so exported files run unless told otherwise.
    """
    uneven = space_of(workload).uneven(workload)
    if (uneven or in_time) and target_of(options).machine is not None:
        conditions = read_conditions(UNEVEN if uneven else ROBUST_IN_TIME)
        try:
            check_execution(workload, options, read_conditions("free")[0])
        except InputError:  # its speeds are not known
            return read_conditions(ROBUST), ()
        return conditions, (UNEVEN_NOTE,) if uneven else ()
    return read_conditions(ROBUST), ()


def read_objective(
    name: str | None, workload: Workload, options: KernelOptions, robust: str | Sequence[str] | None
) -> str:
    """What is to be least: as asked for; by default time where that is modelled, else bytes.

    Raises
    ------
    InputError
        Time or energy under executions that have none.
    """
    conditions = () if robust is None else read_conditions(robust)
    untimed = [c.name for c in conditions if not (c.execution.is_reference or c.execution.is_asynchronous)]
    if name is None:
        return BYTES if untimed else default_objective(target_of(options).machine, workload.dtype)
    if untimed and name != BYTES:
        raise InputError(
            f"--objective: got {name} with --robust {untimed[0]}, expected waves or free: only these have a time."
        )
    return name


def read_kernels(workload: Workload, options: KernelOptions) -> list[SimulatedKernel]:
    """The kernels to tune: those asked for by tile; without one that of `advise`; with ``all`` those that cost no time.

    A tile of ``all`` is tried if a block of it fits an SM with two stages at least, if it loads no more bytes from L2
    per product than the advised one, and if its full waves take at most 6 % longer.

    Raises
    ------
    InputError
        As `read_kernel`.
    """
    family, space = kernel_family(workload), space_of(workload)
    text = options.get("tile")
    if text is not None and text != ALL_TILES:
        requested = dict.fromkeys(re.split(r"[,\s]+", text.strip())) if isinstance(text, str) else [text]
        return [read_kernel(workload, **_with(options, tile)) for tile in requested]
    own = advised_kernel(workload, **_with(options, None))
    result = {own.config.tile: own}
    if text is None or own.target.machine is None:  # nothing is known of the SMs of a bare memory
        return [own]
    for tile in space.tiles(workload, family.default_tile(workload)):
        try:
            kernel = read_kernel(workload, **_with(options, str(tile)))
        except InputError:  # it does not fit
            continue
        config = kernel.config
        if (
            kernel.stages >= _LEAST_STAGES
            and space.intensity(workload, config.tile) >= space.intensity(workload, own.config.tile)
            and space.least_time(workload, config) <= _SLOWER * space.least_time(workload, own.config)
        ):
            result.setdefault(config.tile, kernel)
    return list(result.values())


def check_execution(workload: Workload, options: KernelOptions, condition: Condition) -> None:
    """Refuse an execution that the family has not; errors as `read_kernel`."""
    requested = options.copy()
    requested.pop("tile", None)
    requested["execution"] = condition.execution.name
    read_kernel(workload, **requested)


def _with(options: KernelOptions, tile: str | None) -> KernelOptions:
    changed = options.copy()
    changed["tile"] = tile
    return changed
