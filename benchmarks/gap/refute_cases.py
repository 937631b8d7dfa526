"""Random chains against Theorem 15: no schedule may move less than its cases prove.

    python benchmarks/gap/refute_cases.py 100000 [--seed 1]

FFNs and gated FFNs with sides up to 400, values alike or of random widths, in 2 to 4 segments of any sizes. Prices are
found for one memory with a few cases, evaluated exactly, and tried in that memory and in 31 others up to twice as
small or as large: prices prove a bound in any. Each is an instance, and stands beside the best schedule of that memory.
Prints how many there were, how often a schedule that moves something twice is met, how close the theorem comes to such
a schedule, and every instance where it is above one; exit code 1 if there is one.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import exp, log
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from refute import ffn, least_bytes, random_widths

from pebble.bounds.cases import boxes
from pebble.bounds.cases_bound import CasesBound
from pebble.bounds.cases_choice import exact
from pebble.bounds.cases_search import Branching
from pebble.bounds.cases_value import CaseValue
from pebble.bounds.lagrangian import LagrangianChain, lagrangian_chains
from pebble.errors import InfeasibleError
from pebble.families import family_of
from pebble.families.ffn import FFN
from pebble.workloads import Ffn
from pebble.workloads.widths import ALIKE, FastMemory

OTHERS = 31


def some_sizes(draw: random.Random, work: int) -> tuple[int, ...]:
    """So much work in 2 to 4 segments."""
    h = min(draw.choice([2, 2, 3, 3, 4]), work)
    parts = [draw.uniform(0.5, 1.5) if draw.random() < 0.5 else 1.0 for _ in range(h)]
    ends = [round(work * sum(parts[:t]) / sum(parts)) for t in range(h + 1)]
    sizes = tuple(high - low for low, high in pairwise(ends))
    return sizes if min(sizes) > 0 else (work,)


def in_memories(problem: LagrangianChain, bound: CasesBound, memories: Sequence[int]) -> Iterator[int]:
    """What the cases and prices of a bound prove in each memory, in units."""
    values: dict[object, int] = {}
    cases = list(boxes(bound.tree, bound.sizes, problem.products[0]))
    for capacity in memories:
        results = []
        for box, prices in cases:
            case = CaseValue(problem, capacity, bound.sizes, prices)
            if prices not in values:
                values[prices] = case.charged()
            results.append(case.in_box(values[prices], box))
        yield min(results)


def instances(draw: random.Random) -> Iterator[tuple[str, int, int, int]]:
    """Of one chain: what each is, what surely moves, the best schedule, and what is proved."""
    workload = ffn(draw)
    assert isinstance(workload, Ffn)
    widths = ALIKE if draw.random() < 0.7 else random_widths(draw)
    problem = draw.choice(lagrangian_chains(FFN.chain(workload), widths))
    most = sum(operand.elements for operand in workload.operands)
    capacity = max(3, int(draw.choice(workload.operands).elements / draw.uniform(0.7, 3)))
    if draw.random() < 0.3:
        capacity = int(exp(draw.uniform(log(3), log(4 + most))))
    memories = [capacity, *(max(3, int(capacity * exp(draw.uniform(-log(2), log(2))))) for _ in range(OTHERS))]
    scale = 1 if widths == ALIKE else widths.in_units[0]
    branching = Branching(problem, scale * capacity, some_sizes(draw, problem.work))
    branching.grow(draw.choice([3, 10]))
    bound = exact(problem, scale * capacity, branching)
    for at, units in zip(memories, in_memories(problem, bound, [scale * at for at in memories]), strict=True):
        values = widths == ALIKE
        memory = FastMemory.of_values(at, workload) if values else FastMemory(at * widths.read, widths)
        try:
            schedule = family_of(workload).best_schedule(workload, memory)
        except InfeasibleError:
            continue
        if schedule is not None:
            least = workload.compulsory_elements if values else least_bytes(workload, widths)
            moved = schedule.elements if values else schedule.bytes
            yield f"{workload.label}, {at} values, {widths}", least, moved, units * (1 if values else widths.unit)


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line, and try so many instances."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    spec = parser.parse_args(arguments)
    draw, tried, met, above, closest = random.Random(spec.seed), 0, 0, 0, 0.0
    try:
        while tried < spec.count:
            for label, least, schedule, proved in instances(draw):
                tried += 1
                if schedule > least:
                    met += proved == schedule
                    closest = max(closest, proved / schedule)
                if proved > schedule:
                    above += 1
                    print(f"ABOVE: {proved:,} > {schedule:,}: {label}", flush=True)
    except KeyboardInterrupt:
        print("interrupted: so far")
    print(
        f"{tried:,} instances: {above} violations, {met:,} schedules above the compulsory are met; "
        f"{closest:.6f} of one at most"
    )
    return int(above > 0)


if __name__ == "__main__":
    sys.exit(main())
