"""What L2 serves after merging, and what crosses its fabric: the fit of `pebble/simulation/merging.py`, and its misses.

    python benchmarks/hardware/fit_requests.py            # the misses of the shares in use
    python benchmarks/hardware/fit_requests.py --fit      # and how they were fitted

Rows are matrix products of the library with `lts__t_sectors_op_read`, which counts what SMs ask of L2 and what the
other partition does. Fitted to the daily plans (`*_kit_layers.csv`) and the H100's tile plan, waves and free-running
apart, with DRAM reads as measured; kept out: the drift plans, the held-out plans, named orders of the tuned plan, the
blind plan.

Kernels that copy by tensor descriptors (TMA), whose requests and fabric bytes are known apart, are fitted by
themselves: to `power/h200_l2_requests.csv` and the exported products of an H200 in `exports/measured.csv`, but gated
FFNs; kept out: those of an H100, and `blind/measured.csv`. The partition of each GPC was chosen on the fabric bytes of
the seven launches of the first (`pebble/models/gpcs.py`), so of them each is also left out in turn (`--fabric`,
minutes). Two minutes.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from math import log
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

from exports import MEASURED, layers, measured  # noqa: E402 - beside this file
from library import HERE, Row, read_rows  # noqa: E402
from predict import Asked, asked, named, question, summary  # noqa: E402

from pebble.families import kernel_family  # noqa: E402
from pebble.models.gpcs import Gpcs, gpcs_of  # noqa: E402
from pebble.models.machine import Machine, load_machine  # noqa: E402
from pebble.models.rates import speeds_of  # noqa: E402
from pebble.schedules.execution import parse_execution  # noqa: E402
from pebble.schedules.recipes import GemmBands  # noqa: E402
from pebble.schedules.tables.own import FixedTable  # noqa: E402
from pebble.schedules.tables.table import Launch  # noqa: E402
from pebble.schedules.tile import TileShape  # noqa: E402
from pebble.simulation import KernelConfig  # noqa: E402
from pebble.simulation.merging import COPY_ENGINE, IN_WAVES, RUNNING_FREE, Merging, Shared  # noqa: E402
from pebble.workloads import Gemm  # noqa: E402

FITTED = ("*_kit_layers.csv", "h100_kit_tiles.csv")
KEPT = ("*_kit_drift.csv", "*_kit_held_out.csv", "*_kit_tuned.csv", "*_kit_tiles_blind.csv")
TMA = HERE / "power/h200_l2_requests.csv"
IN_USE = {"waves": IN_WAVES, "free": RUNNING_FREE}
WITHIN = (0.05, 0.10, 0.15)


class Launched(NamedTuple):
    """A row, what its blocks share, and the bytes that it reads."""

    file: str
    row: Row
    shared: Shared
    dram_read: int
    l2_read: int

    def ratio(self, merging: Merging) -> float:
        """Modelled over measured bytes that L2 serves, the fabric's included."""
        result = self.shared.requested(merging, self.dram_read)
        return (result.request_bytes + result.fabric_bytes - result.written_bytes / 2) / self.l2_read


class Apart(NamedTuple):
    """A launch of a kernel with tensor descriptors, whose requests and fabric bytes were counted apart."""

    name: str
    shared: Shared
    dram_read: int
    requests: int  #: served to SMs and taken from them
    fabric: int

    def ratio(self, merging: Merging) -> float:
        """Modelled over measured requests."""
        result = self.shared.requested(merging, self.dram_read)
        return (result.request_bytes + result.written_bytes) / self.requests

    def fabric_ratio(self) -> float:
        """Modelled over measured fabric bytes."""
        return self.shared.requested(COPY_ENGINE, self.dram_read).fabric_bytes / self.fabric


def launches(patterns: Sequence[str], every: int = 1) -> Iterator[Launched]:
    """The products of these files whose order has a name, or only every N-th."""
    known: dict[object, Shared] = {}
    rows = 0
    for path in sorted(HERE.glob("*.csv")):
        if not any(fnmatch(path.name, pattern) for pattern in patterns):
            continue
        for row in read_rows([path]):
            if row["family"] != "gemm" or not row["tile"] or not named(row) or not row["l2_read_sectors"]:
                continue
            rows += 1
            if rows % every:
                continue
            key = question(row)
            if key not in known:
                if (kernel := asked(row)) is None:
                    raise RuntimeError(f"no machine file for {row['chip']}")
                known[key] = shared_of(kernel, known_gpcs(kernel.machine))
            yield Launched(
                path.name, row, known[key], int(row["dram_read_bytes"]), 32 * int(row["l2_read_sectors"])
            )  # fmt: skip


