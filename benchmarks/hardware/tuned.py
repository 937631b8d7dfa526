"""Tuned schedules on GPUs: proved bound, predicted and measured, beside orders in common use and the library's kernel.

    python benchmarks/hardware/tuned.py --figure docs/figures/tuned.svg      # the table that is printed, and the figure
    python benchmarks/hardware/tuned.py --collect FOLDER                     # make predicted/tuned.csv anew

FOLDER is what `benchmarks/gpu/tune_layers.sh` wrote; the launches are those of `*_kit_tuned.csv`, from
`make_tables.py plan PLAN --tuned ...` and `measure.py run PLAN`. "Daily" is the order in common use that moved least in
the same kernel, of nine (GEMM), seven (FFN) or four (attention), each in waves and free-running.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
from itertools import groupby
from math import prod
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

from library import Row, read_rows, shape_name  # noqa: E402 - beside this file

HERE = Path(__file__).parent
TABLE = HERE / "predicted/tuned.csv"
COLUMNS = (
    "chip", "case", "problem", "result_bytes", "bound_bytes",
    "schedule", "predicted_read_bytes", "predicted_write_bytes",
    "tuned_read_bytes", "tuned_write_bytes", "tuned_ms", "daily", "daily_read_bytes", "daily_write_bytes", "daily_ms",
    "library", "library_read_bytes", "library_write_bytes", "library_ms",
)  # fmt: skip


def moved(row: Row) -> int:
    """Bytes read and written."""
    return int(row["dram_read_bytes"]) + int(row["dram_write_bytes"])


def result_bytes(row: Row) -> int:
    """Bytes of the result, in 16 bits; what must be written, though a counter misses what is left dirty in L2."""
    sides = {"gemm": ("m", "n"), "ffn": ("tokens", "d_model"), "attention": ("queries", "head_dim", "heads", "batch")}
    return 2 * prod(int(row[name]) for name in sides[row["family"]])


def measured(row: Row, what: str) -> dict[str, object]:
    """The measured columns of one launch."""
    return {
        f"{what}_read_bytes": row["dram_read_bytes"], f"{what}_write_bytes": row["dram_write_bytes"],
        f"{what}_ms": row["milliseconds"],
    }  # fmt: skip


def collect(folder: Path) -> list[dict[str, object]]:
    """A row for each tuned launch."""
    results = []
    rows = list(read_rows(sorted(HERE.glob("*_kit_tuned.csv"))))
    for (chip, case), group in groupby(rows, lambda row: (row["chip"], row["note"].split(";")[0])):
        here = [row for row in group if row["dram_read_bytes"]]
        (tuned,) = (row for row in here if row["order"].startswith("tuned:"))
        baseline = min((r for r in here if r is not tuned and r["launch"] != "library"), key=moved)
        library = min((row for row in here if row["launch"] == "library"), key=moved)
        launch = json.loads((folder / f"{chip}-{case}.json").read_text())["launch"]
        report = json.loads((folder / f"{chip}-{case}.report.json").read_text())
        results.append(
            {
                "chip": chip, "case": case, "problem": shape_name(tuned), "result_bytes": result_bytes(tuned),
                "bound_bytes": report["lower_bound"]["bytes"], "schedule": tuned["order"].removeprefix("tuned:"),
                "predicted_read_bytes": launch["read_bytes"], "predicted_write_bytes": launch["write_bytes"],
                "daily": f"{baseline['order']}, {baseline['execution']}",
                "library": library["order"], **measured(tuned, "tuned"), **measured(baseline, "daily"),
                **measured(library, "library"),
            }
        )  # fmt: skip
    return results


def numbers(row: Row) -> dict[str, float]:
    """What the table and the figure show of a case: shares of the library's.

    Where a counter saw fewer bytes written than the result has, the rest was left dirty in L2: it is counted.
    """
    least = int(row["result_bytes"])
    library, tuned, baseline = (
        int(row[f"{what}_read_bytes"]) + max(least, int(row[f"{what}_write_bytes"]))
        for what in ("library", "tuned", "daily")
    )
    predicted = int(row["predicted_read_bytes"]) + int(row["predicted_write_bytes"])
    return {
        "bound": int(row["bound_bytes"]) / library, "predicted": predicted / library, "tuned": tuned / library,
        "daily": baseline / library, "time": float(row["tuned_ms"]) / float(row["library_ms"]),
        "daily_time": float(row["tuned_ms"]) / float(row["daily_ms"]),
        "error": int(row["predicted_read_bytes"]) / int(row["tuned_read_bytes"]),
    }  # fmt: skip


def show(rows: list[Row]) -> None:
    """The table."""
    for chip, group in groupby(rows, lambda row: row["chip"]):
        print(f"{chip}: DRAM GB, read (proved bound: read and written)")
        head = ("case", "bound", "predicted", "tuned", "daily", "library", "tuned/lib", "time/lib", "pred/meas")
        print(f"{head[0]:<20}" + "".join(f"{name:>10}" for name in head[1:]))
        here = list(group)
        for row in here:
            n = numbers(row)
            gb = [
                int(row[name]) / 1e9
                for name in (
                    "bound_bytes", "predicted_read_bytes", "tuned_read_bytes", "daily_read_bytes", "library_read_bytes",
                )
            ]  # fmt: skip
            print(
                f"{row['case']:<20}" + "".join(f"{value:10.3f}" for value in gb)
                + f"{n['tuned']:10.2f}{n['time']:10.2f}{n['error']:10.3f}"
            )  # fmt: skip
        medians = {
            name: statistics.median(numbers(row)[name] for row in here) for name in ("tuned", "time", "daily_time")
        }
        near = sum(abs(numbers(row)["error"] - 1) <= 0.05 for row in here)
        print(
            f"median: {medians['tuned']:.2f} of the library's bytes (read and written) in {medians['time']:.2f} of its "
            f"time, {medians['daily_time']:.2f} of the common order's in the same kernel; {near} of {len(here)} "
            "predictions of reads within 5 %\n"
        )


def draw(rows: list[Row], path: str) -> None:
    """One panel a chip, a line a case: shares of the library's bytes."""
    from pebble.plots.save import BLUE, GREY, ORANGE, RED, page, plain_numbers, save_figure, small_title

    chips = sorted({row["chip"] for row in rows})
    most = max(sum(row["chip"] == chip for row in rows) for chip in chips)
    with page(7.2, 0.9 + 0.23 * most) as figure:
        axes: Any = figure.subplots(1, len(chips), sharex=True, squeeze=False)[0]
        for ax, chip in zip(axes, chips, strict=True):
            here = sorted((row for row in rows if row["chip"] == chip), key=lambda row: numbers(row)["tuned"])
            at = list(range(len(here)))
            for name, marker, color, text in (
                ("bound", "|", RED, "proved bound"), ("predicted", "o", GREY, "tuned, predicted"),
                ("tuned", ".", BLUE, "tuned, measured"), ("daily", "s", ORANGE, "best common order, measured"),
            ):  # fmt: skip
                size, face = {"predicted": 42, "daily": 14}.get(name, 30), "none" if name == "predicted" else color
                colors = {"color": color} if marker == "|" else {"edgecolors": color, "facecolors": face}
                ax.scatter([numbers(r)[name] for r in here], at, size, marker=marker, lw=1.2, label=text, **colors)
            ax.axvline(1, color="black", lw=0.7, label="library's kernel, measured")
            ax.set_yticks(at, [f"{row['case']}  {numbers(row)['time']:.2f}" for row in here], fontsize=6.5)
            ax.set_xlim(0, 1.15)
            plain_numbers(ax.xaxis)
            ax.grid(axis="y", lw=0.3)
            ax.set_xlabel("DRAM bytes / library's (beside names: time)", fontsize=7)
            small_title(ax, chip)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=6.5, frameon=False)
    save_figure(figure, path)
    print(f"wrote {path}")


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collect", type=Path, metavar="FOLDER", help="make the table anew")
    parser.add_argument("--figure", metavar="FILE", help="draw it")
    args = parser.parse_args()
    if args.collect:
        with open(TABLE, "w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(collect(args.collect))
    with open(TABLE, newline="") as file:
        rows = list(csv.DictReader(file))
    show(rows)
    if args.figure:
        draw(rows, args.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
