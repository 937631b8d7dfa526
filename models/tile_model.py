"""A tile of a matrix product on one SM: what it keeps there, whether loads hide behind compute, what binds.

Cycles of one k-tile, as they are counted on paper: tensor-core instructions times their cycles over the tensor cores of
an SM; latency plus bytes over the SM's share of bandwidth for a load that hits L2 and for one that comes from DRAM.
While one stage is multiplied the others are under way, so a latency hides behind ceil(latency / compute) + 1 stages; a
transfer that takes longer than compute hides behind none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pebble.errors import InputError
from pebble.models.kernel_fit import OTHER_REGISTERS, Fit, KernelNeeds, fits, most_blocks, warp_threads
from pebble.models.machine import Machine
from pebble.models.sm_constants import TENSOR_CORES, SmConstants
from pebble.units import ceil_div

WARPGROUPS = 9.0  # compute capability of chips whose tensor-core instructions are issued by four warps together
BARRIER_BYTES = 16  # of a stage: full and empty, 8 bytes each
SHARED_BYTES_PER_CLOCK = 128  # that an SM writes to or reads from shared memory


def least_threads(machine: Machine) -> int:
    """Threads of a block that keeps every tensor core of its SM busy: a warp for each.

    On compute capability 9.0 no fewer will do: four warps, a warpgroup, issue an instruction (wgmma) together.

    Examples
    --------
    >>> from pebble.models.machine import load_machine
    >>> least_threads(load_machine("h20"))
    128
    """
    return TENSOR_CORES * warp_threads(machine)


@dataclass(frozen=True)
class KTile:
    """One step of a block: BM x BK of A and BK x BN of B are loaded and multiplied.

    Attributes
    ----------
    bm, bn, bk, value_bytes : int
    constants : SmConstants
    keeps_rows : bool
        Whether the BM rows stay in shared memory, so that a step loads BN x BK alone.

    Examples
    --------
    >>> from pebble.models.machine import load_machine
    >>> from pebble.models.sm_constants import a100_constants
    >>> tile = KTile(256, 128, 16, 2, a100_constants(load_machine("a100-sxm4-40gb"), "fp16", "published"))
    >>> tile.instructions, tile.core_cycles, tile.compute_cycles
    (128, 2048.0, 512.0)
    >>> round(tile.l2_cycles, 1), round(tile.dram_more_cycles, 1), round(tile.dram_cycles, 1)
    (459.2, 1327.8, 1787.0)
    """

    bm: int
    bn: int
    bk: int
    value_bytes: int
    constants: SmConstants
    keeps_rows: bool = False

    @property
    def bytes(self) -> int:
        """Loaded in a step."""
        return (self.bn + (0 if self.keeps_rows else self.bm)) * self.bk * self.value_bytes

    @property
    def flops(self) -> int:
        """Operations of a step."""
        return 2 * self.bm * self.bn * self.bk

    @property
    def instructions(self) -> int:
        """Tensor-core instructions of a step."""
        sides = zip((self.bm, self.bn, self.bk), self.constants.mma, strict=True)
        return math.prod(ceil_div(side, of) for side, of in sides)

    @property
    def core_cycles(self) -> float:
        """Cycles on one tensor core."""
        return self.instructions * self.constants.mma_cycles.value

    @property
    def compute_cycles(self) -> float:
        """Cycles on the SM."""
        return self.core_cycles / self.constants.tensor_cores.value

    @property
    def l2_transfer(self) -> float:
        """Cycles that the bytes take from L2 at the SM's share."""
        return self.bytes / self.constants.l2_rate.value

    @property
    def dram_transfer(self) -> float:
        """Cycles that the bytes take from DRAM at the SM's share."""
        return self.bytes / self.constants.dram_rate.value

    @property
    def l2_cycles(self) -> float:
        """Latency and transfer of a load that hits L2."""
        return self.constants.l2_latency.value + self.l2_transfer

    @property
    def dram_more_cycles(self) -> float:
        """What a miss adds: latency and transfer, where the set adds them; else what it takes longer."""
        if self.constants.adds:
            return self.constants.dram_latency.value + self.dram_transfer
        return self.dram_cycles - self.l2_cycles

    @property
    def dram_cycles(self) -> float:
        """Latency and transfer of a load that misses L2; both legs where the set adds them."""
        transfer = self.dram_transfer + (self.l2_transfer if self.constants.adds else 0)
        return self.constants.miss_latency + transfer

    def least_stages(self, latency: float) -> int:
        """ceil(latency / compute) + 1: one is multiplied while the others are under way."""
        return math.ceil(latency / self.compute_cycles) + 1

    @property
    def least_hit_share(self) -> float:
        """Share of the bytes that must hit L2 for compute to hide the rest at the SM's share of DRAM; from 0 to 1."""
        return max(0.0, 1 - self.compute_cycles / self.dram_transfer)

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        c = self.constants
        return {
            "bytes": self.bytes,
            "mma_instructions": self.instructions,
            "one_tensor_core_cycles": self.core_cycles,
            "compute_cycles": self.compute_cycles,
            "l2_hit_cycles": self.l2_cycles,
            "l2_miss_adds_cycles": self.dram_more_cycles,
            "dram_cycles": self.dram_cycles,
            "l2_transfer_hides": self.l2_transfer <= self.compute_cycles,
            "dram_transfer_hides": self.dram_transfer <= self.compute_cycles,
            "least_stages_for_l2": self.least_stages(c.l2_latency.value),
            "least_stages_for_dram": self.least_stages(c.miss_latency),
            "least_l2_hit_share": self.least_hit_share,
        }


