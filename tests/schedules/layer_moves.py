"""Moves of a layer, value by value: fast memory, products whose weights come one by one, and an FFN of some rows."""

from __future__ import annotations

from collections import Counter
from itertools import product

from pebble.workloads import TransformerLayer
from pebble.workloads.widths import Widths

Value = tuple[object, ...]


class Memory:
    """Fast memory: what it holds, at which width, and what was moved; an operation needs its operands in it."""

    def __init__(self, widths: Widths) -> None:
        self.of, self.held, self.slow = widths, dict[Value, int](), set[Value]()
        self.loads, self.stores, self.done = Counter[str](), Counter[str](), set[Value]()
        self.room = self.peak = 0

    def put(self, value: Value, width: int) -> None:
        self.room += width - self.held.get(value, 0)
        self.held[value] = width
        self.peak = max(self.peak, self.room)

    def load(self, name: str, *value: object, given: bool = True) -> None:
        assert value not in self.held and (given or value in self.slow)
        self.loads[name] += 1
        self.put(value, self.of.read)

    def store(self, name: str, *value: object) -> None:
        assert value in self.held and value not in self.slow
        self.stores[name] += 1
        self.slow.add(value)

    def drop(self, *value: object) -> None:
        self.room -= self.held.pop(value)

    def add(self, cell: Value, *operands: Value, width: int) -> None:
        """One multiply-add; each once, on complete operands."""
        assert (cell, operands) not in self.done and all(self.held[x] == self.of.read for x in operands)
        self.done.add((cell, operands))
        if cell not in self.held:
            self.put(cell, width)
        assert self.held[cell] == width

    def product(
        self, at: str, weight: str, left: str, rows: range, names: list[Value], depth: int, stays: bool
    ) -> None:
        """Columns of a product, one after the other, weights one by one."""
        for column, name in enumerate(names):
            for k in range(depth):
                if (weight, k, column) not in self.held:
                    self.load(at, weight, k, column)
                for i in rows:
                    self.add((*name, i), (left, k, i), (weight, k, column), width=self.of.hidden)
                if not stays:
                    self.drop(weight, k, column)
            for i in rows:
                self.put((*name, i), self.of.read)


def feed_forward(memory: Memory, layer: TransformerLayer, rows: range, weights_stay: bool = False) -> None:
    """Rows of P to rows of Y, hidden unit by hidden unit."""
    d, of = layer.d_model, memory.of
    gates, name = (["gate", "up"], "mlp.Wg+Wu") if layer.gated else (["gate"], "mlp.W1")
    for f in range(layer.hidden):
        for what in gates:
            memory.product(name, f"{what} {f}", "p", rows, [(what, f)], d, weights_stay)
        for i in rows if layer.gated else ():
            memory.drop("up", f, i)
        for y in range(d):
            if ("w2", f, y) not in memory.held:
                memory.load("mlp.W2", "w2", f, y)
            for i in rows:
                memory.add(("y", y, i), ("gate", f, i), ("w2", f, y), width=of.partial)
            if not weights_stay:
                memory.drop("w2", f, y)
        for i in rows:
            memory.drop("gate", f, i)
    for y, i in product(range(d), rows):
        memory.put(("y", y, i), of.written)
        memory.store("mlp.Y", "y", y, i)
        memory.drop("y", y, i)
