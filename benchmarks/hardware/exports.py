"""Exported files beside the library's kernels: time, joules and bytes of every layer, from what was measured.

    python benchmarks/hardware/exports.py                                  # the table and its summary
    python benchmarks/hardware/exports.py --figure docs/figures/exports.svg
    python benchmarks/hardware/exports.py --write FOLDER --gpu h200-sxm-141gb       # the files of all layers
    python benchmarks/gpu/run_exports.py FOLDER OUT.csv                             # on that GPU
    python benchmarks/hardware/exports.py --add OUT.csv --gpu h200-sxm-141gb        # into exports/measured.csv
    python benchmarks/hardware/exports.py --model                          # into exports/modelled.csv; two minutes
    python benchmarks/hardware/exports.py --shares models/exported.toml    # what the program says of its files
    python benchmarks/hardware/exports.py --orders                         # tuned orders beside common ones

Each ratio is this file's over that of the fastest of PyTorch's own calls for the same operands, both in one run of
`benchmarks/gpu/run_exports.py`. Bytes are read and written, and each written byte of the result counts, though a
counter misses what is left dirty in L2.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

MEASURED = Path(__file__).parent / "exports/measured.csv"
MODELLED = Path(__file__).parent / "exports/modelled.csv"
BEFORE = Path(__file__).parent / "exports/attention_before.csv"  # of the kernels of attention until SINCE
SINCE = "2026-11-28"
TUNED_ORDERS = Path(__file__).parent / "exports/tuned_orders.csv"
FAMILIES = ("gemm", "grouped", "ffn", "attention", "decode")
KINDS = {"sustained": "sustained_milliseconds", "single": "milliseconds", "joules": "joules", "bytes": "bytes"}

Row = dict[str, str]

GEMMS = ("gemm-16384x8192x3072", "gemm-2048x129280x7168", "gemm-5120x27648x5120", "gemm-65536x1024x4096")
GEMMS += ("gemm-7000x5000x9000", "gemm-8192x22016x4096", "gemm-8192x27648x5120", "gemm-8192x28672x4096")
GEMMS += ("gemm-8192x57344x8192", "gemm-8192x8192x28672", "gemm-8192x8192x8192", "held-gemm-4000x11008x4096")
GEMMS += ("held-gemm-6144x16384x6144",)
ORDERS = {"gemm-65536x1024x4096": "row", "gemm-7000x5000x9000": "grouped-8+sawtooth"}  # as `advise` picks, too
COMMON = "deepgemm+sawtooth"
# rows of each product, n, k
GROUPS = {
    "batch-16x2048": ((2048,) * 16, 2048, 2048),
    "moe-8x4096": ((4096,) * 8, 4096, 7168),
    "moe-ragged": ((1411, 96, 707, 1024, 250, 33, 1600, 253), 4096, 7168),
}
# tokens, d_model, hidden, gated
FFNS = {
    "ffn-13b-gated": (5120, 5120, 13824, True),
    "ffn-16384": (16384, 2048, 8192, False),
    "ffn-7b": (8192, 4096, 11008, False),
    "ffn-8192x3584": (8192, 3584, 18944, False),
    "ffn-8b-gated": (8192, 4096, 14336, True),
    "held-ffn-4096x5120": (4096, 5120, 13824, False),
}
# queries, keys, head_dim, heads, kv_heads, batch, causal
ATTENTIONS = {
    "att-32k-causal": (32768, 32768, 128, 8, 8, 1, True),
    "att-32k": (32768, 32768, 128, 8, 8, 1, False),
    "att-8k-causal": (8192, 8192, 128, 32, 8, 1, True),
    "att-causal-16k": (16384, 16384, 128, 32, 8, 1, True),
    "att-d256-causal": (8192, 8192, 256, 16, 16, 1, True),
    "att-d64": (8192, 8192, 64, 32, 32, 1, False),
    "att-full-8k": (8192, 8192, 128, 16, 16, 4, False),
    "held-att-4k-causal": (4096, 4096, 128, 32, 8, 4, True),
    "decode-128k": (1, 131072, 128, 32, 8, 1, False),
    "decode-mha": (1, 8192, 128, 32, 32, 4, False),
    "decode-16x8k": (1, 8192, 128, 32, 8, 16, False),
    "decode-8x4k": (1, 4096, 128, 32, 8, 8, False),
    "decode-64x8k": (1, 8192, 128, 32, 8, 64, False),
}


def layers() -> dict[str, tuple[str, str, Any]]:
    """Family, schedule and workload of each case."""
    from pebble import Attention, Ffn, Gemm, GroupedGemm

    found: dict[str, tuple[str, str, Any]] = {}
    for case in GEMMS:
        m, n, k = map(int, case.rpartition("-")[2].split("x"))
        found[case] = ("gemm", ORDERS.get(case, COMMON), Gemm(m, n, k))
    for case, shape in GROUPS.items():
        found[case] = ("grouped", COMMON, GroupedGemm(*shape))
    for case, (tokens, d_model, hidden, gated) in FFNS.items():
        found[case] = ("ffn", f"separate:{COMMON}", Ffn(tokens, d_model, hidden, gated=gated))
    for case, (queries, keys, dim, heads, kv_heads, batch, causal) in ATTENTIONS.items():
        schedule = "flash-decoding" if queries == 1 else "fa3" if causal else "fa2"
        sizes = {"heads": heads, "kv_heads": kv_heads, "batch": batch, "causal": causal}
        found[case] = ("decode" if queries == 1 else "attention", schedule, Attention(queries, keys, dim, **sizes))
    return found


def write(folder: Path, sku: str) -> None:
    """Export every layer; files that are there are kept."""
    import pebble

    folder.mkdir(parents=True, exist_ok=True)
    for case, (_, schedule, workload) in layers().items():
        if not (path := folder / f"{case}.py").exists():
            pebble.export(schedule, workload, "triton", gpu=sku).save(path)
            print(f"{case}: {schedule}, {workload.label}", flush=True)


def add(output: Path, sku: str) -> None:
    """Rows of `run_exports.py` in place of those of the same layers on the same chip."""
    import pebble

    with open(MEASURED, newline="") as file:
        reader = csv.DictReader(file)
        columns, old = list(reader.fieldnames or ()), list(reader)
    with open(output, newline="") as file:
        new = list(csv.DictReader(file))
    known = layers()
    for row in new:
        row["family"], _, workload = known[row["case"]]
        bound = pebble.bound(workload, gpu=sku).lower.bytes
        row |= {"chip": sku, "bound_bytes": str(bound), "result_bytes": str(workload.operands[-1].bytes)}
    cases = {row["case"] for row in new}
    rows = [row for row in old if row["chip"] != sku or row["case"] not in cases] + new
    rows.sort(key=lambda row: (row["chip"], row["case"]))
    with open(MEASURED, "w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n", restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def model() -> None:
    """The modelled times of every layer that was measured, as blocks run where a kernel is picked."""
    import pebble
    from pebble.families import kernel_family

    known = layers()
    with open(MODELLED, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["chip", "case", "family", "schedule", "tile", "stages", "execution", "single_ms", "sustained_ms"]
        )
        for row in measured(MEASURED, "free"):
            workload = known[row["case"]][2]
            execution = kernel_family(workload).advised_execution(workload).name
            kernel = {name: row[name] for name in ("schedule", "tile", "stages")}
            found = pebble.time(
                workload, row["schedule"], gpu=row["chip"], tile=row["tile"], stages=int(row["stages"]),
                execution=execution, progress=False,
            ).orders[0]  # fmt: skip
            times = (f"{1e3 * seconds:.5g}" for seconds in (found.time.seconds, found.sustained.seconds))
            writer.writerow([row["chip"], row["case"], row["family"], *kernel.values(), execution, *times])


def shares() -> str:
    """The file that `pebble.models.launches` reads: how much of the modelled sustained time exported files took."""
    with open(MODELLED, newline="") as file:
        modelled = {(row["chip"], row["case"]): float(row["sustained_ms"]) for row in csv.DictReader(file)}
    parts = [
        "# Of exported files, layer by layer: the least and the most that one took of the modelled sustained time of\n"
        "# its schedule. By benchmarks/hardware/exports.py --shares.\n"
    ]
    for family in FAMILIES:
        for chip in sorted({chip for chip, _ in modelled}):
            times = [
                (float(row["sustained_milliseconds"]), modelled[chip, row["case"]])
                for row in measured(MEASURED, "free")
                if (row["family"], row["chip"]) == (family, chip)
            ]
            if times:
                took = [ran / said for ran, said in times]
                spans = f"least_ms = {min(times)[0]:g}\nmost_ms = {max(times)[0]:g}\n"
                spans = f"layers = {len(took)}\n{spans}least = {min(took):.2f}\nmost = {max(took):.2f}\n"
                parts.append(f'[[exported]]\nfamily = "{family}"\nchip = "{chip}"\n{spans}')
    return "\n".join(parts)


def measured(path: str | Path, how: str) -> list[Row]:
    """The rows of a table, products as run one way, by chip and family."""
    with open(path, newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["family"] in ("attention", "decode") or row["how"] == how]
    return sorted(rows, key=lambda row: (row["chip"], FAMILIES.index(row["family"])))


def moved(row: Row, whose: str) -> int | None:
    """DRAM bytes of this file (``dram``) or the library's, if they were counted."""
    if not row[f"{whose}_read_bytes"]:
        return None
    return int(row[f"{whose}_read_bytes"]) + max(int(row[f"{whose}_write_bytes"]), int(row["result_bytes"]))


