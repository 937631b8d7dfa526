"""The modelled time of a kernel by its launch parameters, as tuners name them: tile, stages, warps, order."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, NamedTuple

from pebble.errors import PebbleError
from pebble.families import KernelFamily, kernel_family
from pebble.families.spaces.candidate import Candidate
from pebble.integrations.block_a_tile import Chip, Kernel, chosen, modelled_seconds
from pebble.models.kernel_fit import most_blocks, warp_threads
from pebble.models.machine import Machine, load_machine, machine_names
from pebble.schedules.execution import WAVES
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.timing.power import power_of
from pebble.timing.sustained import Rates, sustained_rates
from pebble.tuning.advisors.coarse import coarse_seconds, quick_look
from pebble.units import ceil_div
from pebble.workloads.workload import Workload

LOG = logging.getLogger("pebble")
_SAME = 8  # digits after the point of seconds that are told apart
DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float8_e4m3fn": "fp8", "float8_e5m2": "fp8"}
# what drivers call a GPU, where the words of its name here do not say it
_DRIVER_NAMES = {"h100-sxm5-80gb": "NVIDIA H100 80GB HBM3", "h100-pcie-80gb": "NVIDIA H100 PCIe",
                 "h200-sxm-141gb": "NVIDIA H200", "b200-sxm": "NVIDIA B200", "rtx4090": "NVIDIA GeForce RTX 4090",
                 "mi300x": "AMD Instinct MI300X"}  # fmt: skip


class Launch(NamedTuple):
    """How a kernel is launched.

    Attributes
    ----------
    tile : TileShape
        Rows and columns of the block's output, and the depth of a step; for attention rows of queries and of keys.
    stages, warps : int
        As Triton's ``num_stages`` and ``num_warps``.
    schedule : str
        The order of its blocks, as `pebble compare` names it: ``grouped-8``, ``fa2``.
    """

    tile: TileShape
    stages: int
    warps: int
    schedule: str


def driver_name(machine: Machine) -> str:
    """The name under which drivers, and so PyTorch and vLLM, know a GPU."""
    return _DRIVER_NAMES.get(machine.sku, machine.name)


def sku_of(name: str) -> str | None:
    """The SKU of a GPU by its driver's name; None for one that `pebble machines` does not list.

    Examples
    --------
    >>> sku_of("NVIDIA H100 80GB HBM3"), sku_of("NVIDIA A100-SXM4-40GB"), sku_of("NVIDIA T4")
    ('h100-sxm5-80gb', 'a100-sxm4-40gb', None)
    """
    known = {driver_name(load_machine(sku)).lower(): sku for sku in machine_names()}
    return known.get(name.lower())


@cache
def present_gpu() -> str | None:
    """The SKU of the GPU that PyTorch sees first; None without one, or for one that is not known."""
    import torch

    if not torch.cuda.is_available():
        return None
    name = torch.cuda.get_device_name()
    sku = sku_of(name)
    if sku is None:
        LOG.debug("%s is no machine of pebble's; kernels are chosen as without it", name)
    return sku


def dtype_of(values: Mapping[str, Any]) -> str | None:
    """The data type of the first tensor among a kernel's arguments, as `pebble` names it; None where there is none."""
    for value in values.values():
        known = DTYPES.get(str(getattr(value, "dtype", "")).removeprefix("torch."))
        if known:
            return known
    return None


