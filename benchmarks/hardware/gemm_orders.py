"""Measure what tile orders really move: a Triton GEMM that walks a table of tiles, under Nsight Compute.

On a machine with an NVIDIA GPU, PyTorch, Triton and ncu, from the repository root:

    python benchmarks/hardware/gemm_orders.py measure measured.csv

One block computes one output tile, in the order of the table; with ``+sawtooth`` every second wave of blocks
walks k backwards. Each order is launched once after a warm-up, the L2 flushed before it by ncu. Without
a GPU, `python benchmarks/hardware/gemm_orders.py compare measured.csv` sets the recorded file beside simulations.
"""

from __future__ import annotations

import csv
import io
import subprocess
import sys

ORDERS = (
    "row", "row+sawtooth", "column", "snake", "snake-strips-16", "snake-strips-16+sawtooth", "morton", "hilbert",
    "gilbert", "grouped-4", "grouped-8", "grouped-8+sawtooth", "grouped-16", "cutlass2-4", "thunderkittens-8",
)  # fmt: skip
SHAPES = ((8192, 8192, 8192), (8192, 28672, 4096), (16384, 4096, 4096))
TILE = (128, 128, 64)
STAGES = 4
MACHINE = "h200-sxm-141gb"  # whose model stands beside the recorded file
METRICS = ("dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_sectors_op_read.sum", "gpu__time_duration.sum")


def launch() -> None:
    """Run every shape and order once; ncu watches."""
    import torch
    import triton
    import triton.language as tl

    from pebble.schedules.orders import parse_order

    @triton.jit
    def kernel(a, b, c, table, m, n, k, wave, SAW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
        pid = tl.program_id(0)
        row, col = tl.load(table + 2 * pid), tl.load(table + 2 * pid + 1)
        rm, rn, rk = row * BM + tl.arange(0, BM), col * BN + tl.arange(0, BN), tl.arange(0, BK)
        steps = k // BK
        step = BK
        first = 0
        if SAW:
            odd = (pid // wave) % 2
            first = odd * (steps - 1) * BK
            step = BK - 2 * BK * odd
        pa = a + rm[:, None].to(tl.int64) * k + (first + rk)[None, :]
        pb = b + (first + rk)[:, None].to(tl.int64) * n + rn[None, :]
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for _ in range(steps):
            acc += tl.dot(tl.load(pa), tl.load(pb))
            pa += step
            pb += step * n
        tl.store(c + rm[:, None].to(tl.int64) * n + rn[None, :], acc.to(tl.bfloat16))

    sms = torch.cuda.get_device_properties(0).multi_processor_count
    for m, n, k in SHAPES:
        torch.manual_seed(0)
        a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
        b = torch.randn(k, n, device="cuda", dtype=torch.bfloat16)
        c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        right = a[:256].float() @ b[:, :256].float()
        for name in ORDERS:
            order = parse_order(name)
            tiles = order.tiles(m // TILE[0], n // TILE[1])
            table = torch.tensor(tiles, device="cuda", dtype=torch.int32).reshape(-1)
            c.fill_(float("nan"))
            torch.cuda.nvtx.range_push(f"{m}x{n}x{k}:{name}")
            kernel[(len(tiles),)](
                a, b, c, table, m, n, k, sms, SAW=order.sawtooth, BM=TILE[0], BN=TILE[1], BK=TILE[2],
                num_warps=8, num_stages=STAGES,
            )  # fmt: skip
            torch.cuda.synchronize()
            torch.cuda.nvtx.range_pop()
            error = (c[:256, :256].float() - right[:, :256]).norm() / right[:, :256].norm()
            print("#launched", m, n, k, name, sms, f"{error:.2e}", bool(torch.isfinite(c).all()), flush=True)


def measure(path: str) -> None:
    """Run under ncu and write one row per launch."""
    command = [
        "ncu", "--csv", "--print-units", "base", "--clock-control", "none", "--kernel-name", "kernel",
        "--metrics", ",".join(METRICS), sys.executable, __file__, "launch",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    launched = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("#launched")]
    start = done.stdout.find('"ID"')
    if start < 0 or not launched:
        sys.exit(done.stdout[-3000:] + done.stderr[-3000:])
    lines = [line for line in done.stdout[start:].splitlines() if line.startswith('"')]
    found: dict[int, dict[str, str]] = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        found.setdefault(int(row["ID"]), {})[row["Metric Name"]] = row["Metric Value"].replace(",", "")
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["m", "n", "k", "order", "sms", "relative_error", "finite", *METRICS])
        for values, (_, metrics) in zip(launched, sorted(found.items()), strict=True):
            writer.writerow([*values, *(metrics[name] for name in METRICS)])


def compare(path: str) -> None:
    """Measured DRAM reads beside one LRU of nominal size, the chip's default model, and the proved bound."""
    from math import exp, log

    from pebble.bounds import lower_bound
    from pebble.capacity import trace_capacity
    from pebble.models.machine import load_machine
    from pebble.schedules.lockstep import TileShape, values_held_by_blocks
    from pebble.schedules.orders import parse_order
    from pebble.simulation import KernelConfig, simulate_gemm
    from pebble.workloads import Gemm

    machine = load_machine(MACHINE)
    models = {"lru": "lru", "hardware": machine.default_model.policy}
    ratios: dict[str, list[float]] = {name: [] for name in models}
    print(f"{'shape':<17} {'order':<26} {'measured':>9} {'lru':>9} {'hardware':>9} {'bound':>7}  DRAM read, MB")
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            gemm, tile, sms = Gemm(int(row["m"]), int(row["n"]), int(row["k"])), TileShape(*TILE), int(row["sms"])
            measured = float(row["dram__bytes_read.sum"])
            read = {}
            for name, policy in models.items():
                config = KernelConfig(tile, sms, 1, machine.l2_bytes, policy)
                read[name] = simulate_gemm(gemm, parse_order(row["order"]), config).dram_read_bytes
                ratios[name].append(read[name] / measured)
            held = values_held_by_blocks(tile, sms, STAGES)
            bound = lower_bound(gemm, trace_capacity(machine.l2_bytes, gemm, held, sms).elements)
            reads = bound.bytes - gemm.operands[2].bytes  # each C is stored once at least
            shape = f"{row['m']}x{row['n']}x{row['k']}"
            figures = " ".join(f"{value / 1e6:9,.0f}" for value in (measured, *read.values()))
            print(f"{shape:<17} {row['order']:<26} {figures} {reads / 1e6:7,.0f}")
            assert reads <= measured, "a measured kernel went below a proved bound"
    for name, values in ratios.items():
        logs = [log(value) for value in values]
        middle = sum(logs) / len(logs)
        spread = (sum((x - middle) ** 2 for x in logs) / len(logs)) ** 0.5
        within = sum(abs(value - 1) <= 0.15 for value in values)
        print(
            f"{name}: simulated / measured {exp(middle):.2f} on geometric mean, spread x/{exp(spread):.2f}, "
            f"{within} of {len(values)} within 15 %"
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["launch"]:
        launch()
    elif sys.argv[1:2] == ["compare"] and len(sys.argv) == 3:
        compare(sys.argv[2])
    elif sys.argv[1:2] == ["measure"] and len(sys.argv) == 3:
        measure(sys.argv[2])
    else:
        sys.exit(__doc__)
