"""Where chance decides what blocks that run free read: how often the ranges of `pebble/simulation/cliff.py` hold.

    python benchmarks/hardware/cliffs.py                          # of what was recorded
    python benchmarks/hardware/cliffs.py --csv predicted/cliffs.csv   # simulated again: ten minutes

First, attention near the capacity of L2. Rows of `*.csv` with attention whose blocks ran free, but causal heads first,
which are called not reliable anyway: on these the rule was chosen. Files of `exports/measured.csv` were kept out.
Then long products: `*.csv` again, as `predict.py` recorded them, files of `exports/measured.csv`, and those of
`blind/long_products.csv`, named and predicted when the range stood, before they ran.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

from exports import MEASURED, drifts_far, layers, measured  # noqa: E402 - beside this file
from library import HERE, read_rows  # noqa: E402
from predict import Asked, asked, drifts, measured_bytes, named, recorded_pairs, shape_name  # noqa: E402

from pebble.families import kernel_family  # noqa: E402
from pebble.models.machine import load_machine  # noqa: E402
from pebble.models.rates import speeds_of  # noqa: E402
from pebble.schedules.execution import parse_execution  # noqa: E402
from pebble.schedules.tile import TileShape  # noqa: E402
from pebble.simulation import KernelConfig  # noqa: E402
from pebble.simulation.cliff import FEWER, LARGER, MORE, MUCH_LARGER, far_range, read_range  # noqa: E402

RECORDED = HERE / "predicted/cliffs.csv"
COLUMNS = ("rows", "chip", "problem", "tile", "order", "measured", "predicted", "larger", "much_larger")
KIT, EXPORTS, BLIND = "of the choice", "exported files", "blind"
Line = dict[str, str]


def kernels() -> Iterator[tuple[tuple[str, ...], int, Asked]]:
    """What each row is, what it read, and its kernel."""
    for path in sorted(HERE.glob("*.csv")):
        for row in read_rows([path]):
            if row["family"] != "attention" or row["execution"] != "free" or not row["tile"] or not named(row):
                continue
            first = "heads-first" in row["order"] and row["causal"] == "1"
            kernel = asked(row)
            if measured_bytes(row) and kernel is not None and not first:
                about = (KIT, row["chip"], shape_name(row), row["tile"], row["order"])
                yield about, measured_bytes(row), kernel
    known = layers()
    for line in measured(MEASURED, "free"):
        family, schedule, workload = known[line["case"]]
        if family == "attention":
            machine, kind = load_machine(line["chip"]), kernel_family(workload)
            config = KernelConfig(
                TileShape.parse(line["tile"]), machine.sms, 1, machine.l2_bytes, machine.default_model.policy,
                parse_execution("free"), 2, speeds_of(machine, "bf16"),
            )  # fmt: skip
            kernel = Asked(machine, kind, workload, kind.parse_schedule(schedule), config)
            about = (EXPORTS, line["chip"], line["case"], line["tile"], schedule)
            yield about, int(line["dram_read_bytes"]), kernel


def simulate(path: Path) -> None:
    """All rows again, each kernel once."""
    known: dict[tuple[str, ...], list[int]] = {}
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for about, read, kernel in kernels():
            if about not in known:
                sizes = [int(times * kernel.config.cache_bytes) for times in (1, LARGER, MUCH_LARGER)]
                configs = [replace(kernel.config, cache_bytes=size) for size in sizes]
                known[about] = [
                    kernel.family.simulate(kernel.workload, kernel.schedule, config).dram_read_bytes
                    for config in configs
                ]
            writer.writerow([*about, read, *known[about]])
            file.flush()


def summary(lines: list[Line]) -> str:
    """A line for each kind of rows and chip."""
    shown = [f"{'rows':<16}{'chip':<16}{'at a cliff':>11}{'in the range':>14}{'others':>8}{'within 10 %':>13}"]
    for rows, chip in sorted({(line["rows"], line["chip"]) for line in lines}, reverse=True):
        cliffs, inside, others, near = 0, 0, 0, 0
        for line in lines:
            if (line["rows"], line["chip"]) != (rows, chip):
                continue
            read, by = int(line["measured"]), {LARGER: line["larger"], MUCH_LARGER: line["much_larger"]}
            between = read_range(int(line["predicted"]), lambda times, by=by: int(by[times]))  # type: ignore[misc]
            cliffs, others = cliffs + (between is not None), others + (between is None)
            inside += between is not None and between[0] <= read <= between[1]
            near += between is None and abs(int(line["predicted"]) / read - 1) <= 0.1
        shown.append(f"{rows:<16}{chip:<16}{cliffs:>11}{inside:>14}{others:>8}{near:>13}")
    return "\n".join(shown)


def long_products() -> Iterator[tuple[str, int, int]]:
    """Of each launch of a long product: which rows, what it read, and what is modelled."""
    rows = [row for path in sorted(HERE.glob("*.csv")) for row in read_rows([path])]
    for pair in recorded_pairs(rows, str(HERE / "predicted/rows.csv")):
        row = pair.row
        if row["execution"] == "free" and row["family"] != "attention" and drifts(row):
            yield KIT, pair.measured, pair.predicted
    for line in measured(MEASURED, "free"):
        if line["dram_read_bytes"] and drifts_far(line):
            yield EXPORTS, int(line["dram_read_bytes"]), int(line["predicted_read_bytes"])
    with open(HERE / "blind/long_products.csv", newline="") as file:
        for line in csv.DictReader(file):
            yield BLIND, int(line["dram_read_bytes"]), int(line["predicted_read_bytes"])


def far_summary(products: Iterable[tuple[str, int, int]]) -> str:
    """A line for each kind of rows."""
    inside = dict[str, list[bool]]()
    for rows, read, modelled in products:
        least, most = far_range(modelled)
        inside.setdefault(rows, []).append(least <= read <= most)
    shown = [f"{'rows':<16}{'long products':>15}{f'in {FEWER} to {MORE}':>17}"]
    return "\n".join([*shown, *(f"{rows:<16}{len(held):>15}{sum(held):>17}" for rows, held in inside.items())])


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=Path, metavar="FILE", help="simulate all rows and write them")
    args = parser.parse_args()
    if args.csv:
        simulate(args.csv)
    with open(args.csv or RECORDED, newline="") as file:
        print(summary(list(csv.DictReader(file))), "", far_summary(long_products()), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
