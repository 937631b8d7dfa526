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
    found = re.search(rf"^{re.escape(what)} +(\d+) .*?x/[\d.]+ +\d+% +(\d+)%", SUMMARY, re.MULTILINE)
    assert found, what
    return int(found[1]), int(found[2])


def test_the_page_says_what_the_summary_says() -> None:
    page = " ".join((ROOT / "docs/time-model.rst").read_text().split())
    kept_out, near = _share("gemm: kept out, timed in a stream of launches")
    assert f"{near} % of {kept_out:,} products" in page
    alone, odd = _share("gemm: one launch under a profiler, or not recorded")
    assert f"{odd} % of {alone:,} such rows" in page
    plan = r"^ten tiles, their own plan +(\d+) products; the fastest tile +(\d+)%.*?worst +(\d+)%"
    tiles = re.search(plan, SUMMARY, re.MULTILINE)
    assert tiles
    assert f"on {tiles[2]} % of {tiles[1]} shapes" in page and f"at worst {tiles[3]} % slower" in page
    for family in ("ffn", "attention"):
        rows, share = _share(f"{family}: all")
        assert f"{share} % of {rows:,} launches" in page, family


def test_the_aims_are_met_where_the_page_says_so() -> None:
    _, near = _share("gemm: kept out, timed in a stream of launches")
    assert near >= 80
    won = re.search(r"^ten tiles, their own plan .*?the fastest tile +(\d+)%", SUMMARY, re.MULTILINE)
    assert won and int(won[1]) >= 80
