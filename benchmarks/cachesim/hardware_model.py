"""The chip's own cache model beside its literal form: first zero differences, then speed.

    python benchmarks/cachesim/hardware_model.py > benchmarks/cachesim/hardware_model.md

The literal form (``tests/models/caches/every_granule.py``) keeps every granule's own stamp in every part and draws one
number at a time. Both run in turn, on one core, in one process; a ratio is that of the least CPU seconds of each.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2])]

from pebble.families import kernel_family  # noqa: E402 - beside the tests
from pebble.models.caches import parse_policy  # noqa: E402
from pebble.models.caches.oldest_of_k import OldestOfKEngine  # noqa: E402
from pebble.models.caches.policy import CacheCounts, Engine, counted  # noqa: E402
from pebble.reports.simulated_kernel import read_kernel  # noqa: E402
from pebble.system.parallel import cores  # noqa: E402
from pebble.traces import LINE_BYTES  # noqa: E402
from pebble.workloads import Gemm  # noqa: E402
from tests.models.caches.every_granule import EveryGranule  # noqa: E402

GPU = "h100-sxm5-80gb"
ORDERS = ("row", "hilbert", "grouped-8", "snake-strips-16+sawtooth")
SHAPES = ((8192, 8192, 8192), (8192, 57_344, 8192))
WARM_UP = Gemm(512, 512, 512)


def seconds(engine: Engine) -> tuple[float, CacheCounts]:
    """CPU seconds of a run, and its counts."""
    begin = time.thread_time()
    result = counted(engine)
    return time.thread_time() - begin, result


def beside(shape: tuple[int, int, int], order: str, rounds: int) -> None:
    """One row of the table."""
    gemm = Gemm(*shape)
    config = read_kernel(gemm, gpu=GPU, policy="hardware").config
    family, policy = kernel_family(gemm), parse_policy(config.policy)
    trace = family.trace(gemm, family.parse_schedule(order), config)
    lines = config.cache_bytes // LINE_BYTES
    ours, literal = [], []
    for engine in (OldestOfKEngine, EveryGranule):  # compiled before it is timed
        counted(engine(family.trace(WARM_UP, family.parse_schedule(order), config), lines, policy))
    for _ in range(rounds):
        ours.append(seconds(OldestOfKEngine(trace, lines, policy)))
        literal.append(seconds(EveryGranule(trace, lines, policy)))
    assert len({counts for _, counts in (*ours, *literal)}) == 1, "differences"
    a, b = (min(spent for spent, _ in runs) for runs in (ours, literal))
    traffic = sum(ours[0][1].read_misses) * LINE_BYTES / 1e6
    print(f"| {gemm.m}x{gemm.n}x{gemm.k} | {order} | {traffic:,.1f} | {b:.2f} | {a:.2f} | {b / a:.1f}x |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--smallest", action="store_true", help="one small product: does it run?")
    args = parser.parse_args()
    print("# The chip's own cache model beside its literal form\n")
    print(f"`python benchmarks/cachesim/hardware_model.py --rounds {args.rounds}`,")
    print(f"{GPU}, tile 128x128x64.")
    print(f"Load when it began: {os.getloadavg()[0]:.1f} on {cores()} cores. The same counts in every row.\n")
    print("| GEMM | order | read MB | literal, CPU s | by groups, CPU s | ratio |\n|---|---|---|---|---|---|")
    for shape in [(1024, 1024, 1024)] if args.smallest else SHAPES:
        for order in ORDERS[:1] if args.smallest else ORDERS:
            beside(shape, order, args.rounds)


if __name__ == "__main__":
    main()
