"""A network whose tokens go in two groups, one after the other, each by the family that suits so many tokens.

The rows of a fused band are what fits: with a few more, one more pass of all weights is needed, or one more visit of
A and Y. Two kernels move as much for a row whatever their number is, once there are enough. So as many tokens as fill
a band may go fused and the others by two kernels, or in two phases. Each group is a network of its own that reads all
weights; nothing passes from one to the other.

The search fills a band: heights at which so many blocks of H, or a panel, just fit. For the other tokens it builds what
estimates do not rule out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from pebble.schedules.explicit.chain import Chain, ChainPlan
from pebble.schedules.explicit.chain_bands import best_band
from pebble.schedules.explicit.chain_search import built
from pebble.schedules.explicit.fused import FusedSchedule
from pebble.workloads import Ffn
from pebble.workloads.widths import FastMemory

FAMILY = "two groups of tokens"
_MOST_BLOCKS = 12  # of H in a band

Rest = Callable[[Ffn, float], FusedSchedule | None]  # the best of one family for so many tokens, below so many bytes


def in_groups(ffn: Ffn, groups: tuple[tuple[int, FusedSchedule], ...]) -> FusedSchedule:
    """The groups, numbers of tokens and their schedules, one after the other."""
    each = [schedule for _, schedule in groups]
    loads, stores = (
        {
            name: sum(traffic.get(name, 0) for traffic in parts)
            for name in dict.fromkeys(name for traffic in parts for name in traffic)
        }
        for parts in ([schedule.loads for schedule in each], [schedule.stores for schedule in each])
    )
    detail = "; then ".join(f"{tokens} tokens by {schedule.family}: {schedule.detail}" for tokens, schedule in groups)
    peak, traffic = max(schedule.peak_elements for schedule in each), sum(schedule.bytes for schedule in each)
    return FusedSchedule(FAMILY, detail, ffn, loads, stores, peak, each[0].memory, traffic, groups=groups)


def best_groups(
    ffn: Ffn, chain: Chain, memory: FastMemory, below: int, fused: Callable[[Ffn, ChainPlan], FusedSchedule], rest: Rest
) -> FusedSchedule | None:
    """Those that move least, of fewer bytes than ``below``; None where there are none.

    Parameters
    ----------
    ffn : Ffn
    chain : Chain
        The same as two products in a row.
    memory : FastMemory
    below : int
        Bytes that another schedule moves.
    fused, rest : callable
        The schedule of a plan of some tokens, and the best one for the other tokens.
    """
    best: FusedSchedule | None = None
    for tokens in sorted(set(_heights(chain, memory)), reverse=True):
        plan = built(replace(chain, m=tokens), "rows", memory, [("any", tokens, 1)])
        if plan is None or plan.bytes >= below:
            continue
        last = rest(replace(ffn, tokens=chain.m - tokens), below - plan.bytes)
        if last is not None and plan.bytes + last.bytes < below:
            first = fused(replace(ffn, tokens=tokens), plan)
            best = in_groups(ffn, ((tokens, first), (chain.m - tokens, last)))
            below = best.bytes
    return best


def _heights(chain: Chain, memory: FastMemory) -> Iterator[int]:
    """Rows of the highest band that is a panel, and of those in so many blocks of H."""
    for rule, most in [("panel", chain.f), *(("keep", blocks) for blocks in range(2, _MOST_BLOCKS + 1))]:
        low, high = 0, chain.m - 1
        while low < high:
            middle = (low + high + 1) // 2
            band = best_band(chain, "rows", middle, memory, rule)
            fits = band is not None and band.blocks <= most
            low, high = (middle, high) if fits else (low, middle - 1)
        if low:
            yield low
