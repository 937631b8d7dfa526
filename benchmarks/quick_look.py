"""A quick look at a kernel beside its full simulation: bytes, time and what is chosen, on random layers of a GEMM.

    python benchmarks/quick_look.py --layers 200 > benchmarks/quick_look.md

Each layer is tried with three tiles in seven orders (`TILES`, `ORDERS`); the full simulation is the judge of both: what
the quick look ranks first is charged what it takes, or moves, by simulation, over the least of all. Ranked by sustained
time and, apart, by DRAM bytes. No number of either was chosen on these layers. Seconds of CPU for each simulation; the
time of a look is the least of five, on a warm machine.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

sys.path[:0] = [str(Path(__file__).parents[1])]

from pebble.families import kernel_family  # noqa: E402
from pebble.families.spaces.candidate import Candidate  # noqa: E402
from pebble.models.machine import load_machine  # noqa: E402
from pebble.schedules.execution import WAVES  # noqa: E402
from pebble.schedules.orders import parse_order  # noqa: E402
from pebble.schedules.tile import TileShape  # noqa: E402
from pebble.simulation import KernelConfig  # noqa: E402
from pebble.timing.power import power_of, sustained  # noqa: E402
from pebble.timing.sustained import sustained_rates  # noqa: E402
from pebble.timing.waves import modelled_time  # noqa: E402
from pebble.tuning.advisors.coarse import quick_look  # noqa: E402
from pebble.workloads import Gemm  # noqa: E402

TILES = (TileShape(128, 256, 64), TileShape(256, 128, 64), TileShape(128, 128, 64))
ORDERS = ("row", "column", "grouped-8", "grouped-16", "snake-strips-11", "hilbert", "grouped-8+sawtooth")
STAGES, LOOKS = 4, 5
SIZES, MOST_FLOPS = (512, 16384), 1.2e12


class Tried(NamedTuple):
    """One kernel: by the quick look, and by simulation; seconds are sustained ones."""

    look_bytes: float
    look_seconds: float
    bytes: float
    seconds: float
    look_took: float


def layer(rng: random.Random) -> Gemm:
    """Sizes in multiples of 64, evenly spread in their logarithms."""
    while True:
        m, n, k = (round(SIZES[0] * (SIZES[1] / SIZES[0]) ** rng.random() / 64) * 64 for _ in range(3))
        if 2 * m * n * k <= MOST_FLOPS:
            return Gemm(m, n, k)


def tried(sku: str, gemm: Gemm) -> list[Tried]:
    """Every tile in every order."""
    machine, family = load_machine(sku), kernel_family(gemm)
    rates, power = sustained_rates(machine, "bf16"), power_of(machine, "bf16", machine.sms)
    if power is None:
        raise RuntimeError(f"{sku}: sustained time is not modelled")
    results = []
    for tile in TILES:
        how = (machine.sms, 1, machine.l2_bytes, machine.default_model.policy, WAVES, STAGES)
        config = KernelConfig(tile.cut_to(gemm), *how)
        for name in ORDERS:
            order, took = parse_order(name), float("inf")
            for _ in range(LOOKS):
                begin = time.perf_counter()
                look = quick_look(family, gemm, Candidate(order, config), rates, power)
                took = min(took, time.perf_counter() - begin)
            program = family.program(gemm, order, config)
            whole = modelled_time(program, config, rates)
            again = sustained(program, config, whole, power)
            results.append(Tried(look.dram_bytes, look.ranked_seconds, whole.dram_bytes, again.seconds, took))
    return results


def cost(every: list[Tried], by_time: bool) -> float:
    """What the choice of the quick look takes, or moves, over the least."""
    if by_time:
        chosen = min(every, key=lambda single: (single.look_seconds, single.look_bytes))
        return chosen.seconds / min(item.seconds for item in every)
    chosen = min(every, key=lambda single: (single.look_bytes, single.look_seconds))
    return chosen.bytes / min(element.bytes for element in every)


def share(values: list[float], limit: float) -> str:
    """How many are within a limit of 1, rounded down: 100 % are all."""
    return f"{100 * sum(abs(value - 1) <= limit for value in values) // len(values)}%"


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=200, help="how many (200)")
    parser.add_argument("--seed", type=int, default=1, help="of their sizes (1)")
    parser.add_argument("--gpu", default="h200-sxm-141gb", help="an H100 or H200 (h200-sxm-141gb)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    gemms = [layer(rng) for _ in range(args.layers)]
    with multiprocessing.Pool(args.jobs) as pool:
        layers = list(pool.imap(partial(tried, args.gpu), gemms))
    every = [item for here in layers for item in here if item.look_bytes < float("inf")]
    took = sorted(one.look_took for one in every)
    print(f"# Quick looks beside full simulations, {args.gpu}\n")
    print(f"{len(layers)} random layers, {len(TILES)} tiles, {len(ORDERS)} orders; seed {args.seed}\n")
    print("| quick look over simulation | within 1 % | 2 % | 5 % | least | most |\n|---|---|---|---|---|---|")
    for what, ratios in (
        ("DRAM bytes", [element.look_bytes / element.bytes for element in every]),
        ("sustained time", [each_item.look_seconds / each_item.seconds for each_item in every]),
    ):
        limits = " | ".join(share(ratios, limit) for limit in (0.01, 0.02, 0.05))
        print(f"| {what} | {limits} | {min(ratios):.3f} | {max(ratios):.3f} |")
    print("\n| the choice, over the best of all | within 1 % | within 3 % | mean | worst |\n|---|---|---|---|---|")
    for what, by_time in (("by sustained time", True), ("by DRAM bytes", False)):
        costs = [cost(here, by_time) for here in layers]
        mean = sum(costs) / len(costs)
        print(f"| {what} | {share(costs, 0.01)} | {share(costs, 0.03)} | {mean:.4f} | {max(costs):.3f} |")
    median, most = took[len(took) // 2] * 1e3, took[len(took) * 95 // 100] * 1e3
    print(f"\nA look takes {median:.2f} ms in the median, {most:.2f} ms in 95 of 100, {took[-1] * 1e3:.1f} ms at most.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
