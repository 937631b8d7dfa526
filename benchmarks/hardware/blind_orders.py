"""Blind rows of orders: what the model says of two kernels in the same orders, and what they took.

    python benchmarks/hardware/blind_orders.py --write FOLDER     # blind/orders_predicted.csv; export to FOLDER
    python benchmarks/gpu/run_exports.py FOLDER OUT.csv --how free            # on the GPU, the persistent kernel
    python benchmarks/gpu/block_a_tile.py blind/orders_predicted.csv OUT.csv  # and that with one block a tile
    python benchmarks/hardware/blind_orders.py --add OUT.csv ...  # into blind/orders_measured.csv
    python benchmarks/hardware/blind_orders.py                    # one beside the other

Shapes are of no other row of the library, and every constant of the model was set before they were measured. Both chips
are predicted; the rows say on which they ran.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections.abc import Iterator
from itertools import combinations, product
from math import log
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

from fit_requests import tma_kernel  # noqa: E402 - beside this file
from library import HERE  # noqa: E402

FOLDER = HERE / "blind"
SKUS = {"NVIDIA H200": "h200-sxm-141gb", "NVIDIA H100 80GB HBM3": "h100-sxm5-80gb"}
Shape = tuple[int, int, int]
ROUNDS: tuple[tuple[Shape, ...], ...] = (
    ((7680, 7680, 3072), (24576, 2048, 6144), (4608, 15360, 5120), (10240, 6400, 1536), (49152, 768, 3072),
     (3584, 12800, 16384)),
    # since the last round is modelled as files deal it, and a launch alone as theirs
    ((2560, 10240, 2560), (6656, 3328, 4096), (1920, 16384, 3584), (13312, 4096, 1536), (5376, 5376, 7168),
     (3200, 6400, 4800)),
)  # fmt: skip
ORDERS, TILE, STAGES = ("row", "grouped-2", "grouped-8", "grouped-32"), "128x256x64", 3
TURNED = "256x128x64"  # in two orders; of the first round on the last two shapes
TURNED_SHAPES = (*ROUNDS[0][-2:], *ROUNDS[1])
MAKES = ("persistent", "block-a-tile")
KEY = ("chip", "make", "m", "n", "k", "tile", "order")
VALUES = {"single_ms": "milliseconds", "sustained_ms": "sustained_milliseconds", "joules": "joules"}
VALUES |= {name: name for name in ("dram_read_bytes", "l2_request_bytes", "fabric_bytes")}
APART = 0.02
Row = dict[str, str]


def cases() -> Iterator[tuple[Shape, str, str]]:
    """Shape, tile and order of each launch."""
    for shape in (shape for shapes in ROUNDS for shape in shapes):
        yield from ((shape, TILE, order) for order in ORDERS)
        yield from ((shape, TURNED, order) for order in ORDERS[::2] if shape in TURNED_SHAPES)


def predict(sku: str, make: str, shape: Shape, tile: str, order: str) -> Row:
    """What `pebble time` and `pebble simulate` say of a launch; of one block a tile at the cycles of its make."""
    from pebble.timing.power import BLOCK_A_TILE, power_of, sustained
    from pebble.timing.sustained import AFTER_A_PAUSE, sustained_rates
    from pebble.timing.waves import modelled_time

    row: Row = {"chip": sku, "make": make, "tile": tile, "order": order}
    row |= {name: str(size) for name, size in zip("mnk", shape, strict=True)}
    kernel = tma_kernel(row, "waves")
    program = kernel.family.program(kernel.workload, kernel.schedule, kernel.config)
    time = modelled_time(program, kernel.config, sustained_rates(kernel.machine, "bf16"))
    power = power_of(kernel.machine, "bf16", kernel.machine.sms)
    assert power is not None
    cycles = BLOCK_A_TILE if make == "block-a-tile" else 1.0
    again = sustained(program, kernel.config, time, power, cycles)
    moved = kernel.family.simulate(kernel.workload, kernel.schedule, kernel.config).dram_read_bytes
    served = again.requested.request_bytes + again.requested.written_bytes
    single = time.seconds_at(AFTER_A_PAUSE * cycles)
    numbers = single * 1e3, again.seconds * 1e3, again.total_joules, moved, served, again.requested.fabric_bytes
    return row | {name: f"{value:.6g}" for name, value in zip(VALUES, numbers, strict=True)}


def write(folder: Path) -> None:
    """Predict and export what was not predicted yet."""
    import pebble

    folder.mkdir(parents=True, exist_ok=True)
    said = read("orders_predicted.csv")
    new = [case for case in cases() if not any(key[2:] == (*map(str, case[0]), *case[1:]) for key in said)]
    rows = [*said.values(), *(predict(sku, make, *case) for sku in SKUS.values() for make in MAKES for case in new)]
    with open(FOLDER / "orders_predicted.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, [*KEY, *VALUES], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for shape, tile, order in new:
        text = pebble.export(order, pebble.Gemm(*shape), "triton", gpu="h200-sxm-141gb", tile=tile, stages=STAGES)
        text.save(folder / f"{'x'.join(map(str, shape))}-{tile}-{order}.py")


def add(paths: list[Path]) -> None:
    """Tables that were measured, in the columns of the predictions, beside those that are there."""
    rows = list(read("orders_measured.csv").values())
    for path in paths:
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                sizes = dict(re.findall(r"([mnk])=([0-9]+)", row.get("workload", "")))
                named = {"order": row.get("order") or row["schedule"], "make": row.get("make") or "persistent"}
                rows.append(row | sizes | named | {"chip": SKUS[row["chip"]]})
    with open(FOLDER / "orders_measured.csv", "w", newline="") as file:
        names = ["date", *KEY, "error", *VALUES.values(), "torch", "triton"]
        writer = csv.DictWriter(file, names, lineterminator="\n", restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def read(name: str) -> dict[tuple[str, ...], Row]:
    """Rows by what they are of; none where nothing was measured yet."""
    if not (FOLDER / name).exists():
        return {}
    with open(FOLDER / name, newline="") as file:
        return {tuple(row[part] for part in KEY): row for row in csv.DictReader(file)}


def ranked(both: list[tuple[Row, Row]]) -> str:
    """Pairs of orders of one kernel measured apart, how many are ranked right, and what the first choice costs."""
    kernels: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for ours, theirs in both:
        key = tuple(ours[name] for name in (*KEY[:5],))
        kernels.setdefault(key, []).append((float(ours["sustained_ms"]), float(theirs["sustained_milliseconds"])))
    right = total = 0
    costs = []
    for times in kernels.values():
        for one, other in combinations(times, 2):
            if abs(one[1] / other[1] - 1) > APART:
                total += 1
                right += (one[0] - other[0]) * (one[1] - other[1]) > 0
        costs.append(min(times)[1] / min(theirs for _, theirs in times) - 1)
    mean = sum(costs) / len(costs)
    return (
        f"{total} pairs of tile and order more than {APART:.0%} apart, {right} ranked right; the one ranked first "
        f"costs {mean:.1%} on the mean, {max(costs):.1%} at worst"
    )


def compare(every: bool) -> None:
    """Predicted over measured by kind of kernel, with ``every`` row by row, and the choices."""
    told, ran = read("orders_predicted.csv"), read("orders_measured.csv")
    for number, make, chip in product(range(len(ROUNDS)), MAKES, SKUS.values()):
        shapes = {tuple(map(str, shape)) for shape in ROUNDS[number]}
        mine = [key for key in told if key[:2] == (chip, make) and key[2:5] in shapes]
        both = [(told[key], ran[key]) for key in mine if key in ran]
        if not both:
            continue
        print(f"round {number + 1}, {make}, {chip}, {len(both)} launches")
        for ours, theirs in both if every else ():
            ratios = (
                f"{float(ours[name]) / float(theirs[column]):8.3f}" if theirs.get(column) else f"{'-':>8}"
                for name, column in VALUES.items()
            )
            print(f"  {'x'.join(ours[n] for n in 'mnk'):<18}{ours['tile']:<12}{ours['order']:<12}" + "".join(ratios))
        for name, column in VALUES.items():
            off = [log(float(ours[name]) / float(theirs[column])) for ours, theirs in both if theirs.get(column)]
            if off:
                near = [sum(abs(value) <= log(1 + limit) for value in off) for limit in (0.05, 0.10)]
                miss = sum(map(abs, off)) / len(off)
                print(f"  {name:<18} mean miss {miss:.1%}, within 5 % {near[0]}, within 10 % {near[1]} of {len(off)}")
        print(f"  {ranked(both)}")


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="predict, and export to FOLDER")
    parser.add_argument("--add", type=Path, nargs="+", metavar="OUT.csv", help="take what was measured")
    parser.add_argument("--every", action="store_true", help="print each row")
    args = parser.parse_args()
    if args.write:
        write(args.write)
    elif args.add:
        add(args.add)
    else:
        compare(args.every)
    return 0


if __name__ == "__main__":
    sys.exit(main())
