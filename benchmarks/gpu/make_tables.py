"""Write the tables and the plan of a measurement, on any machine with `pebble`; the GPU machine needs neither.

    python benchmarks/gpu/make_tables.py plan PLAN                  # layers of named models, orders in daily use
    python benchmarks/gpu/make_tables.py plan PLAN --which drift    # what free-running blocks are to be tested on
    python benchmarks/gpu/make_tables.py plan PLAN --which small    # a quick one: does everything work on this GPU?
    python benchmarks/gpu/make_tables.py order grouped-8 --grid 32x64 -o table.csv

A plan is a folder: ``plan.csv`` with one row a case, in the columns of the library of measurements and ``table``, the
file that the case walks. Cases of one problem stand together; they share its operands.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

import plans  # noqa: E402 - beside this file
from tables import Table, write_table  # noqa: E402

from pebble.schedules.orders import OrderParams, parse_order  # noqa: E402

Case = dict[str, object]
_FUSED = re.compile(r"row-fused-([0-9]+)(?:-split-([0-9]+))?")


def tile_of(case: Case) -> tuple[int, ...]:
    """BM, BN and, but for attention, BK."""
    return tuple(int(side) for side in str(case["tile"]).split("x"))


def number(case: Case, name: str) -> int:
    """A whole number of a case."""
    return int(str(case[name]))


def order_table(name: str, rows: int, cols: int, bm: int, bn: int, sms: int) -> Table:
    """(tile row, tile column) of one order."""
    return parse_order(name).tiles(rows, cols, OrderParams(sms=sms, tile_m=bm, tile_n=bn))


def gemm_table(case: Case, sms: int) -> Table:
    """Tiles of C."""
    bm, bn, _ = tile_of(case)
    return order_table(str(case["order"]), number(case, "m") // bm, number(case, "n") // bn, bm, bn, sms)


def ffn_table(case: Case, sms: int) -> Table:
    """Phases as in `pebble.schedules.ffn`: two kernels in a tile order, or bands walked column by column."""
    bm, bn, bk = tile_of(case)
    rows, hidden, out = number(case, "tokens") // bm, number(case, "hidden") // bn, number(case, "d_model") // bn
    up_steps, per_tile = number(case, "d_model") // bk, bn // bk
    name = str(case["order"]).removesuffix("+sawtooth")
    phases: list[tuple[int, np.ndarray, int, int, int]] = []  # product, tiles, first step, steps, adds
    if name.startswith("separate:"):
        order = name.removeprefix("separate:")
        phases.append((0, order_table(order, rows, hidden, bm, bn, sms), 0, up_steps, 0))
        phases.append((1, order_table(order, rows, out, bm, bn, sms), 0, hidden * per_tile, 0))
    else:
        match = _FUSED.fullmatch(name)
        if match is None:
            raise ValueError(f"order: got {name!r}, expected separate:ORDER or row-fused-R[-split-S].")
        height, split = int(match[1]), int(match[2] or 1)
        part = -(-hidden // split)
        for top in range(0, rows, height):
            band = range(top, min(top + height, rows))
            for left in range(0, hidden, part):
                right = min(left + part, hidden)
                up = np.array([(i, j) for j in range(left, right) for i in band])
                down = np.array([(i, j) for j in range(out) for i in band])
                phases.append((0, up, 0, up_steps, 0))
                phases.append((1, down, left * per_tile, (right - left) * per_tile, int(left > 0)))
    parts = [
        np.column_stack([np.full(len(t), at), np.full(len(t), product), t, np.tile([first, steps, adds], (len(t), 1))])
        for at, (product, t, first, steps, adds) in enumerate(phases)
    ]
    return np.concatenate(parts).astype(np.int32)


def attention_table(case: Case, sms: int) -> Table:
    """(Q tile, head) as in `pebble.schedules.attention`: fa2, fa2-heads-first, fa3."""
    bm = tile_of(case)[0]
    tiles, copies = number(case, "queries") // bm, number(case, "batch") * number(case, "heads")
    name = str(case["order"]).removesuffix("+sawtooth")
    every = np.arange(tiles * copies)
    if name == "fa2":
        return np.column_stack([every % tiles, every // tiles])
    if name == "fa2-heads-first":
        return np.column_stack([every // copies, every % copies])
    if name != "fa3":
        raise ValueError(f"order: got {name!r}, expected fa2, fa2-heads-first or fa3.")
    head_bytes = number(case, "keys") * 2 * number(case, "head_dim") * 2
    fit = 32 * 2**20 // head_bytes  # FlashAttention-3's guess of what the L2 holds
    section = (1 << (fit.bit_length() - 1) if fit else 1) * (number(case, "heads") // number(case, "kv_heads"))
    parts = [
        (tile, head)
        for start in range(0, copies, section)
        for tile in range(tiles - 1, -1, -1)
        for head in range(start, min(start + section, copies))
    ]
    return np.array(parts)


MAKERS = {"gemm": gemm_table, "ffn": ffn_table, "attention": attention_table}


def write_plan(folder: Path, cases: Iterator[Case], sms: int) -> int:
    """Tables, each once, and ``plan.csv``."""
    folder.mkdir(parents=True, exist_ok=True)
    written: dict[bytes, str] = {}
    rows = []
    for case in cases:
        if case["launch"] != "library":
            table = MAKERS[str(case["family"])](case, sms)
            key = table.tobytes()
            if key not in written:
                written[key] = (
                    f"{len(written):03d}-{str(case['order']).removesuffix('+sawtooth').replace(':', '-')}.npy"
                )
                write_table(folder / written[key], table)
            case = case | {"table": written[key]}
        rows.append(case)
    names = list(dict.fromkeys(name for row in rows for name in row))
    with open(folder / "plan.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return len(rows)


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    plan = commands.add_parser("plan", help="a folder of tables and plan.csv")
    plan.add_argument("folder", type=Path)
    plan.add_argument("--which", choices=("daily", "drift", "small"), default="daily")
    one = commands.add_parser("order", help="one tile order as a table")
    one.add_argument("name")
    one.add_argument("--grid", required=True, help="RxC, tile rows and columns")
    one.add_argument("--tile", default="128x128", help="BMxBN in values (deepgemm)")
    one.add_argument("-o", "--output", required=True, help="file.csv or file.npy")
    for command in (plan, one):
        command.add_argument("--sms", type=int, default=132, help="streaming multiprocessors (deepgemm; 132)")
    args = parser.parse_args()
    if args.command == "order":
        rows, cols = (int(side) for side in args.grid.split("x"))
        bm, bn = (int(side) for side in args.tile.split("x")[:2])
        write_table(args.output, order_table(args.name, rows, cols, bm, bn, args.sms))
        return 0
    print(f"{write_plan(args.folder, plans.cases(args.which), args.sms)} cases in {args.folder}/plan.csv")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
