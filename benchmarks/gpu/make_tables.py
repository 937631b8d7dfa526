"""Write the tables and the plan of a measurement, on any machine with `pebble`; the GPU machine needs neither.

    python benchmarks/gpu/make_tables.py plan PLAN                  # layers of named models, orders in common use
    python benchmarks/gpu/make_tables.py plan PLAN --which drift    # what free-running blocks are to be tested on
    python benchmarks/gpu/make_tables.py plan PLAN --which held-out # shapes that no number of the model was chosen on
    python benchmarks/gpu/make_tables.py plan PLAN --which tiles    # which tile wins where; tiles-blind: other products
    python benchmarks/gpu/make_tables.py plan PLAN --which small    # a quick one: does everything work on this GPU?
    python benchmarks/gpu/make_tables.py plan PLAN --tuned a.json   # tuned schedules beside orders in common use
    python benchmarks/gpu/make_tables.py order grouped-8 --grid 32x64 -o table.csv

A plan is a folder: ``plan.csv`` with one row a case, in the columns of the library of measurements and ``table``, the
file that the case walks. Cases of one problem stand together; they share its operands.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks/gpu"), str(ROOT / "benchmarks/hardware")]

import plans  # noqa: E402 - beside this file
from library import SHAPE_COLUMNS  # noqa: E402
from tables import FFN_COLUMNS, Table, write_table  # noqa: E402

from pebble.families import kernel_family, read_workload  # noqa: E402
from pebble.schedules.export.cuda import slots_of  # noqa: E402
from pebble.schedules.orders import OrderParams, parse_order  # noqa: E402
from pebble.schedules.tables import Launch  # noqa: E402
from pebble.schedules.tables.files import read_document  # noqa: E402
from pebble.schedules.tables.registry import named_table  # noqa: E402
from pebble.schedules.tile import TileShape  # noqa: E402
from pebble.workloads import Workload  # noqa: E402

Case = dict[str, object]
PLANS = ("daily", "drift", "held-out", "tiles", "tiles-blind", "small")


def number(case: Case, name: str) -> int:
    """A whole number of a case."""
    return int(str(case[name]))


def order_table(name: str, rows: int, cols: int, bm: int, bn: int, sms: int) -> Table:
    """(tile row, tile column) of one order."""
    return parse_order(name).tiles(rows, cols, OrderParams(sms=sms, tile_m=bm, tile_n=bn))


def workload_of(case: Case) -> Workload:
    """The problem of a case."""
    names = [name for name in SHAPE_COLUMNS[str(case["family"])] if name in case]
    flags = ("gated", "causal")
    sizes = {name: bool(number(case, name)) if name in flags else number(case, name) for name in names}
    return read_workload(str(case["family"]), sizes)


def case_table(case: Case, sms: int) -> Table:
    """The table of a case, as `tables` describes it; k directions are left to the wave that the GPU makes."""
    workload = workload_of(case)
    family = kernel_family(workload)
    schedule = family.parse_schedule(str(case["order"]).removesuffix("+sawtooth"))
    tile = TileShape.parse(str(case["tile"]))
    table = named_table(workload, schedule, Launch(family.cut_tile(tile, workload), sms))
    columns = FFN_COLUMNS if family.name == "ffn" else FFN_COLUMNS[2:4]
    return np.column_stack([table.column(name) for name in columns]).astype(np.int32)


def write_plan(folder: Path, cases: Iterator[Case], sms: int) -> int:
    """Tables, each once, and ``plan.csv``."""
    folder.mkdir(parents=True, exist_ok=True)
    written: dict[bytes, str] = {}
    rows = []
    for case in cases:
        if case["launch"] != "library":
            result = case.pop("slots", None)
            table = case_table(case, sms) if result is None else np.asarray(result)
            key = table.tobytes()
            if key not in written:
                name = re.sub(r"[^\w.+-]", "-", str(case["order"]).removesuffix("+sawtooth"))
                written[key] = f"{len(written):03d}-{name[:60]}.npy"
                write_table(folder / written[key], table)
            case = case | {"table": written[key]}
        rows.append(case)
    names = list(dict.fromkeys(name for row in rows for name in row))
    with open(folder / "plan.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return len(rows)


def tuned_cases(paths: list[Path]) -> Iterator[Case]:
    """Each schedule that `pebble tune --save` wrote, in its waves, beside orders in common use and the library."""
    for path in paths:
        table = read_document(json.loads(path.read_text()), path.name)
        launch, sizes = table.launch, dataclasses.asdict(table.workload)
        family = table.workload.family
        base: Case = {"family": family, "dtype": table.workload.dtype, "note": path.stem}
        base |= {name: int(sizes[name]) for name in SHAPE_COLUMNS[family]}
        kernel = {"tile": str(launch.tile) if family != "attention" else f"{launch.tile.bm}x{launch.tile.bn}"}
        kernel |= {"stages": launch.stages, "blocks_per_sm": launch.blocks_per_sm}
        once: Case = {"order": f"tuned:{table.name}", "execution": "waves", "launch": "persistent"}
        yield base | kernel | once | {"slots": slots_of(table)}
        yield from plans.daily_beside(base | kernel)
        yield from plans.library_beside(base)


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    plan = commands.add_parser("plan", help="a folder of tables and plan.csv")
    plan.add_argument("folder", type=Path)
    plan.add_argument("--which", choices=PLANS, default="daily")
    plan.add_argument("--tuned", type=Path, nargs="+", metavar="FILE", help="instead: what `pebble tune --save` wrote")
    single = commands.add_parser("order", help="one tile order as a table")
    single.add_argument("name")
    single.add_argument("--grid", required=True, help="RxC, tile rows and columns")
    single.add_argument("--tile", default="128x128", help="BMxBN in values (deepgemm)")
    single.add_argument("-o", "--output", required=True, help="file.csv or file.npy")
    for command in (plan, single):
        command.add_argument("--sms", type=int, default=132, help="streaming multiprocessors (deepgemm; 132)")
    args = parser.parse_args()
    if args.command == "order":
        rows, cols = (int(side) for side in args.grid.split("x"))
        bm, bn = (int(side) for side in args.tile.split("x")[:2])
        write_table(args.output, order_table(args.name, rows, cols, bm, bn, args.sms))
        return 0
    cases = tuned_cases(args.tuned) if args.tuned else plans.cases(args.which)
    print(f"{write_plan(args.folder, cases, args.sms)} cases in {args.folder}/plan.csv")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
