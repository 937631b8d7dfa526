"""Bands of a chain in a memory: how they are cut and what stays in them, by each rule the one that moves least."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from pebble.schedules.explicit.chain import (
    Chain,
    ChainBand,
    column_of_y,
    is_panel,
    placed,
    spilling_sides,
    state_of,
)
from pebble.schedules.explicit.corner import Corner, Stage, best_corners
from pebble.units import ceil_div
from pebble.workloads.widths import FastMemory, Widths


@lru_cache(maxsize=1 << 14)
def best_band(chain: Chain, side: str, extent: int, memory: FastMemory, rule: str = "any") -> ChainBand | None:
    """The rule by which a band moves least of its own operands, or None when none fits.

    ``traffic`` counts, for ``rows``, A and Y (stored at least once) and, for ``hidden``, B and D.
    """
    across, rows = (chain.f, True) if side == "rows" else (chain.m, False)
    counts = _block_counts(chain, side, extent, memory) if rule != "panel" else {across}
    if chain.whole_rows and rows:
        counts = {1}
    results = [
        band
        for blocks in sorted(counts if rule != "spill" else ())
        if (band := _band(chain, side, extent, blocks, memory, keep=rule != "block")) is not None
        and (rule != "panel" or band.blocks == 1 or band.carried_first == chain.k)
        and not (rule == "keep" and is_panel(chain, side, band))
    ]
    if rule in ("any", "keep") and rows and not (chain.whole_rows or chain.masked):
        cells = memory.widths.hidden * chain.streams * chain.f * extent
        fewest = max(2, ceil_div(cells, memory.bytes))
        results += [band for n in range(fewest, fewest + 3) if (band := wider_band(chain, extent, n, memory))]
    if rule in ("any", "spill") and rows and (spilled := _spilled_band(chain, extent, memory)):
        results.append(spilled)
    return min(results, key=lambda b: (b.traffic, b.peaks), default=None)


def _block_counts(chain: Chain, side: str, extent: int, memory: FastMemory) -> set[int]:
    """Numbers of blocks worth trying: the fewest with nothing, half, one or both operands kept, and a few more."""
    across = chain.f if side == "rows" else chain.m
    if chain.masked and side == "rows":
        return {1, across}
    counts, (k, l) = {1, across}, (chain.k, chain.l)
    for first, second in ((0, 0), (0, l // 2), (0, l), (k // 4, l), (k // 2, l), (k * 3 // 4, l)):
        if most := widest(chain, side, extent, memory, first, second):
            fewest = ceil_div(across, min(most, across))
            counts.update(n for n in range(fewest, fewest + 3) if n <= across)
    return counts


def widest(chain: Chain, side: str, extent: int, memory: FastMemory, first: int = 0, second: int = 0) -> int:
    """Longest block of a band beside so much of either operand that stays, with softmax state.

    The shorter of its vectors lies along it or across.
    """
    return min(_widest(chain, side, extent, size, of, first, second) for size, of in memory.limits)


def _widest(chain: Chain, side: str, extent: int, size: int, of: Widths, first: int, second: int) -> int:
    w, wider, u, result = of.read, max(of.read, of.partial), chain.streams, []
    cell_first, cell_second = (w, of.partial) if side == "rows" else (w * u, w)
    size -= extent * (cell_first * first + cell_second * second)
    state = state_of(chain, of, False)
    # under its first products, where each position has so many cells, and under the second
    for cell, vector, streams in ((of.hidden * u, w, u), (w, wider, 1))[: 2 if chain.l else 1]:
        if side == "rows":
            left = size - vector - state * extent
            along = min(left // (cell * extent + vector * streams), extent // streams)
            result.append(max(0, (left - vector * extent) // (cell * extent), along))
        else:
            left, line = size - vector, cell * extent + state
            along = min(left // (line + vector), streams * extent)
            result.append(max(0, (left - vector * streams * extent) // line, along))
    return min(result)


def _spilled_band(chain: Chain, extent: int, memory: FastMemory) -> ChainBand | None:
    """All of the band's H first, then Y: A and Y resident one after the other.

    With softmax state scores are stored as they are; the maximum and sum of each row, known once all have been
    computed, stay with it until its outputs are complete. A score that is wider before the softmax is not stored.
    """
    k, l, f, u, widths = chain.k, chain.l, chain.f, chain.streams, memory.widths
    if chain.masked or l == 0 or (chain.state and widths.hidden > widths.read):
        return None
    bare = placed(chain, "rows", ChainBand(extent, 1, f, k, l, spilled=f), memory)
    if bare is None:
        return None
    columns = min(
        (size - peak) // (of.read * extent) for (size, of), peak in zip(memory.limits, bare.peaks, strict=True)
    )
    if widths.hidden * u == widths.read and columns >= f:  # one block of all columns does with less
        return None
    stages: list[Stage] = []
    for number, depth in enumerate((k, l)):
        limits = []
        for size, of in memory.limits:
            sides = spilling_sides(extent, u, of)
            held = extent * (state_of(chain, of, True) + (of.read * k, of.partial * l)[number])
            limits.append((size - held, sides[number]))
        stages.append(Stage(depth, tuple(limits)))
    enter, leave = best_corners(
        tuple(stages), f - 1, min(columns, f - 1)
    )  # those beside lie there while one is computed
    cost, stays = memory.cost, enter.vectors
    traffic = extent * (cost.read * (k + 2 * (f - stays)) + cost.written * l)
    return placed(chain, "rows", ChainBand(extent, 1, f, k, l, traffic, (), f - stays, 0, enter, leave), memory)


def wider_band(chain: Chain, extent: int, blocks: int, memory: FastMemory) -> ChainBand | None:
    """A band of rows in so many blocks, the first one wider, with as many columns of Y as can stay."""
    k, l, f, u = chain.k, chain.l, chain.f, chain.streams
    if chain.masked or l == 0 or blocks > f or f * extent * u * memory.widths.hidden > blocks * memory.bytes:
        return None
    alone = widest(chain, "rows", extent, memory)

    def wide(stay: int) -> int:
        """Columns of a first block beside which that many columns of Y come in."""
        most = min(alone, f - blocks + 1)
        for size, of in memory.limits:
            w, p = of.read, of.partial
            left = size - extent * state_of(chain, of, False)
            if u == 1:
                turned = min(stay, extent // 2)  # the next one would need more than a plain one
                left -= p * turned * (turned + 1) + p * extent * (stay - turned) + (w if stay > turned else 0)
            else:  # the gate's place is free by then
                left -= p * extent * stay + w
            most = min(most, left // (w * extent))
        return most

    low, high = -1, l
    while low < high:
        middle = (low + high + 1) // 2
        enough = wide(middle) + (blocks - 1) * widest(chain, "rows", extent, memory, 0, middle) >= f
        low, high = (middle, high) if enough else (low, middle - 1)
    if low < 0:
        return None
    first = wide(low)
    enter = Corner(0, 0, low)
    if u == 1:
        limits = [
            (size - extent * (state_of(chain, of, False) + of.read * first), column_of_y(extent, of))
            for size, of in memory.limits
        ]
        enter = best_corners((Stage(first, tuple(limits)),), low)[0]
    low, rest = enter.vectors, f - first
    block = ceil_div(rest, blocks - 1) if blocks > 1 else 0
    if rest < 1 or block < 1 or block > first or ceil_div(rest, block) != blocks - 1:
        return None
    cost = memory.cost
    again = (blocks - 1) * (cost.read * k + 2 * cost.partial * (l - low))
    traffic = extent * (cost.read * k + cost.written * l + again)
    return placed(chain, "rows", ChainBand(extent, block, blocks, 0, low, traffic, (), 0, first, enter), memory)


def _band(chain: Chain, side: str, extent: int, blocks: int, memory: FastMemory, keep: bool) -> ChainBand | None:
    """The band with that many blocks, keeping what fits; None when it does not fit."""
    k, l, u = chain.k, chain.l, chain.streams
    across = chain.f if side == "rows" else chain.m
    block = ceil_div(across, blocks)
    blocks = ceil_div(across, block)
    everything = ChainBand(extent, block, blocks, k, l)
    result = placed(chain, side, everything, memory) if blocks > 1 and keep else None
    if result is None:
        if blocks > 1 and chain.masked:
            return None
        result = placed(chain, side, ChainBand(extent, block, blocks), memory)
        if result is not None and blocks > 1 and keep:
            result = placed(chain, side, _keeping(chain, side, result, memory), memory)
    if result is None:
        return None
    again, cost = blocks - 1, memory.cost
    w, first, second = cost.read, k - result.carried_first, l - result.carried_second
    if side == "rows":  # Y is stored and loaded again
        traffic = extent * (w * (k + again * first) + cost.written * l + 2 * cost.partial * again * second)
    else:
        traffic = extent * w * (u * k + l + again * (u * first + second))
    return replace(result, traffic=traffic)


def _keeping(chain: Chain, side: str, band: ChainBand, memory: FastMemory) -> ChainBand:
    """The same with as many columns of its operands as fit, of the second first."""
    extent, first, second = band.extent, chain.k, chain.l
    left = [
        (size - peak, of.read, of.partial) if side == "rows" else (size - peak, of.read * chain.streams, of.read)
        for (size, of), peak in zip(memory.limits, band.peaks, strict=True)
    ]
    second = min(second, *(spare // (extent * of_second) for spare, _, of_second in left))
    first = min(first, *((spare - extent * second * b) // (extent * a) for spare, a, b in left))
    return replace(band, carried_first=first, carried_second=second)
