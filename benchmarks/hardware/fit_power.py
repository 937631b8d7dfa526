"""Sustained time and energy: the fit of `pebble/timing/power.py`, and what it says of launches kept out of it.

    python benchmarks/hardware/fit_power.py            # modelled beside measured
    python benchmarks/hardware/fit_power.py --fit      # and how the prices were fitted

`power/h200_sustained.csv` has rounds of 0.6 s of a persistent TMA kernel, each order in turn, medians of four;
`power/h200_group_m.csv` a TMA kernel with one block a tile, every GROUP_M. One H200, 2026-11-23.

Fitted to 8192 x 8192 x 8192 of the first (times and clocks, with DRAM and L2 bytes as measured) and to 8192 x 8192 x
8192 and 8192 x 28672 x 4096 of the second. `AFTER_A_PAUSE` was chosen on single launches of exported products on the
H200, and is tried on those of an H100 and on the blind runs. Kept out: 5120 x 27648 x 5120 of the first, six products
of the second. All rows of these two were looked at while the form was found, so none is blind. What is printed takes
all bytes from the model, as `pebble time` does, in waves; pairs are orders of one kernel and product whose times
differ by more than 2 %.
A minute.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, groupby
from math import log
from pathlib import Path
from typing import NamedTuple

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

import blind  # noqa: E402 - beside this file
from fit_requests import exported_kernels, tma_kernel  # noqa: E402
from library import HERE, Row  # noqa: E402
from predict import summary  # noqa: E402

from pebble.simulation.merging import Requested  # noqa: E402
from pebble.timing.modelled import ModelledTime  # noqa: E402
from pebble.timing.power import (  # noqa: E402
    BLOCK_A_TILE,
    Power,
    Sustained,
    at_limit,
    power_of,
    sustained,
)
from pebble.timing.sustained import AFTER_A_PAUSE, sustained_rates  # noqa: E402
from pebble.timing.waves import modelled_time  # noqa: E402

FILES = {"persistent": HERE / "power/h200_sustained.csv", "block-a-tile": HERE / "power/h200_group_m.csv"}
FITTED = {
    "persistent": ("8192x8192x8192",),
    "block-a-tile": ("8192x8192x8192", "8192x28672x4096"),
}
WITHIN = (0.05, 0.10, 0.15)
APART = 0.02
PRICES = ("operation", "request", "fabric", "dram", "reference_mhz")
CLOCK_WEIGHT = 0.5  # of a clock's miss beside a time's: it was read in steps of 15 MHz


class Run(NamedTuple):
    """A row, its single launch and what it asks of L2 by the model; with bytes as measured where they were."""

    make: str
    row: Row
    time: ModelledTime
    flops: int
    modelled: Requested
    known_time: ModelledTime
    known: Requested

    @property
    def product(self) -> str:
        """Its shape."""
        return "x".join(self.row[name] for name in "mnk")

    @property
    def fitted(self) -> bool:
        """Whether a number was chosen on it."""
        return self.product in FITTED[self.make]

    @property
    def seconds(self) -> float:
        """As measured."""
        return float(self.row["sustained_ms" if self.make == "persistent" else "milliseconds"]) / 1e3

    @property
    def mhz(self) -> float:
        """As measured; 0 where it was not."""
        return float(self.row.get("sm_mhz") or 0)

    @property
    def kernel(self) -> tuple[str, str, str]:
        """Orders of one are compared."""
        return self.make, self.product, self.row.get("barrier", "")

    def at(self, power: Power, cycles: float, known: bool = False) -> Sustained:
        """As modelled, by modelled or by measured bytes."""
        by = cycles if self.make == "block-a-tile" else 1.0
        time, requested = (self.known_time, self.known) if known else (self.time, self.modelled)
        return at_limit(time, self.flops, requested, power, by)


def with_dram(time: ModelledTime, dram_bytes: int) -> ModelledTime:
    """The same with other bytes to and from DRAM, spread over its waves alike."""
    by = dram_bytes / time.dram_bytes
    waves = tuple(wave._replace(dram_seconds=wave.dram_seconds * by) for wave in time.waves)
    return replace(time, waves=waves, dram_bytes=dram_bytes)


def read_runs(every: int = 1) -> list[Run]:
    """All rows of `pebble`'s kernels, or every N-th product's."""
    results = []
    simulated = cache(_simulated)
    for make, path in FILES.items():
        with open(path, newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["tile"]]
        products = list(dict.fromkeys(tuple(row[name] for name in "mnk") for row in rows))[::every]
        for row in rows:
            if tuple(row[name] for name in "mnk") not in products:
                continue
            time, flops, requested = simulated(*(row[name] for name in ("chip", "m", "n", "k", "tile", "order")))
            known_time, known = time, requested
            if row.get("dram_read_bytes"):
                traffic = int(row["dram_read_bytes"]) + int(row["dram_write_bytes"])
                known_time = with_dram(time, traffic)
                fabric = round(requested.fabric_bytes * traffic / time.dram_bytes)
                served = max(0, int(row["lts_bytes"]) - fabric - requested.written_bytes)
                known = replace(requested, request_bytes=served, fabric_bytes=fabric)
            results.append(Run(make, row, time, flops, requested, known_time, known))
    return results


def _simulated(chip: str, m: str, n: str, k: str, tile: str, order: str) -> tuple[ModelledTime, int, Requested]:
    kernel = tma_kernel({"chip": chip, "m": m, "n": n, "k": k, "tile": tile, "order": order}, "waves")
    program = kernel.family.program(kernel.workload, kernel.schedule, kernel.config)
    time = modelled_time(program, kernel.config, sustained_rates(kernel.machine, "bf16"))
    return time, program.flops, sustained(program, kernel.config, time, of_chip(kernel.machine)).requested


def of_chip(machine: object) -> Power:
    """Its prices."""
    from pebble.models.machine import Machine

    result = power_of(machine, "bf16", machine.sms) if isinstance(machine, Machine) else None
    if result is None:
        raise RuntimeError("no prices for this chip")
    return result


def fit(runs: Iterable[Run], power: Power) -> None:
    """Move one price at a time, by less and less, as long as the mean miss falls."""
    here = [run for run in runs if run.fitted]

    def miss(power: Power, cycles: float) -> float:
        total = 0.0
        for run in here:
            result = run.at(power, cycles, known=True)
            total += abs(log(result.seconds / run.seconds))
            total += CLOCK_WEIGHT * abs(log(result.clock_mhz / run.mhz)) if run.mhz else 0.0
        return total / len(here)

    best, cycles = power, BLOCK_A_TILE
    least, move = miss(best, cycles), 0.1
    print(f"{len(here)} rows of the fit, mean miss {least:.4f} with the prices in use", end="")
    while move > 0.01:
        before = least
        for by in (1 + move, 1 / (1 + move)):
            for name in PRICES:
                tried = best._replace(**{name: getattr(best, name) * by})
                if (result := miss(tried, cycles)) < least:
                    best, least = tried, result
            if (result := miss(best, cycles * by)) < least:
                cycles, least = cycles * by, result
        move /= 1 if least < 0.995 * before else 2
    print(f", {least:.4f} at the least found:")
    print(", ".join(f"{name} {getattr(best, name):.3g}" for name in PRICES) + f", cycles {cycles:.3g}")


def pairs(runs: Sequence[Run], seconds: Callable[[Run], float]) -> tuple[int, int]:
    """Pairs of orders of one kernel measured apart, and how many are ranked right."""
    right = total = 0
    for _, group in groupby(sorted(runs, key=lambda run: run.kernel), lambda run: run.kernel):
        for item, other in combinations(list(group), 2):
            if abs(item.seconds / other.seconds - 1) > APART:
                total += 1
                right += (item.seconds - other.seconds) * (seconds(item) - seconds(other)) > 0
    return right, total


def chosen(runs: Sequence[Run], seconds: Callable[[Run], float]) -> list[float]:
    """What the order that the model ranks first takes over the fastest, of each kernel."""
    results = []
    for _, group in groupby(sorted(runs, key=lambda run: run.kernel), lambda run: run.kernel):
        here = list(group)
        results.append(min(here, key=seconds).seconds / min(run.seconds for run in here))
    return results


def show(what: str, runs: Sequence[Run], power: Power) -> None:
    """Misses, pairs and choices of some rows."""
    modelled = {id(run): run.at(power, BLOCK_A_TILE).seconds for run in runs}

    def seconds(run: Run) -> float:
        return modelled[id(run)]

    print(f"{what:<34}{summary([seconds(run) / run.seconds for run in runs], WITHIN)}")
    right, total = pairs(runs, seconds)
    costs = chosen(runs, seconds)
    mean = sum(costs) / len(costs) - 1
    share = f"{right / total:.0%}" if total else "-"
    print(f"  pairs more than {APART:.0%} apart {total}, ranked right {share}; ", end="")
    print(f"the order ranked first costs {mean:.1%} on the mean, {max(costs) - 1:.1%} at worst")


def singles(every: int) -> Iterator[tuple[str, list[float]]]:
    """Modelled over measured single launches of exported files, after a pause."""
    for chip in ("h200-sxm-141gb", "h100-sxm5-80gb"):
        ratios = []
        for row, kernel in exported_kernels(chip, every, ("free",)):
            program = kernel.family.program(kernel.workload, kernel.schedule, kernel.config)
            time = modelled_time(program, kernel.config, sustained_rates(kernel.machine, "bf16"))
            ratios.append(time.seconds_at(AFTER_A_PAUSE) * 1e3 / float(row["milliseconds"]))
        yield f"single, {chip}", ratios
    told, ran = blind.read("predicted.csv"), blind.read("measured.csv")
    pairs = [(float(told[key]["single_ms"]), float(row["milliseconds"])) for key, row in ran.items()]
    yield "single, blind", [AFTER_A_PAUSE * ours / theirs for ours, theirs in pairs]


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", action="store_true", help="fit the prices again (minutes)")
    parser.add_argument("--list", action="store_true", help="print each row")
    parser.add_argument("--every", type=int, default=1, help="only every N-th product, for a quick look (1)")
    args = parser.parse_args()
    from pebble.models.machine import load_machine

    power, runs = of_chip(load_machine("h200-sxm-141gb")), read_runs(args.every)
    if args.fit:
        fit(runs, power)
    print(f"{'modelled / measured sustained time':<34} rows geo. mean  spread   within:5 %    10 %    15 %")
    for kept in (False, True):
        for make in FILES:
            here = [run for run in runs if run.make == make and run.fitted != kept]
            if here:
                show(f"{'kept out' if kept else 'of the fit'}, {make}", here, power)
    kept_out = [run for run in runs if not run.fitted]
    if kept_out:
        show("kept out, all", kept_out, power)
    for what in ("clock", "joules"):
        here = [run for run in runs if run.mhz and not run.fitted]
        if here:
            results = [run.at(power, 1.0) for run in here]
            measured = [run.mhz if what == "clock" else float(run.row["joules_per_launch"]) for run in here]
            ours = [each.clock_mhz if what == "clock" else each.total_joules for each in results]
            ratios = [mine / theirs for mine, theirs in zip(ours, measured, strict=True)]
            print(f"{'kept out, persistent: ' + what:<34}{summary(ratios, WITHIN)}")
    for what, ratios in singles(args.every):
        print(f"{what:<34}{summary(ratios, WITHIN)}")
    for run in runs if args.list else ():
        found_here = run.at(power, BLOCK_A_TILE)
        print(
            f"{run.make:<13}{run.product:<18}{run.row['order'][:24]:<26}{found_here.seconds * 1e3:8.3f} ms"
            f"{run.seconds * 1e3:8.3f} measured {found_here.clock_mhz:6.0f} MHz {found_here.total_joules:6.3f} J"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
