"""What a bound is: a number that no schedule of the instance goes below, and the proof that gives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pebble.errors import InfeasibleError


class Proof(Protocol):
    """A theorem, and the numbers that recompute its bound on an instance.

    `Compulsory`, `Segments`, `LineBound`, `PricedBound`, `PassBound`, `Kernels`, `Recomputed`, `Tied`, `Parts`, `Sum`
    and `Memories` are the proofs there are; each stands with its theorem. What writes a certificate or a text looks at
    the type, never at names.
    """

    @property
    def method(self) -> str:
        """What the bound is called."""

    @property
    def elements(self) -> int:
        """Values moved at least, by one of the equal groups that share nothing."""

    def to_json(self) -> dict[str, Any]:
        """The numbers, as plain data for ``--json``."""


@dataclass(frozen=True)
class LowerBound:
    """A proven lower bound on loads plus stores."""

    elements: int  #: values moved, at least
    bytes: int  #: bytes moved, at least, each operand at its own width
    capacity: int  #: S, values that fast memory (with several memories: each of them) holds
    proof: Proof  #: the theorem that gives the number, and what recomputes it
    recompute: bool = False  #: it holds when values may be computed again
    separate: bool = False  #: it holds only when every intermediate goes through slow memory
    instance: Mapping[str, Any] = field(default_factory=dict)  #: what ``certificate`` tells of the workload

    @property
    def method(self) -> str:
        """What the bound is called."""
        return self.proof.method

    @property
    def certificate(self) -> dict[str, Any]:
        """What recomputes it, as plain data."""
        return {"theorem": self.method, **self.instance, **self.proof.to_json()}

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "elements": self.elements,
            "bytes": self.bytes,
            "method": self.method,
            "certificate": self.certificate,
        }


@dataclass(frozen=True)
class Compulsory:
    """Every input is read once and every output written once; ``added`` transfers are certain besides.

    Holds for every capacity and game. ``products`` are all multiply-adds of the group: the schedule is one segment.
    """

    method: str  #: what the bound is called
    least: int  #: inputs read once and outputs written once, of the group
    products: int  #: multiply-adds of the group
    added: int = 0  #: transfers that are certain besides

    @property
    def elements(self) -> int:
        """Values moved at least."""
        return self.least + self.added

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        told = {"segments": 1, "share_multiply_adds": self.products}
        return {**told, "added_elements": self.added} if self.added else told


def check_capacity(capacity: int) -> None:
    """Refuse a capacity in which no multiply-add fits.

    Raises
    ------
    InfeasibleError
        Capacity below 3.
    """
    if capacity < 3:
        raise InfeasibleError(
            f"capacity: got {capacity} elements, expected at least 3 (two operands and a result): no schedule exists."
        )
