"""What a bound is: a number that no schedule of the instance goes below, and what it takes to recompute it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal["proven", "not_proven_here", "refuted_here"]


@dataclass(frozen=True)
class LowerBound:
    """A proven lower bound on loads plus stores.

    Attributes
    ----------
    elements : int
        Values moved, at least.
    bytes : int
        Bytes moved, at least, each operand at its own width.
    method : str
        The theorem that gives the number.
    certificate : mapping
        What is needed to recompute it: the theorem's parameters for this instance.
    """

    elements: int
    bytes: int
    method: str
    certificate: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "elements": self.elements,
            "bytes": self.bytes,
            "method": self.method,
            "certificate": dict(self.certificate),
        }


@dataclass(frozen=True)
class PublishedBound:
    """A bound from the literature, evaluated on the instance.

    Attributes
    ----------
    name, source : str
        What it is called, and where it stands.
    elements : int
        Its value, rounded down, and 0 where the formula is negative.
    status : {"proven", "not_proven_here", "refuted_here"}
        Whether this number is a lower bound on this instance.
    note : str
        Why.
    """

    name: str
    source: str
    elements: int
    status: Status
    note: str

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "name": self.name,
            "elements": self.elements,
            "status": self.status,
            "note": self.note,
            "source": self.source,
        }


@dataclass(frozen=True)
class Formula:
    """A published formula before it is judged: its value and whether its own theorem covers the instance.

    Attributes
    ----------
    name, source : str
        As in `PublishedBound`.
    elements : int
        Its value, rounded down, at least 0.
    holds : bool
        The theorem's premises are met here and its proof is accepted.
    counts_traffic : bool
        The number counts what this product bounds, loads plus stores of one fast memory.
    note : str
        Which game the theorem is about.
    """

    name: str
    source: str
    elements: int
    holds: bool
    note: str
    counts_traffic: bool = True


def judge(formula: Formula, lower_elements: int, upper_elements: int | None) -> PublishedBound:
    """Say what a published number is worth here.

    A number that its theorem proves, or that does not exceed our proven bound, is proven. A number above a
    schedule that was found is refuted. Anything between is open. Without a schedule (None) nothing is refuted.
    """
    status: Status
    value = formula.elements
    if not formula.counts_traffic:
        status, reason = "not_proven_here", "it counts something else"
    elif upper_elements is not None and value > upper_elements:
        status, reason = "refuted_here", f"a legal schedule moves only {upper_elements:,} elements"
    elif formula.holds:
        status, reason = "proven", "its theorem covers this instance"
    elif value <= lower_elements:
        status, reason = "proven", "not by its own theorem, but our bound implies this number"
    else:
        status, reason = "not_proven_here", "above our bound, and no schedule known refutes it"
    return PublishedBound(formula.name, formula.source, value, status, f"{reason}; {formula.note}")
