"""The proven bound, the best explicit schedule and the published bounds of any workload, for one capacity."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from pebble.bounds import Formula, LowerBound, lower_bound, published_bounds, separate_bound
from pebble.errors import InfeasibleError
from pebble.schedules.explicit import best_gemm_schedule
from pebble.schedules.explicit.attention import best_attention_schedule
from pebble.schedules.explicit.ffn import best_ffn_schedule
from pebble.workloads import Attention, Conv2d, Ffn, Gemm

AnyWorkload = Gemm | Ffn | Attention | Conv2d


class Schedule(Protocol):
    """An explicit schedule of any family."""

    @property
    def elements(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def name(self) -> str: ...
    def to_json(self) -> dict[str, object]: ...


@dataclass(frozen=True)
class Answer:
    """What is known of a workload at one capacity.

    Attributes
    ----------
    lower : LowerBound
        No schedule moves less.
    upper : Schedule or None
        A legal schedule; None where no family of schedules is built (convolution) or fits.
    separate : LowerBound or None
        For chains: the least when every intermediate goes through slow memory.
    formulas : tuple of Formula
        Published bounds, not yet judged.
    """

    lower: LowerBound
    upper: Schedule | None
    separate: LowerBound | None
    formulas: tuple[Formula, ...]


def answer(
    workload: AnyWorkload, capacity: int, schedule_capacity: int, processors: int = 1, recompute: bool = False
) -> Answer:
    """Bound a workload from both sides.

    Parameters
    ----------
    workload : Gemm, Ffn, Attention or Conv2d
    capacity : int
        S for the lower bounds, values of the narrowest width.
    schedule_capacity : int
        Values that a schedule may hold, counted at the widest width.
    processors : int
        For the parallel bound.
    recompute : bool
        Whether the lower bound must hold for schedules that compute a value twice.
    """
    lower = lower_bound(workload, capacity, recompute)
    formulas = published_bounds(workload, capacity, processors)
    upper: Schedule | None = None
    if isinstance(workload, Gemm):
        upper = best_gemm_schedule(workload, schedule_capacity)
    elif isinstance(workload, Ffn):
        upper = best_ffn_schedule(workload, schedule_capacity)
    elif isinstance(workload, Attention):
        # no family of ours may fit so little; that is not a proof that nothing does
        with suppress(InfeasibleError):
            upper = best_attention_schedule(workload, schedule_capacity)
    separate = separate_bound(workload, capacity) if isinstance(workload, Ffn | Attention) else None
    return Answer(lower, upper, separate, formulas)


def to_json(found: Answer) -> dict[str, Any]:
    """The bounds as plain data, without the published ones."""
    document: dict[str, Any] = {"lower_bound": found.lower.to_json(), "upper_bound": None, "gap": None}
    if found.upper is not None:
        document["upper_bound"] = {
            "elements": found.upper.elements,
            "bytes": found.upper.bytes,
            "schedule": found.upper.name,
            "details": found.upper.to_json(),
        }
        document["gap"] = found.upper.elements / found.lower.elements
    if found.separate is not None:
        document["separate_kernels_bound"] = found.separate.to_json()
        document["separate_over_fused_bound"] = found.separate.elements / found.lower.elements
    return document
