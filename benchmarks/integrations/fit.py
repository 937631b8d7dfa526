"""The constants of `pebble/integrations/block_a_tile.py`: fitted to measured times, and how far they are off.

    python benchmarks/integrations/fit.py            # what the constants in use miss, by recorded plan
    python benchmarks/integrations/fit.py --fit      # fit them anew and write models/block_a_tile.toml
    python benchmarks/integrations/fit.py --cross    # fitted to five sixths of the products, tried on the others

They are fitted to the times of two plans of 30 products on an H200, `recorded/fitted_36` and `fitted_37`: all
configurations, those within twice the fastest most. What single kernels take beyond that is the median of their misses,
shrunk by `SHRINK` towards 1. How alike errors are, by which kernels to try are chosen, was set on these and on 30
products that were named after the fit, `looked_at_41`. `blind_43` was named after that.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

sys.path[:0] = [str(Path(__file__).parents[2])]

from pebble.integrations.block_a_tile import Cases, Chip, Constants, Kernel, chosen, fitted, nanoseconds  # noqa: E402
from pebble.integrations.kernel_model import KernelTimes, Launch  # noqa: E402
from pebble.models.machine import load_machine  # noqa: E402
from pebble.schedules.tile import TileShape  # noqa: E402
from pebble.workloads import Gemm  # noqa: E402

HERE = Path(__file__).parent / "recorded"
FITTED, LATER = ("fitted_36", "fitted_37"), ("looked_at_41", "blind_43")
CONSTANTS = Path(__file__).parents[2] / "models/block_a_tile.toml"
SKU, KEEP, FOLDS, SHRINK, ROUNDS = "h200-sxm-141gb", 9, 6, 0.7, 60
START = Constants(2400.0, 3000.0, 0.0225, 0.6, 18.0, 360.0, 0.6, 1.08, 45.0, 0.54, 0.58, 0.93, 0.58, 0.4, 0.8, 0.4, 0.2)
MOST = Constants(8e3, 8e3, 0.1, 1.0, 200.0, 2e3, 3.0, 1.3, 90.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 1.0, 0.6)


class Product(NamedTuple):
    """Measured nanoseconds of all configurations of a product."""

    kernels: Sequence[Kernel]
    cases: Cases
    measured: NDArray[np.float64]

    @property
    def over(self) -> NDArray[np.float64]:
        """Over the fastest."""
        return np.asarray(self.measured / self.measured.min())


def products(name: str, chip: Chip) -> list[Product]:
    """Those of a recorded plan. What was measured once is scaled as what was measured twice changed."""
    planned = json.loads((HERE / f"{name}.json").read_text())
    rows: dict[str, dict[str, tuple[float, float | None]]] = defaultdict(dict)
    with (HERE / f"{name}.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["kind"] == "product":
                rows[row["shape"]][row["config"]] = float(row["ms"]), float(row["again"]) if row["again"] else None
    results = []
    for entry in planned["products"]:
        product, times = Gemm(*entry["shape"]), rows["x".join(map(str, entry["shape"]))]
        change = statistics.median(again / first for first, again in times.values() if again is not None)
        kernels = kernels_of(product, planned["space"])
        measured = [
            first * change if again is None else again for first, again in (times[str(i)] for i in range(len(kernels)))
        ]
        results.append(Product(kernels, Cases.of(product, kernels, chip), np.array(measured) * 1e6))
    return results


def kernels_of(product: Gemm, space: Iterable[dict[str, int]]) -> list[Kernel]:
    """Configurations as the model has them."""
    times, fits, results = KernelTimes(SKU, product), dict[Any, int](), list[Kernel]()
    for config in space:
        tile = TileShape(*(config[f"BLOCK_SIZE_{side}"] for side in "MNK"))
        launch = Launch(tile, config["num_stages"], config["num_warps"], "row")
        if launch not in fits:
            fits[launch] = times.fitting(launch)
        results.append(Kernel(tile, launch.stages, launch.warps, config["GROUP_SIZE_M"], fits[launch]))
    return results


def misses(constants: Sequence[float], sample: Sequence[Product], chip: Chip) -> NDArray[np.float64]:
    """Logarithms of modelled over measured, far ones bounded, the fastest configurations weighted most."""
    parts = []
    for product in sample:
        off = np.log(nanoseconds(Constants(*constants), product.cases, chip) / product.measured)
        parts.append((np.exp(-2 * (product.over - 1)) + 0.1) * np.arcsinh(off / 0.1) * 0.1)
    return np.concatenate(parts)


def descend(sample: Sequence[Product], chip: Chip) -> Constants:
    """Least squares by Levenberg and Marquardt, within bounds; derivatives by small steps."""
    most = np.array(MOST)
    at, damping = np.array(START), 1e-2
    here = misses(at, sample, chip)
    for _ in range(ROUNDS):
        steps = np.maximum(np.abs(at), 0.01 * most) * 1e-4
        moved = [misses(at + step, sample, chip) for step in np.diag(steps)]
        slopes = (np.stack(moved, 1) - here[:, None]) / steps * most
        normal = slopes.T @ slopes
        while damping < 1e6:
            move = np.linalg.solve(normal + damping * np.diag(np.diag(normal) + 1e-9), -slopes.T @ here) * most
            there = np.clip(at + move, 1e-3 * most, most)
            tried = misses(there, sample, chip)
            if tried @ tried < here @ here:
                break
            damping *= 4
        else:
            break
        gained = 1 - (tried @ tried) / (here @ here)
        at, here, damping = there, tried, damping / 4
        if gained < 1e-5:
            break
    return Constants(*at.tolist())


def corrected(constants: Constants, sample: Sequence[Product], chip: Chip) -> dict[str, float]:
    """What the time of each kernel is multiplied by, its fastest configurations weighted most."""
    off: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for product in sample:
        ratios = product.measured / nanoseconds(constants, product.cases, chip)
        for kernel, ratio, over in zip(product.kernels, ratios.tolist(), product.over.tolist(), strict=True):
            off[kernel.name].append((ratio, float(np.exp(-2 * (over - 1)) + 0.1)))
    return {name: _median(pairs) ** SHRINK for name, pairs in off.items()}


def _median(pairs: Sequence[tuple[float, float]]) -> float:
    half, total = sum(weight for _, weight in pairs) / 2, 0.0
    for ratio, weight in sorted(pairs):
        total += weight
        if total >= half:
            return ratio
    raise AssertionError("no pairs")


def tell(name: str, sample: Sequence[Product], modelled: Sequence[NDArray[np.float64]]) -> None:
    """How far off, and what choosing by it loses."""
    off = np.abs(np.log(np.concatenate([m / p.measured for m, p in zip(modelled, sample, strict=True)])))
    best, first = [], []
    for seconds, product in zip(modelled, sample, strict=True):
        picked = chosen(product.kernels, seconds, KEEP)
        best.append(product.over[picked].min())
        first.append(product.over[picked[0]])
    print(
        f"{name}: {len(sample)} products, half of the times within {np.median(off):.1%}; the best of {KEEP} chosen of "
        f"{len(sample[0].kernels)} loses {np.mean(best) - 1:.2%} (median {np.median(best) - 1:.2%}, worst "
        f"{np.max(best) - 1:.1%}), the first {np.mean(first) - 1:.1%}"
    )


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", action="store_true", help="fit anew, and write the constants")
    parser.add_argument("--only", metavar="PLAN", help="one recorded plan alone")
    parser.add_argument("--cross", action="store_true", help="fit to five sixths, try on the others")
    args = parser.parse_args()
    chip = Chip.of(load_machine(SKU), "bf16")
    assert chip is not None
    known = [product for name in FITTED for product in products(name, chip)] if args.fit or args.cross else []
    if args.cross:
        tried: list[NDArray[np.float64]] = [np.zeros(0)] * len(known)
        for fold in range(FOLDS):
            sample = [product for i, product in enumerate(known) if i % FOLDS != fold]
            constants = descend(sample, chip)
            of = corrected(constants, sample, chip)
            for i in range(fold, len(known), FOLDS):
                factors = np.array([of[kernel.name] for kernel in known[i].kernels])
                tried[i] = nanoseconds(constants, known[i].cases, chip) * factors
        tell("each tried where it was not fitted", known, tried)
        return 0
    if args.fit:
        constants = descend(known, chip)
        write(constants, corrected(constants, known, chip))
        fitted.cache_clear()
    constants, corrections = fitted()
    for name in (*FITTED, *LATER) if args.only is None else (args.only,):
        sample = products(name, chip)
        modelled = [
            nanoseconds(constants, p.cases, chip) * np.array([corrections[k.name] for k in p.kernels]) for p in sample
        ]
        tell(name, sample, modelled)
    return 0


def write(constants: Constants, corrections: dict[str, float]) -> None:
    """The file of the model."""
    lines = [
        "# Of kernels with a block for each tile: pebble/integrations/block_a_tile.py. Fitted to times of an NVIDIA",
        "# H200 (November 2026) by benchmarks/integrations/fit.py --fit.", "", "[constants]",
        *(f"{name} = {value:.5g}" for name, value in constants._asdict().items()),
        "", "# what the time of single kernels is multiplied by", "[corrections]",
        *(f'"{name}" = {value:.3f}' for name, value in corrections.items()),
    ]  # fmt: skip
    CONSTANTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
