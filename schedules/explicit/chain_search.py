"""Search for the bands of a fused schedule, and their exact traffic."""

from __future__ import annotations

from collections.abc import Iterator

from pebble.errors import InfeasibleError
from pebble.schedules.explicit.chain import Band, Chain, ChainPlan, best_band, handed_on
from pebble.schedules.explicit.blocks import block_sizes
from pebble.units import ceil_div

_MOST_COUNTS = 2048  # more than any extent up to 2^20 has


def _highest(chain: Chain, side: str, capacity: int) -> list[int]:
    """Extents at which a rule just fits: bands as high as they can be."""
    extent, across = (chain.m, chain.f) if side == "rows" else (chain.f, chain.m)
    found = {extent}
    kept_full = chain.k + chain.l if side == "rows" else chain.weights_per_column
    for blocks in (*range(1, 9), across):
        block = ceil_div(across, blocks)
        for kept in (0, chain.l, kept_full):
            for more in {0, 1, min(2, chain.state), chain.state, chain.state + 1}:  # softmax state, and the vector
                found.add((capacity - 1) // (chain.streams * block + kept + more))
    found.add((capacity - 1) // max(chain.k + chain.streams, chain.l + 1))  # Y stationary, H spilled
    fit = sorted(e for e in found if 1 <= e <= extent and best_band(chain, side, e, capacity) is not None) or [1]
    # with a mask each band is looked at, so only high ones
    return [e for e in fit if 2 * e >= fit[-1]] if chain.masked else fit


def _splits(chain: Chain, side: str, capacity: int) -> Iterator[list[tuple[int, int]]]:
    """Ways to cut the side into bands: runs of (extent, count)."""
    extent = chain.m if side == "rows" else chain.f

    def even(total: int, count: int) -> list[tuple[int, int]]:
        size, longer = divmod(total, count)
        return [run for run in ((size + 1, longer), (size, count - longer)) if run[1]]

    highest = _highest(chain, side, capacity)
    fewest = ceil_div(extent, highest[-1])
    for size in block_sizes(extent, highest[-1], _MOST_COUNTS):  # each number of bands that is the fewest for some size
        count = ceil_div(extent, size)
        if chain.masked and count > fewest + 2:  # only high bands are any good
            break
        yield even(extent, count)
    for high in highest:
        most = extent // high
        for count in range(max(1, most - (1 if chain.masked else 4)), most + 1):
            rest = extent - count * high
            if rest == 0:
                yield [(high, count)]
            for others in range(1, min(rest, 3) + 1):
                yield [*even(rest, others), (high, count)]


def _plan(chain: Chain, side: str, sizes: list[tuple[int, int]], capacity: int, rule: str) -> ChainPlan | None:
    """The plan for bands of these sizes, or None when one does not fit."""
    runs: list[tuple[Band, int]] = []
    for extent, count in sizes:
        band = best_band(chain, side, extent, capacity, rule)
        if band is None or (chain.one_pass and side == "hidden" and extent < chain.f):
            return None
        runs.append((band, count))
    if not chain.masked:  # neighbours alike in room keep most for each other
        runs.sort(key=lambda run: run[0].peak)
    return _plan_of_runs(chain, side, runs, capacity)


def _seen_in_all(chain: Chain, rows: int, extent: int, bands: int) -> int:
    """Columns of H that bands of one extent see in all, counted at the end of each; so many rows come before."""
    more = _floor_sum(bands, chain.masked, extent, rows - 1 + extent) if chain.masked else 0
    return bands * chain.seen(1) + more


def _bands_that_keep(chain: Chain, rows: int, band: Band, capacity: int) -> int:
    """Of equal bands after those rows, how many may keep all that they saw of B and D for the next."""
    columns = (capacity - band.peak) // chain.weights_per_column
    return max(0, ((columns - chain.seen(1) + 1) * chain.masked - rows) // band.extent)


def _floor_sum(count: int, divisor: int, step: int, first: int) -> int:
    """Sum of (first + i step) // divisor for i = 0 .. count - 1, in time that grows like a logarithm."""
    total = 0
    while count > 0:
        total += count * (count - 1) // 2 * (step // divisor) + count * (first // divisor)
        step, first = step % divisor, first % divisor
        count, first = divmod(step * count + first, divisor)
        divisor, step = step, divisor
    return total


def _plan_of_runs(chain: Chain, side: str, runs: list[tuple[Band, int]], capacity: int) -> ChainPlan:
    """The plan of these bands in this order, with what each keeps for the next."""
    kept, peak, done, columns = [], 0, 0, 0
    before: Band | None = None
    for band, count in runs:
        peak = max(peak, band.peak)
        if before is not None:
            between = handed_on(chain, side, capacity, before, band, chain.seen(done))
            kept.append((between.values, 1))
            peak = max(peak, between.peak)
        last = done + count * band.extent
        if count > 1:  # the same band again: with a mask what it sees grows, until it no longer fits
            between = handed_on(chain, side, capacity, band, band, chain.seen(last - band.extent))
            peak = max(peak, between.peak)
            whole = 0
            if chain.masked and side == "rows":
                whole = min(count - 1, _bands_that_keep(chain, done, band, capacity))
                kept.append((chain.weights_per_column * _seen_in_all(chain, done, band.extent, whole), 1))
            kept.append((between.values, count - 1 - whole))
        columns += _seen_in_all(chain, done, band.extent, count) if side == "rows" else count * chain.f
        before, done = band, last
    return _totals(chain, side, runs, capacity, kept, peak, columns)


def _totals(
    chain: Chain,
    side: str,
    runs: list[tuple[Band, int]],
    capacity: int,
    kept: list[tuple[int, int]],
    peak: int,
    columns: int,
) -> ChainPlan:
    """Traffic by operand. ``columns``: columns of H that the bands go through, in all (rows of weights streamed)."""
    m, k, l, u = chain.m, chain.k, chain.l, chain.streams
    spilled = hidden = 0
    if side == "rows":
        a_loads = 0
        for band, count in runs:
            hidden += count * band.extent * band.spilled
            a_loads += count * band.extent * (k + (band.blocks - 1) * (k - band.kept_first))
            spilled += count * band.extent * (band.blocks - 1) * (l - band.kept_second)
        b_loads, d_loads = columns * u * k, columns * l
        for values, times in kept:  # column by column of H: B, then D
            whole, rest = divmod(values, u * k + l)
            saved_b = whole * u * k + min(rest, u * k)
            b_loads -= times * saved_b
            d_loads -= times * (values - saved_b)
    else:
        bands = sum(count for _, count in runs)
        a_loads, b_loads, d_loads = bands * m * k, 0, 0
        spilled = (bands - 1) * m * l
        for band, count in runs:
            b_loads += count * band.extent * u * (k + (band.blocks - 1) * (k - band.kept_first))
            d_loads += count * band.extent * (l + (band.blocks - 1) * (l - band.kept_second))
        for values, times in kept:  # Y first: it saves a store and a load
            saved_y = min(values, m * l)
            spilled -= times * saved_y
            a_loads -= times * (values - saved_y)
    loads = {"A": a_loads, "B": b_loads, "D": d_loads, "H": hidden, "Y": spilled}
    stores = {"H": hidden, "Y": m * l + spilled}
    return ChainPlan(side, tuple(runs), chain, capacity, loads, stores, peak)


def best_chain_plan(chain: Chain, side: str, capacity: int, rule: str = "any") -> ChainPlan | None:
    """The plan along one side that moves least, or None when no band fits.

    Parameters
    ----------
    side : {"rows", "hidden"}
        What the bands are cut from.
    rule : {"any", "panel", "block", "spill"}
        ``panel``: all columns stay between blocks of one column (or row). ``block``: nothing stays but the block.
        ``spill``: Y stationary, H spilled.

    Raises
    ------
    InfeasibleError
        Capacity below 3.

    Notes
    -----
    Cost: O(sqrt(m) + sqrt(f)) evaluations.
    """
    if capacity < 3:
        raise InfeasibleError(
            f"capacity: got {capacity} elements, expected at least 3 (two operands and a result): no schedule exists."
        )
    plans = [p for sizes in _splits(chain, side, capacity) if (p := _plan(chain, side, sizes, capacity, rule))]
    return min(plans, key=lambda p: (p.elements, sum(count for _, count in p.runs), p.peak_elements), default=None)
