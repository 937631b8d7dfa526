"""A flow: dataflows of the products of a workload, one after another or side by side, and what they move in all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from heapq import heapreplace

from pebble.schedules.explicit.dataflow import Dataflow, Moved

_SHOWN = 4  # parts of a flow that are told in its line


@dataclass(frozen=True)
class Flow:
    """One dataflow after another, each so many times: what a row of ``compare`` shows.

    Attributes
    ----------
    name : str
        Such as ``output-, then input-stationary``.
    parts : tuple of (int, Dataflow)
    handover : str
        Of a chain: where the intermediate goes from one product to the next. Empty for one product.
    parts_are : tuple of str
        What each part is, where they are unlike.
    beside : int
        Arrays that work side by side, each on one part at a time, the longest first; 0 where all cores are on one part.
    """

    name: str
    parts: tuple[tuple[int, Dataflow], ...]
    handover: str = ""
    parts_are: tuple[str, ...] = ()
    beside: int = 0

    @property
    def title(self) -> str:
        """The name, which says where H stays on the cores."""
        return self.name + (", H on cores" if self.handover.startswith("on cores") else "")

    @cached_property
    def moved(self) -> Moved:
        """What crosses each boundary, in all; ``work`` is the mean over the parts by their work, or that of arrays."""
        moves = [(count, part.moved, count * part.face.multiply_adds) for count, part in self.parts]
        sums = [sum(count * moved[i] for count, moved, _ in moves) for i in range(4)]
        total = sum(work for *_, work in moves)
        mean = sum(moved.work * work for _, moved, work in moves) / total
        if self.beside:
            arrays = [0.0] * self.beside
            jobs = (moved.work * work / count for count, moved, work in moves for _ in range(count))
            for job in sorted(jobs, reverse=True):
                heapreplace(arrays, arrays[0] + job)
            mean = max(arrays) / total
        return Moved(int(sums[0]), int(sums[1]), int(sums[2]), int(sums[3]), mean)

    @property
    def sent(self) -> int:
        """Bytes that leave the cores, to the shared buffer or off chip."""
        return sum(count * part.sent for count, part in self.parts)

    @property
    def detail(self) -> str:
        """What the parts are, in a line."""
        often = [f"{n} times" if n > 1 else "" for n, _ in self.parts]
        heads = [f"{each}{', ' * bool(n)}{n}: " for each, n in zip(self.parts_are, often, strict=False)]
        heads = heads or [f"{n} " if n else "" for n in often]
        shown = [head + part.detail for head, (_, part) in zip(heads, self.parts[:_SHOWN], strict=False)]
        more = len(self.parts) - len(shown)
        text = "; ".join(shown) + (f"; ... ({more} more)" if more else "")
        return f"{self.beside} arrays side by side, {text}" if self.beside else text

    def to_json(self) -> Mapping[str, object]:
        """Plain data for ``--json``."""
        parts = [{"times": count, **part.to_json()} for count, part in self.parts]
        for part, of in zip(parts, self.parts_are, strict=False):
            part["part"] = of
        return {"name": self.name, "handover": self.handover or None, "detail": self.detail, "parts": parts}
