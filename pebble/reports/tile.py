"""``tile``: block tile, stages and warps of a workload on a GPU, by an advisor's rule or as the user says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict, Unpack

from pebble.errors import InputError
from pebble.families import kernel_family
from pebble.models.kernel_fit import MAX_STAGES, fits, most_stages, warp_threads
from pebble.models.machine import Machine
from pebble.models.sm_constants import constants_of
from pebble.models.tile_model import BARRIER_BYTES, KTile, TileModel, check_registers, tile_model
from pebble.reports.kernel_notes import cut_note
from pebble.reports.kernel_time import sustained_note
from pebble.reports.options import spelled_out
from pebble.reports.report import Report
from pebble.reports.target import MAX_SMS, chip_of, whole
from pebble.schedules.tile import TileShape
from pebble.timing.modelled import ModelledTime
from pebble.tuning import Progress, as_progress, silent, with_bar
from pebble.tuning.advisors import ADVISORS, Advice, Advisor, TimedKernel, Timer, best_timed, parse_advisor
from pebble.tuning.choice import Question, chooser
from pebble.units import ceil_div
from pebble.workloads.workload import Workload

_OURS = "ours"
_SAME = 0.999  # times as long is no faster
_TIMED = 1  # of another advisor's kernels; the rest are ranked by its own measure
ESTIMATE = (
    "modelled times are estimates wave by wave at rates that kernels sustain; multicast is not in them: where a rule "
    "multicasts, reads of L2 are counted as if it did not"
)


class OwnKernel(TypedDict, total=False):
    """A kernel of the user's own.

    Attributes
    ----------
    tile : str
        ``"128x128x64"``; the others mean nothing without it.
    stages : int
        By default the most that fit.
    warps : int
        Of a block; by default the fewest that can have the accumulators.
    blocks_per_sm : int
        By default 1.
    registers : int
        A budget for each thread.
    """

    tile: str | None
    stages: int | str | None
    warps: int | str | None
    blocks_per_sm: int | str | None
    registers: int | str | None


@dataclass(frozen=True)
class Choice:
    """One kernel of the ranking.

    Attributes
    ----------
    advice : Advice
    model : TileModel
        How it sits on an SM, and which roof it is under.
    time : ModelledTime or None
        None where only the advisor's own measure ranks it.
    sustained_seconds : float or None
        Run again and again; None where that is not modelled.
    tile : str
        As the family writes it.
    warps : int
        Of a block, those that only load among them.
    """

    advice: Advice
    model: TileModel
    time: ModelledTime | None
    sustained_seconds: float | None
    tile: str
    warps: int

    @property
    def seconds(self) -> float | None:
        """What kernels are ranked by: the sustained time where it is modelled."""
        if self.sustained_seconds is not None:
            return self.sustained_seconds
        return None if self.time is None else self.time.seconds

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        advice, time = self.advice, self.time
        return {
            "tile": self.tile,
            "stages": advice.stages,
            "threads": advice.threads,
            "warps": self.warps,
            "sms": advice.sms,
            "blocks_per_sm": advice.blocks_per_sm,
            "schedule": advice.schedule.name,
            "multicast": advice.multicast,
            "advisor": advice.of,
            "score": advice.score,
            "waves": self.model.waves,
            "last_wave_use": self.model.last_wave_use,
            "shared_bytes_per_block": advice.needs.shared_bytes,
            "modelled_seconds": time.seconds if time else None,
            "sustained_seconds": self.sustained_seconds,
            "dram_bytes": time.dram_bytes if time else None,
            "binds": time.binds if time else None,
            "simulated_share": time.simulated_share if time else None,
        }


@dataclass(frozen=True, repr=False)
class TileAdvice(Report):
    """What ``pebble tile`` found.

    Attributes
    ----------
    workload : Workload
    gpu : Machine
    advisor : Advisor or None
        None for a tile of the user's own.
    choices : tuple of Choice
        The best first.
    notes : tuple of str
    """

    workload: Workload
    gpu: Machine
    advisor: Advisor | None
    choices: tuple[Choice, ...]
    notes: tuple[str, ...]

    question = "tile"
    table_keys = ("tile", "schedule", "stages", "blocks_per_sm", "modelled_seconds", "dram_bytes", "advisor")
    bar_keys = ("modelled_seconds",)

    @property
    def machine(self) -> Machine | None:
        return self.gpu

    @property
    def best(self) -> Choice:
        """The first of the ranking."""
        return self.choices[0]

    def summary(self) -> str:
        advice, time, seconds = self.best.advice, self.best.time, self.best.seconds
        took = ""
        if time is not None and seconds is not None:
            how = "" if self.best.sustained_seconds is None else " sustained"
            took = f", {seconds * 1e6:,.1f} us{how} by the model, bound by {next(iter(time.binds))}"
        who = self.advisor.name if self.advisor else "as asked"
        return (
            f"{self.workload.label} on {self.gpu.name}, {who}: tile {self.best.tile}, "
            f"{advice.stages} stage{'s' * (advice.stages != 1)}, "
            f"{self.best.warps} warps{took}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """A row per kernel, the best first."""
        return [choice.to_json() for choice in self.choices]

    def document(self) -> dict[str, Any]:
        advisor = self.advisor
        about = None
        if advisor is not None:
            about = {
                "name": advisor.name, "what": advisor.what, "source": advisor.source,
                "score": advisor.measure or "modelled seconds",
            }  # fmt: skip
        return {
            "workload": {"label": self.workload.label, **self.workload.to_json()},
            "advisor": about,
            "configurations": [{**choice.to_json(), "model": choice.model.to_json()} for choice in self.choices],
            "notes": list(self.notes),
        }


@with_bar
@spelled_out(OwnKernel)
def tile(
    workload: Workload,
    advisor: str = _OURS,
    *,
    gpu: str | Machine | None = None,
    machine: str | None = None,
    sms: int | str | None = None,
    progress: Progress | bool = True,
    **own: Unpack[OwnKernel],
) -> TileAdvice:
    """Block tile, stages and warps for a workload.

    Parameters
    ----------
    workload : Workload
        GEMM, grouped GEMM, FFN or attention.
    advisor : str
        ``ours``, ``deepgemm-2025-05`` or ``deepgemm``.
    gpu, machine : str
        A SKU, or a machine file.
    sms : int, optional
        SMs that the kernel may use; by default all.
    progress : bool or callable
        False: no bar, which else is shown on a terminal and in a notebook. Or a function: called with
        each kernel that is about to be timed.
    **own
        A kernel of your own instead of an advisor's: `OwnKernel`.

    Returns
    -------
    TileAdvice
        Cost: seconds.

    Raises
    ------
    InputError
        An advisor that is not for this workload or GPU; a tile that the GPU cannot run, with the limit that it breaks.
    UnknownNameError
        An unknown advisor.

    Examples
    --------
    >>> import pebble
    >>> gemm = pebble.Gemm(4096, 7168, 16384, dtype="fp8")
    >>> print(pebble.tile(gemm, "deepgemm", gpu="h100-sxm5-80gb"))
    gemm m=4096 n=7168 k=16384 fp8 on NVIDIA H100-SXM5-80GB, deepgemm: tile 256x128x128, 3 stages, 12 warps, 724.7 us \
