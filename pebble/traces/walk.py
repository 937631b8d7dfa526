"""Which k each block takes in each of its steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pebble.traces.layout import Index

Flags = bool | NDArray[np.bool_]


@dataclass(frozen=True)
class Walk:
    """Which k each block takes in each of its steps.

    Attributes
    ----------
    begin, count : int or ndarray, shape (blocks,)
        The k of a block: ``begin`` to ``begin + count - 1``.
    backwards : bool or ndarray
        From the last k to the first; a wave that runs backwards turns it, unless ``one_way``.
    start : int or ndarray
        Steps that a block is ahead: it begins there and goes round.
    one_way : bool
        Whether waves that run backwards leave it as it is.
    """

    begin: Index | int
    count: Index | int
    backwards: Flags = False
    start: Index | int = 0
    one_way: bool = False

    @cached_property
    def _alike(self) -> range | None:
        """The k of every block where all walk alike."""
        values = (self.begin, self.count, self.backwards, self.start)
        if any(np.ndim(value) for value in values) or self.start:
            return None
        return range(int(self.begin), int(self.begin) + int(self.count))

    def k(self, blocks: slice, turned: Flags) -> Index:
        """The k of each step of some blocks; ``turned`` where a wave runs backwards.

        Returns
        -------
        ndarray, shape (steps, blocks, 1) or (steps, 1, 1)
            One column where all blocks walk alike; -1 after the last step of a block that has fewer than others.

        Examples
        --------
        >>> Walk(np.array([0, 4]), np.array([3, 2])).k(slice(2), False)[..., 0].T.tolist()
        [[0, 1, 2], [4, 5, -1]]
        >>> Walk(0, 3, start=np.array([0, 1])).k(slice(2), True)[..., 0].T.tolist()
        [[2, 1, 0], [1, 0, 2]]
        """
        turned = False if self.one_way else turned
        alike = self._alike
        if alike is not None and np.ndim(turned) == 0:
            same = np.arange(alike.start, alike.stop, dtype=np.int32)[:, None, None]
            return same[::-1] if self.backwards != turned else same
        begin, count, backwards, start = self._of(blocks)
        step = np.arange(int(np.max(count)), dtype=np.int32)[:, None]
        ahead = (step + start) % np.maximum(count, 1)
        result = begin + np.where(np.not_equal(backwards, turned), count - 1 - ahead, ahead)
        return np.asarray(np.where(step < count, result, -1)[..., None])

    def first(self, blocks: int, steps: int | None = None) -> Walk:
        """That of the first blocks; of the first steps alone where they are given."""
        begin, count, backwards, start = self._of(slice(blocks))
        count = count if steps is None else np.minimum(count, steps)
        return Walk(begin, count, backwards, start, self.one_way)

    def _of(self, blocks: slice) -> list[Any]:
        """Begin, count, direction and start of some blocks."""
        values = (self.begin, self.count, self.backwards, self.start)
        return [value if np.ndim(value) == 0 else np.asarray(value)[blocks] for value in values]

    def touches(self, blocks: int, tiles: int) -> int:
        """Touches of all blocks, with so many tiles in each step."""
        return tiles * int(np.sum(self.count, dtype=np.int64)) * (blocks if np.ndim(self.count) == 0 else 1)


@dataclass(frozen=True)
class Script:
    """The same steps for every block, a k for each touch, shape (steps, touches); -1 is no touch."""

    ks: Index

    def k(self, blocks: slice, turned: Flags) -> Index:
        """The k of each touch, shape (steps, 1, touches)."""
        return self.ks[:, None]

    def first(self, blocks: int, steps: int | None = None) -> Script:
        """That of the first steps, where they are given."""
        return Script(self.ks[:steps])

    def touches(self, blocks: int, tiles: int) -> int:
        """Touches of all blocks."""
        return blocks * int(np.count_nonzero(self.ks >= 0))
