"""A whole transformer layer in prefill: QKV, attention, output projection, FFN."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.workloads.attention import Attention
from pebble.workloads.ffn import Ffn
from pebble.workloads.gemm import Gemm
from pebble.workloads.workload import Operand, Workload


@dataclass(frozen=True)
class TransformerLayer(Workload):
    """Y := FFN(attention(X Wqkv) Wo), one sequence in prefill with causal attention.

    Everything between X and Y may stay on chip. Norms, rotary position, biases and residual additions are left out;
    K and V need not be kept for later steps.

    Parameters
    ----------
    tokens, d_model : int
        Rows and columns of X and Y.
    hidden : int
        Width of the FFN.
    heads, kv_heads : int
        Query heads, and key/value heads, which divide them.
    head_dim, value_dim : int
        Columns of a query or key, and of a value.
    gated : bool
        Whether the FFN is gated.
    dtype : str
        Type of X, the weights and every intermediate.
    out_dtype : str, optional
        Type of Y.
    name : str, optional
        What the user called it.

    Raises
    ------
    InputError
        A dimension below 1 or above 2^32, or kv_heads that do not divide heads.

    Examples
    --------
    >>> [kernel.label.split()[0] for kernel in TransformerLayer(64, 32, 96, 4, 2, 8, 8).kernels]
    ['gemm', 'attention', 'gemm', 'ffn']
    """

    FAMILY = "layer"
    DIMENSIONS = ("tokens", "d_model", "hidden", "heads", "kv_heads", "head_dim", "value_dim")

    tokens: int
    d_model: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int = 0
    gated: bool = True
    dtype: str = "bf16"
    out_dtype: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        self._default("value_dim", self.head_dim)
        super().__post_init__()
        _ = self.attention  # which checks the heads

    @property
    def shape_text(self) -> str:
        dims = str(self.head_dim) if self.value_dim == self.head_dim else f"{self.head_dim}/{self.value_dim}"
        heads = f"heads={self.heads} kv-heads={self.kv_heads} head-dim={dims}"
        return f"tokens={self.tokens} d-model={self.d_model} {heads} hidden={self.hidden}"

    @property
    def qkv(self) -> Gemm:
        """X times the weights of Q, K and V side by side."""
        width = (self.heads + self.kv_heads) * self.head_dim + self.kv_heads * self.value_dim
        return Gemm(self.tokens, width, self.d_model, self.dtype, self.dtype)

    @property
    def attention(self) -> Attention:
        """All heads, causal."""
        return Attention(
            self.tokens, self.tokens, self.head_dim, self.value_dim,
            heads=self.heads, kv_heads=self.kv_heads, causal=True, dtype=self.dtype, out_dtype=self.dtype,
        )  # fmt: skip

    @property
    def projection(self) -> Gemm:
        """The heads' outputs times Wo."""
        return Gemm(self.tokens, self.d_model, self.heads * self.value_dim, self.dtype, self.dtype)

    @property
    def mlp(self) -> Ffn:
        """The FFN."""
        return Ffn(self.tokens, self.d_model, self.hidden, 0, self.gated, self.dtype, self.out_dtype)

    @property
    def kernels(self) -> tuple[Gemm, Attention, Gemm, Ffn]:
        """What runs, in order."""
        return self.qkv, self.attention, self.projection, self.mlp

    @property
    def multiply_adds(self) -> int:
        """Elementary products of all kernels."""
        return sum(kernel.multiply_adds for kernel in self.kernels)

    @property
    def operands(self) -> tuple[Operand, ...]:
        """X, every weight, and Y."""
        x, weights = self.qkv.operands[:2]
        return (
            self._read("X", x.rows, x.cols),
            self._read("Wqkv", weights.rows, weights.cols),
            self._read("Wo", self.projection.k, self.d_model),
            *self.mlp.operands[1:],
        )
