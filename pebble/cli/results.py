"""What a store of `pebble sweep` holds: filtered, sorted, queried in SQL, exported as CSV or Parquet.

While a sweep writes the store, what is read is a snapshot, some seconds old.

examples:
  pebble results results.duckdb
  pebble results results.duckdb --filter machine='h100*' --filter schedule=row --sort -ratio_to_lower_bound
  pebble results results.duckdb --where "ratio_to_lower_bound < 1.05 and sms > 100" --columns workload,schedule
  pebble results results.duckdb --sql "select schedule, avg(ratio_to_lower_bound) r from results group by 1 order by r"
  pebble results results.duckdb --export results.parquet
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from pebble.cli import _output
from pebble.errors import InputError
from pebble.sweeps.columns import COLUMNS
from pebble.sweeps.results import Results, results
from pebble.sweeps.task import GAME
from pebble.units import format_ratio

_SHOWN_ROWS = 40
_LONGEST_CELL = 42
# what a narrow terminal shows to the end: the answer, then what it is of
_ANSWER = (
    "schedule", "ratio_to_lower_bound", "dram_bytes", "upper_bound_cost", "lower_bound_cost", "workload", "machine"
)  # fmt: skip
_OF_MACHINES = ("sms", "cache_bytes", "stages", "policy")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble results``."""
    parser.add_argument("store", metavar="STORE", help="a file that `pebble sweep` wrote")
    parser.add_argument("--filter", action="append", metavar="COLUMN=TEXT", help="rows alone that match; * and ? do")
    parser.add_argument("--where", metavar="SQL", help="rows alone for which this condition holds")
    parser.add_argument("--columns", metavar="NAMES", help="columns, separated by commas")
    parser.add_argument("--sort", metavar="NAMES", help="columns to sort by; -NAME from the largest")
    parser.add_argument("--limit", metavar="N", help=f"the most rows (as text {_SHOWN_ROWS}; else all)")
    parser.add_argument("--sql", metavar="QUERY", help="a query of your own over the table `results`")
    parser.add_argument("--export", metavar="FILE", help="write the rows to this .csv or .parquet, by task id")
    parser.add_argument("--timings", action="store_true", help="with what differs from run to run: seconds, attempts")
    lines = [f"  {column.name:<22}{column.meaning}" for column in COLUMNS]
    parser.epilog = "\n".join(["columns:", *lines, "", str(parser.epilog)])


def run(args: argparse.Namespace) -> int:
    """Query and print."""
    limit = args.limit
    if limit is None and args.export is None and not args.json:
        limit = _SHOWN_ROWS + 1
    result = results(
        args.store,
        where=args.where,
        filters=_filters(args.filter or []),
        columns=_names(args.columns),
        sort=_names(args.sort),
        limit=limit,
        sql=args.sql,
        export=args.export,
        timings=args.timings,
    )
    if args.json:
        _output.print_report(result)
        return 0
    _output.say(result.summary())
    if result.exported is not None:
        _output.say(f"exported: {result.exported}")
    else:
        _print(result, _SHOWN_ROWS if args.limit is None else len(result.values))
    return 0


def _print(result: Results, most: int) -> None:
    rows = result.rows()[:most]
    if not rows:
        print("\nno rows")
    for kind in dict.fromkeys(row.get("kind") for row in rows):
        _print_alike([row for row in rows if row.get("kind") == kind], plain=len(rows) == 1 or "kind" not in rows[0])
    if len(result.values) > most:
        _output.say(f"note: the first {most} rows; --limit shows more, --export writes all")


def _print_alike(rows: Sequence[Mapping[str, Any]], plain: bool) -> None:
    """A table of rows of one kind; what is the same in all stands above it, unless the columns were chosen."""
    entries = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    if rows[0].get("kind") == GAME:
        entries.remove("schedule") if "schedule" in entries else None  # hundreds of moves
    entries = [name for name in entries if plain or not _known_of_machine(name, rows)]
    same = [] if plain else [name for name in entries if len({row[name] for row in rows}) == 1]
    numbers = [name for name in entries if all(isinstance(row[name], int | float | None) for row in rows)]
    order = [name for name in entries if name not in (*numbers, *same)] + [name for name in numbers if name not in same]
    print()
    if same:
        shared = ", ".join(f"{name} {_cell(rows[0][name], name)}" for name in same)
        _output.say(f"{len(rows)} row{'s' * (len(rows) > 1)}: {shared}")
    if order:
        left = sum(name not in numbers for name in order)
        print(_output.table(order, [[_cell(row[name], name) for name in order] for row in rows], left, _ANSWER))


def _known_of_machine(name: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a column says nothing that the machine's name does not."""
    if name not in _OF_MACHINES or rows[0].get("machine") is None:
        return False
    return len({(row["machine"], row[name]) for row in rows}) == len({row["machine"] for row in rows})


def _cell(value: object, name: str) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return format_ratio(value)
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    text = text if text.isprintable() else ascii(text)
    return text if len(text) <= _LONGEST_CELL or name == "reason" else text[: _LONGEST_CELL - 3] + "..."


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _filters(texts: list[str]) -> dict[str, str]:
    result = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--filter: got {text[:80]!r}, expected COLUMN=TEXT such as machine='h100*'.")
        result[name.strip()] = value
    return result
