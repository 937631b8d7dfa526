"""Sums of products over named indices: any einsum, convolutions with windows included."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from pebble.errors import InputError
from pebble.units import ceil_div
from pebble.workloads.nest import Access, Nest
from pebble.workloads.workload import Operand, Workload, check_dimension


@dataclass(frozen=True)
class Einsum(Workload):
    """Out[...] := sum over all other indices of the product of all operands.

    Parameters
    ----------
    subscripts : str
        As `numpy.einsum` has them, ``"bhqd,bhkd->bhqk"``, with the output written out. With spaces between indices
        these may have longer names, and a dimension may be a window: ``"b c 2y+r 2x+s, o c r s -> b o y x"``.
    sizes : mapping or tuple of pairs
        Of each index.
    operands : tuple of str
        Names of the operands, in turn; equal names are one array, ``("A", "A")`` for A A^T. By default all differ.
    dtype : str
        Type of the operands: bf16, fp16, fp32 or fp8.
    out_dtype : str, optional
        Type of the output; by default the inputs', bf16 for fp8.
    name : str, optional
        What the user called it.

    Raises
    ------
    InputError
        Malformed subscripts, a size missing or out of range, or an unknown data type.

    Examples
    --------
    >>> Einsum("mk,kn->mn", {"m": 128, "k": 64, "n": 32}).compulsory_elements == 128 * 64 + 64 * 32 + 128 * 32
    True
    """

    FAMILY = "einsum"
    DIMENSIONS = ()

    subscripts: str
    sizes: tuple[tuple[str, int], ...]
    operand_names: tuple[str, ...] = ()
    dtype: str = "bf16"
    out_dtype: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        extents = dict(self.sizes)
        sizes = tuple((index, check_dimension(f"size of {index}", size)) for index, size in extents.items())
        object.__setattr__(self, "sizes", sizes)
        names = self.operand_names
        if isinstance(names, str | bytes) or not isinstance(names, Iterable):
            raise InputError(f"operands: got {names!r}, expected a name for each operand, such as A,A.")
        object.__setattr__(self, "operand_names", tuple(map(str, names)))
        object.__setattr__(self, "sizes", self.nest.sizes)  # in the order in which they occur

    @cached_property
    def nest(self) -> Nest:
        """What its points meet."""
        return Nest.read(self.subscripts, dict(self.sizes), self.operand_names)

    @property
    def shape_text(self) -> str:
        sizes = " ".join(f"{index}={size}" for index, size in self.sizes)
        shared = f" operands={','.join(self.operand_names)}" if self.operand_names else ""
        written = " as written" * (len(self.nest.inputs) > 2)  # contracted by pairs it is another computation
        return f"{self.subscripts}{written} {sizes}{shared}"

    @property
    def multiply_adds(self) -> int:
        """Points of the nest once each operand is summed over its own indices, of symmetric ones one of each; where
        points may share a product, as many as the output has cells."""
        nest = self.nest
        if not nest.counted:
            return nest.values(nest.output)
        return ceil_div(nest.summed().points, nest.symmetry)

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Each array once: the values that are met, as a matrix."""
        nest = self.nest
        met: dict[str, Access] = {}
        for access in nest.inputs:
            best = met.setdefault(access.array, access)
            if nest.values(access) > nest.values(best):
                met[access.array] = access
        rows = {name: self._rows(access) for name, access in (*met.items(), (nest.output.array, nest.output))}
        inputs = tuple(self._read(name, *rows[name]) for name in met)
        return (*inputs, self._written(nest.output.array, *rows[nest.output.array]))

    def _rows(self, access: Access) -> tuple[int, int]:
        """Rows and columns: the last dimension, where it stands alone."""
        total = self.nest.values(access)
        last = self.nest.extent(access.dims[-1]) if access.dims else 1
        return (total // last, last) if total % last == 0 else (1, total)

    def to_json(self) -> dict[str, object]:
        document = super().to_json()
        names = document.pop("operand_names")
        return document | {"sizes": dict(self.sizes), "operand_names": names}
