"""Do two parts of a layer, each scheduled by itself, move less than its best schedule?

    python benchmarks/gap/splits.py benchmarks/gap/splits.csv

A product is cut along m or n, a network along its tokens, at every sixteenth. Each part has its best schedule of all
families; nothing passes from one to the other. Prints the best cut of each row whose schedule moves something twice,
and what it moves over what the best schedule of the whole moves. Below 1 a family is missing.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from catalogue import Instance, Row, catalogue

from pebble.families import family_of
from pebble.workloads import Ffn, Gemm
from pebble.workloads.widths import FastMemory

COLUMNS = ("instance", "kibibytes", "schedule_elements", "axis", "at", "split_elements", "ratio")
PARTS = 16


def scheduled(workload: Gemm | Ffn, capacity: int) -> int:
    """What the best schedule moves."""
    schedule = family_of(workload).best_schedule(workload, FastMemory.of_values(capacity, workload))
    assert schedule is not None  # every memory of the catalogue holds one
    return int(schedule.elements)


def row(instance: Instance) -> Row | None:
    """The best cut in two; None where the whole moves what it must, or is neither a product nor a network."""
    whole, capacity = instance.workload, instance.capacity_elements
    if not isinstance(whole, Gemm | Ffn):
        return None
    now = scheduled(whole, capacity)
    if now == whole.compulsory_elements:
        return None
    axes, cuts = (("m", "n") if isinstance(whole, Gemm) else ("tokens",)), []
    for axis in axes:
        side = getattr(whole, axis)
        for part in range(1, PARTS // 2 + 1):
            at = side * part // PARTS
            pieces = (replace(whole, **{axis: size}) for size in (at, side - at))
            cuts.append((sum(scheduled(piece, capacity) for piece in pieces), axis, at))
    best, axis, at = min(cuts)
    numbers = (instance.name, instance.kibibytes, now, axis, at, best, f"{best / now:.4f}")
    return dict(zip(COLUMNS, map(str, numbers), strict=True))


def rows(smallest: bool) -> Iterator[Row]:
    """A row for each instance that has one."""
    for instance in catalogue():
        if (found := row(instance)) is not None:
            yield found
            if smallest:
                return


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", type=Path)
    parser.add_argument("--smallest", action="store_true", help="one row: does it run?")
    spec = parser.parse_args(arguments)
    with spec.csv.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for found in rows(spec.smallest):
            writer.writerow(found)
            print(" ".join(found.values()), flush=True)


if __name__ == "__main__":
    main()
