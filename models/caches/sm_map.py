"""Which SM sits in which partition of the L2, or on which chiplet.

- ``interleaved``: SM number modulo the number of parts; how AMD deals workgroups to dies.
- ``halves``: the first SMs in the first part, and so on.
- ``random``: parts of equal size, drawn with a seed; for chips whose numbering is not published.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.models.caches.policy import CachePolicy
from pebble.traces import Trace, TraceChunk

SM_MAPS = ("random", "interleaved", "halves")
_MAX_PARTS = 64


def check_parts(policy: CachePolicy) -> None:
    """Refuse a model that is cut into none or into too many parts."""
    if not 1 <= policy.parts <= _MAX_PARTS:
        raise InputError(f"policy: got {policy.name!r}, expected 1 to {_MAX_PARTS} parts.")


class PartitionsOfSms:
    """The part of each SM of a trace under a policy; ``default`` is the map of one that names none.

    Raises
    ------
    InputError
        More than one part, and a trace that does not say which SM makes a touch.
    """

    def __init__(self, trace: Trace, policy: CachePolicy, default: str = "random") -> None:
        if policy.parts > 1 and trace.sms < 1:
            raise InputError(
                "policy: partitions and chiplets need to know which SM makes a touch; this trace has no SMs."
            )
        self._part = part_of_sm(trace.sms, policy.parts, policy.sm_map or default, policy.seed)
        self._partitioned = bool(self._part.any())

    def of(self, chunk: TraceChunk) -> NDArray[np.int32]:
        """The part that makes each touch."""
        sm = chunk.sm if self._partitioned else None
        return np.zeros(len(chunk.ids), np.int32) if sm is None else self._part[sm]


def part_of_sm(sms: int, parts: int, sm_map: str, seed: int) -> NDArray[np.int32]:
    """The part of each SM.

    Examples
    --------
    >>> part_of_sm(5, 2, "halves", 0).tolist()
    [0, 0, 0, 1, 1]
    """
    number = np.arange(sms, dtype=np.int64)
    if sm_map == "interleaved":
        return (number % parts).astype(np.int32)
    spread = (number * parts // max(1, sms)).astype(np.int32)
    return spread if sm_map == "halves" else np.random.default_rng(seed).permutation(spread)
