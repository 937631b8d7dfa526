"""pebble's cache simulators beside libcachesim and pycachesim: first zero differences, then speed.

    python benchmarks/cachesim/compare.py [--rounds 3] [--small] > benchmarks/cachesim/recorded.md

Both sides run in turn, on one core, in one process; a ratio is that of the least CPU seconds of each in any round,
since other programs only make a round longer. libcachesim (GPL)
and pycachesim (AGPL) are comparators that the user installs: `pip install libcachesim==0.3.5 pycachesim`. With
``--smallest`` and without them, our side runs alone.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numba
import numpy as np
import traces
from flat import coalesce, flat_set_misses

from pebble.models.caches import parse_policy
from pebble.models.caches.lockstep_lru import lockstep_lru
from pebble.models.caches.lru_curve import lru_curve
from pebble.models.caches.opt import opt_misses
from pebble.schedules.gemm import GemmKernel
from pebble.schedules.orders import parse_order
from pebble.schedules.tile import TileShape
from pebble.traces import Trace, TraceChunk
from pebble.workloads import Gemm

MIB_LINES = 8192
OURS = {name: parse_policy(name).simulate for name in ("lru", "fifo", "opt")}
NEEDED = "needs libcachesim 0.3.5 to compare with: pip install libcachesim==0.3.5 pycachesim; --smallest does without."


def installed(package: str) -> str:
    """Its version, empty where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def theirs(policy: str, path: Path, capacity: int, accesses: int) -> int:
    """Misses of libcachesim's C path."""
    import libcachesim

    reader = libcachesim.TraceReader(str(path), libcachesim.TraceType.ORACLE_GENERAL_TRACE)
    cache = {"lru": libcachesim.LRU, "fifo": libcachesim.FIFO, "opt": libcachesim.Belady}[policy](
        capacity, hashpower=20
    )
    ratio, _ = cache.process_trace(reader)
    return round(ratio * accesses)


def pieces(ids: np.ndarray, sizes: np.ndarray) -> Trace:
    """A trace of pieces as `coalesce` finds them."""
    chunk = TraceChunk(ids, np.zeros(len(ids), np.uint8), np.empty(0, np.int64), 0)
    return Trace(("A",), sizes, np.zeros(len(sizes), np.uint8), len(ids), lambda: iter([chunk]))


def flat_misses(policy: str, lines: np.ndarray, count: int, capacity: int) -> int:
    """From a flat array of lines to misses."""
    return OURS[policy](pieces(*coalesce(lines, count)), capacity).misses_lines


def seconds(run: Callable[[], object], repeat: int = 1) -> tuple[float, object]:
    """CPU seconds of one run (the mean of ``repeat``), and what it returned."""
    gc.collect()
    begin = time.process_time()
    for _ in range(repeat):
        result = run()
    return (time.process_time() - begin) / repeat, result


def gate(folder: Path, smallest: bool) -> None:
    """Zero differences, or stop."""
    print("| trace | lines touched | policy | capacity | misses, both |\n|---|---|---|---|---|")
    for name, trace in traces.gate(smallest).items():
        lines = traces.flat(trace)
        path = folder / "gate.oracle"
        traces.write_oracle(trace, lines, path)
        count = int(trace.tile_lines.sum())
        for policy in OURS:
            for mib in (1, 3, 6):
                ours = OURS[policy](trace, mib * MIB_LINES).misses_lines
                expected = theirs(policy, path, mib * MIB_LINES, len(lines)) if installed("libcachesim") else ours
                for result in (ours, flat_misses(policy, lines, count, mib * MIB_LINES)):
                    if result != expected:
                        raise SystemExit(f"{name} {policy} {mib} MiB: {result} against {expected}")
                print(f"| {name} | {len(lines):,} | {policy} | {mib} MiB | {expected:,} |")
        sets(name, lines)
        path.unlink()


def sets(name: str, lines: np.ndarray) -> None:
    """16 ways, modulo, against pycachesim."""
    if not installed("pycachesim"):
        print(f"| {name} | {len(lines):,} | 16-way | - | pycachesim is not installed |")
        return
    import cachesim

    few = lines[:400_000]
    for kib in (256, 512, 2048):
        capacity = kib * MIB_LINES // 1024
        memory = cachesim.MainMemory()
        cache = cachesim.Cache("L", capacity // 16, 16, 128, "LRU", write_allocate=True, write_back=True)
        memory.load_to(cache)
        memory.store_from(cache)
        simulator = cachesim.CacheSimulator(cache, memory)
        for line in few.tolist():
            simulator.load(line * 128, 1)
        expected = cache.backend.MISS_count
        result = flat_set_misses(few, capacity, 16, hashed=False)
        if result != expected:
            raise SystemExit(f"{name} 16-way {kib} KiB: {result} against {expected}")
        print(f"| {name} | {len(few):,} | 16-way modulo LRU (pycachesim) | {kib} KiB | {expected:,} |")


def machine() -> str:
    """What ran."""
    model = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.processor())  # fmt: skip
    peer = installed("libcachesim") or "not installed"
    return (
        f"{model}, {os.cpu_count()} cores, {len(os.sched_getaffinity(0))} used; Python {platform.python_version()}, "
        f"numpy {np.__version__}, numba {numba.__version__}, libcachesim {peer}; load {os.getloadavg()[0]:.1f} before"
    )


