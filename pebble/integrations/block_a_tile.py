"""The time of a product whose kernel has a block for each tile of the result, as Triton's tutorials write it.

Thousands of configurations are ranked in a moment, so nothing is simulated. A step of the blocks that share an SM takes
as long as the slowest of three: tensor cores, one block after the other; what L2 serves for it; and the way of a tile
from L2, where too few stages are ahead. Blocks run in full waves, and the rest of them spread over the SMs.

What L2 serves are the requests that the SMs of one GPC do not share (`pebble.models.gpcs`): each GPC asks for a tile
once, and of the others' requests for it a share comes through, `Constants.most` for the operand that more blocks of the
GPC have in common. While all blocks began together they keep step, and less of it does (`Constants.in_step`). So which
blocks are neighbours counts, and rows of a tall tile are better walked the other way than those of a wide one.

`CONSTANTS` and the `corrections` of single kernels are fitted by ``benchmarks/integrations/fit.py`` to measured times.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.models import machine as machines
from pebble.models.gpcs import gpcs_of
from pebble.models.machine import Machine
from pebble.models.rates import sustained_dram
from pebble.schedules.tile import TileShape
from pebble.workloads.workload import Workload

Floats = NDArray[np.float64]
_FILE = Path(machines.__file__).parent / "block_a_tile.toml"
_SMOOTH = 8.0  # how sharply the slowest resource alone counts
_THROTTLED_NS = 1e5  # from about here on a launch feels the limit of power
# errors of the model: their size, that of each kernel by itself, and by which they are less alike for twice the rows,
# columns, depth, blocks of an SM, warps or group, or a stage more
_OFF, _OFF_ALONE = 0.1, 0.02
_DISTANCES = np.array((1.0, 1.0, 1.0, 1.0, 0.5, 0.05, 1.2)) / 4
_CONSIDERED, _DRAWS, _MOST_LOST = 250, 300, 3.0


class Constants(NamedTuple):
    """What the model was fitted to; nanoseconds, bytes, and shares.

    Attributes
    ----------
    launch : float
        Of a kernel.
    block : float
        Before the first step of a block and after its last.
    result : float
        Of writing a value of the result, times the blocks that share an SM.
    beside : float
        Power of the blocks that share an SM by which the last two are shorter while other waves follow.
    alone : float
        What a step of a block that has its SM to itself takes besides.
    latency, ahead : float
        Of a tile from L2; and stages ahead of those that a kernel names, less one.
    operations : float
        Of tensor cores, over the chip's stated peak: the clock of single launches is above the one stated.
    served : float
        Bytes that L2 serves in a cycle of an SM while all SMs ask.
    idle : float
        Power of the share of SMs that ask by which each of them waits less.
    most, least : float
        Shares of the repeated requests that reach L2: of the operand that most blocks of a GPC share, and of the other.
    in_step : float
        What both are multiplied by in a launch of one wave.
    crowd : float
        Power of the blocks of an SM with which both grow.
    resident : float
        Share of L2 up to which operands that come again stay.
    hidden : float
        Share of the shorter of DRAM and SMs that the longer does not hide.
    throttle : float
        By which share a long launch is slowed by the limit of power.
    """

    launch: float
    block: float
    result: float
    beside: float
    alone: float
    latency: float
    ahead: float
    operations: float
    served: float
    idle: float
    most: float
    least: float
    in_step: float
    crowd: float
    resident: float
    hidden: float
    throttle: float


class Kernel(NamedTuple):
    """One configuration.

    Attributes
    ----------
    tile : TileShape
    stages, warps : int
    group : int
        Rows of blocks of a group; 1 for row by row.
    blocks : int
        That fit an SM.
    """

    tile: TileShape
    stages: int
    warps: int
    group: int
    blocks: int

    @property
    def name(self) -> str:
        """Of its code, whatever its order: ``128x256x64 4 stages 8 warps``."""
        tile = self.tile
        return f"{tile.bm}x{tile.bn}x{tile.bk} {self.stages} stages {self.warps} warps"


class Chip(NamedTuple):
    """What the model knows of a chip: operations in a nanosecond of an SM, the GPC of each block slot, bytes of DRAM in
    a nanosecond, cycles in a nanosecond, bytes of L2."""

    operations: float
    gpc: NDArray[np.int64]
    dram: float
    clock: float
    l2_bytes: int

    @classmethod
    def of(cls, machine: Machine, dtype: str) -> Chip | None:
        """None for a chip whose merging of requests was not measured."""
        gpcs, dram = gpcs_of(machine, machine.sms), sustained_dram(machine)
        peak, clock = machine.peak_flops(dtype), machine.boost_hertz
        if gpcs is None or dram is None or peak is None or clock is None:
            return None
        return cls(peak / machine.sms / 1e9, gpcs.of_slot, dram.per_second / 1e9, clock / 1e9, machine.l2_bytes)


class Cases(NamedTuple):
    """Configurations as columns, and who shares what in a full wave and in the last one.

    Attributes
    ----------
    tall, wide, deep, steps, stages, together : ndarray
        Rows, columns and depth of a tile, steps of a block, stages, and blocks that fit an SM.
    waves, rest : ndarray
        Full waves, and the blocks of the last one.
    own : ndarray, shape (2, 2, cases)
        Of a full wave and the last one: tiles of A, and of B, that each GPC asks for, a block.
    streamed : ndarray
        Bytes of operands that all waves ask for, each tile once a wave.
    must : int
        Compulsory bytes.
    operands : int
        Bytes of A and B.
    value_bytes : int
    """

    tall: Floats
    wide: Floats
    deep: Floats
    steps: Floats
    stages: Floats
    together: Floats
    waves: Floats
    rest: Floats
    own: Floats
    streamed: Floats
    must: Floats
    operands: Floats
    value_bytes: Floats

    @classmethod
    def of(cls, product: Workload, kernels: Sequence[Kernel], chip: Chip) -> Cases:
        """Of one product, with dimensions m, n and k."""
        columns, own = [], []
        shared: dict[tuple[int, ...], tuple[list[list[float]], float]] = {}
        value, slots = product.in_bytes, len(chip.gpc)
        m, n, k = (product.dimensions[side] for side in "mnk")
        operands = value * k * (m + n)
        for kernel in kernels:
            tile = kernel.tile
            grid = -(-m // tile.bm), -(-n // tile.bn)
            waves, rest = divmod(grid[0] * grid[1], slots * kernel.blocks)
            key = (*grid, tile.bm, tile.bn, kernel.group, kernel.blocks)
            if key not in shared:
                shared[key] = _sharing(grid, (tile.bm, tile.bn), kernel.group, slots * kernel.blocks, chip.gpc)
            parts, lines = shared[key]
            own.append(parts)
            columns.append((
                tile.bm, tile.bn, tile.bk, -(-k // tile.bk), kernel.stages, kernel.blocks, waves, rest,
                lines * k * value, product.compulsory_bytes, operands, value,
            ))  # fmt: skip
        tall, wide, deep, steps, stages, together, *others = np.array(columns, np.float64).T
        waves_, rest_, streamed, must, operands_, value_bytes = others
        return cls(
            tall, wide, deep, steps, stages, together, waves_, rest_, np.moveaxis(np.array(own), 0, -1), streamed, must,
            operands_, value_bytes,
        )  # fmt: skip


def _sharing(
    grid: tuple[int, int], sides: tuple[int, int], group: int, wave: int, gpc: NDArray[np.int64]
) -> tuple[list[list[float]], float]:
    """Tiles of A and of B that GPCs ask for, a block, in a full wave and the last; and rows and columns asked for."""
    blocks = grid[0] * grid[1]
    full, rest = divmod(blocks, wave)
    parts, lines = [[0.0, 0.0], [0.0, 0.0]], 0.0
    for which, (first, count, times) in enumerate(((full // 2 * wave, wave, full), (full * wave, rest, 1))):
        if not count or not times:
            continue
        block = np.arange(first, first + count)
        band, inside = np.divmod(block, group * grid[1])
        height = np.minimum(grid[0] - band * group, group)
        places = band * group + inside % height, inside // height
        where = gpc[np.arange(count) % len(gpc)] * (1 << 32)
        parts[which] = [len(np.unique(where + place)) / count for place in places]
        lines += times * sum(side * len(np.unique(place)) for side, place in zip(sides, places, strict=True))
    return parts, lines


def nanoseconds(constants: Constants, cases: Cases, chip: Chip) -> Floats:
    """Modelled time of each case, without the correction of its kernel."""
    own, slots = cases.own, len(chip.gpc)
    flops = 2 * cases.tall * cases.wide * cases.deep
    several = cases.waves + (cases.rest > 0) > 1
    last = np.maximum(1.0, np.ceil(cases.rest / slots))

    def of_wave(together: Floats, asking: Floats, part: Floats, alike: Floats) -> tuple[Floats, Floats]:
        """Nanoseconds of all steps of its blocks, and of what is around them."""
        compute = together * flops / (constants.operations * chip.operations) + (together == 1) * constants.alone
        grown = alike * together**constants.crowd
        most, least = np.minimum(1, constants.most * grown), np.minimum(1, constants.least * grown)
        shares = np.where(part[0] < part[1], (most, least), (least, most))
        asked = (part + (1 - part) * shares) * (cases.tall, cases.wide)
        served = together * cases.value_bytes * cases.deep * asked.sum(axis=0) * (asking / slots) ** constants.idle
        served = served / (constants.served * chip.clock)
        chain = (constants.latency + served + compute) / (cases.stages - 1 + constants.ahead)
        step = (compute**_SMOOTH + served**_SMOOTH + chain**_SMOOTH) ** (1 / _SMOOTH)
        return cases.steps * step, constants.block + constants.result * together * cases.tall * cases.wide

    alike = np.where(several, 1.0, constants.in_step)
    steps, around = of_wave(cases.together, np.full_like(last, slots), own[0], alike)
    waves = cases.waves * (steps + around / np.where(cases.waves > 1, cases.together**constants.beside, 1))
    steps, around = of_wave(last, np.clip(cases.rest, 1, slots), own[1], np.where(cases.waves > 0, 1, alike))
    cores = waves + np.where(cases.rest > 0, steps + around, 0)
    room = constants.resident * chip.l2_bytes
    again = np.maximum(0, cases.streamed - cases.operands)
    missed = np.clip((np.minimum(cases.operands, cases.streamed) - room) / room, 0, 1)
    dram = (cases.must + again * missed) / chip.dram
    total = np.maximum(cores, dram) + constants.hidden * np.minimum(cores, dram)
    return np.asarray(constants.launch + total * (1 + constants.throttle * total / (total + _THROTTLED_NS)))


def modelled_seconds(product: Workload, kernels: Sequence[Kernel], chip: Chip) -> Floats:
    """Modelled seconds of each configuration of a product, of a launch by itself.

    Parameters
    ----------
    product : Workload
        With dimensions m, n and k.
    kernels : sequence of Kernel
        Each fits an SM.
    chip : Chip

    Returns
    -------
    ndarray, shape (len(kernels),)

    Examples
    --------
    >>> from pebble.models.machine import load_machine
    >>> chip = Chip.of(load_machine("h200"), "bf16")
    >>> wide = [Kernel(TileShape(64, 256, 64), 4, 4, group, 1) for group in (1, 16)]
    >>> from pebble.workloads import Gemm
    >>> row, grouped = modelled_seconds(Gemm(1088, 5568, 1728), wide, chip)  # 59.2 and 47.5 us on an H200
    >>> bool(grouped < row)
    True
    """
    constants, corrections = fitted()
    factors = [corrections.get(kernel.name, 1.0) for kernel in kernels]
    return np.asarray(nanoseconds(constants, Cases.of(product, kernels, chip), chip) * np.array(factors) / 1e9)


@cache
def fitted() -> tuple[Constants, dict[str, float]]:
    """The constants, and of single kernels by `Kernel.name` what their time is multiplied by."""
    told = tomllib.loads(_FILE.read_text())
    return Constants(**told["constants"]), dict(told["corrections"])


def chosen(kernels: Sequence[Kernel], seconds: Sequence[float] | Floats, most: int) -> list[int]:
    """Which of the kernels to try, where modelled times are off, and alike for kernels that are alike.

    Each next one is that with which the best of those chosen is least above the best of all, on the mean over drawn
    errors. So nine kernels with one tile are not tried where the model may be wrong about that tile.

    Parameters
    ----------
    kernels : sequence of Kernel
    seconds : sequence of float
        Modelled.
    most : int
        How many to choose, fewer where there are fewer.

    Returns
    -------
    list of int
        Indices; the same ones each time.

    Examples
    --------
    >>> kernels = [Kernel(TileShape(bm, 128, 64), stages, 8, 8, 1) for bm in (128, 256) for stages in (3, 4)]
    >>> chosen(kernels, [1.0, 1.01, 1.02, 1.03], 2)
    [0, 3]
    """
    if not kernels:
        return []
    considered = sorted(range(len(kernels)), key=lambda i: seconds[i])[: max(_CONSIDERED, most)]
    words = np.log2([
        (k.tile.bm, k.tile.bn, k.tile.bk, k.blocks, k.warps, k.group, 2.0**k.stages)
        for k in (kernels[i] for i in considered)
    ])  # fmt: skip
    apart = (np.abs(words[:, None] - words) * _DISTANCES).sum(axis=2)
    likeness = _OFF**2 * np.exp(-apart) + _OFF_ALONE**2 * np.eye(len(considered))
    drawn = np.random.default_rng(0).standard_normal((len(considered), _DRAWS))
    times = np.log([seconds[i] for i in considered])[:, None] + np.linalg.cholesky(likeness) @ drawn
    best, reached = times.min(axis=0), np.full(_DRAWS, np.inf)
    results: list[int] = []
    for _ in range(min(most, len(considered))):
        lost = np.minimum(np.expm1(np.minimum(reached, times) - best), _MOST_LOST).mean(axis=1)
        lost[results] = np.inf
        results.append(int(lost.argmin()))
        reached = np.minimum(reached, times[results[-1]])
    return [considered[i] for i in results]
