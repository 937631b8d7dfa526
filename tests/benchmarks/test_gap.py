"""The gap table: its rows, their certificates, and a figure of two tables."""

import csv
import importlib
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "gap"


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch):
    """The modules of the benchmark, as its command imports them."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import catalogue
    import gap

    yield catalogue, gap
    for name in ("catalogue", "exact", "gap", "segments", "wide"):
        sys.modules.pop(name, None)


def test_the_catalogue(tools) -> None:
    catalogue, _ = tools
    rows = list(catalogue.catalogue())
    counts = {family: sum(r.family == family for r in rows) for family in ("gemm", "ffn", "attention", "gated")}
    assert counts == {"gemm": 28, "ffn": 16, "attention": 12, "gated": 16}
    assert sum(r.peer_elements is not None for r in rows) == len(catalogue.PEER_MILLIONS)


def test_a_row_is_certified_and_drawn(tools, tmp_path: Path) -> None:
    catalogue, gap = tools
    first = next(catalogue.catalogue())
    row = gap.row(first, certificates=True)
    assert row["verified"] == "yes"
    assert 1 <= float(row["gap"]) < 1.2
    path = tmp_path / "one.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, gap.COLUMNS)
        writer.writeheader()
        writer.writerow(row)
    figure = tmp_path / "gap.svg"
    gap.main(["figure", str(figure), str(FOLDER / "before.csv"), str(path)])
    assert f"one {float(row['gap']):.3f}" in figure.read_text() and ">gemm<" in figure.read_text()
    gap.main(["figure", str(figure), str(FOLDER / "before.csv"), "--no-title"])
    text = figure.read_text()
    assert all(f">{family}: schedule / bound<" in text and f">{family}<" not in text for family in ("gemm", "ffn"))
    assert gap.summary([row]).splitlines()[1].split()[:2] == ["gemm", "1"]


@pytest.mark.slow
@pytest.mark.parametrize(("script", "record", "unit"), [("gap", "groups", "elements"), ("wide", "wide", "bytes")])
def test_recorded_rows_are_those_of_today(tools, script: str, record: str, unit: str) -> None:
    """One row in nine; a bound that is searched for may differ a little with the libraries that search."""
    catalogue, gap = tools
    row = importlib.import_module(script).row
    recorded = gap.read_table(FOLDER / f"{record}.csv")
    for instance, spec in list(zip(catalogue.catalogue(), recorded, strict=True))[::9]:
        now = row(instance, certificates=True)
        assert (now["instance"], now["kibibytes"], now["verified"]) == (spec["instance"], spec["kibibytes"], "yes")
        assert now[f"schedule_{unit}"] == spec[f"schedule_{unit}"]
        assert float(now[f"bound_{unit}"]) == pytest.approx(float(spec[f"bound_{unit}"]), rel=1e-3)


@pytest.mark.parametrize("names", [("before", "after"), ("after", "lines"), ("tiles", "prices"), ("visits", "groups")])
def test_no_gap_rose(tools, names: tuple[str, str]) -> None:
    """Element by element, the recorded tables: later schedules move no more, later bounds are no lower, all checked."""
    _, gap = tools
    before, after = (gap.read_table(FOLDER / f"{name}.csv") for name in names)
    for old, new in zip(before, after, strict=True):
        assert (old["instance"], old["kibibytes"]) == (new["instance"], new["kibibytes"])
        assert new["verified"] == "yes"
        assert int(new["bound_elements"]) >= int(old["bound_elements"])
        assert not old["schedule_elements"] or int(new["schedule_elements"]) <= int(old["schedule_elements"])
        assert int(new["schedule_elements"]) >= int(new["bound_elements"])


def test_small_optima_stand_between(tools) -> None:
    """The recorded rows: bounds up to the optima, schedules from them on; and today's bound and schedule of each."""
    import exact

    rows = exact.read(FOLDER / "exact.csv")
    assert not exact.wrong(rows)
    assert sum(row["family"] == "gemm" and row["optimum"] != "" for row in rows) >= 60
    assert sum(row["family"] != "gemm" and row["optimum"] != "" for row in rows) >= 60
    for row in rows[::7]:
        question = next(one for one in exact.questions() if (one.family, one.shape) == (row["family"], row["shape"]))
        capacity = int(row["capacity"])
        assert exact.lower_bound(question.workload, capacity).elements == int(row["bound"])
        memory = exact.FastMemory.of_values(capacity, question.workload)
        schedule = exact.family_of(question.workload).best_schedule(question.workload, memory)
        assert schedule.elements == int(row["schedule_elements"])


def test_a_bound_above_an_optimum_is_wrong(tools) -> None:
    import exact

    row = exact.read(FOLDER / "exact.csv")[0]
    above, open_one = row | {"bound": str(int(row["optimum"]) + 1)}, row | {"optimum": ""}
    assert exact.wrong([row, above, open_one]) == [above]
    assert exact.main(["table", str(FOLDER / "exact.csv")]) == 0


def test_the_program_over_segments_is_a_bound(tools) -> None:
    """The recorded numbers are up to the optima, and one is made again."""
    import segments

    with (FOLDER / "segments.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(max(int(row["by_work"]), int(row["by_moves"])) <= int(row["optimum"]) for row in rows)
    row = next(row for row in rows if (row["shape"], row["capacity"]) == ("2x3x3", "5"))
    product = segments.Product(2, 3, 3, 5, 50)
    assert segments.by_work(product)[0] == int(row["by_work"])
    assert segments.by_moves(product)[0] == int(row["by_moves"])


def test_rounded_multipliers_prove_no_more(tools) -> None:
    """Of 3 x >= 1 and x + y >= 1: the least of 2 x + 3 y is 2; a variable pays for what its column lacks."""
    import segments

    program = segments.Program()
    x, y = program.variable(2, 5), program.variable(3, 5)
    program.add({x: 3}, 1, None)
    program.add({x: 1, y: 1}, 1, None)
    assert program.bound() == 2
