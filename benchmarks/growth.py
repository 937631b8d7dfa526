"""How time and memory grow with M, N, K, SMs and the number of orders: `python benchmarks/growth.py`.

Writes docs/figures/growth.svg and prints the table of docs/growth.md. CPU seconds are the least of three runs after a
warm-up; memory is the peak that numpy allocates (tracemalloc), measured in a run of its own.
"""

from __future__ import annotations

import argparse
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pebble.families import kernel_family, simulate
from pebble.models.caches import parse_policy
from pebble.models.caches.lru_curve import lru_curve
from pebble.plots.save import BLUE, GREEN, ORANGE, RED, page, save_figure
from pebble.schedules.orders import all_schedules, parse_order
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.workloads import Gemm

CACHE = 40 * 2**20
TILE = TileShape(128, 128, 64)


def trace(m: int, n: int, k: int, sms: int) -> Any:
    """Row order, lock step."""
    gemm = Gemm(m, n, k)
    return kernel_family(gemm).trace(gemm, parse_order("row"), KernelConfig(TILE, sms, 1, CACHE))


def closed(m: int, n: int, k: int, sms: int) -> object:
    """LRU in closed form."""
    return simulate(Gemm(m, n, k), parse_order("row"), KernelConfig(TILE, sms, 1, CACHE))


def run_level(m: int, n: int, k: int, sms: int) -> object:
    """FIFO, the trace made and simulated tile by tile."""
    return parse_policy("fifo").simulate(trace(m, n, k, sms), CACHE // 128)


def hardware(m: int, n: int, k: int, sms: int) -> object:
    """Two partitions, oldest of 8."""
    return parse_policy("partitions-2:oldest-of-8").simulate(trace(m, n, k, sms), CACHE // 128)


def curve(m: int, n: int, k: int, sms: int) -> object:
    """LRU at every capacity."""
    return lru_curve(trace(m, n, k, sms))


MODELS: dict[str, Callable[[int, int, int, int], object]] = {
    "LRU, closed form": closed, "FIFO, run level": run_level, "LRU curve": curve, "hardware (partitions)": hardware,
}  # fmt: skip
SWEEPS: dict[str, list[tuple[int, int, int, int]]] = {
    "M": [(m, 4096, 4096, 108) for m in (1024, 2048, 4096, 8192, 16384, 32768)],
    "N": [(4096, n, 4096, 108) for n in (1024, 2048, 4096, 8192, 16384, 32768)],
    "K": [(4096, 4096, k, 108) for k in (1024, 2048, 4096, 8192, 16384, 32768)],
    "SMs": [(8192, 8192, 4096, sms) for sms in (16, 32, 64, 128, 256, 512)],
}


def orders(count: int) -> object:
    """That many orders of one GEMM, LRU in closed form."""
    gemm = Gemm(4096, 4096, 4096)
    return [simulate(gemm, order, KernelConfig(TILE, 108, 1, CACHE)) for order in all_schedules()[:count]]


def measured(run: Callable[[], object]) -> tuple[float, float]:
    """CPU seconds, the least of three runs, and peak MB."""
    run()
    seconds = float("inf")
    for _ in range(3):
        begin = time.process_time()
        run()
        seconds = min(seconds, time.process_time() - begin)
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return seconds, peak


def main() -> int:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figure", nargs="?", default="docs/figures/growth.svg")
    parser.add_argument("--smallest", action="store_true", help="one small product of each sweep: does it run?")
    args = parser.parse_args()
    result: dict[str, dict[str, list[tuple[int, float, float]]]] = {}
    runs = [
        (swept, case[at], name, partial(model, *case))
        for at, (swept, cases) in enumerate(SWEEPS.items())
        for name, model in MODELS.items()
        for case in ([(512, 512, 512, 16)] if args.smallest else cases)
    ]
    counts = (1,) if args.smallest else (1, 2, 4, 8, 16, 28)
    runs += [("orders", count, "LRU, closed form", partial(orders, count)) for count in counts]
    for swept, value, name, run in runs:
        seconds, peak = measured(run)
        result.setdefault(swept, {}).setdefault(name, []).append((value, seconds, peak))
        print(f"{swept} {value}, {name}: {1e3 * seconds:.2f} ms, {peak:.1f} MB", file=sys.stderr, flush=True)
    print("| swept | from, to | model | time | peak memory |\n|---|---|---|---|---|")
    for swept, curves in result.items():
        for name, points in curves.items():
            (first, fast, small), (last, slow, large) = points[0], points[-1]
            times = f"{1e3 * fast:.2f} to {1e3 * slow:.2f} ms"
            print(f"| {swept} | {first} to {last} | {name} | {times} | {small:.1f} to {large:.1f} MB |")
    with page(9, 4.2) as figure:
        axes = figure.subplots(2, len(result), sharex="col", sharey="row")
        draw(axes, result)
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=7, frameon=False)
    save_figure(figure, args.figure)
    return 0


def draw(axes: Any, result: dict[str, dict[str, list[tuple[int, float, float]]]]) -> None:
    """One column for each swept quantity: time above, memory below."""
    colours: Sequence[str] = (BLUE, ORANGE, GREEN, RED)
    for column, (swept, curves) in enumerate(result.items()):
        for colour, (name, points) in zip(colours, curves.items(), strict=False):
            x = [p[0] for p in points]
            axes[0][column].plot(x, [p[1] for p in points], "o-", ms=3, lw=1, color=colour, label=name)
            axes[1][column].plot(x, [p[2] for p in points], "o-", ms=3, lw=1, color=colour)
        for row in (0, 1):
            axes[row][column].set_xscale("log", base=2)
            axes[row][column].set_yscale("log")
        axes[1][column].set_xlabel(swept)
    axes[0][0].set_ylabel("CPU seconds")
    axes[1][0].set_ylabel("peak MB")


if __name__ == "__main__":
    raise SystemExit(main())
