"""What stored sectors say: data type, coalescing, and the log-sum-exp of flash attention.

A result of R x C values of b bytes, stored once by full sectors, takes R C b / 32 sectors. Stores that fill only part
of each sector take a whole multiple of that, which another data type would take too: then the counters cannot tell, and
all readings are listed. Flash attention stores an fp32 log-sum-exp beside its result, one value a row and head:
R H 4 / 32 sectors more, which tell the number of heads H.

Sectors that fill with fp64 values also take fp32 ones stored twice over, which is more usual: fp64 is said alone only
where the kernel's name or its instructions say it too.
"""

from __future__ import annotations

from dataclasses import dataclass

from pebble.counters.quantities import SECTOR_BYTES
from pebble.errors import InputError
from pebble.units import ceil_div
from pebble.workloads.workload import DTYPE_BYTES, check_dimension

FACTORS = (1, 2, 4, 8, 16)
HEAD_DIMS = (32, 64, 80, 96, 128, 160, 192, 256, 512)
_LSE_BYTES = 4
_DOUBLE = 8
VALUE_BYTES = (1, 2, 4, _DOUBLE)
TYPES_OF = {_DOUBLE: "fp64"} | {
    size: " or ".join(name for name, b in DTYPE_BYTES.items() if b == size) for size in VALUE_BYTES if size != _DOUBLE
}


@dataclass(frozen=True)
class StoreReading:
    """One way to read a count of stored sectors.

    Attributes
    ----------
    value_bytes : int
        Bytes of a stored value.
    factor : int
        Sectors touched over sectors needed: 1 where every sector is filled.
    extra_sectors : int
        Those of the log-sum-exp.
    heads : int
        That they tell; 0 where there are none.
    """

    value_bytes: int
    factor: int = 1
    extra_sectors: int = 0
    heads: int = 0

    @property
    def text(self) -> str:
        """In words."""
        said = TYPES_OF[self.value_bytes]
        if self.factor > 1:
            said += f", every sector touched {self.factor} times: stores that fill 1/{self.factor} of it"
        if self.heads:
            said += f", and {self.extra_sectors:,} sectors of an fp32 log-sum-exp: {self.heads} heads"
        return said


@dataclass(frozen=True)
class StoreVerdict:
    """What a count of stored sectors says.

    Attributes
    ----------
    sectors, rows, cols : int
    readings : tuple of StoreReading
        Those that fit, most plausible first.
    ambiguous : bool
        More than one reading is left, or the only ones leave sectors partly filled, or it is fp64 against others.
    """

    sectors: int
    rows: int
    cols: int
    readings: tuple[StoreReading, ...]

    @property
    def plain(self) -> tuple[StoreReading, ...]:
        """The readings whose sectors are all filled."""
        return tuple(reading for reading in self.readings if reading.factor == 1)

    @property
    def ambiguous(self) -> bool:
        spec = len(self.plain) == 1 and (self.plain[0].value_bytes != _DOUBLE or len(self.readings) == 1)
        return bool(self.readings) and not spec

    @property
    def heads(self) -> tuple[tuple[int, int, int], ...]:
        """Heads, values a head and bytes a value of the readings with a log-sum-exp; together they fill the columns."""
        return tuple((r.heads, self.cols // r.heads, r.value_bytes) for r in self.readings if r.heads)

    @property
    def text(self) -> str:
        """In a sentence."""
        about = f"{self.sectors:,} stored sectors for {self.rows} x {self.cols} values"
        if not self.readings:
            return f"{about}: no data type fits; the result has another shape, or something else is stored too"
        if not self.ambiguous:
            return f"{about}: {self.plain[0].text}"
        return f"{about}: ambiguous: " + "; or ".join(reading.text for reading in self.readings)


def read_stores(
    sectors: int, rows: int, cols: int, allowed: tuple[int, ...] = VALUE_BYTES, likely: tuple[int, ...] = ()
) -> StoreVerdict:
    """All readings of a count of stored sectors for a result of ``rows`` x ``cols`` values.

    Parameters
    ----------
    sectors : int
        Stored by the kernel, ``l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum``.
    rows, cols : int
        Shape of the result, in values.
    allowed : tuple of int
        Bytes of a value that are possible, such as those that the kernel's name leaves.
    likely : tuple of int
        Those that are listed first.

    Raises
    ------
    InputError
        Sectors or a dimension not above zero.

    Examples
    --------
    >>> read_stores(65536, 128, 4096).text
    '65,536 stored sectors for 128 x 4096 values: fp32'
    >>> [r.heads for r in read_stores(33280, 128, 4096).plain]
    [32]
    >>> read_stores(2097152, 2048, 2048).ambiguous
    True
    """
    rows, cols = check_dimension("rows", rows), check_dimension("cols", cols)
    if sectors < 1:
        raise InputError(f"sectors: got {sectors}, expected at least 1 stored sector.")
    results = []
    for size in allowed:
        full = {ceil_div(rows * cols * size, SECTOR_BYTES), rows * ceil_div(cols * size, SECTOR_BYTES)}
        results += [StoreReading(size, factor) for factor in FACTORS if any(sectors == factor * n for n in full)]
        results += _with_log_sum_exp(sectors, rows, cols, size)
    return StoreVerdict(
        sectors,
        rows,
        cols,
        tuple(sorted(results, key=lambda r: (r.value_bytes not in likely, r.factor, r.heads > 0, -r.value_bytes))),
    )


def _with_log_sum_exp(sectors: int, rows: int, cols: int, size: int) -> list[StoreReading]:
    """One row's values and its log-sum-exps together: exact only where both fill whole sectors."""
    extra = sectors - ceil_div(rows * cols * size, SECTOR_BYTES)
    if size == _DOUBLE or extra < 1 or extra * SECTOR_BYTES % (_LSE_BYTES * rows):
        return []
    heads = extra * SECTOR_BYTES // (_LSE_BYTES * rows)
    return [StoreReading(size, 1, extra, heads)] if cols % heads == 0 and cols // heads in HEAD_DIMS else []


def read_heads(sectors: int, rows: int) -> tuple[tuple[int, int, int], ...]:
    """Heads, values per head and bytes of a value that a flash kernel's stored sectors allow for so many rows.

    Each row and head stores ``head_dim`` values and one log-sum-exp: sectors = rows heads (head_dim b + 4) / 32.
    Results of flash kernels have 16 bits.

    Examples
    --------
    >>> read_heads(33280, 128)
    ((32, 128, 2),)
    """
    rows = check_dimension("rows", rows)
    results = []
    for dim in HEAD_DIMS:
        heads, rest = divmod(sectors * SECTOR_BYTES, rows * (2 * dim + _LSE_BYTES))
        if not rest and heads >= 1:
            results.append((heads, dim, 2))
    return tuple(results)
