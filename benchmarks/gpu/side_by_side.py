"""A compute-bound kernel beside a memory-bound one on one GPU, against one after the other.

    python benchmarks/gpu/side_by_side.py OUT.csv

A GEMM (resident blocks, one an SM) runs on some SMs while a kernel that reads a large array, as a decode step reads its
KV cache, runs on the others. Both keep so much shared memory that one block fits an SM, so that the split of SMs is the
split of blocks. Each row is one split: milliseconds of both together, of each alone on its share, and of each alone on
the whole GPU; medians of CUDA events. Needs PyTorch and Triton.
"""

import csv
import statistics
import sys
import time

try:
    import torch
    import triton
    import triton.language as tl
except ImportError as missing:
    sys.exit(f"side_by_side.py needs PyTorch, Triton and an NVIDIA GPU: {missing}.")


@triton.jit
def product(a, b, c, n, k, tiles, TILES_N: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = A B, groups of 8 tile rows; program p takes tiles p, p + P, ..."""
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        group, at = tile // (8 * TILES_N), tile % (8 * TILES_N)
        row, col = group * 8 + at % 8, at // 8
        rm, rn, rk = row * BM + tl.arange(0, BM), col * BN + tl.arange(0, BN), tl.arange(0, BK)
        pa = a + rm[:, None].to(tl.int64) * k + rk[None, :]
        pb = b + rk[:, None].to(tl.int64) * n + rn[None, :]
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for at_k in range(0, k, BK):
            acc = tl.dot(tl.load(pa + at_k), tl.load(pb + at_k.to(tl.int64) * n), acc)
        tl.store(c + rm[:, None].to(tl.int64) * n + rn[None, :], acc.to(c.dtype.element_ty))


@triton.jit
def read(x, out, rows, D: tl.constexpr, ROWS: tl.constexpr):
    """Sums of the columns of X (rows x D), a row of sums a program: every value is read once."""
    ra, rd = tl.arange(0, ROWS), tl.arange(0, D)
    total = tl.zeros((ROWS, D), dtype=tl.float32)
    for block in tl.range(tl.program_id(0), rows // ROWS, tl.num_programs(0), num_stages=9):
        at = (block * ROWS + ra)[:, None].to(tl.int64) * D + rd[None, :]
        total += tl.load(x + at).to(tl.float32)
    tl.store(out + tl.program_id(0) * D + rd, tl.sum(total, 0))


def timed(launch, *programs):
    """Median milliseconds of seven launches."""
    seen = []
    for _ in range(7):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in "ab")
        torch.cuda.synchronize()
        torch.cuda._sleep(1_000_000)  # until the launches are queued
        begin.record()
        launch(*programs)
        end.record()
        torch.cuda.synchronize()
        seen.append(begin.elapsed_time(end))
    return round(statistics.median(seen), 4)


class Pair:
    """A GEMM of square operands and an array to read."""

    def __init__(self, side, read_bytes):
        self.side, self.rows = side, read_bytes // 256 // 16384 * 16384
        self.a, self.b = (torch.randn(side, side, device="cuda", dtype=torch.bfloat16) for _ in "ab")
        self.c = torch.empty(side, side, device="cuda", dtype=torch.bfloat16)
        self.x = torch.randn(self.rows, 128, device="cuda", dtype=torch.bfloat16)
        self.sums = torch.zeros(4096, 128, device="cuda")
        self.streams = torch.cuda.Stream(), torch.cuda.Stream()

    def multiply(self, programs):
        """C = A B on so many SMs."""
        tiles = self.side // 128 * (self.side // 256)
        sizes = (self.side, self.side, tiles, self.side // 256, 128, 256, 64)
        product[(programs,)](self.a, self.b, self.c, *sizes, num_warps=8, num_stages=3)

    def read(self, programs):
        """All of X on so many SMs; 8 or 9 stages of 16 KiB."""
        read[(programs,)](self.x, self.sums, self.rows, 128, 64, num_warps=8)

    def both(self, left, right):
        """Side by side."""
        start = torch.cuda.current_stream()
        for stream, launch, programs in zip(self.streams, (self.multiply, self.read), (left, right), strict=True):
            stream.wait_stream(start)
            with torch.cuda.stream(stream):
                launch(programs)
        for stream in self.streams:
            start.wait_stream(stream)

    def errors(self, sms):
        """Relative errors of both results against float64; compiles all launches."""
        self.both(sms // 2, sms // 2)
        self.read(4 * sms)
        self.read(sms)
        expected = self.a[:64].double() @ self.b[:, :64].double()
        sums = self.x.view(-1, 16384, 128).float().sum(1).double().sum(0)
        of_product = (self.c[:64, :64].double() - expected).norm() / expected.norm()
        return float(of_product), float((self.sums[:sms].double().sum(0) - sums).norm() / sums.norm())


def main(path):
    """All splits of a few pairs."""
    gpu = torch.cuda.get_device_properties(0)
    sms = gpu.multi_processor_count
    rows = []
    for side, gigabytes in ((8192, 1.0), (8192, 2.0), (8192, 4.0), (4096, 0.5)):
        pair = Pair(side, int(gigabytes * 1e9))
        print(f"{side} and {gigabytes} GB: relative errors", *pair.errors(sms), flush=True)
        multiply_alone = timed(pair.multiply, sms)
        read_alone = min(timed(pair.read, sms), timed(pair.read, 4 * sms))
        for right in (4, 8, 12, 16, 20, 24, 32, 48, 66):
            left = sms - right
            row = {
                "date": time.strftime("%Y-%m-%d"), "chip": gpu.name, "m": side, "n": side, "k": side,
                "read_bytes": pair.rows * 256, "gemm_sms": left, "read_sms": right,
                "gemm_alone_ms": multiply_alone, "read_alone_ms": read_alone,
                "gemm_on_its_sms_ms": timed(pair.multiply, left), "read_on_its_sms_ms": timed(pair.read, right),
                "together_ms": timed(pair.both, left, right),
            }  # fmt: skip
            print(row, flush=True)
            rows.append(row)
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1])
