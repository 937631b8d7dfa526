"""Optima of small GEMMs on two SMs under each buffer model, as a markdown table. Run from the repository root.

    python benchmarks/buffers_table.py 2x2x2 3,4,5,6 --time-limit 120

A number is a proved optimum, ``a..b`` a proved interval; "balanced": no SM does more than half of the multiply-adds.
"""

from __future__ import annotations

import argparse
from fractions import Fraction

from pebble.cdag.gemm import gemm_dag
from pebble.game import BufferModel
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
    print(f"| {args.shape}, two SMs of S | " + " | ".join(f"S = {s}" for s in capacities) + " |")
    print("|---|" + "---|" * len(capacities))
    for name, buffers, balanced in ROWS:
        cells = []
        for capacity in capacities:
            found = solve(
                dag,
                capacity,
                buffers=buffers,
                solver=args.solver,
                time_limit=args.time_limit,
                most_tasks_per_sm=-(-m * n * k // 2) if balanced else None,
            )
            low, high = float(found.lower_bound), found.upper_bound
            optimal = found.status == "optimal"
            cells.append(f"{low:g}" if optimal else f"{low:g}..{'' if high is None else f'{float(high):g}'}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
