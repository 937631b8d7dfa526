"""What a kernel's name says: what it computes, its tile, its data types."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from math import gcd
from typing import NamedTuple

_ATTENTION = re.compile(r"flash|fmha|sdpa|attention|attn", re.IGNORECASE)
_PRODUCT = re.compile(
    r"gemm|gemv|matmul|nvjet|xmma|cublas|tensorop|wgmma|[_:]mm[_(<]|\bmm_|_dot_|einsum|addmm|linear", re.IGNORECASE
)
_LIBRARY_TYPES = re.compile(r"nvjet(?:_sm[0-9]+)?_([a-z])(?:[a-z]{2})?[a-z]([a-z])_")  # A (B C) accumulator D
_LIBRARY_BYTES = {"q": 1, "r": 1, "t": 2, "h": 2, "s": 4}
_LIBRARY_NAMES = {"q": ("fp8",), "r": ("fp8",), "t": ("bf16",), "h": ("fp16",), "s": ("fp32", "tf32")}
_TYPE_WORDS = {
    "fp8": re.compile(r"e4m3|e5m2|fp8"),
    "tf32": re.compile(r"tf32|tfloat32|tensorop_s1688gemm(?!_b?f)"),
    "bf16": re.compile(r"bf16|bfloat16"),
    "fp16": re.compile(r"half|(?<!b)fp16|(?<![a-z])f16|hgemm|h16816|h1688|h884"),
    "fp64": re.compile(r"double\b|(?<![a-z])f64|fp64|dgemm|d884"),
    "fp32": re.compile(r"float\b(?!16)|(?<!t)f32|fp32|sgemm"),
    "int8": re.compile(r"int8|(?<![a-z])[is]8(?![0-9])|igemm"),
}
_TILES = (
    re.compile(r"tilesize([0-9]+)x([0-9]+)x([0-9]+)"),
    re.compile(r"nvjet[a-z0-9_]*?_([0-9]+)x([0-9]+)_([0-9]+)x[0-9]+"),
    re.compile(r"(?<![0-9x])([0-9]{2,3})x([0-9]{2,3})(?:x([0-9]{1,3}))?(?:_([0-9]+)x[0-9]+)?(?![0-9])"),
)
_LIBRARY_TILE = re.compile(r"nvjet[a-z0-9_]*?_([0-9]+)x([0-9]+)_[0-9]+x[0-9]+_([0-9]+)x([0-9]+)_")
_BOX_BYTES, _SECTOR = 128, 32
_NETWORK = re.compile(r"(?<![a-z])(?:ffn|mlp|feed_?forward)|swiglu|geglu", re.IGNORECASE)
_SQUARE = re.compile(r"<(?:\(int\))?(8|16|32|64|128|256)>")
_SIDES = range(8, 513)


class Operation(StrEnum):
    """What a kernel computes."""

    GEMM = "gemm"
    FFN = "ffn"
    ATTENTION = "attention"
    OTHER = "other"


class LibraryTile(NamedTuple):
    """A tile of cuBLAS's Hopper kernels as it lies on the result, and how many of them are in a cluster either way.

    ``width`` runs along the values that lie side by side in memory. Clusters are whole: tiles beyond the edge are
    multiplied, not stored.
    """

    width: int
    height: int
    across: int
    down: int

    def padded(self, rows: int, cols: int) -> int:
        """Values of all clusters that a result of so many rows and columns takes.

        Examples
        --------
        >>> LibraryTile(40, 64, 4, 2).padded(384, 512)  # 16 x 6 tiles
        245760
        """
        wide, high = self.width * self.across, self.height * self.down
        return -(-cols // wide) * wide * (-(-rows // high) * high)

    def row_sectors(self, cols: int, value_bytes: int) -> int:
        """Sectors that the stores of a row touch: TMA stores boxes of 128 bytes, which tiles begin anywhere.

        Examples
        --------
        >>> LibraryTile(168, 128, 1, 2).row_sectors(5120, 2), 5120 * 2 // 32
        (365, 320)
        """
        return _row_sectors(self.width, cols, value_bytes)


def _row_sectors(width: int, cols: int, value_bytes: int) -> int:
    period = _SECTOR // gcd(width * value_bytes, _SECTOR)  # tiles after which one begins at a sector again
    periods, rest = divmod(cols, period * width)
    return periods * _touched(width, period * width, value_bytes) + _touched(width, rest, value_bytes)


@lru_cache(1 << 16)
def _touched(width: int, cols: int, value_bytes: int) -> int:
    box, total = _BOX_BYTES // value_bytes, 0
    for start in range(0, cols, width):
        end = min(start + width, cols)
        for first in range(start, end, box):
            last = min(first + box, end) * value_bytes - 1
            total += last // _SECTOR - first * value_bytes // _SECTOR + 1
    return total


class Tile(NamedTuple):
    """A block tile; ``bk`` 0 where the name does not say it."""

    bm: int
    bn: int
    bk: int = 0

    def __str__(self) -> str:
        return f"{self.bm}x{self.bn}" + (f"x{self.bk}" if self.bk else "")


def kind_of(name: str) -> Operation:
    """What the name says that it computes.

    Examples
    --------
    >>> [str(kind_of(name)) for name in ("nvjet_sm90_tst_128x64_64x8_1x2_h_bz_NNT", "flash_fwd_kernel", "vecAdd")]
    ['gemm', 'attention', 'other']
    >>> str(kind_of("ffn_kernel")), str(kind_of("mlp_up_gemm"))
    ('ffn', 'gemm')
    """
    if _ATTENTION.search(name):
        return Operation.ATTENTION
    if _PRODUCT.search(name):  # one product of a network too
        return Operation.GEMM
    return Operation.FFN if _NETWORK.search(name) else Operation.OTHER


def tile_of(name: str) -> Tile | None:
    """The block tile that the name of a GEMM kernel says.

    Examples
    --------
    >>> str(tile_of("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x64x8_stage3"))
    '128x64x8'
    >>> str(tile_of("ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn"))
    '128x256'
    >>> str(tile_of("gemm_tiled_kernel<32>"))
    '32x32'
    """
    for pattern in _TILES:
        result = pattern.search(name)
        if result:
            bm, bn = int(result[1]), int(result[2])
            bk = int(result[3]) if result.lastindex and result.lastindex >= 3 and result[3] else 0
            if bm in _SIDES and bn in _SIDES and bk <= 512:
                return Tile(bm, bn, bk)
    square = _SQUARE.search(name)
    return Tile(int(square[1]), int(square[1])) if square else None


def library_tile(name: str) -> LibraryTile | None:
    """The tile that the name of one of cuBLAS's Hopper kernels says; the first side is that of values side by side.

    Examples
    --------
    >>> library_tile("nvjet_sm90_tst_96x128_64x7_4x1_v_bz_bias_TNN")
    LibraryTile(width=96, height=128, across=4, down=1)
    """
    said = _LIBRARY_TILE.search(name)
    return None if said is None else LibraryTile(*map(int, said.groups()))


def value_bytes(name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Bytes of an input and of an output value that the name allows; all of 1, 2 and 4 where it says nothing.

    Of 8 is only a name that says so.

    Examples
    --------
    >>> value_bytes("gemm_kernel(const float *, float *)"), value_bytes("ampere_bf16_s16816gemm_bf16_128x256")
    (((4,), (4,)), ((2,), (2,)))
    >>> value_bytes("cutlass_80_tensorop_d884gemm_64x64_16x4_nn_align1")
    ((8,), (8,))
    """
    library = _LIBRARY_TYPES.search(name)
    if library and library[1] in _LIBRARY_BYTES and library[2] in _LIBRARY_BYTES:
        return (_LIBRARY_BYTES[library[1]],), (_LIBRARY_BYTES[library[2]],)
    types, lower = operand_types(name), name.lower()
    if types in (("fp8",), ("int8",)):
        return (1,), (1, 2, 4)
    if "bf16" in types or "fp16" in types:  # f32 beside it names the accumulator more often than the output
        return (2,), (2, 4) if re.search(r"f32_f32|float\s*\*", lower) and "16_f32_f32" not in lower else (2,)
    sizes = (4,) * ("fp32" in types or "tf32" in types) + (8,) * ("fp64" in types)
    return (sizes, sizes) if sizes else ((1, 2, 4), (1, 2, 4))


def operand_types(name: str) -> tuple[str, ...]:
    """The data types of the operands that a kernel's name says; several where it says several, none where none.

    Types of accumulators and of results are left out where one of operands is said beside.

    Examples
    --------
    >>> operand_types("ampere_bf16_s16816gemm_bf16_128x256"), operand_types("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n")
    (('bf16',), ('tf32',))
    >>> operand_types("ampere_dgemm_64x64_nn"), operand_types("nvjet_qqtst_128x128_64x4"), operand_types("vecAdd")
    (('fp64',), ('fp8',), ())
    """
    library = _LIBRARY_TYPES.search(name)
    if library and library[1] in _LIBRARY_NAMES:
        return _LIBRARY_NAMES[library[1]]
    lower = name.lower()
    said = [kind for kind, words in _TYPE_WORDS.items() if words.search(lower)]
    for group in (("fp8",), ("tf32",), ("bf16", "fp16"), ("fp64", "fp32"), ("int8",)):
        if here := tuple(kind for kind in said if kind in group):
            return here
    return ()
