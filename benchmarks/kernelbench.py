"""Audit every problem of KernelBench: python benchmarks/kernelbench.py FOLDER [--gpu SKU] [--out rows.json]

    python benchmarks/kernelbench.py FOLDER --measured launches.csv --counted counted.csv   # beside counters
    python benchmarks/kernelbench.py --recorded benchmarks/kernelbench_h200.csv             # the same, kept

``launches.csv`` is what `benchmarks/gpu/counted.py` says. A floor is violated where a pass reads less than its
weights and inputs, or moves less than the floor by more than an L2 a launch: what is written may stay there uncounted.
FOLDER holds level1, level2 and level3 of https://github.com/ScalingIntelligence/KernelBench, of which nothing is
copied here. Of each level it prints how many problems are read, have every operation known, a floor above inputs and
outputs once for some operation or for the graph, and how long an audit takes.
"""

from __future__ import annotations

import argparse
import csv
import json
import signal
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, NoReturn

import pebble
from pebble.errors import PebbleError

LONGEST_SECONDS = 120
L2_BYTES = 60 << 20  # of the chip that was counted
SMALLEST = """
import torch

Model = torch.nn.ReLU


def get_inputs():
    return [torch.rand(16, 16)]
"""


def _late(*_: object) -> NoReturn:
    raise TimeoutError


def audited(path: Path, gpu: str) -> dict[str, Any]:
    """A row: what an audit says of one problem."""
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(LONGEST_SECONDS)
    start = time.process_time()
    row: dict[str, Any] = {"level": path.parent.name, "problem": path.stem}
    try:
        result = pebble.audit(f"{path}:Model", gpu=gpu)
        graph = result.document()["graph"]
    except (PebbleError, TimeoutError) as error:
        return row | {"error": str(error) or "too long"}
    finally:
        signal.alarm(0)
    alone = any(floor.theorem != "each operand and result once" for floor in result.floors)
    return row | {
        "cpu_seconds": time.process_time() - start,
        "unknown": sorted({floor.operation.kind for floor in result.unknown}),
        "above_for_an_operation": alone,
        "above_for_the_graph": result.floor_bytes > result.compulsory_bytes,
        **graph,
    }


def counted(launches: Path) -> dict[int, dict[str, int]]:
    """Of each problem, by its place: bytes read and written, and launches."""
    lines = (line for line in launches.read_text(encoding="utf-8").splitlines() if line.startswith('"'))
    result: dict[int, dict[str, int]] = {}
    at = -1
    for row in csv.DictReader(lines):
        if row["Kernel Name"] == "problem_begins":
            at = int(row["Grid Size"].strip("()").split(",")[0]) - 1
            result.setdefault(at, {"launches": 0, "read_bytes": 0, "written_bytes": 0})
            continue
        kind = "read_bytes" if row["Metric Name"] == "dram__bytes_read.sum" else "written_bytes"
        result[at][kind] += int(row["Metric Value"].replace(",", ""))
        result[at]["launches"] += kind == "read_bytes"
    return result


def beside(rows: list[dict[str, Any]], launches: Path) -> list[dict[str, Any]]:
    """Floors and counters of the problems that have both; the floors of operations whose kernels are not known."""
    found = counted(launches)
    return [
        {
            "level": row["level"],
            "problem": row["problem"],
            "floor_bytes": row["floor_bytes"],
            "weights_and_inputs_bytes": row["floor_parts_bytes"]["weights"] + row["floor_parts_bytes"]["inputs"],
            "one_kernel_an_operation_bytes": row["one_kernel_an_operation_bytes"],
            **found[place],
        }
        for place, row in enumerate(rows)
        if "error" not in row and found.get(place, {}).get("launches")
    ]


def print_counted(rows: list[dict[str, Any]]) -> None:
    """Per level: problems, floors violated, and what is moved over the floor and over one kernel an operation."""
    print("level   counted  violated  median moved over the floor  over one kernel an operation")
    for level in sorted({row["level"] for row in rows}):
        mine = [
            {k: v if k in ("level", "problem") else int(v) for k, v in row.items()}
            for row in rows
            if row["level"] == level
        ]
        over = [(row["read_bytes"] + row["written_bytes"], row) for row in mine]
        wrong = [
            row["problem"]
            for moved, row in over
            if row["read_bytes"] < row["weights_and_inputs_bytes"]
            or moved + row["launches"] * L2_BYTES < row["floor_bytes"]
        ]
        floors, alone = (
            median(moved / row[key] for moved, row in over) for key in ("floor_bytes", "one_kernel_an_operation_bytes")
        )
        print(f"{level}  {len(mine):7}  {len(wrong):8}  {floors:27.2f}  {alone:28.2f}")
        for problem in wrong:
            print(f"        violated: {problem}")


def main() -> None:
    """Audit and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--smallest", action="store_true", help="one problem, which is none of KernelBench")
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--measured", type=Path)
    parser.add_argument("--counted", type=Path)
    parser.add_argument("--recorded", type=Path)
    args = parser.parse_args()
    if args.recorded is not None:
        print_counted(list(csv.DictReader(args.recorded.open(encoding="utf-8"))))
        return
    if args.smallest:
        args.folder = Path(tempfile.mkdtemp())
        (args.folder / "level1").mkdir()
        (args.folder / "level1" / "1_relu.py").write_text(SMALLEST)
    elif args.folder is None:
        parser.error("FOLDER missing, expected that of KernelBench's levels")
    paths = [
        path
        for level in sorted(args.folder.glob("level[123]"))
        for path in sorted(level.glob("*.py"), key=lambda path: int(path.name.split("_")[0]))
    ]
    rows = [audited(path, args.gpu) for path in paths]
    if args.out is not None:
        args.out.write_text(json.dumps(rows, indent=1))
    print("level   problems  read  all known  above for an operation  for the graph  median CPU s  most")
    for level in sorted({row["level"] for row in rows}):
        mine = [row for row in rows if row["level"] == level]
        read = [row for row in mine if "error" not in row]
        seconds = sorted(row["cpu_seconds"] for row in read) or [0.0]
        counts = [len(mine), len(read), sum(not row["unknown"] for row in read)]
        counts += [sum(row[f"above_for_{what}"] for row in read) for what in ("an_operation", "the_graph")]
        times = f"{seconds[len(seconds) // 2]:12.1f}  {seconds[-1]:4.1f}"
        print("{}  {:8}  {:4}  {:9}  {:22}  {:13}  {}".format(level, *counts, times))
    if args.measured is not None:
        both = beside(rows, args.measured)
        print_counted(both)
        if args.counted is not None:
            with args.counted.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, both[0], lineterminator="\n")
                writer.writeheader()
                writer.writerows(both)


if __name__ == "__main__":
    main()