def ratios(row: Row) -> dict[str, float]:
    """This file's over the library's, of what was measured; the proved bound over the library's bytes."""
    found = {}
    for kind, name in KINDS.items():
        ours, theirs = (
            (moved(row, "dram"), moved(row, "library")) if kind == "bytes" else (row[name], row[f"library_{name}"])
        )
        if ours and theirs:
            found[kind] = float(ours) / float(theirs)
    library = moved(row, "library")
    if library:
        found["bound"] = int(row["bound_bytes"]) / library
    if row["predicted_read_bytes"] and row["dram_read_bytes"]:
        found["predicted"] = int(row["predicted_read_bytes"]) / int(row["dram_read_bytes"])
    return found


def table(rows: list[Row]) -> str:
    """A line for each layer and chip."""
    lines = [f"{'chip':<16}{'layer':<28}" + "".join(f"{kind:>10}" for kind in (*KINDS, "bound")) + "   ms, library's"]
    for row in rows:
        n = ratios(row)
        values = "".join(f"{n[kind]:>10.3f}" if kind in n else f"{'-':>10}" for kind in (*KINDS, "bound"))
        times = f"{float(row['sustained_milliseconds']):.3f}, {float(row['library_sustained_milliseconds']):.3f}"
        lines.append(f"{row['chip']:<16}{row['case']:<28}{values}   {times}")
    return "\n".join(lines)


