"""What runs beside what on an SM: tensor cores, exponentials, vector pipes, stores; by how many blocks share the SM.

    python benchmarks/gpu/pipes.py OUT.csv

Attention forward (no mask) and products with an epilogue, or with fp8 sums that are promoted to fp32 every few steps,
as plain TMA kernels: each block does one thing after the other, so only blocks that share an SM overlap. As many blocks
as SMs times `blocks_per_sm` walk the tiles, whose number that divides: no launch has a last wave. `ms` is the median of
launches that wait in the queue, a few after each pause: too short for the limit of power. Needs PyTorch and Triton
(tensor descriptors).
"""

import csv
import itertools
import statistics
import sys
import time

try:
    import torch
    import triton
    import triton.language as tl
    from triton.tools.tensor_descriptor import TensorDescriptor
except ImportError as missing:
    sys.exit(f"pipes.py needs PyTorch, Triton and an NVIDIA GPU: {missing}.")

COLUMNS = (
    "date", "chip", "kernel", "m", "n", "k", "heads", "tile", "dtype", "warps", "stages", "epilogue", "promoted_every",
    "blocks_per_sm", "registers", "spills", "shared_bytes", "error", "ms",
)  # fmt: skip


@triton.jit
def attention(q, k, v, o, sizes, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """Exponentials after products, products after exponentials; sizes: queries, keys, tiles."""
    queries, keys, tiles = sizes
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        head, row = tile // (queries // BM), tile % (queries // BM)
        rows = q.load([head * queries + row * BM, 0])
        most = tl.full((BM,), float("-inf"), tl.float32)
        total = tl.zeros((BM,), tl.float32)
        acc = tl.zeros((BM, D), tl.float32)
        for at in range(0, keys, BN):
            scores = tl.dot(rows, k.load([head * keys + at, 0]).T)
            higher = tl.maximum(most, tl.max(scores, 1) * scale)
            weights = tl.exp2(scores * scale - higher[:, None])
            fading = tl.exp2(most - higher)
            total = total * fading + tl.sum(weights, 1)
            acc = acc * fading[:, None]
            acc = tl.dot(weights.to(tl.bfloat16), v.load([head * keys + at, 0]), acc)
            most = higher
        o.store([head * queries + row * BM, 0], (acc / total[:, None]).to(tl.bfloat16))


@triton.jit
def after(acc, EPILOGUE: tl.constexpr):
    """What is done with sums before they are stored."""
    if EPILOGUE == "silu":  # an exponential and a reciprocal
        acc = acc / (1 + tl.exp2(acc * -1.4426950408889634))
    if EPILOGUE == "tanh-silu":  # one tangent
        acc = 0.5 * acc
        acc += acc * tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [acc], tl.float32, True, 1)
    if EPILOGUE == "gelu":  # the error function: vector pipes
        acc = 0.5 * acc * (1 + tl.erf(0.7071067811865476 * acc))
    return acc


