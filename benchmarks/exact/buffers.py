"""Optima of small products, chains and attention on several SMs, as a table that keeps growing.

    python benchmarks/exact/buffers.py gemm-2x2x2 ffn-2x2x2 --capacities 3,4,5,6 --time-limit 60
    python benchmarks/exact/buffers.py gemm-2x2x2 --capacities 3,4 --again --time-limit 60
    python benchmarks/exact/buffers.py gemm-2x2x2 --capacities 3,4 --certify --time-limit 60
    python benchmarks/exact/buffers.py --markdown > benchmarks/buffers_table.md

Each row of ``benchmarks/exact/buffers.csv``: the workload (family-sizes: gemm-MxNxK, ffn- or gated-TOKENSxMODELxHIDDEN,
online- or strict-QUERIESxKEYSxHEADDIM), S, SMs, buffers, omega, split, the proven interval, what proved it and what
found the pebbling, which the referee replayed, and seconds, of the clock (compiling left out) and of the processor. A
split is ``any``, or ``balanced``: no SM does more than its share of the tasks, rounded up. Rows that the table has as
optimal are not run again; an open row keeps the better ends of all its runs. With ``--again`` CP-SAT is asked for less
than the optimum, by the program of `pebble.solvers.several.program` without its cuts: it knows the rules of the game,
and neither bounds nor what the search found but its cost. Where it proves that there is nothing, ``second`` names it,
beside the seconds of the processor that it took, as many as ``--time-limit`` at most; a pebbling that costs less is an
error (exit code 5). With ``--certify`` a certificate is looked for that no pebbling of a closed row of several memories
costs less; where the checker (`pebble.certificate`) takes it, ``certificate`` has its method and its number of states.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import threading
import time
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from pebble.cdag.attention import attention_dag
from pebble.cdag.building import Dag
from pebble.cdag.products import ffn_dag, gemm_dag
from pebble.certificate import check_file
from pebble.game import BufferModel, Game
from pebble.proof.on_sms import game_certificate
from pebble.solvers import solve
from pebble.solvers.result import Problem, SolveResult

TABLE = Path(__file__).with_name("buffers.csv")
KEY = ["workload", "S", "sms", "buffers", "omega", "split"]
COLUMNS = [*KEY, "lower", "upper", "status", "proof", "upper_from", "seconds", "cpu_seconds", "second", "second_cpu"]
COLUMNS += ["certificate"]
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


def problem(row: Row) -> Problem:
    """The game of a row."""
    game, buffers = Game.from_dag(build(row["workload"])), model(row)
    most = -(-len(game.tasks) // int(row["sms"])) if row["split"] == "balanced" else None
    return Problem(game, int(row["S"]), 0, buffers, most)


def run(row: Row, limit: float) -> Row:
    """Solve a row: its columns."""
    cpu, asked = time.process_time(), problem(row)
    most = asked.most_tasks_per_sm
    result = solve(asked.game, asked.capacity, buffers=asked.buffers, time_limit=limit, most_tasks_per_sm=most)
    return {
        "lower": f"{float(result.lower_bound):g}",
        "upper": "" if result.upper_bound is None else f"{float(result.upper_bound):g}",
        "status": result.status,
        "proof": " + ".join(result.proof),
        "upper_from": result.upper_from,
        "seconds": f"{result.seconds:.2f}",
        "cpu_seconds": f"{time.process_time() - cpu:.2f}",
    }


def no_dearer(one: Row, other: Row) -> bool:
    """Whether a row's optimum is at most another's: more memory, cheaper copies, any split, fewer cuts."""
    order = ["pooled", "connected", "sm-local", "single"]
    price = [Fraction(row["omega"] or (0 if row["buffers"] == "pooled" else 2)) for row in (one, other)]
    return (
        one["workload"] == other["workload"]
        and (one["sms"] == other["sms"] or (other["sms"] == "1" and one["buffers"] != "pooled"))
        and int(one["S"]) >= int(other["S"])
        and order.index(one["buffers"]) <= order.index(other["buffers"])
        and price[0] <= price[1]
        and (one["split"] == "any" or (other["split"] == "balanced" and one["sms"] == other["sms"]))
    )


def raised(row: Row, rows: dict[tuple[str, ...], Row]) -> Row:
    """A row with the lower end of rows that are no dearer, where that is higher."""
    best = max(
        (other for other in rows.values() if no_dearer(other, row)), key=lambda r: float(r["lower"]), default=row
    )
    if row["status"] == "optimal" or float(best["lower"]) <= float(row["lower"]):
        return row
    result = row | {"lower": best["lower"], "proof": f"no less than S = {best['S']}, {told(best)}, {best['split']}"}
    return result | {"status": "optimal" if result["lower"] == result["upper"] else row["status"]}


def merged(before: Row, now: Row) -> Row:
    """A row run once more: what was proved or found before stands where it is better."""
    result = dict(now)
    if before and float(before["lower"]) > float(now["lower"]):
        result |= {key: before[key] for key in ("lower", "proof")}
    if before and before["upper"] and float(before["upper"]) < float(now["upper"] or "inf"):
        result |= {key: before[key] for key in ("upper", "upper_from")}
    return result | {"status": "optimal" if result["lower"] == result["upper"] else now["status"]}


def refute(row: Row, limit: float) -> str:
    """What CP-SAT says of a pebbling that costs less than the optimum of a row, within so many seconds of processor."""
    from ortools.sat.python import cp_model  # loaded in a process that loads no other solver

    from pebble.solvers.cpsat import new_solver
    from pebble.solvers.several.program import BufferProgram
    from pebble.solvers.several.solvers import read_program

    asked, over, until = problem(row), threading.Event(), time.process_time() + limit
    program = BufferProgram(replace(asked, capacity=asked.buffers.memory_size(asked.capacity)), cuts=False)
    program.cost_below(int(Fraction(row["upper"]) * program.unit))
    solver = new_solver(0, 100 * limit)

    def watch() -> None:
        while time.process_time() < until and not over.wait(0.2):
            pass
        solver.stop_search()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    status = solver.solve(read_program(program)[0])
    over.set()
    watcher.join()
    return {cp_model.INFEASIBLE: "none", cp_model.OPTIMAL: "WRONG", cp_model.FEASIBLE: "WRONG"}.get(status, "open")


def certified(row: Row, limit: float) -> str:
    """By what method, and how many states, a certificate that passed the checker proves a closed row; or nothing."""
    asked, cost = problem(row), Fraction(row["upper"])
    found = SolveResult(cost, cost, None, "optimal", "", asked.game.variant, row["proof"], 0.0, buffers=asked.buffers)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "c.json"
        game_certificate(asked.game, asked.capacity, found, asked.most_tasks_per_sm, path, limit)
        claim = json.loads(path.read_text())["claims"][-1]
        said = check_file(path)
    if Fraction(claim["cost"]) != cost or not said:
        return ""
    proof = claim["proof"]
    return " ".join([proof["method"], *([str(proof["table"]["records"])] if "table" in proof else [])])


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
        return {key_of(row): {"certificate": ""} | row for row in csv.DictReader(file)}


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
    parser.add_argument("--again", action="store_true", help="have optima proved by a second solver")
    parser.add_argument("--certify", action="store_true", help="have optima of several memories proved by the checker")
    parser.add_argument("--table", type=Path, default=TABLE, metavar="CSV")
    args = parser.parse_args()
    if args.markdown:
        print(markdown(read(args.table)))
    wrong = 0
    for row in wanted(args):
        known = read(args.table).get(key_of(row), {})
        closed = known.get("status") == "optimal"
        if closed and args.again and not known["second"]:
            cpu = time.process_time()
            found = refute(known, args.time_limit)
            wrong += found == "WRONG"
            if found == "none":
                known |= {"second": "cpsat", "second_cpu": f"{time.process_time() - cpu:.1f}"}
            print(*key_of(row), f"below {known['upper']}: {found}, {time.process_time() - cpu:.1f}", flush=True)
        elif closed and args.certify and row["sms"] != "1" and row["buffers"] != "pooled" and not known["certificate"]:
            known |= {"certificate": certified(known, args.time_limit)}
            print(*key_of(row), f"{known['upper']} by {known['certificate'] or 'nothing'}", flush=True)
        elif not closed and not args.again and not args.certify:
            known = raised(merged(known, row | run(row, args.time_limit)), read(args.table))
            print(
                *key_of(row), f"{known['lower']}..{known['upper']}", known["seconds"], known["cpu_seconds"], flush=True
            )
        else:
            continue
        write(args.table, read(args.table) | {key_of(row): known})
    return 5 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