def drifts_far(row: Row) -> bool:
    """Whether blocks of the product drift so far that the program gives a range for its reads."""
    from pebble.families import kernel_family
    from pebble.reports.simulated_kernel import read_kernel

    family, schedule, workload = layers()[row["case"]]
    if family in ("attention", "decode"):
        return False
    config = read_kernel(workload, gpu=row["chip"], tile=row["tile"], execution="free").config
    return bool(kernel_family(workload).drifts(workload, schedule, config))


def in_range(row: Row) -> bool:
    """Whether a long product read what was predicted."""
    from pebble.simulation.cliff import far_range

    least, most = far_range(int(row["predicted_read_bytes"]))
    return least <= int(row["dram_read_bytes"]) <= most


def summary(rows: list[Row]) -> str:
    """A line for each chip and family, and how often reads were as predicted."""
    head = ("sustained: median, worst", "single", "joules", "bytes")
    lines = [f"{'chip':<16}{'family':<11}{'layers':>6}  {head[0]:<26}" + "".join(f"{name:<8}" for name in head[1:])]
    for chip in sorted({row["chip"] for row in rows}):
        for family in FAMILIES:
            here = [ratios(row) for row in rows if (row["chip"], row["family"]) == (chip, family)]
            found = {kind: [n[kind] for n in here if kind in n] for kind in KINDS}
            middle = {kind: f"{statistics.median(each):.3f}" if each else "-" for kind, each in found.items()}
            worst = f"{middle['sustained']}, {max(found['sustained']):.3f}"
            rest = "".join(f"{middle[kind]:<8}" for kind in ("single", "joules", "bytes"))
            lines.append(f"{chip:<16}{family:<11}{len(here):>6}  {worst:<26}{rest}".rstrip())
    counted = [row for row in rows if "predicted" in ratios(row) and row["family"] != "attention"]
    long = [row for row in counted if drifts_far(row)]
    near = [abs(ratios(row)["predicted"] - 1) <= 0.05 for row in counted if row not in long]
    lines.append(f"reads within 5 % of predicted: {sum(near)} of {len(near)}, attention and long products apart")
    lines.append(f"reads of long products in the range predicted: {sum(map(in_range, long))} of {len(long)}")
    return "\n".join(lines)


