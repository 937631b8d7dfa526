"""Output that pages quote is what the commands print now."""

from __future__ import annotations

import re
import sys
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import pytest

import pebble
from pebble.bounds.memories import buffer_lower_bound
from pebble.cli import main
from pebble.families import accounting
from pebble.game import BufferModel

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "benchmarks" / "exact")]
import buffers  # noqa: E402
import quoted  # noqa: E402
import tiles  # noqa: E402
import update_pages  # noqa: E402

# what stands nowhere as a file: reports of a profiler, and schedules that a search of minutes saves
WITHOUT_FILE = (
    "product.ncu-rep", "register_blocked.csv", "256.csv", "h200_gemm_orders.ncu-rep", "pinned.json", "forward.csv",
    "bert.csv",
)  # fmt: skip
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


@pytest.mark.slow
def test_the_page_of_sweeps_quotes_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("duckdb", reason="the extra `sweep` is not installed")
    page = (ROOT / "docs/sweeps.rst").read_text()
    (tmp_path / "sweep.toml").write_text(page.split(".. code-block:: toml")[1].split("..")[0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(quoted.WIDTH))
    held = 0
    for quote in quoted.quotes(page.replace("code-block:: text", "code-block:: console")):
        if "results.duckdb" in quote.words and not {"--cluster", "--limit"} & set(quote.words):
            assert main(quote.words) == 0
            texts = "".join(capsys.readouterr()), quote.shown
            printed, shown = (re.sub(r"[\d.]+ s, [\d.]+ a second", "", text) for text in texts)
            assert quoted.missing(shown, printed) is None, printed
            held += 1
    assert held == 5


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


def test_a_bound_by_a_linear_program_may_be_near() -> None:
    now = "lower bound 1,174.0 MB (Lagrangian line accounting, 29 segments): no schedule\ngap 1.26"
    assert quoted.missing("...\n1,173.9 MB (Lagrangian line accounting, 29 segments)\n...", now) is None
    assert quoted.missing(now.replace("1,174.0", "1,173.9"), now) is None
    assert quoted.missing(now.replace("1,174.0", "1,179.0"), now) is not None
    assert quoted.missing(now.replace("29", "30"), now) is not None
    other = now.replace("Lagrangian ", "")
    assert quoted.missing(other.replace("1,174.0", "1,173.9"), other) is not None


RECORDED = ROOT / "benchmarks" / "exact" / "buffers.csv"
SOLVED = list(buffers.read(RECORDED).values())


def interval(row: buffers.Row) -> tuple[Fraction, Fraction]:
    """Of a row; what has no upper end is taken as without end."""
    return Fraction(row["lower"]), Fraction(row["upper"] or 10**9)


def test_the_page_shows_the_recorded_optima() -> None:
    shown = (ROOT / "benchmarks" / "buffers_table.md").read_text().strip()
    assert shown == buffers.markdown(buffers.read(RECORDED)) and shown in (ROOT / "docs" / "buffers.md").read_text()


def test_recorded_optima_keep_the_relations_between_the_models() -> None:
    """More memory, cheaper copies, any split and fewer cuts never cost more; second solvers stay below."""
    compared = [(item, other) for item in SOLVED for other in SOLVED if buffers.no_dearer(item, other)]
    assert len(compared) > len(SOLVED)
    for element, other in compared:
        assert interval(element)[0] <= interval(other)[1], (element, other)
    for row in SOLVED:
        assert interval(row)[0] <= interval(row)[1] and (row["status"] == "optimal") == (row["lower"] == row["upper"])
        assert not row["second"] or (row["status"] == "optimal" and float(row["second_cpu"]) < 61)


def test_recorded_optima_are_concave_in_the_price_of_a_copy() -> None:
    """What is proved at two prices bounds what is found between; no copies are omega 2, pooled costs no more than 0."""
    prices: dict[tuple[str, ...], dict[Fraction, buffers.Row]] = {}
    for row in SOLVED:
        price = Fraction(row["omega"] or {"pooled": 0, "sm-local": 2}.get(row["buffers"], 3))
        for split in ("any", "balanced") if row["buffers"] == "pooled" else (row["split"],):
            prices.setdefault((row["workload"], row["S"], row["sms"], split), {})[price] = row
    compared = 0
    for rows in prices.values():
        for low, price, high in combinations(sorted(rows), 3):
            share = (price - low) / (high - low)
            proved = (1 - share) * interval(rows[low])[0] + share * interval(rows[high])[0]
            assert proved <= interval(rows[price])[1], rows[price]
            compared += 1
    assert compared > 200


def test_an_open_row_keeps_the_better_ends_of_its_runs() -> None:
    before = {"lower": "35.5", "proof": "search", "upper": "37.25", "upper_from": "beam", "status": "feasible"}
    now = {"lower": "35.75", "proof": "ends", "upper": "38", "upper_from": "heuristic", "status": "feasible"}
    best = {"lower": "35.75", "proof": "ends", "upper": "37.25", "upper_from": "beam", "status": "feasible"}
    assert buffers.merged(before, now) == buffers.merged(now, before) == best
    assert buffers.merged({}, now) == now
    assert buffers.merged(before | {"lower": "38"}, now | {"lower": "37"})["status"] == "feasible"
    assert buffers.merged(before | {"lower": "37.25"}, now)["status"] == "optimal"


def test_solve_proves_what_bound_proves() -> None:
    result = pebble.solve("ffn", tokens=3, d_model=3, hidden=3, capacity=3, buffers="sm-local", solver="heuristic")
    problem = accounting(pebble.Ffn(3, 3, 3))
    assert result.lower_bound >= buffer_lower_bound(problem, 3, BufferModel("sm-local", 2)).elements == 66


@pytest.mark.parametrize(
    ("family", "shape"), [("gemm", pebble.Gemm), ("ffn", pebble.Ffn), ("online", pebble.Attention)]
)
def test_bounds_of_workloads_are_below_recorded_optima(family: str, shape: type) -> None:
    rows = [row for row in SOLVED if row["workload"].startswith(family) and row["status"] == "optimal"]
    assert rows
    for row in rows:
        sizes = map(int, row["workload"].partition("-")[2].split("x"))
        lower = buffer_lower_bound(accounting(shape(*sizes)), int(row["S"]), buffers.model(row))
        assert lower.elements <= Fraction(row["upper"]), row


@pytest.mark.slow
@pytest.mark.parametrize("row", SOLVED, ids=["-".join(buffers.key_of(row)) for row in SOLVED])
def test_solved_intervals_hold_what_is_found_in_less_time(row: buffers.Row) -> None:
    """How far a search comes depends on the machine; two proved intervals around one optimum always meet."""
    lower, upper = interval(buffers.run(row, 5))
    assert lower <= interval(row)[1] and interval(row)[0] <= upper


def test_the_page_shows_the_recorded_tiles() -> None:
    shown = (ROOT / "benchmarks" / "tiles_table.md").read_text().strip()
    result = tiles.read(ROOT / "benchmarks" / "exact" / "tiles.csv")
    assert shown == tiles.markdown(result) and shown in (ROOT / "docs" / "buffers.md").read_text()
    for row in result.values():
        assert float(row["lower"]) <= float(row["upper"])
        for column in tiles.SCHEDULES:  # what keeps to the split is a pebbling of the same game
            assert not row[column] or row[column].endswith("*") or float(row["lower"]) <= float(row[column])
