"""The gap table: its rows, their certificates, and a figure of two tables."""

import csv
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "gap"


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """The modules of the benchmark, as its command imports them."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import catalogue
    import gap

    yield catalogue, gap
    for name in ("catalogue", "gap"):
        sys.modules.pop(name, None)


def test_the_catalogue(tools) -> None:  # type: ignore[no-untyped-def]
    catalogue, _ = tools
    rows = list(catalogue.catalogue())
    counts = {family: sum(r.family == family for r in rows) for family in ("gemm", "ffn", "attention", "gated")}
    assert counts == {"gemm": 28, "ffn": 16, "attention": 12, "gated": 16}
    assert sum(r.peer_elements is not None for r in rows) == len(catalogue.PEER_MILLIONS)


def test_a_row_is_certified_and_drawn(tools, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
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


@pytest.mark.parametrize("names", [("before", "after"), ("after", "lines"), ("tiles", "prices")])
def test_no_gap_rose(tools, names: tuple[str, str]) -> None:  # type: ignore[no-untyped-def]
    """Element by element, the recorded tables: later schedules move no more, later bounds are no lower, all checked."""
    _, gap = tools
    before, after = (gap.read_table(FOLDER / f"{name}.csv") for name in names)
    for old, new in zip(before, after, strict=True):
        assert (old["instance"], old["kibibytes"]) == (new["instance"], new["kibibytes"])
        assert new["verified"] == "yes"
        assert int(new["bound_elements"]) >= int(old["bound_elements"])
        assert not old["schedule_elements"] or int(new["schedule_elements"]) <= int(old["schedule_elements"])
        assert int(new["schedule_elements"]) >= int(new["bound_elements"])
