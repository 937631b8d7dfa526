"""The fast memories of a game: one memory, one per SM, all pooled, or one per SM joined at a price.

==========  ===========================================================================================
single      one memory of S
sm-local    P memories of S; data meets only through slow memory
pooled      one memory of P * S
connected   P memories of S; a copy from another SM costs omega per value and hop of a topology
==========  ===========================================================================================

The topologies, as hops between two SMs:

============  =========================================================================================
all-to-all    1 between any two
cluster-C     1 inside consecutive groups of C SMs (the last may be short), no connection between groups
ring          around a ring, the shorter way
mesh-RxC      a grid of R rows, SMs numbered row by row; rows plus columns between them
partitions-2  1 inside a half of the SMs, 2 between the halves
============  =========================================================================================

All are metrics: a copy on the way through a third SM never costs less than the direct one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from pebble.errors import InputError, UnknownNameError

KINDS = ("single", "sm-local", "pooled", "connected")
TOPOLOGIES = ("all-to-all", "cluster-C", "ring", "mesh-RxC", "partitions-2")
_MAX_DENOMINATOR = 1000  # keeps the coefficients of exact models small, as does
_MAX_OMEGA = 100
_MAX_SMS = 100_000


@dataclass(frozen=True)
class Topology:
    """Hops between P SMs; the names are in the table of the module.

    Raises
    ------
    UnknownNameError
        No such topology.
    InputError
        The SMs do not make it: a mesh of another size, an odd number to be halved.

    Examples
    --------
    >>> Topology("ring", 8).hops(0, 6)
    2
    >>> Topology("cluster-4", 8).hops(3, 4) is None
    True
    """

    name: str
    sms: int

    def __post_init__(self) -> None:
        if self.name in ("all-to-all", "ring"):
            return
        if self.name == "partitions-2":
            if self.sms % 2:
                raise InputError(f"topology {self.name}: got {self.sms} SMs, expected an even number.")
            return
        if re.fullmatch(r"cluster-[1-9]\d{0,5}", self.name):
            return
        if match := re.fullmatch(r"mesh-([1-9]\d{0,5})x([1-9]\d{0,5})", self.name):
            if int(match[1]) * int(match[2]) != self.sms:
                raise InputError(f"topology {self.name}: got {self.sms} SMs, expected {match[1]} * {match[2]} of them.")
            return
        raise UnknownNameError("topology", self.name, TOPOLOGIES, "pebble bound --help")

    @property
    def group(self) -> int:
        """SMs that can reach each other, at most: the cluster size, else all."""
        return min(self.sms, int(self.name.removeprefix("cluster-"))) if self.name.startswith("cluster-") else self.sms

    @property
    def uniform(self) -> bool:
        """Whether all SMs are alike and equally far apart."""
        return self.name == "all-to-all" or (self.group == self.sms and self.name.startswith("cluster-"))

    def hops(self, a: int, b: int) -> int | None:
        """Hops from SM a to SM b: 0 to itself, None where they are not connected."""
        if a == b:
            return 0
        if self.name == "ring":
            around = abs(a - b)
            return min(around, self.sms - around)
        if self.name.startswith("mesh-"):
            cols = int(self.name.rpartition("x")[2])
            return abs(a // cols - b // cols) + abs(a % cols - b % cols)
        if self.name == "partitions-2":
            return 1 if (a < self.sms // 2) == (b < self.sms // 2) else 2
        return 1 if a // self.group == b // self.group else None


@dataclass(frozen=True)
class BufferModel:
    """How the fast memory is cut.

    Parameters
    ----------
    kind : str
        ``single``, ``sm-local``, ``pooled`` or ``connected``.
    sms : int
        P; 1 for ``single``.
    omega : Fraction
        Cost of a copy per value and hop, for ``connected``, which alone has a topology; a load or store costs 1. Above
        1, a far read is dearer than one of slow memory.
    topology : str
        Of the network, as `Topology` names it, for ``connected``.

    Raises
    ------
    InputError
        No such kind or topology; P, omega or topology out of range, or given for a kind that has none.

    Examples
    --------
    >>> BufferModel("connected", 4, Fraction(1, 4)).copy_cost(0, 3)
    Fraction(1, 4)
    >>> BufferModel("sm-local", 4).copy_cost(0, 3) is None
    True
    """

    kind: str
    sms: int = 1
    omega: Fraction = Fraction(0)
    topology: str = "all-to-all"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownNameError("buffer model", self.kind, KINDS, "pebble bound --help")
        most = 1 if self.kind == "single" else _MAX_SMS
        if not 1 <= self.sms <= most:
            raise InputError(f"buffers {self.kind}: got {self.sms} SMs, expected 1 to {most}.")
        object.__setattr__(self, "omega", Fraction(self.omega))
        if not 0 <= self.omega <= _MAX_OMEGA or self.omega.denominator > _MAX_DENOMINATOR:
            raise InputError(
                f"omega: got {self.omega}, expected a number from 0 to {_MAX_OMEGA} with a denominator of at most "
                f"{_MAX_DENOMINATOR}, such as 0.25."
            )
        if self.kind != "connected" and (self.omega or self.topology != "all-to-all"):
            raise InputError(f"buffers {self.kind}: got omega or a topology, expected them with connected only.")
        Topology(self.topology, self.sms)

    @property
    def net(self) -> Topology:
        """The topology."""
        return Topology(self.topology, self.sms)

    @property
    def memories(self) -> int:
        """Separate memories: P, or 1 where there is one address space."""
        return 1 if self.kind in ("single", "pooled") else self.sms

    @property
    def copies_pay(self) -> bool:
        """Whether a copy can cost less than the store and the load that do the same for 2."""
        return self.kind == "connected" and self.omega < 2

    def memory_size(self, capacity: int) -> int:
        """Size of each memory, when an SM has ``capacity``."""
        return capacity * self.sms if self.kind == "pooled" else capacity

    def copy_cost(self, source: int, target: int) -> Fraction | None:
        """Cost per value of a copy between two memories; None where none is possible."""
        if self.kind != "connected" or source == target:
            return None
        hops = self.net.hops(source, target)
        return None if hops is None else self.omega * hops

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        connected = self.kind == "connected"
        return {
            "kind": self.kind,
            "sms": self.sms,
            "omega": float(self.omega) if connected else None,
            "topology": self.topology if connected else None,
        }

    def __str__(self) -> str:
        if self.kind == "single":
            return "single"
        text = f"{self.kind}, {self.sms} SMs"
        return text + (f", omega {float(self.omega):g}, {self.topology}" if self.kind == "connected" else "")


SINGLE = BufferModel("single")


def parse_omega(text: str) -> Fraction:
    """The exact value of ``0.25`` or ``1/4``; InputError for anything else."""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise InputError(f"--omega: got {text[:40]!r}, expected a number, 0 or more, such as 0.25.") from None
