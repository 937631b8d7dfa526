"""Products whose k is cut: modelled over measured times of a single launch (`split_k/measured.csv`, an H200).

    python benchmarks/hardware/split_k.py

The one number of the model that answers to these launches, `PART_BYTES_PER_CLOCK`, was chosen on the first five shapes;
the others are a check. `split_k/predicted.csv` was written down before anything was measured, without that number.
"""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

sys.path[:0] = [str(Path(__file__).parents[2])]

import pebble  # noqa: E402 - beside this folder

FOLDER = Path(__file__).with_name("split_k")
CUT = ("split-k-2", "split-k-4", "split-k-8", "stream-k")
EXECUTIONS = ("persistent", *CUT)
CHOSEN_ON = 5
Shape = tuple[int, int, int]
Times = dict[Shape, dict[str, float]]


def read(name: str, chip: str = "h200-sxm-141gb") -> Times:
    """Milliseconds of a single launch, by shape and then by execution."""
    result: Times = {}
    with (FOLDER / name).open(newline="") as file:
        for row in csv.DictReader(file):
            if row["chip"] == chip:
                shape = (int(row["m"]), int(row["n"]), int(row["k"]))
                result.setdefault(shape, {})[row["execution"]] = float(row["ms"])
    return result


def modelled(shape: Shape) -> dict[str, float]:
    """The same by the model as it is."""
    how = {"gpu": "h200-sxm-141gb", "tile": "128x256x64", "stages": 4}
    timings = {name: pebble.time(pebble.Gemm(*shape), ["grouped-8"], execution=name, **how) for name in EXECUTIONS}
    return {name: timing.orders[0].time.seconds * 1e3 for name, timing in timings.items()}


def summary(what: str, said: Times, took: Times, shapes: list[Shape]) -> str:
    """How far off the executions are that cut k."""
    ratios = [said[shape][name] / took[shape][name] for shape in shapes for name in CUT]
    misses = [abs(ratio - 1) for ratio in ratios]
    within = sum(miss <= 0.1 for miss in misses)
    return (
        f"{what}: {within} of {len(misses)} within 10 %, {median(misses):.1%} in the median, {max(misses):.1%} at most"
    )


def lines() -> Iterator[str]:
    """The table, and what it comes to."""
    took, before = read("measured.csv"), read("predicted.csv")
    now = {shape: modelled(shape) for shape in took}
    yield f"{'m, n, k':>18}" + "".join(f"{name:>18}" for name in EXECUTIONS) + "  fastest: measured, modelled"
    lost = []
    for shape, ms in took.items():
        cells = "".join(f"{f'{ms[name]:.4f} ms, {now[shape][name] / ms[name]:.2f}':>18}" for name in EXECUTIONS)
        best, chosen = min(EXECUTIONS, key=ms.__getitem__), min(EXECUTIONS, key=now[shape].__getitem__)
        lost.append(ms[chosen] / ms[best] - 1)
        yield f"{', '.join(map(str, shape)):>18}{cells}  {best}, {chosen}"
    shapes = list(took)
    yield summary("k is cut, the shapes that the number was chosen on", now, took, shapes[:CHOSEN_ON])
    yield summary("k is cut, the others", now, took, shapes[CHOSEN_ON:])
    yield summary("k is cut, all, as written down before", before, took, shapes)
    picked = f"{sum(lost) / len(lost):.1%} slower than the fastest on the mean, {max(lost):.1%} at most"
    yield f"the execution that the model picks: {picked}"


if __name__ == "__main__":
    print("\n".join(lines()))
