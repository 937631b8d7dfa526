"""Optima of small products, chains and attention on several SMs, as a table that keeps growing.

    python benchmarks/exact/buffers.py gemm-2x2x2 ffn-2x2x2 --capacities 3,4,5,6 --time-limit 60
    python benchmarks/exact/buffers.py ffn-2x2x2 --capacities 3,4 --again cpsat --time-limit 600
    python benchmarks/exact/buffers.py --markdown > benchmarks/buffers_table.md

Each row of ``benchmarks/exact/buffers.csv``: the workload (family-sizes: gemm-MxNxK, ffn- or gated-TOKENSxMODELxHIDDEN,
online- or strict-QUERIESxKEYSxHEADDIM), S, SMs, buffers, omega, split, the proven interval, what proved it and what
found the pebbling, which the referee replayed, and seconds, of the clock (compiling left out) and of the processor. A
split is ``any``, or ``balanced``: no SM does more than its share of the tasks, rounded up. Rows that the table has as
optimal are not run again. With ``--again`` they are, by a second solver, which shares no model with the search:
``second`` and ``second_lower`` say what it proved; an interval that misses the recorded one is an error (exit code 5).
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from fractions import Fraction
from itertools import product
from pathlib import Path

from pebble.cdag.attention import attention_dag
from pebble.cdag.building import Dag
from pebble.cdag.products import ffn_dag, gemm_dag
from pebble.game import BufferModel, Game
from pebble.solvers import solve

TABLE = Path(__file__).with_name("buffers.csv")
KEY = ["workload", "S", "sms", "buffers", "omega", "split"]
COLUMNS = [*KEY, "lower", "upper", "status", "proof", "upper_from", "seconds", "cpu_seconds", "second", "second_lower"]
Row = dict[str, str]


def build(name: str) -> Dag:
    """The DAG of ``family-AxBxC``."""
    family, _, sizes = name.partition("-")
    a, b, c = (int(size) for size in sizes.split("x"))
    if family == "gemm":
        return gemm_dag(a, b, c)
    if family in ("ffn", "gated"):
        return ffn_dag(a, b, c, gated=family == "gated")
    return attention_dag(a, b, c, softmax=family)


def model(row: Row) -> BufferModel:
    """The memories of a row."""
    return BufferModel(row["buffers"], int(row["sms"]), Fraction(row["omega"] or 0))


def run(row: Row, solver: str, limit: float) -> tuple[Fraction, Fraction | None, Row]:
    """Solve a row: the interval, and its columns."""
    game = Game.from_dag(build(row["workload"]))
    most = -(-len(game.tasks) // int(row["sms"])) if row["split"] == "balanced" else None
    cpu = time.process_time()
    options = {"solver": solver, "time_limit": limit, "most_tasks_per_sm": most}
    result = solve(game, int(row["S"]), buffers=model(row), **options)
    upper = None if result.upper_bound is None else Fraction(result.upper_bound)
    text = {
        "lower": f"{float(result.lower_bound):g}",
        "upper": "" if upper is None else f"{float(upper):g}",
        "status": result.status,
        "proof": " + ".join(result.proof),
        "upper_from": result.upper_from,
        "seconds": f"{result.seconds:.2f}",
        "cpu_seconds": f"{time.process_time() - cpu:.2f}",
    }
    return Fraction(result.lower_bound), upper, text


def wanted(args: argparse.Namespace) -> list[Row]:
    """The rows that the options ask for: one memory and the pooled one, sm-local, then each omega."""
    models = [("single", ""), ("pooled", ""), ("sm-local", "")]
    models += [("connected", omega) for omega in args.omegas.split(",") if omega]
    rows = product(args.workloads, args.capacities.split(","), args.sms.split(","), models, args.splits.split(","))
    return [
        dict(zip(KEY, (name, capacity, "1" if kind == "single" else sms, kind, omega, split), strict=True))
        for name, capacity, sms, (kind, omega), split in rows
        if split == "any" or kind in ("sm-local", "connected")
    ]


def told(row: Row) -> str:
    """The buffers of a row in words."""
    of = f"connected, omega {row['omega']}" if row["omega"] else row["buffers"]
    return of if row["split"] == "any" else f"{of}, {row['split']}"


def markdown(rows: dict[tuple[str, ...], Row]) -> str:
    """The table as markdown, a block for each workload and number of SMs."""
    blocks = []
    for name, sms in dict.fromkeys((row["workload"], row["sms"]) for row in rows.values() if row["sms"] != "1"):
        results = [row for row in rows.values() if row["workload"] == name and row["sms"] in ("1", sms)]
        capacities = sorted({row["S"] for row in results}, key=int)
        order = {"single": 0, "sm-local": 1, "connected": 2, "pooled": 3}
        results.sort(key=lambda row: (order[row["buffers"]], -Fraction(row["omega"] or 0), row["split"]))
        cells: dict[str, dict[str, str]] = {}
        for row in results:
            interval = row["upper"] if row["status"] == "optimal" else f"{row['lower']}..{row['upper']}"
            cells.setdefault(told(row), {})[row["S"]] = interval
        lines = [f"| {name}, {sms} SMs of S | " + " | ".join(f"S = {s}" for s in capacities) + " |"]
        lines.append("|---|" + "---|" * len(capacities))
        lines += [f"| {key} | " + " | ".join(row.get(s, "") for s in capacities) + " |" for key, row in cells.items()]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def key_of(row: Row) -> tuple[str, ...]:
    """What tells rows apart."""
    return tuple(row[column] for column in KEY)


def read(table: Path) -> dict[tuple[str, ...], Row]:
    """The table so far."""
    if not table.exists():
        return {}
    with table.open(newline="") as file:
        return {key_of(row): row for row in csv.DictReader(file)}


def write(table: Path, rows: dict[tuple[str, ...], Row]) -> None:
    """The table, row after row as they came."""
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows.values())


def main() -> int:
    """Solve and record, or check again; 5 where two solvers disagree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*")
    parser.add_argument("--markdown", action="store_true", help="print the table")
    parser.add_argument("--capacities", default="3,4,5,6")
    parser.add_argument("--sms", default="2")
    parser.add_argument("--omegas", default="1/4,1/2,1")
    parser.add_argument("--splits", default="any,balanced")
    parser.add_argument("--time-limit", type=float, default=60)
    parser.add_argument("--again", metavar="SOLVER", help="have optima proved by a second solver")
    parser.add_argument("--table", type=Path, default=TABLE, metavar="CSV")
    args = parser.parse_args()
    if args.markdown:
        print(markdown(read(args.table)))
    wrong = 0
    for row in wanted(args):
        known = read(args.table).get(key_of(row), {})
        closed = known.get("status") == "optimal"
        if closed and args.again and known["second_lower"] != known["upper"]:
            lower, upper, _ = run(row, args.again, args.time_limit)
            optimum = Fraction(known["upper"])
            miss = lower > optimum or (upper is not None and upper < optimum)
            wrong += miss
            known |= {"second": args.again, "second_lower": f"{float(lower):g}"}
            print(*key_of(row), f"{known['upper']}: {args.again} proves {float(lower):g}", "WRONG" if miss else "")
        elif not closed and not args.again:
            known = row | run(row, "auto", args.time_limit)[2]
            print(*key_of(row), f"{known['lower']}..{known['upper']}", known["seconds"], flush=True)
        else:
            continue
        write(args.table, read(args.table) | {key_of(row): known})
    return 5 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
