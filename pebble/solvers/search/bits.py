"""Bit tricks on 64-bit words, compiled, and how a slice of a search may end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numba import njit
from numba.core import types
from numba.core.cgutils import unpack_tuple
from numba.cpython.unsafe.numbers import trailing_zeros
from numba.extending import intrinsic

RUNNING, FOUND, EXHAUSTED, FULL, GROW = 0, 1, 2, 3, 4

ONE = np.uint64(1)
ZERO = np.uint64(0)
MIX1 = np.uint64(0x9E3779B97F4A7C15)
MIX2 = np.uint64(0xBF58476D1CE4E5B9)
S29, S32 = np.uint64(29), np.uint64(32)


@intrinsic
def _ones(_context, word):  # type: ignore[no-untyped-def]
    """The processor's own count of set bits."""
    return word(word), lambda _, builder, __, given: builder.ctpop(given[0])


@njit(cache=True, nogil=True, inline="always")
def popcount(x):  # type: ignore[no-untyped-def]
    """Number of set bits."""
    return np.int64(_ones(x))  # type: ignore[call-arg]


@njit(cache=True, nogil=True, inline="always")
def lowest(x):  # type: ignore[no-untyped-def]
    """Index of the lowest set bit of a word that is not zero."""
    return np.int64(trailing_zeros(x))  # type: ignore[call-arg]


@njit(cache=True, nogil=True, inline="always")
def bit(i):  # type: ignore[no-untyped-def]
    """The word with bit i alone."""
    return ONE << np.uint64(i)


@njit(cache=True, nogil=True, inline="always")
def mix(x, y):  # type: ignore[no-untyped-def]
    """A hash of two words."""
    h = x * MIX1
    h ^= h >> S29
    h = (h ^ y) * MIX2
    h ^= h >> S32
    h *= MIX1
    return h ^ (h >> S29)


def _uncounted(context: Any, builder: Any, kind: Any, given: Any) -> Any:
    """A value of a compiled function without the place where the users of its arrays are counted."""
    if isinstance(kind, types.BaseTuple):
        members = zip(kind, unpack_tuple(builder, given), strict=True)  # type: ignore[no-untyped-call, call-overload]
        return context.make_tuple(builder, kind, [_uncounted(context, builder, *member) for member in members])
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value=given)
        array.meminfo = array.meminfo.type(None)
        return array._getvalue()
    return given


def _borrow(_context: Any, value: Any) -> Any:
    """Typing and code of `borrowed`."""
    return value(value), lambda context, builder, _, given: _uncounted(context, builder, value, given[0])


borrowed: Any = intrinsic(_borrow)
"""In compiled code, the same array, or tuple of arrays and numbers, without counts of its users.

Where a tuple of arrays goes to a small function, numba counts one user more of each, and one less at its end: a third
to a half of the time of a search. As long as the caller, who has the arrays, waits for the function, nobody need count.
"""


def bits_of(word: int) -> list[int]:
    """The numbers of the set bits, ascending."""
    return [b for b in range(word.bit_length()) if word >> b & 1]


def mask_of(numbers: Iterable[int]) -> int:
    """The word with these bits."""
    return sum(1 << b for b in numbers)
