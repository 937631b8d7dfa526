"""Compute-bound beside memory-bound, measured: what the best split of the SMs gains over one after the other.

    python benchmarks/hardware/beside.py --figure beside.svg

Reads ``side_by_side/measured.csv`` (`benchmarks/gpu/side_by_side.py`): a GEMM on some SMs, a kernel that only
reads on the others, each also alone on all of them.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2])]

MEASURED = Path(__file__).parent / "side_by_side" / "measured.csv"


@dataclass(frozen=True)
class Case:
    """One GEMM and one amount to read on one chip.

    Attributes
    ----------
    chip : str
    side : int
        m, n and k of the GEMM.
    read_bytes : int
    gemm_ms, read_ms : float
        Each alone on all SMs.
    gains : dict of int to float
        SMs that read: time of one after the other over time of both together.
    """

    chip: str
    side: int
    read_bytes: int
    gemm_ms: float
    read_ms: float
    gains: dict[int, float]

    @property
    def best(self) -> tuple[int, float]:
        """SMs that read at the best split, and its gain."""
        return max(self.gains.items(), key=lambda pair: pair[1])

    @property
    def at_most(self) -> float:
        """The gain if the shorter of the two cost nothing."""
        return (self.gemm_ms + self.read_ms) / max(self.gemm_ms, self.read_ms)

    def to_json(self) -> dict[str, object]:
        """Plain data."""
        return {
            "chip": self.chip, "side": self.side, "read_bytes": self.read_bytes, "gemm_ms": self.gemm_ms,
            "read_ms": self.read_ms, "best_read_sms": self.best[0], "gain": self.best[1], "at_most": self.at_most,
            "least_gain": min(self.gains.values()),
        }  # fmt: skip


def cases(path: Path = MEASURED) -> list[Case]:
    """The cases of a table, in its order."""
    result: dict[tuple[str, int, int], Case] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            key = (row["chip"], int(row["m"]), int(row["read_bytes"]))
            alone = float(row["gemm_alone_ms"]), float(row["read_alone_ms"])
            case = result.setdefault(key, Case(*key, *alone, {}))
            case.gains[int(row["read_sms"])] = sum(alone) / float(row["together_ms"])
    return list(result.values())


def draw(result: list[Case], path: str) -> None:
    """The gain of each case against the SMs that read."""
    from pebble.plots.save import BLUE, GREEN, ORANGE, PURPLE, page, save_figure, small_title

    with page(3.33, 3.2) as figure:
        ax = figure.add_subplot()
        chips = list(dict.fromkeys(case.chip for case in result))
        kinds = list(dict.fromkeys((case.side, round(case.read_bytes / 1e9, 1)) for case in result))
        for case in result:
            kind = (case.side, round(case.read_bytes / 1e9, 1))
            label = f"GEMM of {kind[0]}, {kind[1]:g} GB" if case.chip == chips[0] else None
            color = (BLUE, ORANGE, GREEN, PURPLE)[kinds.index(kind)]
            line = ("o-", "s--")[chips.index(case.chip)]
            ax.plot(list(case.gains), list(case.gains.values()), line, ms=3, lw=1, color=color, label=label)
        ax.axhline(1, color="black", lw=0.8)
        ax.set_xlabel("SMs that read, of 132")
        ax.set_ylabel("one after the other / side by side")
        small_title(
            ax, "measured on " + ",\n".join(f"{c} ({w})" for c, w in zip(chips, ("full", "dashed"), strict=False))
        )
        figure.legend(loc="outside lower center", ncols=2, fontsize=6.5, frameon=False)
    save_figure(figure, path)


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figure", metavar="FILE", help="draw the gain against the split")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    args = parser.parse_args()
    result = cases()
    if args.figure:
        draw(result, args.figure)
    if args.json:
        print(json.dumps({"cases": [case.to_json() for case in result]}))
        return 0
    print("chip             GEMM   alone ms    reads   alone ms   best split   gain   at most   worst split")
    for case in result:
        sms, gain = case.best
        print(
            f"{case.chip:<15}{case.side:>6} {case.gemm_ms:>10.3f} {case.read_bytes / 1e9:>5.1f} GB"
            f" {case.read_ms:>10.3f}   {sms:>3} read   {gain:>6.2f} {case.at_most:>8.2f}"
            f" {min(case.gains.values()):>12.2f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
