"""Search for the bands of a GEMM schedule: closed forms over all kinds of bands at once, the best built exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pebble.errors import InfeasibleError
from pebble.schedules.explicit.blocked import BlockedProduct, block_sizes, blocked_products, even, largest_partner
from pebble.schedules.explicit.corner import FloatArray, vectors_carried
from pebble.schedules.explicit.gemm import (
    AXES,
    Band,
    BandedProduct,
    GateAndUp,
    operand_of,
    other_axes,
    taken,
    visit_costs,
)
from pebble.schedules.explicit.remainder import BandsWithRemainder, remainders
from pebble.units import ceil_div
from pebble.workloads import Gemm
from pebble.workloads.widths import ALIKE, FastMemory

_MOST_BLOCKS = 512  # sizes of blocks, beyond which only every 256th part is tried
_NARROWER = (0, 1 / 64, 1 / 32, 1 / 16, 1 / 8)  # more bands than the fewest: what is left beside blocks turns corners
_KINDS = 8  # kinds of bands that are mixed
_COUNTS = 10  # numbers of bands of the first kind
_SPLITS = 9  # widths of the first kind in all
_LOOK_CLOSELY = 12
_FEW_UPDATES = 1 << 24  # of a small product, where what looks best changes with every value of memory
_BELOW = 4  # capacities for which its bands are proposed
_LOOK_AT_SMALL, _ROUGH = 64, 1.15  # its bands of one kind: how many, and how good an estimate is
_MOVE_SPLIT = 2  # mixtures whose split is moved value by value

IntArray = npt.NDArray[np.int64]
Part = tuple[str, int, int, int]  # operand that stays, blocks, total width, bands
ExplicitProduct = BandedProduct | BandsWithRemainder | BlockedProduct
_Bands = TypeVar("_Bands", bound=BandedProduct)


@dataclass(frozen=True)
class _Kinds:
    """Kinds of bands along one axis, as arrays of one shape: which operand stays, and in how many blocks."""

    capacity: int
    stationary: npt.NDArray[np.str_]
    blocks: FloatArray
    block: FloatArray  #: the longest block
    widest: FloatArray  #: band whose blocks fit
    extents: tuple[FloatArray, FloatArray]  #: p, and the streamed one
    weights: tuple[FloatArray, FloatArray, FloatArray]  #: bytes of a visit of P, of Q and of what stays
    taken: tuple[FloatArray, FloatArray, FloatArray]  #: what a value of them takes of the capacity

    @classmethod
    def of(cls, gemm: Gemm, memory: FastMemory, axis: str, streams: int) -> _Kinds:
        """Every kind with a block that fits."""
        rows, capacity, of, visit = [], memory.bytes, taken(memory.widths, streams), visit_costs(memory, streams)
        for stationary, (first, second, _) in AXES.items():
            if axis not in (first, second):
                continue
            p_axis, r_axis = other_axes(stationary, axis)
            p, r = gemm.along(p_axis), gemm.along(r_axis)
            visited = (operand_of(p_axis, r_axis), operand_of(axis, r_axis), stationary)
            own, wider = of[stationary], max(of[name] for name in visited[:2])
            widths = [each[name] for each in (visit, of) for name in visited]
            for size in block_sizes(p, capacity // own, _MOST_BLOCKS):
                if widest := min(largest_partner(capacity, size, own, wider), gemm.along(axis)):
                    rows.append((stationary, ceil_div(p, size), size, widest, p, r, *widths))
        names, *numbers = zip(*rows, strict=True) if rows else ((), *[()] * 11)
        blocks, block, partner, *rest = (np.array(x, float) for x in numbers)
        sides, weights, takes = (rest[0], rest[1]), (rest[2], rest[3], rest[4]), (rest[5], rest[6], rest[7])
        return cls(capacity, np.array(names, "U1"), blocks, block, partner, sides, weights, takes)

    def take(self, index: IntArray) -> _Kinds:
        """Some of them, in the shape of the index."""
        pick: Callable[[FloatArray], FloatArray] = lambda values: values[index]  # noqa: E731
        extents, weights, taken = ([pick(x) for x in group] for group in (self.extents, self.weights, self.taken))
        return _Kinds(
            self.capacity,
            self.stationary[index],
            pick(self.blocks),
            pick(self.block),
            pick(self.widest),
            (extents[0], extents[1]),
            (weights[0], weights[1], weights[2]),
            (taken[0], taken[1], taken[2]),
        )

    def down(self, width: FloatArray) -> FloatArray:
        """About how many vectors of P pass from one band of this width to the next."""
        of_p, of_q, own = self.taken
        carried = vectors_carried(self.spare(width), own * self.block, width, of_q, of_p * self.block)
        return np.minimum(carried, self.extents[1])

    def spare(self, width: FloatArray) -> FloatArray:
        """What is left beside a block of a band of this width."""
        return np.asarray(self.capacity - self.taken[2] * width * self.block)

    def cost(self, width: FloatArray, count: FloatArray) -> FloatArray:
        """About how many bytes so many bands of this width move: P once, Q once a block, what stays once."""
        (p, r), (of_p, of_q, of_block), (footprint_p, footprint_q, own) = self.extents, self.weights, self.taken
        carried = vectors_carried(self.spare(width), own * width, self.block, footprint_p, footprint_q * width)
        across = np.minimum(carried, r / 2)
        down = np.minimum(self.down(width), np.where(self.blocks > 1, r - across, np.where(count > 2, r // 2, r)))
        of_band = of_p * p * r + of_q * width * (self.blocks * r - (self.blocks - 1) * across) + of_block * width * p
        return np.asarray(count * of_band - (count - 1) * of_p * down * self.block)


def _uniform(kinds: _Kinds, q: int) -> tuple[FloatArray, IntArray, IntArray]:
    """Bands of one kind and nearly one width: about what they cost, the kind, and their number; cheapest first."""
    fewest = np.ceil(q / kinds.widest)
    more = np.array([np.floor(fewest * part) + i for part in _NARROWER for i in range(3)])
    more[3:][more[3:] <= np.maximum.accumulate(more)[2:-1]] = np.inf  # the same again, of few bands
    count = (fewest + more).T.ravel()
    index = np.repeat(np.arange(len(kinds.blocks)), len(more))[count <= q]
    count = count[count <= q]
    some = kinds.take(index)
    cost = some.cost(q / count, count)
    order = np.argsort(cost, kind="stable")
    return cost[order], index[order], count[order].astype(np.int64)


def _mixed(kinds: _Kinds, q: int) -> Iterator[tuple[float, tuple[Part, ...]]]:
    """Two kinds side by side, for each number of bands of both the best split of the width."""
    total = len(kinds.blocks)
    single, two, step, more = (
        x.ravel() for x in np.meshgrid(*map(np.arange, (total, total, _COUNTS, 2)), indexing="ij")
    )
    keep = single < two
    single, two, step, more = single[keep], two[keep], step[keep], more[keep]
    most = np.ceil(q / kinds.widest[single])
    first = np.floor(1 + (most - 1) * step / (_COUNTS - 1))
    second = np.ceil(np.maximum(1, q - first * kinds.widest[single]) / kinds.widest[two]) + more
    low = np.maximum(first, q - second * kinds.widest[two])
    high = np.minimum(first * kinds.widest[single], q - second)
    # repeated counts of few bands, and what leaves nothing for one of them
    fits = (low <= high) & ((step == 0) | (first > np.floor(1 + (most - 1) * (step - 1) / (_COUNTS - 1))))
    single, two, first, second, low, high = (x[fits][:, None] for x in (single, two, first, second, low, high))
    if not len(single):
        return
    width = np.floor(low + (high - low) * np.linspace(0, 1, _SPLITS))
    index = np.zeros_like(width, dtype=np.int64)
    a, b = kinds.take(single + index), kinds.take(two + index)
    cost = a.cost(width / first, first) + b.cost((q - width) / second, second)
    carried = np.minimum(a.down(width / first), b.down((q - width) / second))
    shared = np.where(a.stationary == b.stationary, np.minimum(a.block, b.block) * carried * a.weights[0], 0)
    cost -= shared
    best = cost.argmin(axis=1)
    rows = np.arange(len(best))
    least = cost[rows, best]
    for i in np.argsort(least, kind="stable")[:_LOOK_CLOSELY]:
        split = int(width[i, best[i]])
        parts = [(single[i, 0], split, int(first[i, 0])), (two[i, 0], q - split, int(second[i, 0]))]
        yield float(least[i]), tuple((str(kinds.stationary[k]), int(kinds.blocks[k]), w, c) for k, w, c in parts)


def _bands(parts: tuple[Part, ...]) -> tuple[Band, ...]:
    return tuple(
        Band(kind, width, blocks, n) for kind, blocks, total, count in parts for width, n in even(total, count)
    )


def _traffic_split(best: _Bands, parts: tuple[Part, ...]) -> _Bands:
    """The same with the split between two kinds where it is best, by steps of half the length."""
    (single, blocks, width, count), (other, cut, rest, number) = parts
    step = max(1, min(width, rest) // 16)
    while step:
        tried = []
        for traffic in (width - step, width + step):
            if traffic >= count and width + rest - traffic >= number:
                split = (single, blocks, traffic, count), (other, cut, width + rest - traffic, number)
                tried.append((replace(best, bands=_bands(split)), traffic))
        fit = [(s.bytes, traffic_bytes, s) for s, traffic_bytes in tried if s.fits]
        least = min(fit, key=lambda t: t[:2], default=None)
        if least is not None and least[0] < best.bytes:
            rest, width, best = width + rest - least[1], least[1], least[2]
        else:
            step //= 2
    return best


def _is_small(gemm: Gemm) -> bool:
    return gemm.m * gemm.n * gemm.k <= _FEW_UPDATES


def _proposed(gemm: Gemm, memory: FastMemory, axes: str, streams: int) -> list[tuple[str, tuple[Part, ...]]]:
    """The axis and the parts of what looks best in a memory."""
    plans: list[tuple[float, str, tuple[Part, ...]]] = []
    one_kind: list[tuple[float, str, tuple[Part, ...]]] = []
    for axis in axes:
        kinds, q = _Kinds.of(gemm, memory, axis, streams), gemm.along(axis)
        if not len(kinds.blocks):
            continue
        cost, index, count = _uniform(kinds, q)
        for i in range(min(_LOOK_AT_SMALL if _is_small(gemm) else _LOOK_CLOSELY, int(np.isfinite(cost).sum()))):
            kind = index[i]
            part = (str(kinds.stationary[kind]), int(kinds.blocks[kind]), q, int(count[i]))
            one_kind.append((float(cost[i]), axis, (part,)))
        best = list(dict.fromkeys(index[np.isfinite(cost)].tolist()))[:_KINDS]
        plans += [(value, axis, tuple(parts)) for value, parts in _mixed(kinds.take(np.array(best)), q)]
    both = sorted([*one_kind, *plans], key=lambda plan: plan[0])
    best = both[:_LOOK_CLOSELY]
    if _is_small(gemm):  # estimates are rough where a corner is a few vectors
        best += [plan for plan in one_kind if plan[0] < _ROUGH * both[0][0]]
    return [(axis, parts) for _, axis, parts in best]


def banded_products(gemm: Gemm, memory: FastMemory, axes: str = "mnk") -> list[BandedProduct]:
    """The schedules in bands along some axes that look best, built exactly, the one with the least bytes first.

    Cost: some milliseconds.
    """
    return _banded(BandedProduct, gemm, memory, axes)


def best_gate_and_up(gemm: Gemm, memory: FastMemory) -> GateAndUp | None:
    """The bands for both first products of a gated network that move the least bytes; None where no pair of cells fits.

    Parameters
    ----------
    gemm : Gemm
        One of both products.
    memory : FastMemory
        As for a kernel whose result is an intermediate.
    """
    plans = (plan for plan in _banded(GateAndUp, gemm, memory, "mn") if not plan.spilled)
    return next(plans, None)


def _banded(kind: type[_Bands], gemm: Gemm, memory: FastMemory, axes: str) -> list[_Bands]:
    plans: dict[tuple[str, tuple[Part, ...]], None] = {}
    for less in memory.smaller(_BELOW if _is_small(gemm) else 1):  # what fits less memory fits more
        plans |= dict.fromkeys(_proposed(gemm, less, axes, kind.streams))
    results: list[tuple[int, int, int, _Bands, tuple[Part, ...]]] = []
    for axis, parts in plans:
        schedule = kind(gemm, memory, axis, _bands(parts))
        if schedule.fits:
            results.append((schedule.bytes, schedule.elements, len(results), schedule, parts))
    results.sort(key=lambda single: single[:3])
    done = [
        _traffic_split(schedule, parts) if len(parts) == 2 and i < _MOVE_SPLIT else schedule
        for i, (*_, schedule, parts) in enumerate(results)
    ]
    return sorted(done, key=lambda s: (s.bytes, s.elements))


@lru_cache(maxsize=1 << 10)
def best_gemm_schedule(gemm: Gemm, memory: FastMemory) -> ExplicitProduct:
    """The schedule with the least bytes moved: in bands, with a corner apart, in equal blocks; ties go to the first.

    Raises
    ------
    InfeasibleError
        Not one value of each operand fits.
    """
    of = taken(memory.widths)
    what, least = ("bytes", sum(of.values())) if memory.widths != ALIKE else ("elements", 3)
    if memory.bytes < least or not memory.holds(3):
        got, least = (memory.bytes, least) if memory.bytes < least else (memory.values, 3)
        raise InfeasibleError(
            f"capacity: got {got} {what}, expected at least {least} {what} (a value each of A, B and C): no schedule "
            "exists."
        )
    results: list[ExplicitProduct] = [
        *banded_products(gemm, memory)[:1],
        *remainders(gemm, memory),
        *(product for product in blocked_products(gemm, memory) if product.fits),
    ]
    if not results:
        raise InfeasibleError(f"capacity: got {memory.values} values, expected more: no schedule found holds so few.")
    return min(results, key=lambda s: (s.bytes, s.elements))