def main() -> int:
    """Gate, then measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="an eighth of the anchor's depth")
    parser.add_argument("--gate-only", action="store_true")
    parser.add_argument("--smallest", action="store_true", help="one round on small kernels: does it run?")
    args = parser.parse_args()
    if not args.smallest and not installed("libcachesim"):
        parser.error(NEEDED)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    print("# pebble beside libcachesim and pycachesim\n")
    print(f"`python benchmarks/cachesim/compare.py --rounds {args.rounds}`, both sides in turn on one core.\n")
    print(f"Machine: {machine()}.\n\n## Zero differences\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        gate(folder, args.smallest)
        if args.smallest:
            measure(folder, 1, 1024, 128)
        elif not args.gate_only:
            measure(folder, args.rounds, 8192, 1024 if args.small else 8192)
    os.sched_setaffinity(0, cores)
    return 0


def measure(folder: Path, rounds: int, side: int, depth: int) -> None:
    """The table of ratios."""
    trace = traces.gemm(side, side, depth)
    lines = traces.flat(trace)
    count, n = int(trace.tile_lines.sum()), len(lines)
    path = folder / "anchor.oracle"
    traces.write_oracle(trace, lines, path)
    kernel = GemmKernel(Gemm(side, side, depth), TileShape(128, 128, 64))
    closed = kernel.closed_form(parse_order("row").tiles(*kernel.grid), 132)
    assert closed is not None
    size = 40 * MIB_LINES
    least, most = int(trace.tile_lines.max()), int(trace.tile_lines.sum())
    sizes = np.linspace(least, most, 4096).astype(int).tolist()

    def curve_flat() -> object:
        return lru_curve(pieces(*coalesce(lines, count)))

    # name, comparator, our run, repetitions, accept, excellent
    rows: list[tuple[str, str, Callable[[], object], int, float, float]] = [
        ("flat line LRU", "lru", lambda: flat_misses("lru", lines, count, size), 1, 40, 100),
        ("flat line FIFO", "fifo", lambda: flat_misses("fifo", lines, count, size), 1, 100, 200),
        ("flat line OPT, with its look ahead", "opt", lambda: flat_misses("opt", lines, count, size), 1, 30, 90),
        ("16-way hashed LRU, flat (against their LRU)", "lru", lambda: flat_set_misses(lines, size), 1, 15, 55),
        ("run-level LRU", "lru", lambda: OURS["lru"](trace, size), 5, 2000, 3000),
        ("run-level FIFO", "fifo", lambda: OURS["fifo"](trace, size), 5, 5000, 9000),
        ("run-level exact OPT", "opt", lambda: OURS["opt"](trace, size), 3, 400, 1500),
        ("LRU curve, all sizes, flat (against one LRU run)", "lru", curve_flat, 1, 5, 10),
        ("LRU curve, all sizes, run-level (the same)", "lru", lambda: lru_curve(trace), 2, 400, 1000),
        ("OPT curve, 4,096 sizes (against one Belady run)", "opt", lambda: opt_misses(trace, sizes), 1, 15, 60),
        ("lock-step LRU, closed form", "lru", lambda: lockstep_lru(closed, size), 50, 20000, 100000),
    ]
    for row in rows:
        row[2]()  # compile, and touch the memory once
    their: dict[str, list[float]] = {policy: [] for policy in OURS}
    our: list[list[float]] = [[] for _ in rows]
    for _ in range(rounds):
        for policy in OURS if installed("libcachesim") else ():
            spent, misses = seconds(lambda policy=policy: theirs(policy, path, size, n))
            their[policy].append(spent)
            if misses != OURS[policy](trace, size).misses_lines:
                raise SystemExit(f"anchor {policy}: {misses}")
            print(f"{policy} {spent:.1f} s", file=sys.stderr)
        for i, row in enumerate(rows):
            our[i].append(seconds(row[2], row[3])[0])
    print(f"\n## Speed: GEMM {side}x{side}x{depth} bf16, tile 128x128x64, 132 blocks a wave, row first, 40 MiB\n")
    print(f"{n:,} line accesses, {trace.touches:,} tile touches; the least CPU seconds of {rounds} rounds in turn.\n")
    print("| what | libcachesim s | pebble s | line accesses/s | ratio | accept | excellent | reached |")
    print("|---|---|---|---|---|---|---|---|")
    for row, spent in zip(rows, our, strict=True):
        ours_s, theirs_s = min(spent), min(their[row[1]], default=float("nan"))
        ratio = theirs_s / ours_s
        reached = "excellent" if ratio >= row[5] else "accept" if ratio >= row[4] else "NO"
        print(
            f"| {row[0]} | {theirs_s:.2f} | {ours_s:.3g} | {n / ours_s:.3g} | {ratio:,.0f}x | {row[4]:,}x | "
            f"{row[5]:,}x | {reached} |"
        )
    print(
        "\n*accept* is 0.6 to 0.8 of what a prototype reached that counted misses only, *excellent* more than it did;"
    )
    print("these runs count misses by operand, reads apart from writes, what is dirty and written back, and steps.")
    print(
        "\nThe splay-tree tool that draws libcachesim's LRU curves is not in the Python package; the LRU curves are put"
    )
    print(
        "against one LRU run at one size instead, which is a little faster than that tool (10.2 to 8.9 M accesses/s)."
    )


if __name__ == "__main__":
    raise SystemExit(main())
