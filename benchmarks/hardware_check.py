"""Published hardware measurements beside the default cache model of each GPU: `python benchmarks/hardware_check.py`.

One model per chip, that of its machine file; nothing is fitted to a case. The measurements and their sources are those
of benchmarks/hardware/published.csv. Writes the table to stdout; a recorded run is in benchmarks/hardware_check.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, log
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent / "hardware")]

from library import HERE, read_rows  # noqa: E402

from pebble.families import simulate  # noqa: E402
from pebble.models.caches import parse_policy  # noqa: E402
from pebble.models.machine import load_machine  # noqa: E402
from pebble.schedules.orders import parse_order  # noqa: E402
from pebble.schedules.tile import TileShape  # noqa: E402
from pebble.simulation import KernelConfig, Traffic  # noqa: E402
from pebble.traces import Trace, TraceChunk  # noqa: E402
from pebble.workloads import Gemm  # noqa: E402

MIB = 2**20
PUBLISHED = list(read_rows([HERE / "published.csv"]))


@dataclass(frozen=True)
class Row:
    """One line of the table; ``limit`` is the error that must not be exceeded, None where the case is only shown."""

    case: str
    measured: float
    model: float
    unit: str
    limit: float | None
    note: str

    @property
    def error(self) -> float:
        """Relative error of the model."""
        return self.model / self.measured - 1


def gemm_on(sku: str, gemm: Gemm, order: str, tile: str, policy: str | None = None) -> Traffic:
    """A GEMM on the default model of a GPU, or on another."""
    machine = load_machine(sku)
    model = policy or machine.default_model.policy
    config = KernelConfig(TileShape.parse(tile), machine.sms, 1, machine.l2_bytes, model)
    return simulate(gemm, parse_order(order), config)


def in_kernel_bytes(traffic: Traffic) -> int:
    """What a counter that stops with the kernel sees: dirty lines still in the cache are not yet written."""
    return traffic.dram_bytes - traffic.residue_bytes


def h20() -> Iterator[Row]:
    """fp16 4096^3, tile 128x256x64, 512 blocks in row order; ncu memory throughput times duration."""
    megabytes = in_kernel_bytes(gemm_on("h20", Gemm(4096, 4096, 4096, "fp16"), "row", "128x256x64")) / 1e6
    kernels = ("one tile a block", "persistent", "persistent, grouped no-op")
    rows = [row for row in PUBLISHED if row["chip"] == "h20"]
    for kernel, row in zip(kernels, rows, strict=True):
        measured = int(row["dram_bytes"]) / 1e6
        yield Row(f"H20 fp16 4096^3, {kernel}", measured, megabytes, "MB", 0.10, "iwzbi/cutedsl-ops, ncu reports")


def cyclic_reads(sms: int, chunks: int, rounds: int, pieces: int = 8) -> Trace:
    """gpu-l2-cache: block b reads 512 KiB chunk b mod R; 2 blocks an SM, and in steady state blocks start in turn."""
    slots = 2 * sms
    block = np.repeat(np.arange(slots * rounds), pieces)
    piece = np.tile(np.arange(pieces), slots * rounds)
    order = np.argsort(block + piece * (slots / pieces), kind="stable")
    ids = (block % chunks * pieces + piece)[order].astype(np.int32)
    sm = (block % slots % sms)[order].astype(np.int32)
    chunk = TraceChunk(ids, np.zeros(len(ids), np.uint8), np.empty(0, np.int64), 0, lambda: sm)
    lines = np.full(chunks * pieces, 4096 // pieces, np.int32)
    return Trace(("X",), lines, np.zeros(len(lines), np.uint8), len(ids), lambda: iter([chunk]), sms=sms)


def knee(footprints: list[float], bandwidths: list[float], plateau: float) -> float:
    """Footprint where the bandwidth is 15 % below its plateau, linear between points."""
    for (x0, y0), (x1, y1) in zip(
        zip(footprints, bandwidths, strict=True), zip(footprints[1:], bandwidths[1:], strict=True), strict=False
    ):
        if y1 < 0.85 * plateau <= y0:
            return x0 + (x1 - x0) * (y0 - 0.85 * plateau) / (y0 - y1)
    raise AssertionError("no knee")


def knees() -> Iterator[Row]:
    """Effective bandwidth = min(plateau, DRAM floor / share of lines that miss)."""
    cases = [
        ("a100-sxm4-80gb", 5.4, 1.86, 0.15),
        ("h100-pcie-80gb", 7.0, 1.99, 0.15),
        ("h200-sxm-141gb", 9.95, 3.89, 0.15),
        ("l40s", 5.2, 0.80, None),
    ]
    for sku, plateau, floor, limit in cases:
        machine = load_machine(sku)
        rows = [row for row in PUBLISHED if (row["family"], row["chip"]) == ("cyclic-read", sku)]
        footprints = [int(row["footprint_bytes"]) / 1024e3 for row in rows]
        measured = [int(row["bytes_per_second"]) / 1e12 for row in rows]
        points = [float(x) for x in np.arange(20.0, 120.0, 1.0)]
        results: list[float] = []
        for at in points:
            trace = cyclic_reads(machine.sms, round(at * 1024e3 / 2**19), 8)
            counts = parse_policy(f"{machine.default_model.policy}+warm").simulate(trace, machine.l2_bytes // 128)
            results.append(min(plateau, floor * counts.accesses_lines / max(1, counts.misses_lines)))
            if results[-1] < 0.8 * plateau:
                break
        note = "RRZE-HPC/gpu-benches gpu-l2-cache; 1000 KiB units"
        if limit is None:
            note += "; two points only, on an L40 (same die): the knee lies anywhere between 83 and 110"
        model = knee(points[: len(results)], results, plateau)
        yield Row(
            f"{machine.name}: knee of the L2 bandwidth", knee(footprints, measured, plateau), model, "MB", limit, note
        )


GB10_RATE, GB10_PEAK = 225e9, 165e12  # bytes a second achieved, measured on the first case; FLOP/s where compute bound
GB10_POLICIES = ("lru", "fifo", "random", "oldest-of-8")


def gb10_policies() -> Iterator[tuple[str, float, float, str]]:
    """(policy, mean error, largest error, modelled TFLOPS) over all published rows of the GB10, nominal capacity."""
    rows = [row for row in PUBLISHED if row["chip"] == "gb10"]
    for policy in GB10_POLICIES:
        errors, shown = [], []
        for row in rows:
            gemm = Gemm(int(row["m"]), int(row["n"]), int(row["k"]), "fp8")
            traffic = gemm_on("gb10", gemm, row["order"], row["tile"], policy)
            tflops = min(GB10_PEAK, gemm.flops / (traffic.dram_bytes / GB10_RATE)) / 1e12
            errors.append(abs(log(tflops / (gemm.flops / float(row["milliseconds"]) / 1e9))))
            shown.append(f"{tflops:.0f}")
        yield policy, exp(sum(errors) / len(errors)) - 1, exp(max(errors)) - 1, " ".join(shown)


def gb10() -> Iterator[Row]:
    """FP8 with bf16 result, 16384x16384x2560, tile 128x128x128; the memory rate is measured on the first of the two."""
    rate, peak = GB10_RATE, GB10_PEAK
    for m in (16384, 8192):
        gemm = Gemm(m, 16384, 2560, "fp8")
        for row in PUBLISHED:
            if (row["chip"], row["m"], row["n"]) != ("gb10", str(gemm.m), str(gemm.n)):
                continue
            traffic = gemm_on("gb10", gemm, row["order"], row["tile"])
            flops = 2 * gemm.m * gemm.n * gemm.k
            tflops, swizzle = flops / float(row["milliseconds"]) / 1e9, row["order"].removeprefix("cutlass3-")
            seconds = max(flops / peak, traffic.dram_bytes / rate)
            note = "vLLM pull requests 55180, 55174, 55661"
            limit = None
            if m == 16384:
                limit = 0.10
            else:
                note += "; the order's footprint is within 20 % of the L2: a cliff"
            case = f"GB10 fp8 M={m}, swizzle {swizzle}: {traffic.dram_bytes / 1e9:.2f} GB"
            yield Row(case, tflops, flops / seconds / 1e12, "TFLOPS", limit, note)


TILES = ("64x64x32", "64x128x32", "128x64x32", "128x128x16", "128x128x32", "128x256x32", "256x128x32")


def fp32() -> Iterator[tuple[str, str, float, float, float, str]]:
    """(case, measured, least, most, error of the nearest, what): tile sizes are not published."""
    gemm = Gemm(4096, 4096, 4096, "fp32")
    measured = [row for row in PUBLISHED if row["source"].startswith("CUTLASS fp32")]
    for sku in dict.fromkeys(row["chip"] for row in measured):
        result = {
            (tile, order): in_kernel_bytes(gemm_on(sku, gemm, order, tile)) / MIB
            for tile in TILES
            for order in ("cutlass2-1", "cutlass2-4", "cutlass2-8")
        }
        low, high = min(result.values()), max(result.values())
        for row in (row for row in measured if row["chip"] == sku):
            kind, value = row["note"].split(";")[0], int(row["dram_bytes"]) / MIB
            nearest = min(result, key=lambda k: abs(result[k] / value - 1))
            where = f"nearest: {nearest[0]}, {nearest[1]}"
            yield f"{sku}, {kind}", f"{value:,.0f}", low, high, result[nearest] / value - 1, where


def main() -> int:
    """Print the tables; 1 when a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smallest", action="store_true", help="the cases of one chip: does it run?")
    smallest = parser.parse_args().smallest
    bad = 0
    print("| case | measured | model | error | limit | source, remarks |\n|---|---|---|---|---|---|")
    for source in (h20,) if smallest else (h20, knees, gb10):
        for row in source():
            limit = "shown" if row.limit is None else f"{row.limit:.0%}"
            missed = row.limit is not None and abs(row.error) > row.limit
            bad += missed
            print(
                f"| {row.case} | {row.measured:.1f} {row.unit} | {row.model:.1f} {row.unit} | {row.error:+.1%}"
                f"{' MISSED' if missed else ''} | {limit} | {row.note} |",
                flush=True,
            )
    if smallest:
        return int(bad > 0)
    measured = [row for row in PUBLISHED if row["chip"] == "gb10"]
    tflops = (2e-9 * int(row["m"]) * int(row["n"]) * int(row["k"]) / float(row["milliseconds"]) for row in measured)
    print("\nGB10, by cache model (one partition, nominal capacity), TFLOPS of all twelve published rows; measured:")
    print(" ".join(f"{value:.0f}" for value in tflops) + "\n")
    print("| cache model | mean error | largest | TFLOPS |\n|---|---|---|---|")
    for policy, mean, most, shown in gb10_policies():
        print(f"| {policy} | {mean:.1%} | {most:.0%} | {shown} |", flush=True)
    print(
        "\nfp32 4096^3, CUTLASS, DRAM MiB in the kernel (192 compulsory); tile sizes are not published: the range over"
    )
    print(f"tiles {', '.join(TILES)} and swizzles 1, 4, 8 is shown.\n")
    print("| case | measured | model, least to most | error of the nearest | |\n|---|---|---|---|---|")
    for case, value, low, high, error, where in fp32():
        print(f"| {case} | {value} | {low:,.0f} to {high:,.0f} | {error:+.1%} | {where} |", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    raise SystemExit(main())
