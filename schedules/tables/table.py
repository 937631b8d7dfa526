"""A schedule as a table, one row a block, of a GEMM, a feed-forward network or attention; and what the table is for.

Columns:

- ``wave``, ``slot``: when and where. A wave is at most P blocks that run together; slots may stay empty, so that a wave
  can end early, at the edge of a band.
- ``row``, ``col``: the tile of the result; for attention the Q tile and the head, batch by batch; for several products
  the tile rows of all of them are numbered one product after the other.
- ``k_start``, ``k_direction``: the k step that the block begins with, and 1 or -1. It goes round at the end of its k.
- ``phase``, ``product``, ``first``, ``steps``, ``adds``: a phase begins when the one before is complete; product 1 is
  the second of a feed-forward network, whose k is the hidden layer; the block takes ``steps`` steps of k from ``first``
  on and, if ``adds``, adds them to what an earlier phase left in the tile. A plain GEMM and attention have one phase,
  product 0 and all of k; their files leave these columns out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.schedules.orders import OrderParams, params_of
from pebble.schedules.tile import TileShape
from pebble.units import ceil_div
from pebble.workloads.workload import Workload

TILE_COLUMNS = ("wave", "slot", "row", "col", "k_start", "k_direction")
PIECE_COLUMNS = ("phase", "product", "first", "steps", "adds")
COLUMNS = TILE_COLUMNS + PIECE_COLUMNS
EXECUTIONS = ("waves", "free", "staggered")

Entries = NDArray[np.int32]  # shape (blocks, len(COLUMNS)), by wave and slot
Column = NDArray[np.int64]


@dataclass(frozen=True)
class Launch:
    """How the blocks of a table are meant to run, and in which cache what it moves was predicted.

    Attributes
    ----------
    tile : TileShape
        Block tile, cut to the problem; for attention rows of a Q tile and of a KV tile, and 1.
    sms, blocks_per_sm, stages : int
        Their first two make P, the blocks of a wave; stages are the tiles of each operand that a block holds.
    execution : str
        ``waves`` (kept together by a barrier), ``free``, or ``staggered`` (slot s begins s/P of a tile late).
    machine : str
        SKU of the GPU, empty for a bare cache.
    policy : str
        Cache model.
    cache_bytes : int
        Its capacity.
    read_bytes, write_bytes : int, optional
        Predicted DRAM traffic.

    Raises
    ------
    InputError
        An execution that is none of these.
    """

    tile: TileShape
    sms: int
    blocks_per_sm: int = 1
    stages: int = 1
    execution: str = "waves"
    machine: str = ""
    policy: str = "lru"
    cache_bytes: int = 0
    read_bytes: int | None = None
    write_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.execution not in EXECUTIONS:
            raise InputError(f"execution: got {self.execution!r}, expected one of {', '.join(EXECUTIONS)}.")

    @property
    def wave_blocks(self) -> int:
        """P: blocks that run at once on the chip."""
        return self.sms * self.blocks_per_sm

    @property
    def order_params(self) -> OrderParams:
        """What tile orders need to know of the kernel."""
        return params_of(self.sms, self.tile)


@dataclass(frozen=True, eq=False)
class TileTable:
    """A schedule as a table.

    Attributes
    ----------
    name : str
        What it is called.
    workload : Workload
        One that has a kernel (`pebble.schedules.tables.registry`).
    launch : Launch
        How it is meant to run, and what it moves then.
    entries : ndarray of int32, shape (blocks, 11)
        ``COLUMNS``, in the order of waves and slots; `deal` makes them.

    Raises
    ------
    InputError
        A slot twice or beyond P, waves or phases out of order, a direction other than 1 and -1. That every tile is
        there once, `pebble.schedules.tables.registry.check_table` says.
    """

    name: str
    workload: Workload
    launch: Launch
    entries: Entries = field(repr=False)

    def __post_init__(self) -> None:
        entries = np.ascontiguousarray(self.entries, np.int32)
        if entries.ndim != 2 or entries.shape[1] != len(COLUMNS) or not len(entries):
            raise InputError(f"{self.name}: got a table of shape {entries.shape}, expected (blocks, {len(COLUMNS)}).")
        entries.setflags(write=False)
        object.__setattr__(self, "entries", entries)
        column = dict(zip(COLUMNS, entries.T, strict=True))
        slot, slots = column["slot"], self.launch.wave_blocks
        new, later, next_phase = (np.diff(column[name]) for name in ("wave", "slot", "phase"))
        if entries[0, 0] != 0 or np.any((new != 0) & (new != 1)):
            raise InputError(f"{self.name}: expected waves 0, 1, 2 ... in order.")
        if slot.min() < 0 or slot.max() >= slots or np.any((new == 0) & (later <= 0)):
            raise InputError(f"{self.name}: expected slots from 0 to {slots - 1}, rising and each once in a wave.")
        if np.any(np.abs(column["k_direction"]) != 1):
            raise InputError(f"{self.name}: expected k directions of 1 and -1.")
        if np.any(next_phase < 0) or np.any((next_phase > 0) & (new == 0)):
            raise InputError(f"{self.name}: expected phases in order, each beginning with a wave.")

    def column(self, name: str) -> Column:
        """One of ``COLUMNS``."""
        return self.entries[:, COLUMNS.index(name)].astype(np.int64)

    @property
    def blocks(self) -> int:
        """Blocks of all waves."""
        return len(self.entries)

    @property
    def waves(self) -> int:
        """Waves."""
        return int(self.entries[-1, 0]) + 1

    @property
    def plain(self) -> bool:
        """Whether every block computes one tile over all of its k, in one phase."""
        return bool(self.entries[-1, COLUMNS.index("phase")] == 0 and not np.any(self.column("product")))

    def wave_starts(self) -> Column:
        """Where each wave begins."""
        return np.flatnonzero(np.diff(self.column("wave"), prepend=-1))

    def refuse(self, wrong: NDArray[np.bool_], what: str, value: Column) -> None:
        """One sentence on the first block where something is wrong, with the value that it has there.

        Raises
        ------
        InputError
            There is such a block.
        """
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            wave, slot, row, col = self.entries[at, :4].tolist()
            raise InputError(
                f"{self.name}: block {at} (wave {wave}, slot {slot}, tile ({row}, {col})) {what} {int(value[at])}."
            )


class Blocks(NamedTuple):
    """Blocks in issue order, to be dealt into waves; each of several begins a new wave.

    Attributes
    ----------
    tiles : ndarray, shape (blocks, 2)
        Tile row and column.
    steps : int or ndarray
        Steps of k of each block.
    first : int or ndarray
        Where they begin.
    k_start : int or ndarray, optional
        The k step to begin with; by default the first, or the last where the direction is -1.
    k_direction : int or ndarray
        1 or -1.
    phase, product : int
    adds : bool
    """

    tiles: NDArray[Any]
    steps: Any
    first: Any = 0
    k_start: Any = None
    k_direction: Any = 1
    phase: int = 0
    product: int = 0
    adds: bool = False


def deal(groups: Sequence[Blocks], wave_blocks: int, sawtooth: bool = False) -> Entries:
    """Blocks in waves of ``wave_blocks``, each of the groups from a wave of its own.

    Parameters
    ----------
    groups : sequence of Blocks
        Bands that end their last wave early, or phases.
    wave_blocks : int
        P.
    sawtooth : bool
        Every second wave runs k the other way.

    Returns
    -------
    ndarray of int32, shape (blocks, 11)
        ``COLUMNS``. Cost O(blocks).

    Examples
    --------
    >>> tiles = np.array([[0, 0], [1, 0], [0, 1]])
    >>> deal([Blocks(tiles, 4)], 2, sawtooth=True)[:, :6].tolist()
    [[0, 0, 0, 0, 0, 1], [0, 1, 1, 0, 0, 1], [1, 0, 0, 1, 3, -1]]
    """
    parts = []
    waves = 0
    for group in groups:
        count = len(group.tiles)
        place = np.arange(count, dtype=np.int64)
        wave = waves + place // wave_blocks
        direction, first, steps = (np.asarray(each, np.int64) for each in (group.k_direction, group.first, group.steps))
        turned = np.where(wave % 2 == 1, -1, 1) if sawtooth else np.int64(1)
        last = first + steps - 1
        start = np.where(direction < 0, last, first) if group.k_start is None else np.asarray(group.k_start, np.int64)
        start = np.where(turned < 0, first + last - start, start)  # the mirror image
        columns: list[Any] = [
            wave, place % wave_blocks, group.tiles[:, 0], group.tiles[:, 1], start, direction * turned, group.phase,
            group.product, first, steps, int(group.adds),
        ]  # fmt: skip
        parts.append(np.empty((count, len(COLUMNS)), np.int32))
        for number, column in enumerate(columns):
            parts[-1][:, number] = column
        waves += ceil_div(count, wave_blocks)
    return np.concatenate(parts)