by the model, bound by shared
    """
    chip = chip_of(gpu, machine)
    kernel_family(workload)
    rule = parse_advisor(advisor)
    count = chip.sms if sms is None else whole("--sms", sms, 1, min(MAX_SMS, chip.sms))
    show = as_progress(progress)
    timer = Timer(workload, chip, show)
    if own.get("tile") is not None:
        if advisor != _OURS:
            raise InputError(f"--tile: got {own['tile']} with --advisor {advisor}, expected one of the two.")
        result = timer.fastest(_own(timer, count, own))
        return TileAdvice(
            workload, chip, None, (_choice(timer, result.advice, result),), (ESTIMATE, *_in_part([result]))
        )
    for option, value in own.items():
        if value is not None:
            flag = option.replace("_", "-")
            raise InputError(f"--{flag}: got {value} without --tile, expected --tile BMxBNxBK beside it.")
    if advisor == _OURS:
        return _ranked(workload, chip, count, show)
    advised = rule.advise(workload, chip, count)
    times = [timer.timed(advice) for advice in advised[:_TIMED]] + [None] * (len(advised) - _TIMED)
    choices = tuple(_choice(timer, advice, timed) for advice, timed in zip(advised, times, strict=True))
    note = f"ranked by the rule's own {rule.measure} ({rule.source}); only its choice is timed"
    return TileAdvice(workload, chip, rule, choices, (note, ESTIMATE, *_in_part(times)))


def _ranked(workload: Workload, chip: Machine, sms: int, progress: Progress) -> TileAdvice:
    """The kernel that `pebble.advise` picks, then others by their modelled time."""
    who = chooser(Question(workload, chip, sms))
    who.timer.progress = progress
    try:
        best = who.choice.best
        others = best_timed(workload, chip, sms, _seeds(workload, chip, sms), who.timer)
    finally:
        who.timer.progress = silent
    others = [timed for timed in others if _kernel(timed) != _kernel(best)]
    ranked = [best, *others]
    faster = [timed for timed in others if timed.seconds < _SAME * best.seconds]
    notes = [ESTIMATE, sustained_note(best.sustained is not None, workload), *_in_part(ranked)]
    if faster:
        family = who.timer.family
        tile = family.tile_text(family.cut_tile(faster[0].advice.tile, workload))
        notes.append(
            f"`pebble advise` picks the first: among tiles that `pebble export` writes, those within 2 % at a glance; "
            f"tile {tile} is modelled {1 - faster[0].seconds / best.seconds:.1%} faster"
        )
    notes += cut_note(workload, best.advice.tile)
    choices = tuple(_choice(who.timer, timed.advice, timed) for timed in ranked)
    return TileAdvice(workload, chip, parse_advisor(_OURS), choices, tuple(notes))


def _kernel(timed: TimedKernel) -> tuple[TileShape, int, int]:
    """What tells kernels apart, whatever their order."""
    return timed.advice.tile, timed.advice.stages, timed.advice.blocks_per_sm


def _in_part(results: Sequence[TimedKernel | None]) -> tuple[str, ...]:
    """What a reader must know where kernels were too long to simulate whole."""
    least = min((timed.time.simulated_share for timed in results if timed), default=1.0)
    if least == 1:
        return ()
    return (
        f"kernels of this size go through the cache model in part: of their loads at least {least:.1%}, then each wave "
        "moves for its loads what the last ones simulated did",
    )


def _seeds(workload: Workload, machine: Machine, sms: int) -> tuple[Advice, ...]:
    """What the other advisors choose, where they are for this."""
    results = []
    for advisor in ADVISORS.values():
        if advisor.name != _OURS:
            try:
                results.append(advisor.advise(workload, machine, sms)[0])
            except InputError:
                continue
    return tuple(results)


def _choice(timer: Timer, advice: Advice, timed: TimedKernel | None) -> Choice:
    workload, machine, tile = timer.workload, timer.machine, timer.family.cut_tile(advice.tile, timer.workload)
    columns, depth, resident = timer.family.k_tile(workload, tile)
    step = KTile(tile.bm, columns, depth, workload.in_bytes, constants_of(machine, workload.dtype), resident)
    in_order = [product.blocks for product in timer.family.kernel.work(workload, tile)]
    model = tile_model(
        machine,
        step,
        advice.needs,
        blocks=_blocks(timed.time, advice) if timed and timed.time.waves else in_order,
        flops=workload.flops,
        dram_bytes=timed.time.dram_bytes if timed else workload.compulsory_bytes,
        scale_bytes=advice.scale_bytes,
        barrier_bytes=advice.barrier_bytes,
        blocks_per_sm=advice.blocks_per_sm,
        sms=advice.sms,
    )
    warps = ceil_div(advice.threads, warp_threads(machine))
    sustained = None if timed is None or timed.sustained is None else timed.sustained.seconds
    return Choice(advice, model, timed.time if timed else None, sustained, timer.family.tile_text(tile), warps)


def _blocks(time: ModelledTime, advice: Advice) -> list[int]:
    """Blocks of the schedule that was timed, which may split keys and merge what it split: until a wave is not full."""
    results = [0]
    for wave in time.waves:
        results[-1] += wave.blocks
        if wave.blocks < advice.sms * advice.blocks_per_sm:
            results.append(0)
    return [count for count in results if count]


def _own(timer: Timer, sms: int, own: OwnKernel) -> Advice:
    """A kernel of the user's own, or the limit that it breaks."""
    workload, machine, family = timer.workload, timer.machine, timer.family
    stages, warps, blocks_per_sm = own.get("stages"), own.get("warps"), own.get("blocks_per_sm")
    shape = TileShape.parse(own.get("tile") or "", family.default_tile(workload).bk)
    threads = 0 if warps is None else warp_threads(machine) * whole("--warps", warps, 1, 32)
    needs = timer.needs(shape, 1)
    needs = replace(needs, threads=threads or needs.threads)
    if (registers := own.get("registers")) is not None:
        budget = whole("--registers", registers, 1, 255)
        check_registers(machine, shape.bm, shape.bn, threads or fits(machine, needs).threads, budget)
    blocks = 1 if blocks_per_sm is None else whole("--blocks-per-sm", blocks_per_sm, 1, 64)
    held = most_stages(machine, needs, blocks) if stages is None else whole("--stages", stages, 1, MAX_STAGES)
    needs = replace(needs, stages=held)
    fit = fits(machine, needs, blocks)
    if not fit.fits:
        raise InputError(
            f"--tile: got {family.tile_text(shape)}, {held} stages, {fit.threads} threads and {blocks} blocks an SM, "
            f"expected a kernel that {machine.name} can run: it needs {'; '.join(map(str, fit.over))}; use a smaller "
            "tile, fewer stages, other warps or fewer blocks."
        )
    schedule = family.parse_schedule(family.baseline[0])
    barriers = BARRIER_BYTES * (needs.stage_more_bytes > 0)
    return Advice(
        shape, held, fit.threads, sms, blocks, needs, schedule, "none", 0.0, "own",
        held * (needs.stage_more_bytes - barriers), held * barriers,
    )  # fmt: skip
