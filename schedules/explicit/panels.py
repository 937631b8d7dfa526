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
        text += f" with their {', '.join((*p.kept, *p.kept_sums))}" if p.left else ""
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


def ffn_panels(w: FfnBackward, of_columns: bool, read: bool, summed: bool) -> Panels:
    """Panels of hidden columns with their weights, past which tokens stream; or of tokens, past which columns do.

    Parameters
    ----------
    w : FfnBackward
    of_columns : bool
        Whether panels are of hidden columns.
    read : bool
        Whether what keeps W0 (of columns), or X (of tokens), stays, for dX or for dW0.
    summed : bool
        Whether sums of dW0 (of columns), or of dX (of tokens), stay. Without one of the two dZ is left for a product
        that follows. H is computed again only where all that it takes is at hand.
    """
    d, e, m, f, s = w.d_model, w.d_out, w.tokens, w.hidden, w.up_products
    first, saved = ("Wg+Wu", "G+U") if w.gated else ("W0", "H")
    of_token, of_column = {"X": d, "dY": e}, {first: s * d, "W1": e}
    sums_of_token, sums_of_column = {"dX": d}, {f"d{first}": s * d, "dW1": e}
    if of_columns:
        by_rows, by_sums = {first: read}, {f"d{first}": summed}
        streamed, passing = {"X": summed}, {"dX": read}
    else:
        by_rows, by_sums = {"X": read}, {"dX": summed}
        streamed, passing = {first: summed}, {f"d{first}": read}
    again = w.recomputed and read
    items, others = (of_column, of_token) if of_columns else (of_token, of_column)
    item_sums, other_sums = (sums_of_column, sums_of_token) if of_columns else (sums_of_token, sums_of_column)
    held_name = "X" if of_columns else first
    return Panels(
        "hidden columns" if of_columns else "tokens",
        f if of_columns else m,
        _chosen(items, by_rows),
        _chosen(item_sums, by_sums),
        m if of_columns else f,
        _chosen(others, streamed | ({held_name: True} if again else {})),
        _chosen(other_sums, passing),
        others[held_name] if again and summed else 0,
        (lambda size: m * ceil_div(f, size)) if of_columns else (lambda size: f * ceil_div(m, size)),
        {} if again else {saved: s},
        {} if read and summed else {"dZ": s},
        4 if w.gated else 2,
    )


def _chosen(values: Mapping[str, int], whether: Mapping[str, bool]) -> dict[str, int]:
    return {name: n for name, n in values.items() if whether.get(name, True)}
