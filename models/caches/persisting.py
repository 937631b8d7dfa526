"""A cache with a set-aside for an operand: ``+persist-OPERAND[-SHARE[-FROM-TO]]`` behind another model's name.

NVIDIA's L2 residency control (CUDA C++ Programming Guide, "L2 set-aside for persisting accesses"): a kernel names one
address range, the access-policy window; lines of it are persisting with a probability, its hit ratio, and stay in a
part of the L2 that is set aside for them, up to 75 % on A100 and H100 (``persistingL2CacheMaxSize``). Other accesses
may use what persisting ones leave of it.

The window here is an operand, or its part FROM to TO (of 1) in row-major order of tiles, and SHARE (0.75) the most that
is set aside. Assumed beyond the guide:

- the hit ratio is chosen so that what persists fits, as the guide advises; whole tiles persist, spread evenly over the
  window. What persists never leaves, misses once, and is written back at the end;
- the rest of the cache is the other model with what is left, from the start: the set-aside is no larger than needed;
- in partitions each part keeps its own copy of what persists, so that only SHARE / parts of the cache is kept. Whether
  copies persist is not documented; this is the cautious reading.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError
from pebble.models.caches.policy import CachePolicy, Engine, Numbers
from pebble.traces import WRITE, Trace, TraceChunk
from pebble.traces.jit import jit

OPTION = "persist"
MOST = 0.75
_WINDOW = re.compile(
    r"persist-(?P<operand>[a-z][a-z0-9]*)(?:-(?P<share>[0-9.]+)(?:-(?P<begin>[0-9.]+)-(?P<end>[0-9.]+))?)?"
)


@jit
def _spread(lines: Numbers, window: NDArray[np.bool_], capacity: int, pinned: NDArray[np.bool_]) -> int:
    # Tiles of the window, evenly, so that at no point more of it is kept than its share.
    total = 0
    for tile in range(lines.shape[0]):
        if window[tile]:
            total += lines[tile]
    share = min(1.0, capacity / total) if total else 0.0
    passed = held = 0
    for tile in range(lines.shape[0]):
        if window[tile]:
            passed += lines[tile]
            if held + lines[tile] <= share * passed + 1e-6:
                pinned[tile] = True
                held += lines[tile]
    return held


class PersistingEngine(Engine):
    """What persists apart, everything else through the engine of the policy that it stands behind."""

    policy: Persisting

    def start(self) -> None:
        p = self.policy
        self._pinned = np.zeros(self.tiles, np.bool_)
        capacity = int(self.capacity * p.share)
        held = int(_spread(self.lines, self._window(), capacity, self._pinned))
        self._seen, self._dirty = np.zeros((2, self.tiles), np.bool_)
        self._rest = p.behind.runs(self.trace, (self.capacity - held) * p.parts, p.behind)
        self.write_backs = self._rest.write_backs

    def _window(self) -> NDArray[np.bool_]:
        p = self.policy
        names = [name.lower() for name in self.trace.operand_names]
        if p.operand not in names:
            known = ", ".join(self.trace.operand_names)
            raise InputError(f"policy: got {p.name!r}, expected one of the operands {known} after +{OPTION}-.")
        number = np.flatnonzero(self.operand == names.index(p.operand))
        count = len(number)
        window = np.zeros(self.tiles, np.bool_)
        window[number[int(p.begin * count) : int(np.ceil(p.end * count))]] = True
        return window

    def run(self, chunk: TraceChunk, missed: NDArray[np.int32]) -> None:
        pinned = self._pinned[chunk.ids]
        others = np.flatnonzero(~pinned)
        missed[others] = self._rest.touch(_part(chunk, others))
        at = np.flatnonzero(pinned)
        ids = chunk.ids[at]
        missed[at] = 0
        new, first = np.unique(ids, return_index=True)
        fresh = ~self._seen[new]
        missed[at[first[fresh]]] = self.lines[new[fresh]]
        self._seen[new] = True
        self._dirty[ids[chunk.ops[at] == WRITE]] = True

    def begin(self) -> None:
        self._rest.begin()

    def dirty(self) -> NDArray[np.int64]:
        return self._rest.dirty() + self.by_operand(self._dirty * self.lines)


def _part(chunk: TraceChunk, at: NDArray[np.int64]) -> TraceChunk:
    """Some touches of a chunk."""

    def sm() -> NDArray[np.int32]:
        assert chunk.sm is not None
        return chunk.sm[at]

    sectors = None if chunk.sector_source is None else partial(_taken, chunk, at)
    return TraceChunk(chunk.ids[at], chunk.ops[at], sm_source=chunk.sm_source and sm, sector_source=sectors)


def _taken(chunk: TraceChunk, at: NDArray[np.int64]) -> NDArray[np.uint8]:
    assert chunk.sectors is not None
    return chunk.sectors[at]


@dataclass(frozen=True, kw_only=True)
class Persisting(CachePolicy):
    """``+persist-OPERAND[-SHARE[-FROM-TO]]`` behind another policy.

    Attributes
    ----------
    behind : CachePolicy
        For everything else.
    operand : str
        In lower case.
    share : float
        Of the cache, at most set aside.
    begin, end : float
        Of the operand, from 0 to 1.
    """

    runs = PersistingEngine

    behind: CachePolicy
    operand: str
    share: float = MOST
    begin: float = 0.0
    end: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.share <= MOST:
            raise InputError(f"policy: got {self.name!r}, expected a share of the cache above 0 and up to {MOST:g}.")
        if not 0 <= self.begin < self.end <= 1:
            raise InputError(f"policy: got {self.name!r}, expected a part of the operand such as 0-0.5.")
        if self.behind.structure not in ("full", "partitions") or not self.behind.options:
            raise InputError(
                f"policy: got {self.name!r}, expected +{OPTION} with lru, fifo, oldest-of-K or partitions-P."
            )

    @property
    def structure(self) -> str:
        return self.behind.structure

    @property
    def what(self) -> str:
        part = "" if (self.begin, self.end) == (0, 1) else f" from {self.begin:g} to {self.end:g} of it"
        each = " in each part" if self.parts > 1 else ""
        return (
            f"{self.behind.what}; up to {self.share:.0%} set aside{each} for operand {self.operand.upper()}{part}, as "
            "by an access-policy window"
        )

    def view(self, trace: Trace) -> Trace:
        return self.behind.view(trace)


def persisting(behind: CachePolicy, option: str) -> Persisting:
    """The policy with a set-aside; ``option`` is what stands behind the plus sign.

    Raises
    ------
    InputError
        Not ``persist-OPERAND[-SHARE[-FROM-TO]]``, a share or part out of range, or a policy that has no set-aside.
    """
    match = _WINDOW.fullmatch(option)
    if match is None:
        raise InputError(
            f"policy: got +{option}, expected +{OPTION}-OPERAND, -SHARE of the cache and -FROM-TO of the operand, such "
            f"as +{OPTION}-B, +{OPTION}-B-0.5 or +{OPTION}-B-0.5-0-0.25."
        )
    share, begin, end = (float(match[key] or other) for key, other in (("share", MOST), ("begin", 0), ("end", 1)))
    return Persisting(
        name=behind.name, behind=behind, operand=match["operand"], share=share, begin=begin, end=end,
        parts=behind.parts, warm=behind.warm, seed=behind.seed, sm_map=behind.sm_map,
        write_allocate=behind.write_allocate,
    )  # fmt: skip


def without_persisting(name: str, policy: CachePolicy) -> str | None:
    """The name of a policy without its set-aside; None where it has none."""
    if not isinstance(policy, Persisting):
        return None
    return "+".join(part for part in name.split("+") if not part.lower().startswith(f"{OPTION}-"))
