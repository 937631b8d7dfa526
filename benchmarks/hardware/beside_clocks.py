"""Two kernels on one GPU: the modelled time of a product beside a reader, against clocks.

    python benchmarks/hardware/beside_clocks.py --csv benchmarks/hardware/predicted/side_by_side.csv
    python benchmarks/hardware/beside_clocks.py --recorded benchmarks/hardware/predicted/side_by_side.csv

Measured is `side_by_side/measured.csv` (`benchmarks/gpu/side_by_side.py`): a product of 128 x 256 tiles on some SMs, a
kernel that reads an array once on the others. Modelled as `pebble time --beside` does, blocks running free. The reader
is no kernel of `pebble`: it is a group of blocks that load and compute nothing. What one of its SMs takes at most is no
number of the model; it is read off its time on four SMs, so of the reader's times alone only the others are a check. At
every split the product moves what it moves by itself on all SMs; simulated together it moves as much. Ten seconds; with
--recorded, which takes modelled times from what --csv wrote, one.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

MEASURED = Path(__file__).parent / "side_by_side/measured.csv"
RECORDED = Path(__file__).parent / "predicted/side_by_side.csv"
PROBLEM = ("chip", "m", "n", "k", "read_bytes")
TIMES = ("gemm_alone_ms", "read_alone_ms", "gemm_on_its_sms_ms", "read_on_its_sms_ms", "together_ms")
FLIGHT_ROWS, FLIGHTS = 192, 3  # of 128 values: what nine stages of 64 rows hold, in the stages of the product
Row = dict[str, str]


class Split(NamedTuple):
    """A row: SMs of the reader, and milliseconds by the names of `TIMES`."""

    problem: tuple[str, ...]
    read_sms: int
    measured: dict[str, float]
    modelled: dict[str, float]


class Chip:
    """Two kernels on one chip; a reader's SM takes at most ``port`` bytes in a nanosecond."""

    def __init__(self, name: str, port: float) -> None:
        from pebble.models.machine import load_machine
        from pebble.models.rates import speeds_of
        from pebble.schedules.execution import FREE
        from pebble.schedules.tile import TileShape
        from pebble.simulation import KernelConfig
        from pebble.timing.sustained import sustained_rates
        from pebble.traces import LINE_BYTES

        machine = load_machine(name)
        self.rates = sustained_rates(machine, "bf16")
        self.both = replace(self.rates, port=min(self.rates.port, port / LINE_BYTES))
        self.config = KernelConfig(
            TileShape(128, 256, 64), machine.sms, 1, machine.l2_bytes, machine.default_model.policy, FREE, 3,
            speeds_of(machine, "bf16"),
        )  # fmt: skip
        self.moved: dict[tuple[int, ...], int] = {}

    def product(self, sizes: tuple[int, ...], sms: int) -> Any:
        """On so many SMs."""
        from pebble.families import kernel_family
        from pebble.workloads import Gemm

        gemm = Gemm(*sizes)
        family = kernel_family(gemm)
        return family.program(gemm, family.parse_schedule("grouped-8"), replace(self.config, sms=sms))

    def reader(self, read_bytes: int, sms: int) -> Any:
        """A block an SM; each takes every ``sms``-th tile."""
        import numpy as np

        from pebble.traces import READ
        from pebble.traces.layout import Layout, Strided
        from pebble.traces.program import Group, Phase, Program, Steps, Walk

        layout = Layout()
        array = layout.add("X", read_bytes // 256, 128, FLIGHT_ROWS, 128, 2)
        first = np.arange(sms)
        steps = Steps([Strided(first, sms)], [READ], Walk(0, (array.grid[0] - 1 - first) // sms + 1))
        return Program(layout, [Group([Phase(steps)], sms)])

    def modelled(self, row: Row) -> dict[str, float]:
        """Milliseconds of one split."""
        from pebble.timing.waves import modelled_time

        sizes = tuple(int(row[name]) for name in "mnk")
        gemm_sms, read_sms, read = (int(row[name]) for name in ("gemm_sms", "read_sms", "read_bytes"))
        if sizes not in self.moved:
            alone = modelled_time(self.product(sizes, self.config.sms), self.config, self.rates)
            self.moved[sizes] = alone.dram_bytes
        traffic = self.moved[sizes]

        def ms(program: Any, rates: Any, *dram_bytes: int) -> float:
            return modelled_time(program, self.config, rates, dram_bytes).seconds * 1e3

        product, reader = self.product(sizes, gemm_sms), self.reader(read, read_sms)
        result = (
            ms(self.product(sizes, self.config.sms), self.rates, traffic),
            ms(self.reader(read, self.config.sms), self.both, read),
            ms(product, self.rates, traffic),
            ms(reader, self.both, read),
            ms(product.concurrent_with(reader), self.both, traffic, read),
        )
        return dict(zip(TIMES, result, strict=True))


def ports(rows: Sequence[Row]) -> dict[str, float]:
    """Bytes in a nanosecond that an SM of the reader was measured to take, where few of them run."""
    result = {}
    for row in rows:
        few = min(int(item["read_sms"]) for item in rows)
        if int(row["read_sms"]) == few:
            result[row["chip"]] = int(row["read_bytes"]) / few / float(row["read_on_its_sms_ms"]) / 1e6
    return result


def splits(rows: Sequence[Row], known: Sequence[Row] = ()) -> Iterator[Split]:
    """Every measured row beside its modelled times."""
    chips = {} if known else {name: Chip(name, port) for name, port in ports(rows).items()}
    for at, row in enumerate(rows):
        times = {name: float(known[at][name]) for name in TIMES} if known else chips[row["chip"]].modelled(row)
        measured = {name: float(row[name]) for name in TIMES}
        yield Split(tuple(row[name] for name in PROBLEM), int(row["read_sms"]), measured, times)


def gain(of: dict[str, float]) -> float:
    """One after the other over side by side."""
    return (of["gemm_alone_ms"] + of["read_alone_ms"]) / of["together_ms"]


def show(results: Sequence[Split]) -> None:
    """Ratios of times, and per problem the best split and what it gains."""
    from clocks import WITHIN
    from predict import summary

    print("a product beside a reader, each on SMs of its own; modelled / measured")
    for name in TIMES:
        print(f"{name:<58}{summary([item.modelled[name] / item.measured[name] for item in results], WITHIN)}")
    print("chip and problem: gain over one after the other, at SMs of the reader; measured, and by the model")
    for problem, group in groupby(results, lambda single: single.problem):
        here = list(group)
        best = max(here, key=lambda single: gain(single.measured))
        chosen = max(here, key=lambda single: gain(single.modelled))
        chip, m, n, k, read = problem
        print(
            f"{chip:<16}{m}x{n}x{k}, {int(read) / 1e9:.1f} GB{'':<6} {gain(best.measured):.2f} at {best.read_sms:2}, "
            f"{gain(chosen.modelled):.2f} at {chosen.read_sms:2}; the model's split was measured to gain "
            f"{gain(chosen.measured):.2f}"
        )


def show_recorded() -> None:
    """What --csv wrote, as --recorded does."""
    show(list(splits(read_rows(MEASURED), read_rows(RECORDED))))


def read_rows(path: str | Path) -> list[Row]:
    """A table."""
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", metavar="FILE", help="write each row's modelled times")
    parser.add_argument("--recorded", metavar="FILE", help="take the modelled times from what --csv wrote")
    args = parser.parse_args()
    result = list(splits(read_rows(MEASURED), read_rows(args.recorded) if args.recorded else ()))
    if args.csv:
        with open(args.csv, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*PROBLEM, "read_sms", *TIMES])
            for item in result:
                writer.writerow([*item.problem, item.read_sms, *(f"{ms:.6g}" for ms in item.modelled.values())])
    show(result)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
