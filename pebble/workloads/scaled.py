"""A matrix product whose operands have block scales: MXFP8, MXFP4 and NVFP4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pebble.errors import UnknownNameError, check_text
from pebble.units import ceil_div
from pebble.workloads.workload import DTYPE_BYTES, Operand, Workload

UNITS = 32  # of a byte: what a value of every format takes, with its share of a scale, is a whole number of these


class Format(NamedTuple):
    """Bits of a value, and how many values along k share one scale of 8 bits; 0 for none.

    Sources: OCP Microscaling Formats (MX) v1.0; NVIDIA's NVFP4, whose one fp32 scale a tensor is left out.
    """

    bits: int
    block: int = 0

    @property
    def units(self) -> int:
        """Of a value and its share of a full block's scale."""
        return UNITS * self.bits // 8 + (UNITS // self.block if self.block else 0)

    def size(self, depth: int) -> int:
        """Units of ``depth`` values along k, from the first of a block on, and of their scales."""
        return UNITS * self.bits * depth // 8 + (UNITS * ceil_div(depth, self.block) if self.block else 0)


FORMATS = {
    "mxfp8": Format(8, 32),
    "mxfp4": Format(4, 32),
    "nvfp4": Format(4, 16),
    **{name: Format(8 * width) for name, width in DTYPE_BYTES.items()},
}


@dataclass(frozen=True)
class ScaledGemm(Workload):
    """C (m x n) := A (m x k) B (k x n), blocks of values along k sharing a scale of 8 bits.

    Rows of A and columns of B are packed into whole bytes, scales beside them.

    Parameters
    ----------
    m, n, k : int
        Dimensions, in values.
    dtype_a, dtype_b : str, optional
        Formats of A and B: mxfp8 (32 share a scale), mxfp4 (4 bits, 32), nvfp4 (4 bits, 16), or a plain type; by
        default ``dtype``.
    dtype : str
        Plain type of an operand that has none of its own.
    out_dtype : str, optional
        Type of C; by default bf16.
    name : str, optional
        What the user called it.

    Raises
    ------
    InputError
        A dimension below 1 or above 2^32.
    UnknownNameError
        An unknown format or data type.

    Examples
    --------
    >>> ScaledGemm(2, 3, 40, "mxfp4", "mxfp8").compulsory_bytes  # 2 (20 + 2), 3 (40 + 2), 12 bytes of C
    182
    """

    FAMILY = "scaled-gemm"
    DIMENSIONS = ("m", "n", "k")

    m: int
    n: int
    k: int
    dtype_a: str = ""
    dtype_b: str = ""
    dtype: str = "bf16"
    out_dtype: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        for field in ("dtype_a", "dtype_b"):
            given = check_text(field, vars(self)[field] or self.dtype, ", ".join(FORMATS))
            if given not in FORMATS:
                raise UnknownNameError(field.replace("_", "-"), given, FORMATS, "pebble workloads")
            object.__setattr__(self, field, given)
        object.__setattr__(self, "out_dtype", self.out_dtype or "bf16")
        super().__post_init__()

    @property
    def formats(self) -> tuple[Format, Format]:
        """Of A and of B."""
        return FORMATS[self.dtype_a], FORMATS[self.dtype_b]

    @property
    def shape_text(self) -> str:
        return f"m={self.m} n={self.n} k={self.k} {self.dtype_a} x {self.dtype_b}"

    @property
    def label(self) -> str:
        shape = f"{self.family} {self.shape_text}->{self.out_dtype}"
        return f"{self.name} ({shape})" if self.name else shape

    @property
    def multiplied_dtype(self) -> str:
        """The wider operand's: hardware that multiplies unlike types does so at its rate."""
        widest = max(self.formats, key=lambda each: each.bits)
        plain = [name for name, each in zip((self.dtype_a, self.dtype_b), self.formats, strict=True) if each == widest]
        return plain[0] if not widest.block else f"fp{widest.bits}"

    @property
    def multiply_adds(self) -> int:
        """V = m n k."""
        return self.m * self.n * self.k

    @property
    def operands(self) -> tuple[Operand, ...]:
        """A and B as bytes, with their scales, and C."""
        results = []
        for name, rows, of in zip("AB", (self.m, self.n), self.formats, strict=True):
            results.append(Operand(name, rows, ceil_div(self.k * of.bits, 8), 1, read=True, written=False))
            if of.block:
                scales = ceil_div(self.k, of.block)
                results.append(Operand(f"scales of {name}", rows, scales, 1, read=True, written=False))
        return (*results, self._written("C", self.m, self.n))

    @property
    def compulsory_elements(self) -> int:
        """Values of A, B and C, scales left out."""
        return self.k * (self.m + self.n) + self.m * self.n

    @property
    def in_bytes(self) -> int:
        """Bytes that surely hold a value of an input."""
        return max(ceil_div(of.bits, 8) for of in self.formats)

    @property
    def narrowest_bytes(self) -> int:
        """0: a value may take less than a byte, so that to count values says nothing in bytes."""
        return 0

    @property
    def whole_widths(self) -> bool:
        return False

    def values_in(self, size_bytes: int) -> int:
        return UNITS * size_bytes // min(*(of.units for of in self.formats), UNITS * self.out_bytes)
