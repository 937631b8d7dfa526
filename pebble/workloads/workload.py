"""What every workload family shares: data types, operands, and the checks on dimensions."""

from __future__ import annotations

import dataclasses
import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self, SupportsIndex

from pebble.errors import InputError, UnknownNameError, check_flag, check_text

DTYPE_BYTES: dict[str, int] = {"bf16": 2, "fp16": 2, "fp32": 4, "fp8": 1}
MAX_DIMENSION = 2**32


def element_bytes(dtype: str) -> int:
    """Bytes of one value of a data type.

    Raises
    ------
    UnknownNameError
        A name that is not one of bf16, fp16, fp32, fp8.
    """
    if check_text("dtype", dtype, ", ".join(DTYPE_BYTES)) not in DTYPE_BYTES:
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
        if type(value) is not int and (isinstance(value, bool) or not isinstance(value, SupportsIndex)):
            raise TypeError  # True is an index to Python alone
        number = operator.index(value)
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


class Workload(ABC):
    """What bounds, schedules and reports need of any family, and what follows from the operands and data types.

    A family is a frozen dataclass whose ``FAMILY`` is the word that selects it and ``DIMENSIONS`` its whole numbers,
    with ``dtype``, ``out_dtype`` and ``name``.
    """

    FAMILY: ClassVar[str]
    DIMENSIONS: ClassVar[tuple[str, ...]]
    dtype: str
    out_dtype: str
    name: str

    def __post_init__(self) -> None:
        for field in self.DIMENSIONS:
            object.__setattr__(self, field, check_dimension(field.replace("_", "-"), vars(self)[field]))
        kinds = {field.name: field.type for field in dataclasses.fields(self._as_dataclass)}
        for name, value in self.values().items():
            if kinds[name] == "bool":
                check_flag(name, value)
            elif kinds[name] == "str":
                check_text(name, value, "text")
        element_bytes(self.dtype)
        object.__setattr__(self, "out_dtype", self.out_dtype or default_out_dtype(self.dtype))
        element_bytes(self.out_dtype)

    @property
    def _as_dataclass(self) -> Any:
        """The same to whoever asks for the fields that every family has, and this class cannot name."""
        return self

    def values(self) -> dict[str, Any]:
        """Every field by its name."""
        return {field.name: vars(self)[field.name] for field in dataclasses.fields(self._as_dataclass)}

    def replaced(self, **values: object) -> Self:
        """The same with some fields of other values."""
        other: Self = dataclasses.replace(self._as_dataclass, **values)
        return other

    @property
    def dimensions(self) -> dict[str, int]:
        """Its whole numbers by name."""
        return {name: vars(self)[name] for name in self.DIMENSIONS}

    @property
    def token_rows(self) -> int | None:
        """Rows that grow with the tokens of a pass; None where no dimension does."""
        return next((self.dimensions[name] for name in ("tokens", "m", "queries") if name in self.DIMENSIONS), None)

    def _default(self, field: str, otherwise: object) -> None:
        """0 means "not given": the field takes another one's value; anything else is checked like the others."""
        value = vars(self)[field]
        if type(value) is int and value == 0:
            object.__setattr__(self, field, otherwise)

    def _read(self, name: str, rows: int, cols: int) -> Operand:
        """An input of so many values."""
        return Operand(name, rows, cols, self.in_bytes, read=True, written=False)

    def _written(self, name: str, rows: int, cols: int, added_to: bool = False) -> Operand:
        """The output."""
        return Operand(name, rows, cols, self.out_bytes, read=added_to, written=True)

    @property
    @abstractmethod
    def shape_text(self) -> str:
        """The dimensions in words, without types."""

    @property
    @abstractmethod
    def operands(self) -> tuple[Operand, ...]:
        """The matrices in slow memory."""

    @property
    @abstractmethod
    def multiply_adds(self) -> int:
        """Elementary products."""

    @property
    def options_text(self) -> str:
        """Flags in words, each after a space."""
        words = {"accumulate": " C+=AB", "gated": " gated", "causal": " causal", "recomputed": " recomputed"}
        values = self.values()
        return "".join(word for flag, word in words.items() if values.get(flag))

    @property
    def family(self) -> str:
        """The word that selects this family on the command line."""
        return self.FAMILY

    @property
    def label(self) -> str:
        """One line for titles and tables."""
        types = self.dtype if self.out_dtype == default_out_dtype(self.dtype) else f"{self.dtype}->{self.out_dtype}"
        shape = f"{self.family} {self.shape_text} {types}{self.options_text}"
        return f"{self.name} ({shape})" if self.name else shape

    def to_json(self) -> dict[str, object]:
        """The workload as plain data, for ``--json``."""
        spec = self.values()
        if "accumulate" in spec:
            spec["accumulate_into"] = spec.pop("accumulate")
        lists = {key: list(value) if isinstance(value, tuple) else value for key, value in spec.items()}
        return {
            "family": self.family,
            **lists,
            "name": self.name or None,
            "flops": self.flops,
            "compulsory_elements": self.compulsory_elements,
            "compulsory_bytes": self.compulsory_bytes,
        }

    @property
    def flops(self) -> int:
        """Floating-point operations, two per multiply-add; activations and softmax are not counted."""
        return 2 * self.multiply_adds

    @property
    def unmasked_flops(self) -> int:
        """The same of a kernel that leaves nothing out of what a mask hides."""
        return self.flops

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
    def whole_widths(self) -> bool:
        """Whether values take whole bytes, those of an input all the same."""
        return True

    @property
    def multiplied_dtype(self) -> str:
        """The type at whose rate operands are multiplied."""
        return self.dtype

    def values_in(self, size_bytes: int) -> int:
        """The most values that so many bytes hold."""
        return size_bytes // self.narrowest_bytes

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
