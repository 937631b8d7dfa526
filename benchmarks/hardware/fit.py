"""How the one number of free-running blocks that bytes decide was chosen: by how much the pace of SMs differs.

    python benchmarks/hardware/fit.py --spread 0.001,0.002,0.0025,0.003,0.004

Fitted to the free-running GEMMs of the drift plans (`*_kit_drift.csv`, made to let blocks drift), one figure for all
chips; every other free-running row of the library is kept out of the choice: `predict.py` reports both. Rows that
repeat a launch count once, with their geometric mean.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from functools import partial
from math import exp, log
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

from library import read_rows  # noqa: E402 - beside this file
from predict import FITTED, Key, measured_bytes, question, simulated_bytes, summary  # noqa: E402


def _read_bytes(spread: float, key: Key) -> int:
    result = simulated_bytes(dict(key), spread)
    if result is None:
        raise RuntimeError(f"no machine file for {dict(key)['chip']}")
    return result[0]


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spread", default="0.001,0.002,0.0025,0.003,0.004", help="values to try")
    parser.add_argument("--every", type=int, default=1, help="only every N-th kernel, for a quick look (1)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    args = parser.parse_args()
    measured: dict[Key, list[int]] = {}
    for row in read_rows(sorted(Path(__file__).parent.glob(FITTED))):
        if row["execution"] == "free":
            measured.setdefault(question(row), []).append(measured_bytes(row))
    keys = sorted(measured)[:: args.every]
    print(f"spread   rows geo. mean  spread   within:5 %    10 %    15 %   ({len(keys)} kernels)")
    with multiprocessing.Pool(args.jobs) as pool:
        for spread in map(float, args.spread.split(",")):
            result = pool.map(partial(_read_bytes, spread), keys, chunksize=1)
            ratios = [
                traffic / exp(sum(map(log, measured[key])) / len(measured[key]))
                for traffic, key in zip(result, keys, strict=True)
            ]
            print(f"{spread:<8g}{summary(ratios)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
