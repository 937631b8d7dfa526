"""What proofs by segments of equal work can reach (`histories`), beside what is proved of layers today.

    python benchmarks/gap/reach.py products benchmarks/gap/reach_products.csv
    python benchmarks/gap/reach.py random benchmarks/gap/reach_random.csv
    python benchmarks/gap/reach.py chains benchmarks/gap/reach_chains.csv

``products``: the GEMMs of the catalogue that must move something twice, at the best number of segments up to 25.
``random``: products whose least operand is 0.4 to 2.5 times the memory, in few segments. ``chains``: FFNs, plain and
gated, at the best of some numbers of segments; ``free`` where prices must not depend on what kinds of products a
segment has, ``reach`` where every case has its own: no such proof proves more with so many segments. ``low`` is what so
many boxes of cases do prove, but for rounding and steps. In millions of values.
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
from collections.abc import Callable, Iterator
from math import exp, log
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from catalogue import Instance, recorded
from histories import Program, cases, chain, product, reach

from pebble.families import family_of, lower_bound
from pebble.workloads import Ffn, Gemm
from pebble.workloads.widths import FastMemory

PRODUCT_STEPS, CHAIN_STEPS, MOST_SEGMENTS, BOXES, RANDOM = 24, 12, 25, 150, 100
CHAINS = (
    ("ffn 8192x(4096,11008)", 40960, (7, 10, 12)),
    ("ffn 8192x(4096,11008)", 51200, (5, 7)),
    ("ffn 8192x(4096,11008)", 73728, (3, 4)),
    ("ffn 4096x(4096,14336)", 40960, (5, 6, 7)),
    ("ffn 4096x(4096,14336)", 51200, (5, 6, 7)),
    ("gated 8192x(4096,11008)", 51200, (8, 9, 10)),
    ("gated 4096x(4096,14336)", 51200, (4, 5, 6)),
    ("gated 8192x(1600,6400)", 40960, (2, 3)),
)
BRANCHED = {("ffn 8192x(4096,11008)", 73728): 3, ("ffn 4096x(4096,14336)", 51200): 5}  # and in how many segments
COLUMNS = ("instance", "kibibytes", "bound", "schedule", "segments", "free", "reach", "low", "boxes")
Row = dict[str, str]


def row_of(instance: Instance, today: Row, found: dict[str, Any]) -> Row:
    """A row of the tables, in millions of values."""
    numbers = {"bound": int(today["bound_elements"]), "schedule": int(today["schedule_elements"])} | found
    texts = {key: f"{numbers[key] / 1e6:.2f}" for key in COLUMNS if key in numbers and key not in ("segments", "boxes")}
    texts |= {key: str(found[key]) for key in ("segments", "boxes") if key in found}
    return {"instance": instance.name, "kibibytes": str(instance.kibibytes)} | texts


def products(smallest: bool) -> Iterator[Row]:
    """Every GEMM that must move something twice, in not too many segments."""
    for instance, today in recorded():
        gemm, capacity = instance.workload, instance.capacity_elements
        if not isinstance(gemm, Gemm) or today["schedule"].startswith("compulsory"):
            continue
        usual = gemm.m * gemm.n * gemm.k / capacity**1.5
        if usual > MOST_SEGMENTS / 1.2:
            continue
        yield row_of(instance, today, of_product(gemm, capacity, usual))
        if smallest:
            return


def of_product(gemm: Gemm, capacity: int, usual: float) -> dict[str, Any]:
    """What can be reached, and in how many segments of those around the usual number."""
    nest, best = product(gemm, PRODUCT_STEPS), (0.0, 0)
    for segments in range(2, max(4, round(1.2 * usual)) + 1):
        best = max(best, (Program(nest, capacity, ((1.0, 1.0),) * segments).solve()[0], segments))
    return {"free": best[0], "segments": best[1]}


def random_products(smallest: bool) -> Iterator[Row]:
    """Sides of 500 to 20,000."""
    draw, found = random.Random(3), 0
    while found < (1 if smallest else RANDOM):
        gemm = Gemm(*(int(exp(draw.uniform(log(500), log(20_000)))) for _ in range(3)))
        least = min(operand.elements for operand in gemm.operands)
        kibibytes = int(least * draw.uniform(0.4, 2.5) / 512)
        capacity = kibibytes * 512
        usual = gemm.m * gemm.n * gemm.k / capacity**1.5
        if not 1.2 < usual < 8:
            continue
        found += 1
        bound = lower_bound(gemm, capacity)
        schedule = family_of(gemm).best_schedule(gemm, FastMemory.of_values(capacity, gemm))
        today = {"bound_elements": str(bound.elements), "schedule_elements": str(schedule.elements if schedule else 0)}
        instance = Instance("gemm", f"gemm {gemm.m}x{gemm.n}x{gemm.k}", gemm, kibibytes)
        yield row_of(instance, today, of_product(gemm, capacity, usual))


def starts(segments: int, share: float) -> list[list[float]]:
    """Shares of first products: alike, in turn, in turns of three, and mostly first ones first."""
    turns = ([share], [0.9, 0.1], [0.95, 0.1, 0.5, 0.9, 0.05, 0.5], [0.9, 0.4, 0.4])
    result = [[turn[t % len(turn)] for t in range(segments)] for turn in turns]
    return [*result, [1 - (t + 0.5) / segments for t in range(segments)]]


def chains(smallest: bool) -> Iterator[Row]:
    """The chains of the list."""
    wanted = {(name, size): numbers for name, size, numbers in CHAINS}
    for instance, today in recorded():
        key = instance.name, instance.kibibytes
        if key not in wanted:
            continue
        assert isinstance(instance.workload, Ffn)
        nest, capacity = chain(instance.workload, CHAIN_STEPS), instance.capacity_elements
        share = nest.work[0] / sum(nest.work)
        found = []
        for segments in wanted[key][:1] if smallest else wanted[key]:
            free = Program(nest, capacity, ((0.0, 1.0),) * segments).solve()[0]
            first = starts(segments, share)[: 1 if smallest else None]
            found.append((reach(nest, capacity, segments, first), segments, free))
        best, segments, _ = max(found)
        numbers = {"reach": best, "segments": segments, "free": max(free for _, _, free in found)}
        if key in BRANCHED and not smallest:
            branched = cases(nest, capacity, BRANCHED[key], BOXES)
            numbers |= {"low": branched["low"], "boxes": branched["boxes"]}
        yield row_of(instance, today, numbers)
        if smallest:
            return


TABLES: dict[str, Callable[[bool], Iterator[Row]]] = {
    "products": products,
    "random": random_products,
    "chains": chains,
}


def main() -> None:
    """Write a table and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=[*TABLES])
    parser.add_argument("csv", type=Path)
    parser.add_argument("--smallest", action="store_true", help="one row: does it run?")
    spec = parser.parse_args()
    rows = []
    for row in TABLES[spec.what](spec.smallest):
        rows.append(row)
        print(*(row[name] for name in COLUMNS if name in row), flush=True)
        with spec.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
