"""What an H100 draws besides its work: the watts at which exported layers take what is modelled.

    python benchmarks/hardware/fit_static.py

Fitted to the layers of ``exports/`` but decode (attention as in ``attention_before.csv``) and to those of
``advised/`` until then, which ran on several cards; these differ by some
per cent. All other constants of power are those of an H200 (``fit_power.py``), the same die with other memory.
"""

from __future__ import annotations

import argparse
import math
import shlex
import statistics
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

import advised  # noqa: E402 - beside this file
import exports  # noqa: E402

import pebble  # noqa: E402
from pebble.families import kernel_family  # noqa: E402
from pebble.models.machine import load_machine  # noqa: E402
from pebble.reports.default_kernel import advised_kernel  # noqa: E402
from pebble.simulation import KernelConfig  # noqa: E402
from pebble.timing.modelled import ModelledTime  # noqa: E402
from pebble.timing.power import Power, power_of, sustained  # noqa: E402
from pebble.timing.sustained import sustained_rates  # noqa: E402
from pebble.timing.waves import modelled_time  # noqa: E402
from pebble.traces.program import Program  # noqa: E402
from pebble.workloads.workload import Workload  # noqa: E402

CHIP = "h100-sxm5-80gb"
TRIED = (60, 70, 80, 90, 100)


class Layer(NamedTuple):
    """A layer that ran, and what is modelled of it but its sustained time."""

    measured_seconds: float
    program: Program
    config: KernelConfig
    time: ModelledTime
    power: Power

    def share(self, static_watts: float) -> float:
        """Measured over modelled sustained time, where the chip draws so much besides."""
        power = self.power._replace(static_watts=static_watts)
        return self.measured_seconds / sustained(self.program, self.config, self.time, power).seconds


def _ran() -> Iterator[tuple[Workload, dict[str, str], str]]:
    """Each layer, with its schedule, tile and stages, and the sustained milliseconds that were measured."""
    known = exports.layers()
    rows = [row for row in exports.measured(exports.MEASURED, "free") if row["family"] not in ("attention", "decode")]
    for row in rows + exports.measured(exports.BEFORE, "free"):
        if row["chip"] == CHIP and row["family"] != "decode":
            yield known[row["case"]][2], row, row["sustained_milliseconds"]
    said = {row["case"]: row for row in advised.read("predicted.csv") if row["chip"] == CHIP}
    for row in advised.read("measured.csv"):
        if row["chip"] == CHIP and row["date"] < exports.SINCE:
            name, *options = shlex.split(advised.LAYERS[row["case"]])
            workload = pebble.workload(name, **advised.parameters(options))
            yield workload, said[row["case"]], row["sustained_milliseconds"]


def layers() -> Iterator[Layer]:
    """All that ran."""
    machine = load_machine(CHIP)
    for workload, row, milliseconds in _ran():
        family = kernel_family(workload)
        execution = family.advised_execution(workload).name
        kernel = advised_kernel(
            workload, gpu=CHIP, tile=row["tile"], stages=int(row["stages"]), execution=execution
        )  # fmt: skip
        program = family.program(workload, family.parse_schedule(row["schedule"]), kernel.config)
        power = power_of(machine, workload.dtype, kernel.config.sms)
        assert power is not None
        time = modelled_time(program, kernel.config, sustained_rates(machine, workload.dtype))
        yield Layer(float(milliseconds) / 1e3, program, kernel.config, time, power)


def miss(shares: list[float]) -> float:
    """How far off they are on the mean."""
    return statistics.mean(abs(math.log(share)) for share in shares)


def main() -> None:
    """A line for each number of watts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, metavar="N", help="only so many layers")
    found = list(islice(layers(), parser.parse_args().first))
    print(f"{CHIP}, {len(found)} layers: measured over modelled sustained time")
    print("  watts  off on the mean   median   least    most   within 5 %")
    for watts in TRIED:
        shares = [layer.share(watts) for layer in found]
        near = sum(abs(share - 1) <= 0.05 for share in shares)
        middle = f"{statistics.median(shares):>9.3f}{min(shares):>8.3f}{max(shares):>8.3f}{near:>8}"
        print(f"{watts:>7}{miss(shares):>17.2%}{middle}")


if __name__ == "__main__":
    main()
