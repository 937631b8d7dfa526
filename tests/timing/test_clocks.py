"""The check against clocks: the recorded summary is that of the recorded rows, and the documents say what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HARDWARE = ROOT / "benchmarks/hardware"
SUMMARY = (HARDWARE / "predicted/clocks.txt").read_text()


def test_the_summary_is_that_of_the_recorded_rows() -> None:
    command = [sys.executable, str(HARDWARE / "clocks.py"), "--recorded", str(HARDWARE / "predicted/clocks.csv")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shown == SUMMARY


def _share(what: str) -> tuple[int, int]:
    """Rows of a line of the summary, and how many percent are within 15 %."""
    result = re.search(rf"^{re.escape(what)} +(\d+) .*?x/[\d.]+ +\d+% +(\d+)%", SUMMARY, re.MULTILINE)
    assert result, what
    return int(result[1]), int(result[2])


def _winners(what: str) -> tuple[int, int, int]:
    """Of a line of the summary: products, on how many percent the fastest tile was chosen, and the worst choice."""
    result = re.search(rf"^{re.escape(what)} +(\d+) products; the fastest tile +(\d+)%.*?worst +(\d+)%", SUMMARY, re.M)
    assert result, what
    return int(result[1]), int(result[2]), int(result[3])


H100, H200 = "h100-sxm5-80gb", "h200-sxm-141gb"


def test_the_page_says_what_the_summary_says() -> None:
    page = " ".join((ROOT / "docs/time-model.rst").read_text().split())
    rows, near = _share("gemm: rows kept out of it")
    assert f"{near} % of {rows:,} products" in page
    rows, near = _share("gemm: of these, measured after the fit")
    assert f"{near} % of {rows:,} launches measured after the fit" in page
    rows, odd = _share("gemm: not queued")
    assert f"{odd} % of {rows:,} such rows" in page
    for chip in (H100, H200):
        count, right, worst = _winners(f"ten tiles, {chip}")
        assert f"{right} % of {count} shapes on the {chip[:4].upper()} (at worst {worst} % slower)" in page
    for chip in (H100, H200):
        count, right, worst = _winners(f"ten tiles, measured after the fit, {chip}")
        assert f"{right} % of {count} other shapes on the {chip[:4].upper()} (at worst {worst} % slower)" in page
    for family in ("ffn", "attention"):
        rows, share = _share(f"{family}: all queued launches")
        assert f"{share} % of {rows:,} launches" in page, family


def test_the_page_says_what_is_won_side_by_side() -> None:
    page = " ".join((ROOT / "docs/time-model.rst").read_text().split())
    line = r"^(h\d+)\S+ +(\d+)x\S+ ([\d.]+) GB +([\d.]+) at +(\d+), ([\d.]+) at +(\d+); .* gain ([\d.]+)$"
    result = re.findall(line, SUMMARY, re.M)
    assert len(result) == 8
    for chip, side, gigabytes, measured, at, modelled, there, got in result:
        row = f"{chip.upper()} {side} {gigabytes} GB {measured}x at {at} {modelled}x at {there} {got}x"
        assert row in page, row


def test_the_aims_are_met_where_the_page_says_so() -> None:
    for rows in ("rows kept out of it", "of these, measured after the fit"):
        _, near = _share(f"gemm: {rows}")
        assert near >= 80
    for plan in ("ten tiles", "ten tiles, measured after the fit"):
        for chip in (H100, H200):
            _, right, _ = _winners(f"{plan}, {chip}")
            assert right >= 80
