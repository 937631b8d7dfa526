"""What a tiled kernel answers for itself: its tables, what its blocks touch, its work at a glance, its exported file.

Whoever walks, checks, simulates or exports a table asks the kernel through `TableKernel` and knows no workload family.
A new kernel is a subclass; defining it makes it the kernel of its workloads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from pebble.schedules.tables.table import Blocks, Column, Launch, TileTable
from pebble.schedules.tile import Tiles, TileShape, product_bytes
from pebble.traces import Layout, LockstepGemm
from pebble.traces.program import CutRest, Phase, Walk
from pebble.units import ceil_div
from pebble.workloads.workload import Workload


class Product(NamedTuple):
    """One result of a kernel: what it is called, its grid of tiles, and the k steps of the tiles of each row."""

    result: str
    grid: tuple[int, int]
    steps: Column

    @classmethod
    def even(cls, result: str, grid: tuple[int, int], steps: int) -> Product:
        """With as many steps in every row."""
        return cls(result, grid, np.full(grid[0], steps, np.int64))


@dataclass(frozen=True)
class Work:
    """Blocks that run together, in counts alone.

    Attributes
    ----------
    blocks : int
    steps : float
        Of a block, on the mean.
    step_flops, step_exps : int
        Operations and exponentials of a step.
    bytes : int
        From L2 to the SMs, all blocks.
    step_shared : int
        Bytes that a step moves through shared memory.
    overlapped : bool
        As of `pebble.traces.program.Phase`.
    activations : int
        Values of a block that go through an activation after its last step.
    cut_rest : str
        As of `pebble.traces.program.Phase`.
    """

    blocks: int
    steps: float
    step_flops: int
    step_exps: int
    bytes: int
    step_shared: int = 0
    overlapped: bool = False
    activations: int = 0
    cut_rest: CutRest = ""

    @classmethod
    def product(cls, m: int, n: int, k: int, tile: TileShape, width: int, products: int = 1) -> Work:
        """Of a matrix product, or of ``products`` of one size that share A; values of ``width`` bytes."""
        rows, cols, steps = ceil_div(m, tile.bm), ceil_div(n, tile.bn), ceil_div(k, tile.bk)
        loads = (cols * m * k + products * rows * n * k) * width
        flops = 2 * products * tile.bm * tile.bn * tile.bk
        cut: CutRest = "k" if products == 1 else "columns"
        return cls(rows * cols, steps, flops, 0, loads, product_bytes(tile, width, products), cut_rest=cut)


KERNELS: dict[str, type[TableKernel]] = {}
"""The kernels by the word of their family; `pebble.schedules.tables.registry` has all of them."""


class InClusters(NamedTuple):
    """SMs that read an intermediate from each other's shared memories.

    Attributes
    ----------
    sms : int
        Of a cluster.
    kept_bytes : int
        What each keeps of the intermediate, beside its stages.
    clusters, busy : int
        On the chip, and of these such as a band has tile rows for.
    """

    sms: int
    kept_bytes: int
    clusters: int
    busy: int


class TableKernel(ABC):
    """The layout of a workload under a tile, and what its blocks do.

    Attributes
    ----------
    shape : type
        The workloads that it computes.
    layout : Layout
        Its operands as tiles in memory.
    direction : int
        In which direction of k blocks run of a table that does not say, 1 or -1.
    template : str
        Of the exported file: the module of `pebble.schedules.export.templates` with its operands and launches.
    """

    shape: ClassVar[type[Workload]]
    layout: Layout
    direction: ClassVar[int] = 1
    template: ClassVar[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "shape" in vars(cls):
            KERNELS[cls.shape.FAMILY] = cls

    @classmethod
    @abstractmethod
    def of(cls, workload: Any, tile: TileShape, residual: bool = False) -> Self:
        """The kernel of a workload under a tile; with ``residual`` an input is read again and added to the output.

        Raises
        ------
        InputError
            More tiles than an order may have, or a tile that the kernel cannot take.
        """

    @property
    @abstractmethod
    def products(self) -> tuple[Product, ...]:
        """Its results, in the order in which they are made."""

    @abstractmethod
    def blocks_of(self, product: int, tiles: Tiles, walk: Walk, adds: NDArray[np.bool_]) -> Phase:
        """Blocks of a table: each computes the k steps of ``walk`` of a tile; where ``adds``, it adds to the result."""

    @abstractmethod
    def named_blocks(self, schedule: Any, launch: Launch) -> list[Blocks] | None:
        """The blocks of a schedule that has a name, in issue order; None where it makes no table of tiles."""

    def too_early(self, table: TileTable) -> NDArray[np.bool_] | None:
        """The blocks that run before what they read is written; None where no block reads what others write."""
        return None

    def closed_form(self, tiles: Tiles, wave_blocks: int, sawtooth: bool = False) -> LockstepGemm | None:
        """What a closed form needs to know of the lock-step trace; None where there is none."""
        return None

    @classmethod
    @abstractmethod
    def work(cls, workload: Any, tile: TileShape) -> list[Work]:
        """Its launches under a tile, one after the other; the same as its traces, without making one."""

    @classmethod
    @abstractmethod
    def extents(cls, workload: Any) -> tuple[int, int, int]:
        """The longest side that a tile can cover in m, n and k."""

    @classmethod
    def exported_shape(cls, workload: Any) -> Mapping[str, object]:
        """What its exported file must know of the workload."""
        dimensions: dict[str, int] = workload.dimensions
        return dimensions

    @classmethod
    def exported_template(cls, workload: Any) -> str:
        """The module of templates with the kernel that its exported file runs."""
        return cls.template

    @classmethod
    def operator_key(cls, workload: Any) -> tuple[object, ...]:
        """The operator of an exported module that computes it, and sizes; empty where there is none."""
        return ()

    @classmethod
    def exported_tile(cls, workload: Any) -> TileShape | None:
        """The tile for which its exported file has the fastest kernel, where that is not any."""
        return None

    @classmethod
    def overlaps(cls, workload: Any, bm: int, bn: int) -> bool:
        """Whether exponentials run beside products: so in an exported file under its own tile, where the GPU can."""
        return False

    @classmethod
    def exported_stages(cls, tile: TileShape) -> int:
        """The most stages that its exported file has use for: with a fourth, large tiles are slower when sustained."""
        return 3 if tile.bm * tile.bn >= 128 * 256 else 4

    bare_stages: ClassVar[int] = 4  # the most for no GPU in particular: such a file is to run on an A100, too

    @classmethod
    def up_sums(cls, workload: Any) -> int:
        """Sums that a block of its first product keeps, beside one in all later products."""
        return 1

    @classmethod
    def result_columns(cls, workload: Any, bn: int) -> int:
        """Columns of the result that a block of its exported file holds, under tiles of ``bn`` columns."""
        return bn
