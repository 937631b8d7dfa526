"""Which SM sits in which partition of the L2, or on which chiplet.

- ``interleaved``: SM number modulo the number of parts; how AMD deals workgroups to dies.
- ``halves``: the first SMs in the first part, and so on.
- ``random``: parts of equal size, drawn with a seed; for chips whose numbering is not published.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.models.caches.base import Chunk

SM_MAPS = ("random", "interleaved", "halves")


def part_of_sm(sms: int, parts: int, sm_map: str, seed: int) -> NDArray[np.int32]:
    """The part of each SM.

    Raises
    ------
    InputError
        More than one part, and a stream that does not say which SM makes a touch.

    Examples
    --------
    >>> part_of_sm(5, 2, "halves", 0).tolist()
    [0, 0, 0, 1, 1]
    """
    if parts == 1:
        return np.zeros(max(1, sms), np.int32)
    if sms < 1:
        raise InputError("policy: partitions and chiplets need to know which SM makes a touch; this trace has no SMs.")
    number = np.arange(sms, dtype=np.int64)
    if sm_map == "interleaved":
        return (number % parts).astype(np.int32)
    spread = (number * parts // sms).astype(np.int32)
    return spread if sm_map == "halves" else np.random.default_rng(seed).permutation(spread)


def sm_of(chunk: Chunk, part: NDArray[np.int32]) -> NDArray[np.int32]:
    """The part that makes each touch."""
    if chunk.sm is None or not part.any():
        return np.zeros(len(chunk.ids), np.int32)
    return part[chunk.sm]
