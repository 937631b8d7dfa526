"""Blind rows of `pebble advise`: what it said of layers of no other row before they ran, and what they took.

    python benchmarks/hardware/advised.py --write FOLDER --gpu h100-sxm5-80gb    # a new round, of layers not yet there
    python benchmarks/gpu/run_exports.py FOLDER OUT.csv --how free               # on that GPU
    python benchmarks/hardware/advised.py --add OUT.csv --gpu h100-sxm5-80gb     # into advised/measured.csv
    python benchmarks/hardware/advised.py                                        # the table and its summary

Each file is the one that the command of ``next`` writes. Ratios are of sustained time: measured over modelled, and
this file's over that of the fastest of PyTorch's own calls.
"""

from __future__ import annotations

import argparse
import csv
import math
import shlex
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[2])]

HERE = Path(__file__).parent / "advised"
LAYERS = {
    "gemm-5000x10240x5120": "gemm -m 5000 -n 10240 -k 5120",
    "gemm-12288x4608x12288": "gemm -m 12288 -n 4608 -k 12288",
    "gemm-3072x24576x6144": "gemm -m 3072 -n 24576 -k 6144",
    "grouped-12": "grouped --rows 2500,1100,640,3000,1900,800,410,2200,1500,960,330,1700 -n 6144 -k 3072",
    "ffn-6144-gated": "ffn --tokens 6144 --d-model 6144 --hidden 16384 --gated",
    "ffn-12288": "ffn --tokens 12288 --d-model 3072 --hidden 12288",
    "att-6k-causal": "attention --queries 6144 --keys 6144 --head-dim 128 --heads 40 --kv-heads 8 --causal",
    "att-12k-d64-causal": "attention --queries 12288 --keys 12288 --head-dim 64 --heads 24 --causal",
    "att-8k-mha-causal": "attention --queries 8192 --keys 8192 --head-dim 128 --heads 32 --causal",
    "att-10k-full": "attention --queries 10240 --keys 10240 --head-dim 128 --heads 12 --kv-heads 4",
    "att-2k-d256": "attention --queries 2048 --keys 2048 --head-dim 256 --heads 16 --kv-heads 4 --batch 4 --causal",
    "att-chunk": "attention --queries 2048 --keys 16384 --head-dim 128 --heads 32 --kv-heads 8 --causal",
    # since exponentials run beside products in the model
    "att-5k-causal": "attention --queries 5120 --keys 5120 --head-dim 128 --heads 24 --kv-heads 8 --causal",
    "att-16k-full": "attention --queries 16384 --keys 16384 --head-dim 128 --heads 16 --kv-heads 2",
    "att-8k-d64-causal": "attention --queries 8192 --keys 8192 --head-dim 64 --heads 48 --kv-heads 8 --causal",
    "att-4k-d64-batch": "attention --queries 4096 --keys 4096 --head-dim 64 --heads 16 --batch 8",
    "att-6k-d256-full": "attention --queries 6144 --keys 6144 --head-dim 256 --heads 8",
    "att-10k-d256-causal": "attention --queries 10240 --keys 10240 --head-dim 256 --heads 12 --kv-heads 4 --causal",
    "att-chunk-32k": "attention --queries 4096 --keys 32768 --head-dim 128 --heads 16 --kv-heads 4 --causal",
    "att-1k-batch": "attention --queries 1024 --keys 1024 --head-dim 128 --heads 32 --batch 16 --causal",
    # since heads of 128 have three stages
    "gemm-10240x6144x8192": "gemm -m 10240 -n 6144 -k 8192",
    "gemm-6144x6144x6144": "gemm -m 6144 -n 6144 -k 6144",
    "gemm-4096x16384x2048": "gemm -m 4096 -n 16384 -k 2048",
    "grouped-6": "grouped --rows 4096,1024,2048,3072,512,2560 -n 4096 -k 4096",
    "ffn-3072-gated": "ffn --tokens 3072 --d-model 4096 --hidden 14336 --gated",
    "ffn-10240": "ffn --tokens 10240 --d-model 2560 --hidden 10240",
    "att-7k-causal": "attention --queries 7168 --keys 7168 --head-dim 128 --heads 48 --kv-heads 8 --causal",
    "att-12k-full": "attention --queries 12288 --keys 12288 --head-dim 128 --heads 8",
    "att-3k-batch-causal": "attention --queries 3072 --keys 3072 --head-dim 128 --heads 16 --kv-heads 4 --batch 6 "
    "--causal",
    "att-6k-d64-full": "attention --queries 6144 --keys 6144 --head-dim 64 --heads 32 --kv-heads 8",
    "att-5k-d256-causal": "attention --queries 5120 --keys 5120 --head-dim 256 --heads 16 --kv-heads 2 --causal",
    "att-chunk-8k": "attention --queries 1024 --keys 8192 --head-dim 128 --heads 32 --kv-heads 8 --batch 4 --causal",
    # since long kernels are sustained at the power limit alone, tiles of gated FFNs go in pairs, SiLU is one tangent
    "gemm-4096x53248x16384": "gemm -m 4096 -n 53248 -k 16384",
    "gemm-12288x12288x12288": "gemm -m 12288 -n 12288 -k 12288",
    "gemm-6000x20480x10240": "gemm -m 6000 -n 20480 -k 10240",
    "grouped-8-wide": "grouped --rows 3000,5100,2048,4096,1500,6000,2560,3500 -n 8192 -k 4096",
    "ffn-4096x8192-gated": "ffn --tokens 4096 --d-model 8192 --hidden 28672 --gated",
    "ffn-8192x3584-gated": "ffn --tokens 8192 --d-model 3584 --hidden 18944 --gated",
    "ffn-2048x5120-gated": "ffn --tokens 2048 --d-model 5120 --hidden 17408 --gated",
    "ffn-6144x6144": "ffn --tokens 6144 --d-model 6144 --hidden 24576",
    # since heads that share keys are rows of one tile where queries are few
    "decode-64x2k": "attention --queries 1 --keys 2048 --head-dim 128 --heads 32 --kv-heads 8 --batch 64",
    "decode-4x16k": "attention --queries 1 --keys 16384 --head-dim 128 --heads 64 --kv-heads 8 --batch 4",
    "decode-32k-mha": "attention --queries 1 --keys 32768 --head-dim 128 --heads 32",
    "decode-draft": "attention --queries 4 --keys 8192 --head-dim 128 --heads 32 --kv-heads 8 --batch 8 --causal",
    "decode-d64": "attention --queries 1 --keys 8192 --head-dim 64 --heads 32 --kv-heads 8 --batch 24",
    "decode-d256": "attention --queries 1 --keys 8192 --head-dim 256 --heads 16 --kv-heads 4 --batch 16",
    "decode-10000": "attention --queries 1 --keys 10000 --head-dim 128 --heads 40 --kv-heads 8 --batch 20",
    "decode-64k": "attention --queries 1 --keys 65536 --head-dim 128 --heads 48 --kv-heads 8 --batch 2",
    # since attention is stored in whole lines, and queries of a decode step are columns
    "att-1k-full": "attention --queries 1024 --keys 1024 --head-dim 128 --heads 24 --batch 12",
    "att-2k-causal": "attention --queries 2048 --keys 2048 --head-dim 128 --heads 32 --kv-heads 8 --batch 6 --causal",
    "att-1k-d64-causal": "attention --queries 1024 --keys 1024 --head-dim 64 --heads 32 --batch 16 --causal",
    "att-512-causal": "attention --queries 512 --keys 512 --head-dim 128 --heads 32 --batch 32 --causal",
    "decode-32x4k": "attention --queries 1 --keys 4096 --head-dim 128 --heads 32 --kv-heads 8 --batch 32",
    "decode-96k": "attention --queries 1 --keys 98304 --head-dim 128 --heads 64 --kv-heads 8",
    "decode-d64-mha": "attention --queries 1 --keys 8192 --head-dim 64 --heads 24 --batch 8",
    "decode-12x12000": "attention --queries 1 --keys 12000 --head-dim 128 --heads 48 --kv-heads 8 --batch 12",
    # since the last round of products is modelled as the file deals it, and a launch alone as the file's own
    "gemm-1280x5120x5120": "gemm -m 1280 -n 5120 -k 5120",
    "gemm-1792x3584x7168": "gemm -m 1792 -n 3584 -k 7168",
    "gemm-2048x5120x1280": "gemm -m 2048 -n 5120 -k 1280",
    "gemm-2816x2816x2816": "gemm -m 2816 -n 2816 -k 2816",
    "gemm-3584x3584x3584": "gemm -m 3584 -n 3584 -k 3584",
    "gemm-4096x4096x4096": "gemm -m 4096 -n 4096 -k 4096",
    "gemm-5120x5120x5120": "gemm -m 5120 -n 5120 -k 5120",
    "gemm-768x12288x4096": "gemm -m 768 -n 12288 -k 4096",
    "gemm-3000x7000x2500": "gemm -m 3000 -n 7000 -k 2500",
    "gemm-8192x1280x8192": "gemm -m 8192 -n 1280 -k 8192",
    "gemm-1536x8960x1536": "gemm -m 1536 -n 8960 -k 1536",
    "gemm-20480x5120x2560": "gemm -m 20480 -n 5120 -k 2560",
    "grouped-4-small": "grouped --rows 1000,2000,1500,700 -n 4096 -k 2048",
    "grouped-16-even": "grouped --rows 768,768,768,768,768,768,768,768,768,768,768,768,768,768,768,768 -n 2048 -k 4096",
    "ffn-1024x4096-gated": "ffn --tokens 1024 --d-model 4096 --hidden 14336 --gated",
    "ffn-2048x2048": "ffn --tokens 2048 --d-model 2048 --hidden 8192",
    "ffn-3000x5120": "ffn --tokens 3000 --d-model 5120 --hidden 20480",
}
COLUMNS = ("round", "chip", "case", "schedule", "tile", "stages", "sustained_ms", "single_ms", "joules", "dram_bytes")
MEASURED = ("chip", "date", "case", "error", "milliseconds", "sustained_milliseconds", "library_sustained_milliseconds")
MEASURED += ("library_milliseconds", "joules", "library_joules", "dram_read_bytes", "dram_write_bytes")

