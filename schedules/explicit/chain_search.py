"""Search for the bands of a fused schedule, and their exact traffic."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np

from pebble.errors import InfeasibleError
from pebble.schedules.explicit.blocked import block_sizes, even
from pebble.schedules.explicit.chain import (
    Chain,
    ChainBand,
    ChainPlan,
    handed_on,
    is_panel,
    spare_values,
    state_of,
    values_held,
)
from pebble.schedules.explicit.chain_bands import best_band
from pebble.schedules.explicit.chain_costs import Costs
from pebble.units import ceil_div
from pebble.workloads.widths import FastMemory

_MOST_MIXED = 24  # bands of a kind, beyond which nothing is mixed with it
_LOOK_CLOSELY = 8
FEW_CELLS = 1 << 14  # of H in a small chain, where estimates are rough and the best changes with every value of memory
_LOOK_AT_SMALL, _ROUGH = 24, 1.15
_BELOW = 4  # capacities for which its bands are proposed
_FEW_HEIGHTS = 16  # of bands under a mask, all of which are tried
_NEAR = 1.03  # estimates are that good where it matters
_MOVE_SPLIT = 2  # mixtures whose split is moved row by row
_HEIGHTS = 25  # heights of the first kind of bands

# what is tried inside bands, and by which rule of `best_band` it is built
RULES = {"panel": ("panel",), "block": ("block",), "spill": ("spill",), "any": ("panel", "keep", "spill")}
Cut = list[tuple[str, int, int]]  # rule, total extent, number of bands


def _fewest_first(estimate: tuple[float, Cut]) -> tuple[float, int]:
    """The cheapest, and among equals the one with the fewest bands."""
    value, cut = estimate
    return value, sum(count for _, _, count in cut)


def _uniform(costs: Costs, rules: tuple[str, ...], extent: int, close: int) -> list[tuple[float, Cut]]:
    """Bands of one rule and nearly one extent, the cheapest first."""
    results: list[tuple[float, Cut]] = []
    for rule in rules:
        fewest = ceil_div(extent, max(1, min(extent, costs.highest(rule))))
        more = np.geomspace(fewest, extent, 100).astype(np.int64)
        tried = {*range(fewest, fewest + 40), *more.tolist(), extent}  # np.unique would load numpy.ma
        counts = np.array(sorted(count for count in tried if 1 <= count <= extent))
        value = costs.evened(rule, np.float64(extent), counts.astype(float))
        order = np.argsort(value, kind="stable")[:close]
        results += [(float(value[i]), [(rule, extent, int(counts[i]))]) for i in order if np.isfinite(value[i])]
        results += [(np.inf, [(rule, extent, int(counts[0]))])]  # the estimate may refuse what just fits
    return sorted(results, key=_fewest_first)


def _mixed(
    costs: Costs, rules: tuple[str, ...], extent: int, plain: list[tuple[float, Cut]], close: int
) -> list[tuple[float, Cut]]:
    """Two kinds of bands one after the other, for each pair of numbers the best height of the first."""
    results: list[tuple[float, Cut]] = []
    parts = np.linspace(0, 1, _HEIGHTS)
    for item in rules:
        best = next((cut[0][2] for value, cut in plain if cut[0][0] == item and np.isfinite(value)), 0)
        if not best or best > _MOST_MIXED:
            continue
        for two in rules:
            highest = [min(extent, costs.highest(rule)) for rule in (item, two)]
            firsts, others = np.arange(1, max(best, 3) + 2), np.arange(1, 4 if item != two else 3)
            first, second = (x.ravel()[:, None].astype(float) for x in np.meshgrid(firsts, others))
            low = np.maximum(first, extent - second * highest[1])
            high = np.minimum(first * highest[0], extent - second)
            fits = (low <= high).ravel()
            if not fits.any():
                continue
            first, second, low, high = (x[fits] for x in (first, second, low, high))
            jumps = [costs.jumps(rule) for rule in (item, two)]
            at = [low + (high - low) * parts, first * jumps[0], extent - second * jumps[1]]
            rows = np.clip(np.floor(np.concatenate(at, axis=1)), low, high)
            rest = extent - rows
            value = costs.evened(item, rows, first + 0 * rows) + costs.evened(two, rest, second + 0 * rows)
            best_of = value.argmin(axis=1)
            for i, j in enumerate(best_of):
                if np.isfinite(value[i, j]):
                    total = int(rows[i, j])
                    cut = [(item, total, int(first[i, 0])), (two, extent - total, int(second[i, 0]))]
                    results.append((float(value[i, j]), cut))
    return sorted(results, key=_fewest_first)[:close]


def _few_high(chain: Chain, side: str, memory: FastMemory, rule: str) -> list[ChainPlan]:
    """Bands for a causal mask or a strict softmax: as few and as high as fit, one rule for all."""
    extent, across = (chain.m, chain.f) if side == "rows" else (chain.f, chain.m)
    heights = {extent}
    for size, of in memory.limits:
        state, factor = state_of(chain, of, True), state_of(chain, of, False)
        for blocks in (1, across):
            cell = of.hidden * chain.streams * ceil_div(across, blocks)
            for carried in (0, of.partial * chain.l, of.read * chain.k + of.partial * chain.l):
                for more in {0, of.read, state, factor, factor + of.read}:  # softmax state, and the vector
                    heights.add((size - of.read) // (cell + carried + more))
    fit = sorted(e for e in heights if 1 <= e <= extent and best_band(chain, side, e, memory, rule)) or [1]
    tallest = _tallest(chain, side, memory, rule, fit[-1], extent)
    fit += [tallest] if tallest > fit[-1] else []
    cuts: list[Cut] = []
    for size in block_sizes(extent, tallest, 64):
        cuts.append([(rule, extent, ceil_div(extent, size))])
        if chain.masked and len(cuts) > 3:
            break
    few = set(range(1, tallest + 1) if tallest <= _FEW_HEIGHTS else (e for e in fit if 2 * e >= tallest))
    few |= set(islice(block_sizes(extent, tallest), _FEW_HEIGHTS)) if chain.masked and tallest < extent else set()
    for high in sorted(few):
        most = extent // high
        for count in range(max(1, most - 1), most + 1):
            rest = extent - count * high
            cuts += [[(rule, rest, others), (rule, count * high, count)] for others in range(1, min(rest, 3) + 1)]
    return [plan for cut in cuts if (plan := built(chain, side, memory, cut))]


def _tallest(chain: Chain, side: str, memory: FastMemory, rule: str, low: int, high: int) -> int:
    """The highest band that fits, not below one that does."""
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if best_band(chain, side, middle, memory, rule) else (low, middle - 1)
    return low


def _plans(chain: Chain, side: str, memory: FastMemory, rule: str, below: float) -> list[ChainPlan]:
    """The plans that look best, built exactly; only what may well move less than ``below``."""
    if chain.masked or chain.whole_rows:
        return _few_high(chain, side, memory, rule)
    extent, rules = (chain.m if side == "rows" else chain.f), RULES[rule]
    if side == "hidden":
        rules = tuple(item for item in rules if item != "spill")
    if chain.one_pass and side == "hidden":
        return [plan for element in rules if (plan := built(chain, side, memory, [(element, extent, 1)]))]
    small = chain.m * chain.f <= FEW_CELLS
    near = (_ROUGH if small else _NEAR) * below
    cuts: dict[tuple[tuple[str, int, int], ...], None] = {}
    for less in memory.smaller(_BELOW if small else 1):  # what fits less memory fits more
        costs = Costs(chain, side, less)
        looks = _looks_best(costs, rules, extent, _LOOK_AT_SMALL if small else _LOOK_CLOSELY)
        cuts |= dict.fromkeys(tuple(cut) for about, cut in looks if about - costs.beyond < near or below == np.inf)
    results: list[tuple[int, int, ChainPlan, Cut]] = []
    for cut in map(list, cuts):
        if plan := built(chain, side, memory, cut):
            results.append((plan.bytes, len(results), plan, cut))
    results.sort(key=lambda single: single[:2])
    return [
        _traffic_split(plan, cut) if len(cut) == 2 and i < _MOVE_SPLIT and plan.bytes < near else plan
        for i, (*_, plan, cut) in enumerate(results)
    ]


def _looks_best(costs: Costs, rules: tuple[str, ...], extent: int, close: int) -> list[tuple[float, Cut]]:
    """What looks best of one kind of bands and of two; at the end each rule as the estimate may refuse it."""
    plain = _uniform(costs, rules, extent, close)
    cuts = sorted([*plain, *_mixed(costs, rules, extent, plain, close)], key=_fewest_first)
    return [*cuts[:close], *cuts[-len(rules) :]]


def built(chain: Chain, side: str, memory: FastMemory, cut: Cut) -> ChainPlan | None:
    """The plan of bands that are as even as whole numbers allow, or None where one does not fit."""
    sizes = [(size, count, rule) for rule, total, number in cut for size, count in even(total, number)]
    return _plan(chain, side, sizes, memory)


def _traffic_split(best: ChainPlan, cut: Cut) -> ChainPlan:
    """The same with the split between two kinds where it is best, by steps of half the length."""
    (single, rows, count), (other, rest, number) = cut
    step = max(1, min(rows, rest) // 16)
    while step:
        tried = [
            (plan.bytes, shifted, plan)
            for shifted in (rows - step, rows + step)
            if shifted >= count and rows + rest - shifted >= number
            for plan in [
                built(
                    best.chain,
                    best.side,
                    best.memory,
                    [(single, shifted, count), (other, rows + rest - shifted, number)],
                )
            ]
            if plan is not None
        ]
        least = min(tried, key=lambda t: t[:2], default=None)
        if least is not None and least[0] < best.bytes:
            rest, rows, best = rows + rest - least[1], least[1], least[2]
        else:
            step //= 2
    return best


def _plan(chain: Chain, side: str, sizes: list[tuple[int, int, str]], memory: FastMemory) -> ChainPlan | None:
    """The plan for bands of these sizes, numbers and rules, or None when one does not fit."""
    runs: list[tuple[ChainBand, int]] = []
    for extent, count, rule in sizes:
        band = best_band(chain, side, extent, memory, rule)
        if band is None or (chain.one_pass and side == "hidden" and extent < chain.f):
            return None
        runs.append((band, count))
    if not chain.masked:  # neighbours alike in room keep most for each other
        runs.sort(key=lambda run: run[0].peaks)
    plan = plan_of_runs(chain, side, runs, memory)
    # vectors at a corner are half of those that stream by, at most; where much is spare, as many fit beside the bands
    panels = [band for band, _ in runs if is_panel(chain, side, band)]
    if panels and sum(count for _, count in runs) > 1:
        spare = max(spare_values(side, memory, band.peaks) for band in panels)
        if spare >= chain.f // 2 * chain.weights_per_column:
            plan = min(
                plan, plan_of_runs(replace(chain, turns=False), side, runs, memory), key=lambda single: single.bytes
            )
    return plan


def seen_in_all(chain: Chain, rows: int, extent: int, bands: int) -> int:
    """Columns of H that bands of one extent see in all, counted at the end of each; so many rows come before."""
    more = _floor_sum(bands, chain.masked, extent, rows - 1 + extent) if chain.masked else 0
    return bands * chain.seen(1) + more


def _bands_that_keep(chain: Chain, rows: int, band: ChainBand, memory: FastMemory) -> int:
    """Of equal bands after those rows, how many may keep all that they saw of B and D for the next."""
    columns = spare_values("rows", memory, band.peaks) // chain.weights_per_column
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


def plan_of_runs(chain: Chain, side: str, runs: list[tuple[ChainBand, int]], memory: FastMemory) -> ChainPlan:
    """The plan of these bands in this order, with what each keeps for the next."""
    carried, peak, done, columns = [], 0, 0, 0
    before: ChainBand | None = None
    for band, count in runs:
        peak = max(peak, values_held(chain, side, band, memory))
        if before is not None:
            between = handed_on(chain, side, memory, before, band, chain.seen(done))
            carried.append((between.values, 1))
            peak = max(peak, between.peak)
        last = done + count * band.extent
        if count > 1:  # the same band again: with a mask what it sees grows, until it no longer fits
            between = handed_on(chain, side, memory, band, band, chain.seen(last - band.extent))
            peak = max(peak, between.peak)
            whole = 0
            if chain.masked and side == "rows":
                whole = min(count - 1, _bands_that_keep(chain, done, band, memory))
                carried.append((chain.weights_per_column * seen_in_all(chain, done, band.extent, whole), 1))
            carried.append((between.values, count - 1 - whole))
        columns += seen_in_all(chain, done, band.extent, count) if side == "rows" else count * chain.f
        before, done = band, last
    return ChainPlan(side, tuple(runs), chain, memory, *_totals(chain, side, runs, carried, columns), peak)


def _totals(
    chain: Chain,
    side: str,
    runs: list[tuple[ChainBand, int]],
    carried: list[tuple[int, int]],
    columns: int,
) -> tuple[dict[str, int], dict[str, int]]:
    """Loads and stores by operand; ``columns``: of H that the bands go through, in all (rows of weights streamed)."""
    m, k, l, u = chain.m, chain.k, chain.l, chain.streams
    spilled = hidden = 0
    if side == "rows":
        a_loads = 0
        for band, count in runs:
            hidden += count * band.extent * band.spilled
            a_loads += count * band.extent * (k + (band.blocks - 1) * (k - band.carried_first))
            spilled += count * band.extent * (band.blocks - 1) * (l - band.carried_second)
        b_loads, d_loads = columns * u * k, columns * l
        for values, times in carried:  # column by column of H: B, then D
            whole, rest = divmod(values, u * k + l)
            saved_b = whole * u * k + min(rest, u * k)
            b_loads -= times * saved_b
            d_loads -= times * (values - saved_b)
    else:
        bands = sum(count for _, count in runs)
        a_loads, b_loads, d_loads = bands * m * k, 0, 0
        spilled = (bands - 1) * m * l
        for band, count in runs:
            b_loads += count * band.extent * u * (k + (band.blocks - 1) * (k - band.carried_first))
            d_loads += count * band.extent * (l + (band.blocks - 1) * (l - band.carried_second))
        for values, times in carried:  # Y first: it saves a store and a load
            saved_y = min(values, m * l)
            spilled -= times * saved_y
            a_loads -= times * (values - saved_y)
    loads = {"A": a_loads, "B": b_loads, "D": d_loads, "H": hidden, "Y": spilled}
    stores = {"H": hidden, "Y": m * l + spilled}
    return loads, stores


def best_chain_plan(
    chain: Chain, side: str, memory: FastMemory, rule: str = "any", below: float = np.inf
) -> ChainPlan | None:
    """The plan along one side that moves least, or None when no band fits.

    Parameters
    ----------
    side : {"rows", "hidden"}
        What the bands are cut from.
    memory : FastMemory
        The memory; in the classic game `Room.of_values`.
    rule : {"any", "panel", "block", "spill"}
        ``panel``: all columns stay between blocks of one column (or row). ``block``: nothing stays but the block.
        ``spill``: Y stationary, H spilled.
    below : float
        What another schedule moves, as `ChainPlan.bytes`: what looks worse by some per cent need not be built.

    Raises
    ------
    InfeasibleError
        Room for less than two operands and a result.

    Notes
    -----
    Cost: O(sqrt(m) + sqrt(f)) evaluations.
    """
    if memory.limits[-1][0] < 3:
        raise InfeasibleError(
            f"capacity: got {memory.limits[-1][0]} elements, expected at least 3 (two operands and a result): no "
            "schedule exists."
        )
    plans = _plans(chain, side, memory, rule, below)
    return min(plans, key=lambda p: (p.bytes, sum(count for _, count in p.runs), p.peak_elements), default=None)
