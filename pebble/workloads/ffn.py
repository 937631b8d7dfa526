"""The feed-forward network of a transformer: two matrix products in a row, plain or gated."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.workloads.gemm import Gemm
from pebble.workloads.workload import Operand, Workload


class Network(Workload):
    """A hidden layer between X and Y, plain or gated: what its passes share.

    Attributes
    ----------
    tokens, d_model, hidden, d_out : int
        X is tokens x d_model, the hidden layer tokens x hidden, Y tokens x d_out; ``d_out`` is ``d_model`` by default.
    gated : bool
        Two hidden products, gate and up, that share X (SwiGLU).
    """

    DIMENSIONS = ("tokens", "d_model", "hidden", "d_out")

    tokens: int
    d_model: int
    hidden: int
    d_out: int
    gated: bool

    def __post_init__(self) -> None:
        self._default("d_out", self.d_model)
        super().__post_init__()

    @property
    def shape_text(self) -> str:
        return f"tokens={self.tokens} {self.d_model}->{self.hidden}->{self.d_out}"

    @property
    def up_products(self) -> int:
        """Hidden products that share X: 2 when gated (gate, up), else 1."""
        return 2 if self.gated else 1


@dataclass(frozen=True)
class Ffn(Network):
    """Y := act(X W1) W2, or gated: Y := (act(X Wg) * (X Wu)) W2.

    X is tokens x d_model, the hidden layer H tokens x hidden, Y tokens x d_out. H is an intermediate: it need
    never be in slow memory. It has the inputs' type.

    Parameters
    ----------
    tokens, d_model, hidden : int
        Dimensions, in values.
    d_out : int, optional
        Columns of Y; by default ``d_model``.
    gated : bool
        Two hidden products, gate and up, that share X (SwiGLU).
    dtype : str
        Type of X, the weights and H: bf16, fp16, fp32 or fp8.
    out_dtype : str, optional
        Type of Y; by default the inputs', bf16 for fp8.
    name : str, optional
        What the user called it, such as ``"llama-2-7b:mlp"``.

    Raises
    ------
    InputError
        A dimension below 1 or above 2^32, or an unknown data type.

    Examples
    --------
    >>> Ffn(8192, 768, 3072).compulsory_elements
    17301504
    """

    FAMILY = "ffn"

    tokens: int
    d_model: int
    hidden: int
    d_out: int = 0
    gated: bool = False
    dtype: str = "bf16"
    out_dtype: str = ""
    name: str = ""

    @property
    def multiply_adds(self) -> int:
        """Elementary products of all matrix products."""
        return self.tokens * self.hidden * (self.up_products * self.d_model + self.d_out)

    @property
    def operands(self) -> tuple[Operand, ...]:
        """X, the weights, and Y."""
        matrices = ("Wg", "Wu") if self.gated else ("W1",)
        return (
            self._read("X", self.tokens, self.d_model),
            *(self._read(w, self.d_model, self.hidden) for w in matrices),
            self._read("W2", self.hidden, self.d_out),
            self._written("Y", self.tokens, self.d_out),
        )

    @property
    def hidden_elements(self) -> int:
        """Values of H, which a fused schedule need not move."""
        return self.tokens * self.hidden

    @property
    def gemms(self) -> tuple[Gemm, Gemm]:
        """The two matrix products as separate kernels: H (or gate and up side by side), then Y."""
        first = Gemm(self.tokens, self.up_products * self.hidden, self.d_model, self.dtype, self.dtype)
        return first, Gemm(self.tokens, self.d_out, self.hidden, self.dtype, self.out_dtype)
