"""Search for groups of heads, and for what stays between them, the projection and the FFN."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import TypeVar

from pebble.schedules.explicit.after_heads import Kernels, LastBands, Projection, Then
from pebble.schedules.explicit.fused import FusedSchedule
from pebble.schedules.explicit.head_groups import Front, HeadGroups, TokensHeld, WeightsHeld
from pebble.units import ceil_div
from pebble.workloads import TransformerLayer
from pebble.workloads.widths import FastMemory

_MORE_BANDS = 3  # than the fewest that fit, by which more columns stay
_Bands = TypeVar("_Bands", TokensHeld, LastBands)


def best_head_groups(
    layer: TransformerLayer, memory: FastMemory, kernels: Kernels | None, ffns: Iterable[FusedSchedule], below: float
) -> HeadGroups | None:
    """The one that moves least, of fewer bytes than ``below``; None where there is none.

    Parameters
    ----------
    layer : TransformerLayer
    memory : FastMemory
    kernels : Kernels, optional
        Projection and FFN by themselves.
    ffns : iterable of FusedSchedule
        FFNs of all tokens, to which rows may be handed.
    below : float
        Bytes that another schedule moves.

    Notes
    -----
    Cost: O(sqrt(kv_heads) log(tokens)) evaluations for each of about ten ways to go on.
    """
    best: HeadGroups | None = None
    handed = (way for ffn in ffns for way in _handing(layer, memory, ffn))
    ways: tuple[Then, ...] = (*([] if kernels is None else [kernels]), *handed, *_last_bands(layer, memory))
    for front, then in product(_fronts(layer, memory), ways):
        bare = HeadGroups(layer, front, 0, then, memory)
        least = bare.keeping(layer.tokens).keeping_columns(_columns(bare))
        if least.bytes >= below or not bare.fits:
            continue
        found = min(_staying(bare), key=lambda schedule: (schedule.bytes, schedule.elements))
        if found.bytes < below:
            best, below = found, found.bytes
    return best


def _fronts(layer: TransformerLayer, memory: FastMemory) -> list[Front]:
    """Weights of each number of groups, and few bands of tokens."""
    times = sorted({ceil_div(layer.kv_heads, times) for times in range(1, layer.kv_heads + 1)})
    return [*(WeightsHeld(groups) for groups in times), *_bands_of(TokensHeld, layer, memory)]


def _columns(schedule: HeadGroups) -> int:
    """Of the heads' outputs that may stay, if they fit."""
    return 0 if isinstance(schedule.then, Kernels) else schedule.layer.projection.k


def _staying(bare: HeadGroups) -> Iterator[HeadGroups]:
    """All, half or none of the columns of outputs that fit; beside them what the front keeps, then more columns."""
    every = _columns(bare)
    most = _most(bare.keeping_columns, every)
    for columns in {0, most // 2, most}:
        some = bare.keeping_columns(columns)
        if bare.front.parts(bare.layer) > 1:
            some = some.keeping(_most(some.keeping, bare.layer.tokens))
        yield some.keeping_columns(_most(some.keeping_columns, every))


def _handing(layer: TransformerLayer, memory: FastMemory, ffn: FusedSchedule) -> Iterator[Projection]:
    """As many rows as its first panel has and as fit beside the weights, and one less, to leave room for outputs."""

    def fits(handed: int) -> bool:
        return all(Projection(ffn, handed).peak(layer, 0, of) <= size for size, of in memory.limits)

    if fits(0):
        most = _largest(fits, min(ffn.first_rows, layer.tokens))
        yield from (Projection(ffn, handed) for handed in (most, most - 1) if handed >= 0)


def _last_bands(layer: TransformerLayer, memory: FastMemory) -> Iterator[LastBands]:
    """Bands of one token whose weights stay; and the fewest bands that fit, and some more."""
    if _fits(one := LastBands(1, True), layer, memory):
        yield one
    yield from _bands_of(lambda rows: LastBands(rows, False), layer, memory)


def _bands_of(of: Callable[[int], _Bands], layer: TransformerLayer, memory: FastMemory) -> Iterator[_Bands]:
    """The fewest bands of tokens that fit, and some more."""
    if _fits(of(1), layer, memory):
        tallest = _largest(lambda rows: _fits(of(max(1, rows)), layer, memory), layer.tokens)
        fewest = ceil_div(layer.tokens, tallest)
        for count in range(fewest, min(fewest + _MORE_BANDS, layer.tokens) + 1):
            yield of(ceil_div(layer.tokens, count))


def _fits(bands: TokensHeld | LastBands, layer: TransformerLayer, memory: FastMemory) -> bool:
    """Whether bands do, if no outputs stay."""
    return all(bands.peak(layer, 0, of) <= size for size, of in memory.limits)


def _most(of: Callable[[int], HeadGroups], high: int) -> int:
    """The largest number of what may stay with which it fits; 0 does."""
    return _largest(lambda number: of(number).fits, high)


def _largest(fits: Callable[[int], bool], high: int) -> int:
    """The largest number that fits, where 0 does and less than what fits fits as well."""
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