@dataclass(frozen=True)
class Boundary:
    """One side of the SM's loads: L2, or DRAM.

    Attributes
    ----------
    name : str
    latency_cycles, bytes_per_clock : float
        Of the SM's share.
    held_bytes : int
        Under way while one stage is multiplied, all blocks of the SM.
    intensity, balance : float
        Operations per byte that pass it, and that the SM does while one passes.
    least_stages : int
        That hide the latency.
    """

    name: str
    latency_cycles: float
    bytes_per_clock: float
    held_bytes: int
    intensity: float
    balance: float
    least_stages: int

    @property
    def needed_bytes(self) -> float:
        """Little's law: latency times bandwidth must be under way to use all of it."""
        return self.latency_cycles * self.bytes_per_clock

    @property
    def side(self) -> str:
        """Which roof the tile is under."""
        return "compute" if self.intensity >= self.balance else "memory"

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "boundary": self.name,
            "latency_cycles": self.latency_cycles,
            "bytes_per_clock_per_sm": self.bytes_per_clock,
            "bytes_in_flight": self.held_bytes,
            "bytes_in_flight_needed": self.needed_bytes,
            "flops_per_byte": self.intensity,
            "balance_flops_per_byte": self.balance,
            "bound_by": self.side,
            "least_stages": self.least_stages,
        }


@dataclass(frozen=True)
class TileModel:
    """A tile with its stages and warps on a machine.

    Attributes
    ----------
    step : KTile
        Cut short where the tile is larger than the problem.
    stages, warps : int
    scale_bytes, barrier_bytes, output_bytes : int
        Shared memory of a block beside its tiles: scales and barriers of all stages, and the output tile.
    fit : Fit
        With as many blocks at once as an SM takes, or as were asked for.
    full : str
        What allows no further block on the SM.
    blocks : tuple of int
        Of each product of the problem, one after the other.
    slots : int
        Blocks that run at once on the chip.
    boundaries : tuple of Boundary
        L2 to SM, and DRAM.
    """

    step: KTile
    stages: int
    warps: int
    scale_bytes: int
    barrier_bytes: int
    output_bytes: int
    fit: Fit
    full: str
    blocks: tuple[int, ...]
    slots: int
    boundaries: tuple[Boundary, ...]

    @property
    def stage_bytes(self) -> int:
        """Shared memory of one stage; of a tile that is larger than the problem more than a step loads."""
        return self.fit.needs.stage * self.step.value_bytes

    @property
    def waves(self) -> int:
        """Rounds in which the blocks run; a product begins with a wave of its own."""
        return sum(ceil_div(blocks, self.slots) for blocks in self.blocks)

    @property
    def last_wave_use(self) -> float:
        """Share of the slots that the last wave fills."""
        return (self.blocks[-1] % self.slots or self.slots) / self.slots

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        s = self.step
        return {
            "tile": f"{s.bm}x{s.bn}x{s.bk}",
            "stages": self.stages,
            "warps": self.warps,
            "fits": self.fit.fits,
            **self.fit.to_json(),
            "limits": [str(over) for over in self.fit.over],
            "shared_bytes": {
                "stages": self.stages * self.stage_bytes,
                "kept": self.fit.needs.resident * s.value_bytes,
                "scales": self.scale_bytes,
                "barriers": self.barrier_bytes,
                "output_tile": self.output_bytes,
            },
            "accumulators_per_thread": self.fit.accumulators_per_thread,
            "blocks_per_sm": self.fit.blocks_per_sm,
            "no_further_block": self.full,
            "tiles": sum(self.blocks),
            "waves": self.waves,
            "last_wave_use": self.last_wave_use,
            "compute_cycles_per_k_tile": s.compute_cycles,
            "boundaries": [each.to_json() for each in self.boundaries],
        }