def shared_of(kernel: Asked, gpcs: Gpcs) -> Shared:
    """What the blocks of a row's kernel share."""
    return Shared.of(kernel.family.program(kernel.workload, kernel.schedule, kernel.config), kernel.config, gpcs)


def descend(start: Merging, miss: Callable[[Merging], float]) -> tuple[Merging, float]:
    """Shares at which the mean miss is least, moved one at a time."""
    best, least, move = start, miss(start), 0.2
    while move > 0.01:
        before = least
        for name in Merging._fields:
            for by in (1 + move, 1 / (1 + move)):
                tried = best._replace(**{name: getattr(best, name) * by})
                result = miss(tried)
                if result < least:
                    best, least = tried, result
        move /= 1 if least < 0.999 * before else 2
    return best, least


def fit(rows: Sequence[Launched | Apart], what: str, in_use: Merging) -> None:
    """Print the shares at the least miss beside those in use."""

    def miss(merging: Merging) -> float:
        return sum(abs(log(item.ratio(merging))) for item in rows) / len(rows)

    best, least = descend(in_use, miss)
    shown = ", ".join(f"{name} {value:.3g}" for name, value in best._asdict().items())
    print(f"{what:<8}{len(rows)} rows, mean miss {miss(in_use):.4f} in use, {least:.4f} with {shown}")


def tuned_bands(name: str) -> GemmBands:
    """A recipe from its name: ``bands-m-16x4+snake+wave-128``."""
    heights, *flags = name.removeprefix("tuned: ").removeprefix("bands-").removeprefix("m-").split("+")
    parts = [re.fullmatch(r"([0-9]+)(?:x([0-9]+))?", part) for part in heights.split("/")]
    each = tuple(h for part in parts if part for h in [int(part[1])] * int(part[2] or 1))
    numbers = {flag.partition("-")[0]: int(flag.partition("-")[2]) for flag in flags if "-" in flag}
    return GemmBands("m", each, **dict.fromkeys((flag for flag in flags if "-" not in flag), True), **numbers)


def tma_kernel(row: Row, execution: str) -> Asked:
    """The kernel of a row of `power/`."""
    machine = load_machine(row["chip"])
    tile, gemm = TileShape.parse(row["tile"]), Gemm(int(row["m"]), int(row["n"]), int(row["k"]))
    config = KernelConfig(
        tile, machine.sms, 1, machine.l2_bytes, machine.default_model.policy, parse_execution(execution), 4,
        speeds_of(machine, "bf16"),
    )  # fmt: skip
    family, order = kernel_family(gemm), row["order"]
    if "bands" not in order:
        return Asked(machine, family, gemm, family.parse_schedule(order), config)
    launch = Launch(tile, machine.sms, 1, policy=config.policy, cache_bytes=config.cache_bytes)
    table = tuned_bands(order).table(gemm, launch)
    return Asked(machine, family, gemm, FixedTable(table), config)


def tma_rows() -> list[Row]:
    """The launches whose requests and fabric bytes were counted apart."""
    with open(TMA, newline="") as file:
        return list(csv.DictReader(file))


def seven(gpcs: Gpcs | None = None) -> list[Apart]:
    """The launches of `power/`, or with GPCs whose partitions are others."""
    results = []
    for row in tma_rows():
        kernel = tma_kernel(row, "free")
        shared = shared_of(kernel, gpcs or known_gpcs(kernel.machine))
        served, crossed = (32 * int(row[f"lts__t_sectors_srcunit_{unit}"]) for unit in ("tex", "ltcfabric"))
        results.append(Apart(row["order"], shared, int(row["dram__bytes_read"]), served, crossed))
    return results


def blind() -> list[Apart]:
    """Exported files of six products, predicted before they were measured."""
    results = []
    with open(HERE / "blind/measured.csv", newline="") as file:
        for row in csv.DictReader(file):
            sizes = dict(re.findall(r"([mnk])=([0-9]+)", row["workload"]))
            row |= sizes | {"chip": "h200-sxm-141gb", "order": row["schedule"]}
            kernel = tma_kernel(row, "waves")
            shared = shared_of(kernel, known_gpcs(kernel.machine))
            counted = (int(row[name]) for name in ("dram_read_bytes", "l2_request_bytes", "fabric_bytes"))
            results.append(Apart(f"{row['case']} {row['how']}", shared, *counted))
    return results


