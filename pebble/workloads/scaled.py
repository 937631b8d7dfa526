"""Matrix products whose operands have block scales: one, and the two of a feed-forward network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from pebble.errors import UnknownNameError, check_text
from pebble.units import ceil_div
from pebble.workloads.ffn import Network
from pebble.workloads.workload import DTYPE_BYTES, Operand, Workload

UNITS = 32  # of a byte: what a value of every format takes, with its share of a scale, is a whole number of these


class Format(NamedTuple):
    """Bits of a value, and how many values along k share one scale; 0 for none.

    Sources: OCP Microscaling Formats (MX) v1.0; NVIDIA's NVFP4, whose one fp32 scale a tensor is left out; DeepSeek-V3
    (arXiv 2412.19437), fp8 with fp32 scales of 1 x 128 activations and of 128 x 128 weights.
    """

    bits: int
    block: int = 0
    scale: int = 1  #: bytes of a scale
    rows: int = 1  #: across k, how many rows share it too

    @property
    def units(self) -> int:
        """Of a value and its share of a full block's scale, rounded down."""
        return UNITS * self.bits // 8 + (UNITS * self.scale // (self.block * self.rows) if self.block else 0)

    def size(self, depth: int) -> int:
        """Units of ``depth`` values along k, from the first of a block on, and of their scales."""
        return UNITS * self.bits * depth // 8 + (UNITS * self.scale * ceil_div(depth, self.block) if self.block else 0)


FORMATS = {
    "mxfp8": Format(8, 32),
    "mxfp4": Format(4, 32),
    "nvfp4": Format(4, 16),
    "fp8-1x128": Format(8, 128, 4),
    "fp8-128x128": Format(8, 128, 4, 128),
    **{name: Format(8 * width) for name, width in DTYPE_BYTES.items()},
}


class Formatted(Workload):
    """A workload whose operands have formats of their own.

    Rows of operands along k are packed into whole bytes, scales beside them. ``FORMATTED`` are the fields that name a
    format; one that is not given is ``dtype``.
    """

    FORMATTED: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        for field in self.FORMATTED:
            given = check_text(field, vars(self)[field] or self.dtype, ", ".join(FORMATS))
            if given not in FORMATS:
                raise UnknownNameError(field.replace("_", "-"), given, FORMATS, "pebble workloads")
            object.__setattr__(self, field, given)
        object.__setattr__(self, "out_dtype", self.out_dtype or "bf16")
        super().__post_init__()

    @property
    def formats(self) -> tuple[Format, ...]:
        """Of each field that names one."""
        return tuple(FORMATS[vars(self)[field]] for field in self.FORMATTED)

    @property
    def label(self) -> str:
        shape = f"{self.family} {self.shape_text}->{self.out_dtype}{self.options_text}"
        return f"{self.name} ({shape})" if self.name else shape

    @property
    def multiplied_dtype(self) -> str:
        """The widest operand's: hardware that multiplies unlike types does so at its rate."""
        widest = max(self.formats, key=lambda each: each.bits)
        named = (vars(self)[field] for field in self.FORMATTED)
        plain = [name for name, each in zip(named, self.formats, strict=True) if each == widest]
        return plain[0] if not widest.block else f"fp{widest.bits}"

    @staticmethod
    def _packed(name: str, rows: int, depth: int, of: Format) -> tuple[Operand, ...]:
        """An input of so many rows along k, as bytes, and its scales."""
        values = Operand(name, rows, ceil_div(depth * of.bits, 8), 1, read=True, written=False)
        if not of.block:
            return (values,)
        scales = ceil_div(rows, of.rows), ceil_div(depth, of.block)
        return values, Operand(f"scales of {name}", *scales, of.scale, read=True, written=False)

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


@dataclass(frozen=True)
class ScaledGemm(Formatted):
    """C (m x n) := A (m x k) B (k x n), blocks of values along k sharing a scale.

    Parameters
    ----------
    m, n, k : int
        Dimensions, in values.
    dtype_a, dtype_b : str, optional
        Formats of A and B: mxfp8 (32 share a scale), mxfp4 (4 bits, 32), nvfp4 (4 bits, 16), fp8-1x128 and fp8-128x128
        (scales in fp32), or a plain type; by default ``dtype``.
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
    FORMATTED = ("dtype_a", "dtype_b")
    DIMENSIONS = ("m", "n", "k")

    m: int
    n: int
    k: int
    dtype_a: str = ""
    dtype_b: str = ""
    dtype: str = "bf16"
    out_dtype: str = ""
    name: str = ""

    @property
    def shape_text(self) -> str:
        return f"m={self.m} n={self.n} k={self.k} {self.dtype_a} x {self.dtype_b}"

    @property
    def multiply_adds(self) -> int:
        """V = m n k."""
        return self.m * self.n * self.k

    @property
    def operands(self) -> tuple[Operand, ...]:
        """A and B as bytes, with their scales, and C."""
        of_a, of_b = self.formats
        inputs = *self._packed("A", self.m, self.k, of_a), *self._packed("B", self.n, self.k, of_b)
        return (*inputs, self._written("C", self.m, self.n))

    @property
    def compulsory_elements(self) -> int:
        """Values of A, B and C, scales left out."""
        return self.k * (self.m + self.n) + self.m * self.n


@dataclass(frozen=True)
class ScaledFfn(Formatted, Network):
    """Y := act(X W1) W2, or gated: Y := (act(X Wg) * (X Wu)) W2, blocks of values along each sum sharing a scale.

    Parameters
    ----------
    tokens, d_model, hidden, d_out, gated
        As of `pebble.workloads.Ffn`.
    dtype_x, dtype_w, dtype_h : str, optional
        Formats of X, of the weights, and of the hidden layer once it is complete; as of `ScaledGemm`. By default
        ``dtype``.
    dtype : str
        Plain type of what has no format of its own.
    out_dtype : str, optional
        Type of Y; by default bf16.
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
    >>> ScaledFfn(2, 32, 3, dtype_x="mxfp8", dtype_w="mxfp4").compulsory_bytes  # 66 of X, 51, 96 (rows along k), 128
    341
    """

    FAMILY = "scaled-ffn"
    FORMATTED = ("dtype_x", "dtype_w", "dtype_h")

    tokens: int
    d_model: int
    hidden: int
    d_out: int = 0
    gated: bool = False
    dtype_x: str = ""
    dtype_w: str = ""
    dtype_h: str = ""
    dtype: str = "bf16"
    out_dtype: str = ""
    name: str = ""

    @property
    def shape_text(self) -> str:
        return f"{super().shape_text} {self.dtype_x} x {self.dtype_w}, hidden {self.dtype_h}"

    @property
    def multiply_adds(self) -> int:
        """Of all matrix products."""
        return self.tokens * self.hidden * (self.up_products * self.d_model + self.d_out)

    @property
    def operands(self) -> tuple[Operand, ...]:
        """X and the weights as bytes, with their scales, and Y; H has none in slow memory."""
        x, weights, _ = self.formats
        ups = ("Wg", "Wu") if self.gated else ("W1",)
        return (
            *self._packed("X", self.tokens, self.d_model, x),
            *(item for name in ups for item in self._packed(name, self.hidden, self.d_model, weights)),
            *self._packed("W2", self.d_out, self.hidden, weights),
            self._written("Y", self.tokens, self.d_out),
        )

    @property
    def compulsory_elements(self) -> int:
        """Values of X, the weights and Y, scales left out."""
        weights = self.hidden * (self.up_products * self.d_model + self.d_out)
        return self.tokens * (self.d_model + self.d_out) + weights
