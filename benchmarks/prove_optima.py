"""Solve every row of a table of optima and say whether it is proved, and equal.

    python benchmarks/prove_optima.py tests/solvers/optima.csv --solver cpsat --time-limit 20

The table has the columns dag, params, variant, S, optimum; lines that start with # are skipped. A row is ``proved``
(the solver proved this optimum), ``open`` (the interval holds it), or ``CONTRADICTED``. Nothing is looked up:
the solver does not see the optimum. DAGs named after public files are read from --instances.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import networkx as nx

from pebble.cdag.io import read_dag
from pebble.families import build_dag
from pebble.solvers import solve

VARIANTS = {
    "one-shot sliding": "one-shot-sliding",
    "recompute sliding": "recompute-sliding",
    "one-shot in-place accumulator": "in-place",
}


class Row(NamedTuple):
    """One optimum of the table."""

    dag: str
    params: str
    variant: str
    capacity: int
    optimum: int

    @property
    def label(self) -> str:
        return f"{self.dag} {self.params} {self.variant} S={self.capacity}"

    def build(self, instances: Path | None = None) -> nx.DiGraph:
        """The DAG that the row names."""
        numbers = [int(n) for n in re.findall(r"\d+", self.params)]
        if self.dag in ("gemm", "gemmchain", "gemmsep"):
            form = {"gemm": "in-place", "gemmchain": "chain", "gemmsep": "separate"}[self.dag]
            return build_dag("gemm", {**dict(zip("mnk", numbers, strict=True)), "form": form})
        if self.dag == "mmchain":
            return build_dag("matrix-chain", {"dims": (numbers[0],) * 4})
        if self.dag.startswith("attn_"):
            shape = {"queries": numbers[0], "keys": numbers[0], "head_dim": numbers[1]}
            return build_dag("attention", {**shape, "softmax": self.dag.removeprefix("attn_")})
        if self.dag == "tree":
            return build_dag("tree", {"leaves": numbers[0]})
        if self.dag == "stencil1d":
            return build_dag("stencil1d", {"size": numbers[0], "steps": numbers[1]})
        if self.dag in ("diamond", "dpgrid", "fft"):
            return build_dag(self.dag, {"size": numbers[0]})
        if instances is None:
            raise FileNotFoundError(f"{self.label}: give --instances, the folder of the public files")
        return read_dag(instances / f"instance_{self.params}.hdag", unit_weights=True)


def read_rows(path: Path) -> list[Row]:
    """The rows of a table."""
    with path.open(newline="") as file:
        lines = [line for line in file if not line.startswith("#")]
    return [
        Row(r["dag"], r["params"], VARIANTS.get(r["variant"], r["variant"]), int(r["S"]), int(r["optimum"]))
        for r in csv.DictReader(lines)
    ]


def judge(row: Row, solver: str, time_limit: float, instances: Path | None = None) -> tuple[str, str]:
    """``proved``, ``open`` or ``CONTRADICTED``, and a remark."""
    result = solve(row.build(instances), row.capacity, row.variant, solver, time_limit)
    interval = f"[{result.lower_bound}, {result.upper_bound}]"
    how = f"{'+'.join(result.proof)}, {result.solver}, {result.seconds:.1f} s"
    upper = result.upper_bound
    if result.lower_bound > row.optimum or (upper is not None and upper < row.optimum):
        return "CONTRADICTED", f"{interval}, the table has {row.optimum} ({how})"
    if result.status == "optimal":
        return "proved", f"{result.upper_bound} ({how})"
    return "open", f"{interval}, the table has {row.optimum} ({how})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--solver", default="auto")
    parser.add_argument("--time-limit", type=float, default=20.0)
    parser.add_argument("--only", default="", help="a regular expression on 'dag params variant S=capacity'")
    parser.add_argument("--instances", type=Path)
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds in all; what is left is skipped")
    args = parser.parse_args()
    counts: Counter[str] = Counter()
    started = time.monotonic()
    for row in read_rows(args.table):
        if not re.search(args.only, row.label):
            continue
        if time.monotonic() - started > args.budget or (args.instances is None and row.dag.startswith("osp")):
            verdict, remark = "skipped", ""
        else:
            verdict, remark = judge(row, args.solver, args.time_limit, args.instances)
        counts[verdict] += 1
        print(f"{verdict:<13}{row.label:<50}{remark}", flush=True)
    print(", ".join(f"{n} {verdict}" for verdict, n in counts.most_common()), f"{time.monotonic() - started:.0f} s")
    return 5 if counts["CONTRADICTED"] else 0


if __name__ == "__main__":
    sys.exit(main())
