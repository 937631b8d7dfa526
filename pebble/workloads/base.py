"""What every workload family shares: data types, operands, and the checks on dimensions."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Protocol

from pebble.errors import InputError, UnknownNameError

DTYPE_BYTES: dict[str, int] = {"bf16": 2, "fp16": 2, "fp32": 4, "fp8": 1}
MAX_DIMENSION = 2**32


def element_bytes(dtype: str) -> int:
    """Bytes of one value of a data type.

    Raises
    ------
    UnknownNameError
        A name that is not one of bf16, fp16, fp32, fp8.
    """
    if dtype not in DTYPE_BYTES:
        raise UnknownNameError("dtype", dtype, DTYPE_BYTES, "pebble workloads")
    return DTYPE_BYTES[dtype]


def default_out_dtype(dtype: str) -> str:
    """The output type when none is given: the inputs', but bf16 for fp8."""
    return "bf16" if dtype == "fp8" else dtype


def check_dimension(name: str, value: object) -> int:
    """A dimension as a positive whole number of at most 2^32, or one clear sentence.

    Raises
    ------
    InputError
        Not a whole number, below 1, or above 2^32.
    """
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"{name}: got {value!r}, expected a whole number from 1 to {MAX_DIMENSION}.") from None
    if not 1 <= number <= MAX_DIMENSION:
        shown = number if abs(number) < 10**40 else f"a number of {number.bit_length()} bits"
        raise InputError(f"{name}: got {shown}, expected a whole number from 1 to {MAX_DIMENSION}.")
    return number


@dataclass(frozen=True)
class Operand:
    """A matrix in slow memory, row-major.

    Attributes
    ----------
    name : str
        ``"A"``, ``"B"``, ``"C"`` ...
    rows, cols : int
        Its shape, in values.
    element_bytes : int
        Bytes of one value.
    read, written : bool
        Whether the workload needs its initial value, and whether it must end in slow memory.
    """

    name: str
    rows: int
    cols: int
    element_bytes: int
    read: bool
    written: bool

    @property
    def elements(self) -> int:
        """Number of values."""
        return self.rows * self.cols

    @property
    def bytes(self) -> int:
        """Size in bytes, without padding."""
        return self.elements * self.element_bytes


class Workload(Protocol):
    """What bounds, schedules and reports need of any family."""

    @property
    def label(self) -> str: ...
    @property
    def family(self) -> str: ...
    @property
    def in_bytes(self) -> int: ...
    @property
    def out_bytes(self) -> int: ...
    @property
    def narrowest_bytes(self) -> int: ...
    @property
    def widest_bytes(self) -> int: ...
    @property
    def operands(self) -> tuple[Operand, ...]: ...
    @property
    def flops(self) -> int: ...
    @property
    def compulsory_elements(self) -> int: ...
    @property
    def compulsory_bytes(self) -> int: ...
    def to_json(self) -> dict[str, object]: ...


class TypedWorkload:
    """What follows from the operands, the multiply-adds and the two data types, for every family.

    A family is a frozen dataclass with ``dtype``, ``out_dtype``, ``operands`` and ``multiply_adds``.
    """

    dtype: str
    out_dtype: str

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The matrices in slow memory."""
        raise AssertionError("a family defines its operands")

    @property
    def multiply_adds(self) -> int:
        """Elementary products."""
        raise AssertionError("a family defines its products")

    @property
    def flops(self) -> int:
        """Floating-point operations, two per multiply-add; activations and softmax are not counted."""
        return 2 * self.multiply_adds

    @property
    def in_bytes(self) -> int:
        """Bytes of one value of an input or an intermediate."""
        return element_bytes(self.dtype)

    @property
    def out_bytes(self) -> int:
        """Bytes of one value of the output."""
        return element_bytes(self.out_dtype)

    @property
    def narrowest_bytes(self) -> int:
        """Bytes of the narrowest value held: a memory of X bytes holds at most X / this many values."""
        return min(self.in_bytes, self.out_bytes)

    @property
    def widest_bytes(self) -> int:
        """Bytes of the widest value held: X / this many values surely fit in X bytes."""
        return max(self.in_bytes, self.out_bytes)

    @property
    def compulsory_elements(self) -> int:
        """Values that cross the boundary at least once; an operand that is read and written crosses twice."""
        return sum(o.elements * (o.read + o.written) for o in self.operands)

    @property
    def compulsory_bytes(self) -> int:
        """The same in bytes, each operand at its own width."""
        return sum(o.bytes * (o.read + o.written) for o in self.operands)
