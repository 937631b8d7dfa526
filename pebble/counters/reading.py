"""Reports of any layout into one form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from pebble.counters.csv_pages import BASE, CsvTable, read_long, read_tables, read_wide
from pebble.counters.ncu_rep import MAGIC, read_ncu_rep
from pebble.counters.profile import Container, Draft, MeasuredLaunch, Profile, Style
from pebble.counters.quantities import QUANTITIES
from pebble.counters.values import is_european, is_whole, point_or_thousands, read_number
from pebble.errors import InputError
from pebble.system.files import check_path, faults, read_bytes, shown

_MOST_LOOKED_AT = 20_000
_UNITS = ("byte", "ns", "%", "hz")  # which no metric of another kind has
_UNIT_OF = {
    source.metric: quantity.unit
    for quantity in QUANTITIES.values()
    if quantity.unit in _UNITS
    for source in quantity.sources
    if source.factor == 1
}


def read_profile(path: str | Path) -> Profile:
    """Read a report of Nsight Compute.

    Parameters
    ----------
    path : str or Path
        A ``.ncu-rep``, or what ``ncu --csv`` printed, with or without ``--page raw``, mixed with the program's output.

    Returns
    -------
    Profile

    Raises
    ------
    InputError
        The file cannot be read, is no report, holds no launch, or has a metric in a unit of another kind.

    Notes
    -----
    Numbers are scaled to base units by each row's own unit. What can be read of a damaged table is kept, and
    ``notes`` say what could not.
    """
    name = str(check_path("report", path))
    with faults(name, "report: ", "read"), open(name, "rb") as file:
        is_binary = file.read(len(MAGIC)) == MAGIC
    if is_binary or name.lower().endswith(".ncu-rep"):
        drafts, container, notes = read_ncu_rep(name)
        return _profile(name, "ncu-rep", drafts, notes, [], container)
    tables, remarks = read_tables(name, read_bytes(name, "report: "))
    style, notes = _style(tables)
    drafts = []
    for table in tables:
        if table.is_long:
            drafts += read_long(table, style)
        else:
            more, about = read_wide(table, style)
            drafts += more
            notes += about
    broken = sum(table.broken for table in tables)
    if broken:
        notes.append(f"{broken} row{'s' * (broken != 1)} of the table could not be read, or not to the end")
    if tables[-1].open_end:
        notes.append("the file ends without an end of line: its last number may be cut off")
    layout = "long" if tables[0].is_long else "wide"
    if any(draft.rounded for draft in drafts):
        notes.append("scaled units (Mbyte, ms) are printed rounded; `ncu --print-units base` prints whole numbers")
    return _profile(name, layout, drafts, notes, remarks)


def _profile(
    path: str,
    layout: str,
    drafts: list[Draft],
    notes: list[str],
    remarks: list[str],
    container: Container | None = None,
) -> Profile:
    if not drafts:
        cut = "the file is damaged or cut off, and " if container is not None and not container.whole else ""
        raise InputError(f"{shown(path)}: {cut}it holds no launch of a kernel; expected a report of at least one.")
    launches = tuple(draft.launch() for draft in drafts)
    _check_units(path, launches)
    return Profile(path, layout, launches, tuple(dict.fromkeys(notes)), tuple(remarks), container)


def _check_units(path: str, launches: Iterable[MeasuredLaunch]) -> None:
    """Metrics in units of their own kind: bytes are no times, and neither is a share."""
    for launch in launches:
        for metric, expected in _UNIT_OF.items():
            unit = launch.metrics[metric].unit if metric in launch.metrics else expected
            if unit != expected and unit in _UNITS:
                raise InputError(
                    f"{shown(path)}: launch {launch.ident}, {metric}: got it in {unit}, expected {expected}; the rows "
                    "or columns of the table are mixed up."
                )


def _style(tables: list[CsvTable]) -> tuple[Style, list[str]]:
    """How the numbers are written, by all that are there; where each may be read either way, counts are whole."""
    cells = [cell for table in tables for cell in _numbers(table)][:_MOST_LOOKED_AT]
    european = is_european(value for value, _, _ in cells)
    if european is not None:
        return Style(european), ["numbers are written as 27.595.520 and 65,77"] if european else []
    either = [(value, is_whole(metric, unit)) for value, metric, unit in cells if point_or_thousands(value)]
    points = sum(whole * (1 if point_or_thousands(value) == "." else -1) for value, whole in either)
    if either and not points:
        taken = f"such as {either[0][0]}, is taken as {read_number(either[0][0]):,.6g}"
        return Style(), [f"every number with a mark may be read either way: one {taken}"]
    return Style(points > 0), ["numbers are written as 27.595.520, as counts are whole"] if points > 0 else []


def _numbers(table: CsvTable) -> Iterator[tuple[str, str, str]]:
    """The cells that are numbers, each with its metric and unit."""
    if table.is_long:
        if "Metric Value" not in table.header:
            return
        columns = [table.header.index(name) for name in ("Metric Value", "Metric Name")]
        unit_at = table.header.index("Metric Unit") if "Metric Unit" in table.header else len(table.header)
        for row in table.rows:
            if max(columns) < len(row):
                value, metric = (row[at] for at in columns)
                yield from _if_number(value, metric, row[unit_at] if unit_at < len(row) else "")
        return
    units = table.rows[0] if table.rows else []
    for row in table.rows:
        for at, (value, metric) in enumerate(zip(row, table.header, strict=False)):
            if metric not in BASE:  # a compute capability of 12.0 is no style
                yield from _if_number(value, metric, units[at] if at < len(units) else "")


def _if_number(value: str, metric: str, unit: str) -> Iterator[tuple[str, str, str]]:
    if value[:1].isdigit() or value[:1] == "-":
        yield value, metric, unit
