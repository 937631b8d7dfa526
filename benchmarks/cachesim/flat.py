"""Flat traces: a plain array of line numbers, as other simulators take them.

Lines that always follow one another are found first: wherever the trace breaks off from counting up by one, a piece
ends before and begins after. Cut at all these places, every piece is touched as a whole, in order, at every touch; so
pieces are tiles, and the run-level policies are exact. A trace of tiles is read at the speed of a comparison per line;
one without runs is simulated line by line.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.models.caches.policy import Numbers
from pebble.models.caches.set_associative import set_of
from pebble.traces.jit import jit

_LONGEST = 1024  # lines of a piece; a whole piece must fit the cache
_BLOCK = 16  # pairs of lines looked at together
_NEXT_PAIR = np.uint64(2 << 32 | 2)  # what two counting lines, read as one word, grow by


@jit
def _find_runs(lines: Numbers, pairs: NDArray[np.uint64], firsts: Numbers, lengths: Numbers) -> int:
    # Runs that count up by one; returns their number, or -1 when there is no room for more. pairs are the same lines,
    # two to a word: half the work, and the compiler makes vectors of it.
    count, begin = 0, 0
    size = lines.shape[0]
    i = 0
    while i < size:
        if i > 0 and i + 2 * _BLOCK <= size and lines[i - 1] == lines[i - 2] + 1:
            pair = np.uint64(i >> 1)
            broken = np.uint64(0)
            for j in range(np.uint64(_BLOCK)):
                broken |= (pairs[pair + j] - pairs[pair + j - np.uint64(1)]) ^ _NEXT_PAIR
            if broken == 0:
                i += 2 * _BLOCK
                continue
        end = min(size, i + 2 * _BLOCK)
        for at in range(max(i, 1), end):
            if lines[at] != lines[at - 1] + 1:
                if count == firsts.shape[0]:
                    return -1
                firsts[count], lengths[count] = lines[begin], at - begin
                count += 1
                begin = at
        i = end
    if count == firsts.shape[0]:
        return -1
    firsts[count], lengths[count] = lines[begin], size - begin
    return count + 1


@jit
def _cut(firsts: Numbers, lengths: Numbers, piece_of: Numbers, sizes: Numbers, out: Numbers) -> int:
    # Each run as the pieces that it consists of; returns how many there are (out may be empty: count only).
    count = 0
    for r in range(firsts.shape[0]):
        line, end = np.int64(firsts[r]), np.int64(firsts[r]) + lengths[r]
        while line < end:
            piece = piece_of[line]
            if out.shape[0]:
                out[count] = piece
            count += 1
            line += sizes[piece]
    return count


def coalesce(lines: NDArray[np.int32], line_count: int | None = None) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """A flat trace as a trace of pieces.

    Parameters
    ----------
    lines : ndarray of int32, shape (accesses,)
        Line numbers from 0.
    line_count : int, optional
        One more than the highest number.

    Returns
    -------
    ids, sizes : ndarray of int32
        The pieces touched, and the lines of each piece.

    Raises
    ------
    InputError
        An empty trace or a negative line.

    Examples
    --------
    >>> ids, sizes = coalesce(np.array([0, 1, 2, 3, 8, 2, 3], np.int32))
    >>> ids.tolist(), sizes[ids].tolist()
    ([0, 1, 3, 1], [2, 2, 1, 2])
    """
    if len(lines) == 0 or int(lines.min() if line_count is None else lines[0]) < 0:
        raise InputError("flat trace: expected at least one line number, none below 0.")
    total = int(lines.max()) + 1 if line_count is None else line_count
    lines = np.ascontiguousarray(lines, np.int32)
    pairs = lines[: len(lines) // 2 * 2].view(np.uint64)
    capacity = max(1024, len(lines) // 32)
    while True:
        firsts, lengths = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
        runs = _find_runs(lines, pairs, firsts, lengths)
        if runs >= 0:
            break
        capacity = min(len(lines), 4 * capacity)
    firsts, lengths = firsts[:runs], lengths[:runs]
    starts = np.zeros(total + 1, np.bool_)
    starts[::_LONGEST] = starts[firsts] = True
    starts[firsts.astype(np.int64) + lengths] = True
    begin = np.flatnonzero(starts[:total])
    sizes = np.diff(np.append(begin, total)).astype(np.int32)
    piece_of = np.cumsum(starts[:total], dtype=np.int32) - np.int32(1)
    nothing: NDArray[np.int32] = np.empty(0, np.int32)
    ids = np.empty(_cut(firsts, lengths, piece_of, sizes, nothing), np.int32)
    _cut(firsts, lengths, piece_of, sizes, ids)
    return ids, sizes


@jit
def _sets(lines: Numbers, tags: NDArray[np.uint32], sets: int, ways: int, hashed: bool) -> int:
    # Each set newest first; a tag is the line + 1. Searching and moving to the front are one pass.
    misses = 0
    for t in range(lines.shape[0]):
        line = lines[t]
        tag = np.uint32(line) + np.uint32(1)
        row = np.uint64(set_of(line, sets, hashed) * ways)
        held = tags[row]
        if held == tag:
            continue
        tags[row] = tag
        result = False
        for way in range(1, ways):
            at = row + np.uint64(way)
            following = tags[at]
            tags[at] = held
            if following == tag:
                result = True
                break
            held = following
        misses += not result
    return misses


def flat_set_misses(lines: NDArray[np.int32], capacity_lines: int, ways: int = 16, hashed: bool = True) -> int:
    """Misses of a set-associative LRU over a flat trace; the sets are those of `simulate_sets`."""
    sets = capacity_lines // ways
    if sets < 1:
        raise InputError(f"cache: got {capacity_lines} lines, expected at least one set of {ways} ways.")
    return int(_sets(lines, np.zeros(sets * ways, np.uint32), sets, ways, hashed))