@dataclass(frozen=True)
class KernelTimes:
    """Modelled times of the kernels of one workload on one chip.

    Sustained where the chip's are modelled, of a single launch elsewhere; as many blocks run on an SM as fit.

    Parameters
    ----------
    gpu : str
        A SKU.
    workload : Workload
        Of a family with kernels.

    Raises
    ------
    PebbleError
        No such machine, a machine without rates, or a workload without kernels.

    Examples
    --------
    >>> from pebble.workloads import Gemm
    >>> times = KernelTimes("h100-sxm5-80gb", Gemm(4096, 4096, 4096))
    >>> wide, narrow = (Launch(TileShape(128, n, 64), 3, 8, "grouped-8") for n in (256, 64))
    >>> times.seconds(wide) < times.seconds(narrow)
    True
    >>> times.fastest([narrow, wide, wide._replace(tile=TileShape(512, 512, 64))], 5)
    [1, 0]
    """

    gpu: str
    workload: Workload

    def __post_init__(self) -> None:
        assert self.rates is not None  # what is not known is refused here

    @cached_property
    def _fits(self) -> dict[Launch, int]:
        return {}

    @cached_property
    def machine(self) -> Machine:
        """Its numbers."""
        return load_machine(self.gpu)

    @cached_property
    def family(self) -> KernelFamily[Any, Any]:
        """Of the workload."""
        return kernel_family(self.workload)

    @cached_property
    def rates(self) -> Rates:
        """Of the chip."""
        return sustained_rates(self.machine, self.workload.dtype)

    @cached_property
    def chip(self) -> Chip | None:
        """Where the workload is a product and the chip is one on which kernels of a block a tile were measured."""
        return Chip.of(self.machine, self.workload.dtype) if self.family.one_product else None

    def fitting(self, launch: Launch) -> int:
        """Blocks that an SM can hold at once."""
        code = launch._replace(schedule="")
        if code not in self._fits:
            needs = self.family.kernel_needs(self.workload, launch.tile, launch.stages)
            fit = most_blocks(self.machine, replace(needs, threads=launch.warps * warp_threads(self.machine)))
            self._fits[code] = fit.blocks_per_sm if fit.fits else 0
        return self._fits[code]

    def at_once(self, launch: Launch) -> int:
        """Blocks that run on an SM; 0 for what an SM cannot hold."""
        blocks = max(work.blocks for work in self.family.kernel.work(self.workload, launch.tile))
        return min(self.fitting(launch), ceil_div(blocks, self.machine.sms))

    def estimate(self, launch: Launch) -> float:
        """Seconds if it moved the compulsory bytes and nobody waited for them; infinite for what an SM cannot hold."""
        blocks = self.at_once(launch)
        if not blocks:
            return math.inf
        return coarse_seconds(self.workload, launch.tile, launch.stages, self.machine.sms, blocks, self.rates)

    def seconds(self, launch: Launch) -> float:
        """Seconds with the bytes that its order moves, where its family counts them; infinite as for `estimate`.

        Of a product on Hopper by `pebble.integrations.block_a_tile`. Half a ms, 2 to 3 for attention.
        """
        if self.chip is not None and (kernel := self._kernel(launch)) is not None:
            return float(modelled_seconds(self.workload, [kernel], self.chip)[0]) if kernel.blocks else math.inf
        blocks = self.at_once(launch)
        if self.family.space is None or not blocks:
            return self.estimate(launch)
        machine, tile = self.machine, self.family.cut_tile(launch.tile, self.workload)
        policy = machine.default_model.policy
        config = KernelConfig(tile, machine.sms, blocks, machine.l2_bytes, policy, WAVES, launch.stages)
        plan = Candidate(self.family.parse_schedule(launch.schedule), config)
        power = power_of(machine, self.workload.dtype, machine.sms)
        return quick_look(self.family, self.workload, plan, self.rates, power).ranked_seconds

    def _kernel(self, launch: Launch) -> Kernel | None:
        """As `block_a_tile` has it; None in an order that it does not know."""
        word, _, rows = launch.schedule.partition("-")
        group = 1 if launch.schedule == "row" else int(rows) if word == "grouped" and rows.isdigit() else 0
        return Kernel(launch.tile, launch.stages, launch.warps, group, self.fitting(launch)) if group else None

    def fastest(self, launches: Sequence[Launch], most: int) -> list[int]:
        """Which of them to try, the first first; none that an SM cannot hold.

        Of products on Hopper those of which one is likely to be about the fastest (`block_a_tile.chosen`). Of others
        the fastest: each tile, stages and warps once, in its best order, as long as there are such, as how a tile runs
        is known less well than what its order moves. Of equal times those with more bytes on the way come first. What
        is slower than ``most`` others at a glance is not looked at again.
        """
        if self.chip is not None:
            kernels = [self._kernel(launch) for launch in launches]
            if None not in kernels:
                places = [i for i, kernel in enumerate(kernels) if kernel is not None and kernel.blocks]
                held = [kernel for kernel in kernels if kernel is not None and kernel.blocks]
                times = modelled_seconds(self.workload, held, self.chip) if held else ()
                return [places[i] for i in chosen(held, times, most)]
        estimates = [self.estimate(launch) for launch in launches]
        best: dict[Launch, tuple[float, int, int]] = {}
        others: list[tuple[float, int, int]] = []
        for i in sorted(range(len(launches)), key=estimates.__getitem__):
            slowest = sorted(best.values())[most - 1][0] if len(best) >= most else math.inf
            if estimates[i] == math.inf or estimates[i] > slowest:
                break
            launch, kernel = launches[i], launches[i]._replace(schedule="")
            timed = round(self.seconds(launch), _SAME), -launch.stages * launch.tile.bk, i
            first = min(timed, best.get(kernel, timed))
            others += [max(timed, best[kernel])] if kernel in best else []
            best[kernel] = first
        result = sorted(best.values()) + sorted(others)
        return [i for seconds, _, i in result[:most] if seconds < math.inf]


def fastest_launches(gpu: str, workload: Workload, launches: Sequence[Launch], most: int) -> list[int] | None:
    """`KernelTimes.fastest`, or None with a line in the log where the model does not know the kernel."""
    try:
        return KernelTimes(gpu, workload).fastest(launches, most)
    except PebbleError as error:
        LOG.debug("%s is not modelled: %s", workload.label, error)
        return None
