"""Some fifty small DAGs per solver: where does each stop?

    python benchmarks/exact_table.py --solver cpsat milp heuristic --time-limit 60

One line per DAG, capacity and variant: values, operations, and per solver the interval and the seconds; at the end
how many each solver proves. Every pebbling is replayed by the referee before it is counted.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from pebble.errors import InputError
from pebble.families import build_dag, find_dag_family
from pebble.game import Game, minimum_capacity
from pebble.solvers import solve

# family, parameters, variant, how far above the least capacity
BOTH = ("one-shot", "one-shot-sliding")
ALL_FOUR = (*BOTH, "recompute", "recompute-sliding")
ATTENTION = {"queries": 2, "keys": 2, "head_dim": 1}
CONV = {"batch": 1, "in_channels": 1, "out_channels": 1, "height": 3, "width": 3, "kernel": 2}
CASES: list[tuple[str, dict[str, object], str, int]] = [
    *(("gemm", {"m": m, "n": n, "k": k}, "in-place", e) for m, n, k, e in [(2, 2, 2, 0), (2, 2, 2, 1), (2, 2, 2, 2)]),
    *(("gemm", {"m": 2, "n": 2, "k": 3}, "in-place", e) for e in (0, 1, 2, 3, 4)),
    *(("gemm", {"m": 2, "n": 2, "k": 2, "form": "chain"}, v, e) for v in BOTH for e in (0, 1)),
    ("gemm", {"m": 2, "n": 2, "k": 2, "form": "separate"}, "one-shot", 2),
    ("gemm", {"m": 2, "n": 2, "k": 2, "form": "chain"}, "recompute", 0),
    ("gemm", {"m": 2, "n": 2, "k": 2, "dtype": "bf16", "out_dtype": "fp32"}, "in-place", 1),
    ("matrix-chain", {"dims": (2, 2, 2, 2)}, "in-place", 2),
    *(("attention", {**ATTENTION, "softmax": "online"}, "in-place", e) for e in (0, 1)),
    ("attention", {**ATTENTION, "softmax": "strict"}, "in-place", 1),
    ("ffn", {"tokens": 1, "d_model": 2, "hidden": 2}, "in-place", 0),
    ("conv2d", CONV, "in-place", 2),
    *(("tree", {"leaves": n}, v, 0) for n in (4, 8, 16) for v in BOTH),
    ("tree", {"leaves": 8}, "recompute", 0),
    ("tree", {"leaves": 9, "arity": 3}, "one-shot", 0),
    *(("diamond", {"size": n}, v, e) for n in (3, 4) for v in BOTH for e in (0, 1)),
    *(("diamond", {"size": 5}, "one-shot", e) for e in (1, 2)),
    ("diamond", {"size": 3}, "recompute", 0),
    ("diamond", {"size": 4}, "recompute-sliding", 1),
    *(("dpgrid", {"size": n}, v, e) for n in (2, 3, 4) for v in BOTH for e in (0, 1)),
    ("dpgrid", {"size": 3}, "recompute", 0),
    *(("fft", {"size": 4}, v, e) for v in ALL_FOUR for e in (0, 1)),
    *(("stencil1d", {"size": 4, "steps": 3}, v, e) for v in BOTH for e in (0, 1)),
]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solver", nargs="+", default=["cpsat", "milp", "heuristic"])
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--smallest", action="store_true", help="one DAG: does it run?")
    args = parser.parse_args()
    cases = CASES[:1] if args.smallest else CASES
    proved: Counter[str] = Counter()
    head = f"{'DAG':<56}{'variant':<18}{'S':>3}{'values':>7}{'ops':>5}"
    print(head + "".join(f"  {name:<28}" for name in args.solver))
    for family, parameters, variant, extra in cases:
        game = Game.from_dag(build_dag(family, parameters), variant)
        capacity = minimum_capacity(game) + extra
        label = find_dag_family(family).label(parameters)
        line = f"{label:<56}{variant:<18}{capacity:>3}{game.size:>7}{len(game.tasks):>5}"
        for name in args.solver:
            try:
                result = solve(game, capacity, solver=name, time_limit=args.time_limit)
            except InputError:
                line += f"  {'refused':<28}"
                continue
            interval = f"[{result.lower_bound}, {result.upper_bound}]"
            if result.status == "optimal":
                proved[name] += 1
                interval = f"{result.upper_bound} by {result.proof[0].removesuffix(' bound')}"
            line += f"  {interval + f' {result.seconds:.1f} s':<28}"
        print(line.rstrip(), flush=True)
    print(f"{len(cases)} cases; proved: " + ", ".join(f"{name} {proved[name]}" for name in args.solver))
    return 0


if __name__ == "__main__":
    sys.exit(main())
