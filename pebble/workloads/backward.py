"""The backward passes of training: of one matrix product, of a feed-forward network, and of attention."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.workloads.workload import Operand, Workload


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
