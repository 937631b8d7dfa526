"""Explicit schedules of latent attention: panels of queries past which each latent vector comes once.

A *panel* holds rows of Q and O with the maximum and the sum of each. Key by key, the values of a latent vector are
loaded one by one: the scores of the panel's rows are summed up, the columns for the rotary part first; those that are
values too stay until the scores are complete and used. So a vector is loaded once a panel and serves both products.
*Latents stay*: all of KV is held instead, and Q and O stream by, each value through one place.

Where few rows fit, or none, keys and values loaded apart may move less, as in `pebble.schedules.explicit.attention`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from pebble.errors import InfeasibleError
from pebble.schedules.explicit.attention import best_attention_schedule
from pebble.schedules.explicit.fused import FusedSchedule
from pebble.units import ceil_div
from pebble.workloads import Attention, LatentAttention
from pebble.workloads.widths import ALIKE, FastMemory, Widths

STATE = 2  # values of a row whose outputs stay: maximum and sum


@dataclass(frozen=True)
class LatentSchedule:
    """A legal schedule of latent attention and its exact traffic.

    Attributes
    ----------
    workload : LatentAttention
    memory : FastMemory
        The memory.
    rows : int
        Of a panel; 0 where all of KV stays.
    apart : FusedSchedule, optional
        Of the attention whose keys and values are loaded apart; then there are no panels.
    """

    workload: LatentAttention
    memory: FastMemory
    rows: int
    separate: FusedSchedule | None = None

    @property
    def loads(self) -> dict[str, int]:
        """Values loaded, by operand, over all sequences."""
        if self.separate is not None:
            return _joined(self.separate.loads)
        w = self.workload
        vectors = w.keys if not self.rows else keys_seen(w, self.rows)
        rows = w.batch * w.stacked_queries
        return {"Q": rows * w.head_dim, "KV": w.batch * vectors * w.head_dim}

    @property
    def stores(self) -> dict[str, int]:
        """Values stored, by operand."""
        if self.separate is not None:
            return _joined(self.separate.stores)
        return {"O": self.workload.batch * self.workload.stacked_queries * self.workload.value_dim}

    @property
    def elements(self) -> int:
        """Loads plus stores, in values."""
        return sum(self.loads.values()) + sum(self.stores.values())

    @property
    def bytes(self) -> int:
        """The same in bytes, each value at its width."""
        if self.separate is not None:
            return self.separate.bytes
        return self.memory.cost.read * sum(self.loads.values()) + self.memory.cost.written * sum(self.stores.values())

    @property
    def peak_elements(self) -> int:
        """Most values held at once."""
        return (
            self.separate.peak_elements if self.separate is not None else capacity_of(self.workload, self.rows, ALIKE)
        )

    @property
    def name(self) -> str:
        """For tables; ``compulsory`` in front when nothing is moved twice."""
        if self.separate is not None:
            return f"keys and values loaded apart, {self.separate.name}"
        each = f"{self.workload.batch} sequences, each " if self.workload.batch > 1 else ""
        panels = ceil_div(self.workload.stacked_queries, self.rows) if self.rows else 0
        label = f"panels of {self.rows} rows of Q and O ({panels})" if self.rows else "all latents stay"
        text = f"latent attention: {each}{label}"
        return f"compulsory, {text}" if self.elements == self.workload.compulsory_elements else text

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        fields: dict[str, object] = {
            "family": "keys and values apart" if self.separate else "latent panels" if self.rows else "latents stay",
            "detail": self.name,
            "elements": self.elements,
            "loads_elements": self.loads,
            "stores_elements": self.stores,
            "peak_elements": self.peak_elements,
        }
        return fields if self.memory.widths == ALIKE else fields | {"widths_bytes": self.memory.widths.to_json()}


def _joined(traffic: Mapping[str, int]) -> dict[str, int]:
    """Keys and values under the name of the one matrix that they are columns of."""
    result: dict[str, int] = {}
    for name, count in traffic.items():
        own = "KV" if name in ("K", "V") else name
        result[own] = result.get(own, 0) + count
    return result


def floor_sum(count: int, a: int, b: int, c: int) -> int:
    """The sum of (a i + b) // c over i from 0 to ``count`` - 1, as of points below a line; O(log) steps.

    Examples
    --------
    >>> floor_sum(4, 3, 1, 2), sum((3 * i + 1) // 2 for i in range(4))
    (10, 10)
    """
    total = 0
    while count > 0:
        total += count * (count - 1) // 2 * (a // c) + count * (b // c)
        above = a % c * count + b % c
        if above < c:
            break
        count, a, b, c = above // c, c, above % c, a % c  # the points that are left, column by column
    return total


def keys_seen(workload: LatentAttention, rows: int) -> int:
    """Keys that panels of so many rows load, all panels of a sequence: each those that its last row sees."""
    w, panels = workload, ceil_div(workload.stacked_queries, rows)
    if not w.causal:
        return panels * w.keys
    first = w.keys - w.queries + 1  # that the first query sees; rows are stacked query by query
    return panels * first + floor_sum(panels - 1, rows, rows - 1, w.heads) + w.queries - 1


def capacity_of(workload: LatentAttention, rows: int, widths: Widths) -> int:
    """The most that panels of so many rows take, or all latents with what streams by for 0."""
    w, cell, k, l = widths.read, widths.hidden, workload.head_dim, workload.value_dim
    state = STATE * max(widths.hidden, widths.partial)
    if rows:
        return rows * (w * k + widths.partial * l + state + cell) + w * l
    scores = max(cell * workload.keys + w, w * workload.keys + widths.partial)
    return w * workload.keys * k + scores + state


@lru_cache(maxsize=1 << 8)
def best_latent_schedule(workload: LatentAttention, memory: FastMemory) -> LatentSchedule:
    """The schedule with the least bytes moved.

    Raises
    ------
    InfeasibleError
        Nothing fits: below 3 values; with a causal mask, below what one query needs.
    """
    if all(capacity_of(workload, 0, widths) <= size for size, widths in memory.limits):
        return LatentSchedule(workload, memory, 0)
    fits = []
    for size, widths in memory.limits:
        none, item = (capacity_of(workload, rows, widths) for rows in (1, 2))
        fits.append((size - none) // (item - none) + 1 if size >= none else 0)
    results = []
    if min(fits):
        panels = ceil_div(workload.stacked_queries, min(*fits, workload.stacked_queries))
        results.append(LatentSchedule(workload, memory, ceil_div(workload.stacked_queries, panels)))
        if panels == 1:
            return results[0]
    try:  # few rows fit: stored scores may move less
        separate = best_attention_schedule(with_separate_operands(workload), memory)
    except InfeasibleError:
        if not results:
            raise
    else:
        results.append(LatentSchedule(workload, memory, 0, separate))
    return min(results, key=lambda single: single.bytes)


def with_separate_operands(workload: LatentAttention) -> Attention:
    """The attention whose keys and values are matrices of their own: a schedule of it is one of this."""
    w = workload
    return Attention(
        w.queries, w.keys, w.head_dim, w.value_dim, w.heads, 1, w.batch, w.causal, "online", w.dtype, w.out_dtype
    )
