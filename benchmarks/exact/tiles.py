"""Tiles on neighbouring SMs: what is proved, what is found, and schedules in common use, in bytes, as a growing table.

    python benchmarks/exact/tiles.py gemm-256x256x256 ffn-256x128x512 --omegas 1/2,1
    python benchmarks/exact/tiles.py --markdown > benchmarks/tiles_table.md

Each row of ``benchmarks/exact/tiles.csv``: the workload (gemm-MxNxK, ffn-TOKENSxMODELxHIDDEN, online- or
strict-QUERIESxKEYSxHEADDIM) in bf16, the tile as of a kernel, SMs, the memory of each, buffers, omega, split
(``balanced``: no SM does more than its share of the tasks), the proven interval in bytes, what gave its ends, seconds,
and for each schedule in common use what it moves in the same game, as the referee counts it,
with a star where an SM does more than its share. Rows that are optimal are
not run again; others are, and the better end of each stays.
"""

from __future__ import annotations

import argparse
import csv
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pebble

TABLE = Path(__file__).with_name("tiles.csv")
KEY = ["workload", "tile", "sms", "gpu", "buffers", "omega", "split"]
SCHEDULES = {
    "rows": "rows",
    "columns": "columns",
    "one_product_each": "one product on each SM",
    "separate": "separate kernels",
}
COLUMNS = [*KEY, "lower", "upper", "status", "proof", "upper_from", "seconds", "steps", *SCHEDULES]
SIZES = {
    "gemm": ("m", "n", "k"),
    "ffn": ("tokens", "d_model", "hidden"),
    "attention": ("queries", "keys", "head_dim"),
}
Row = dict[str, str]


def question(row: Row) -> tuple[str, dict[str, Any]]:
    """Family and parameters of a row, as `pebble.solve` takes them."""
    name, _, sizes = row["workload"].partition("-")
    family = "attention" if name in ("online", "strict") else name
    values: dict[str, Any] = dict(zip(SIZES[family], map(int, sizes.split("x")), strict=True))
    if family == "attention":
        values["softmax"] = name
    values |= {"tile": row["tile"], "gpu": row["gpu"], "buffers": row["buffers"], "sms": int(row["sms"])}
    return family, values | {"omega": row["omega"] or None, "balanced": row["split"] == "balanced"}


def run(row: Row, known: Row, limit: float) -> Row:
    """Solve a row, and keep the better ends of what was known."""
    family, values = question(row)
    result = pebble.solve(family, time_limit=limit, **values)
    document = result.document()
    fields = {
        "lower": f"{float(result.lower_bound):g}" if result.lower_bound % 1 else str(int(result.lower_bound)),
        "upper": "" if result.upper_bound is None else str(int(result.upper_bound)),
        "status": result.result.status,
        "proof": " + ".join(result.result.proof),
        "upper_from": result.result.upper_from,
        "seconds": f"{result.result.seconds:.1f}",
        "steps": str(len(document["timeline"])),
    }
    fields |= beside(document["common_schedules"])
    if known and float(known["lower"]) > float(fields["lower"]):
        fields |= {key: known[key] for key in ("lower", "proof")}
    if known and known["upper"] and (not fields["upper"] or float(known["upper"]) < float(fields["upper"])):
        fields |= {key: known[key] for key in ("upper", "upper_from", "steps")}
    if fields["upper"] and float(fields["lower"]) >= float(fields["upper"]):
        fields["status"] = "optimal"
    return row | fields


def beside(schedules: list[dict[str, Any]]) -> Row:
    """The columns of schedules in common use."""
    result = {
        schedule["schedule"]: f"{int(schedule['cost'])}{'' if schedule['within_limit'] else '*'}"
        for schedule in schedules
    }
    return {column: result[name] for column, name in SCHEDULES.items() if name in result}


def wanted(args: argparse.Namespace) -> list[Row]:
    """The rows that the options ask for: sm-local, then each omega."""
    models = [("sm-local", ""), *(("connected", omega) for omega in args.omegas.split(",") if omega)]
    return [
        dict(zip(KEY, (name, args.tile, sms, args.gpu, kind, omega, split), strict=True))
        for name, sms, (kind, omega), split in product(
            args.workloads, args.sms.split(","), models, args.splits.split(",")
        )
    ]


def _kib(text: str) -> str:
    """Of bytes, with a star where one is."""
    if not text:
        return ""
    return f"{float(text.removesuffix('*')) / 1024:,.1f}".removesuffix(".0") + ("*" if text.endswith("*") else "")


def markdown(rows: dict[tuple[str, ...], Row]) -> str:
    """The table as markdown, in KiB."""
    heads = ["tiles", "SMs", "buffers", "split", "least", "found in steps", *SCHEDULES.values()]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for row in rows.values():
        least = _kib(row["upper"]) if row["status"] == "optimal" else f"{_kib(row['lower'])}..{_kib(row['upper'])}"
        model = f"connected, omega {row['omega']}" if row["omega"] else row["buffers"]
        cells = [f"{row['workload']} by {row['tile']}", row["sms"], model, row["split"], least, row["steps"]]
        lines.append(f"| {' | '.join([*cells, *(_kib(row[column]) for column in SCHEDULES)])} |")
    return "\n".join(lines)


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
    """Solve and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*")
    parser.add_argument("--markdown", action="store_true", help="print the table")
    parser.add_argument("--tile", default="128x128x64")
    parser.add_argument("--gpu", default="h100-sxm5-80gb")
    parser.add_argument("--sms", default="2")
    parser.add_argument("--omegas", default="1/2,1")
    parser.add_argument("--splits", default="balanced")
    parser.add_argument("--time-limit", type=float, default=60)
    parser.add_argument("--table", type=Path, default=TABLE, metavar="CSV")
    args = parser.parse_args()
    if args.markdown:
        print(markdown(read(args.table)))
    for row in wanted(args):
        known = read(args.table).get(key_of(row), {})
        if known.get("status") != "optimal":
            known = run(row, known, args.time_limit)
            print(*key_of(row), f"{known['lower']}..{known['upper']}", known["seconds"], flush=True)
            write(args.table, read(args.table) | {key_of(row): known})
    return 0


if __name__ == "__main__":
    sys.exit(main())
