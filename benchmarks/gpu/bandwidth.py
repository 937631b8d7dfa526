"""What DRAM really delivers: by access pattern, by reads mixed with writes, by the span that is touched.

    python benchmarks/gpu/bandwidth.py OUT.csv

A kernel does nothing but move pieces of an array, each byte once: in order, tile by tile as a product reads an operand
(128 rows of 128 bytes, a pitch apart), or anywhere. `written` is the share of pieces that are stored instead of loaded.
`span` is how far apart the pieces lie: an allocation is made of pages of 2 MiB (the least that CUDA gives for memory of
the device), so spans say what page tables cost. GB/s count each byte that is read or written once; medians of launches
that queue behind each other. Needs PyTorch and Triton; two minutes.
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
except ImportError as missing:
    sys.exit(f"bandwidth.py needs PyTorch, Triton and an NVIDIA GPU: {missing}.")

GIB = 1 << 30
BLOCK = 16384  # bytes that a program has in flight


@triton.jit
def move(
    x, sums, blocks, pieces, pitch, WRITTEN: tl.constexpr, OF: tl.constexpr, PATTERN: tl.constexpr, PIECE: tl.constexpr
):
    """Moves blocks p, p + P, ...; a block is 4096 words of 4 bytes in pieces of PIECE; WRITTEN of each OF are stored.

    Where they lie: ``order``, one after the other; ``tiles``, 128 rows of a matrix whose row is ``pitch`` pieces;
    ``anywhere``, a permutation of the ``pieces`` pieces (a power of two).
    """
    ROWS: tl.constexpr = 4096 // PIECE
    rows, words = tl.arange(0, ROWS), tl.arange(0, PIECE)
    total = tl.zeros((ROWS, PIECE), dtype=tl.int32)
    for block in range(tl.program_id(0), blocks, tl.num_programs(0)):
        at = block.to(tl.int64) * ROWS + rows
        if PATTERN == "tiles":
            at = (block // pitch * ROWS + rows).to(tl.int64) * pitch + block % pitch
        if PATTERN == "anywhere":
            at = (at * 0x9E3779B1) & (pieces - 1)
            at = ((at ^ (at >> 11)) * 0x85EBCA77) & (pieces - 1)
        where = x + at[:, None] * PIECE + words[None, :]
        if block % OF < WRITTEN:
            tl.store(where, tl.full((ROWS, PIECE), 1, tl.int32))
        else:
            total += tl.load(where)
    tl.store(sums + tl.program_id(0), tl.sum(total))


def seconds(launch, times=9):
    """Median seconds of launches that wait in the queue for each other."""
    launch()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(times + 1)]
    torch.cuda.synchronize()
    torch.cuda._sleep(4_000_000)  # until the launches are queued
    marks[0].record()
    for mark in marks[1:]:
        launch()
        mark.record()
    torch.cuda.synchronize()
    return statistics.median(a.elapsed_time(b) for a, b in itertools.pairwise(marks)) / 1e3


def cases():
    """(pattern, bytes of a piece, bytes of a row or 0, span in GiB, GiB moved, blocks written, of how many)."""
    for written, of in ((0, 1), (1, 8), (1, 4), (1, 3), (1, 2), (2, 3), (1, 1)):
        yield "order", BLOCK, 0, 8, 8, written, of
    for row in (4096, 8192, 16384, 32768, 57344):
        yield "tiles", 128, row, 8, 8, 0, 1
    yield "tiles", 128, 8192, 8, 8, 1, 2
    for piece in (128, 256, 512, 1024, 4096, BLOCK):
        yield "anywhere", piece, 0, 8, 8, 0, 1
    yield "anywhere", 512, 0, 8, 8, 1, 2
    for span in (1, 2, 4, 16, 32, 64):
        yield "order", BLOCK, 0, span, min(span, 8), 0, 1
        yield "anywhere", 128, 0, span, min(span, 8), 0, 1


def measured(case, gpu):
    """One case in one row: the best of four numbers of blocks an SM."""
    pattern, piece, row, span, moved, written, of = case
    x = torch.empty(span * GIB // 4, device="cuda", dtype=torch.int32)
    sums = torch.empty(16 * gpu.multi_processor_count, device="cuda", dtype=torch.int32)
    pitch = row // piece if row else 1
    blocks = moved * GIB // BLOCK // pitch * pitch  # whole rows of tiles
    sizes = (blocks, span * GIB // piece, pitch, written, of, pattern, piece // 4)

    def taken(per_sm):
        return seconds(lambda: move[(per_sm * gpu.multi_processor_count,)](x, sums, *sizes, num_warps=4))

    best, per_sm = min((taken(per_sm), per_sm) for per_sm in (2, 4, 8, 16))
    return {
        "date": time.strftime("%Y-%m-%d"), "chip": gpu.name, "pattern": pattern, "piece_bytes": piece,
        "row_bytes": row or "", "span_gib": span, "moved_bytes": blocks * BLOCK, "written": f"{written}/{of}",
        "blocks_per_sm": per_sm, "ms": round(1e3 * best, 4), "gb_per_second": round(blocks * BLOCK / best / 1e9, 1),
    }  # fmt: skip


def main(path):
    """All cases, a row each."""
    gpu = torch.cuda.get_device_properties(0)
    fitting = [case for case in cases() if case[3] * GIB <= 0.85 * gpu.total_memory]
    rows = []
    for case in fitting:
        rows.append(measured(case, gpu))
        print(rows[-1], flush=True)
        torch.cuda.empty_cache()
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1])
