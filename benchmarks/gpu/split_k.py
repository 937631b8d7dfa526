"""Products whose k is cut: split-K and Stream-K beside whole tiles, in one TMA kernel.

    python benchmarks/gpu/split_k.py OUT.csv

Resident blocks, one an SM, walk a list of segments: a tile of C and some of its k steps. A block that does not own its
tile writes its part in fp32; under Stream-K the owner waits for the parts and adds them, under split-K a second kernel
does. Tiles of 128 x 256 x 64, 4 stages, order grouped-8, bf16. Each result is checked against cuBLAS. `ms` is of a
launch that waited in the queue, `sustained_ms` the median of four quarters of a second of launches, each execution in
turn. Needs PyTorch and Triton (tensor descriptors).
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
    sys.exit(f"split_k.py needs PyTorch, Triton and an NVIDIA GPU: {missing}.")

BM, BN, BK = 128, 256, 64
SHAPES = (
    (2048, 2048, 16384), (4096, 4096, 4096), (1024, 1024, 32768), (1536, 1536, 8192), (3072, 3072, 6144),
    (512, 2048, 16384), (2560, 2560, 2560), (4608, 4608, 4608), (4096, 1024, 14336), (8192, 8192, 1024),
)  # fmt: skip
EXECUTIONS = ("persistent", "split-k-2", "split-k-4", "split-k-8", "stream-k")


@triton.jit
def walk(a, b, c, parts, flags, work, epoch, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Segments of seven numbers: row, column, first step, end, part that is written or -1, parts that are added."""
    segments, starts = work
    where = tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    for i in range(tl.load(starts + tl.program_id(0)), tl.load(starts + tl.program_id(0) + 1)):
        at = segments + i * 7
        row, col, begin, end = tl.load(at), tl.load(at + 1), tl.load(at + 2), tl.load(at + 3)
        written, first, last = tl.load(at + 4), tl.load(at + 5), tl.load(at + 6)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(begin, end):
            acc = tl.dot(a.load([row * BM, k * BK]), b.load([k * BK, col * BN]), acc)
        if written >= 0:
            tl.store(parts + written.to(tl.int64) * BM * BN + where, acc)
            tl.debug_barrier()
            tl.atomic_xchg(flags + written, epoch, sem="release")
        else:
            for part in range(first, last):
                while tl.atomic_add(flags + part, 0, sem="acquire") != epoch:
                    pass
                acc += tl.load(parts + part.to(tl.int64) * BM * BN + where)
            left, right = tl.split(tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1)))
            c.store([row * BM, col * BN], left.to(tl.bfloat16))  # in halves: four stages leave no room for all
            c.store([row * BM, col * BN + BN // 2], right.to(tl.bfloat16))


@triton.jit
def add(
    parts, c, n, SLICES: tl.constexpr, TILES_N: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ROWS: tl.constexpr
):
    """C of all slices, ROWS rows of a tile a program; the parts of a tile lie one after the other."""
    tile, strip = tl.program_id(0) // (BM // ROWS), tl.program_id(0) % (BM // ROWS)
    rows, cols = strip * ROWS + tl.arange(0, ROWS), tl.arange(0, BN)
    acc = tl.zeros((ROWS, BN), dtype=tl.float32)
    for part in range(SLICES):
        at = (tile * SLICES + part).to(tl.int64) * BM * BN
        acc += tl.load(parts + at + rows[:, None] * BN + cols[None, :])
    row, col = tile // TILES_N * BM + rows, tile % TILES_N * BN + cols
    tl.store(c + row[:, None].to(tl.int64) * n + col[None, :], acc.to(tl.bfloat16))


def grouped(rows, cols, height=8):
    """Tiles in groups of rows, each walked column by column."""
    for top in range(0, rows, height):
        for col in range(cols):
            yield from ((row, col) for row in range(top, min(rows, top + height)))


def cut(tiles, steps, slots, execution):
    """The segments of each slot, and how many parts there are."""
    dealt = [[] for _ in range(slots)]
    if execution == "persistent":
        for number, (row, col) in enumerate(tiles):
            dealt[number % slots].append((row, col, 0, steps, -1, 0, 0))
        return dealt, 0
    if execution == "stream-k":
        total, parts = len(tiles) * steps, 0
        edges = [slot * total // slots for slot in range(slots + 1)]
        owned = {}
        for edge, end in itertools.pairwise(edges):  # parts of a tile that others begin, in the order of k
            while edge < end:
                tile, begin = divmod(edge, steps)
                stop = min(steps, begin + end - edge)
                if begin:
                    owned.setdefault(tile, []).append((parts, begin))
                    parts += 1
                edge += stop - begin
        for slot, (edge, end) in enumerate(itertools.pairwise(edges)):
            while edge < end:
                tile, begin = divmod(edge, steps)
                stop, of = min(steps, begin + end - edge), owned.get(tile, [])
                mine = next((part for part, first in of if first == begin), -1)
                first = of[0][0] if of and not begin else 0
                dealt[slot].append((*tiles[tile], begin, stop, mine, first, first + (0 if begin else len(of))))
                edge += stop - begin
        return dealt, parts
    slices = int(execution.removeprefix("split-k-"))
    length = -(-steps // slices)
    for number in range(len(tiles) * slices):
        part, tile = divmod(number, len(tiles))
        row, col = tiles[tile]
        written = (row * (1 + max(c for _, c in tiles)) + col) * slices + part
        begin = min(steps, part * length)
        dealt[number % slots].append((row, col, begin, min(steps, begin + length), written, 0, 0))
    return dealt, len(tiles) * slices


class Case:
    """One product under one execution."""

    def __init__(self, shape, execution, sms):
        m, n, k = shape
        self.a, b = (torch.randn(size, device="cuda", dtype=torch.bfloat16) for size in ((m, k), (k, n)))
        self.b, self.c = b, torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        tiles = list(grouped(m // BM, n // BN))
        dealt, parts = cut(tiles, k // BK, sms, execution)
        self.slices = int(execution[8:]) if execution.startswith("split") else 0
        self.tiles, self.cols = len(tiles), n // BN
        self.parts = torch.empty(max(1, parts) * BM * BN, device="cuda")
        self.flags = torch.zeros(max(1, parts), device="cuda", dtype=torch.int32)
        starts = [0, *itertools.accumulate(len(each) for each in dealt)]
        table = [segment for each in dealt for segment in each]
        self.table, self.starts = (torch.tensor(x, device="cuda", dtype=torch.int32) for x in (table, starts))
        operands = ((self.a, [BM, BK]), (self.b, [BK, BN]), (self.c, [BM, BN // 2]))
        self.operands = [TensorDescriptor.from_tensor(*operand) for operand in operands]
        self.sms, self.epoch = sms, 1

    def launch(self):
        """The kernel, and under split-K the one that adds."""
        self.epoch += 1
        walk[(self.sms,)](
            *self.operands, self.parts, self.flags, (self.table, self.starts), self.epoch, BM, BN, BK,
            num_warps=8, num_stages=4,
        )  # fmt: skip
        if self.slices:
            grid = (self.tiles * BM // 16,)
            add[grid](self.parts, self.c, self.c.shape[1], self.slices, self.cols, BM, BN, 16, num_warps=4)

    def error(self):
        """Relative, against cuBLAS."""
        self.c.zero_()
        self.launch()
        expected = (self.a @ self.b).float()
        return float((self.c.float() - expected).norm() / expected.norm())


def queued(launch):
    """Median milliseconds of 15 launches, the GPU asleep until each is queued."""
    result = []
    for _ in range(15):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in "ab")
        torch.cuda.synchronize()
        torch.cuda._sleep(1_000_000)
        begin.record()
        launch()
        end.record()
        torch.cuda.synchronize()
        result.append(begin.elapsed_time(end))
    return statistics.median(result)


def again_and_again(launch, alone, seconds=0.25):
    """Milliseconds a launch over a quarter of a second of them."""
    count = max(10, int(seconds / (alone / 1e3)))
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in "ab")
    begin.record()
    for _ in range(count):
        launch()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / count


def main(path):
    """All shapes, each execution in turn, and cuBLAS."""
    gpu = torch.cuda.get_device_properties(0)
    rows = []
    for shape in SHAPES:
        cases = {execution: Case(shape, execution, gpu.multi_processor_count) for execution in EXECUTIONS}
        launches = {execution: case.launch for execution, case in cases.items()}
        errors = {execution: case.error() for execution, case in cases.items()}
        first = cases["persistent"]
        launches["cublas"] = lambda a=first.a, b=first.b, c=first.c: torch.mm(a, b, out=c)
        alone = {execution: queued(launch) for execution, launch in launches.items()}
        rounds = {execution: [] for execution in launches}
        for turn in range(4):
            order = list(launches)[turn:] + list(launches)[:turn]
            for execution in order:
                rounds[execution].append(again_and_again(launches[execution], alone[execution]))
        for execution in launches:
            rows.append(
                {
                    "date": time.strftime("%Y-%m-%d"), "chip": gpu.name, "m": shape[0], "n": shape[1], "k": shape[2],
                    "execution": execution, "ms": round(alone[execution], 4),
                    "sustained_ms": round(statistics.median(rounds[execution]), 4),
                    "error": f"{errors.get(execution, 0):.1e}",
                }
            )  # fmt: skip
            print(rows[-1], flush=True)
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1])