@triton.jit
def product(
    a, b, c, sizes, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, EVERY: tl.constexpr, EPILOGUE: tl.constexpr
):
    """C = f(A B^T) in columns of tiles; with EVERY, sums go to fp32 registers of their own each so many steps.

    Sizes: rows of tiles, tiles, k.
    """
    rows, tiles, k = sizes
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        row, col = tile % rows * BM, tile // rows * BN
        acc = tl.zeros((BM, BN), tl.float32)
        if EVERY:
            part = tl.zeros((BM, BN), tl.float32)
            for step in range(k // BK):
                part = tl.dot(a.load([row, step * BK]), b.load([col, step * BK]).T, part)
                if step % EVERY == EVERY - 1:
                    acc += part
                    part = tl.zeros((BM, BN), tl.float32)
        else:
            for at in range(0, k, BK):
                acc = tl.dot(a.load([row, at]), b.load([col, at]).T, acc)
        acc = after(acc, EPILOGUE)
        left, right = tl.split(tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1)))
        c.store([row, col], left.to(tl.bfloat16))
        c.store([row, col + BN // 2], right.to(tl.bfloat16))


def described(x, rows, cols):
    """A matrix, read or written in blocks of so many rows and columns."""
    return TensorDescriptor.from_tensor(x, [rows, cols])


def taken(launch, rounds=5):
    """Milliseconds: the median of launches that wait in the queue, four after each pause, the first left out."""
    launch()
    results = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        time.sleep(0.05)
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(5)]
        torch.cuda._sleep(400_000)
        marks[0].record()
        for mark in marks[1:]:
            launch()
            mark.record()
        torch.cuda.synchronize()
        results += [begin.elapsed_time(end) for begin, end in itertools.pairwise(marks[1:])]
    return statistics.median(results)


def rows_of_attention(sms):
    """Each tile of queries and keys, by how many blocks share an SM."""
    queries, keys = 4096, 4096
    for dim, heads in ((128, sms // 2), (64, sms)):
        q, k, v, o = (
            torch.randn(heads * length, dim, device="cuda", dtype=torch.bfloat16)
            for length in (queries, keys, keys, queries)
        )
        exact = torch.nn.functional.scaled_dot_product_attention(
            *(x.view(1, heads, -1, dim)[:, :1].float() for x in (q, k, v))
        )
        for bm, bn, warps, stages in (
            (128, 128, 8, 2), (128, 64, 8, 2), (128, 64, 4, 2), (64, 64, 4, 2), (64, 128, 4, 2), (128, 128, 4, 2),
        ):  # fmt: skip
            args = (described(q, bm, dim), described(k, bn, dim), described(v, bn, dim), described(o, bm, dim))
            tiles = heads * queries // bm

            def launch(grid, args=args, tiles=tiles, bm=bm, bn=bn, warps=warps, stages=stages, dim=dim):
                scale = 1.4426950408889634 / dim**0.5
                return attention[(grid,)](
                    *args, (queries, keys, tiles), scale, bm, bn, dim, num_warps=warps, num_stages=stages
                )

            row = {"kernel": "attention", "m": queries, "n": keys, "k": dim, "heads": heads, "dtype": "bf16"}
            row |= {"tile": f"{bm}x{bn}", "warps": warps, "stages": stages}
            yield from by_blocks(row, launch, tiles, lambda o=o: o[:queries].float(), exact[0, 0])


def rows_of_products(sms):
    """Epilogues at short k, and fp8 whose sums are promoted."""
    for dtype, k, tiles in (
        (torch.bfloat16, 512, ((128, 256, 64, 8, 3), (128, 128, 64, 8, 3), (128, 128, 64, 4, 3))),
        (torch.bfloat16, 2048, ((128, 256, 64, 8, 3), (128, 128, 64, 8, 3), (128, 128, 64, 4, 3))),
        (torch.float8_e4m3fn, 4096, ((128, 128, 128, 8, 3), (128, 128, 128, 4, 3), (128, 256, 128, 8, 3))),
    ):
        m, n = 64 * sms, 4096
        a, b = (torch.randn(rows, k, device="cuda").to(dtype) for rows in (m, n))
        c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        exact = a[:128].float() @ b.float().T
        fp8 = dtype == torch.float8_e4m3fn
        cases = [("none", every) for every in (0, 1, 2, 4)] if fp8 else [
            (name, 0) for name in ("none", "silu", "tanh-silu", "gelu")
        ]  # fmt: skip
        for bm, bn, bk, warps, stages in tiles:
            args = (described(a, bm, bk), described(b, bn, bk), described(c, bm, bn // 2))
            for epilogue, every in cases:
                many = m // bm * (n // bn)

                sizes, how = (m // bm, many, k), (bm, bn, bk, every, epilogue)

                def launch(grid, args=args, sizes=sizes, how=how, warps=warps, stages=stages):
                    return product[(grid,)](*args, sizes, *how, num_warps=warps, num_stages=stages)

                row = {"kernel": "product", "m": m, "n": n, "k": k, "dtype": "fp8" if fp8 else "bf16"}
                row |= {"tile": f"{bm}x{bn}x{bk}", "warps": warps, "stages": stages, "epilogue": epilogue}
                row["promoted_every"] = every
                yield from by_blocks(row, launch, many, lambda c=c: c[:128].float(), finished(exact, epilogue))


def finished(sums, epilogue):
    """The same in PyTorch."""
    if "silu" in epilogue:
        return torch.nn.functional.silu(sums)
    return torch.nn.functional.gelu(sums) if epilogue == "gelu" else sums


def by_blocks(row, launch, tiles, result, exact):
    """The row for one, two ... blocks an SM, as many as fit and divide the tiles."""
    gpu = torch.cuda.get_device_properties(0)
    try:
        kernel = launch(gpu.multi_processor_count)
    except Exception as error:  # out of shared memory, mostly: the case is left out
        print(row["kernel"], row["tile"], type(error).__name__, str(error)[:90], flush=True)
        return
    torch.cuda.synchronize()
    error = float((result() - exact).abs().max() / exact.abs().max())
    threads, shared = 32 * row["warps"], kernel.metadata.shared
    fit = min(65536 // (kernel.n_regs * threads), 227 * 1024 // (shared + 1024), 2048 // threads)
    for blocks in range(1, fit + 1):
        if tiles % (blocks * gpu.multi_processor_count) == 0:
            ms = taken(lambda blocks=blocks: launch(blocks * gpu.multi_processor_count))
            yield {
                "date": time.strftime("%Y-%m-%d"), "chip": gpu.name, **row, "blocks_per_sm": blocks,
                "registers": kernel.n_regs, "spills": kernel.n_spills, "shared_bytes": shared,
                "error": f"{error:.1e}", "ms": round(ms, 5),
            }  # fmt: skip


def main(path):
    """All cases, a row each."""
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n", restval="")
        writer.writeheader()
        for rows in (rows_of_attention(sms), rows_of_products(sms)):
            for row in rows:
                writer.writerow(row)
                print({name: row[name] for name in row if name not in ("date", "chip")}, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
