"""One arithmetic: where every value takes as much as any other, a memory of bytes is a memory of values."""

from __future__ import annotations

import random

import pytest

from pebble.reports.capacity import best_schedule
from pebble.workloads import Attention, Conv2d, Ffn, Gemm, GroupedGemm
from pebble.workloads.widths import ALIKE, FastMemory, Widths
from pebble.workloads.workload import Workload

SEEDS = [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 150))]


def some_workload(rnd: random.Random) -> Workload:
    """Of any family with schedules of its own; small, where each value of memory counts, or of some hundreds."""
    most = rnd.choice([8, 40, 400])
    m, n, k, l = (rnd.randint(1, most) for _ in range(4))
    match rnd.choice(["gemm", "grouped", "ffn", "attention", "conv2d"]):
        case "gemm":
            return Gemm(m, n, k, accumulate=rnd.random() < 0.3)
        case "grouped":
            return GroupedGemm((m, n, m), k, l)
        case "ffn":
            return Ffn(m, n, k, l, gated=rnd.random() < 0.5)
        case "attention":
            causal, softmax = rnd.random() < 0.4, rnd.choice(["online", "strict"])
            return Attention(m, m + n, min(k, 64), min(l, 64), 2, rnd.choice([1, 2]), causal=causal, softmax=softmax)
    return Conv2d(1, rnd.randint(1, 9), rnd.randint(1, 9), 7, 6, rnd.randint(1, 3), rnd.randint(1, 2))


@pytest.mark.parametrize("seed", SEEDS)
def test_widths_that_are_all_alike_are_values(seed: int) -> None:
    """The same schedule, whatever all values take; its bytes are so many times its values."""
    rnd, met = random.Random(seed), 0
    while met < 25:
        workload, width = some_workload(rnd), rnd.choice([1, 2, 4])
        capacity = int(3 * (sum(operand.elements for operand in workload.operands) + 3) ** rnd.uniform(0, 1.05))
        single = best_schedule(workload, FastMemory(capacity, ALIKE))
        same = best_schedule(workload, FastMemory(width * capacity, Widths(width, width, width, width)))
        assert (single is None) == (same is None), (workload, capacity)
        if single is None or same is None:
            continue
        assert same.bytes == width * single.bytes == width * single.elements, (workload, capacity, width)
        assert (same.elements, same.peak_elements, same.name) == (single.elements, single.peak_elements, single.name)
        met += 1
