"""A layer whose attention goes by groups of heads: Q, K and V hardly leave fast memory, and less of the rest does.

Heads that share K and V are a *group*. Either **weights are held** (`WeightsHeld`): those of some groups are loaded,
and the tokens pass, one after the other. A row of X is read, its Q, K and V are computed, K and V stay, and its queries
attend to all K and V that are there: with a causal mask no later ones are needed. The next groups need all rows of X
again; the first of them stay until the last groups are through with them.

Or **tokens are held** (`TokensHeld`): a band of rows of X is loaded. Group by group its K and V are computed, to which
weights come one by one, and then, head by head, its Q, which attends. K and V are stored for later bands, which load
them, a group at a time; those of the first tokens stay. Every band reads the weights of QKV once.

The heads' outputs are stored, but for the last ``columns_stay`` columns, which stay for the projection. That one and
the FFN follow (`pebble.schedules.explicit.after_heads`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pebble.schedules.explicit.after_heads import Kernels, LastBands, Projection, Then
from pebble.schedules.explicit.token_bands import keys_again
from pebble.units import ceil_div
from pebble.workloads import TransformerLayer
from pebble.workloads.widths import ALIKE, FastMemory, Widths


def one_query(layer: TransformerLayer, of: Widths) -> int:
    """What attention of a row holds beside operands and complete outputs: partial sums, a score and softmax state."""
    return of.hidden * (layer.value_dim + 1) + 3 * max(of.hidden, of.partial)


@dataclass(frozen=True)
class WeightsHeld:
    """Groups of heads one after the other, the tokens passing.

    Attributes
    ----------
    groups : int
        Groups that go together; the last may be fewer.
    stay : int
        First rows of X that stay from some groups to the next.
    """

    groups: int
    stay: int = 0

    def parts(self, layer: TransformerLayer) -> int:
        """How often the tokens pass; what stays does from one time to the next."""
        return ceil_div(layer.kv_heads, self.groups)

    def name(self, layer: TransformerLayer) -> str:
        """What it does, in a line."""
        times = self.parts(layer)
        stay = f", {self.stay} rows of X stay" if self.stay and times > 1 else ""
        return f"{times} x {self.groups} groups of heads, weights held{stay}"

    def loads(self, layer: TransformerLayer) -> dict[str, int]:
        """Values loaded."""
        again = (self.parts(layer) - 1) * (layer.tokens - self.stay)
        return {"qkv.A": (layer.tokens + again) * layer.d_model, "qkv.B": layer.qkv.k * layer.qkv.n}

    def stores(self, layer: TransformerLayer) -> dict[str, int]:
        """Values stored beside outputs."""
        return {}

    def peak(self, layer: TransformerLayer, columns: int, of: Widths) -> int:
        """The most held, beside so many columns of outputs that stay."""
        return max(held for number in range(self.parts(layer)) for held in self._pass(layer, number, columns, of))

    def _pass(self, layer: TransformerLayer, number: int, columns: int, of: Widths) -> Iterator[int]:
        """What some groups of heads hold at most, where what they hold turns.

        Between, all that is held grows or falls evenly from token to token.
        """
        w, times = of.read, self.parts(layer)
        last = number == times - 1
        groups = layer.kv_heads - number * self.groups if last else self.groups
        shared = layer.heads // layer.kv_heads
        heads, side = groups * shared, groups * (layer.head_dim + layer.value_dim)
        outputs, made = heads * layer.value_dim, heads * layer.head_dim + side
        later = (layer.kv_heads - number * self.groups - groups) * shared * layer.value_dim
        stay = max(0, columns - later)  # of these groups' outputs and those before
        own = min(stay, outputs)
        always = layer.d_model * made + (stay - own) * layer.tokens
        x = self.stay if times > 1 else 0
        for token in {0, max(0, x - 1), min(x, layer.tokens - 1), layer.tokens - 1}:
            rows = x if number else min(x, token + 1)
            rows = max(0, x - token) if last else rows
            held = w * (always + rows * layer.d_model + token * (side + own))
            yield held + of.hidden * made + w
            yield held + w * (side + heads * max(layer.head_dim, layer.value_dim)) + one_query(layer, of)

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {"groups": self.groups, "rows_stay": self.stay}


@dataclass(frozen=True)
class TokensHeld:
    """Bands of tokens one after the other, in each of them the groups of heads.

    Attributes
    ----------
    rows : int
        Tokens of a band; the last may have fewer.
    stay : int
        First tokens whose keys and values stay from band to band.
    """

    rows: int
    stay: int = 0

    def parts(self, layer: TransformerLayer) -> int:
        """How many bands there are."""
        return ceil_div(layer.tokens, self.rows)

    def name(self, layer: TransformerLayer) -> str:
        """What it does, in a line."""
        bands = self.parts(layer)
        stay = f", K and V of {self.stay} tokens stay" if self.stay and bands > 1 else ""
        return f"{bands} x {self.rows} tokens held, group by group of heads{stay}"

    def loads(self, layer: TransformerLayer) -> dict[str, int]:
        """Values loaded."""
        again, _ = keys_again(layer.tokens, self.rows, self.stay)
        result = {"qkv.A": layer.tokens * layer.d_model, "qkv.B": self.parts(layer) * layer.qkv.k * layer.qkv.n}
        result |= {"attention.K": again * layer.kv_heads * layer.head_dim}
        return result | {"attention.V": again * layer.kv_heads * layer.value_dim}

    def stores(self, layer: TransformerLayer) -> dict[str, int]:
        """Values stored beside outputs."""
        _, away = keys_again(layer.tokens, self.rows, self.stay)
        groups = layer.kv_heads
        return {"attention.K": away * groups * layer.head_dim, "attention.V": away * groups * layer.value_dim}

    def peak(self, layer: TransformerLayer, columns: int, of: Widths) -> int:
        """The most held, beside so many columns of outputs that stay: the last band finds most, or that before it."""
        last = self.parts(layer) - 1
        return max(self._band(layer, band, columns, of) for band in range(max(0, last - 1), last + 1))

    def _band(self, layer: TransformerLayer, band: int, columns: int, of: Widths) -> int:
        """As if all that stays of the band were there from its start."""
        start, w = band * self.rows, of.read
        end = min(start + self.rows, layer.tokens)
        rows, found = end - start, min(self.stay, start)
        keys, key = layer.head_dim + layer.value_dim, layer.head_dim
        stay = found if end == layer.tokens else min(self.stay, end)
        beside = w * (rows * layer.d_model + stay * layer.kv_heads * keys + columns * end)
        of_group = w * (rows + start - found) * keys
        queries = w * (rows * (key - 1) + 1) + rows * of.hidden
        attention = w * rows * max(key, layer.value_dim) + one_query(layer, of)
        return beside + of_group + max(queries, attention)

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {"tokens_held": self.rows, "tokens_kept": self.stay}


Front = WeightsHeld | TokensHeld


@dataclass(frozen=True)
class HeadGroups:
    """A legal schedule of a layer, and its exact traffic.

    Attributes
    ----------
    layer : TransformerLayer
    front : WeightsHeld or TokensHeld
        From X to the heads' outputs.
    columns_stay : int
        Last columns of the heads' outputs that stay; 0 before `Kernels`.
    then : Kernels, Projection or LastBands
    memory : FastMemory
    """

    layer: TransformerLayer
    front: Front
    columns_stay: int
    then: Then
    memory: FastMemory

    def keeping(self, stay: int) -> HeadGroups:
        """The same where so many rows of X, or keys and values of so many tokens, stay."""
        return replace(self, front=replace(self.front, stay=stay))

    def keeping_columns(self, columns: int) -> HeadGroups:
        """The same where so many columns of outputs stay."""
        return replace(self, columns_stay=columns)

    @property
    def name(self) -> str:
        """What it does, in a line."""
        left = f", {self.columns_stay} columns of outputs stay" if self.columns_stay else ""
        return f"{self.front.name(self.layer)}{left}; {self.then.name}"

    @cached_property
    def loads(self) -> dict[str, int]:
        """Values loaded, by part and operand."""
        return self.front.loads(self.layer) | self.then.loads(self.layer, self.columns_stay)

    @cached_property
    def stores(self) -> dict[str, int]:
        """Values stored, by part and operand."""
        layer = self.layer
        away = layer.tokens * (layer.projection.k - self.columns_stay)
        return self.front.stores(layer) | {"attention.O": away} | self.then.stores(layer)

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
        layer, columns = self.layer, self.columns_stay
        return max(self.front.peak(layer, columns, of), self.then.peak(layer, columns, of))

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        fields: dict[str, Any] = {"kind": "head groups", **self.front.to_json(), "columns_stay": self.columns_stay}
        fields |= {"elements": self.elements, "loads_elements": self.loads, "stores_elements": self.stores}
        fields |= {"peak_elements": self.peak_elements, **self.then.to_json()}
        return fields if self.memory.widths == ALIKE else fields | {"widths_bytes": self.memory.widths.to_json()}
