"""Bit tricks on 64-bit words, compiled, and how a slice of a search may end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numba.core import cgutils, types
from numba.cpython.unsafe import numbers
from numba.extending import intrinsic
from numpy.typing import NDArray

from pebble.traces.jit import inlined, inner

RUNNING, FOUND, EXHAUSTED, FULL, GROW = 0, 1, 2, 3, 4

ONE = np.uint64(1)
ZERO = np.uint64(0)
MIX1 = np.uint64(0x9E3779B97F4A7C15)
MIX2 = np.uint64(0xBF58476D1CE4E5B9)
S29, S32 = np.uint64(29), np.uint64(32)


_T = TypeVar("_T")
U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
Pair = tuple[np.uint64, np.uint64]
"""A set of up to 128 items or tasks, 64 to a word."""

signed = cast("Callable[[Any], int]", np.int64)
flag = cast("Callable[[Any], bool]", np.bool_)
"""In compiled code, a 64-bit number with a sign, which is what `int` is there, of a word or of an array's element."""


def _count(_context: Any, word: Any) -> Any:
    """Typing and code of the processor's own count of set bits."""
    return word(word), lambda _, builder, __, argument: builder.ctpop(argument[0])


_ones = cast("Callable[[np.uint64], np.uint64]", intrinsic(_count))
_trailing_zeros = cast("Callable[[np.uint64], np.uint64]", numbers.trailing_zeros)


@inlined
def popcount(x: np.uint64) -> int:
    """Number of set bits."""
    return signed(_ones(x))


@inlined
def lowest(x: np.uint64) -> int:
    """Index of the lowest set bit of a word that is not zero."""
    return signed(_trailing_zeros(x))


@inlined
def bit(i: int) -> np.uint64:
    """The word with bit i alone."""
    return ONE << np.uint64(i)


@inner
def single(i: int) -> Pair:
    """The set of i alone."""
    own = ONE << np.uint64(i & 63)
    return (own, ZERO) if i < 64 else (ZERO, own)


@inner
def holds(both: Pair, i: int) -> bool:
    """Whether i is in a set."""
    inside: bool = ((both[0] if i < 64 else both[1]) >> np.uint64(i & 63)) & ONE != ZERO
    return inside


@inlined
def mix(x: np.uint64, y: np.uint64) -> np.uint64:
    """A hash of two words."""
    h = x * MIX1
    h ^= h >> S29
    h = (h ^ y) * MIX2
    h ^= h >> S32
    h *= MIX1
    return h ^ (h >> S29)


_kinds_of: Callable[[Any], list[Any]] = list
_unpack: Callable[[Any, Any], list[Any]] = cgutils.unpack_tuple


def _uncounted(context: Any, builder: Any, kind: Any, argument: Any) -> Any:
    """A value of a compiled function without the place where the users of its arrays are counted."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value=argument)
        array.meminfo = array.meminfo.type(None)
        return array._getvalue()
    if not isinstance(kind, types.BaseTuple):
        return argument
    members = zip(_kinds_of(kind), _unpack(builder, argument), strict=True)
    return context.make_tuple(builder, kind, [_uncounted(context, builder, *member) for member in members])


def _borrow(_context: Any, value: Any) -> Any:
    """Typing and code of `borrowed`."""
    return value(value), lambda context, builder, _, argument: _uncounted(context, builder, value, argument[0])


class _Same(Protocol):
    """A function that gives back what it is given."""

    def __call__(self, arrays: _T, /) -> _T: ...


borrowed = cast(_Same, intrinsic(_borrow))
"""In compiled code, the same array, or tuple of arrays and numbers, without counts of its users.

Where a tuple of arrays goes to a small function, numba counts one user more of each, and one less at its end: a third
to a half of the time of a search. As long as the caller, who has the arrays, waits for the function, nobody need count.
"""


@inlined
def stepped(pick: I64, evict: int, q: int) -> bool:
    """Step on to the next ``evict`` of some numbers, ascending, whose first ``q`` stay; False where q is negative."""
    if q < 0:
        return False
    pick[q] += 1
    for r in range(q + 1, evict):
        pick[r] = pick[r - 1] + 1
    return True


@inlined
def slot_of(words: U64, table: I32, d0: np.uint64, d1: np.uint64) -> int:
    """The slot of a pair of words in a hash table of numbers of rows, from 1; its own or the free one."""
    size = len(table)
    where = signed(mix(d0, d1) & np.uint64(size - 1))
    while table[where] != 0:
        i = table[where] - 1
        if words[i, 0] == d0 and words[i, 1] == d1:
            break
        where = (where + 1) & (size - 1)
    return where


def bits_of(word: int) -> list[int]:
    """The numbers of the set bits, ascending."""
    return [b for b in range(word.bit_length()) if word >> b & 1]


def mask_of(numbers: Iterable[int]) -> int:
    """The word with these bits."""
    return sum(1 << b for b in numbers)
