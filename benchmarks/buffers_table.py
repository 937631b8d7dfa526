"""Optima of small GEMMs on two SMs under each buffer model, as a markdown table. Run from the repository root.

    python benchmarks/buffers_table.py 2x2x2 3,4,5 --time-limit 20 > benchmarks/buffers_table.md
    python benchmarks/buffers_table.py 2x2x3 3,4 --time-limit 20 >> benchmarks/buffers_table.md

A number is a proved optimum, ``a..b`` a proved interval; "balanced": no SM does more than half of the multiply-adds.
Some rows cannot be above others, which tightens intervals.
"""

from __future__ import annotations

import argparse
from fractions import Fraction

from pebble.cdag.gemm import gemm_dag
from pebble.game import BufferModel, Cost
from pebble.solvers import solve

QUARTER, HALF = Fraction(1, 4), Fraction(1, 2)
ROWS: list[tuple[str, BufferModel, bool]] = [
    ("single", BufferModel("single"), False),
    ("sm-local", BufferModel("sm-local", 2), False),
    ("sm-local, balanced", BufferModel("sm-local", 2), True),
    ("connected, omega 1/2", BufferModel("connected", 2, HALF), False),
    ("connected, omega 1/2, balanced", BufferModel("connected", 2, HALF), True),
    ("connected, omega 1/4", BufferModel("connected", 2, QUARTER), False),
    ("connected, omega 1/4, balanced", BufferModel("connected", 2, QUARTER), True),
    ("connected, omega 0", BufferModel("connected", 2), False),
    ("pooled", BufferModel("pooled", 2), False),
]


NOT_ABOVE = (  # every pebbling of the second row is one of the first, or makes one that costs no more
    ("pooled", "connected, omega 0"),
    ("connected, omega 0", "connected, omega 1/4"),
    ("connected, omega 1/4", "connected, omega 1/2"),
    ("connected, omega 1/2", "sm-local"),
    ("sm-local", "single"),
    ("connected, omega 1/4, balanced", "connected, omega 1/2, balanced"),
    ("connected, omega 1/2, balanced", "sm-local, balanced"),
    ("connected, omega 1/4", "connected, omega 1/4, balanced"),
    ("connected, omega 1/2", "connected, omega 1/2, balanced"),
    ("sm-local", "sm-local, balanced"),
)
Interval = tuple[Cost, Cost | None]


def tightened(found: dict[str, Interval]) -> dict[str, Interval]:
    """Intervals of all rows at one capacity, after what each says of the others."""
    found = dict(found)
    for _ in ROWS:
        for low, high in NOT_ABOVE:
            (a, b), (c, d) = found[low], found[high]
            found[low] = a, d if b is None else b if d is None else min(b, d)
            found[high] = max(a, c), d
    return found


def shown(interval: Interval) -> str:
    """``a`` or ``a..b``."""
    low, high = interval
    return f"{float(low):g}" if low == high else f"{float(low):g}..{'' if high is None else f'{float(high):g}'}"


def main() -> None:
    """Solve and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shape")
    parser.add_argument("capacities")
    parser.add_argument("--time-limit", type=float, default=60)
    parser.add_argument("--solver", default="auto")
    args = parser.parse_args()
    m, n, k = (int(x) for x in args.shape.split("x"))
    dag = gemm_dag(m, n, k)
    capacities = [int(x) for x in args.capacities.split(",")]
    columns = []
    for capacity in capacities:
        found: dict[str, Interval] = {}
        for name, buffers, balanced in ROWS:
            most = -(-m * n * k // 2) if balanced else None
            options = {"solver": args.solver, "time_limit": args.time_limit, "most_tasks_per_sm": most}
            result = solve(dag, capacity, buffers=buffers, **options)
            found[name] = result.lower_bound, result.upper_bound
        columns.append(tightened(found))
    print(f"| {args.shape}, two SMs of S | " + " | ".join(f"S = {s}" for s in capacities) + " |")
    print("|---|" + "---|" * len(capacities))
    for name, _, _ in ROWS:
        print(f"| {name} | " + " | ".join(shown(column[name]) for column in columns) + " |")
    print()


if __name__ == "__main__":
    main()
