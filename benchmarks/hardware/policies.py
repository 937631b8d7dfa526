"""Cache models beside counters: what each predicts of launches with waves kept together, on which nothing was fitted.

    python benchmarks/hardware/policies.py --figure policies.svg      # a minute on two cores

Rows: the GEMMs of the held-out plans (``*_kit_held_out.csv``). ``hardware`` is the model of the machine file.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from dataclasses import replace
from math import exp, log
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

from library import HERE, Row, read_rows  # noqa: E402 - beside this file
from predict import asked, measured_bytes, named  # noqa: E402

POLICIES = ("lru", "opt", "partitions-2", "hardware")


def chosen_rows() -> list[Row]:
    """Launches of GEMMs in waves, of the held-out plans."""
    files = sorted(HERE.glob("*_kit_held_out.csv"))
    rows = (row for row in read_rows(files) if row["family"] == "gemm" and row["execution"] == "waves")
    return [row for row in rows if row["tile"] and named(row) and measured_bytes(row)]


def predicted(task: tuple[Row, str]) -> int:
    """DRAM bytes read, by a policy."""
    row, policy = task
    kernel = asked(row)
    assert kernel is not None
    config = kernel.config if policy == "hardware" else replace(kernel.config, policy=policy)
    read: int = kernel.family.simulate(kernel.workload, kernel.schedule, config).dram_read_bytes
    return read


def summary(ratios: list[float]) -> dict[str, float]:
    """Geometric mean of predicted over measured, its extremes, and shares within 5 and 10 %."""
    return {
        "geometric_mean": exp(sum(map(log, ratios)) / len(ratios)),
        "least": min(ratios),
        "most": max(ratios),
        "within_5_percent": sum(abs(r - 1) <= 0.05 for r in ratios) / len(ratios),
        "within_10_percent": sum(abs(r - 1) <= 0.10 for r in ratios) / len(ratios),
    }


def draw(measured: list[int], result: dict[str, list[int]], path: str) -> None:
    """Predicted over measured against measured, a mark for each policy."""
    from pebble.plots.save import BLUE, GREEN, ORANGE, RED, log_axes, page, save_figure, small_title

    with page(3.33, 3.0) as figure:
        ax = figure.add_subplot()
        at = [count / 1e9 for count in measured]
        for policy, color, mark in zip(result, (ORANGE, RED, GREEN, BLUE), "vsDo", strict=True):
            ratios = [p / m for p, m in zip(result[policy], measured, strict=True)]
            ax.plot(at, ratios, mark, ms=3, mfc="none", mec=color, ls="none", label=policy)
        ax.axhspan(0.9, 1.1, color="0.88", lw=0)
        log_axes(ax)
        ax.set_yticks([0.1, 0.2, 0.5, 1, 2])
        ax.set_xlabel("measured DRAM reads, GB (band: 10 %)")
        ax.set_ylabel("predicted / measured")
        small_title(ax, f"{len(measured)} launches in waves, H100 and H200")
        figure.legend(loc="outside lower center", ncols=4, fontsize=6.5, frameon=False)
    save_figure(figure, path)


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figure", metavar="FILE", help="draw predicted over measured")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--smallest", action="store_true", help="the smallest launch: does it run?")
    args = parser.parse_args()
    rows = chosen_rows()
    if args.smallest:
        rows = [min(rows, key=measured_bytes)]
    with multiprocessing.Pool(args.jobs) as pool:
        answers = pool.map(predicted, [(row, policy) for policy in POLICIES for row in rows], chunksize=1)
    result = {policy: answers[i * len(rows) : (i + 1) * len(rows)] for i, policy in enumerate(POLICIES)}
    measured = [measured_bytes(row) for row in rows]
    ratios = {name: [p / m for p, m in zip(values, measured, strict=True)] for name, values in result.items()}
    if args.figure:
        draw(measured, result, args.figure)
    if args.json:
        print(json.dumps({"rows": len(rows), "policies": {name: summary(values) for name, values in ratios.items()}}))
        return 0
    print(f"{len(rows)} launches; predicted / measured DRAM reads")
    print(f"{'policy':<14}geo. mean   least    most   within: 5 %   10 %")
    for name, values in ratios.items():
        s = summary(values)
        print(
            f"{name:<14}{s['geometric_mean']:>9.3f}{s['least']:>8.2f}{s['most']:>8.2f}{s['within_5_percent']:>14.0%}"
            f"{s['within_10_percent']:>7.0%}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
