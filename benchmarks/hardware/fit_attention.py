"""Exported attention on Hopper: what a mask adds to a block, and what an operation takes at the power limit.

    python benchmarks/hardware/fit_attention.py            # both constants, fitted, and every layer under those in use

Exponentials of one step run beside products of another, at the rates that plain kernels gave. Fitted to the layers of
``exports/attention_before.csv`` on an H200, single launches and sustained runs, with the bytes that were counted; the
same layers on an H100 and those of ``advised/``, which had been named before they ran, are checks. What was measured
of the faster kernel since then is printed as ``today``.
"""

from __future__ import annotations

import argparse
import csv
import math
import shlex
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

import advised
import exports

import pebble
from pebble.families import kernel_family
from pebble.models.machine import load_machine
from pebble.models.rates import speeds_of
from pebble.schedules.attention import MASKED_STEPS
from pebble.schedules.execution import FREE
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.simulation.merging import COPY_ENGINE, Requested, Shared
from pebble.timing.power import SOFTMAX_OPERATIONS, at_limit, power_of, softmax_flops
from pebble.timing.sustained import sustained_rates
from pebble.timing.waves import modelled_time
from pebble.traces.program import Program
from pebble.workloads.workload import Workload

FITTED_ON = "h200-sxm-141gb"
TODAY = "today"  # what was measured since, of a faster kernel


@dataclass(frozen=True)
class Layer:
    """A layer that ran: of a table, on a chip."""

    table: str
    chip: str
    case: str
    config: KernelConfig
    program: Program
    dram_bytes: int
    requested: Requested
    single_ms: float
    sustained_ms: float

    def over_measured(self, masked_steps: int, softmax: float) -> tuple[float, float]:
        """Modelled over measured: a single launch, and sustained."""
        phases = [
            replace(phase, masked_steps=masked_steps if phase.masked_steps else 0)
            for phase in self.program.groups[0].phases
        ]
        program = self.program._replace(groups=[replace(self.program.groups[0], phases=phases)])
        machine = load_machine(self.chip)
        power = power_of(machine, "bf16", machine.sms)
        assert power is not None
        time = modelled_time(program, self.config, sustained_rates(machine, "bf16"), dram_bytes=self.dram_bytes)
        flops = program.flops + (softmax - 1) * softmax_flops(program)
        again = at_limit(time, flops, self.requested, power).seconds
        return 1e3 * time.seconds / self.single_ms, 1e3 * max(again, time.seconds) / self.sustained_ms


def layers() -> Iterator[Layer]:
    """Of all tables: of exported files, and those named before they ran."""
    known = exports.layers()
    for table, path in (("exports", exports.BEFORE), (TODAY, exports.MEASURED)):
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                if row["family"] == "attention":
                    _, schedule, workload = known[row["case"]]
                    yield _layer(table, row, workload, schedule, row["tile"], int(row["stages"]))
    took = {(row["chip"], row["case"]): row for row in advised.read("measured.csv")}
    for row in advised.read("predicted.csv"):
        family, *options = shlex.split(advised.LAYERS[row["case"]])
        if family != "attention" or (ran := took.get((row["chip"], row["case"]))) is None:
            continue
        workload = pebble.workload(family, **advised.parameters(options))
        if kernel_family(workload).kernel.exported_template(workload) == "attention":  # a decode step has its own
            table = f"blind {row['round']}" if ran["date"] < exports.SINCE else f"{TODAY} {row['round']}"
            yield _layer(table, ran, workload, row["schedule"], row["tile"], int(row["stages"]))


def _layer(table: str, ran: dict[str, str], workload: Workload, schedule: str, tile: str, stages: int) -> Layer:
    family: Any = kernel_family(workload)
    machine = load_machine(ran["chip"])
    bm, bn = map(int, tile.split("x")[:2])
    config = KernelConfig(
        TileShape(bm, bn, 1), machine.sms, 1, machine.l2_bytes, machine.default_model.policy, FREE, stages,
        speeds_of(machine, "bf16"),
    )  # fmt: skip
    program = family.program(workload, family.parse_schedule(schedule), config)
    power = power_of(machine, "bf16", machine.sms)
    assert power is not None
    moved = int(ran["dram_read_bytes"]) + int(ran["dram_write_bytes"])
    shared = Shared.of(program, config, power.gpcs, 4)
    requested = shared.requested(COPY_ENGINE, max(0, moved - shared.written_bytes))
    times = (float(ran[key]) for key in ("milliseconds", "sustained_milliseconds"))
    return Layer(table, ran["chip"], ran["case"], config, program, moved, requested, *times)


def error(some: list[Layer], masked_steps: int, softmax: float) -> float:
    """Root of the mean square of the logarithms."""
    every = [math.log(ratio) ** 2 for layer in some for ratio in layer.over_measured(masked_steps, softmax)]
    return math.sqrt(statistics.fmean(every))


def main() -> int:
    """Fit, and print every layer under the constants in use."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a coarse grid")
    args = parser.parse_args()
    every = list(layers())
    fitted_on = [layer for layer in every if layer.table == "exports" and layer.chip == FITTED_ON]
    grid = [(m, s / 20) for m in range(0, 5, 4 if args.quick else 1) for s in range(20, 61, 20 if args.quick else 2)]
    best = min(grid, key=lambda pair: error(fitted_on, *pair))
    print(
        f"fitted on {len(fitted_on)} layers, {FITTED_ON}: {best[0]} steps more under a mask, an operation {best[1]:g}"
    )
    print(f"in use: {MASKED_STEPS} steps, {SOFTMAX_OPERATIONS:g}; modelled over measured:")
    print(f"{'table':<10}{'chip':<16}{'layer':<24}{'single':>8}{'sustained':>11}")
    ratios: dict[tuple[str, str], list[float]] = {}
    for layer in every:
        single, again = layer.over_measured(MASKED_STEPS, SOFTMAX_OPERATIONS)
        print(f"{layer.table:<10}{layer.chip:<16}{layer.case:<24}{single:>8.3f}{again:>11.3f}")
        ratios.setdefault((layer.table, layer.chip), []).append(again)
    for (table, chip), some in ratios.items():
        within = [sum(abs(ratio - 1) <= share for ratio in some) for share in (0.05, 0.1)]
        print(f"{table}, {chip}: sustained within 5 % on {within[0]}, within 10 % on {within[1]} of {len(some)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
