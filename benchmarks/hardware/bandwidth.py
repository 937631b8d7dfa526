"""What DRAM delivers, measured (`bandwidth/measured.csv`), as shares of the vendor's peak.

    python benchmarks/hardware/bandwidth.py

Rows are those of `benchmarks/gpu/bandwidth.py`: pieces of an array that are read or written once.
"""

import csv
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2])]

from pebble.models.machine import load_machine  # noqa: E402 - beside this folder

MEASURED = Path(__file__).with_name("bandwidth") / "measured.csv"


def main() -> None:
    """One line a case, the chips side by side."""
    cases: dict[tuple[str, ...], dict[str, float]] = {}
    with MEASURED.open(newline="") as file:
        for row in csv.DictReader(file):
            key = (row["pattern"], row["piece_bytes"], row["row_bytes"], row["span_gib"], row["written"])
            cases.setdefault(key, {})[row["chip"]] = float(row["gb_per_second"])
    chips = sorted({chip for rates in cases.values() for chip in rates})
    peaks = {chip: (load_machine(chip).dram_bytes_per_second or 0) / 1e9 for chip in chips}
    print("pattern   piece, B  row, B span, GiB  written", *(f"{chip:>20}" for chip in chips))
    for (pattern, piece, row_bytes, span, written), rates in cases.items():
        cells = (f"{rates[chip]:,.0f} GB/s, {rates[chip] / peaks[chip]:.1%}" for chip in chips)
        print(f"{pattern:9}{piece:>9}{row_bytes:>8}{span:>10}{written:>9}", *(f"{cell:>20}" for cell in cells))


if __name__ == "__main__":
    main()
