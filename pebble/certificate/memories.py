"""The memories of a certificate's game: their number and net, what a copy costs, and what each SM may do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .reading import RefusedError, array, choice, equal, fields, fraction, integer, tagged, text

MAX_SMS = 64


@dataclass(frozen=True)
class Memories:
    """P memories, what a copy costs per hop, if there are copies, the net, and what an SM may do."""

    sms: int
    omega: Fraction | None
    net: str
    most: int
    allowed: tuple[int, ...] = ()
    """Per task, a mask of the SMs that may do it; any, where this is empty."""

    @property
    def near(self) -> int:
        """SMs that reach each other, at most."""
        return min(self.sms, int(self.net.removeprefix("cluster-"))) if self.net.startswith("cluster-") else self.sms

    def taken_together(self, group: int, tasks: int) -> Memories:
        """Groups of so many SMs as one memory each; without copies where none goes from group to group."""
        apart = self.omega is None or (group > 1 and group == self.near < self.sms)
        net = "" if apart else "all-to-all"
        return Memories(-(-self.sms // group), None if apart else self.omega, net, min(tasks, group * self.most))

    def crossing(self, group: int, at: str) -> tuple[Fraction, ...]:
        """Of the hops of each kind, the share that crosses between groups of so many SMs, at most."""
        none, half, every = Fraction(0), Fraction(1, 2), Fraction(1)
        shares: dict[int, tuple[Fraction, ...]]
        if self.net == "ring":
            return (Fraction(-(-self.sms // group), self.sms) if group < self.sms else none,)
        if self.net == "partitions-2":  # hops within a half, and from half to half
            shares = {1: (every, half), self.sms // 2: (none, half), self.sms: (none, none)}
        else:
            shares = {1: (every,), self.near: (none,), self.sms: (none,)}
        if group not in shares:
            raise RefusedError(at, f"nothing is known of groups of {group} SMs of {self.net}")
        return shares[group]

    def hops(self, a: int, b: int) -> int | None:
        """Between two SMs; None where no copy is possible."""
        if self.omega is None or a == b:
            return None
        if self.net == "ring":
            return min(abs(a - b), self.sms - abs(a - b))
        if self.net == "partitions-2":
            return 1 if (2 * a < self.sms) == (2 * b < self.sms) else 2
        if self.net.startswith("mesh-"):
            columns = int(self.net.rpartition("x")[2])
            return abs(a // columns - b // columns) + abs(a % columns - b % columns)
        return 1 if a // self.near == b // self.near else None


def read_memories(value: Any, tasks: int, at: str) -> Memories:
    """``allowed``, where it is there, has for each task the SMs that may do it, in order."""
    kind = tagged(value, at, "kind", ("sm-local", "connected"))
    named = ("kind", "sms", "most_tasks", *(("omega", "topology") if kind == "connected" else ()))
    fields(value, at, named, ("allowed",))
    sms = integer(value["sms"], f"{at}.sms", 2, MAX_SMS)
    most = integer(value["most_tasks"], f"{at}.most_tasks", -(-tasks // sms), tasks)
    allowed: list[int] = []
    for t, own in enumerate(
        array(value.get("allowed", []), f"{at}.allowed", tasks if "allowed" in value else 0, tasks)
    ):
        where = f"{at}.allowed[{t}]"
        places = [integer(q, where, 0, sms - 1) for q in array(own, where, 1, sms)]
        if places != sorted(set(places)):
            raise RefusedError(where, "the SMs that may do a task are named once each, in order")
        allowed.append(sum(1 << q for q in places))
    if kind == "sm-local":
        return Memories(sms, None, "", most, tuple(allowed))
    omega, net = fraction(value["omega"], f"{at}.omega"), text(value["topology"], f"{at}.topology")
    if match := re.fullmatch(r"mesh-([1-9]\d?)x([1-9]\d?)", net):
        equal(int(match[1]) * int(match[2]), sms, f"{at}.topology", "SMs of the mesh")
    elif not re.fullmatch(r"cluster-[1-9]\d{0,5}", net):
        choice(net, f"{at}.topology", ("all-to-all", "ring", "partitions-2"))
        if net == "partitions-2" and sms % 2:
            raise RefusedError(f"{at}.topology", f"{sms} SMs have no halves")
    return Memories(sms, omega, net, most, tuple(allowed))
