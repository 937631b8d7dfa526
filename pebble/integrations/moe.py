"""Configurations of vLLM's and SGLang's fused experts: a file for a model and a GPU, in their schema.

Both look up, by the number of tokens of a batch, how the two grouped products of a mixture of experts are launched:
``E=256,N=2048,device_name=NVIDIA_H200.json``. Here each entry is the launch of least modelled time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from pebble.errors import InputError
from pebble.integrations.kernel_model import KernelTimes, Launch, driver_name
from pebble.models.machine import load_machine
from pebble.schedules.tile import TileShape
from pebble.units import ceil_div
from pebble.workloads import Gemm, GroupedGemm
from pebble.workloads.named import Mixture

BATCHES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 1536, 2048, 3072, 4096)
"""Numbers of tokens that both look up; they take the nearest."""
ROWS, COLUMNS, DEPTHS = (16, 32, 64, 128, 256), (32, 64, 128, 256), (64, 128, 256)
STAGES, WARPS, GROUPS = (2, 3, 4, 5), (4, 8), (1, 16, 32, 64)
_SELECTORS = {"bf16": "", "fp16": "", "fp8": ",dtype=fp8_w8a8"}
_ALIKE = 1.02  # times the least: no model tells such times apart
_SEED = 0  # of the experts that tokens are routed to


class Entry(NamedTuple):
    """How a batch is launched, and what that takes.

    Attributes
    ----------
    launch : Launch
    group : int
        Rows of blocks that are walked together, ``GROUP_SIZE_M``.
    seconds : float
        Modelled, of both products.
    """

    launch: Launch
    group: int
    seconds: float

    def to_dict(self) -> dict[str, int]:
        """In their schema."""
        tile = self.launch.tile
        return {
            "BLOCK_SIZE_M": tile.bm,
            "BLOCK_SIZE_N": tile.bn,
            "BLOCK_SIZE_K": tile.bk,
            "GROUP_SIZE_M": self.group,
            "num_warps": self.launch.warps,
            "num_stages": self.launch.stages,
        }


@dataclass(frozen=True)
class MoeConfigs:
    """The file of one model on one GPU.

    Attributes
    ----------
    name : str
        Of the file, as both look for it.
    entries : dict
        From tokens to `Entry`.
    """

    name: str
    entries: dict[int, Entry]

    @property
    def text(self) -> str:
        """Its content."""
        return json.dumps({str(tokens): entry.to_dict() for tokens, entry in self.entries.items()}, indent=4) + "\n"


def moe_configs(mixture: Mixture, gpu: str, dtype: str = "bf16", tensor_parallel: int = 1) -> MoeConfigs:
    """The launch of least modelled time for every batch size that is looked up.

    Tokens go to experts at random, all experts alike, so that some get more of them than others. The blocks of an
    expert are its own: its last one may hold few rows.

    Parameters
    ----------
    mixture : Mixture
    gpu : str
        As ``pebble machines`` lists it.
    dtype : str
        bf16, fp16 or fp8 (weights and activations).
    tensor_parallel : int
        GPUs among which each expert is divided.

    Returns
    -------
    MoeConfigs
        Cost: some seconds.

    Raises
    ------
    InputError
        A data type without such a file, experts that do not divide, or a chip without rates.
    UnknownNameError
        No such GPU.
    """
    if dtype not in _SELECTORS:
        raise InputError(f"--dtype: got {dtype}, expected one with such a file: {', '.join(_SELECTORS)}.")
    if tensor_parallel < 1 or mixture.intermediate % tensor_parallel:
        raise InputError(
            f"--tensor-parallel: got {tensor_parallel}, expected a divisor of the {mixture.intermediate} columns "
            "inside an expert."
        )
    machine, inside = load_machine(gpu), mixture.intermediate // tensor_parallel
    name = (
        f"E={mixture.experts},N={inside},device_name={driver_name(machine).replace(' ', '_')}{_SELECTORS[dtype]}.json"
    )
    return MoeConfigs(name, {tokens: _entry(mixture, inside, machine.sku, dtype, tokens) for tokens in BATCHES})


def routed(mixture: Mixture, tokens: int) -> tuple[int, ...]:
    """Rows of each expert that has any, for tokens that are routed at random."""
    experts = np.random.default_rng(_SEED).random((tokens, mixture.experts)).argsort(axis=1)[:, : mixture.top_k]
    rows = np.bincount(experts.ravel(), minlength=mixture.experts)
    return tuple(int(count) for count in rows if count)


def _entry(mixture: Mixture, inside: int, sku: str, dtype: str, tokens: int) -> Entry:
    rows = routed(mixture, tokens)
    widths = (2 * inside, mixture.hidden), (mixture.hidden, inside)
    times = [KernelTimes(sku, GroupedGemm(rows, n, k, dtype=dtype)) for n, k in widths]
    middle = KernelTimes(sku, Gemm(sorted(rows)[len(rows) // 2], *widths[0], dtype=dtype))
    launches = [
        Launch(TileShape(bm, bn, bk), stages, warps, "row")
        for bm, bn, bk, stages, warps in product(ROWS, COLUMNS, DEPTHS, STAGES, WARPS)
        if bm < 2 * max(rows) or bm == ROWS[0]
    ]
    taken = [sum(time.estimate(launch) for time in times) for launch in launches]
    alike = [i for i, seconds in enumerate(taken) if seconds <= _ALIKE * min(taken)]
    best = max(alike, key=lambda i: (_on_the_way(launches[i]), -launches[i].warps, -taken[i]))
    return Entry(launches[best], _group(middle, launches[best]), taken[best])


def _on_the_way(launch: Launch) -> int:
    """Values that a block has asked for at once: of times that the model cannot tell apart, more of them are safer."""
    tile = launch.tile
    return launch.stages * tile.bk * (tile.bm + tile.bn)


def _group(middle: KernelTimes, launch: Launch) -> int:
    """Rows of blocks that are walked together: those that suit an expert of middling size."""
    blocks = ceil_div(middle.workload.dimensions["m"], launch.tile.bm)
    groups = [group for group in GROUPS if group == 1 or (blocks > 1 and group <= 2 * blocks)]
    return min(groups, key=lambda g: middle.seconds(launch._replace(schedule="row" if g == 1 else f"grouped-{g}")))