def tile_needs(
    bm: int, bn: int, bk: int, stages: int, value_bytes: int, *,
    out_bytes: int = 0, scale_bytes: int = 0, threads: int = 0,
) -> KernelNeeds:  # fmt: skip
    """What a block of a GEMM keeps: accumulators, stages with scales and barriers, and the output tile.

    Parameters
    ----------
    bm, bn, bk, stages, value_bytes : int
    out_bytes : int
        Of an output value; 0: results leave from registers, through no shared memory.
    scale_bytes : int
        Of the scales of a stage.
    threads : int
        Of the block; 0: the fewest that can have the accumulators.
    """
    more = scale_bytes + BARRIER_BYTES
    return KernelNeeds(bm * bn, 0, bk * (bm + bn), stages, value_bytes, more, bm * bn * out_bytes, threads)


def check_registers(machine: Machine, bm: int, bn: int, threads: int, registers: int) -> None:
    """Refuse a budget of registers that the accumulators break; where they stand in tensor memory, none is too small.

    Raises
    ------
    InputError
        With the sum.
    """
    each = ceil_div(bm * bn, threads)
    if machine.store_bytes("tensor_memory_per_sm"):
        return
    if registers < each + OTHER_REGISTERS:
        raise InputError(
            f"--registers: got {registers}, expected at least {each + OTHER_REGISTERS}: a {bm}x{bn} tile on {threads} "
            f"threads needs {bm} * {bn} / {threads} = {each} fp32 accumulators a thread, and about {OTHER_REGISTERS} "
            "registers beside them; use more threads or a smaller tile."
        )


def tile_model(
    machine: Machine,
    step: KTile,
    needs: KernelNeeds,
    *,
    blocks: Sequence[int],
    flops: int,
    dram_bytes: int,
    scale_bytes: int = 0,
    barrier_bytes: int = 0,
    blocks_per_sm: int | None = None,
    sms: int | None = None,
) -> TileModel:
    """The model of one tile.

    Parameters
    ----------
    machine : Machine
    step : KTile
        One step of a block.
    needs : KernelNeeds
        Of a block.
    blocks : sequence of int
        Of each product of the problem, one after the other.
    flops, dram_bytes : int
        Operations and DRAM bytes of the problem; compulsory bytes where nothing was simulated.
    scale_bytes, barrier_bytes : int
        Of the shared memory that the block needs, all stages together.
    blocks_per_sm : int, optional
        By default as many as fit.
    sms : int, optional
        By default those of the machine.

    Returns
    -------
    TileModel
        Also of a tile that does not fit: ``fit.over`` says which limits it breaks. Cost: none to speak of.
    """
    fit = most_blocks(machine, needs) if blocks_per_sm is None else fits(machine, needs, blocks_per_sm)
    after = fits(machine, needs, fit.blocks_per_sm + 1)
    c, tiles_bytes = step.constants, (needs.resident + needs.stages * needs.stage) * needs.value_bytes
    in_flight = (needs.stages - 1) * step.bytes * fit.blocks_per_sm
    balance = c.flops_per_clock

    def boundary(name: str, latency: float, rate: float, intensity: float) -> Boundary:
        return Boundary(name, latency, rate, in_flight, intensity, balance / rate, step.least_stages(latency))

    return TileModel(
        step,
        needs.stages,
        ceil_div(fit.threads, warp_threads(machine)),
        scale_bytes,
        barrier_bytes,
        needs.shared_bytes - tiles_bytes - scale_bytes - barrier_bytes,
        fit,
        after.over[0].limit if after.over else "",
        tuple(blocks),
        (sms or machine.sms) * fit.blocks_per_sm,
        (
            boundary("L2 to SM", c.l2_latency.value, c.l2_rate.value, step.flops / step.bytes),
            boundary("DRAM", c.miss_latency, c.dram_rate.value, flops / dram_bytes),
        ),
    )
