r"""A transformer layer band by band: some tokens go through all of it before the next ones start.

A causal query needs the keys and values of earlier tokens only. So a band of :math:`r` tokens loads its rows of X,
computes Q, K and V, attends, is projected and leaves as rows of Y; between, nothing of it goes through slow memory.
Every band reads all weights once. With :math:`w` for a complete value, :math:`p_H` for a partial sum of an
intermediate and :math:`p` for one of Y, held at most are:

1. *QKV*: rows of X, complete columns of Q, K and V, and one column of partial sums, to which weights come one by one.
2. *Attention*, a group of heads and in it a row at a time: the row of Q gives way to that of O. Of one row are held a
   partial sum of O for each column, a score, and the maximum, the sum and the factor of its softmax.
3. *O*: rows of the heads' outputs, complete columns of the result, one column of partial sums.
4. *FFN*: rows of its input, all partial sums of Y, and a column of gate and up cells.

The keys and values of the first ``kept`` tokens stay from band to band; those of later ones are stored once and loaded
by each later band, a group of heads at a time. The weights of QKV and O may stay as well. Or the fourth step is left
out: the projection's result is stored, and an FFN of all tokens follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from pebble.schedules.explicit.fused import FusedSchedule
from pebble.units import ceil_div
from pebble.workloads import TransformerLayer
from pebble.workloads.widths import ALIKE, FastMemory, Widths


def keys_again(tokens: int, rows: int, kept: int) -> tuple[int, int]:
    """Of how many tokens keys and values are loaded by later bands, in all, and of how many they are stored for them.

    Bands have so many rows; keys and values of the first ``kept`` tokens stay.
    """
    bands = ceil_div(tokens, rows)
    first = kept // rows + 1  # the first band that finds keys stored
    count = max(0, bands - first)
    return count * (first + bands - 1) * rows // 2 - count * kept, max(0, (bands - 1) * rows - kept)


@dataclass(frozen=True)
class TokenBands:
    """A legal schedule of a layer, and its exact traffic.

    Attributes
    ----------
    layer : TransformerLayer
    rows : int
        Tokens of a band; the last may have fewer.
    kept : int
        First tokens whose keys and values stay.
    weights_stay : bool
        Whether the weights of QKV and O do.
    ffn : FusedSchedule, optional
        The FFN of all tokens afterwards; None where it belongs to each band.
    memory : FastMemory
    """

    layer: TransformerLayer
    rows: int
    kept: int
    weights_stay: bool
    ffn: FusedSchedule | None
    memory: FastMemory

    @property
    def bands(self) -> int:
        """How many there are."""
        return ceil_div(self.layer.tokens, self.rows)

    def of_rows(self, rows: int) -> TokenBands:
        """The same with bands of so many tokens."""
        return replace(self, rows=rows)

    def keeping(self, kept: int) -> TokenBands:
        """The same where the keys and values of so many tokens stay."""
        return replace(self, kept=kept)

    @property
    def name(self) -> str:
        """What it does, in a line."""
        once = ", weights of QKV and O stay" if self.weights_stay else ""
        away = min(self.kept, self.layer.tokens) < self._before_last
        keys = f", K and V of {self.kept} tokens stay" if away else ""
        through = "through the layer" if self.ffn is None else "through attention and O"
        then = "" if self.ffn is None else f"; then mlp: {self.ffn.name}"
        return f"bands of tokens {through}: {self.bands} x {self.rows}{once}{keys}{then}"

    @property
    def _before_last(self) -> int:
        return (self.bands - 1) * self.rows

    @property
    def loads(self) -> dict[str, int]:
        """Values loaded, by part and operand."""
        layer, times = self.layer, 1 if self.weights_stay else self.bands
        again, _ = keys_again(layer.tokens, self.rows, self.kept)
        result = {"qkv.A": layer.tokens * layer.d_model, "qkv.B": times * layer.qkv.k * layer.qkv.n}
        result |= {"attention.K": again * layer.kv_heads * layer.head_dim}
        result |= {"attention.V": again * layer.kv_heads * layer.value_dim}
        result |= {"o.B": times * layer.projection.k * layer.d_model}
        if self.ffn is not None:
            return result | {f"mlp.{name}": count for name, count in self.ffn.loads.items()}
        mlp = layer.mlp
        up, side = "mlp.Wg+Wu" if mlp.gated else "mlp.W1", self.bands * mlp.d_model * mlp.hidden
        return result | {up: mlp.up_products * side, "mlp.W2": side}

    @property
    def stores(self) -> dict[str, int]:
        """Values stored, by part and operand."""
        layer = self.layer
        _, away = keys_again(layer.tokens, self.rows, self.kept)
        result = {"attention.K": away * layer.kv_heads * layer.head_dim}
        result |= {"attention.V": away * layer.kv_heads * layer.value_dim}
        size = layer.tokens * layer.d_model
        if self.ffn is None:
            return result | {"mlp.Y": size}
        return result | {"o.C": size} | {f"mlp.{name}": count for name, count in self.ffn.stores.items()}

    @property
    def elements(self) -> int:
        """Loads plus stores, in values."""
        return sum(self.loads.values()) + sum(self.stores.values())

    @property
    def bytes(self) -> int:
        """The same in bytes."""
        return sum(self.by_part.values())

    @property
    def by_part(self) -> dict[str, int]:
        """Bytes of each part."""
        cost = self.memory.cost
        result = dict.fromkeys(("qkv", "attention", "o", "mlp"), 0)
        for name, count in (*self.loads.items(), *self.stores.items()):
            result[name.partition(".")[0]] += count * (cost.written if name == "mlp.Y" else cost.read)
        return result if self.ffn is None else result | {"mlp": self.ffn.bytes}

    @property
    def peak_elements(self) -> int:
        """The most values that it holds."""
        return max(self.peak(ALIKE), self.ffn.peak_elements if self.ffn else 0)

    @property
    def fits(self) -> bool:
        """Whether the bands do; the FFN afterwards is for the same memory."""
        return all(self.peak(widths) <= size for size, widths in self.memory.limits)

    def peak(self, of: Widths) -> int:
        """The most that a band takes: the last one finds most keys, that before it keeps most."""
        last = self.bands - 1
        return max(max(self._steps(band, of)) for band in range(max(0, last - 1), last + 1))

    def _steps(self, band: int, of: Widths) -> Iterator[int]:
        """What each step of a band holds at most, in what widths count."""
        layer, w, p = self.layer, of.read, of.hidden
        start = band * self.rows
        r = min(self.rows, layer.tokens - start)
        groups, key, value = layer.kv_heads, layer.head_dim, layer.value_dim
        d, n, inner = layer.d_model, layer.qkv.n, layer.projection.k
        still = (d * n + inner * d) if self.weights_stay else 0
        found = min(self.kept, start)
        stay = min(self.kept, start + r) if start + r < layer.tokens else 0
        before, after = (w * (still + tokens * groups * (key + value)) for tokens in (found, stay))
        yield before + w * (r * d + r * (n - 1) + 1) + r * p
        of_one_row = value * p + p + 3 * max(of.hidden, of.partial)
        rows = r * (groups * (key + value) + layer.heads * max(key, value))
        yield before + w * (rows + (start - found) * (key + value)) + of_one_row
        yield after + w * (r * inner + r * (d - 1) + 1) + r * p
        if self.ffn is None:
            yield after + r * (w * d + of.partial * d + layer.mlp.up_products * p) + w

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        fields: dict[str, Any] = {"kind": "token bands", "bands": self.bands, "tokens_of_a_band": self.rows}
        fields |= {"tokens_kept": self.kept, "weights_stay": self.weights_stay, "elements": self.elements}
        fields |= {"loads_elements": self.loads, "stores_elements": self.stores, "peak_elements": self.peak_elements}
        if self.ffn is not None:
            fields["mlp"] = self.ffn.to_json()
        return fields if self.memory.widths == ALIKE else fields | {"widths_bytes": self.memory.widths.to_json()}


def best_token_bands(layer: TransformerLayer, memory: FastMemory, ffn: FusedSchedule | None) -> TokenBands | None:
    """The one that moves least, the FFN in each band or, with ``ffn``, after all of them; None where none fits.

    Cost: some hundred evaluations.
    """
    best: TokenBands | None = None
    for after in (None,) if ffn is None else (None, ffn):
        for stay in (False, True):
            bands = TokenBands(layer, 1, 0, stay, after, memory)
            tallest = _most(bands.of_rows, 1, layer.tokens)
            if tallest is None:
                continue
            least = ceil_div(layer.tokens, tallest)
            for count in {least, least + 1, least + 2, 2 * least, 4 * least, 16 * least, layer.tokens}:
                some = replace(bands, rows=ceil_div(layer.tokens, min(count, layer.tokens)))
                kept = _most(some.keeping, 0, layer.tokens)
                if kept is None:
                    continue
                some = replace(some, kept=kept)
                if best is None or (some.bytes, some.elements) < (best.bytes, best.elements):
                    best = some
    return best


def _most(of: Callable[[int], TokenBands], low: int, high: int) -> int | None:
    """The largest value with which it fits; None where the smallest does not."""
    if not of(low).fits:
        return None
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if of(middle).fits else (low, middle - 1)
    return low
