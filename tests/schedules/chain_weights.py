"""The moves of a chain in bytes: what each value takes when it is held or moved, partial sums by their own width."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from pebble.schedules.explicit.chain import ChainPlan
from pebble.schedules.explicit.phases import Phases
from pebble.schedules.explicit.remainder import PanelsWithRemainder
from pebble.workloads.widths import Widths
from tests.schedules.chain_moves import chain_moves


class Weighed(NamedTuple):
    """What a play holds at most and moves."""

    held_bytes: int
    traffic_total: int
    loads: Counter[str]
    stores: Counter[str]


def weigh(plan: ChainPlan | PanelsWithRemainder | Phases, widths: Widths) -> Weighed:
    """Play a plan; a value that is deleted must be there, and none is left at the end."""
    chain = plan.chain
    finished: set[tuple[int, ...]] = set()
    updates: Counter[tuple[int, ...]] = Counter()
    red: set[tuple[str, tuple[int, ...]]] = set()
    loads, stores = Counter[str](), Counter[str]()
    held = traffic = 0
    seen = {(i, j) for i in range(chain.m) for j in range(chain.seen(i + 1))}

    def width(name: str, index: tuple[int, ...]) -> int:
        if name == "H":
            return widths.read if index[1:] in finished else widths.hidden
        if name == "Y":
            whole = updates[index] == sum(1 for j in range(chain.f) if (index[0], j) in seen)
            return widths.written if whole else widths.partial
        return max(widths.hidden, widths.partial) if name == "state" else widths.read

    for op, name, index in chain_moves(plan):
        value = (name, index)
        if op == "finish":
            finished.add(index)
        elif op == "compute":
            cell = ("H", index[:3]) if name == "H" else ("Y", index[:2])
            red.add(cell)
            updates[cell[1]] += name == "Y"
        elif op == "delete":
            red.remove(value)
        else:
            red.add(value)
            if op in ("load", "store"):
                (loads if op == "load" else stores)[name] += 1
                traffic += width(name, index)
        held = max(held, sum(width(*item) for item in red))
    assert not red
    return Weighed(held, traffic, loads, stores)
