"""A memory of named values: what moves and is held is counted, not derived."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

Value = tuple[str, int, int]


class Memory:
    """Fast memory: loads what is touched, counts, and remembers what is newer than slow memory's copy.

    ``widths`` says what a value takes while it is not complete, and afterwards, where that is less; 1 if it is silent.
    """

    def __init__(
        self,
        blue: set[str],
        useless: frozenset[str] = frozenset(),
        widths: dict[str, tuple[int, int]] | None = None,
    ) -> None:
        self.blue, self.useless, self.widths = blue, useless, widths or {}
        self.red: set[Value] = set()
        self.stored: set[Value] = set()
        self.dirty: set[Value] = set()
        self.loads: Counter[str] = Counter()
        self.stores: Counter[str] = Counter()
        self.peak = 0
        self.complete: set[Value] = set()
        self.held = self.most = self.moved = 0  # as widths count

    def width(self, value: Value) -> int:
        """What it takes now."""
        return self.widths.get(value[0], (1, 1))[value in self.complete]

    def touch(self, value: Value, update: bool = False) -> None:
        """It is there afterwards: loaded, if it is anywhere, else begun."""
        if value not in self.red:
            if value[0] in self.blue or value in self.stored:
                self.loads[value[0]] += 1
                self.moved += self.width(value)
            else:
                assert update, f"{value} is read and was never computed"
            self.red.add(value)
            self.peak = max(self.peak, len(self.red))
            self.held += self.width(value)
            self.most = max(self.most, self.held)
        if update:
            self.dirty.add(value)

    def drop(self, value: Value, needed: bool = True) -> None:
        """It goes, and is stored first if slow memory has no copy like it and somebody needs it."""
        if value in self.red:
            self.red.remove(value)
            width = self.width(value)
            self.held -= width
            if value in self.dirty and needed and value[0] not in self.useless:
                self.stores[value[0]] += 1
                self.moved += width
                self.stored.add(value)
            self.dirty.discard(value)

    def there(self, values: Iterable[Value]) -> None:
        """They are in fast memory from the start."""
        self.red = set(values)
        self.held = self.most = sum(map(self.width, self.red))

    def finish(self, value: Value) -> None:
        """No update comes any more: it takes less."""
        if value in self.red:
            self.held -= self.width(value)
            self.complete.add(value)
            self.held += self.width(value)
