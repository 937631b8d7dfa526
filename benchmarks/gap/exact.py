"""Which side of the gap is loose: proved optima of small games between the bounds and the schedules of a table's rows.

    python benchmarks/gap/exact.py run benchmarks/gap/exact.csv --time-limit 20
    python benchmarks/gap/exact.py table benchmarks/gap/exact.csv

Small products, FFNs and gated FFNs with one memory, values counted one by one, nothing computed twice: what
`pebble.families.lower_bound` proves, the exact optimum of `pebble.solvers.solve`, and the best explicit schedule.
``run`` takes every capacity from the least that any schedule of the families needs to the last at which their best one
moves more than it must, and adds each row to the CSV as it comes; rows that stand there are not run again, closed or
open. Then it asks of every row what is proved and scheduled with all sides 64 times as long and 64 x 64 times the
capacity, and counts it in tiles of 64 x 64 values. The pebbling of the small game, played with such tiles, is a
schedule of that workload: where it moves less than the best explicit schedule, that one is proved loose, and not for
the rounding of small games.

``table`` prints, by regime, means and worst of optimum / bound and of schedule / optimum over the rows that are closed,
how many stay open, and for the long sides schedule / bound and schedule / optimum of the tiles; ``--json`` as a
document. A bound above an optimum, or a schedule below one, is an error: exit code 5.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from math import inf, sqrt
from pathlib import Path
from typing import Any, NamedTuple

from pebble.errors import InfeasibleError
from pebble.families import build_dag, family_of, lower_bound
from pebble.game import Game
from pebble.solvers import solve
from pebble.workloads import Ffn, Gemm
from pebble.workloads.widths import FastMemory

GEMMS = (
    (2, 2, 3), (2, 3, 2), (2, 2, 6), (2, 3, 3), (3, 3, 2), (2, 4, 3), (2, 3, 5), (3, 3, 3), (2, 6, 2), (2, 8, 2),
    (4, 4, 2), (2, 4, 4), (2, 6, 3), (3, 6, 1), (4, 5, 1), (3, 4, 3),
)  # m, n, k  # fmt: skip
FFNS = (
    (2, 1, 3, 1), (2, 1, 5, 1), (3, 1, 3, 1), (4, 1, 3, 1), (3, 2, 1, 2), (4, 2, 1, 2), (2, 2, 2, 2), (3, 2, 2, 2),
    (2, 2, 3, 2), (3, 1, 2, 3), (2, 3, 2, 1), (2, 3, 2, 3), (4, 1, 4, 1),
)  # tokens, d, hidden, d_out  # fmt: skip
GATED = ((2, 1, 3, 1), (2, 1, 4, 1), (3, 1, 2, 1), (3, 1, 3, 1), (2, 2, 2, 2), (2, 2, 2, 1), (2, 1, 2, 3), (3, 2, 1, 2))
COLUMNS = (
    "family", "shape", "capacity", "compulsory", "bound", "theorem", "lower", "optimum", "schedule_elements", "seconds",
    "bound_of_tiles", "schedule_of_tiles", "schedule",
)  # fmt: skip
FEW = 4  # values in fast memory, up to which a product and what it needs next leave no room to hold any other
TILE = 64  # side of a tile
Row = dict[str, str]


class Question(NamedTuple):
    """A workload and its parameters as a DAG."""

    family: str  #: gemm, ffn or gated
    shape: str
    workload: Gemm | Ffn
    dag: tuple[str, dict[str, Any]]


class Regime(NamedTuple):
    """Rows of one family between two limits, with room for more than a few values."""

    family: str
    text: str
    by: Callable[[Row], float]
    low: float
    high: float

    def holds(self, row: Row) -> bool:
        """Whether a row is one of them."""
        return row["family"] == self.family and int(row["capacity"]) > FEW and self.low < self.by(row) <= self.high


def questions() -> Iterator[Question]:
    """Every workload of the table."""
    for m, n, k in GEMMS:
        yield Question("gemm", f"{m}x{n}x{k}", Gemm(m, n, k), ("gemm", {"m": m, "n": n, "k": k}))
    for family, shapes in (("ffn", FFNS), ("gated", GATED)):
        for tokens, d, hidden, d_out in shapes:
            gated = family == "gated"
            names = {"tokens": tokens, "d_model": d, "hidden": hidden, "d_out": d_out, "gated": gated}
            workload = Ffn(tokens, d, hidden, d_out, gated=gated)
            yield Question(family, f"{tokens}x({d},{hidden},{d_out})", workload, ("ffn", names))


def sides(row: Row) -> list[int]:
    """m, n, k of a product; tokens, d, hidden, d_out of a chain."""
    return [int(side) for side in re.findall(r"\d+", row["shape"])]


def workload_of(row: Row, times: int = 1) -> Gemm | Ffn:
    """The workload of a row, all its sides so many times as long."""
    lengths = [times * side for side in sides(row)]
    return Gemm(*lengths) if row["family"] == "gemm" else Ffn(*lengths, gated=row["family"] == "gated")


def depth(row: Row) -> float:
    """k / sqrt(S) of a product, (k + l) / sqrt(S) of a chain."""
    lengths = sides(row)
    inner = lengths[2] if row["family"] == "gemm" else lengths[1] + lengths[3]
    return inner / sqrt(int(row["capacity"]))


def width(row: Row) -> float:
    """The shorter side of C, or of H, over sqrt(S)."""
    lengths = sides(row)
    face = lengths[:2] if row["family"] == "gemm" else (lengths[0], lengths[2])
    return min(face) / sqrt(int(row["capacity"]))


def least_operand(row: Row) -> float:
    """The smallest operand over S; of a chain without H."""
    return min(operand.elements for operand in workload_of(row).operands) / int(row["capacity"])


K, K_PLUS_L = "k / sqrt(S)", "(k + l) / sqrt(S)"
REGIMES = (
    Regime("gemm", f"{K} up to 1", depth, 0, 1),
    Regime("gemm", f"{K} 1 to 1.5", depth, 1, 1.5),
    Regime("gemm", f"{K} above 1.5", depth, 1.5, inf),
    Regime("gemm", "shorter side of C / sqrt(S) up to 1", width, 0, 1),
    Regime("gemm", "shorter side of C / sqrt(S) above 1", width, 1, inf),
    Regime("gemm", "least operand / S up to 1", least_operand, 0, 1),
    Regime("gemm", "least operand / S above 1", least_operand, 1, inf),
    *(
        Regime(family, text, by, low, high)
        for family in ("ffn", "gated")
        for text, by, low, high in (
            (f"{K_PLUS_L} up to 1", depth, 0, 1),
            (f"{K_PLUS_L} above 1", depth, 1, inf),
            ("least operand / S up to 1/2", least_operand, 0, 0.5),
            ("least operand / S above 1/2", least_operand, 0.5, inf),
        )
    ),
)


def rows_of(question: Question, limit: float, known: set[tuple[str, str, str]]) -> Iterator[Row]:
    """Bound, optimum and schedule at each capacity at which the schedules move more than they must."""
    workload, game, capacity = question.workload, Game.from_dag(build_dag(*question.dag), "in-place"), 2
    while True:
        capacity += 1
        try:
            schedule = family_of(workload).best_schedule(workload, FastMemory.of_values(capacity, workload))
        except InfeasibleError:
            continue
        if schedule is None:
            continue
        if schedule.elements == workload.compulsory_elements:
            return
        if (question.family, question.shape, str(capacity)) in known:
            continue
        bound = lower_bound(workload, capacity)
        began = time.perf_counter()
        result = solve(game, capacity, solver="search", time_limit=limit)
        yield {
            "family": question.family,
            "shape": question.shape,
            "capacity": str(capacity),
            "compulsory": str(workload.compulsory_elements),
            "bound": str(bound.elements),
            "theorem": bound.theorem.name,
            "lower": str(result.lower_bound),
            "optimum": str(result.upper_bound) if result.status == "optimal" else "",
            "schedule_elements": str(schedule.elements),
            "seconds": f"{time.perf_counter() - began:.1f}",
            "schedule": schedule.name,
        }


def with_tiles(row: Row) -> Row:
    """The same row, with what is proved and scheduled of sides of tiles, in tiles."""
    workload, capacity = workload_of(row, TILE), int(row["capacity"]) * TILE**2
    schedule = family_of(workload).best_schedule(workload, FastMemory.of_values(capacity, workload))
    assert schedule is not None  # the small one has a schedule
    return row | {
        "bound_of_tiles": f"{lower_bound(workload, capacity).elements / TILE**2:.3f}",
        "schedule_of_tiles": f"{schedule.elements / TILE**2:.3f}",
    }


def read(path: Path) -> list[Row]:
    """The rows of a table."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: Sequence[Row]) -> None:
    """The rows as a table."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def run(path: Path, limit: float, smallest: bool) -> None:
    """Add the rows that the table does not have, then the numbers of tiles that it does not have."""
    rows = read(path)
    known = {(row["family"], row["shape"], row["capacity"]) for row in rows}
    for question in list(questions())[: 1 if smallest else None]:
        for row in rows_of(question, limit, known):
            rows.append(row)
            print(*(row[name] for name in COLUMNS[:10]), flush=True)
            write(path, rows)
    order = [(question.family, question.shape) for question in questions()]
    rows.sort(key=lambda row: (order.index((row["family"], row["shape"])), int(row["capacity"])))
    for number, row in enumerate(rows):
        if not row.get("bound_of_tiles"):
            rows[number] = with_tiles(row)
            write(path, rows)


def spread(name: str, values: Sequence[float]) -> dict[str, float]:
    """Mean and worst, and how many are 1."""
    if not values:
        return {}
    return {
        f"{name}_mean": sum(values) / len(values),
        f"{name}_max": max(values),
        f"{name}_met": sum(value == 1 for value in values),
    }


def summary(rows: Sequence[Row], name: str) -> dict[str, Any]:
    """Of the rows of one regime: how many are closed and open; mean and worst of the ratios."""
    closed = [row for row in rows if row["optimum"]]
    result: dict[str, Any] = {"regime": name, "rows": len(closed), "open": len(rows) - len(closed)}
    result |= spread("bound", [int(row["optimum"]) / int(row["bound"]) for row in closed])
    result |= spread("schedule", [int(row["schedule_elements"]) / int(row["optimum"]) for row in closed])
    result |= spread("gap_of_tiles", [float(row["schedule_of_tiles"]) / float(row["bound_of_tiles"]) for row in closed])
    return result | spread("tiles", [float(row["schedule_of_tiles"]) / int(row["optimum"]) for row in closed])


def summaries(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Of each family: all rows, those of little room, and those of each regime."""
    results = []
    for family in dict.fromkeys(row["family"] for row in rows):
        ours = [row for row in rows if row["family"] == family]
        few = [row for row in ours if int(row["capacity"]) <= FEW]
        parts = [("all", ours), (f"S up to {FEW}", few)]
        parts += [(one.text, [row for row in ours if one.holds(row)]) for one in REGIMES if one.family == family]
        results += [{"family": family} | summary(part, text) for text, part in parts if part]
    return results


