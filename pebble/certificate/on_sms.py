"""Lower bounds for P SMs with memories of S values each, for any split of the work, or one with a limit for each SM.

Loads L and stores W cross to slow memory, R values are copied from SM to SM; a copy costs omega times its hops. SMs may
add to values in slow memory, a store each (atomic adds), so what begins at a value need not be loaded.

**Apart.** Cut the sequence of each SM into segments. A value touched in a segment was held by that SM at its start (at
most S at each cut), or entered it, by a load or a copy, or is a cell initialised in it; a partial sum initialised in
addition is merged on an SM, where two are touched in one segment, or in slow memory, where it is stored once more. With
f(v) = h x(v / h) - (h - 1) S for the h that is best for v,

    L + W + R >= sum over SMs of f(v_p) - cells initialised and not stored.

**Any split.** x is the least over the reals, concave, with x(0) = 0, so f(a) + f(b) >= f(a + b): with h segments best
for a + b and alpha = h a / (a + b), ceil(alpha) segments of a and ceil(h - alpha) of b touch at least as much and have
no more cuts. So no split of the work has less than f(V), all of it on one SM: the segment theorem with S. Values
counted whole are not concave, so here a proof may not count them. Groups that share nothing add up.

**A limit on the work of an SM**, in multiply-adds: the least of sum f(v_p) within it (`splits`), for a box that has all
multiply-adds of the workload. Groups of g SMs as one memory do g times as many at most.

**As one.** Leave out copies and second pebbles: the game is one of a single memory of P S, L + W at least its bound.
Multipliers above 1 for what leaves and returns do not hold with atomic adds, for a partial sum then leaves for one
move: the line theorem is taken at multipliers of room of 1 at most, where both charge the same. Groups of g SMs as one
memory each are ceil(P / g) memories of g S: the first theorem again, for L + W + copies between groups.

**Connected.** With w = min(omega, 1) and R values copied over one hop at least, L + W + w R >= (1 - w) (L + W) +
w (L + W + R), so the cost is at least (1 - w) B_one + w B_apart. In clusters no copy leaves a cluster, so the bound of
clusters as one memory each stands for B_one. In two partitions a copy between them takes two hops: the cost is at least
(1 - 2 w) B_one + w B_half + w B_apart for w <= 1/2, and (1 - w) B_half + w B_apart above.

**Ring.** Cut the ring into arcs of g SMs, the last perhaps shorter, and take each as one memory: loads, stores and the
copies that cross are at least B_g. Turn the arcs to each of the P places: ceil(P / g) of the P edges are ends of arcs,
so a copy over h edges crosses in at most h ceil(P / g) of them. On average L + W + (ceil(P / g) / P) hops >= B_g; for
all SMs as one memory nothing crosses. So with multipliers y_g >= 0 that sum to 1 at most, and with sum of
y_g ceil(P / g) / P <= omega over the arcs, the cost is at least the sum of y_g B_g.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor
from typing import Any, NamedTuple

from .lower import in_one_memory
from .reading import RefusedError, array, choice, equal, fields, fraction, integer, tagged, text
from .segments import parts_of
from .splits import by_rate, by_whole_numbers
from .statement import ALIKE, Workload, chain_of, without_initial
from .theorems import KernelClaim

MAX_SMS = 100_000
FAMILIES = ("gemm", "ffn", "attention")


def check_on_sms(stated: Workload, claim: dict[str, Any], at: str) -> str:
    """Check one claim of a lower bound on several SMs and say it in a sentence."""
    required = ("claim", "sms", "capacity_elements", "buffers", "elements", "bytes", "as_one", "groups")
    fields(claim, at, required, ("program", "most_multiply_adds"))
    if stated.family not in FAMILIES:
        raise RefusedError("statement.workload.family", f"these theorems are about {', '.join(FAMILIES)}")
    workload = without_initial(stated)
    sms = integer(claim["sms"], f"{at}.sms", 2, MAX_SMS)
    capacity = integer(claim["capacity_elements"], f"{at}.capacity_elements", 3)
    buffers = claim["buffers"]
    kind = tagged(buffers, f"{at}.buffers", "kind", ("sm-local", "connected"))
    total, most = _multiply_adds(workload), None
    if "most_multiply_adds" in claim:
        most = integer(claim["most_multiply_adds"], f"{at}.most_multiply_adds", -(-total // sms), total)
    fields(buffers, f"{at}.buffers", ("kind", *(("omega", "topology") if kind == "connected" else ())))

    single = _as_one(workload, sms * capacity, claim["as_one"], f"{at}.as_one")
    result = {sms: single}
    for number, group in enumerate(array(claim["groups"], f"{at}.groups", 1, 3)):
        where = f"{at}.groups[{number}]"
        fields(group, where, ("sms", "proof"))
        size = integer(group["sms"], f"{where}.sms", 1, sms - 1)
        if size in result:
            raise RefusedError(f"{where}.sms", f"groups of {size} SMs are told of twice")
        grouped = _Grouped(-(-sms // size), size * capacity, None if most is None else min(total, size * most))
        result[size] = max(single, _by_segments(workload, grouped, group["proof"], f"{where}.proof"))

    def of(size: int) -> int:
        if min(size, sms) not in result:
            raise RefusedError(f"{at}.groups", f"nothing is told of groups of {size} SMs")
        return result[min(size, sms)]

    value, said = Fraction(of(1)), "sm-local"
    if kind == "connected":
        value, said = _connected(buffers, sms, of, f"{at}.buffers")
        if "program" in claim:
            if buffers["topology"] != "ring":
                raise RefusedError(f"{at}.program", f"multipliers are for a ring, not for {buffers['topology']}")
            value = _ring(sms, fraction(buffers["omega"], f"{at}.buffers.omega"), of, claim["program"], f"{at}.program")
    elements, moved = floor(value), floor(value * workload.narrow) + workload.bytes_of(0)
    equal(claim["elements"], elements, f"{at}.elements", "elements moved, at least")
    equal(claim["bytes"], moved, f"{at}.bytes", "bytes moved, at least")
    split = "however the work is split" if most is None else f"none of which does more than {most:,} multiply-adds"
    return (
        f"every schedule of {stated.label} on {sms} SMs that hold at most {capacity:,} values each ({said}), {split}, "
        f"costs at least {elements:,} elements, {moved:,} bytes (atomic adds allowed, nothing computed again)"
    )


class _Grouped(NamedTuple):
    """So many memories, what each holds, and the multiply-adds that each does at most; None for any split."""

    memories: int
    capacity: int
    most: int | None


def _multiply_adds(workload: Workload) -> int:
    if not workload.linked:
        return parts_of(workload)["product"].products
    _, k, _, l, cells = chain_of(workload)
    return workload.groups * cells * (workload.streams * k + l)


def _ring(sms: int, omega: Fraction, of: Callable[[int], int], program: Any, at: str) -> Fraction:
    """What multipliers of arcs prove."""
    value, total, crossing = Fraction(0), Fraction(0), Fraction(0)
    for number, item in enumerate(array(program, at, 1, 4)):
        where = f"{at}[{number}]"
        fields(item, where, ("sms", "multiplier"))
        size = integer(item["sms"], f"{where}.sms", 1, sms)
        multiplier = fraction(item["multiplier"], f"{where}.multiplier")
        value += multiplier * of(size)
        total += multiplier
        crossing += multiplier * Fraction(-(-sms // size) if size < sms else 0, sms)
    if total > 1:
        raise RefusedError(at, f"the multipliers add up to {total}, more than a load costs")
    if crossing > omega:
        raise RefusedError(at, f"a hop is charged {crossing}, more than it costs, {omega}")
    return value


def _as_one(workload: Workload, capacity: int, proof: Any, at: str) -> int:
    theorem = tagged(proof, at, "theorem", ("compulsory", "segments", "lines"))
    if theorem == "lines" and fraction(proof.get("rho"), f"{at}.rho") > 1:
        raise RefusedError(
            f"{at}.rho", "with atomic adds a partial sum leaves for one move: no multiplier of room above 1"
        )
    return workload.groups * in_one_memory(workload, capacity, proof, at)


def _by_segments(workload: Workload, grouped: _Grouped, proof: Any, at: str) -> int:
    theorem = tagged(proof, at, "theorem", ("segments", "segments at a rate", "segments of whole numbers"))
    if theorem == "segments":
        for number, share in enumerate(array(proof.get("shares"), f"{at}.shares", 1, 2)):
            if type(share) is not dict or set(share) != {"products", "segments", "touched", "multipliers"}:
                raise RefusedError(f"{at}.shares[{number}]", "for several SMs a proof must be over the reals")
        return workload.groups * KernelClaim(workload, ALIKE, grouped.capacity).moves(proof, at, ("segments",))
    forms = parts_of(workload)
    part = forms[choice(proof.get("form"), f"{at}.form", tuple(forms))]
    free = part.cells - part.more
    limited = grouped.most is not None and workload.groups * part.products == _multiply_adds(workload)
    if theorem == "segments of whole numbers":
        # groups share nothing; a limit is one on all of them together
        limit = grouped.most if limited and workload.groups == 1 and grouped.most is not None else part.products
        touched = by_whole_numbers(part.box, part.products, grouped.memories, limit, grouped.capacity, proof, at)
        return workload.groups * (touched - free)
    if not limited or grouped.most is None:
        raise RefusedError(f"{at}.theorem", "this theorem needs a limit on the multiply-adds of an SM, in a box of all")
    rate = by_rate(part.box, grouped.most, grouped.capacity, proof, at)
    return ceil(rate * _multiply_adds(workload)) - workload.groups * free


def _connected(buffers: dict[str, Any], sms: int, of: Callable[[int], int], at: str) -> tuple[Fraction, str]:
    omega = fraction(buffers["omega"], f"{at}.omega")
    net = text(buffers["topology"], f"{at}.topology")
    w, near, half = min(omega, Fraction(1)), sms, 0
    if match := re.fullmatch(r"cluster-([1-9]\d{0,5})", net):
        near = int(match[1])
    elif net == "partitions-2":
        if sms % 2:
            raise RefusedError(f"{at}.topology", f"{sms} SMs have no halves")
        half = of(sms // 2)
    elif match := re.fullmatch(r"mesh-([1-9]\d{0,5})x([1-9]\d{0,5})", net):
        equal(int(match[1]) * int(match[2]), sms, f"{at}.topology", "SMs of the mesh")
    else:
        choice(net, f"{at}.topology", ("all-to-all", "ring"))
    value = (1 - w) * of(near) + w * of(1)
    if half:
        value = (1 - w) * half + w * of(1)
        if 2 * w <= 1:
            value = (1 - 2 * w) * of(sms) + w * half + w * of(1)
    return value, f"connected, omega {omega}, {net}"
