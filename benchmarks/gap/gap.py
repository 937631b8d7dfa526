"""The certified gap, best schedule over proven bound, of every instance of the catalogue.

    python benchmarks/gap/gap.py table after.csv [--certificates]
    python benchmarks/gap/gap.py figure gap.svg before.csv after.csv [--no-title]

``table`` recomputes bound and schedule of each row, writes a CSV and prints mean and worst gap by family;
``--certificates`` also writes each certificate in memory and has it checked. ``figure`` sets tables side by side.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from catalogue import Instance, Row, add_arguments, by_family, catalogue, checked, write_table

from pebble.errors import PebbleError
from pebble.families import family_of, lower_bound
from pebble.plots.look import Look, look, looking
from pebble.plots.save import BLUE, GREEN, GREY, ORANGE, RED, SKY, page, save_figure
from pebble.proof.certificate import bound_certificate
from pebble.reports.bound import known_of
from pebble.workloads.widths import FastMemory

COLUMNS = (
    "family", "instance", "kibibytes", "bound_elements", "schedule_elements", "gap", "peer_elements",
    "bound_seconds", "schedule_seconds", "verified", "schedule",
)  # fmt: skip


def row(instance: Instance, certificates: bool) -> Row:
    """Bound, schedule and their seconds; with ``certificates`` whether the checker accepts both."""
    begin = time.perf_counter()
    bound = lower_bound(instance.workload, instance.capacity_elements)
    between = time.perf_counter()
    schedule = family_of(instance.workload).best_schedule(
        instance.workload, FastMemory.of_values(instance.capacity_elements, instance.workload)
    )
    end = time.perf_counter()
    peer = instance.peer_elements
    return {
        "family": instance.family,
        "instance": instance.name,
        "kibibytes": str(instance.kibibytes),
        "bound_elements": str(bound.elements),
        "schedule_elements": str(schedule.elements) if schedule else "",
        "gap": f"{schedule.elements / bound.elements:.4f}" if schedule else "",
        "peer_elements": f"{peer:.0f}" if peer else "",
        "bound_seconds": f"{between - begin:.4f}",
        "schedule_seconds": f"{end - between:.4f}",
        "verified": checked(partial(certificate, instance)) if certificates else "",
        "schedule": schedule.name if schedule else "",
    }


def certificate(instance: Instance) -> dict[str, Any]:
    """Bound and schedule as data that the checker reads."""
    result = known_of(
        instance.workload,
        instance.capacity_elements,
        FastMemory.of_values(instance.capacity_elements, instance.workload),
    )
    return bound_certificate(instance.workload, result)


def summary(rows: Sequence[Row]) -> str:
    """Mean and worst gap and seconds, by family."""
    lines = [
        f"{'family':10s} {'rows':>4s} {'mean gap':>9s} {'max gap':>8s} {'ms bound':>9s} {'ms schedule':>11s}  verified"
    ]
    for ours, spec, verified in by_family(rows):
        seconds = [1000 * sum(float(r[key]) for r in ours) / len(ours) for key in ("bound_seconds", "schedule_seconds")]
        lines.append(f"{spec} {seconds[0]:9.1f} {seconds[1]:11.1f}  {verified}")
    beaten = [r for r in rows if r["peer_elements"] and r["schedule_elements"]]
    below = sum(float(r["schedule_elements"]) < 0.9999 * float(r["peer_elements"]) for r in beaten)
    lines.append(f"AccelForge's best mapping: {len(beaten)} rows, ours moves less on {below} of them")
    return "\n".join(lines)


def read_table(path: Path) -> list[Row]:
    """The rows of a table that was written before."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def draw(tables: dict[str, list[Row]], path: Path) -> None:
    """The gap of each instance, a panel a family, a mark a table; mean and largest in the legend."""
    families = list(dict.fromkeys(r["family"] for rows in tables.values() for r in rows if r["gap"]))
    with page(11, 3.0 * len(families)) as figure:
        for number, family in enumerate(families):
            ax = figure.add_subplot(len(families), 1, number + 1)
            names: dict[tuple[str, str], int] = {}
            marks = zip(
                tables.items(), "osD^vPX*", (GREY, BLUE, GREEN, ORANGE, RED, "black", "purple", SKY), strict=False
            )
            for (label, rows), marker, colour in marks:
                ours = [r for r in rows if r["family"] == family and r["gap"]]
                if not ours:
                    continue
                at = [names.setdefault((r["instance"], r["kibibytes"]), len(names)) for r in ours]
                gaps = [float(r["gap"]) for r in ours]
                text = f"{label} {sum(gaps) / len(gaps):.3f}, {max(gaps):.3f}"
                ax.plot(at, gaps, marker, color=colour, ms=4, label=text)
            ticks = [f"{name.split(' ', 1)[1]} @ {_size(int(kib))}" for name, kib in names]
            ax.set_xticks(range(len(ticks)), ticks, rotation=90, fontsize=6)
            ax.axhline(1, color="black", lw=0.6)
            ax.set_ylabel("schedule / bound" if look().title else f"{family}: schedule / bound", fontsize=8)
            ax.set_title(family, fontsize=9, loc="left")
            ax.legend(
                fontsize=7,
                frameon=False,
                loc="lower right",
                bbox_to_anchor=(1, 1),
                ncols=len(tables),
                columnspacing=1,
                handletextpad=0,
            )
    save_figure(figure, str(path))  # once the page is fitted


def _size(kibibytes: int) -> str:
    return f"{kibibytes // 1024} MiB" if kibibytes % 1024 == 0 else f"{kibibytes} KiB"


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    table = commands.add_parser("table", help="recompute the catalogue")
    add_arguments(table)
    figure = commands.add_parser("figure", help="tables side by side")
    figure.add_argument("figure", type=Path)
    figure.add_argument("tables", type=Path, nargs="+")
    figure.add_argument("--no-title", action="store_true", help="families stand beside the panels")
    spec = parser.parse_args(arguments)
    if spec.command == "figure":
        try:
            with looking(Look(title=not spec.no_title)):
                draw({path.stem: read_table(path) for path in spec.tables}, spec.figure)
        except (PebbleError, OSError) as error:
            figure.error(str(error))
        return
    print(summary(write_table(spec, row, COLUMNS, catalogue())))


if __name__ == "__main__":
    main()
