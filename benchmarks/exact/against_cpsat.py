"""Search and CP-SAT on the same instances, in turn, in one run: who proves what, in how many seconds.

    python benchmarks/exact/against_cpsat.py --time-limit 30 > benchmarks/exact/against_cpsat.txt

CP-SAT runs as `pebble solve --solver cpsat` does, from the heuristic's pebbling and above the bounds known, but the
search that confirms it is left out: its time is that of the model alone.
"""

from __future__ import annotations

import argparse
import time

from pebble.families import build_dag, find_dag_family
from pebble.game import Game, Variant
from pebble.solvers import cpsat, solve

INSTANCES = [
    ("gemm", {"m": 2, "n": 2, "k": 2}, "in-place", 4), ("gemm", {"m": 2, "n": 2, "k": 3}, "in-place", 5),
    ("gemm", {"m": 2, "n": 3, "k": 3}, "in-place", 5), ("gemm", {"m": 3, "n": 3, "k": 3}, "in-place", 6),
    ("gemm", {"m": 2, "n": 2, "k": 2, "form": "chain"}, "one-shot", 5), ("fft", {"size": 8}, "one-shot", 4),
    ("fft", {"size": 8}, "one-shot", 6), ("diamond", {"size": 5}, "one-shot", 3),
    ("tree", {"leaves": 16}, "one-shot", 4), ("stencil1d", {"size": 4, "steps": 3}, "one-shot", 4),
    ("dpgrid", {"size": 4}, "one-shot-sliding", 3), ("diamond", {"size": 4}, "recompute", 3),
]  # fmt: skip


def main() -> None:
    """Solve each instance with both and print a line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time-limit", type=float, default=30.0)
    parser.add_argument("--smallest", action="store_true", help="one small instance: does it run?")
    args = parser.parse_args()
    limit, instances = args.time_limit, INSTANCES[:1] if args.smallest else INSTANCES
    cpsat._search_agrees = lambda best: True
    for name, values, variant, capacity in instances[:1] + instances[-1:] + instances[5:6]:
        solve(build_dag(name, values, Variant(variant)), capacity, variant, "search", 60)  # compile first
    print(f"{'instance':<34} {'S':>2} {'optimum':>7} {'search s':>9} {'states/s':>9} {'cpsat s':>9} {'ratio':>7}")
    for name, values, variant, capacity in instances:
        game = Game.from_dag(build_dag(name, values, Variant(variant)), variant)
        seconds, result = {}, {}
        for solver in ("search", "cpsat"):
            started = time.perf_counter()
            result[solver] = solve(game, capacity, solver=solver, time_limit=limit)
            seconds[solver] = time.perf_counter() - started
        single, two = result["search"], result["cpsat"]
        proved = {s: f"{seconds[s]:.2f}" if r.status == "optimal" else "open" for s, r in result.items()}
        both = single.status == two.status == "optimal"
        assert not both or single.lower_bound == two.lower_bound
        ratio = f"{seconds['cpsat'] / seconds['search']:.0f}x" if single.status == "optimal" else ""
        ratio = (">" if two.status != "optimal" and ratio else "") + ratio
        label = f"{find_dag_family(name).label(values)} {variant}"
        states = single.details.get("states_per_second", "")
        optimum = single.lower_bound if single.status == "optimal" else f"{single.lower_bound}-{single.upper_bound}"
        print(
            f"{label:<34} {capacity:>2} {optimum:>7} {proved['search']:>9} {states:>9} {proved['cpsat']:>9} {ratio:>7}",
            flush=True,
        )


if __name__ == "__main__":
    main()
