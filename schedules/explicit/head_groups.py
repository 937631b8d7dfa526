"""A layer whose attention goes by groups of heads: Q, K and V never leave fast memory, and less of the rest does.

**Groups of heads.** Of some groups of heads that share K and V the weights are loaded and stay; then the tokens pass,
one after the other. A row of X is read, its Q, K and V are computed, K and V stay, and its queries attend to all K and
V that are there: with a causal mask no later ones are needed. The heads' outputs are stored. The next groups of heads
need all rows of X again; the first ``rows_stay`` of them stay until the last groups are through with them.

Of the heads' outputs the last ``columns_stay`` columns stay for the projection. That one, and the FFN, follow

- as kernels of their own (`Kernels`), which read and write all that they share; or
- *in turn* (`Projection`): the weights of the projection stay while the tokens pass, and the last rows of its result
  are not stored, but are the rows of the FFN's first panel; or
- *in bands* (`LastBands`): some tokens go through projection and FFN before the next ones start, as in
  `pebble.schedules.explicit.token_bands`, steps 3 and 4. Every band reads all weights, or these stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pebble.schedules.explicit.fused import FusedSchedule
from pebble.schedules.explicit.gemm_search import ExplicitProduct
from pebble.units import ceil_div
from pebble.workloads import TransformerLayer
from pebble.workloads.widths import ALIKE, FastMemory, Widths


def one_query(layer: TransformerLayer, of: Widths) -> int:
    """What attention of a row holds beside operands and complete outputs: partial sums, a score and softmax state."""
    return of.hidden * (layer.value_dim + 1) + 3 * max(of.hidden, of.partial)


@dataclass(frozen=True)
class Kernels:
    """Projection and FFN by themselves.

    Attributes
    ----------
    projection : ExplicitProduct
    ffn : FusedSchedule
    """

    projection: ExplicitProduct
    ffn: FusedSchedule
    name = "then o and mlp"

    def loads(self, layer: TransformerLayer, columns: int) -> dict[str, int]:
        """Values loaded; ``columns``: of the heads' outputs in fast memory."""
        return _named("o", self.projection.loads) | _named("mlp", self.ffn.loads)

    def stores(self, layer: TransformerLayer) -> dict[str, int]:
        """Values stored."""
        return _named("o", self.projection.stores) | _named("mlp", self.ffn.stores)

    def peak(self, layer: TransformerLayer, columns: int, of: Widths) -> int:
        """What it holds beside the kernels, which are for the same memory."""
        return of.read * columns * layer.tokens

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {"o": self.projection.to_json(), "mlp": self.ffn.to_json()}


@dataclass(frozen=True)
class Projection:
    """The projection with its weights held, and the FFN, to whose first panel it hands rows on.

    Attributes
    ----------
    ffn : FusedSchedule
    handed : int
        Rows that stay: the last ones.
    """

    ffn: FusedSchedule
    handed: int

    @property
    def name(self) -> str:
        """What follows, in a line."""
        return f"then o, weights held, {self.handed} rows stay; then mlp: {self.ffn.name}"

    def loads(self, layer: TransformerLayer, columns: int) -> dict[str, int]:
        """Values loaded; ``columns``: of the heads' outputs in fast memory."""
        inner, ffn = layer.projection.k, _named("mlp", self.ffn.loads)
        ffn["mlp.X"] -= self.handed * layer.d_model
        return {"o.A": layer.tokens * (inner - columns), "o.B": inner * layer.d_model} | ffn

    def stores(self, layer: TransformerLayer) -> dict[str, int]:
        """Values stored."""
        return {"o.C": (layer.tokens - self.handed) * layer.d_model} | _named("mlp", self.ffn.stores)

    def peak(self, layer: TransformerLayer, columns: int, of: Widths) -> int:
        """The most that the projection holds: the FFN is for the same memory, and holds what it is handed anyway."""
        away, d = layer.tokens - self.handed, layer.d_model

        def held(token: int) -> int:
            """While the row of this token is computed, with all that is left of the outputs."""
            return columns * (layer.tokens - token) + d * max(0, token - away)

        most = max(held(token) for token in {0, min(away, layer.tokens - 1), layer.tokens - 1})
        return of.read * (layer.projection.k * d + most + 1) + of.hidden * d

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {"rows_handed": self.handed, "mlp": self.ffn.to_json()}