Row = dict[str, str]


def write(folder: Path, sku: str) -> None:
    """Ask, write down and export: the layers of which nothing was said yet on this chip."""
    import pebble
    from pebble.cli import main as command

    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    said_before = read("predicted.csv")
    there = {row["case"] for row in said_before if row["chip"] == sku}
    number = 1 + max((int(row["round"]) for row in said_before if row["chip"] == sku), default=0)
    for case, words in LAYERS.items():
        if case in there:
            continue
        name, *options = shlex.split(words)
        workload = pebble.workload(name, **parameters(options))
        advice = pebble.advise(workload, gpu=sku, progress=False)
        if advice.writable is None:
            raise SystemExit(f"{case}: not exported")
        kernel, best = advice.to_dict()["kernel"], advice.writable[0]
        order, dram = best.advice.schedule.name, best.time.dram_bytes
        how = ["--tile", kernel["tile"], "--stages", str(kernel["stages"]), "--execution", kernel["execution"]]
        how += ["--blocks-per-sm", str(kernel["blocks_per_sm"]), "--gpu", sku, "--format", "triton"]
        if command(["export", order, *shlex.split(words), *how, "-o", str(folder / f"{case}.py")]):
            raise SystemExit(f"{case}: not exported")
        sustained = best.sustained
        joules = math.nan if sustained is None else sustained.total_joules
        times = (f"{value:.5g}" for value in (1e3 * best.seconds, 1e3 * best.time.seconds, joules))
        rows.append([number, sku, case, order, kernel["tile"], kernel["stages"], *times, dram])
        print(f"{case}: {order}, {kernel['tile']}", flush=True)
    _put("predicted.csv", COLUMNS, rows)