def by_orders(rows: list[Row]) -> str:
    """A line for each kind of order of GEMMs that ran free: how near what they read came to what was predicted."""

    def kind(row: Row) -> str:
        if not row["schedule"].startswith(("bands", "snake", "cutlass2")):
            return "common"
        needs_waves = "wave-" in row["schedule"] or "shift" in row["schedule"]
        return "tuned, waves cut or k begun later" if needs_waves else "tuned"

    kinds: dict[str, list[dict[str, float]]] = {}
    for row in rows:
        kinds.setdefault(kind(row), []).append(ratios(row | {"result_bytes": "0", "bound_bytes": "0"}))
    lines = [f"{'orders':<34}{'launches':>8}  {'sustained':<11}{'bytes':<8}reads, predicted over measured"]
    for name, found in sorted(kinds.items()):
        middle = {each: statistics.median(n[each] for n in found) for each in ("sustained", "bytes")}
        read = sorted(n["predicted"] for n in found)
        near = f"{read[0]:.2f} to {read[-1]:.2f}, {sum(abs(each - 1) <= 0.05 for each in read)} within 5 %"
        lines.append(f"{name:<34}{len(found):>8}  {middle['sustained']:<11.3f}{middle['bytes']:<8.3f}{near}")
    return "\n".join(lines)


def draw(rows: list[Row], path: str) -> None:
    """A panel a chip, a line a layer: time, joules, bytes and the proved bound over the library's."""
    from pebble.plots.save import BLUE, GREY, ORANGE, RED, page, plain_numbers, save_figure, small_title

    chips = sorted({row["chip"] for row in rows})
    most = max(sum(row["chip"] == chip for row in rows) for chip in chips)
    with page(7.2, 1.1 + 0.17 * most) as figure:
        axes: Any = figure.subplots(1, len(chips), sharex=True, squeeze=False)[0]
        for ax, chip in zip(axes, chips, strict=True):
            here = [row for row in rows if row["chip"] == chip][::-1]
            for kind, marker, color, text in (
                ("bound", "|", RED, "bytes, proved bound"), ("bytes", ".", BLUE, "bytes, measured"),
                ("joules", "s", GREY, "joules, measured"), ("sustained", "o", ORANGE, "sustained time, measured"),
            ):  # fmt: skip
                at = [i for i, row in enumerate(here) if kind in ratios(row)]
                ax.scatter([ratios(here[i])[kind] for i in at], at, 14, marker=marker, color=color, label=text, lw=1.0)
            ax.axvline(1, color="black", lw=0.7, label="the library's")
            ax.set_yticks(range(len(here)), [row["case"] for row in here], fontsize=5.5)
            ax.set_xlim(0, 1.9)
            plain_numbers(ax.xaxis)
            ax.grid(axis="y", lw=0.3)
            ax.set_xlabel("over the library's", fontsize=7)
            small_title(ax, chip)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=6.5, frameon=False)
    save_figure(figure, path)
    print(f"wrote {path}")


def main() -> int:
    """Read the table, print it, draw it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", nargs="?", default=MEASURED, help="another table")
    parser.add_argument("--how", default="free", help="of products: free, or even (free)")
    parser.add_argument("--figure", metavar="FILE", help="draw it")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="instead: export every layer, for --gpu")
    parser.add_argument("--add", type=Path, metavar="CSV", help="instead: take the rows of a run, on --gpu")
    parser.add_argument("--model", action="store_true", help="instead: model the time of every measured layer")
    parser.add_argument("--shares", type=Path, metavar="FILE", help="instead: write what of it exported files took")
    parser.add_argument("--orders", action="store_true", help="instead: tuned orders beside common ones")
    parser.add_argument("--gpu", metavar="SKU", default="h200-sxm-141gb", help="(h200-sxm-141gb)")
    args = parser.parse_args()
    if args.write or args.add:
        write(args.write, args.gpu) if args.write else add(args.add, args.gpu)
        return 0
    if args.orders:
        with open(TUNED_ORDERS, newline="") as file:
            print(by_orders(list(csv.DictReader(file))))
        return 0
    if args.model or args.shares:
        if args.model:
            model()
        if args.shares:
            args.shares.write_text(shares(), encoding="utf-8")
        return 0
    rows = measured(args.measured, args.how)
    print(table(rows) + "\n\n" + summary(rows))
    if args.figure:
        draw(rows, args.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