@dataclass(frozen=True)
class LastBands:
    """Bands of tokens through projection and FFN.

    Attributes
    ----------
    rows : int
        Tokens of a band; the last may have fewer.
    weights_stay : bool
        Whether all weights do from band to band.
    """

    rows: int
    weights_stay: bool

    @property
    def name(self) -> str:
        """What follows, in a line."""
        return f"then bands of {self.rows} tokens through o and mlp" + (", weights stay" if self.weights_stay else "")

    def loads(self, layer: TransformerLayer, columns: int) -> dict[str, int]:
        """Values loaded; ``columns``: of the heads' outputs in fast memory."""
        times = 1 if self.weights_stay else ceil_div(layer.tokens, self.rows)
        mlp, inner = layer.mlp, layer.projection.k
        result = {"o.A": layer.tokens * (inner - columns), "o.B": times * inner * layer.d_model}
        up, side = "mlp.Wg+Wu" if mlp.gated else "mlp.W1", times * mlp.d_model * mlp.hidden
        return result | {up: mlp.up_products * side, "mlp.W2": side}

    def stores(self, layer: TransformerLayer) -> dict[str, int]:
        """Values stored."""
        return {"mlp.Y": layer.tokens * layer.d_model}

    def peak(self, layer: TransformerLayer, columns: int, of: Widths) -> int:
        """The most that the first band holds: later ones find fewer outputs, and the last may have fewer rows."""
        rows, d, inner, w = min(self.rows, layer.tokens), layer.d_model, layer.projection.k, of.read
        weights = inner * d + (layer.mlp.up_products + 1) * layer.mlp.d_model * layer.mlp.hidden
        beside = w * (columns * (layer.tokens - rows) + (weights if self.weights_stay else 0))
        projection = w * (rows * inner + rows * (d - 1) + 1) + rows * of.hidden
        ffn = rows * (w * d + of.partial * d + layer.mlp.up_products * of.hidden) + w
        return beside + max(projection, ffn)

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {"tokens_of_a_band": self.rows, "weights_stay": self.weights_stay}


Then = Kernels | Projection | LastBands


def _named(part: str, counts: Mapping[str, int]) -> dict[str, int]:
    return {f"{part}.{name}": count for name, count in counts.items()}