def parameters(options: list[str]) -> dict[str, Any]:
    """Options as keywords."""
    found: dict[str, Any] = {}
    for at, word in enumerate(options):
        if word.startswith("-"):
            value = options[at + 1] if at + 1 < len(options) and not options[at + 1].startswith("-") else True
            found[word.lstrip("-").replace("-", "_")] = value
    return found


def add(output: Path, sku: str) -> None:
    """The rows of a run, in place of those of the same layers on the same chip."""
    with open(output, newline="") as file:
        rows = [[sku, *(row[name] for name in MEASURED[1:])] for row in csv.DictReader(file)]
    _put("measured.csv", MEASURED, rows)


def _put(name: str, columns: tuple[str, ...], rows: list[list[Any]]) -> None:
    new = [dict(zip(columns, row, strict=True)) for row in rows]
    again = {(row["chip"], row["case"]) for row in new}
    others = [row for row in read(name) if (row["chip"], row["case"]) not in again]
    with open(HERE / name, "w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows([*others, *new])


def read(name: str) -> list[Row]:
    """The rows of a table; none where it is not there."""
    if not (HERE / name).exists():
        return []
    with open(HERE / name, newline="") as file:
        return list(csv.DictReader(file))


def table() -> str:
    """A line a layer, and the medians of each chip and family."""
    took = {(row["chip"], row["case"]): row for row in read("measured.csv")}
    lines = [
        f"{'chip':<16}{'layer':<24}{'schedule':<26}{'tile':<12}{'modelled':>9}{'measured':>9}{'/model':>8}{'/library':>9}"
    ]
    ratios: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for row in read("predicted.csv"):
        if (ran := took.get((row["chip"], row["case"]))) is None:
            continue
        measured, modelled = float(ran["sustained_milliseconds"]), float(row["sustained_ms"])
        pair = measured / modelled, measured / float(ran["library_sustained_milliseconds"])
        ratios.setdefault((row["round"], row["chip"], LAYERS[row["case"]].split()[0]), []).append(pair)
        head = f"{row['chip']:<16}{row['case']:<24}{row['schedule']:<26}{row['tile']:<12}"
        lines.append(f"{head}{modelled:>9.3f}{measured:>9.3f}{pair[0]:>8.3f}{pair[1]:>9.3f}")
    for (number, chip, family), pairs in ratios.items():
        of_model, of_library = ([pair[i] for pair in pairs] for i in (0, 1))
        lines.append(
            f"round {number}, {chip} {family}, {len(pairs)}: of the modelled time {min(of_model):.3f} to "
            f"{max(of_model):.3f}; of the library's, median {statistics.median(of_library):.3f}, "
            f"worst {max(of_library):.3f}"
        )
    return "\n".join(lines)


def main() -> int:
    """Write, add or print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="export every layer, and write down what is said")
    parser.add_argument("--add", type=Path, metavar="CSV", help="take the rows of a run")
    parser.add_argument("--gpu", metavar="SKU", default="h100-sxm5-80gb", help="(h100-sxm5-80gb)")
    args = parser.parse_args()
    if args.write:
        write(args.write, args.gpu)
    elif args.add:
        add(args.add, args.gpu)
    else:
        print(table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
