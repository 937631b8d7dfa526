"""Panel schedules of backward passes through an intermediate: a panel of items stays, and what meets it streams by.

An item (a key, a query, a column of a hidden layer) has inputs and sums that stay with its panel. For each streamed
item (a query, a key, a token) that a panel meets, its inputs come once, its cells of the intermediate are computed,
used and dropped, and its sums are stored, and loaded but at the first panel. Or the cells are stored complete: then a
product that needs them follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from pebble.units import ceil_div
from pebble.workloads.backward import STATISTIC_BYTES, STATISTICS, AttentionBackward, FfnBackward
from pebble.workloads.widths import ALIKE, FastMemory, Widths
from pebble.workloads.workload import Workload


@dataclass(frozen=True)
class Panels:
    """What panels are made of, and what streams by: values of each item, by operand."""

    item: str  #: what a panel is made of
    items: int
    kept: Mapping[str, int]  #: inputs that stay
    kept_sums: Mapping[str, int]
    streamed: int  #: items that stream by
    inputs: Mapping[str, int]
    sums: Mapping[str, int]
    held: int  #: inputs of a streamed item that are held for two products
    met: Callable[[int], int]  #: streamed items that panels of a size meet, all panels together
    cells: Mapping[str, int] = field(default_factory=dict)  #: inputs of an item that each streamed one brings
    left: Mapping[str, int] = field(default_factory=dict)  #: intermediates of an item that each leaves in slow memory
    working: int = 2  #: cells of an item that are held at once
    groups: int = 1  #: equal groups, one after the other


@dataclass(frozen=True)
class PanelSchedule:
    """A legal schedule in panels, and its exact traffic.

    Attributes
    ----------
    workload : AttentionBackward or FfnBackward
    memory : FastMemory
        The memory, of values or of bytes.
    panels : Panels
    size : int
        Items of a panel.
    """

    workload: Workload
    memory: FastMemory
    panels: Panels
    size: int

    @property
    def loads(self) -> dict[str, int]:
        """Values loaded, by operand, over all groups."""
        p, met = self.panels, self.panels.met(self.size)
        result = {name: p.items * n for name, n in p.kept.items()}
        result |= {name: met * n for name, n in p.inputs.items()}
        result |= {name: (met - p.streamed) * n for name, n in p.sums.items()}
        result |= {name: p.items * p.streamed * n for name, n in p.cells.items()}
        return {name: p.groups * n for name, n in result.items()}

    @property
    def stores(self) -> dict[str, int]:
        """Values stored."""
        p, met = self.panels, self.panels.met(self.size)
        result = {name: p.items * n for name, n in p.kept_sums.items()} | {name: met * n for name, n in p.sums.items()}
        result |= {name: p.items * p.streamed * n for name, n in p.left.items()}
        return {name: p.groups * n for name, n in result.items()}

    @property
    def elements(self) -> int:
        """Loads plus stores, in values."""
        return sum(self.loads.values()) + sum(self.stores.values())

    @property
    def bytes(self) -> int:
        """The same in bytes: partial sums at the width of accumulators, statistics in fp32."""
        cost, loads, p = self.memory.cost, self.loads, self.panels
        total = 0
        for name, count in loads.items():
            if name in p.sums:
                total += 2 * cost.partial * count
            else:
                total += count * (STATISTIC_BYTES if name in STATISTICS and cost != ALIKE else cost.read)
        for name, count in self.stores.items():
            total += cost.read * count if name in p.left else cost.written * (count - loads.get(name, 0))
        return total

    def peak(self, of: Widths, size: int) -> int:
        """Most that panels of a size hold at once, where values take so much."""
        p, state = self.panels, 1 if of == ALIKE else STATISTIC_BYTES
        kept = sum(n * (state if name in STATISTICS else of.read) for name, n in p.kept.items())
        item = kept + of.partial * sum(p.kept_sums.values()) + p.working * max(of.hidden, of.read)
        return size * item + p.held * of.read + max(of.read, of.partial, state if p.inputs.keys() & STATISTICS else 0)

    @property
    def peak_elements(self) -> int:
        """Most values held at once."""
        return self.peak(ALIKE, self.size)

    @property
    def name(self) -> str:
        """For tables; ``compulsory`` in front when nothing is moved twice."""
        p = self.panels
        each = f"{p.groups} groups, each " if p.groups > 1 else ""
        text = f"{each}panels of {self.size} {p.item} ({ceil_div(p.items, self.size)})"
        if p.left or "dZ" in p.cells:  # of a part
            return f"{text} with their {', '.join((*p.kept, *p.kept_sums))}"
        return f"compulsory, {text}" if self.elements == self.workload.compulsory_elements else text

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        return {
            "kind": "panels",
            "of": self.panels.item,
            "size": self.size,
            "loads_elements": self.loads,
            "stores_elements": self.stores,
            "peak_elements": self.peak_elements,
        }


def largest(workload: Workload, memory: FastMemory, panels: Panels) -> Iterator[PanelSchedule]:
    """The fewest panels that fit, as even as they can be; nothing where not one item fits."""
    one = PanelSchedule(workload, memory, panels, 1)
    fits = panels.items
    for size, of in memory.limits:
        least, item = one.peak(of, 0), one.peak(of, 1) - one.peak(of, 0)
        fits = min(fits, (size - least) // item)
    if fits > 0:
        yield PanelSchedule(workload, memory, panels, ceil_div(panels.items, ceil_div(panels.items, fits)))


def attention_panels(w: AttentionBackward) -> tuple[Panels, Panels]:
    """Panels of keys, past which queries stream, and of queries, past which keys do."""
    k, l, m, f = w.head_dim, w.value_dim, w.stacked_queries, w.keys
    early = f - w.queries if w.causal else f  # keys before the first that some query does not see
    of_query, of_key = {"Q": k, "dO": l, **dict.fromkeys(STATISTICS, 1)}, {"K": k, "V": l}

    def queries_met(size: int) -> int:
        return sum(w.group * (w.queries - max(0, start - early)) for start in range(0, f, size))

    def keys_met(size: int) -> int:
        lasts = (min(start + size, m) - 1 for start in range(0, m, size))
        return sum(f - w.queries + last // w.group + 1 if w.causal else f for last in lasts)

    sums = {f"d{name}": n for name, n in of_key.items()}
    return (
        Panels("keys", f, of_key, sums, m, of_query, {"dQ": k}, k, queries_met, groups=w.groups),
        Panels("queries", m, of_query, {"dQ": k}, f, of_key, sums, k, keys_met, groups=w.groups),
    )


def ffn_panels(w: FfnBackward, of_columns: bool, x: int, y: int) -> Panels:
    """Panels of hidden columns with their weights, past which tokens stream; or of tokens, past which columns do.

    Parameters
    ----------
    w : FfnBackward
    of_columns : bool
        Whether panels are of hidden columns.
    x, y : int
        Columns of X that dW0 is made of here, and columns of dX that are, of d_model each. Unless they are all, dZ is
        left for `rest_panels`, or for products. H is computed again where all that it takes of an item stays.
    """
    d, e, m, f, s = w.d_model, w.d_out, w.tokens, w.hidden, w.up_products
    first, saved = ("Wg+Wu", "G+U") if w.gated else ("W0", "H")
    again = w.recomputed and (y if of_columns else x) == d
    token = {"X": d if again and of_columns else x, "dY": e}
    column = {first: s * (d if again and not of_columns else y), "W1": e}
    sums_of_token, sums_of_column = {"dX": y}, {f"d{first}": s * x, "dW1": e}
    sides = (token, sums_of_token, m), (column, sums_of_column, f)
    (kept, kept_sums, items), (inputs, sums, streamed) = sides[::-1] if of_columns else sides
    twice = x if of_columns else s * y  # of what H is computed of, and a gradient too
    return Panels(
        "hidden columns" if of_columns else "tokens",
        items,
        _some(kept),
        _some(kept_sums),
        streamed,
        _some(inputs),
        _some(sums),
        twice if again else 0,
        lambda size: streamed * ceil_div(items, size),
        {} if again else {saved: s},
        {} if x == y == d else {"dZ": s},
        4 if w.gated else 2,
    )


def rest_panels(w: FfnBackward, of_columns: bool, x: int, y: int) -> Panels:
    """The other columns of dX and rows of dW0, of dZ in slow memory, in one go; parameters as for `ffn_panels`."""
    d, m, f, s = w.d_model, w.tokens, w.hidden, w.up_products
    first = "Wg+Wu" if w.gated else "W0"
    token, column = ({"X": d - x}, {"dX": d - y}, m), ({first: s * (d - y)}, {f"d{first}": s * (d - x)}, f)
    (kept, kept_sums, items), (inputs, sums, streamed) = (column, token) if of_columns else (token, column)
    return Panels(
        "hidden columns" if of_columns else "tokens",
        items,
        _some(kept),
        _some(kept_sums),
        streamed,
        _some(inputs),
        _some(sums),
        0,
        lambda size: streamed * ceil_div(items, size),
        {"dZ": s},
        working=s,
    )


def _some(values: Mapping[str, int]) -> dict[str, int]:
    return {name: n for name, n in values.items() if n}
