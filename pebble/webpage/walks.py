"""Tile walks: which block runs when and where, and which of the tiles that it reads were in the cache.

A whole problem has too many tiles to look at, so every dimension, the cache and the number of SMs are cut together;
the walk is that of the named order on the smaller grid, simulated touch by touch under one LRU. Orders are shown only
where they rank as in the whole problem.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod
from typing import Any

import numpy as np

from pebble.errors import InputError
from pebble.families import KernelFamily, family_of
from pebble.models.caches import parse_policy
from pebble.schedules.tile import TileShape, round_up
from pebble.simulation import KernelConfig
from pebble.traces import LINE_BYTES, WRITE, Trace
from pebble.units import ceil_div
from pebble.webpage.documents import Document, Fields, workload_of
from pebble.webpage.gaps import traffic_of
from pebble.workloads.workload import Workload

SIDE = 24  # tiles on the longer side of the grid
DEPTH = 4  # steps of k that are kept
MAX_ORDERS = 12  # on a page
MOST_TRIED = 48  # of which the walks are tried
_SM_POWERS = (1.0, 0.75, 0.5, 0.25, 0.0)  # of the share of the tiles that is left
_LEAST_SMS = 4
_MOST_BLOCKS, _MOST_TOUCHES = 5_000, 200_000
_MOST_CACHE_BYTES = 2**40


@dataclass(frozen=True)
class Walks:
    """The walks of one document.

    Attributes
    ----------
    title, about : str
        ``about`` says what was cut.
    orders : list of dict
        ``name``; ``moved``, the bytes of the whole problem; ``grids``, the (operand, rows, columns) of each result in
        tiles; ``reads``, the operands that are read; ``blocks``; a block is ``[tiles, sm, turn, bytes fetched,
        [touched, hit] of each operand that is read]``, a tile ``[result, row, column]``; blocks in the order in which
        they begin.
    left_out : tuple of str
        Orders without a walk, with the reason.
    """

    title: str
    about: str
    orders: list[dict[str, Any]]
    left_out: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """What the script needs."""
        return {"orders": self.orders}


def walks_of(document: Document) -> Walks | None:
    """The walks of the orders of a compare document, the best first; None for a family whose tiles have no walk.

    Among several reductions the one is taken where most orders rank as the document ranks them, by what they fetch
    here and what they move there. An order that ranks otherwise is left out; so are all where the best and the worst
    do.

    Raises
    ------
    InputError
        A workload or a kernel that is none.
    """
    fields = Fields(document.data, document.name)
    workload, kernel = workload_of(fields), fields.part("kernel")
    family = family_of(workload).simulated
    if family is None:
        return None
    traffic = {row.text("name"): traffic_of(row) for row in fields.parts("schedules")}
    names = sorted(traffic, key=lambda name: traffic[name])
    requested = names if len(names) <= MOST_TRIED else [*names[: MOST_TRIED - 1], names[-1]]
    tile = TileShape.parse(kernel.text("tile"), 1)
    reduced = _reductions(family, workload, tile, kernel)
    tried = [_Reduced.of(family, *reduction, requested, traffic) for reduction in reduced]
    if not tried:
        return None
    best = max(tried, key=lambda reduced: (len(reduced.ranked), reduced.spread))
    left_out = (
        [f"{len(names) - len(requested)} orders between the best and the worst"] if len(names) > len(requested) else []
    )
    left_out += [f"{name}: {reason}" for name, reason in best.refused.items()]
    other = [name for name in requested if name not in (*best.ranked, *best.refused)]
    if other:
        left_out.append(f"{', '.join(other)}: so reduced, they would not rank as they do in the gap table")
    shown = best.ranked
    if len(shown) > MAX_ORDERS:
        left_out.append(f"{', '.join(shown[MAX_ORDERS - 1 : -1])}: a page shows {MAX_ORDERS} orders at the most")
        shown = [*shown[: MAX_ORDERS - 1], shown[-1]]
    orders: list[dict[str, Any]] = []
    for name in shown:
        grids, reads, blocks = blocks_of(best.traces[name], best.config)
        orders.append({"name": name, "moved": traffic[name], "grids": grids, "reads": reads, "blocks": blocks})
    config = best.config
    about = (
        f"Reduced to {best.small.label}: tile {family.tile_text(config.tile)}, {config.sms} SMs, "
        f"one LRU of {config.cache_bytes / 2**10:,.0f} KiB, in waves. Its figures are not those of the whole problem; "
        "at the end of the walks these orders rank as in the gap table."
    )
    return Walks(fields.part("workload").text("label", ""), about, orders, tuple(left_out))


@dataclass(frozen=True)
class _Reduced:
    """One reduction of a problem, and the walks of its orders there.

    ``ranked`` are the orders that are shown, the best first; ``refused`` those that have no walk, with the reason.
    """

    small: Workload
    config: KernelConfig
    traces: dict[str, Trace]
    fetched: dict[str, int]
    ranked: list[str]
    refused: dict[str, str]

    @classmethod
    def of(
        cls,
        family: KernelFamily[Any, Any],
        small: Workload,
        config: KernelConfig,
        names: Sequence[str],
        traffic: Mapping[str, float],
    ) -> _Reduced:
        traces: dict[str, Trace] = {}
        fetched: dict[str, int] = {}
        refused: dict[str, str] = {}
        for name in names:
            try:  # by name only: a document must not lead to a file
                trace = family.trace(small, family.parse_schedule(name), config)
                if trace.touches > _MOST_TOUCHES or any(o.shares_lines for o in trace.operands):
                    raise InputError("its tiles are too many, or begin inside lines of the cache.")
                size, written = _passed(trace, config)
                if max(o.grid[1] * o.copies for o in trace.operands if o.operand in written) > 2 * SIDE:
                    raise InputError("a result that it writes has too many tile columns to show.")
            except InputError as error:
                refused[name] = str(error)
            else:
                traces[name], fetched[name] = trace, size
        return cls(small, config, traces, fetched, ranked_alike(traffic, fetched), refused)

    @property
    def spread(self) -> float:
        """What the worst order that is shown fetches over what the best does."""
        return self.fetched[self.ranked[-1]] / max(1, self.fetched[self.ranked[0]]) if self.ranked else 0.0


def ranked_alike(traffic: Mapping[str, float], fetched: Mapping[str, int]) -> list[str]:
    """The most orders, the best and the worst among them, that two measures rank alike, those that move least first.

    None where the two measures do not agree on the best and the worst.

    Examples
    --------
    >>> ranked_alike({"a": 1, "b": 2, "c": 3, "d": 4}, {"a": 10, "b": 30, "c": 20, "d": 25})
    ['a', 'c', 'd']
    >>> ranked_alike({"a": 1, "b": 2}, {"a": 10, "b": 10})
    []
    """
    chains: list[list[str]] = []  # the longest from the best to each
    for name in sorted(fetched, key=lambda name: (traffic[name], fetched[name])):

        def before(other: str, name: str = name) -> bool:
            return fetched[other] <= fetched[name] and (
                (traffic[other] == traffic[name]) == (fetched[other] == fetched[name])
            )

        fitting = [chain for chain in chains if chain and before(chain[-1])]
        chains.append([*max(fitting, key=len), name] if fitting else [] if chains else [name])
    return chains[-1] if chains else []


def _reductions(
    family: KernelFamily[Any, Any], workload: Workload, tile: TileShape, kernel: Fields
) -> Iterator[tuple[Workload, KernelConfig]]:
    """The same workload with at most ``SIDE`` tiles a side, the cache cut in proportion, and the SMs more or less.

    With as few SMs as there are fewer tiles the waves are as many as they were, but less wide than the groups and
    strips that orders name; with all SMs they are as wide, but few.
    """
    lines = round_up(tile.bk, LINE_BYTES // workload.in_bytes)  # so that no two tiles share a line
    tile = family.cut_tile(replace(tile, bk=lines), workload)
    small = family.reduced(workload, tile, SIDE, DEPTH)
    if small is None:
        return
    tile = family.cut_tile(tile, small)
    blocks, fewer = (_blocks(w, tile) for w in (workload, small))
    if fewer > _MOST_BLOCKS:
        raise InputError(f"report: {small.label}: got {fewer:,} tiles, expected at most {_MOST_BLOCKS:,} for a walk.")
    inputs = [sum(o.elements * o.element_bytes for o in w.operands if o.read) for w in (workload, small)]
    cache = ceil(kernel.whole("cache_bytes") * inputs[1] / inputs[0])
    largest = max(tile.bm, tile.bn) * max(tile.bk, tile.bm, tile.bn, 1) * workload.widest_bytes
    for power in _SM_POWERS:
        sms = min(fewer, max(_LEAST_SMS, round(kernel.whole("sms") * (fewer / blocks) ** power)))
        # room for the tiles of one step of every block: below that nothing is ever found again
        floor = largest + sms * (tile.bm + tile.bn) * tile.bk * workload.narrowest_bytes
        yield small, KernelConfig(tile, sms, 1, min(_MOST_CACHE_BYTES, max(cache, floor, LINE_BYTES)))


def _passed(trace: Trace, config: KernelConfig) -> tuple[int, set[int]]:
    """Bytes that the reads of a trace fetch, and the operands of which it writes tiles."""
    engine = parse_policy("lru").runs(trace, config.cache_bytes // LINE_BYTES, parse_policy("lru"))
    lines, written = 0, set[int]()
    for chunk, missed in engine.passed():
        writes = chunk.ops == WRITE
        lines += int(missed[~writes].sum())
        written.update(np.unique(trace.tile_operand[chunk.ids[writes]]).tolist())
    return lines * LINE_BYTES, written


def _blocks(workload: Workload, tile: TileShape) -> int:
    results = [o for o in workload.operands if o.written]
    return sum(prod((ceil_div(o.rows, tile.bm), max(1, ceil_div(o.cols, tile.bn)))) for o in results)


def blocks_of(
    trace: Trace, config: KernelConfig
) -> tuple[tuple[tuple[str, int, int], ...], tuple[str, ...], list[list[Any]]]:
    """What each block of a trace touches and finds, told from the trace and the cache alone.

    An SM runs one block at a time here, and a block ends with the tiles that it writes: so what an SM has read since
    its last write belongs to the block that writes next.
    """
    engine = parse_policy("lru").runs(trace, config.cache_bytes // LINE_BYTES, parse_policy("lru"))
    names = trace.operand_names
    operand = trace.tile_operand
    open_blocks: dict[int, _Open] = {}
    last: dict[int, _Open] = {}
    done: list[tuple[int, _Open]] = []
    turns: dict[int, int] = {}
    touched = 0
    for chunk, missed in engine.passed():
        sms = chunk.sm
        assert sms is not None, "a trace of the program says which SM touches"
        for tile, op, sm, lost in zip(
            chunk.ids.tolist(), chunk.ops.tolist(), sms.tolist(), missed.tolist(), strict=True
        ):
            touched += 1
            if op == WRITE:
                if sm in open_blocks:
                    last[sm] = open_blocks.pop(sm)
                    done.append((sm, last[sm]))
                last[sm].tiles.append(tile)
                continue
            block = open_blocks.setdefault(sm, _Open(touched, np.zeros((len(names), 2), np.int64), []))
            block.hits[operand[tile]] += (1, lost == 0)
            block.fetched_lines += lost
    written = sorted({int(operand[tile]) for _, block in done for tile in block.tiles})
    places = {o: _Place(trace, o) for o in written}
    grids = tuple((names[o], *places[o].shape) for o in written)
    reads = [o for o in range(len(names)) if any(block.hits[o, 0] for _, block in done)]
    rows = []
    for sm, block in sorted(done, key=lambda entry: entry[1].began):
        turn = turns[sm] = turns.get(sm, -1) + 1
        tiles = [[written.index(int(operand[tile])), *places[int(operand[tile])].of(tile)] for tile in block.tiles]
        results = [block.hits[o].tolist() for o in reads]
        rows.append([tiles, sm, turn, block.fetched_lines * LINE_BYTES, results])
    return grids, tuple(names[o] for o in reads), rows


@dataclass
class _Open:
    """A block that runs: its first touch, what it read and found of each operand, tiles written, lines fetched."""

    began: int
    hits: Any
    tiles: list[int]
    fetched_lines: int = 0


class _Place:
    """Where the tiles of an operand lie; copies, such as heads, stand side by side."""

    def __init__(self, trace: Trace, operand: int) -> None:
        self.tiles = next(o for o in trace.operands if o.operand == operand)
        rows, cols = self.tiles.grid
        self.shape = rows, cols * self.tiles.copies

    def of(self, tile: int) -> tuple[int, int]:
        rows, cols = self.tiles.grid
        copy, rest = divmod(tile - self.tiles.first, rows * cols)
        row, col = divmod(rest, cols)
        return row, copy * cols + col
