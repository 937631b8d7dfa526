"""A compute-bound kernel beside a memory-bound one on one GPU, against one after the other.

    python benchmarks/gpu/side_by_side.py OUT.csv

A GEMM (resident blocks, one an SM) runs on some SMs while a kernel that reads a large array, as a decode step reads its
KV cache, runs on the others. Both keep so much shared memory that one block fits an SM, so the split of SMs is the split
of blocks. Each row is one split: milliseconds of both together, of each alone on its share, and of each alone on the
whole GPU; medians of CUDA events. Needs PyTorch and Triton.
"""

import csv
import statistics
import sys
import time

import torch
import triton
import triton.language as tl

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


def timed(launch, repeats=7):
    """Median milliseconds."""
    seen = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in "ab")
        torch.cuda.synchronize()
        torch.cuda._sleep(1_000_000)  # until the launches are queued
        begin.record()
        launch()
        end.record()
        torch.cuda.synchronize()
        seen.append(begin.elapsed_time(end))
    return statistics.median(seen)


def main(path):
    """All splits of a few pairs."""
    gpu = torch.cuda.get_device_properties(0)
    sms = gpu.multi_processor_count
    rows_out = []
    for side, gigabytes in ((8192, 1.0), (8192, 2.0), (8192, 4.0), (4096, 0.5)):
        m = n = k = side
        a, b = (torch.randn(side, side, device="cuda", dtype=torch.bfloat16) for _ in "ab")
        c = torch.empty(side, side, device="cuda", dtype=torch.bfloat16)
        rows = int(gigabytes * 1e9) // 256 // 16384 * 16384
        x = torch.randn(rows, 128, device="cuda", dtype=torch.bfloat16)
        out = torch.zeros(4096, 128, device="cuda")
        streams = torch.cuda.Stream(), torch.cuda.Stream()

        def multiply(programs, a=a, b=b, c=c):
            bm, bn = 128, 256
            product[(programs,)](a, b, c, n, k, m // bm * (n // bn), n // bn, bm, bn, 64, num_warps=8, num_stages=3)

        def stream(programs, x=x, out=out, rows=rows):
            read[(programs,)](x, out, rows, 128, 64, num_warps=8)  # 9 or 8 stages of 16 KiB

        def both(left, right, multiply=multiply, stream=stream, streams=streams):
            start = torch.cuda.current_stream()
            for one, launch, programs in zip(streams, (multiply, stream), (left, right), strict=True):
                one.wait_stream(start)
                with torch.cuda.stream(one):
                    launch(programs)
            for one in streams:
                start.wait_stream(one)

        multiply(sms), stream(4 * sms), both(sms // 2, sms // 2), stream(sms)
        expected = a[:64].double() @ b[:, :64].double()
        error = float((c[:64, :64].double() - expected).norm() / expected.norm())
        halves = x.view(-1, 16384, 128).float().sum(1).double().sum(0)
        wrong = float((out[:sms].double().sum(0) - halves).norm() / halves.norm())
        print(side, gigabytes, "relative errors", error, wrong, flush=True)
        alone = timed(lambda: multiply(sms)), min(timed(lambda: stream(sms)), timed(lambda: stream(4 * sms)))
        for right in (4, 8, 12, 16, 20, 24, 32, 48, 66):
            left = sms - right
            row = {
                "date": time.strftime("%Y-%m-%d"), "chip": gpu.name, "m": m, "n": n, "k": k, "read_bytes": rows * 256,
                "gemm_sms": left, "read_sms": right,
                "gemm_alone_ms": alone[0], "read_alone_ms": alone[1],
                "gemm_on_its_sms_ms": timed(lambda: multiply(left)), "read_on_its_sms_ms": timed(lambda: stream(right)),
                "together_ms": timed(lambda: both(left, right)),
            }  # fmt: skip
            rows_out.append({name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()})
            print(rows_out[-1], flush=True)
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows_out[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows_out)


if __name__ == "__main__":
    main(sys.argv[1])
