"""How many rows a second a sweep computes: every linear layer of every named model on every machine in every order.

    python benchmarks/sweep.py --every 19          # one batch in 19, in this process: rows per second of one core
    pebble sweep benchmarks/all_layers.toml --store all.duckdb --jobs 2    # the whole

What was measured is in benchmarks/sweep.md.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import pebble
from pebble.sweeps.axes import read_axes
from pebble.sweeps.plan import plan_of
from pebble.sweeps.work import answer

ALL_LAYERS = Path(__file__).with_name("all_layers.toml")


def main() -> None:
    """Time some of the batches."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=19, metavar="N", help="one batch in N (19)")
    parser.add_argument("--sweep", default=ALL_LAYERS, metavar="FILE", help="the sweep (all_layers.toml)")
    args = parser.parse_args()
    plan = plan_of(read_axes(args.sweep))
    batches = plan.batches()
    answer(batches[0].message(pebble.__version__))  # compiles, or loads what was compiled
    some = batches[min(args.every // 2, len(batches) - 1) :: args.every]
    wall, cpu = time.perf_counter(), time.process_time()
    for batch in some:
        answer(batch.message(pebble.__version__))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    rows = sum(len(batch.tasks) for batch in some)
    print(f"{len(plan.tasks):,} rows in {len(batches):,} batches; measured {rows:,} rows in {len(some)} batches")
    print(f"{wall:.1f} s, {cpu:.1f} s of one core: {rows / cpu:.1f} rows per second of a core")
    print(f"the whole on two cores, at that rate: {len(plan.tasks) * cpu / rows / 2 / 60:.1f} minutes")


if __name__ == "__main__":
    main()
