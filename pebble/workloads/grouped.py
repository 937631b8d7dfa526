"""Independent matrix products that share their widths: a batch, or the experts of a mixture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from pebble.errors import InputError
from pebble.workloads.gemm import Gemm
from pebble.workloads.workload import Operand, Workload, check_dimension

MAX_GROUPS = 4096


@dataclass(frozen=True)
class GroupedGemm(Workload):
    """C_g (m_g x n) := A_g (m_g x k) B_g (k x n) for every group g, or C_g += A_g B_g.

    Parameters
    ----------
    rows : tuple of int
        m_g: rows of each group, such as the tokens routed to each expert; equal for a batch. Groups of 0 rows
        compute and move nothing and are left out.
    n, k : int
        Columns of every B_g and C_g, and of every A_g.
    dtype : str
        Type of A and B: bf16, fp16, fp32 or fp8.
    out_dtype : str, optional
        Type of C; by default the inputs', bf16 for fp8.
    accumulate : bool
        True for C += A B: C is read as well as written.
    name : str, optional
        What the user called it.

    Raises
    ------
    InputError
        No group with rows, more than 4096, a dimension below 1 or above 2^32, or an unknown data type.

    Examples
    --------
    >>> GroupedGemm((128, 64), 256, 512).multiply_adds == (128 + 64) * 256 * 512
    True
    """

    FAMILY = "grouped"
    DIMENSIONS = ("n", "k")

    rows: tuple[int, ...]
    n: int
    k: int
    dtype: str = "bf16"
    out_dtype: str = ""
    accumulate: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        rows = self.rows
        if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
            raise InputError(f"rows: got {rows!r}, expected the rows of each group, such as (128, 64).")
        checked = tuple(check_dimension("rows", m) for m in rows if type(m) is not int or m != 0)
        if not 1 <= len(checked) <= MAX_GROUPS:
            raise InputError(f"rows: got {len(checked)} groups, expected 1 to {MAX_GROUPS} with rows.")
        object.__setattr__(self, "rows", checked)
        super().__post_init__()

    @cached_property
    def gemms(self) -> tuple[Gemm, ...]:
        """The product of each group."""
        return tuple(Gemm(m, self.n, self.k, self.dtype, self.out_dtype, self.accumulate) for m in self.rows)

    @property
    def shape_text(self) -> str:
        if len(set(self.rows)) == 1:
            return f"batch={len(self.rows)} m={self.rows[0]} n={self.n} k={self.k}"
        shown = ",".join(map(str, self.rows[:8])) + (f",... ({len(self.rows)} groups)" if len(self.rows) > 8 else "")
        return f"rows={shown} n={self.n} k={self.k}"

    @property
    def multiply_adds(self) -> int:
        """Elementary products of all groups."""
        return sum(self.rows) * self.n * self.k

    @property
    def operands(self) -> tuple[Operand, ...]:
        """A, B and C, all groups stacked."""
        total, groups = sum(self.rows), len(self.rows)
        return (
            self._read("A", total, self.k),
            self._read("B", groups * self.k, self.n),
            self._written("C", total, self.n, self.accumulate),
        )
