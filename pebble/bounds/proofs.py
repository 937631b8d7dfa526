"""What a bound is: a number that no schedule of the instance goes below, and the proof that gives it.

The simplest is *compulsory traffic*: fast memory starts empty and every output ends in slow memory, so every input is
loaded and every output stored at least once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

from pebble.bounds.numbers import number
from pebble.errors import InfeasibleError, PebbleError
from pebble.workloads.widths import ALIKE, Widths


@dataclass(frozen=True)
class Theorem:
    """What a bound rests on, and what has checked the proof. Each stands beside the proof that it names."""

    name: str  #: such as ``"Theorem 7"``
    stated_in: str  #: the module whose docstring states and proves it; for a published one, its source
    coq: str = ""  #: the file and theorem of ``docs/formal`` that Coq accepts, ``"Products.gemm_segment_bound"``

    searched: bool = False  #: whether a program looked through the cases of this instance

    @property
    def on_paper(self) -> Theorem:
        """The same where it is used for more than Coq has checked."""
        return replace(self, coq="")

    @property
    def checked_by(self) -> str:
        """``"Coq"``, ``"paper"``: read by people, not by a proof assistant; or ``"search"``, of one instance."""
        return "Coq" if self.coq else "search" if self.searched else "paper"

    @property
    def short(self) -> str:
        """Its name, and who checked the proof."""
        words = {"Coq": "checked by Coq", "paper": "proved on paper", "search": "by search"}
        return f"{self.name}, {words[self.checked_by]}"

    @property
    def formal(self) -> str:
        """The file and the theorem in Coq, empty without."""
        file, _, name = self.coq.partition(".")
        return f"docs/formal/{file}.v, {name}" if self.coq else ""

    @property
    def how(self) -> str:
        """How it is verified, as a phrase."""
        if self.searched:
            return f"by search ({self.stated_in})"
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
ONCE = {"theorem": "compulsory"}  #: as the checker says it


class NotCertifiedError(PebbleError):
    """A number that was announced could not be proved: the bound, or the writer of certificates, has a mistake."""

    exit_code = 5


class Proof(Protocol):
    """A theorem on an instance: the numbers that recompute its bound, its claim for the checker, its text for a reader.

    Each stands with its theorem. Whoever writes a certificate or a text asks the proof, and knows none by name.
    """

    @property
    def method(self) -> str:
        """What the bound is called."""

    @property
    def theorem(self) -> Theorem:
        """What it rests on."""

    @property
    def elements(self) -> int:
        """Values moved at least, by one of the equal groups that share nothing; units where values have widths."""

    def to_json(self) -> dict[str, Any]:
        """The numbers, as plain data for ``--json``."""

    def claim(self) -> dict[str, Any]:
        """The proof in the checker's terms.

        Raises
        ------
        NotCertifiedError
            The numbers do not add up to the bound, or the checker does not know the theorem.
        """

    def claims(self, bound: LowerBound) -> list[dict[str, Any]]:
        """What a certificate claims of a bound that it gives; errors as for `claim`."""

    def text(self, traffic: Mapping[str, int]) -> str:
        """The argument for a reader, the numbers of the instance filled in; ``traffic``: what surely moves, by operand.

        Raises
        ------
        TypeError
            It is told in no text by itself.
        """


class SingleClaim:
    """What most proofs share: one claim, in values."""

    def claim(self: Proof) -> dict[str, Any]:
        """None that the checker knows."""
        raise NotCertifiedError(
            f"certificate: the checker does not know the theorem {self.method!r}; please report it."
        )

    def claims(self: Proof, bound: LowerBound) -> list[dict[str, Any]]:
        """That so many values move at least."""
        return [
            {
                "claim": "lower bound",
                "game": bound.game,
                "capacity_elements": bound.capacity,
                "elements": bound.elements,
                "bytes": bound.bytes,
                "proof": self.claim(),
            }
        ]

    def text(self: Proof, traffic: Mapping[str, int]) -> str:
        """None by itself."""
        raise TypeError(f"no text for {self.method}")


class _OfWidths(Protocol):
    METHODS: ClassVar[tuple[str, str]]

    @property
    def widths(self) -> Widths: ...

    @property
    def elements(self) -> int: ...

    @property
    def unit(self) -> int: ...


class InWidths(SingleClaim):
    """What proves the same theorem in values and, where these have widths, in units of them.

    Attributes
    ----------
    METHODS : tuple of str
        What it is called in values, and in bytes.
    rank : int
        Of several theorems that a bound rests on, the one of the highest rank names it.
    """

    METHODS: ClassVar[tuple[str, str]]
    rank: ClassVar[int] = 0

    @property
    def method(self: _OfWidths) -> str:
        """What the bound is called."""
        return self.METHODS[self.widths != ALIKE]

    @property
    def unit(self: _OfWidths) -> int:
        """Bytes of a unit; 1 where values are counted."""
        return self.widths.unit

    @property
    def bytes(self: _OfWidths) -> int:
        """Bytes moved at least, where values have widths."""
        return self.unit * self.elements


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
    atomic: bool = False  #: it holds when partial sums may meet in slow memory, a store each

    @property
    def method(self) -> str:
        """What the bound is called."""
        return self.proof.method

    @property
    def theorem(self) -> Theorem:
        """What it rests on; that equal groups add up, and that partial sums may meet, is proved on paper."""
        checked = self.instance.get("independent_groups", 1) == 1 and not self.atomic
        return self.proof.theorem if checked else self.proof.theorem.on_paper

    @property
    def game(self) -> dict[str, str]:
        """Which schedules it is about, as certificates say it."""
        return {
            "recompute": "allowed" if self.recompute else "forbidden",
            "kernels": "separate" if self.separate else "fused",
        }

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
class Compulsory(SingleClaim):
    """Every input is read once and every output written once; ``added`` transfers are certain besides.

    Holds for every capacity and game. ``products`` are all multiply-adds of the group: the schedule is one segment.
    """

    method: str  #: what the bound is called
    least: int  #: inputs read once and outputs written once, of the group
    products: int  #: multiply-adds of the group
    added: int = 0  #: transfers that are certain besides
    theorem: Theorem = COMPULSORY

    segments, rank, form, argument = 1, 0, "", ""

    @property
    def elements(self) -> int:
        """Values moved at least."""
        return self.least + self.added

    @property
    def bytes(self) -> int:
        """The same: it is about values."""
        return self.elements

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        fields = {"segments": 1, "share_multiply_adds": self.products}
        return {**fields, "added_elements": self.added} if self.added else fields

    def claim(self) -> dict[str, Any]:
        """That every operand moves needs no further word."""
        return ONCE

    def text(self, traffic: Mapping[str, int]) -> str:
        """Each operand, and what is certain besides."""
        terms, names = " + ".join(map(number, traffic.values())), ", ".join(f"`{name}`" for name in traffic)
        return rf"""
        ## Every value moves once

        Every input is read and every output written at least once: {names} (twice if read and written).

        $$ Q \ge {terms} = {number(sum(traffic.values()))}
        """ + spilled_text(self.added // 2, "stored and loaded again")


def spilled_text(spilled: int, moves: str) -> str:
    """Why a strict softmax moves so many scores more."""
    if not spilled:
        return ""
    return f"""
        ## Strict softmax

        When the last score of a row enters its sum, all scores of that row are computed and none is used. At most $S -
        1$ of them are in fast memory beside the sum; the others are {moves}: ${number(spilled)}$ per group, on top.
        """


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
