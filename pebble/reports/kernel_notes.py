"""What a reader of a kernel's figures, or of a comparison, must know: sentences on a kernel, its cache and how its
blocks run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pebble.families import KernelFamily, kernel_family
from pebble.models.caches import CachePolicy
from pebble.models.machine import Machine, machine_names
from pebble.reports.fit import CacheModel, beyond_chip, why_not
from pebble.reports.simulated_kernel import SimulatedKernel
from pebble.schedules.tile import TileShape
from pebble.simulation import Traffic
from pebble.units import format_bytes, format_capacity
from pebble.workloads.workload import Workload

_WAVES = "blocks run in waves, a barrier before each; those that run free drift apart"
_FREE = (
    "blocks run free, without a barrier: each at the pace that its data allow, by speeds fitted once to launches on an "
    "H100 and an H200; single launches drift by more or less than that"
)


def kernel_notes(workload: Workload, kernel: SimulatedKernel, schedules: Sequence[str] = ()) -> tuple[str, ...]:
    """What was cut or assumed; where blocks run free, also which of the schedules drift unlike the model."""
    return (
        *_how_it_was_fitted(kernel_family(workload), workload, kernel),
        *_how_its_blocks_run(kernel),
        *what_drifts(workload, kernel, schedules),
    )


def _how_it_was_fitted(family: KernelFamily[Any, Any], workload: Workload, kernel: SimulatedKernel) -> Iterator[str]:
    fitted, text, machine = kernel.fitted, family.tile_text, kernel.target.machine
    yield from cut_note(workload, fitted.requested)
    if fitted.lacks:
        own = family.cut_tile(fitted.requested, workload)
        yield f"the tile {text(own)} would need {fitted.lacks}; {text(fitted.tile)} fits"
    if machine is not None and fitted.fit is not None and not fitted.fit.fits:
        why = why_not(kernel.tile, fitted.fit).why
        yield f"{machine.name} cannot run this kernel, simulated as asked: {why}"


def cut_note(workload: Workload, tile: TileShape) -> tuple[str, ...]:
    """What a reader must know of a tile that is larger than the problem."""
    family = kernel_family(workload)
    requested, own = (family.tile_text(shape) for shape in (tile, family.cut_tile(tile, workload)))
    return () if own == requested else (f"the tile {requested} is larger than the problem and is cut short to {own}",)


def _how_its_blocks_run(kernel: SimulatedKernel) -> Iterator[str]:
    config, execution, model = kernel.config, kernel.config.execution, kernel.cache_model
    if execution.is_asynchronous:
        yield _FREE
    elif execution.is_reference:
        yield _WAVES + (
            ", which execution free simulates" if kernel.simulates_asynchronous else " and may move more or less"
        )
    else:
        cluster = "x".join(map(str, execution.cluster))
        yield f"execution {execution.name}, clusters of {cluster}; the reference is waves, 1x1"
    for each in beyond_chip(kernel.target.machine, config.sms, model.parsed):
        yield f"no such chip exists, simulated as asked: {each}"
    yield from cache_notes(model)
    if not execution.is_reference:
        return
    if kernel.no_speeds:
        yield f"not shown free-running: {kernel.no_speeds}"
    elif config.speeds is not None and model.parsed.looks_ahead:
        yield (f"not shown free-running: {model.policy} looks ahead, and what free blocks do next depends on the cache")


def evidence(machine: Machine) -> str:
    """The command that says what stands behind the cache model of a chip."""
    which = machine.sku if machine.sku in machine_names() else "--machine FILE"
    return f"`pebble machines {which} --explain`"


def cache_notes(model: CacheModel) -> list[str]:
    """What the simulated cache is, and what of it a profiler does not count."""
    machine, policy = model.machine, model.parsed
    counted = _what_counters_leave_out(policy)
    if machine is not None and model.default:
        own = machine.default_model
        return [
            f"cache model of {machine.name} ({own.mark}): {own.policy}: {policy.description}; its evidence: "
            f"{evidence(machine)}",
            counted,
        ]
    about = f"cache policy {model.policy}: {policy.description}"
    if machine is None or policy.structure != "full":
        return [about, counted]
    return [_where_the_chip_differs(machine, model.policy.partition("+")[0]), about, counted]


def _what_counters_leave_out(policy: CachePolicy) -> str:
    """Where these figures and those of a profiler count differently."""
    begin = "warm" if policy.warm else "cold, as at a first launch"
    return (
        f"the cache starts {begin}; lines still dirty in it at the end are counted as written, which a counter read "
        "when the kernel ends does not see"
    )


def _where_the_chip_differs(machine: Machine, policy: str) -> str:
    """What the simulated cache is, and where the chip differs."""
    text = f"the cache model is one {policy.upper()} of the nominal L2 size; "
    partitions = machine.l2_partitions
    if machine.memory_side_cache_bytes:
        return text + (
            f"{machine.name} has {partitions} private L2s, each with its own copies, and a memory-side cache of "
            f"{format_capacity(machine.memory_side_cache_bytes)}, which is not modelled: traffic is "
            "what leaves the L2s; `--policy hardware` models both"
        )
    if partitions > 1:
        return text + (
            f"{machine.name} has {partitions} L2 partitions, which may keep a line twice, so measured traffic can be "
            "higher; `--policy hardware` models them"
        )
    return text + "hardware replacement and set conflicts differ"


def what_drifts(workload: Workload, kernel: SimulatedKernel, schedules: Sequence[str], column: str = "") -> list[str]:
    """Of which schedules the figures of free-running blocks are not reliable, and why: a sentence a reason.

    ``column``: where such figures stand beside those of blocks that run otherwise; without one there are none.
    """
    result: dict[str, list[str]] = {}
    figures = "the figures" if kernel.config.execution.is_asynchronous else column
    for name in schedules if figures else ():
        if why := kernel_family(workload).drifts(workload, name, kernel.config):
            result.setdefault(why, []).append(name)
    return [
        f"not reliable: {figures}{' of ' + ', '.join(names) if len(names) < len(schedules) else ''}: {why}"
        for why, names in result.items()
    ]


BYTES_ALONE = (
    "least time: the floor, or what DRAM needs for the bytes alone where that is more; fewer bytes need not take less "
    "time: `pebble time` models how long schedules take"
)


def what_counters_do_not_see(traffic: Sequence[Traffic]) -> list[str]:
    """Where the simulated figures and those of a profiler count differently."""
    if not traffic:
        return []
    left = [t.residue_bytes for t in traffic]
    amount = " to ".join(dict.fromkeys(map(format_bytes, (min(left), max(left)))))
    return [f"lines still dirty at the end are {amount} of each write figure"] if max(left) else []


def what_execution_changes(traffic: Mapping[str, int], other: str, there: Mapping[str, int]) -> str:
    """Whether the schedule that moves least depends on the execution."""
    best = min(traffic, key=lambda name: (traffic[name], there[name]))
    best_there = min(there, key=lambda name: (there[name], traffic[name]))
    how = "if blocks run free" if other == "free" else "in waves"
    if there[best] == there[best_there]:
        return f"{other} MB: {how}; the ranking's first does not depend on it: {best}, {format_bytes(there[best])}"
    return (
        f"{other} MB: {how}; the ranking depends on it: {best_there} is then first with "
        f"{format_bytes(there[best_there])}, and {best} moves {format_bytes(there[best])}"
    )


def what_lru_ranks_first(lru_bytes: Mapping[str, int]) -> str:
    first, *tied = (name for name, traffic in lru_bytes.items() if traffic == min(lru_bytes.values()))
    return (
        f"LRU MB: the total under one fully associative LRU of the nominal L2 size, which is not this chip's cache; it "
        f"would rank {first}{f' (and {len(tied)} more)' * bool(tied)} first; `--policy lru` shows it alone"
    )


def what_stays_in_the_cache(traffic: Sequence[Traffic], separate_bytes: int) -> list[str]:
    """Simulated kernels one after the other that move less than those whose intermediate goes through memory whole."""
    less = [t for t in traffic if t.order.startswith(("separate:", "unfused")) and t.dram_bytes < separate_bytes]
    if not less:
        return []
    least = min(less, key=lambda t: t.dram_bytes)
    return [
        f"{least.order} moves less than the bound of separate kernels ({format_bytes(least.dram_bytes)}, "
        f"{format_bytes(separate_bytes)}): its second kernel finds in L2 what the first left there, while that bound "
        "is for an intermediate that is written to DRAM and read again whole"
    ]


def what_no_chip_holds(held_bytes: int, machine: Machine) -> str:
    """Why no bound of the chip stands beside a kernel that was simulated although it does not fit."""
    return (
        f"no chip bound: the kernel holds {format_capacity(held_bytes)}, more than all on-chip stores of "
        f"{machine.name} ({format_capacity(machine.on_chip_bytes)})"
    )
