"""Audit every problem of KernelBench: python benchmarks/kernelbench.py FOLDER [--gpu SKU] [--out rows.json]

FOLDER holds level1, level2 and level3 of https://github.com/ScalingIntelligence/KernelBench, of which nothing is
copied here. Of each level it prints how many problems are read, have every operation known, a floor above inputs and
outputs once for some operation or for the graph, and how long an audit takes.
"""

from __future__ import annotations

import argparse
import json
import signal
import tempfile
import time
from pathlib import Path
from typing import Any, NoReturn

import pebble
from pebble.errors import PebbleError

LONGEST_SECONDS = 120
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


def main() -> None:
    """Audit and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--smallest", action="store_true", help="one problem, which is none of KernelBench")
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.smallest:
        args.folder = Path(tempfile.mkdtemp())
        (args.folder / "level1").mkdir()
        (args.folder / "level1" / "1_relu.py").write_text(SMALLEST)
    elif args.folder is None:
        parser.error("FOLDER missing, expected that of KernelBench's levels")
    paths = [path for level in sorted(args.folder.glob("level[123]")) for path in sorted(level.glob("*.py"))]
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


if __name__ == "__main__":
    main()
