"""The backward passes of training: of one matrix product, of a feed-forward network, and of attention."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.workloads.attention import SharedHeads
from pebble.workloads.ffn import Network
from pebble.workloads.workload import Operand, Workload

STATISTICS = ("L", "delta")  # of a row of attention, in fp32
STATISTIC_BYTES = 4


@dataclass(frozen=True)
class GemmBackward(Workload):
    """dA := dC B^T and dB := A^T dC: the backward pass of C := A B, A of m x k and B of k x n.

    Parameters
    ----------
    m, n, k : int
        Dimensions of the forward product, in values.
    dtype : str
        Type of A, B and dC: bf16, fp16, fp32 or fp8.
    out_dtype : str, optional
        Type of dA and dB; by default the inputs', bf16 for fp8.
    name : str, optional
        What the user called it.

    Raises
    ------
    InputError
        A dimension below 1 or above 2^32.
    UnknownNameError
        An unknown data type.

    Examples
    --------
    >>> GemmBackward(2, 3, 5).compulsory_elements  # A, B and dC are read, dA and dB written
    56
    """

    FAMILY = "gemm-backward"
    DIMENSIONS = ("m", "n", "k")

    m: int
    n: int
    k: int
    dtype: str = "bf16"
    out_dtype: str = ""
    name: str = ""

    @property
    def shape_text(self) -> str:
        return f"m={self.m} n={self.n} k={self.k}"

    @property
    def multiply_adds(self) -> int:
        """m n k for each of the two products."""
        return 2 * self.m * self.n * self.k

    @property
    def operands(self) -> tuple[Operand, ...]:
        """A, B and dC; dA and dB."""
        return (
            self._read("A", self.m, self.k),
            self._read("B", self.k, self.n),
            self._read("dC", self.m, self.n),
            self._written("dA", self.m, self.k),
            self._written("dB", self.k, self.n),
        )


@dataclass(frozen=True)
class FfnBackward(Network):
    """The backward pass of Y := H W1, H := act(Z), Z := X W0, given dY; or gated, of H := act(X Wg) * (X Wu).

    dH := dY W1^T, dW1 := H^T dY, dZ := dH * act'(Z), dX := dZ W0^T, dW0 := X^T dZ. One saved matrix, H, stands for H
    and act'(Z): a value of it gives both, as that of Z does, or that of H where the activation is a rectifier. dZ takes
    the place of dH and need never be in slow memory. Gated, G := X Wg and U := X Wu are saved, and H is made of them;
    dZ is dG and dU side by side, dG := dH * U * act'(G) and dU := dH * act(G), with Wg and Wu side by side as W0.

    Parameters
    ----------
    tokens, d_model, hidden : int
        X is tokens x d_model, H tokens x hidden, in values.
    d_out : int, optional
        Columns of Y; by default ``d_model``.
    recomputed : bool
        H is computed again, from X and W0, instead of being read; or G and U are, from X, Wg and Wu.
    gated : bool
        Two hidden products, gate and up, that share X (SwiGLU).
    dtype : str
        Type of all inputs and intermediates: bf16, fp16, fp32 or fp8.
    out_dtype : str, optional
        Type of dX, dW0 and dW1; by default the inputs', bf16 for fp8.
    name : str, optional
        What the user called it.

    Raises
    ------
    InputError
        A dimension below 1 or above 2^32.
    UnknownNameError
        An unknown data type.

    Examples
    --------
    >>> FfnBackward(2, 3, 5).multiply_adds, FfnBackward(2, 3, 5, recomputed=True).multiply_adds
    (120, 150)
    >>> FfnBackward(2, 3, 5, gated=True).multiply_adds
    180
    """

    FAMILY = "ffn-backward"

    tokens: int
    d_model: int
    hidden: int
    d_out: int = 0
    recomputed: bool = False
    dtype: str = "bf16"
    out_dtype: str = ""
    name: str = ""
    gated: bool = False

    @property
    def multiply_adds(self) -> int:
        """Of four products, and of that for H where it is computed again; gated, of six or eight."""
        up = (3 if self.recomputed else 2) * self.up_products
        return self.tokens * self.hidden * (up * self.d_model + 2 * self.d_out)

    @property
    def saved(self) -> int:
        """Values that the forward pass kept: those of H, or of G and U; none where they are computed again."""
        return 0 if self.recomputed else self.up_products * self.tokens * self.hidden

    @property
    def layers(self) -> tuple[GemmBackward, GemmBackward]:
        """The backward passes of Y := H W1 and of Z := X W0, gate and up side by side; dC of it is made of dA."""
        of = self.dtype, self.out_dtype
        return (
            GemmBackward(self.tokens, self.d_out, self.hidden, *of),
            GemmBackward(self.tokens, self.up_products * self.hidden, self.d_model, *of),
        )

    @property
    def operands(self) -> tuple[Operand, ...]:
        """X, W0, W1, dY, and H where it is saved; dX, dW0 and dW1. Gated, Wg and Wu for W0, G and U for H."""
        m, d, f, e = self.tokens, self.d_model, self.hidden, self.d_out
        first, saved = (("Wg", "Wu"), ("G", "U")) if self.gated else (("W0",), ("H",))
        return (
            self._read("X", m, d),
            *(self._read(name, d, f) for name in first),
            self._read("W1", f, e),
            self._read("dY", m, e),
            *(self._read(name, m, f) for name in saved if not self.recomputed),
            self._written("dX", m, d),
            *(self._written(f"d{name}", d, f) for name in first),
            self._written("dW1", f, e),
        )


@dataclass(frozen=True)
class AttentionBackward(SharedHeads):
    """The backward pass of O := softmax(Q K^T) V, scores computed again from the statistics of each row.

    S := Q K^T, P := exp(S - L), dP := dO V^T, dS := P * (dP - delta), dV := P^T dO, dQ := dS K, dK := dS^T Q. Given are
    Q, K, V, dO, and of each row L, the logarithm of its sum, and delta, the sum of dO * O, both in fp32.

    Parameters
    ----------
    queries, keys, head_dim, value_dim, heads, kv_heads, batch, causal, dtype, name
        As of `pebble.workloads.Attention`.
    out_dtype : str, optional
        Type of dQ, dK and dV; by default the inputs', bf16 for fp8.

    Raises
    ------
    InputError, UnknownNameError
        As of `pebble.workloads.Attention`.

    Examples
    --------
    >>> AttentionBackward(4096, 4096, 128).compulsory_elements  # seven matrices, two statistics a row
    3678208
    """

    FAMILY = "attention-backward"
    DIMENSIONS = ("queries", "keys", "head_dim", "value_dim", "heads", "kv_heads", "batch")

    queries: int
    keys: int
    head_dim: int
    value_dim: int = 0
    heads: int = 1
    kv_heads: int = 0
    batch: int = 1
    causal: bool = False
    dtype: str = "bf16"
    out_dtype: str = ""
    name: str = ""

    @property
    def multiply_adds(self) -> int:
        """Of five products, over the pairs that are seen."""
        pairs = self.batch * self.heads * self.pairs_per_head
        return pairs * (3 * self.head_dim + 2 * self.value_dim)

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Q, K, V, dO and the statistics; dQ, dK and dV; all sequences and heads stacked."""
        rows, cols = self.batch * self.heads * self.queries, self.groups * self.keys
        return (
            self._read("Q", rows, self.head_dim),
            self._read("K", cols, self.head_dim),
            self._read("V", cols, self.value_dim),
            self._read("dO", rows, self.value_dim),
            *(Operand(name, rows, 1, STATISTIC_BYTES, read=True, written=False) for name in STATISTICS),
            self._written("dQ", rows, self.head_dim),
            self._written("dK", cols, self.head_dim),
            self._written("dV", cols, self.value_dim),
        )
