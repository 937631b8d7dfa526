"""Blind rows: schedules that `tune` chose and what was predicted of them, written down before anything was measured.

    python benchmarks/hardware/blind.py --write FOLDER    # choose, predict (blind/predicted.csv), export to FOLDER
    python benchmarks/gpu/run_exports.py FOLDER measured.csv          # on the GPU
    python benchmarks/hardware/blind.py                   # blind/measured.csv beside blind/predicted.csv

Shapes are of no other row of the library. Of each the best that `pebble tune` finds by time and `grouped-8` run in the
same kernel. A file runs `even` unless told otherwise, without a barrier: `free` is its prediction; `waves` is that of
`--how waves`. Sustained times are at the limit of power.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from math import log
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[2])]

HERE = Path(__file__).parent / "blind"
SKU = "h200-sxm-141gb"
SHAPES = ((6144, 10240, 6144), (12288, 4096, 5120), (4096, 20480, 3584), (9216, 9216, 2048))
SHAPES += ((3072, 16384, 12288), (20480, 3072, 4096))
COMMON = "grouped-8"
COLUMNS = ("case", "how", "schedule", "tile", "single_ms", "sustained_ms", "joules", "dram_read_bytes")
COLUMNS += ("l2_request_bytes", "fabric_bytes")


def write(folder: Path) -> None:
    """Choose, predict and export; files that are there are replaced."""
    import pebble

    folder.mkdir(parents=True, exist_ok=True)
    HERE.mkdir(exist_ok=True)
    rows = list[tuple[Any, ...]]()
    for shape in SHAPES:
        gemm = pebble.Gemm(*shape)
        best = pebble.tune(gemm, gpu=SKU, progress=False).best
        config = best.kernel.config
        where: dict[str, Any] = {"gpu": SKU, "tile": best.kernel.tile, "stages": config.stages}
        for which, schedule in (("best", best.name if best.named else best.schedule), ("common", COMMON)):
            case, name = f"{'x'.join(map(str, shape))}-{which}", best.name if which == "best" else COMMON
            requested: dict[str, Any] = {"schedules": schedule if isinstance(schedule, str) else COMMON}
            if not isinstance(schedule, str):
                requested["schedule"] = schedule
            for how, execution in (("even", "free"), ("waves", "waves")):
                orders = pebble.time(gemm, execution=execution, **requested, **where).orders
                timed = next(order for order in orders if order.order == name)
                moved = pebble.simulate(gemm, schedule, execution=execution, **where).traffic.dram_read_bytes
                again = timed.sustained
                times = (timed.time.seconds * 1e3, again.seconds * 1e3, again.total_joules)
                crossing = again.requested.request_bytes + again.requested.written_bytes, again.requested.fabric_bytes
                predicted = *(f"{value:.5g}" for value in times), moved, *crossing
                rows.append((case, how, name, best.kernel.tile, *predicted))
            pebble.export(schedule, gemm, "triton", **where).save(folder / f"{case}.py")
        print(f"{gemm.label}: {best.name}", flush=True)
        with open(HERE / "predicted.csv", "w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])


def read(name: str) -> dict[tuple[str, str], dict[str, str]]:
    """Rows by case and how they ran; none where nothing was measured yet."""
    if not (HERE / name).exists():
        return {}
    with open(HERE / name, newline="") as file:
        return {(row["case"], row["how"]): row for row in csv.DictReader(file)}


def compare() -> None:
    """Predicted over measured, row by row, and the choices."""
    predicted, measured = read("predicted.csv"), read("measured.csv")
    names = {"sustained_ms": "sustained_milliseconds", "single_ms": "milliseconds", "joules": "joules"}
    names |= {name: name for name in COLUMNS[-3:]}
    ratios = defaultdict[str, list[float]](list)
    print(f"{'predicted / measured':<34}{'how':<7}" + "".join(f"{name:>16}" for name in names))
    for key, row in predicted.items():
        line = f"{key[0]:<34}{key[1]:<7}"
        for name, theirs in names.items():
            value = measured.get(key, {}).get(theirs)
            line += f"{float(row[name]) / float(value):>16.3f}" if value else f"{'-':>16}"
            if value:
                ratios[name].append(float(row[name]) / float(value))
        print(line)
    for name, values in ratios.items():
        within = [sum(abs(value - 1) <= limit for value in values) for limit in (0.05, 0.10)]
        spread = sum(abs(log(value)) for value in values) / len(values)
        print(f"{name:<16} {len(values)} rows, mean miss {spread:.1%}, within 5 % {within[0]}, within 10 % {within[1]}")
    for case in dict.fromkeys(key[0].removesuffix("-best") for key in predicted if key[0].endswith("-best")):
        ours, common = (measured.get((f"{case}-{which}", "even")) for which in ("best", "common"))
        if ours and common:
            time, bytes_ = (
                float(ours[name]) / float(common[name] or 1) for name in ("sustained_milliseconds", "dram_read_bytes")
            )
            library = float(ours["sustained_milliseconds"]) / float(ours["library_sustained_milliseconds"])
            print(f"{case:<20} best over {COMMON}: time {time:.3f}, reads {bytes_:.3f}; time over cuBLAS {library:.3f}")


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="choose, predict, and export to FOLDER")
    args = parser.parse_args()
    if args.write:
        write(args.write)
    else:
        compare()
    return 0


if __name__ == "__main__":
    sys.exit(main())
