"""Audit every problem of KernelBench: python benchmarks/kernelbench.py FOLDER [--gpu SKU] [--out rows.json]

    python benchmarks/kernelbench.py FOLDER --measured passes.csv --passes passes.jsonl --counted counted.csv
    python benchmarks/kernelbench.py --recorded benchmarks/kernelbench_h200.csv     # the same, kept

``passes.csv`` and ``passes.jsonl`` are what `benchmarks/gpu/counted.py` says of passes, eager and compiled. A floor is
violated where a pass reads less than its weights and inputs, or moves less than the floor.
FOLDER holds level1, level2 and level3 of https://github.com/ScalingIntelligence/KernelBench, of which nothing is
copied here. Of each level it prints how many problems are read, have every operation known, a floor above inputs and
outputs once for some operation or for the graph, and how long an audit takes.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import runpy
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import pebble
from pebble.errors import PebbleError

LONGEST_SECONDS = 120
FORK = multiprocessing.get_context("fork")
FLUSH_BYTES = 256 << 20  # that counted.py reads at the end of a pass
SMALLEST = """
import torch

Model = torch.nn.ReLU


def get_inputs():
    return [torch.rand(16, 16)]
"""


def audited(path: Path, gpu: str) -> dict[str, Any]:
    """A row: what an audit says of one problem, in a process of its own, which ends with its time."""
    ours, theirs = FORK.Pipe(duplex=False)
    process = FORK.Process(target=lambda: theirs.send(_audited(path, gpu)))
    process.start()
    theirs.close()
    row = {"level": path.parent.name, "problem": path.stem}
    try:
        return row | (ours.recv() if ours.poll(LONGEST_SECONDS) else {"error": "too long"})
    except EOFError:
        return row | {"error": "the process broke down"}
    finally:
        process.kill()
        process.join()


def _audited(path: Path, gpu: str) -> dict[str, Any]:
    start = time.process_time()
    try:
        result = pebble.audit(f"{path}:Model", gpu=gpu)
        graph = result.document()["graph"]
    except PebbleError as error:
        return {"error": str(error)}
    alone = any(floor.theorem != "each operand and result once" for floor in result.floors)
    return {
        "cpu_seconds": time.process_time() - start,
        "unknown": sorted({floor.operation.kind for floor in result.unknown}),
        "above_for_an_operation": alone,
        "above_for_the_graph": result.floor_bytes > result.compulsory_bytes,
        **graph,
    }


def counted(launches: Path, lines: Path) -> dict[tuple[str, str], dict[str, int]]:
    """Of each pass, by problem and eager or compiled: bytes read and written."""
    of = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    rows = (line for line in launches.read_text(encoding="utf-8").splitlines() if line.startswith('"'))
    result: dict[tuple[str, str], dict[str, int]] = {}
    for row in csv.DictReader(rows):
        line = of[int(row["ID"])]
        values = result.setdefault((line["problem"], line["how"]), {})
        read = row["Metric Name"] == "dram__bytes_read.sum"
        values["read_bytes" if read else "written_bytes"] = (
            int(row["Metric Value"].replace(",", "")) - read * FLUSH_BYTES
        )
    return result


def layers(gpu: str) -> list[dict[str, Any]]:
    """Rows of the layers of benchmarks/blocks.py."""
    blocks = runpy.run_path(str(Path(__file__).parent / "blocks.py"))
    results = []
    for name in blocks["BLOCKS"]:
        result = pebble.from_torch(*blocks["layer"](name, "meta"), gpu=gpu)
        results.append({"level": "layers", "problem": name, **result.document()["graph"]})
    return results


def beside(rows: list[dict[str, Any]], found: dict[tuple[str, str], dict[str, int]], of: str) -> list[dict[str, Any]]:
    """Floors and counters of the passes that have both; ``of`` is the chip and the date of the counters."""
    return [
        {
            "level": row["level"],
            "problem": row["problem"],
            "how": how,
            "floor_bytes": row["floor_bytes"],
            "weights_and_inputs_bytes": row["floor_parts_bytes"]["weights"] + row["floor_parts_bytes"]["inputs"],
            "one_kernel_an_operation_bytes": row["one_kernel_an_operation_bytes"],
            **found[name, how],
            "counted": of,
        }
        for row in rows
        for how in ("eager", "compiled")
        if "error" not in row and (name := f"{row['level']}/{row['problem']}", how) in found
    ]


def print_counted(rows: list[dict[str, Any]]) -> None:
    """Per level, eager and compiled: passes, floors violated, and what is moved over floor and one kernel an
    operation."""
    print("level    pass      counted  violated  median moved over the floor  over one kernel an operation")
    for level, how in sorted({(row["level"], row["how"]) for row in rows}, key=lambda key: (key[0], key[1] != "eager")):
        mine = [row for row in rows if (row["level"], row["how"]) == (level, how)]
        over = [(int(row["read_bytes"]) + int(row["written_bytes"]), row) for row in mine]
        wrong = [
            row["problem"]
            for moved, row in over
            if int(row["read_bytes"]) < int(row["weights_and_inputs_bytes"]) or moved < int(row["floor_bytes"])
        ]
        floors, alone = (
            median(moved / int(row[key]) for moved, row in over)
            for key in ("floor_bytes", "one_kernel_an_operation_bytes")
        )
        print(f"{level:7}  {how:8}  {len(mine):7}  {len(wrong):8}  {floors:27.2f}  {alone:28.2f}")
        for problem in wrong:
            print(f"        violated: {problem}")


def main() -> None:
    """Audit and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--smallest", action="store_true", help="one problem, which is none of KernelBench")
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--measured", type=Path, help="what ncu printed")
    parser.add_argument("--passes", type=Path, help="what counted.py wrote of the same passes")
    parser.add_argument("--of", default="", help="chip and date of the counters")
    parser.add_argument("--audited", type=Path, help="what --out wrote, instead of audits")
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
    rows = json.loads(args.audited.read_text()) if args.audited else [audited(path, args.gpu) for path in paths]
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
        found = counted(args.measured, args.passes)
        if any(name.startswith("layers/") for name, _ in found):
            rows += layers(args.gpu)
        both = beside(rows, found, args.of)
        print_counted(both)
        if args.counted is not None:
            with args.counted.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, both[0], lineterminator="\n")
                writer.writeheader()
                writer.writerows(both)


if __name__ == "__main__":
    main()
