"""How the rates of modelled time were chosen: `pebble/timing/sustained.py`.

    python benchmarks/hardware/fit_clocks.py

Fitted to the products of the drift plans and of the H100's tile plan (the form of the model was chosen with both in
sight), then what a step with exponentials waits to attention of the H200's daily plan; all other rows are a check
(`clocks.py`). What each
kernel moves between L2 and DRAM is taken from the recorded run. From the rates in use on, one is moved at a time, by
less and less, as long as the mean of |log(modelled / measured)| falls. A rate that is not determined well shows by how
little the mean rises when it is moved. A minute.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatch
from math import log
from pathlib import Path
from typing import Any, NamedTuple

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

from clocks import FITTED, RECORDED, traffic_total  # noqa: E402 - beside this file
from library import HERE, read_rows  # noqa: E402
from predict import Key, asked, named, question  # noqa: E402

from pebble.timing.sustained import Rates, sustained_rates  # noqa: E402
from pebble.timing.waves import modelled_time  # noqa: E402

OF_FAMILY = {
    "gemm": ("flops", "shared", "hit", "drain", "launch", "step", "throttle", "boost"),
    "attention": ("wait",),
}
FIRST_MOVE, LAST_MOVE = 0.1, 0.01
Scales = dict[str, float]


class Launch(NamedTuple):
    """A kernel as the model takes it, and its measured seconds."""

    program: Any
    config: Any
    rates: Rates
    dram_bytes: int
    seconds: float

    def miss(self, scales: Scales) -> float:
        """|log(modelled / measured)| with some rates scaled."""
        rates = replace(self.rates, **{name: getattr(self.rates, name) * by for name, by in scales.items()})
        result = modelled_time(self.program, self.config, rates, self.dram_bytes)
        return abs(log(result.seconds / self.seconds))


def launches(family: str) -> list[Launch]:
    """The rows that a family's rates are fitted to."""
    traffic = traffic_total(RECORDED)
    kernels: dict[Key, Any] = {}
    results = []
    for path in sorted(HERE.glob("*.csv")):
        if not any(fnmatch(path.name, files) for files in FITTED[family]):
            continue
        for row in read_rows([path]):
            if row["family"] != family or not row["tile"] or not named(row) or not row["milliseconds"]:
                continue
            key = question(row)
            if key not in kernels:
                kernel = asked(row)
                if kernel is None:
                    raise RuntimeError(f"no machine file for {row['chip']}")
                program = kernel.family.program(kernel.workload, kernel.schedule, kernel.config)
                kernels[key] = (
                    program,
                    kernel.config,
                    replace(sustained_rates(kernel.machine, row["dtype"]), exported=False),
                    traffic[key],
                )
            results.append(Launch(*kernels[key], float(row["milliseconds"]) / 1e3))
    return results


def mean_miss(here: Sequence[Launch], scales: Scales) -> float:
    """Over rows; repeated launches count each."""
    return sum(item.miss(scales) for item in here) / len(here)


def descend(here: Sequence[Launch], names: Sequence[str]) -> tuple[Scales, float]:
    """Scales of the rates in use at which the mean miss is least, and that."""
    scales = dict.fromkeys(names, 1.0)
    least, move = mean_miss(here, scales), FIRST_MOVE
    while move > LAST_MOVE:
        before = least
        for name in names:
            for by in (1 + move, 1 / (1 + move)):
                tried = scales | {name: scales[name] * by}
                miss = mean_miss(here, tried)
                if miss < least:
                    least, scales = miss, tried
        if least > 0.999 * before:
            move /= 2
    return scales, least


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="only every N-th row, for a quick look (1)")
    args = parser.parse_args()
    table = csv.writer(sys.stdout, delimiter="\t", lineterminator="\n")
    for family, names in OF_FAMILY.items():
        here = launches(family)[:: args.every]
        in_use = mean_miss(here, {})
        best, least = descend(here, names)
        print(
            f"{family}: {len(here)} rows, mean miss {in_use:.4f} with the rates in use, {least:.4f} at the least found"
        )
        table.writerow(["rate", "in use", "at the least", "miss if 10 % less", "10 % more"])
        for name in names:
            near = [f"{mean_miss(here, {name: by}):.4f}" for by in (1 / 1.1, 1.1)]
            now = getattr(here[0].rates, name)
            table.writerow([name, f"{now:.4g}", f"{now * best[name]:.4g}", *near])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
