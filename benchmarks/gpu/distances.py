"""What a byte costs an SM by where it lies: its own shared memory, another SM's, L2, DRAM: bandwidth, latency, joules.

    python benchmarks/gpu/distances.py OUT.csv

All SMs read again and again, 16 bytes a thread; joules are what the board draws beyond a kernel whose threads sleep,
over the bytes: with the instructions that read. Latency is one thread's, each read at the address that the one before
gave. Another SM's shared memory is that of the next block of a cluster (`mapa`, `ld.shared::cluster`). Needs PyTorch
2.9 or later (NVRTC), pynvml, and a GPU of compute capability 9.0.
"""

import csv
import sys
import time

try:
    import pynvml
    import torch
except ImportError as missing:
    sys.exit(f"distances.py needs PyTorch, pynvml and an NVIDIA GPU: {missing}.")

THREADS, ROUNDS = 1024, 4096
SECONDS, REPEATS = 1.5, 3
COLUMNS = ("date", "chip", "place", "cluster", "bytes", "ms", "terabytes_per_second", "cycles", "watts", "picojoules")

# at: where this block reads; loads differ in every turn, or the assembler would keep what it has read
SOURCE = r"""
typedef unsigned long long wide;
#define LOAD(kind, at, how) \
    asm volatile("ld." kind ".v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : how(at))
#define NEXT(kind, at, how) asm volatile("ld." kind ".u32 %0, [%1];" : "=r"(next) : how(at))

__device__ __forceinline__ unsigned place_of(const void* words) {
    unsigned at = (unsigned)__cvta_generic_to_shared(words), rank, result;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (PLACE != 1) return at;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(result) : "r"(at), "r"((rank + 1) % CLUSTER));
    return result;
}

__device__ __forceinline__ void together() {
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(1024, 1)
work(const uint4* from, wide pieces, unsigned rounds, unsigned* out, long long* cycles) {
    __shared__ __align__(16) unsigned words[8192];
    for (unsigned i = threadIdx.x; i < 8192; i += blockDim.x) words[i] = CHASE ? (i * 4 + 4112) % 32768 : i;
    __syncthreads();
    together();
    unsigned at = place_of(words), sum = 0, next = 0, a = 0, b = 0, c = 0, d = 0;
    wide piece = (wide)blockIdx.x * blockDim.x + threadIdx.x, step = (wide)gridDim.x * blockDim.x;
    long long began = clock64();
    for (unsigned i = 0; i < rounds; ++i) {
        if (CHASE && threadIdx.x == 0) {
            if (PLACE == 0) NEXT("shared", at + next, "r");
            if (PLACE == 1) NEXT("shared::cluster", at + next, "r");
            if (PLACE == 2) NEXT("global.cg", (const char*)from + (wide)next * 128, "l");
        }
        #pragma unroll 8
        for (unsigned j = 0; j < 8 && !CHASE; ++j) {
            unsigned here = at + (threadIdx.x * 16 + j * 4096 + i * 16) % 32768;
            if (PLACE == 0) LOAD("shared", here, "r");
            if (PLACE == 1) LOAD("shared::cluster", here, "r");
            if (PLACE == 2) {
                LOAD("global.cg", from + piece, "l");
                piece += step;
                if (piece >= pieces) piece -= pieces;
            }
            sum ^= a ^ b ^ c ^ d;
        }
        if (PLACE < 0) __nanosleep(1000);
    }
    if (CHASE && blockIdx.x == 0 && threadIdx.x == 0) *cycles = clock64() - began;
    together();
    if ((sum ^ next) == 0x12345678) out[blockIdx.x] = sum;
}
"""


def kernel(place, cluster, chase=False):
    """Compiled: place -1 asleep, 0 own shared memory, 1 that of the next block, 2 global memory."""
    defined = f"#define PLACE {place}\n#define CLUSTER {cluster}\n#define CHASE {int(chase)}\n"
    return torch.cuda._compile_kernel(defined + SOURCE, "work")


def joules_of(handle, launch, count):
    """Seconds and joules of so many launches: by the board's counter, which moves every 20 ms or so."""
    torch.cuda.synchronize()
    before, began = pynvml.nvmlDeviceGetTotalEnergyConsumption(handle), time.perf_counter()
    for _ in range(count):
        launch()
    torch.cuda.synchronize()
    return time.perf_counter() - began, (pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) - before) / 1e3


def streamed(handle, work, blocks, buffer, rounds):
    """Median seconds of a launch and watts over some seconds of launches."""
    out, cycles = torch.zeros(4096, dtype=torch.int32, device="cuda"), torch.zeros(1, dtype=torch.int64, device="cuda")
    args = [buffer, buffer.numel() // 4, rounds, out, cycles]

    def launch():
        work((blocks, 1, 1), (THREADS, 1, 1), args)

    launch()
    once, _ = joules_of(handle, launch, 3)
    count = max(3, int(SECONDS / (once / 3)))
    joules_of(handle, launch, count // 3)  # warm: clocks and temperature
    results = sorted(joules_of(handle, launch, count) for _ in range(REPEATS))
    seconds, joules = results[len(results) // 2]
    return seconds / count, joules / seconds


def chased(work, blocks, buffer, rounds, cold):
    """Cycles of one read; unless ``cold`` of lines that were read before."""
    out, cycles = torch.zeros(4096, dtype=torch.int32, device="cuda"), torch.zeros(1, dtype=torch.int64, device="cuda")
    for many in (1 if cold else rounds, rounds):
        work((blocks, 1, 1), (32, 1, 1), [buffer, buffer.numel() // 4, many, out, cycles])
    torch.cuda.synchronize()
    return int(cycles[0]) / rounds


def ring(lines):
    """A random cycle through so many lines of 128 bytes: the first word of each is the number of the next."""
    order = torch.randperm(lines, device="cuda")
    result = torch.zeros(lines * 32, dtype=torch.int32, device="cuda")
    result[order * 32] = order.roll(-1).to(torch.int32)
    return result


def main(path):
    """All places, a row each."""
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    gpu = torch.cuda.get_device_properties(0)
    sms = gpu.multi_processor_count
    small, large = ring(1 << 16), ring(1 << 24)  # 8 MiB and 2 GiB
    rows = []
    _, floor = streamed(handle, kernel(-1, 1), sms, small, ROUNDS)
    print(f"asleep: {floor:.0f} W", flush=True)
    for name, place, cluster, buffer, rounds in (
        ("shared", 0, 1, small, 8 * ROUNDS), ("other SM", 1, 2, small, ROUNDS), ("other SM", 1, 4, small, ROUNDS),
        ("other SM", 1, 8, small, ROUNDS), ("L2", 2, 1, small, ROUNDS), ("DRAM", 2, 1, large, ROUNDS),
    ):  # fmt: skip
        blocks = sms // cluster * cluster
        seconds, watts = streamed(handle, kernel(place, cluster), blocks, buffer, rounds)
        moved = blocks * THREADS * rounds * 8 * 16
        latency = chased(kernel(place, cluster, chase=True), cluster, buffer, 4096, name == "DRAM")
        rows.append({
            "date": time.strftime("%Y-%m-%d"), "chip": gpu.name, "place": name, "cluster": cluster, "bytes": moved,
            "ms": round(1e3 * seconds, 4), "terabytes_per_second": round(moved / seconds / 1e12, 3),
            "cycles": round(latency, 1), "watts": round(watts, 1),
            "picojoules": round(1e12 * (watts - floor) * seconds / moved, 2),
        })  # fmt: skip
        print(rows[-1], flush=True)
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1])
