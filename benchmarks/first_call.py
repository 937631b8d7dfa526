"""What the first bound of a chain costs in a fresh process: `python benchmarks/first_call.py [--rounds 3]`.

One line for each problem: CPU milliseconds of the imports, of the lower bounds (fused and kernel by kernel), of the
best schedule, and of the whole call `pebble.bound` that follows the imports; each the least of some rounds, every round
and every column in a process of its own. The last column is the wall time of the processes of the one before, from
start to end. As in an installed package, modules are compiled once, before the clock runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time

SETUP = """
import time
start = time.process_time()
import pebble
from pebble.families import family_of
from pebble.reports.bound import memory_of
from pebble.reports.target import read_target
pebble.bound
imported = time.process_time()
workload, cache = pebble.{workload}, "{cache}"
family, capacity = family_of(workload), memory_of(read_target(cache=cache), workload)
begin = time.process_time()
"""
COLUMNS = {
    "imports": "begin, end = start, imported",
    "lower": "family.lower_bound(workload, capacity.elements); family.separate_bound(workload, capacity.elements)",
    "schedule": "family.best_schedule(workload, capacity.schedules(workload))",
    "bound": "pebble.bound(workload, cache=cache)",
}
PROBLEMS = (
    ("Ffn(8192, 4096, 11008)", "6MiB"),
    ("Ffn(8192, 4096, 11008)", "40MiB"),
    ("Ffn(8192, 8192, 28672)", "50MiB"),
    ("Ffn(8192, 4096, 11008, gated=True)", "40MiB"),
    ("Ffn(8192, 8192, 28672, gated=True)", "116MiB"),
    ("Ffn(65536, 4096, 11008, gated=True)", "116MiB"),
    ("Attention(8192, 8192, 128)", "96KiB"),
    ("Attention(131072, 131072, 128)", "6MiB"),
    ("Attention(8192, 8192, 128, causal=True)", "228KiB"),
)


def milliseconds(workload: str, cache: str, column: str, environment: dict[str, str]) -> tuple[float, float]:
    """CPU milliseconds of one column, in a process of its own, and wall milliseconds of that process."""
    end = "" if column == "imports" else "\nend = time.process_time()"
    code = SETUP.format(workload=workload, cache=cache) + COLUMNS[column] + end + "\nprint(end - begin)"
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    return 1e3 * float(done.stdout), 1e3 * (time.perf_counter() - started)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--smallest", action="store_true", help="one problem: does it run?")
    args = parser.parse_args()
    rounds = range(args.rounds)
    print("| problem | memory | " + " | ".join(f"{column} ms" for column in COLUMNS) + " | process ms |")
    print("|---|---|" + "---|" * (len(COLUMNS) + 1))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:
        environment["PYTHONPYCACHEPREFIX"] = folder
        milliseconds(*PROBLEMS[0], "bound", environment)
        for workload, cache in PROBLEMS[:1] if args.smallest else PROBLEMS:
            runs = {c: [milliseconds(workload, cache, c, environment) for _ in rounds] for c in COLUMNS}
            result = [min(cpu for cpu, _ in runs[c]) for c in COLUMNS] + [min(wall for _, wall in runs["bound"])]
            print(f"| {workload} | {cache} | " + " | ".join(f"{x:.0f}" for x in result) + " |", flush=True)


if __name__ == "__main__":
    main()
