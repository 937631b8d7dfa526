"""The certified gap in bytes, partial sums in fp32: best schedule over proven bound, of each instance of the catalogue
and of whole layers.

    python benchmarks/gap/wide.py table.csv [--certificates] [--family gemm]

Inputs and outputs take 2 bytes, accumulators 4, and the memory holds bytes. Recomputes bound and schedule of each row,
writes a CSV and prints mean and worst gap by family; ``--certificates`` also writes each certificate in memory and has
it checked.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from catalogue import Instance, Row, add_arguments, by_family, catalogue, checked, layers, write_table

from pebble.reports.bound import bound_workload

COLUMNS = ("family", "instance", "kibibytes", "bound_bytes", "schedule_bytes", "gap", "seconds", "verified", "schedule")


def row(instance: Instance, certificates: bool) -> Row:
    """Bound and schedule in bytes, their seconds; with ``certificates`` whether the checker accepts both."""
    begin = time.perf_counter()
    result = bound_workload(instance.workload, cache=f"{instance.kibibytes}KiB", accumulators="fp32")
    seconds = time.perf_counter() - begin
    schedule = result.upper
    return {
        "family": instance.family,
        "instance": instance.name,
        "kibibytes": str(instance.kibibytes),
        "bound_bytes": str(result.lower.bytes),
        "schedule_bytes": str(schedule.bytes) if schedule else "",
        "gap": f"{schedule.bytes / result.lower.bytes:.4f}" if schedule else "",
        "seconds": f"{seconds:.4f}",
        "verified": checked(result.certificate) if certificates else "",
        "schedule": schedule.name if schedule else "",
    }


def summary(rows: Sequence[Row]) -> str:
    """Mean and worst gap, by family."""
    head = f"{'family':10s} {'rows':>4s} {'mean gap':>9s} {'max gap':>8s}  verified"
    return "\n".join([head, *(f"{spec}  {verified}" for _, spec, verified in by_family(rows))])


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    spec = parser.parse_args(arguments)
    print(summary(write_table(spec, row, COLUMNS, (*catalogue(), *layers()))))


if __name__ == "__main__":
    main()
