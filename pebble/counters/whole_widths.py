"""A model's dimensions as whole numbers, where the library's tiles say what its counters count beyond the values.

cuBLAS's kernels for Hopper multiply whole clusters of tiles, and their TMA stores touch a sector twice where a tile
ends inside one. Both follow from the tile in the name (`LibraryTile`), so the counters of a product of M x N x K are
known exactly, and the widths are those whole numbers that the counters of all products of a layer agree on: M and N by
the stores of the attention's projection, K of each product by its operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pebble.counters.names import LibraryTile

_STEP = 8  # widths are multiples of it
_WIDEST, _WIDEST_OF_ALL = 1 << 16, 1 << 20  # a vocabulary is the widest
_FEW = 64  # of numbers that are tried one by one
_NEAR = 0.01  # of a count of stores between the two partitions
_LEAST, _MOST = 0.7, 1.45  # of a width, by counters as if they counted values alone
_SECTOR = 32


class Off(NamedTuple):
    """By how much operations and stores differ from those of some dimensions."""

    operations: float
    stores: float


class Counted(NamedTuple):
    """What a product's counters say: sectors stored, M N K with what is padded, and its tiles.

    ``stores``: the tiles that its result is stored by; None where another kernel adds its parts and fills sectors.
    """

    sectors: float
    products: float
    tile: LibraryTile
    stores: LibraryTile | None

    def row_sectors(self, cols: int, value_bytes: int) -> float:
        """Sectors that the stores of a row of so many values touch."""
        return cols * value_bytes / _SECTOR if self.stores is None else self.stores.row_sectors(cols, value_bytes)

    def depth(self, rows: int, cols: int) -> float:
        """K."""
        return self.products / self.tile.padded(rows, cols)

    def off(self, rows: int, cols: int, depth: int, value_bytes: int) -> Off:
        """By how much the counters differ from those of a product of M x N x K."""
        stored = rows * self.row_sectors(cols, value_bytes)
        return Off(_off(self.depth(rows, cols), depth), _off(self.sectors, stored))


class WholeWidths(NamedTuple):
    """Dimensions, and by how much the counters of any product differ from theirs.

    ``inputs``: columns of the products before the attention; ``ups``: of those into the feed-forward network.
    """

    rows: int
    hidden: int
    query: int
    inside: int
    inputs: tuple[int, ...]
    ups: tuple[int, ...]
    gated: bool
    off: Off

    @property
    def rank(self) -> tuple[float, float, int]:
        """The least is the best: stores between two partitions are counted less exactly than operations."""
        return round(max(self.off.operations, self.off.stores - _NEAR), 4), self.off.stores, -(self.rows & -self.rows)


def whole_widths(
    inputs: Sequence[Counted], after: Sequence[Counted], value_bytes: int, rows: int | None = None
) -> WholeWidths | None:
    """The dimensions that the products of a layer have; None where no widths are near the counters.

    Parameters
    ----------
    inputs, after : sequence of Counted
        Products before the attention; its projection, those into the feed-forward network and the one out of it.
    value_bytes : int
        Of a stored value.
    rows : int, optional
        M, where it is known.
    """
    found: WholeWidths | None = None
    for m, hidden in _sides(inputs[0], after[0], value_bytes, rows):
        found = _fit(inputs, after, value_bytes, m, hidden, found) or found
    return found


def columns(product: Counted, rows: int, depth: int, value_bytes: int) -> int | None:
    """N of a product of so many rows and K, by its operations and what it stores; of equals the roundest.

    A part of a sector is stored as a whole, and of tiles beyond the edge operations tell nothing: so several may fit.
    """
    about = product.sectors * _SECTOR / rows / value_bytes
    if not 1 <= about < _WIDEST_OF_ALL:
        return None
    least = max(1, int(_LEAST * about))
    near = range(least, int(about * (1 + _NEAR)) + 1 + _STEP)
    tried = near if len(near) < _FEW else range(-(-least // _STEP) * _STEP, near.stop, _STEP)

    def off(n: int) -> tuple[float, float, int]:
        by = product.off(rows, n, depth, value_bytes)
        return round(max(by.operations, by.stores - _NEAR), 4), round(by.stores, 6), -(n & -n)

    return min(tried, key=off)


def _sides(first: Counted, projection: Counted, value_bytes: int, rows: int | None) -> Iterator[tuple[int, int]]:
    """M and the width of the model that the stores of the projection allow, near K of the first product."""
    about = first.products / (first.sectors * _SECTOR / value_bytes)
    for hidden in range(max(_STEP, int(_LEAST * about) // _STEP * _STEP), min(_WIDEST, int(_MOST * about)), _STEP):
        exact = projection.sectors / projection.row_sectors(hidden, value_bytes)
        if rows is not None:
            if abs(exact / rows - 1) <= _NEAR:
                yield rows, hidden
            continue
        whole = {max(1, round(exact / step)) * step for step in (1, 8, 64)}
        yield from ((m, hidden) for m in sorted(whole) if abs(exact / m - 1) <= _NEAR)


def _fit(
    inputs: Sequence[Counted], after: Sequence[Counted], value_bytes: int, rows: int, hidden: int,
    best: WholeWidths | None,
) -> WholeWidths | None:  # fmt: skip
    """What the counters say where M and the width of the model are these, if that is nearer than the best."""
    projection, *into, out = after
    query, inside = (round(each.depth(rows, hidden)) for each in (projection, out))
    if not query or not inside:
        return None
    off = [each.off(rows, hidden, k, value_bytes) for each, k in ((projection, query), (out, inside))]
    widths: list[int] = []
    for each in (*inputs, *into):
        lost = best is not None and max(by.operations for by in off) > best.off.operations + _NEAR
        n = None if lost else columns(each, rows, hidden, value_bytes)
        if n is None:
            return None
        off.append(each.off(rows, n, hidden, value_bytes))
        widths.append(n)
    first, ups = tuple(widths[: len(inputs)]), tuple(widths[len(inputs) :])
    gated = len(ups) == 2 or ups[0] / inside > 2**0.5
    apart = [_off(sum(ups), inside * (2 if gated else 1))]
    if len(first) == 3:
        apart += [_off(first[0], query), _off(first[1], first[2])]
    operations, stores = max(by.operations for by in off), max(by.stores for by in off)
    fit = WholeWidths(rows, hidden, query, inside, first, ups, gated, Off(max(operations, *apart), stores))
    return fit if best is None or fit.rank < best.rank else None


def _off(value: float, other: float) -> float:
    return max(value, other) / min(value, other) - 1
