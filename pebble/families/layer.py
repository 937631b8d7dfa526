r"""A transformer layer: QKV, attention, output projection and FFN, with everything between free to stay on chip.

**Transformer layer**: four parts, of which attention counts once for each group of heads that share K and V. Handed
over are Q, K and V, the heads' outputs and the projection's output; the input X, all weights and the output Y are the
layer's own. Norms, rotary positions, biases and residual additions are no operations of this layer, and K and V need
not be stored for later steps: the bound is about the layer without them. No value is computed twice; where that is
allowed, only compulsory traffic is claimed.
"""

from __future__ import annotations

from dataclasses import replace

from pebble.bounds import Accounting, Box, LowerBound, Part, Piece, accounting
from pebble.bounds.families import sum_of_kernels
from pebble.families.attention import ATTENTION
from pebble.families.base import Explicit, Family
from pebble.families.ffn import FFN
from pebble.families.gemm import GEMM
from pebble.families.parts import in_turn
from pebble.workloads import TransformerLayer
from pebble.workloads.parameters import flag, needed, optional


class LayerFamily(Family[TransformerLayer]):
    """``layer``, and ``MODEL:layer``."""

    name = "layer"
    shape = TransformerLayer
    computes = "a transformer layer in prefill: QKV, causal attention, output projection, FFN (bounds only)"
    example = "layer --tokens 8192 --d-model 4096 --hidden 14336 --heads 32 --kv-heads 8 --head-dim 128 --gated"
    parameters = (
        *needed(
            tokens="rows of X and Y",
            d_model="columns of X and Y",
            hidden="columns of the hidden layer",
            heads="query heads",
            kv_heads="key/value heads",
            head_dim="columns of a query or key",
        ),
        *optional(value_dim="columns of a value (head-dim)"),
        flag("--gated", "gate and up products (SwiGLU)"),
    )

    def separate_bound(self, workload: TransformerLayer, capacity: int) -> LowerBound:
        """The sum of the kernels' bounds: each reads its inputs from memory and writes its outputs there."""
        return sum_of_kernels(workload, workload.kernels, capacity)

    def best_schedule(self, workload: TransformerLayer, capacity: int) -> Explicit | None:
        families = (GEMM, ATTENTION, GEMM, FFN)
        names = ("qkv", "attention", "o", "mlp")
        kernels = zip(names, families, workload.kernels, strict=True)
        return in_turn(((n, f.best_schedule(kernel, capacity), 1) for n, f, kernel in kernels), capacity)  # type: ignore[attr-defined]


@accounting.register
def _(layer: TransformerLayer) -> Accounting:
    """Q, K, V, the heads' outputs and the projection's are handed over; X, the weights and Y are the layer's own."""
    qkv, attention, projection, mlp = layer.kernels
    heads, chain = accounting(attention), accounting(mlp)
    inside = attention.compulsory_elements // attention.groups  # Q, K, V and O of one group
    parts = (
        _product("qkv", qkv.m, qkv.n, qkv.k, own_input=True),
        Part("attention", tuple(_less(piece, inside) for piece in heads.pieces), 0, attention.groups),
        _product("o", projection.m, projection.n, projection.k),
        Part(
            "mlp",
            tuple(_less(piece, mlp.tokens * mlp.d_model) for piece in chain.pieces),
            mlp.compulsory_elements - mlp.tokens * mlp.d_model,
        ),
    )
    return Accounting(
        (),
        parts=parts,
        computed_once=True,
        game="a transformer layer: $QKV := X W_{qkv}$, causal attention per head, $P := O W_o$, and the FFN of $P$; "
        "everything between $X$ and $Y$ may stay in fast memory",
        symbols={name: getattr(layer, name) for name in layer.DIMENSIONS},
    )


def _product(name: str, m: int, n: int, k: int, own_input: bool = False) -> Part:
    """A product whose result, and perhaps whose input, is handed over."""
    begun = m * n + (0 if own_input else m * k)
    piece = Piece("product", "segment accounting, equation (2)", Box(m, n, k), (m * n * k,), begun)
    return Part(name, (piece,), k * n + (m * k if own_input else 0))


def _less(piece: Piece, handed_over: int) -> Piece:
    return replace(piece, begun=piece.begun + handed_over)


LAYER = LayerFamily()
