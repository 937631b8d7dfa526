"""Orders of the user's own: what a file or a function says, made into a table of a workload."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from itertools import islice, pairwise
from typing import Any

import numpy as np

from pebble.errors import InputError
from pebble.schedules.orders import OrderParams
from pebble.schedules.tables.registry import check_table, check_tiles, kernel_of
from pebble.schedules.tables.table import COLUMNS, Blocks, Column, Entries, Launch, TileTable, deal
from pebble.workloads.workload import Workload

Columns = Mapping[str, Column]


class OwnSchedule(ABC):
    """A schedule that is no name of ours."""

    name: str

    @abstractmethod
    def table(self, workload: Workload, launch: Launch, params: OrderParams) -> TileTable:
        """The checked table for a workload.

        Raises
        ------
        InputError
            It does not compute this workload under this tile, or needs other waves.
        """


@dataclass(frozen=True, eq=False)
class FixedTable(OwnSchedule):
    """A table that was made for a workload and a launch, such as one that a search found."""

    tile_table: TileTable
    name: str = field(init=False)  #: what the table is called

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.tile_table.name)

    def table(self, workload: Workload, launch: Launch, params: OrderParams) -> TileTable:
        """The table itself, if it was made for this."""
        made, fix = self.tile_table.launch, "; give what it was made for, or make one for this"
        if workload.replaced(name="") != self.tile_table.workload.replaced(name=""):
            raise InputError(
                f"{self.name}: got {workload.label}, expected what it "
                f"was made for, {self.tile_table.workload.label}{fix}."
            )
        if made.tile != launch.tile:
            raise InputError(f"{self.name}: got --tile {launch.tile}, expected {made.tile}{fix}.")
        if (made.sms, made.blocks_per_sm) != (launch.sms, launch.blocks_per_sm):
            raise InputError(
                f"{self.name}: got {launch.sms} SMs with {launch.blocks_per_sm} blocks each, expected {made.sms} with "
                f"{made.blocks_per_sm} (--sms, --blocks-per-sm){fix}."
            )
        check_table(self.tile_table)
        return replace(self.tile_table, launch=launch)


@dataclass(frozen=True, eq=False)
class ColumnTable(OwnSchedule):
    """Columns from a file: ``row`` and ``col``, and any others of a table.

    Attributes
    ----------
    name : str
        The file.
    columns : mapping of str to ndarray of int64
        By name.
    sawtooth : bool
        ``+sawtooth`` behind the name.
    """

    name: str
    columns: Columns = field(repr=False)
    sawtooth: bool = False

    def table(self, workload: Workload, launch: Launch, params: OrderParams) -> TileTable:
        """In waves of P in the order of the file, unless it says itself which wave and slot."""
        return assembled(self.name, workload, launch, self.columns, self.sawtooth)


@dataclass(frozen=True, eq=False)
class FunctionOrder(OwnSchedule):
    """A function ``(rows, cols, params) -> tiles``, or ``(tiles, k_start, k_direction)``; it may also yield tiles.

    One of ``(rows, cols)`` alone is asked without ``params``.

    Attributes
    ----------
    name : str
        As the user gave it.
    build : callable
    sawtooth : bool
        ``+sawtooth`` behind the name.
    """

    name: str
    build: Callable[..., Any]
    sawtooth: bool = False

    def table(self, workload: Workload, launch: Launch, params: OrderParams) -> TileTable:
        """For an ffn the function is asked twice: for the tiles of H, then for those of Y."""
        products = kernel_of(workload, launch.tile, name=self.name).products
        parts = []
        for product, (_, (rows, cols), steps) in enumerate(products):
            result = self._ask(rows, cols, params)
            if len(products) > 1:
                count = len(result["row"])
                whole = {"phase": product, "product": product, "first": 0, "steps": int(steps[0]), "adds": 0}
                result |= {name: np.full(count, value, np.int64) for name, value in whole.items()}
            parts.append(result)
        names = set(parts[0]).intersection(*parts[1:])
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0] if name in names}
        return assembled(self.name, workload, launch, joined, self.sawtooth)

    def _ask(self, rows: int, cols: int, params: OrderParams) -> dict[str, Column]:
        """What the function says of a grid, as columns."""
        arguments = (rows, cols, params) if _takes(self.build, 3) else (rows, cols)
        try:
            answer = self.build(*arguments)
            if isinstance(answer, Iterator):  # it yields its tiles, one too many is enough to refuse it
                answer = list(islice(answer, rows * cols + 1))
        except (Exception, SystemExit) as error:  # whatever the user's code does
            at = error.__traceback__
            while at is not None and at.tb_next is not None:
                at = at.tb_next
            line = f" (line {at.tb_lineno})" if at is not None else ""
            raise InputError(
                f"{self.name}: the function raised {type(error).__name__}: {str(error)[:200]}{line}; it was called "
                f"with {rows} rows, {cols} columns{' and params' * (len(arguments) > 2)}."
            ) from None
        parts = answer if isinstance(answer, tuple) and len(answer) == 3 else (answer, None, None)
        expected = "an array of (row, col), or to yield them, or (tiles, k_start, k_direction)"
        try:
            tiles = np.asarray(parts[0])
            columns = {"row": tiles[:, 0], "col": tiles[:, 1]} if tiles.shape[1:] == (2,) else {}
            for name, values in zip(("k_start", "k_direction"), parts[1:], strict=True):
                if values is not None:
                    columns[name] = np.asarray(values)
            whole = {name: _whole(column) for name, column in columns.items()}
        except (ValueError, TypeError, IndexError, OverflowError):
            whole = {}
        if not whole or any(column.shape != whole["row"].shape for column in whole.values()):
            raise InputError(f"{self.name}: the function returned {repr(answer)[:60]}, expected {expected}.")
        return whole


def _takes(function: Callable[..., Any], count: int) -> bool:
    """Whether it can be called with so many arguments; what does not say what it takes can."""
    try:
        signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        pass
    return True


def _whole(values: Any) -> Column:
    """Whole numbers, or a ValueError."""
    result = np.asarray(values)
    if result.dtype.kind not in "iu" and not np.all(np.equal(np.mod(result, 1), 0)):
        raise ValueError("not whole")
    return result.astype(np.int64)


def assembled(name: str, workload: Workload, launch: Launch, columns: Columns, sawtooth: bool = False) -> TileTable:
    """The table that some columns make, checked.

    Raises
    ------
    InputError
        Columns that contradict each other, or a table that does not compute the workload.
    """
    if sawtooth and "k_direction" in columns:
        raise InputError(f"{name}: got +sawtooth with a column k_direction, expected one of the two.")
    kernel = kernel_of(workload, launch.tile, name=name)
    row, col = columns["row"], columns["col"]
    pieces = "product" in columns
    if not pieces:
        if len(kernel.products) > 1:
            raise InputError(
                f"{name}: got tiles of one product, expected the columns phase, product, row, col, first, steps, adds "
                f"for an {workload.family}; a function is asked for both of its products."
            )
        ((what, grid, depth),) = kernel.products
        check_tiles(name, row, col, grid, f"{what} under tile {launch.tile}")
        steps = depth[row]
    else:
        steps = columns["steps"]
    zero = np.zeros(len(row), np.int64)
    first = columns.get("first", zero)
    direction = columns.get("k_direction", zero + kernel.direction)
    phase = columns.get("phase", zero)
    if np.any(np.abs(direction) != 1):
        raise InputError(f"{name}: got a k_direction of {direction[np.abs(direction) != 1][0]}, expected 1 or -1.")
    start = columns.get("k_start", np.where(direction < 0, first + steps - 1, first))
    if "wave" in columns:
        entries = _placed(columns, launch, name, (start, direction, phase, first, steps))
    else:
        cuts = [0, *(np.flatnonzero(np.diff(phase)) + 1).tolist(), len(row)]
        groups = []
        for a, b in pairwise(cuts):
            part = slice(a, b)
            tiles = np.stack([row[part], col[part]], axis=1)
            products = columns.get("product", zero)[part]
            if np.any(products != products[0]):
                raise InputError(f"{name}: got two products in phase {phase[a]}, expected one in each phase.")
            groups.append(
                Blocks(tiles, steps[part], first[part], start[part], direction[part], int(phase[a]), int(products[0]))
            )
        entries = deal(groups, launch.wave_blocks, sawtooth)
        entries[:, COLUMNS.index("adds")] = columns.get("adds", zero)
    table = TileTable(name, workload, launch, entries)
    check_table(table, kernel)
    return table


def _placed(columns: Columns, launch: Launch, name: str, known: tuple[Column, ...]) -> Entries:
    """Entries of columns that say which wave and slot."""
    start, direction, phase, first, steps = known
    zero = np.zeros(len(start), np.int64)
    most = int(columns["slot"].max()) + 1
    if most > launch.wave_blocks:
        raise InputError(
            f"{name}: its waves have {most} slots, got {launch.wave_blocks} blocks at once; give the --gpu, --sms and "
            "--blocks-per-sm that it was made for."
        )
    every = {
        **columns, "k_start": start, "k_direction": direction, "phase": phase, "first": first, "steps": steps,
        "product": columns.get("product", zero), "adds": columns.get("adds", zero),
    }  # fmt: skip
    order = np.lexsort((columns["slot"], columns["wave"]))
    return np.column_stack([every[column][order] for column in COLUMNS]).astype(np.int32)
