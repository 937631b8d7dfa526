"""Climb a ladder of instances under a time limit and record what is proved and what stays open.

    python benchmarks/exact/ladder.py gemm 3x3x4 3x4x3 --time-limit 600 --out benchmarks/exact/gemm.csv
    python benchmarks/exact/ladder.py small --time-limit 60         every GEMM with sides 2..3, every capacity
    python benchmarks/exact/ladder.py public --instances DIR --time-limit 6

Each row: the instance, the proven interval, what proved it and what found the schedule, seconds and states. Where
others use the machine too, cpu_seconds says how long it would have taken alone; the first row's hold the compiling.
Rows go to the CSV as they come; rows that it already has as optimal are not run again. With --optima, a table of known
optima (columns dag, params, variant, S, optimum), an interval that misses one is an error.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import networkx as nx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from prove_optima import Row, read_rows

from pebble.cdag.io import read_dag
from pebble.game import Game
from pebble.solvers import solve

COLUMNS = [
    "dag", "params", "variant", "S", "lower", "upper", "status", "proof", "upper_from", "seconds", "cpu_seconds",
    "states", "states_per_second", "solver", "time_limit", "stop_reason",
]  # fmt: skip


class Step(NamedTuple):
    """One instance of a ladder."""

    dag: str
    params: str
    variant: str
    capacity: int
    graph: nx.DiGraph

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.dag, self.params, self.variant, str(self.capacity)


def gemm_steps(shapes: list[str]) -> Iterator[Step]:
    """In-place GEMMs, at every capacity from 3 to the one that reaches the compulsory cost."""
    for text in shapes:
        m, n, k = (int(side) for side in text.split("x"))
        graph = Row("gemm", text, "in-place", 3, 0).build()
        for capacity in range(3, min(m * n + min(m, n) + 1, m * k + k + 1, n * k + k + 1) + 1):
            yield Step("gemm", text, "in-place", capacity, graph)


def public_steps(folder: Path) -> Iterator[Step]:
    """The public files at S = r, r + 1, r + 2, 2 r, 3 r with r the largest in-degree plus 1."""
    for path in sorted(folder.glob("*.hdag")):
        graph = read_dag(path, unit_weights=True)
        r = max(d for _, d in graph.in_degree()) + 1
        for capacity in (r, r + 1, r + 2, 2 * r, 3 * r):
            yield Step("public", path.stem.removeprefix("instance_"), "one-shot", capacity, graph)


def climb(steps: Iterator[Step], solver: str, limit: float, out: Path | None, known: dict[tuple[str, ...], int]) -> int:
    """Run the steps; the number of intervals that miss a known optimum."""
    done: dict[tuple[str, ...], dict[str, str]] = {}
    if out and out.exists():
        with out.open(newline="") as file:
            done = {(r["dag"], r["params"], r["variant"], r["S"]): r for r in csv.DictReader(file)}
    wrong = proved = total = 0
    spent = 0.0
    for step in steps:
        total += 1
        row = done.get(step.key)
        if row is None or row["status"] != "optimal":
            game = Game.from_dag(step.graph, step.variant)
            known_lower = int(row["lower"]) if row else 0
            began = time.process_time()
            result = solve(game, step.capacity, solver=solver, time_limit=limit)
            cpu = time.process_time() - began
            best = (
                *step.key, max(known_lower, result.lower_bound),
                "" if result.upper_bound is None else result.upper_bound, result.status, " + ".join(result.proof),
                result.upper_from, f"{result.seconds:.2f}", f"{cpu:.2f}", result.details.get("states", ""),
                result.details.get("states_per_second", ""), result.solver, f"{limit:g}", result.stop_reason,
            )  # fmt: skip
            row = dict(zip(COLUMNS, map(str, best), strict=True))
            spent += result.seconds
            done[step.key] = row
            if out:
                with out.open("w", newline="") as file:
                    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                    writer.writeheader()
                    writer.writerows(done.values())
        proved += row["status"] == "optimal"
        optimum = known.get(step.key)
        miss = optimum is not None and not (
            int(row["lower"]) <= optimum and (not row["upper"] or int(row["upper"]) >= optimum)
        )
        wrong += miss
        print(
            f"{row['dag']:<10} {row['params']:<18} {row['variant']:<17} S={row['S']:<3} "
            f"[{row['lower']}, {row['upper'] or '?'}] {row['status']:<9} {row['seconds']:>8} s "
            f"{row['states']:>10} states  {row['proof']}{'  CONTRADICTS ' + str(optimum) if miss else ''}",
            flush=True,
        )
    print(f"{proved} of {total} proved, {spent:.0f} s in this run, {wrong} contradicted")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ladder", choices=["gemm", "small", "public"])
    parser.add_argument("shapes", nargs="*", help="for gemm: 3x3x4 ...")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds per instance")
    parser.add_argument("--solver", default="search")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--instances", type=Path)
    parser.add_argument("--optima", type=Path)
    args = parser.parse_args()
    if args.ladder in ("gemm", "small"):
        shapes = args.shapes
        if args.ladder == "small":
            shapes = ["x".join(s) for s in product("23", repeat=3) if s[0] <= s[1]]
        steps = gemm_steps(shapes)
    else:
        if args.instances is None:
            parser.error("public needs --instances")
        steps = public_steps(args.instances)
    known = {}
    for r in read_rows(args.optima) if args.optima else ():
        dag = "public" if r.dag == "osp_spaa_tiny" else r.dag
        known[dag, r.params, r.variant, str(r.capacity)] = r.optimum
    return 5 if climb(steps, args.solver, args.time_limit, args.out, known) else 0


if __name__ == "__main__":
    raise SystemExit(main())
