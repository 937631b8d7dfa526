"""Products by a kernel with one block a tile and tensor descriptors, in several orders: times, bytes at four levels.

    python benchmarks/gpu/block_a_tile.py PLAN.csv OUT.csv

PLAN.csv has columns m, n, k, tile and order (``row`` or ``grouped-G``); other columns are ignored, and so are rows of
another ``make`` than ``block-a-tile``. OUT.csv gets a row for each: the error against a product in float64,
milliseconds of a launch by itself after a pause, of sustained runs (each in turn, medians of the rounds), and what SMs
receive, L2 serves, its fabric carries and DRAM moves, by ncu. Nothing of pebble is needed. No setting of the GPU is
changed. Needs PyTorch and Triton (tensor descriptors).
"""

from __future__ import annotations

import csv
import io
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

try:
    import torch
    import triton
    import triton.language as tl
    from triton.tools.tensor_descriptor import TensorDescriptor
except ImportError as missing:
    sys.exit(f"block_a_tile.py needs PyTorch, Triton and an NVIDIA GPU: {missing}.")

ROUNDS, SECONDS, SINGLES, PAUSE = 4, 0.3, 9, 0.15
METRICS = {
    "dram_read_bytes": ("dram__bytes_read.sum", 1),
    "dram_write_bytes": ("dram__bytes_write.sum", 1),
    "sm_bytes": ("l1tex__m_xbar2l1tex_read_bytes.sum", 1),
    "l2_request_bytes": ("lts__t_sectors_srcunit_tex.sum", 32),
    "fabric_bytes": ("lts__t_sectors_srcunit_ltcfabric.sum", 32),
}
KERNEL = "tile_kernel"
NCU = ("ncu", "--profile-from-start", "off", "--clock-control", "none", "--cache-control", "all", "-k", KERNEL)
COLUMNS = ("date", "chip", "make", "m", "n", "k", "tile", "stages", "order", "error", "milliseconds")
COLUMNS += ("sustained_milliseconds", *METRICS, "torch", "triton")
STAGES, WARPS = 3, 8
Row = dict[str, Any]


@triton.jit(do_not_specialize=["GROUP"])  # type: ignore[untyped-decorator]
def tile_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP):  # type: ignore[no-untyped-def]
    pid = tl.program_id(0)
    rows, cols = tl.cdiv(M, BM), tl.cdiv(N, BN)
    band = pid // (GROUP * cols)
    height = min(rows - band * GROUP, GROUP)
    inside = pid % (GROUP * cols)
    row, col = band * GROUP + inside % height, inside // height
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(tl.cdiv(K, BK)):
        total = tl.dot(a.load([row * BM, step * BK]), b.load([step * BK, col * BN]), total)
    c.store([row * BM, col * BN], total.to(tl.bfloat16))


class Product:
    """The operands of one size, and its launches."""

    def __init__(self, m: int, n: int, k: int) -> None:
        torch.manual_seed(0)
        self.sizes = m, n, k
        self.a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
        self.b = torch.randn(k, n, device="cuda", dtype=torch.bfloat16)
        self.c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)

    def run(self, row: Row) -> None:
        """One launch."""
        bm, bn, bk = map(int, row["tile"].split("x"))
        m, n, _ = self.sizes
        pairs = ((self.a, (bm, bk)), (self.b, (bk, bn)), (self.c, (bm, bn)))
        operands = [TensorDescriptor.from_tensor(tensor, list(block)) for tensor, block in pairs]
        group = 1 if row["order"] == "row" else int(row["order"].removeprefix("grouped-"))
        grid = (triton.cdiv(m, bm) * triton.cdiv(n, bn),)
        tile_kernel[grid](*operands, *self.sizes, bm, bn, bk, group, num_stages=STAGES, num_warps=WARPS)

    def error(self) -> float:
        """Of some rows against float64, over the largest value."""
        some = torch.arange(0, self.sizes[0], max(1, self.sizes[0] // 64), device="cuda")
        exact = self.a[some].double() @ self.b.double()
        return float((self.c[some].double() - exact).abs().max() / exact.abs().max())


def milliseconds(launch: Any, count: int) -> float:
    """Of a launch, the mean of so many in a row."""
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    first.record()
    for _ in range(count):
        launch()
    last.record()
    torch.cuda.synchronize()
    return float(first.elapsed_time(last)) / count


def single(launch: Any) -> float:
    """Of one launch after a pause, the median."""
    times = []
    for _ in range(SINGLES):
        time.sleep(PAUSE)
        torch.cuda._sleep(200_000)  # until the launch is queued
        times.append(milliseconds(launch, 1))
    return statistics.median(times)


def measured(rows: list[Row]) -> None:
    """Adds error and times to rows of one product."""
    product = Product(*(int(rows[0][name]) for name in "mnk"))
    turns: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        product.run(row)
        row |= {"error": f"{product.error():.2e}", "milliseconds": round(single(lambda row=row: product.run(row)), 5)}
    for turn in range(ROUNDS):
        for i, row in list(enumerate(rows))[:: 1 if turn % 2 == 0 else -1]:
            count = max(3, round(SECONDS * 1e3 / row["milliseconds"]))
            turns[i].append(milliseconds(lambda row=row: product.run(row), count))
    for i, row in enumerate(rows):
        row["sustained_milliseconds"] = round(statistics.median(turns[i]), 5)


def profiled(path: str) -> None:
    """Child process under ncu: one launch of each row."""
    for rows in products(Path(path)):
        product = Product(*(int(rows[0][name]) for name in "mnk"))
        for row in rows:
            product.run(row)
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
            product.run(row)
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()


def bytes_of(path: Path) -> list[Row]:
    """Counters of each launch of `profiled`, in its order."""
    names = ",".join(metric for metric, _ in METRICS.values())
    command = [*NCU, "--csv", "--print-units", "base", "--metrics", names, sys.executable, __file__]
    done = subprocess.run([*command, "--profiled", str(path)], capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    results: dict[str, Row] = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        name, size = next((name, size) for name, (metric, size) in METRICS.items() if metric == row["Metric Name"])
        value = row["Metric Value"].replace(",", "")
        results.setdefault(row["ID"], {})[name] = size * int(float(value))
    return list(results.values())


def products(path: Path) -> list[list[Row]]:
    """The rows of a plan by product."""
    found: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            key = *(row[name] for name in "mnk"), row["tile"], row["order"]
            if row.get("make", "block-a-tile") == "block-a-tile" and key not in found:
                found[key] = [{name: row[name] for name in ("m", "n", "k", "tile", "order")}]
    grouped: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for key, rows in found.items():
        grouped[key[:3]] += rows
    return list(grouped.values())


def main() -> int:
    """Read the command line."""
    if sys.argv[1:2] == ["--profiled"]:
        profiled(sys.argv[2])
        return 0
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    plan, output = Path(sys.argv[1]), Path(sys.argv[2])
    rows = []
    for part in products(plan):
        measured(part)
        rows += part
        print(*(f"{row['m']}x{row['n']}x{row['k']} {row['tile']} {row['order']} {row['sustained_milliseconds']}"
                for row in part), sep="\n", flush=True)  # fmt: skip
    for row, counted in zip(rows, bytes_of(plan), strict=True):
        row |= counted
    about = {"date": time.strftime("%Y-%m-%d"), "chip": torch.cuda.get_device_properties(0).name}
    about |= {"make": "block-a-tile", "stages": STAGES, "torch": torch.__version__, "triton": triton.__version__}
    with output.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(about | row for row in rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
