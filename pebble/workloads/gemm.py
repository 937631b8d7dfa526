"""General matrix multiplication, C := A B or C += A B."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.workloads.base import Operand, TypedWorkload, check_dimension, default_out_dtype, element_bytes


@dataclass(frozen=True)
class Gemm(TypedWorkload):
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

    m: int
    n: int
    k: int
    dtype: str = "bf16"
    out_dtype: str = ""
    accumulate: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        for dimension in ("m", "n", "k"):
            object.__setattr__(self, dimension, check_dimension(dimension, getattr(self, dimension)))
        element_bytes(self.dtype)
        object.__setattr__(self, "out_dtype", self.out_dtype or default_out_dtype(self.dtype))
        element_bytes(self.out_dtype)

    @property
    def family(self) -> str:
        """The word that selects this family on the command line."""
        return "gemm"

    @property
    def label(self) -> str:
        """One line for titles and tables."""
        shape = f"gemm m={self.m} n={self.n} k={self.k} {self.dtype}"
        if self.out_dtype != default_out_dtype(self.dtype):
            shape += f"->{self.out_dtype}"
        if self.accumulate:
            shape += " C+=AB"
        return f"{self.name} ({shape})" if self.name else shape

    @property
    def multiply_adds(self) -> int:
        """V = m n k, the number of elementary products."""
        return self.m * self.n * self.k

    @property
    def operands(self) -> tuple[Operand, ...]:
        """A, B and C."""
        return (
            Operand("A", self.m, self.k, self.in_bytes, read=True, written=False),
            Operand("B", self.k, self.n, self.in_bytes, read=True, written=False),
            Operand("C", self.m, self.n, self.out_bytes, read=self.accumulate, written=True),
        )

    def to_json(self) -> dict[str, object]:
        """The workload as plain data, for ``--json``."""
        return {
            "family": self.family,
            "name": self.name or None,
            "m": self.m,
            "n": self.n,
            "k": self.k,
            "dtype": self.dtype,
            "out_dtype": self.out_dtype,
            "accumulate_into": self.accumulate,
            "flops": self.flops,
            "compulsory_elements": self.compulsory_elements,
            "compulsory_bytes": self.compulsory_bytes,
        }
