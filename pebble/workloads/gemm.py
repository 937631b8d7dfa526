"""General matrix multiplication, C := A B or C += A B."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.workloads.workload import Operand, Workload


@dataclass(frozen=True)
class Gemm(Workload):
    """C (m x n) := A (m x k) B (k x n), or C += A B.

    Parameters
    ----------
    m, n, k : int
        Dimensions, in values.
    dtype : str
        Type of A and B: bf16, fp16, fp32 or fp8.
    out_dtype : str, optional
        Type of C; by default the inputs', bf16 for fp8.
    accumulate : bool
        True for C += A B: C is read as well as written.
    name : str, optional
        What the user called it, such as ``"llama-3-8b:gate_up"``.

    Raises
    ------
    InputError
        A dimension below 1 or above 2^32, or an unknown data type.

    Examples
    --------
    >>> Gemm(4096, 4096, 4096).compulsory_elements
    50331648
    """

    FAMILY = "gemm"
    DIMENSIONS = ("m", "n", "k")

    m: int
    n: int
    k: int
    dtype: str = "bf16"
    out_dtype: str = ""
    accumulate: bool = False
    name: str = ""

    @property
    def shape_text(self) -> str:
        return f"m={self.m} n={self.n} k={self.k}"

    def along(self, axis: str) -> int:
        """Its extent along m, n or k."""
        return {"m": self.m, "n": self.n, "k": self.k}[axis]

    @property
    def multiply_adds(self) -> int:
        """V = m n k, the number of elementary products."""
        return self.m * self.n * self.k

    @property
    def operands(self) -> tuple[Operand, ...]:
        """A, B and C."""
        return (
            self._read("A", self.m, self.k),
            self._read("B", self.k, self.n),
            self._written("C", self.m, self.n, self.accumulate),
        )
