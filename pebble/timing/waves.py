"""The time of a kernel, modelled wave by wave; no claim on single cycles.

A wave of blocks in lock step takes as long as the slowest of five, each at the rate that kernels sustain (`Rates`):

- *compute*: operations and exponentials of its busiest SM, one after the other but where a kernel overlaps them;
- *shared*: what tensor cores read from shared memory and loads write there, where the chip's way is known;
- *L2*: what its busiest SM loads, and what all of them do;
- *DRAM*: lines that its cache model misses in this very wave, and writes back, all SMs together;
- *latency*: its longest block, where stages are too few: a buffer is free again when its tiles have been requested,
  have come and have been computed with; and no step is shorter than what a block needs to wait, issue and wait again.

Before it the first tiles come (fill), after it results are written and the next wave begins (drain). A kernel is
launched once. What is still dirty in the cache at its end is written while the next kernel runs: in a stream of equal
launches each begins with that of the one before, so it is charged to the first wave. After a while a chip reaches its
limit of power: where tensor cores rest little, all that comes later takes longer.

Blocks that run free have no common wave: SMs take blocks as they become free, each as long as its slowest resource, and
DRAM serves all of them at once; the kernel takes the longer of the two. Blocks of a second and last wave spread over
the SMs, as the first ones end in the order of their launch; later ones go where others ended. Kernels side by side have
SMs of their own and share DRAM.

Where a product runs by a clock (persistent, staggered, with skew, or with its k cut), each block stays in the slot that
the clock names. Parts of tiles are written and added at a rate of their own, which nothing hides; the second kernel of
split-K begins when the first is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.models.caches import CacheCounts, parse_policy
from pebble.schedules.gemm import PARTIALS
from pebble.simulation import KernelConfig
from pebble.timing.modelled import ModelledTime, Use, Wave, ends, throttled_seconds, time_of_waves
from pebble.timing.sample import Sample, block_steps, passed, sampled
from pebble.timing.slots import Rest, flagged, makespan, rest_of, without_barriers
from pebble.timing.steps import step_of
from pebble.timing.sustained import Rates
from pebble.traces import LINE_BYTES
from pebble.traces.layout import Index
from pebble.traces.program import Phase, Program
from pebble.units import ceil_div


def modelled_time(
    program: Program,
    config: KernelConfig,
    rates: Rates,
    dram_bytes: int | Sequence[int] | None = None,
    most_lines: int | None = None,
) -> ModelledTime:
    """The time of a program on a chip: in waves, or free-running where ``config.execution`` is free.

    Parameters
    ----------
    program : Program
        As `KernelFamily.program` makes it; several groups (kernels side by side) share no wave and run free.
    config : KernelConfig
        SMs, blocks an SM, stages, cache and its model; with ``speeds`` for free-running traces.
    rates : Rates
        As `sustained_rates` gives them for a chip.
    dram_bytes : int or sequence of int, optional
        What moves between L2 and DRAM, where it is known, or what each kernel side by side moves: nothing is simulated,
        waves share it as they share loads, and ``rates`` are those of its reads and writes (`Rates.with_writes`).
    most_lines : int, optional
        Of a kernel that loads more lines than that from L2 only a part is simulated (`pebble.timing.sample`).

    Returns
    -------
    ModelledTime

    Raises
    ------
    InputError
        Another execution; or as for the trace.

    Notes
    -----
    One simulation of the kernel's cache: 0.1 to 0.5 s for an 8192^3 product.
    """
    if not (config.execution.is_reference or config.execution.is_asynchronous or program.clocks):
        raise InputError(
            f"--execution: got {config.execution.name}, expected waves or free: only a product by itself has a time "
            "under others."
        )
    known = () if dram_bytes is None else (dram_bytes,) if isinstance(dram_bytes, int) else tuple(dram_bytes)
    of_groups = np.array(known, np.float64) / LINE_BYTES
    if dram_bytes is not None and len(known) != len(program.groups):
        raise InputError(f"dram_bytes: got {len(of_groups)} numbers, expected one a kernel, {len(program.groups)}.")
    free = config.execution.is_asynchronous or len(program.groups) > 1 or bool(program.clocks)
    if free and any(group.flags for group in program.groups):
        raise InputError(
            f"--execution: got {config.execution.name} with a schedule whose blocks wait for flags, expected "
            "waves, where flags have a time."
        )
    alone = len(program.groups) == 1 and not program.clocks
    part = sampled(program, most_lines) if alone and most_lines is not None and dram_bytes is None else None
    of_waves: list[float] | None = None
    counts: CacheCounts | None = None
    if dram_bytes is None:
        trace = config.trace(program if part is None else part.program)
        traffic, counts = passed(parse_policy(config.policy).engine(trace, config.cache_bytes // LINE_BYTES))
        rates = rates.with_writes(counts.written_share)
        of_waves = [float(lines.sum()) for lines in traffic]
        if part is not None and not free:
            of_waves = part.spread(program, of_waves)
        by_operand = np.sum(traffic, axis=0)  # what a group moves is what its operands move
        groups = group_of_operands(program, len(by_operand))
        of_groups = np.bincount(groups, by_operand, len(program.groups)).astype(np.float64)
        if part is not None and free:
            of_groups = np.array([part.grown(program, float(of_groups.sum()))])
    if free:
        timed = (
            _by_clock(program, config, rates, float(of_groups.sum()), counts)
            if program.clocks
            else (_free(program, config, rates, of_groups))
        )
        return _with_pipes(timed, program, config, rates, counts, part)
    result = _in_waves(program, config, rates, float(of_groups.sum()) if of_waves is None else sum(of_waves), of_waves)
    return _with_pipes(result, program, config, rates, counts, part)


def _with_pipes(
    time: ModelledTime,
    program: Program,
    config: KernelConfig,
    rates: Rates,
    counts: CacheCounts | None,
    part: Sample | None,
) -> ModelledTime:
    """The same with what its resources need if all SMs share the work evenly, and how it was simulated."""
    sectors, sums = program.layout.tile_sectors(), np.zeros(4)
    for group in program.groups:
        for phase in group.phases:
            step, blocks = step_of(phase, sectors, rates, config), block_steps(phase)
            steps, exps = float(blocks.sum()), float(blocks.sum()) * phase.exps + phase.activations * len(blocks)
            promoted = 0.0 if phase.exps else rates.promoted(phase.flops, config.tile.bk)
            shared = steps * (step.shared - promoted)
            sums += (steps * phase.flops / rates.flops, steps * promoted, exps / rates.exps, shared)
    names = ("tensor cores", "vector pipes", "exponentials", "shared memory")
    pipes = dict(zip(names, (sums / config.sms / 1e9).tolist(), strict=True))
    pipes |= {"L2": time.l2_bytes / LINE_BYTES / rates.lines / 1e9, "DRAM": time.dram_seconds}
    slots = 0 if any(group.flags for group in program.groups) else sum(group.wave_blocks for group in program.groups)
    share = 1.0 if part is None else part.share
    return replace(time, counts=counts, simulated_share=share, pipes=pipes, slots=slots)


def _in_waves(
    program: Program, config: KernelConfig, rates: Rates, total: float, of_waves: list[float] | None
) -> ModelledTime:
    (group,) = program.groups
    sms, sectors = min(config.sms, group.wave_blocks), program.layout.tile_sectors()
    every = sum(
        float(block_steps(phase).sum()) * step_of(phase, sectors, rates, config).lines for phase in group.phases
    )
    waves: list[Wave] = []
    l2_lines, launches = 0.0, 1
    for phase in group.phases:
        counts, step = block_steps(phase), step_of(phase, sectors, rates, config)
        around = rates.hit * (1 + (phase.prologue is not None)) + rates.drain
        rest = rest_of(phase, counts, config, group.wave_blocks, rates.exported)
        launches += rest.launches
        for start in range(0, len(counts), group.wave_blocks):
            steps = counts[start : start + group.wave_blocks]
            loads = float(steps.sum()) * step.lines
            loaded = loads * (rest.loads if start >= rest.first else 1.0)
            lines = total * loads / every
            if of_waves is not None:
                lines = of_waves[len(waves)] + (0 if waves else of_waves[-1])
            together, late = ceil_div(len(steps), sms), start >= rest.first
            share, longest = rest.share if late else 1.0, float(steps.max(initial=0))
            busiest = float(np.bincount(np.arange(len(steps)) % sms, steps).max(initial=0))
            latency = rates.hit + rates.miss * min(1.0, lines / max(1.0, loads))
            chain = share * longest * step.chain(together, config.stages, latency, rates.step)
            chain = max(chain, (rest.steps if late else 1.0) * longest * rates.step)
            ended = around + together * phase.activations / rates.exps
            compute, shared, port = (share * busiest / together * need for need in step.at_once(together))
            needs = (compute, shared, max(port, loaded / rates.lines), lines / rates.dram_lines, chain, ended)
            waves.append(Wave(len(steps), *(need / 1e9 for need in needs)))
            l2_lines += loads
    if of_waves is not None and len(waves) + 1 != len(of_waves):
        raise AssertionError("the trace has other waves than the program")
    idle = sum(wave.seconds * (1 - wave.blocks / group.wave_blocks) for wave in waves)
    if group.flags:
        took = _took(program, config, rates, total / max(1.0, every))
        last = flagged(group, took)
        idle = (last - sum(float(each.sum()) for each in took) / group.wave_blocks) / 1e9
        waves = without_barriers(waves, last)
    launch = launches * rates.launch / 1e9
    seconds = sum(wave.seconds for wave in waves) + launch
    throttled = throttled_seconds(program.flops, config.sms, rates, seconds)
    time = time_of_waves(waves, launch, round(total) * LINE_BYTES, round(l2_lines) * LINE_BYTES, throttled)
    return replace(time, idle_seconds=idle)


def _took(program: Program, config: KernelConfig, rates: Rates, missed: float) -> list[NDArray[np.floating[Any]]]:
    """Nanoseconds of each block of each phase while its SM is full."""
    (group,), together, results = program.groups, config.blocks_per_sm, []
    for phase in group.phases:
        step = step_of(phase, program.layout.tile_sectors(), rates, config)
        pace = max(
            *step.at_once(together), step.chain(together, config.stages, rates.hit + rates.miss * missed, rates.step)
        )
        around = (
            rates.hit * (1 + (phase.prologue is not None)) + rates.drain + together * phase.activations / rates.exps
        )
        results.append(block_steps(phase) * pace + around)
    return results


def _free(
    program: Program, config: KernelConfig, rates: Rates, of_groups: NDArray[np.floating[Any]]
) -> ModelledTime:  # fmt: skip
    sectors, total = program.layout.tile_sectors(), float(of_groups.sum())
    alone = rates.exported and len(program.groups) == 1
    rests = [
        [rest_of(phase, block_steps(phase), config, group.wave_blocks, alone) for phase in group.phases]
        for group in program.groups
    ]
    launches = len(rests) + sum(rest.launches for each in rests for rest in each)
    launch, ended, uses = rates.launch * launches, list[float](), list[Use]()
    needs, around, l2_lines, core = np.zeros(4), 0.0, 0.0, 0.0
    slots = sum(group.wave_blocks for group in program.groups)
    finished: list[list[float]] = []  # of each group its phases; those of the second may wait for the first's
    for number, group in enumerate(program.groups):
        dram = float(of_groups[number])
        steps = [
            (
                _taken(phase, rest, rates),
                step_of(phase, sectors, rates, config),
                rates.hit * (1 + (phase.prologue is not None)) + rates.drain,
                phase.activations / rates.exps,
            )
            for phase, rest in zip(group.phases, rests[number], strict=True)
        ]
        loads = sum(
            float(block_steps(phase).sum()) * step.lines
            for phase, (_, step, *_) in zip(group.phases, steps, strict=True)
        )
        latency = rates.hit + rates.miss * min(1.0, dram / max(1.0, loads))
        busy = 0.0
        sms = max(1, group.wave_blocks // config.blocks_per_sm)
        mine: list[float] = []
        for phase, (counts, step, finish, activated) in zip(group.phases, steps, strict=True):
            took = []
            for blocks, together in _crowded(counts, group.wave_blocks, sms):
                chain = step.chain(together, config.stages, latency, rates.step)
                each = finish / together + activated  # others on the SM go on meanwhile, but for the same pipe
                took.append(blocks * max(*step.at_once(together), chain) + each)
                needs += float(blocks.sum()) / slots * np.array([*step.at_once(together), chain])
                around += each * len(blocks) / slots
            begins = finished[0][phase.after - 1] if phase.after and finished else 0.0
            busy = max(busy, begins) + makespan(np.concatenate(took), group.wave_blocks)
            mine.append(busy)
        finished.append(mine)
        l2_lines += loads
        core = max(core, busy, loads / rates.lines)
        took_alone = max(busy, loads / rates.lines, dram / rates.dram_lines)
        ended.append(took_alone + launch)
        loading = loads / group.wave_blocks * config.blocks_per_sm / min(rates.port, rates.lines / config.sms)
        uses.append(Use.of(took_alone, loading, loads / rates.lines, dram / rates.dram_lines))
    if len(uses) > 1:
        ended = [end + launch for end in ends(uses, rates.contention)]
    # DRAM and L2 serve all groups: whichever ends last cannot end before they have served all
    last = int(np.argmax(ended))
    ended[last] = max(ended[last], max(total / rates.dram_lines, l2_lines / rates.lines) + launch)
    needed = _Needed(launch, needs, around, core, total, l2_lines)
    return _time_of(program, config, rates, needed, ended)


def _taken(phase: Phase, rest: Rest, rates: Rates) -> NDArray[np.floating[Any]]:
    """Steps that each block takes as long as: more where a mask crosses it, fewer where it is cut."""
    counts = block_steps(phase)
    taken = counts + (counts > 0) * (phase.masked_steps if rates.exported else 0.0)
    return np.where(np.arange(len(counts)) < rest.first, taken, taken * rest.share)


def _by_clock(
    program: Program, config: KernelConfig, rates: Rates, total: float, counted: CacheCounts | None
) -> ModelledTime:
    """Each block in the slot that its clock names, late and slow as that says; split-K has two launches.

    What a block does with parts of tiles goes through `PART_BYTES_PER_CLOCK`, and nothing hides it.
    """
    sectors, (group,) = program.layout.tile_sectors(), program.groups
    needs, around, l2_lines, ended = np.zeros(4), 0.0, 0.0, 0.0
    added = 0.0 if len(program.clocks) == 1 else _added_lines(program, counted, total)
    for number, (phase, clock) in enumerate(zip(group.phases, program.clocks, strict=True)):
        counts, step = block_steps(phase), step_of(phase, sectors, rates, config)
        parts = _part_lines(program, phase, sectors)
        loads = float(counts.sum()) * step.lines + float(parts.sum())
        dram = added if number else total - added
        together = ceil_div(len(np.unique(clock.slot)), config.sms)
        latency = rates.hit + rates.miss * min(1.0, dram / max(1.0, loads))
        chain = step.chain(together, config.stages, latency, rates.step) if counts.any() else 0.0
        pace = max(*step.at_once(together), chain)
        each = (rates.hit + rates.drain) / together + parts * together / min(rates.parts, rates.lines / config.sms)
        waits = clock.finish - clock.start - counts * clock.pace  # an owner for those who have parts of its tile
        took = (counts * clock.pace + np.maximum(0.0, waits)) * pace + each
        late = np.full(group.wave_blocks, np.inf)
        np.minimum.at(late, clock.slot, clock.start - clock.start.min())
        done = np.bincount(clock.slot, took, group.wave_blocks) + np.where(np.isfinite(late), late, 0.0) * pace
        ended += max(float(done.max()), loads / rates.lines, dram / rates.dram_lines) + rates.launch
        needs += float(counts.sum()) / group.wave_blocks * np.array([*step.at_once(together), chain])
        around += float(each.sum()) / group.wave_blocks
        l2_lines += loads
    launch = rates.launch * len(program.clocks)
    return _time_of(program, config, rates, _Needed(launch, needs, around, ended - launch, total, l2_lines), [ended])


def _added_lines(program: Program, counted: CacheCounts | None, total: float) -> float:
    """DRAM lines of the kernel that adds parts: what it fetches of them, and the result."""
    if counted is None:
        return total / 2  # nobody knows: about what is written before
    parts, result = (counted.operand_names.index(name) for name in (PARTIALS, "C"))
    lines = counted.read_misses[parts] + counted.write_backs[result]
    return lines * counted.unit_bytes / LINE_BYTES


def _part_lines(program: Program, phase: Phase, sectors: Index) -> NDArray[np.float64]:
    """Lines of parts of tiles that each block writes or adds at its end."""
    if phase.epilogue is None or PARTIALS not in program.layout.names:
        return np.zeros(len(phase.steps.bases))
    parts = program.layout.operands[program.layout.names.index(PARTIALS)]
    return np.asarray(np.where(phase.epilogue.bases >= parts.first, sectors[phase.epilogue.bases], 0).sum(axis=1) / 4)


class _Needed(NamedTuple):
    """Of blocks that run free or by a clock, in nanoseconds: launches, what each resource needs, what is around steps,
    and all but DRAM and the launch; and lines, of DRAM and of L2."""

    launch: float
    needs: NDArray[np.float64]
    around: float
    core: float
    dram_lines: float
    l2_lines: float


def _time_of(
    program: Program, config: KernelConfig, rates: Rates, needed: _Needed, ended: Sequence[float]
) -> ModelledTime:  # fmt: skip
    seconds = max(ended) / 1e9
    throttled = throttled_seconds(program.flops, config.sms, rates, seconds)
    longer = 1 + throttled / seconds if throttled else 1.0
    compute, shared, port, chains = (needed.needs / 1e9).tolist()
    return ModelledTime(
        seconds=seconds + throttled,
        compute_seconds=compute,
        shared_seconds=shared,
        l2_seconds=max(port, needed.l2_lines / rates.lines / 1e9),
        dram_seconds=needed.dram_lines / rates.dram_lines / 1e9,
        latency_seconds=chains,
        around_seconds=needed.around / 1e9,
        launch_seconds=needed.launch / 1e9,
        throttled_seconds=throttled,
        waves=(),
        dram_bytes=round(needed.dram_lines) * LINE_BYTES,
        l2_bytes=round(needed.l2_lines) * LINE_BYTES,
        ended_seconds=tuple(end / 1e9 * longer for end in ended),
        busy_seconds=needed.core / 1e9,
    )


def _crowded(counts: NDArray[np.floating[Any]], slots: int, sms: int) -> list[tuple[NDArray[np.floating[Any]], int]]:
    """Blocks by how many share an SM while they run: at most as many as fit; of a second and last wave fewer."""
    first = counts[:slots] if len(counts) < 2 * slots else counts
    rest = counts[len(first) :]
    parts = [(first, ceil_div(min(len(first), slots), sms))]
    return [*parts, (rest, ceil_div(len(rest), sms))] if len(rest) else parts


def group_of_operands(program: Program, operands: int) -> NDArray[np.int64]:
    """Which group each operand belongs to: of two kernels side by side the first one's come first."""
    if len(program.groups) == 1:
        return np.zeros(operands, np.int64)
    begins = program.first_operands or (0,) * len(program.groups)
    return np.searchsorted(np.array(begins), np.arange(operands), side="right") - 1