def exported_kernels(chip: str, every: int, hows: Sequence[str]) -> Iterator[tuple[Row, Asked]]:
    """Exported products on a chip, as they were run, or every N-th case; gated FFNs apart."""
    machine, products = load_machine(chip), ("gemm", "grouped", "ffn")
    cases = [case for case, item in layers().items() if item[0] in products and "gated" not in case][::every]
    for how in hows:
        for row in measured(MEASURED, how):
            if row["chip"] != chip or row["case"] not in cases:
                continue
            _, schedule, workload = layers()[row["case"]]
            family = kernel_family(workload)
            config = KernelConfig(
                TileShape.parse(row["tile"]), machine.sms, 1, machine.l2_bytes, machine.default_model.policy,
                parse_execution("waves"), int(row["stages"]), speeds_of(machine, "bf16"),
            )  # fmt: skip
            yield row, Asked(machine, family, workload, family.parse_schedule(schedule), config)


def exported(chip: str, every: int) -> list[Apart]:
    """What they asked of L2, each way that they were run."""
    known, results = dict[str, Shared](), list[Apart]()
    for row, kernel in exported_kernels(chip, every, ("free", "even", "waves")):
        if row["l2_request_bytes"]:
            if row["case"] not in known:
                known[row["case"]] = shared_of(kernel, known_gpcs(kernel.machine))
            counted = (int(row[name]) for name in ("dram_read_bytes", "l2_request_bytes", "fabric_bytes"))
            results.append(Apart(f"{row['case']} {row['how']}", known[row["case"]], *counted))
    return results


def known_gpcs(machine: Machine) -> Gpcs:
    """Of a chip whose GPCs are known."""
    result = gpcs_of(machine, machine.sms)
    if result is None:
        raise RuntimeError(f"{machine.sku}: no map of its GPCs")
    return result


def leave_one_out() -> None:
    """The fabric bytes of each launch with the GPCs' partitions that are best for the other six."""
    known = known_gpcs(tma_kernel(tma_rows()[0], "free").machine)
    blocks, maps = np.bincount(known.of_slot), list[list[float]]()
    for near in itertools.combinations(range(1, len(blocks)), len(blocks) // 2 - 1):
        part = np.where(np.isin(np.arange(len(blocks)), (0, *near)), 0, 1)
        if 2 * blocks[part == 0].sum() == blocks.sum():
            maps.append([item.fabric_ratio() for item in seven(known._replace(part=part))])
    ratios = np.array(maps)
    misses = np.abs(np.log(ratios))
    for left, row in enumerate(tma_rows()):
        best = int(np.argmin(np.delete(misses, left, axis=1).mean(axis=1)))
        print(f"  {row['order'][:28]:<30}{ratios[best, left]:.3f}")


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", action="store_true", help="fit the shares again")
    parser.add_argument("--fabric", action="store_true", help="leave each launch out of the choice of partitions")
    parser.add_argument("--every", type=int, default=1, help="only every N-th row, for a quick look (1)")
    args = parser.parse_args()
    inside = list(launches(FITTED, args.every))
    described = {"of the fit, H200": seven()[:: args.every] + exported("h200-sxm-141gb", args.every)}
    for execution, merging in IN_USE.items() if args.fit else ():
        fit([item for item in inside if item.row["execution"] == execution], execution, merging)
    if args.fit:
        fit(described["of the fit, H200"], "TMA", COPY_ENGINE)
    print(f"{'modelled / measured lts__t_sectors_op_read':<44} rows geo. mean  spread   within:5 %    10 %    15 %")
    for what, rows in (("of the fit", inside), ("kept out", list(launches(KEPT, args.every)))):
        for execution, merging in IN_USE.items():
            for chip in sorted({item.row["chip"] for item in rows}):
                here = [o for o in rows if o.row["execution"] == execution and o.row["chip"] == chip]
                ratios = [each_item.ratio(merging) for each_item in here]
                print(f"{what:<12}{execution:<8}{chip:<24}{summary(ratios, WITHIN)}")
        every = [element.ratio(IN_USE[element.row["execution"]]) for element in rows]
        print(f"{what:<12}{'all':<32}{summary(every, WITHIN)}")
    described |= {"kept out, H100": exported("h100-sxm5-80gb", args.every), "blind, H200": blind()}
    print("kernels with tensor descriptors, requests and what they write; their fabric bytes")
    for what, items in described.items():
        if items:
            print(f"{what:<44}{summary([item.ratio(COPY_ENGINE) for item in items], WITHIN)}")
            print(f"{what + ', fabric':<44}{summary([item.fabric_ratio() for item in items], WITHIN)}")
    print("by the shares of kernels whose warps copy, of waves and free-running")
    for name, merging in IN_USE.items():
        print(f"{'blind, H200, ' + name:<44}{summary([item.ratio(merging) for item in blind()], WITHIN)}")
    if args.fabric:
        print("fabric, each launch left out of the choice")
        leave_one_out()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
