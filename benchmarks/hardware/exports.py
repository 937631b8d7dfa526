"""Exported files beside the library's kernels: time, joules and bytes of every layer, from what was measured.

    python benchmarks/hardware/exports.py                                  # the table and its summary
    python benchmarks/hardware/exports.py --figure docs/figures/exports.svg

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
FAMILIES = ("gemm", "grouped", "ffn", "attention", "decode")
KINDS = {"sustained": "sustained_milliseconds", "single": "milliseconds", "joules": "joules", "bytes": "bytes"}

Row = dict[str, str]


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
    predicted = [n["predicted"] for row in rows if "predicted" in (n := ratios(row)) and row["family"] != "attention"]
    near = sum(abs(each - 1) <= 0.05 for each in predicted)
    lines.append(f"reads within 5 % of predicted: {near} of {len(predicted)}, attention apart")
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
            ax.set_xlim(0, 1.75)
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
    parser.add_argument("--how", default="even", help="of products: even, or free (even)")
    parser.add_argument("--figure", metavar="FILE", help="draw it")
    args = parser.parse_args()
    rows = measured(args.measured, args.how)
    print(table(rows) + "\n\n" + summary(rows))
    if args.figure:
        draw(rows, args.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