@dataclass(frozen=True)
class HeadGroups:
    """A legal schedule of a layer, and its exact traffic.

    Attributes
    ----------
    layer : TransformerLayer
    groups : int
        Groups of heads that go together; the last may be fewer.
    rows_stay : int
        First rows of X that stay from some groups to the next.
    columns_stay : int
        Last columns of the heads' outputs that stay; 0 before `Kernels`.
    then : Kernels, Projection or LastBands
    memory : FastMemory
    """

    layer: TransformerLayer
    groups: int
    rows_stay: int
    columns_stay: int
    then: Then
    memory: FastMemory

    def keeping_rows(self, rows: int) -> HeadGroups:
        """The same where so many rows of X stay."""
        return replace(self, rows_stay=rows)

    def keeping_columns(self, columns: int) -> HeadGroups:
        """The same where so many columns of outputs stay."""
        return replace(self, columns_stay=columns)

    @property
    def times(self) -> int:
        """How often the tokens pass."""
        return ceil_div(self.layer.kv_heads, self.groups)

    @property
    def name(self) -> str:
        """What it does, in a line."""
        stay = f", {self.rows_stay} rows of X stay" if self.rows_stay and self.times > 1 else ""
        left = f", {self.columns_stay} columns of outputs stay" if self.columns_stay else ""
        passes = f"{self.times} x {self.groups} groups of heads from X to outputs"
        return f"{passes}{stay}{left}; {self.then.name}"

    @cached_property
    def loads(self) -> dict[str, int]:
        """Values loaded, by part and operand."""
        layer = self.layer
        again = (self.times - 1) * (layer.tokens - self.rows_stay)
        result = {"qkv.A": (layer.tokens + again) * layer.d_model, "qkv.B": layer.qkv.k * layer.qkv.n}
        return result | self.then.loads(layer, self.columns_stay)

    @cached_property
    def stores(self) -> dict[str, int]:
        """Values stored, by part and operand."""
        layer = self.layer
        away = layer.tokens * (layer.projection.k - self.columns_stay)
        return {"attention.O": away} | self.then.stores(layer)

    @property
    def elements(self) -> int:
        """Loads plus stores, in values."""
        return sum(self.loads.values()) + sum(self.stores.values())

    @property
    def bytes(self) -> int:
        """The same in bytes."""
        return sum(self.by_part.values())

    @cached_property
    def by_part(self) -> dict[str, int]:
        """Bytes of each part."""
        read, then = self.memory.cost.read, self.then
        result = dict.fromkeys(("qkv", "attention", "o", "mlp"), 0)
        for moved in (self.loads, self.stores):
            for name, count in moved.items():
                result[name.partition(".")[0]] += count * (self.memory.cost.written if name == "mlp.Y" else read)
        if isinstance(then, Kernels):
            return result | {"o": then.projection.bytes, "mlp": then.ffn.bytes}
        if isinstance(then, Projection):
            return result | {"mlp": then.ffn.bytes - read * then.handed * self.layer.d_model}
        return result

    @property
    def peak_elements(self) -> int:
        """The most values that it holds."""
        then, kernels = self.then, 0
        if not isinstance(then, LastBands):
            kernels = then.ffn.peak_elements
        if isinstance(then, Kernels):
            kernels = max(kernels, then.projection.peak_elements)
        return max(self.peak(ALIKE), kernels)

    @property
    def fits(self) -> bool:
        """Whether all fits but the kernels, which are for the same memory."""
        return all(self.peak(of) <= size for size, of in self.memory.limits)

    def peak(self, of: Widths) -> int:
        """The most that is held, the kernels afterwards aside."""
        return max(self.front_peak(of), self.then.peak(self.layer, self.columns_stay, of))

    def front_peak(self, of: Widths) -> int:
        """The most that groups of heads hold."""
        return max(held for number in range(self.times) for held in self._pass(number, of))

    def _pass(self, number: int, of: Widths) -> Iterator[int]:
        """What some groups of heads hold at most, where what they hold turns.

        Between, all that is held grows or falls evenly from token to token.
        """
        layer, w, last = self.layer, of.read, number == self.times - 1
        groups = layer.kv_heads - number * self.groups if last else self.groups
        heads = groups * layer.heads // layer.kv_heads
        side, outputs = groups * (layer.head_dim + layer.value_dim), heads * layer.value_dim
        columns = heads * layer.head_dim + side
        later = (layer.kv_heads - number * self.groups - groups) * (layer.heads // layer.kv_heads) * layer.value_dim
        stay = max(0, self.columns_stay - later)  # of these groups' outputs and those before
        own = min(stay, outputs)
        weights = layer.d_model * columns + (stay - own) * layer.tokens
        x, keeps = self.rows_stay if self.times > 1 else 0, self.times > 1
        for token in {0, max(0, x - 1), min(x, layer.tokens - 1), layer.tokens - 1}:
            rows = x if number else min(x, token + 1)
            rows = max(0, x - token) if keeps and last else rows
            held = w * (weights + rows * layer.d_model + token * (side + own))
            yield held + of.hidden * columns + w
            yield held + w * (side + heads * max(layer.head_dim, layer.value_dim)) + one_query(layer, of)

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        fields: dict[str, Any] = {"kind": "head groups", "groups": self.groups, "rows_stay": self.rows_stay}
        fields |= {"columns_stay": self.columns_stay, "elements": self.elements, "loads_elements": self.loads}
        fields |= {"stores_elements": self.stores, "peak_elements": self.peak_elements, **self.then.to_json()}
        return fields if self.memory.widths == ALIKE else fields | {"widths_bytes": self.memory.widths.to_json()}
