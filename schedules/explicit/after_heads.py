"""What follows attention in a layer: projection and FFN, which may find outputs of heads in fast memory.

`Kernels` read and write all that they share. In a `Projection` the weights stay while the tokens pass, and the last
rows of the result are not stored, but are the rows of the FFN's first panel. In `LastBands` some tokens go through
projection and FFN before the next ones start, as in `pebble.schedules.explicit.token_bands`, steps 3 and 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pebble.schedules.explicit.fused import FusedSchedule
from pebble.schedules.explicit.gemm_search import ExplicitProduct
from pebble.units import ceil_div
from pebble.workloads import TransformerLayer
from pebble.workloads.widths import Widths


def _named(part: str, counts: Mapping[str, int]) -> dict[str, int]:
    return {f"{part}.{name}": count for name, count in counts.items()}


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
