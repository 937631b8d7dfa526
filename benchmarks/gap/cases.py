"""What Theorem 15 proves of chains in few segments, beside what is proved without it and the best schedule.

    python benchmarks/gap/cases.py benchmarks/gap/cases.csv [--cases 400]

FFNs and gated FFNs of the catalogue that must move something twice and that 1.2 to 10 segments of S^1.5 products make
up. Every certificate is written and checked. A minute or two for each row; rows that stand in the CSV are not run
again. Bounds and schedules of today are those of ``groups.csv``.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from catalogue import Instance, Row, recorded

from pebble.bounds import CasesBound
from pebble.certificate import check
from pebble.families import family_of
from pebble.proof.certificate import bound_certificate
from pebble.reports.bound import known_of
from pebble.workloads import Ffn
from pebble.workloads.widths import FastMemory

FEWEST, MOST = 1.2, 10.0  # segments of S^1.5 products
COLUMNS = (
    "family", "instance", "kibibytes", "before", "bound", "schedule", "gap_before", "gap", "segments", "cases",
    "form", "seconds", "verified",
)  # fmt: skip


def wanted() -> Iterator[tuple[Instance, Row]]:
    """The rows of the catalogue that cases are tried on."""
    for instance, today in recorded():
        if not isinstance(instance.workload, Ffn) or today["gap"] == "1.0000":
            continue
        products = instance.workload.flops / 2 / instance.capacity_elements**1.5
        if FEWEST < products < MOST:
            yield instance, today


def row(instance: Instance, today: Row, cases: int) -> Row:
    """What is proved with so many cases, and whether the checker takes it."""
    begin = time.perf_counter()
    workload, capacity = instance.workload, instance.capacity_elements
    lower = family_of(workload).lower_bound(workload, capacity, cases=cases)
    seconds = time.perf_counter() - begin
    known = known_of(workload, capacity, FastMemory.of_values(capacity, workload))
    check(json.loads(json.dumps(bound_certificate(workload, known._replace(lower=lower)))))
    proof, schedule = lower.proof, int(today["schedule_elements"])
    found = proof if isinstance(proof, CasesBound) else None
    return {
        "family": instance.family,
        "instance": instance.name,
        "kibibytes": str(instance.kibibytes),
        "before": today["bound_elements"],
        "bound": str(lower.elements),
        "schedule": str(schedule),
        "gap_before": today["gap"],
        "gap": f"{schedule / lower.elements:.4f}",
        "segments": str(found.segments) if found else "",
        "cases": str(found.cases) if found else "",
        "form": found.form if found else "",
        "seconds": f"{seconds:.1f}",
        "verified": "yes",
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Add the rows that the table does not have."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", type=Path)
    parser.add_argument("--cases", type=int, default=400, help="to tell apart, counted with those that are parted")
    parser.add_argument("--smallest", action="store_true", help="one row, of few cases: does it run?")
    spec = parser.parse_args(arguments)
    rows: list[Row] = []
    if spec.csv.exists():
        with spec.csv.open(newline="") as file:
            rows = list(csv.DictReader(file))
    known = {(one["instance"], one["kibibytes"]) for one in rows}
    for instance, today in wanted():
        if (instance.name, str(instance.kibibytes)) in known:
            continue
        rows.append(row(instance, today, 4 if spec.smallest else spec.cases))
        print(*(rows[-1][name] for name in COLUMNS), flush=True)
        with spec.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        if spec.smallest:
            return


if __name__ == "__main__":
    main()
