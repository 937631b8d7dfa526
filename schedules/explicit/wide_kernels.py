"""The best schedule of two products in a memory of bytes: fused in bands, in two phases, or kernel by kernel."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from pebble.errors import InfeasibleError
from pebble.schedules.explicit.attention import attention_chain, fused_attention
from pebble.schedules.explicit.chain import Chain
from pebble.schedules.explicit.chain_apart import best_panels_apart
from pebble.schedules.explicit.ffn import ffn_chain, fused_ffn
from pebble.schedules.explicit.fused import ChainSchedule
from pebble.schedules.explicit.phase_search import best_phases
from pebble.schedules.explicit.row_state import FAMILY, PASSED, best_row_state
from pebble.schedules.explicit.wide_chain import WidePlan, best_chain_in_bytes
from pebble.schedules.explicit.wide_gemm import WideProduct, best_gemm_in_bytes
from pebble.workloads import Attention, Ffn, Gemm
from pebble.workloads.base import MAX_DIMENSION
from pebble.workloads.widths import Room, Widths


@dataclass(frozen=True)
class WideChainSchedule(ChainSchedule):
    """In a memory of bytes; the family is ``"fused"``, ``"unfused"`` or, of attention, `row_state.FAMILY`.

    Attributes
    ----------
    room : Room
        The memory.
    bytes : int
        Loads plus stores.
    plan : WidePlan, optional
        The bands of one group, when fused.
    kernels : tuple of WideBands, WideGemmSchedule or WidePlan
        The products, when not; gate and up, which one kernel computes and multiplies, as a plan.
    """

    room: Room
    bytes: int
    plan: WidePlan | None = None
    kernels: tuple[WideProduct | WidePlan, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        return {**super().to_json(), "widths_bytes": self.room.widths.to_json()}


def best_in_bytes(workload: Ffn | Attention, room: Room, state: bool = True) -> WideChainSchedule | None:
    """The schedule with the least bytes moved: fused in bands or phases, or kernel by kernel; None where none fits.

    ``state``: whether softmax state takes room.
    """
    if isinstance(workload, Ffn):
        chain, groups = ffn_chain(workload), 1
        separable = room.bytes >= 3 * max(room.widths.hidden, room.widths.partial)
    else:
        chain, groups = attention_chain(workload, state), workload.groups
        separable = not workload.causal and chain.m <= MAX_DIMENSION and room.bytes >= 3 * room.widths.hidden
    found: list[WideChainSchedule] = []
    if separable:
        with suppress(InfeasibleError):  # each product fits, but not in so few values
            found.append(_unfused(workload, chain, groups, room))
    apart = best_panels_apart(chain, room.bytes, room)
    plans = [best_chain_in_bytes(chain, room), None if apart is None else WidePlan(apart, room)]
    if isinstance(workload, Ffn):
        below = min([plan.bytes for plan in plans if plan] + [schedule.bytes for schedule in found], default=0)
        last = Gemm(chain.m, chain.l, chain.f, workload.dtype, workload.out_dtype)
        phases = best_phases(chain, last, room, below) if below > workload.compulsory_bytes else None
        plans.append(None if phases is None else WidePlan(phases, room))
    for plan in plans:
        if plan is None:
            continue
        fused = fused_ffn if isinstance(workload, Ffn) else fused_attention
        same = fused(workload, "fused", plan.plan)  # type: ignore[arg-type]  # each with its own workload
        moved = (same.loads, same.stores, same.peak_elements)
        found.append(WideChainSchedule("fused", same.detail, workload, *moved, room, groups * plan.bytes, plan))
    scores = 2 * room.widths.read * groups * chain.m * chain.f  # are stored, and loaded again
    most = workload.compulsory_bytes + scores
    if separable and isinstance(workload, Attention) and all(s.bytes > most for s in found):
        found += _with_row_state(workload, chain, room, state)
    return min(found, key=lambda s: (s.bytes, s.elements), default=None)


def _with_row_state(attention: Attention, chain: Chain, room: Room, state: bool) -> list[WideChainSchedule]:
    """Two kernels, between which the maximum and sum of each row pass; none where they do not fit."""
    m, k, f, l, groups = chain.m, chain.k, chain.f, chain.l, attention.groups
    products = Gemm(m, f, k, attention.dtype, attention.dtype), Gemm(m, l, f, attention.dtype, attention.out_dtype)
    both = best_row_state(*products, room, state)
    if both is None:
        return []
    first, last = both.kernels
    passed = {PASSED: groups * both.values} if state else {}
    loaded = {"Q": first.loads["A"], "K": first.loads["B"], "S": first.loads["C"] + last.loads["A"]}
    loaded |= {"V": last.loads["B"], "O": last.loads["C"]}
    stored = {"S": first.stores["C"], "O": last.stores["C"]}
    loads, stores = ({name: groups * n for name, n in moved.items()} | passed for moved in (loaded, stored))
    moved = groups * both.bytes
    return [
        WideChainSchedule(
            FAMILY, both.name, attention, loads, stores, both.peak_elements, room, moved, kernels=both.kernels
        )
    ]


def _gate_and_up(ffn: Ffn, both: WidePlan, last: WideProduct, room: Room) -> WideChainSchedule:
    """Gate and up in one kernel, which stores their product, and what follows."""
    cells, plan = ffn.tokens * ffn.hidden, both.plan
    return WideChainSchedule(
        "unfused",
        f"gate and up: {plan.describe()}; {last.name}",
        ffn,
        {
            "X": plan.loads["A"],
            "Wg+Wu": plan.loads["B"],
            "H": last.loads["A"],
            "W2": last.loads["B"],
            "Y": last.loads["C"],
        },
        {"H": cells, "Y": last.stores["C"]},
        max(plan.peak_elements, last.peak_elements),
        room,
        both.bytes + room.widths.read * cells + last.bytes,
        kernels=(both, last),
    )


def _unfused(workload: Ffn | Attention, chain: Chain, groups: int, room: Room) -> WideChainSchedule:
    """Each product at its best, H complete in slow memory between them, and what is done to it there."""
    m, k, f, l, widths = chain.m, chain.k, chain.f, chain.l, room.widths
    inside = replace(room, widths=Widths(widths.read, widths.hidden, widths.hidden, widths.read))
    last = best_gemm_in_bytes(Gemm(m, l, f, workload.dtype, workload.out_dtype), room)
    if chain.streams == 2 and isinstance(workload, Ffn):
        both = best_chain_in_bytes(Chain(m, k, f, 0, streams=2), inside)
        if both is not None:
            return _gate_and_up(workload, both, last, room)
    first = best_gemm_in_bytes(Gemm(m, f, k, workload.dtype, workload.dtype), inside)
    kernels: tuple[WideProduct, ...] = (first, last)
    names, detail = ("X", "W1", "H", "W2", "Y"), ""
    again = 0  # how often H is read between the products; then it is written once more
    if isinstance(workload, Attention):  # a row stays, or is read twice: for its maximum and sum, and to divide
        again, detail = 1 if widths.read * f + 2 * widths.hidden <= room.bytes else 2, "softmax; "
        names = ("Q", "K", "S", "V", "O")
    elif workload.gated:  # gate and up are products of their own, then multiplied
        kernels, again, detail = (first, first, last), 2, "again; gate times up; "
        names = ("X", "Wg+Wu", "H", "W2", "Y")
    ups, cells = len(kernels) - 1, m * f
    hidden = ups * first.loads["C"] + again * cells + last.loads["A"]
    loaded = (ups * first.loads["A"], ups * first.loads["B"], hidden, last.loads["B"], last.loads["C"])
    stored = {names[2]: ups * first.stores["C"] + bool(again) * cells, names[4]: last.stores["C"]}
    between = (again + bool(again)) * cells * widths.read
    return WideChainSchedule(
        "unfused",
        f"{first.name}; {detail}{last.name}",
        workload,
        {name: groups * count for name, count in zip(names, loaded, strict=True)},
        {name: groups * count for name, count in stored.items()},
        max(kernel.peak_elements for kernel in kernels),
        room,
        groups * (sum(kernel.bytes for kernel in kernels) + between),
        kernels=kernels,
    )
