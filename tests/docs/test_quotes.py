"""Output that pages quote is what the commands print now."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from pebble.cdag.gemm import gemm_dag
from pebble.solvers import solve

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "benchmarks")]
import buffers_table  # noqa: E402
import quoted  # noqa: E402
import update_pages  # noqa: E402

# what stands nowhere as a file: reports of a profiler, and schedules that a search of minutes saves
WITHOUT_FILE = ("product.ncu-rep", "register_blocked.csv", "256.csv", "h200_gemm_orders.ncu-rep", "pinned.json")
CASES = [
    pytest.param(quote, id=f"{page.name}: {quote.command[:60]}", marks=[] if quote.quick else [pytest.mark.slow])
    for page in update_pages.QUOTING
    if page.name != "README.md"  # which has a test of its own
    for quote in quoted.quotes(page.read_text())
    if not set(quote.words) & set(WITHOUT_FILE)
]


@pytest.mark.parametrize("quote", CASES)
def test_a_page_quotes_what_is_printed(quote: quoted.Quote) -> None:
    now = quoted.printed(quote)
    assert quoted.missing(quote.shown, now) is None, now


def test_there_is_much_to_hold() -> None:
    assert len(CASES) >= 12


PAGE = """
.. code-block:: console

   $ pebble bound gemm -m 2 -n 2 -k 2 \\
       --cache 8el
   ...
   lower bound  {} elements
   ...
   $ pebble --version
"""


def test_a_stale_quote_is_found_and_made_anew() -> None:
    (quote,) = quoted.quotes(PAGE.format(12))
    assert quote.command == "bound gemm -m 2 -n 2 -k 2 --cache 8el" and quote.quick
    now = quoted.printed(quote)
    assert quoted.missing(quote.shown, now) is None
    (stale,) = quoted.quotes(PAGE.format(13))
    assert quoted.missing(stale.shown, now) == "lower bound 13 elements"
    assert quoted.updated(PAGE.format(13)) == (PAGE.format(13), [stale.command])  # it leaves something out
    page = "```console\n$ pebble bound gemm -m 2 -n 2 -k 2 --cache 8el\nold\n```\n"
    fresh, by_hand = quoted.updated(page)
    assert not by_hand and now in fresh and quoted.updated(fresh) == (fresh, [])


def test_where_lines_break_makes_no_difference() -> None:
    assert quoted.missing("a b\n  c", "a\nb c") is None
    assert quoted.missing("a b", "a b c") == "c"
    assert quoted.missing("b c", "a b c") == "b c"
    assert quoted.missing("...\nb c", "a b c") is None
    assert quoted.missing("a\n...\nc", "a b c") is None
    assert quoted.missing("optimal (search, 1.0 s)", "optimal (search, 0.3 s)") is None


def cells() -> Iterator[ParameterSet]:
    for table in (ROOT / "benchmarks" / "buffers_table.md").read_text().strip().split("\n\n"):
        head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
        for name, *told in rows:
            for size, interval in zip(head[1:], told, strict=True):
                shape, capacity = head[0].split(",")[0], int(size.split()[-1])
                yield pytest.param(shape, name, capacity, interval, id=f"{shape} {name} {size}")


def test_rows_tighten_each_other() -> None:
    found = {name: (12, 16) for name, _, _ in buffers_table.ROWS} | {
        "sm-local, balanced": (13, None),
        "connected, omega 1/2, balanced": (13, Fraction(31, 2)),
        "connected, omega 1/4": (14, 16),
    }
    tight = buffers_table.tightened(found)
    assert tight["connected, omega 1/2"] == (14, Fraction(31, 2)) == tight["connected, omega 1/4"]
    assert tight["single"] == (14, 16) and tight["sm-local, balanced"] == (14, None)
    assert buffers_table.shown(tight["connected, omega 1/2"]) == "14..15.5"
    assert buffers_table.shown((14, 14)) == "14"


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "name", "capacity", "interval"), cells())
def test_solved_intervals_hold_what_is_found_in_less_time(shape: str, name: str, capacity: int, interval: str) -> None:
    """How far a search comes depends on the machine; two proved intervals around one optimum always meet."""
    low, _, high = interval.partition("..")
    m, n, k = map(int, shape.split("x"))
    (buffers, balanced) = next((buffers, balanced) for told, buffers, balanced in buffers_table.ROWS if told == name)
    most = -(-m * n * k // 2) if balanced else None
    found = solve(gemm_dag(m, n, k), capacity, buffers=buffers, time_limit=5, most_tasks_per_sm=most)
    assert found.upper_bound is not None
    assert found.lower_bound <= Fraction(high or low) and Fraction(low) <= found.upper_bound
