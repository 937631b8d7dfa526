"""The certified gap in bytes, partial sums in fp32: best schedule over proven bound, of each instance of the catalogue.

    python benchmarks/gap/wide.py table.csv [--certificates] [--family gemm]

Inputs and outputs take 2 bytes, accumulators 4, and the memory holds bytes. Recomputes bound and schedule of each row,
writes a CSV and prints mean and worst gap by family; ``--certificates`` also writes each certificate in memory and has
it checked.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from catalogue import Instance, catalogue

from pebble.certificate import RefusedError, check
from pebble.errors import PebbleError
from pebble.reports.bound import bound_workload

COLUMNS = ("family", "instance", "kibibytes", "bound_bytes", "schedule_bytes", "gap", "seconds", "verified", "schedule")
Row = dict[str, str]


def row(instance: Instance, certificates: bool) -> Row:
    """Bound and schedule in bytes, their seconds; with ``certificates`` whether the checker accepts both."""
    begin = time.perf_counter()
    found = bound_workload(instance.workload, cache=f"{instance.kibibytes}KiB", accumulators="fp32")
    seconds, verified = time.perf_counter() - begin, ""
    if certificates:
        try:
            check(json.loads(json.dumps(found.certificate())))
            verified = "yes"
        except (PebbleError, RefusedError) as error:
            verified = f"no: {error}"
    schedule = found.upper
    return {
        "family": instance.family,
        "instance": instance.name,
        "kibibytes": str(instance.kibibytes),
        "bound_bytes": str(found.lower.bytes),
        "schedule_bytes": str(schedule.bytes) if schedule else "",
        "gap": f"{schedule.bytes / found.lower.bytes:.4f}" if schedule else "",
        "seconds": f"{seconds:.4f}",
        "verified": verified,
        "schedule": schedule.name if schedule else "",
    }


def summary(rows: Sequence[Row]) -> str:
    """Mean and worst gap, by family."""
    lines = [f"{'family':10s} {'rows':>4s} {'mean gap':>9s} {'max gap':>8s}  verified"]
    for family in dict.fromkeys(r["family"] for r in rows):
        ours = [r for r in rows if r["family"] == family]
        gaps = [float(r["gap"]) for r in ours if r["gap"]]
        mean, worst = (f"{sum(gaps) / len(gaps):9.4f}", f"{max(gaps):8.4f}") if gaps else (f"{'-':>9s}", f"{'-':>8s}")
        checked = sum(r["verified"] == "yes" for r in ours)
        told = f"{checked} of {len(ours)}" if any(r["verified"] for r in ours) else "not asked"
        lines.append(f"{family:10s} {len(ours):4d} {mean} {worst}  {told}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", type=Path)
    parser.add_argument("--certificates", action="store_true", help="write and check each certificate")
    parser.add_argument("--family", help="only rows of this family")
    told = parser.parse_args(arguments)
    rows = [row(one, told.certificates) for one in catalogue() if told.family in (None, one.family)]
    with told.csv.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(summary(rows))


if __name__ == "__main__":
    main()
