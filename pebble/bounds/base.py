"""What a bound is: a number that no schedule of the instance goes below, and the proof that gives it.

The simplest is *compulsory traffic*: fast memory starts empty and every output ends in slow memory, so every input is
loaded and every output stored at least once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pebble.errors import InfeasibleError


@dataclass(frozen=True)
class Theorem:
    """What a bound rests on, and what has checked the proof. Each stands beside the proof that it names."""

    name: str  #: such as ``"Theorem 7"``
    stated_in: str  #: the module whose docstring states and proves it; for a published one, its source
    coq: str = ""  #: the file and theorem of ``docs/formal`` that Coq accepts, ``"Products.gemm_segment_bound"``

    @property
    def on_paper(self) -> Theorem:
        """The same where it is used for more than Coq has checked."""
        return replace(self, coq="")

    @property
    def checked_by(self) -> str:
        """``"Coq"`` or ``"paper"``: a proof on paper was read by people, not by a proof assistant."""
        return "Coq" if self.coq else "paper"

    @property
    def formal(self) -> str:
        """The file and the theorem in Coq, empty without."""
        file, _, name = self.coq.partition(".")
        return f"docs/formal/{file}.v, {name}" if self.coq else ""

    @property
    def how(self) -> str:
        """How it is verified, as a phrase."""
        return f"checked by Coq {COQ_GAME} ({self.formal})" if self.coq else f"proved on paper ({self.stated_in})"

    def __str__(self) -> str:
        return f"{self.name}, {self.how}"

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "name": self.name,
            "stated_in": self.stated_in,
            "checked_by": self.checked_by,
            "formal_proof": self.formal or None,
            "text": str(self),
        }


def all_names(theorems: Iterable[Theorem]) -> str:
    """The names of several, each once."""
    return " and ".join(dict.fromkeys(theorem.name for theorem in theorems))


COQ_GAME = "for schedules that compute nothing twice and keep one accumulator a cell"  # docs/formal/Game.v
COMPULSORY = Theorem("compulsory traffic", __name__)


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
    def theorem(self) -> Theorem:
        """What it rests on."""

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
    def theorem(self) -> Theorem:
        """What it rests on; that equal groups add up is proved on paper, whatever checked the bound of one."""
        theorem = self.proof.theorem
        return theorem if self.instance.get("independent_groups", 1) == 1 else theorem.on_paper

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
            "theorem": self.theorem.to_json(),
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
    theorem: Theorem = COMPULSORY

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