def wrong(rows: Sequence[Row]) -> list[Row]:
    """Rows with a bound above the optimum, or a schedule below it; where it is open, above or below what is known."""
    return [
        row
        for row in rows
        if int(row["bound"]) > int(row["optimum"] or row["schedule_elements"])
        or int(row["schedule_elements"]) < int(row["lower"])
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run", help="solve the rows that the table does not have")
    runs.add_argument("csv", type=Path)
    runs.add_argument("--time-limit", type=float, default=20.0, help="seconds for each optimum")
    runs.add_argument("--smallest", action="store_true", help="one workload: does it run?")
    table = commands.add_parser("table", help="means by regime")
    table.add_argument("csv", type=Path)
    table.add_argument("--json", action="store_true", help="as a document")
    spec = parser.parse_args(arguments)
    if spec.command == "run":
        run(spec.csv, spec.time_limit, spec.smallest)
    rows = read(spec.csv)
    results = summaries(rows)
    if spec.command == "table" and spec.json:
        print(json.dumps({"rows": results}))
    else:
        print(f"{'':42s} rows open  optimum/bound  schedule/optimum  of tiles: schedule/bound  schedule/optimum")
        for one in results:
            cells = [
                f"{one[f'{name}_mean']:.3f} / {one[f'{name}_max']:.3f}" if one["rows"] else "-"
                for name in ("bound", "schedule", "gap_of_tiles", "tiles")
            ]
            print(f"{one['family']:6s} {one['regime']:35s} {one['rows']:4d} {one['open']:4d}  {'   '.join(cells)}")
    for row in wrong(rows):
        print(f"WRONG: {row}")
    return 5 if wrong(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
