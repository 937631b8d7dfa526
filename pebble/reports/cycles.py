"""``cycles``: the arithmetic of one k-tile on one SM, by each set of constants that the GPU has."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pebble.errors import InputError, UnknownNameError
from pebble.models.kernel_fit import MAX_STAGES, Fit, fits, most_stages, warp_threads
from pebble.models.machine import Machine
from pebble.models.rates import SPECIAL_PER_CLOCK, vector_per_clock
from pebble.models.sm_constants import SETS, SmConstants, a100_constants, constants_of, is_a100
from pebble.models.tile_model import WARPGROUPS, KTile, check_registers, least_threads, tile_needs
from pebble.reports.report import Report
from pebble.reports.target import whole
from pebble.schedules.tile import TileShape
from pebble.workloads.workload import element_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OVERRIDES = {
    "l2_bandwidth": "l2_rate",
    "dram_bandwidth": "dram_rate",
    "l2_latency": "l2_latency",
    "dram_latency": "dram_latency",
    "mma_cycles": "mma_cycles",
    "tensor_cores": "tensor_cores",
}
"""Option of a user's own number -> the constant it replaces."""


@dataclass(frozen=True, repr=False)
class Cycles(Report):
    """What one step of a block costs.

    Attributes
    ----------
    gpu : Machine
    tile : TileShape
    dtype : str
    steps : tuple of KTile
        By each set of constants, the chosen one first.
    stages : int
        Asked for, else the most that fit.
    fit : Fit
        How the block sits on an SM.
    """

    gpu: Machine
    tile: TileShape
    dtype: str
    steps: tuple[KTile, ...]
    stages: int
    fit: Fit

    question = "cycles"

    @property
    def activation_cycles(self) -> float:
        """Of an activation of all sums, one operation of the special-function units each: once a tile."""
        return self.tile.bm * self.tile.bn / SPECIAL_PER_CLOCK

    @property
    def promotion_cycles(self) -> float:
        """In which all sums are added to others in fp32: fp8 that is promoted does so every few steps."""
        return self.tile.bm * self.tile.bn / vector_per_clock(self.gpu)

    @property
    def machine(self) -> Machine | None:
        return self.gpu

    def verdict(self, step: KTile) -> str:
        """Whether compute hides the loads, and with how many stages."""
        c, compute = step.constants, step.compute_cycles
        parts = []
        for name, latency, transfer in (
            ("L2", c.l2_latency.value, step.l2_transfer),
            ("DRAM", c.miss_latency, step.dram_transfer),
        ):
            stages = step.least_stages(latency)
            if transfer > compute:
                share = (
                    f"; hidden if {math.ceil(100 * step.least_hit_share - 1e-9)}% of the bytes hit L2"
                    if name == "DRAM" and step.l2_transfer <= compute
                    else ""
                )
                parts.append(
                    f"loads from {name} are not hidden by any number of stages: {transfer:,.1f} cycles of transfer "
                    f"against {compute:,.1f} of compute{share}"
                )
            else:
                enough = "enough" if stages <= self.stages else "too few"
                parts.append(
                    f"loads from {name} hide with {stages} stages: ceil({latency:,.0f} / {compute:,.1f}) + 1; "
                    f"{self.stages} are {enough}"
                )
        return ". ".join(part[0].upper() + part[1:] for part in parts) + "."

    def summary(self) -> str:
        step = self.steps[0]
        return (
            f"{self.gpu.name}, one k-tile of {self.tile} {self.dtype} ({step.constants.name}): "
            f"{step.compute_cycles:,.1f} cycles of compute, {step.l2_cycles:,.1f} from L2, {step.dram_cycles:,.1f} "
            "from DRAM"
        )

    def rows(self) -> list[dict[str, Any]]:
        """A row per set of constants."""
        return [{"constants": step.constants.name, **step.to_json()} for step in self.steps]

    def document(self) -> dict[str, Any]:
        return {
            "tile": str(self.tile),
            "dtype": self.dtype,
            "threads": self.fit.threads,
            "accumulators_per_thread": self.fit.accumulators_per_thread,
            "registers_per_thread": self.fit.registers_per_thread,
            "stages": self.stages,
            "fit": self.fit.to_json(),
            "activation_cycles": self.activation_cycles,
            "promotion_cycles": self.promotion_cycles,
            "sets": [
                {**row, "verdict": self.verdict(step), "values": step.constants.to_json()}
                for row, step in zip(self.rows(), self.steps, strict=True)
            ],
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Compute beside loads that hit and that miss L2, as bars."""
        from pebble.plots.time import plot_cycles

        return plot_cycles(self.steps, self._title, ax)

    def figure(self) -> Figure:
        """The same as wide as a column of a paper."""
        from pebble.plots.time import cycles_figure

        return cycles_figure(self.steps, self._title)

    @property
    def _title(self) -> str:
        return f"{self.gpu.name}\none k-tile of {self.tile} {self.dtype}"


@dataclass(frozen=True)
class BlockSpec:
    """The block asked for.

    Attributes
    ----------
    tile : str
        BMxBNxBK.
    threads, registers, stages : int, str or None
        None: what `pebble.cycles` takes by itself.
    """

    tile: str
    threads: int | str | None = None
    registers: int | str | None = None
    stages: int | str | None = None


def cycles_of(
    chip: Machine,
    block: BlockSpec,
    *,
    dtype: str = "bf16",
    constants: str | None = None,
    mma: str | None = None,
    overrides: Mapping[str, float | str | None],
) -> Cycles:
    """The arithmetic of one k-tile; arguments and errors as for `pebble.cycles`."""
    tile, registers, stages = block.tile, block.registers, block.stages
    size, shape = element_bytes(dtype), TileShape.parse(tile)
    if len(str(tile).split("x")) != 3:
        raise InputError(f"--tile: got {tile!r}, expected BMxBNxBK with the depth of a step, such as 256x128x16.")
    own = {OVERRIDES[name]: number(name, value) for name, value in _known(overrides).items()}
    sets = []
    for item in _sets(chip, dtype, constants):
        if mma is not None:
            try:
                sides = TileShape.parse(mma)
            except InputError as error:
                raise InputError(str(error).replace("tile:", "--mma:", 1)) from None
            item = _with_mma(item, (sides.bm, sides.bn, sides.bk), "mma_cycles" in own)
        item = item.with_values(**own)
        l2, dram = item.l2_latency.value, item.dram_latency.value
        if not item.adds and l2 > dram and own.keys() & {"l2_latency", "dram_latency"}:
            raise InputError(
                f"--l2-latency: got {l2:g} cycles with {dram:g} of DRAM, expected no more: a latency of DRAM is that "
                "seen from an SM, through L2; give --dram-latency too."
            )
        sets.append(item)
    requested = _threads(chip, shape, block.threads)
    needs = tile_needs(shape.bm, shape.bn, shape.bk, 1, size, threads=requested)
    fit = fits(chip, needs)
    if registers is not None:
        check_registers(chip, shape.bm, shape.bn, fit.threads, whole("--registers", registers, 1, 255))
    held = most_stages(chip, needs) if stages is None else whole("--stages", stages, 1, MAX_STAGES)
    fit = fits(chip, tile_needs(shape.bm, shape.bn, shape.bk, held, size, threads=requested))
    if not fit.fits:
        raise InputError(
            f"--tile: got {shape} with {held} stages on {fit.threads} threads, expected what {chip.name} can run: it "
            f"needs {fit.over[0]}; use a smaller tile, fewer stages or more threads."
        )
    return Cycles(chip, shape, dtype, tuple(KTile(shape.bm, shape.bn, shape.bk, size, c) for c in sets), held, fit)


def _threads(chip: Machine, tile: TileShape, requested: int | str | None) -> int:
    """Of the block: asked for, else the fewest that have the accumulators and keep every tensor core busy."""
    least = least_threads(chip)
    if requested is None:
        return max(least, fits(chip, tile_needs(tile.bm, tile.bn, tile.bk, 1, 1)).threads)
    threads, warp = whole("--threads", requested, 32, 1024), warp_threads(chip)
    if threads % warp:
        raise InputError(f"--threads: got {threads}, expected a multiple of {warp}, the threads of a warp.")
    if chip.capability == WARPGROUPS and threads < least:
        raise InputError(
            f"--threads: got {threads}, expected at least {least}: on {chip.name} a warpgroup of four warps issues the "
            "tensor-core instructions whose cycles are counted."
        )
    return threads


def _sets(machine: Machine, dtype: str, name: str | None) -> list[SmConstants]:
    """The chosen set first; on an A100 the other beside."""
    if not is_a100(machine):
        if name is not None:
            raise InputError(
                f"--constants: got {name} with {machine.name}, expected an A100, which the sets are about."
            )
        return [constants_of(machine, dtype)]
    set_name = SETS[1] if name is None else name
    if set_name not in SETS:
        raise UnknownNameError("set of constants", set_name, SETS, "pebble cycles --help")
    return [a100_constants(machine, dtype, each) for each in sorted(SETS, key=lambda each: each != set_name)]


def _known(overrides: Mapping[str, float | str | None]) -> dict[str, float | str]:
    for name in overrides:
        if name not in OVERRIDES:
            raise UnknownNameError("option", name, OVERRIDES, "help(pebble.cycles)")
    return {name: value for name, value in overrides.items() if value is not None}


def number(name: str, value: float | str) -> float:
    """A number of a user's, or one sentence; ``name`` as in `OVERRIDES`."""
    try:
        result = float(value)
    except (TypeError, ValueError):
        result = 0.0
    if not 0 < result < math.inf:
        option = f"--{name.replace('_', '-')}"
        raise InputError(f"{option}: got {str(value)[:40]!r}, expected a number above zero such as 10.21.")
    return result


def _with_mma(constants: SmConstants, mma: tuple[int, int, int], own_cycles: bool) -> SmConstants:
    """Another instruction at the same rate, unless its cycles are given too."""
    ratio = mma[0] * mma[1] * mma[2] / (constants.mma[0] * constants.mma[1] * constants.mma[2])
    changed = replace(constants, mma=mma)
    return changed if own_cycles else changed.with_values(mma_cycles=constants.mma_cycles.value * ratio)
