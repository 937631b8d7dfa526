"""Exported files beside the library's kernels: medians of time and energy, from what was measured.

    python benchmarks/hardware/exports.py [MEASURED.csv]

Each ratio is this file's over that of the fastest of PyTorch's own calls for the same operands (`library`), both in one
run of `benchmarks/gpu/run_exports.py`: sustained, in rounds of half a second for each in turn, and single launches.
"""

from __future__ import annotations

import csv
import statistics
import sys
from pathlib import Path

MEASURED = Path(__file__).parent / "exports/measured.csv"
FAMILIES = ("gemm", "grouped", "ffn", "attention")
HOWS = ("even", "free", "waves")
KINDS = {"sustained": "sustained_milliseconds", "single": "milliseconds", "energy": "joules"}

Row = dict[str, str]


def ratios(rows: list[Row], name: str) -> list[float]:
    """This file's over the library's, of the rows that have both."""
    return [float(row[name]) / float(row[f"library_{name}"]) for row in rows if row[name] and row[f"library_{name}"]]


def summary(rows: list[Row]) -> str:
    """A line for each chip, family and way to run."""
    lines = [f"{'chip':<16}{'family':<11}{'how':<7}{'cases':>5}  {'sustained: median, worst':<25}{'single':<8}energy"]
    for chip in sorted({row["chip"] for row in rows}):
        for family in FAMILIES:
            for how in HOWS:
                here = [row for row in rows if (row["chip"], row["family"], row["how"]) == (chip, family, how)]
                if not here:
                    continue
                result = {kind: ratios(here, name) for kind, name in KINDS.items()}
                middle = {
                    kind: f"{statistics.median(values):.3f}" if values else "-" for kind, values in result.items()
                }
                sustained = f"{middle['sustained']}, {max(result['sustained']):.3f}"
                line = f"{chip:<16}{family:<11}{how:<7}{len(here):>5}  {sustained:<25}{middle['single']:<8}"
                lines.append(line + middle["energy"])
    read = [(row, int(row["dram_read_bytes"])) for row in rows if row["dram_read_bytes"]]
    share = statistics.median(bytes_ / int(row["library_read_bytes"]) for row, bytes_ in read)
    near = sum(abs(int(row["predicted_read_bytes"]) / bytes_ - 1) <= 0.05 for row, bytes_ in read)
    lines.append(
        f"DRAM reads under waves: {share:.2f} of the library's, median of {len(read)}; {near} within 5 % of predicted"
    )
    return "\n".join(lines)


def main() -> int:
    """Read the table, print the summary."""
    with open(sys.argv[1] if len(sys.argv) > 1 else MEASURED, newline="") as file:
        print(summary(list(csv.DictReader(file))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
