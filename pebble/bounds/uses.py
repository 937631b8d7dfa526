"""A theorem on a group of a workload: what it is told, and what it then proves.

A theorem is registered by the family that it is about: one `Use` among those of `pebble.bounds.Accounting`. Whoever
bounds a group, a part or a kernel asks each in turn, in values or in bytes, and knows none by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar, NamedTuple, Protocol, TypeVar

from pebble.bounds.proofs import Proof, SingleClaim
from pebble.workloads.widths import Widths

T = TypeVar("T")


class GroupProof(Proof, Protocol):
    """A proof about one group, part or kernel by itself."""

    @property
    def bytes(self) -> int:
        """Moved at least, in bytes where values have widths; else values."""

    @property
    def segments(self) -> int:
        """How many the schedule is cut into, 1 where it is not."""

    @property
    def products(self) -> int:
        """Multiply-adds."""

    @property
    def form(self) -> str:
        """Which of the workload's boxes it is about, as certificates name it."""

    @property
    def argument(self) -> str:
        """What holds for all instances in bytes, told once for several kernels."""

    @property
    def rank(self) -> int:
        """Of the theorems that a bound rests on, the one of the highest rank names it."""


class InValues(SingleClaim):
    """What proofs share that are about values alone."""

    rank, form, argument = 0, "", ""

    @property
    def bytes(self: Proof) -> int:
        """Values moved at least."""
        return self.elements


class Goal(NamedTuple):
    """What is asked of a theorem."""

    capacity: int  #: S, in what the widths count: values, or bytes
    least: int = 0  #: what is proved already, in the same: less is of no use
    spilled: int = 0  #: scores that a strict softmax stores, of a group
    cases: int = 0  #: how many cases of a chain's segments Theorem 15 may tell apart


class Use(ABC):
    """What one theorem is told of a group."""

    redone: ClassVar[bool] = False  #: whether it holds where intermediates are computed again
    counts_touched: ClassVar[bool] = False  #: whether it counts values that segments touch: Theorem 6 holds for it
    slow: ClassVar[bool] = False  #: whether a search takes tenths of a second: asked where the others have proved most
    first_of_equals: ClassVar[bool] = False  #: whether it names the bound where one before it proves as much

    @abstractmethod
    def proofs(self, goal: Goal) -> Iterable[GroupProof]:
        """What it proves; nothing where that is no use."""

    def weighted(self, widths: Widths) -> tuple[Use, ...]:
        """The same where values have widths; nothing where no theorem is known."""
        return ()

    def on_sms(self) -> tuple[Use, ...]:
        """The same where partial sums may meet in slow memory, a store each."""
        return (self,)

    @property
    def about(self) -> tuple[object, ...]:
        """The boxes, lines or grids that it is told of."""
        return (self,)


class Subject:
    """What theorems are told of: a group, or a part."""

    uses: tuple[Use, ...]

    def of(self, kind: type[T]) -> tuple[T, ...]:
        """What they are told of that type: boxes, lines, grids."""
        return tuple(item for use in self.uses for item in use.about if isinstance(item, kind))


def weighted(uses: Iterable[Use], widths: Widths) -> tuple[Use, ...]:
    """All, where values have widths."""
    return tuple(other for use in uses for other in use.weighted(widths))


def best_of(uses: Iterable[Use], goal: Goal) -> GroupProof | None:
    """What proves most, the first of equals; None where nothing proves more than is proved already."""
    best: GroupProof | None = None
    for use in uses:
        for proof in use.proofs(goal):
            if proof.bytes > goal.least or (best and use.first_of_equals and proof.bytes == goal.least):
                best, goal = proof, goal._replace(least=proof.bytes)
    return best
