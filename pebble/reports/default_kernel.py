"""The kernel of a question that names no tile: the one that ``pebble advise`` picks, whatever command asks."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

from pebble.errors import InputError
from pebble.models.kernel_fit import MAX_STAGES
from pebble.reports.fit import HARDWARE
from pebble.reports.simulated_kernel import KernelOptions, SimulatedKernel, read_kernel
from pebble.reports.target import MAX_SMS, target_of, whole
from pebble.tuning.advisors import Advice
from pebble.tuning.choice import Chooser, Question, chooser
from pebble.workloads.workload import Workload


def advised_kernel(workload: Workload, **options: Unpack[KernelOptions]) -> SimulatedKernel:
    """The kernel that the options describe; without ``tile``, on a machine, that of `pebble.advise`.

    Tile, stages, blocks an SM and execution are then the advised ones for the SMs, stages and blocks that are given. In
    a bare memory, through a cache that is named (``policy``, other than the chip's own), on a chip whose rates are not
    known, and where no advised kernel fits, it is the family's own tile.

    Raises
    ------
    InputError
        As for `read_kernel`.
    """
    who = None if options.get("tile") is not None else who_advises(workload, options)
    advice = None if who is None else _advised(who)
    if who is None or advice is None:
        return read_kernel(workload, **options)
    spec: KernelOptions = {**options}
    if options.get("execution") is None and options.get("cluster") is None:
        spec["execution"] = who.timer.execution.name
    spec["tile"], spec["stages"], spec["blocks_per_sm"] = str(advice.tile), advice.stages, advice.blocks_per_sm
    return as_advised(read_kernel(workload, **spec), "advised" if options.get("stages") is None else "given")


def as_advised(kernel: SimulatedKernel, stages_from: str = "advised") -> SimulatedKernel:
    """The kernel, which says that its tile was advised."""
    return replace(kernel, fitted=kernel.fitted._replace(tile_from="advised", stages_from=stages_from))


def _advised(who: Chooser) -> Advice | None:
    """What `pebble.advise` picks; None where it picks nothing."""
    try:
        return who.kernel
    except InputError:  # too large to simulate: as where nothing is known
        return None


def who_advises(workload: Workload, options: KernelOptions) -> Chooser | None:
    """Who picks the kernel of a question that names no tile; None where nobody does."""
    machine, policy = target_of(options).machine, options.get("policy")
    if machine is None or (policy is not None and not str(policy).startswith(HARDWARE)):
        return None
    sms, blocks, stages = options.get("sms"), options.get("blocks_per_sm"), options.get("stages")
    question = Question(
        workload,
        machine,
        machine.sms if sms is None else min(machine.sms, whole("--sms", sms, 1, MAX_SMS)),
        None if blocks is None else whole("--blocks-per-sm", blocks, 1, 64),
        None if stages is None else whole("--stages", stages, 1, MAX_STAGES),
    )
    try:
        return chooser(question)
    except InputError:  # no rates are known, or nothing fits: what is asked for is read as it stands, or refused
        return None
