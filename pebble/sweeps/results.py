"""``results``: what a store of a sweep holds, filtered, sorted, exported."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pebble.errors import InputError, UnknownNameError, check_flag, check_text
from pebble.reports.report import Report
from pebble.reports.target import whole
from pebble.sweeps.columns import COLUMNS, NAMES, SAME_EACH_RUN, TABLE
from pebble.sweeps.store import duckdb, is_of_file, reading
from pebble.system.files import check_output, check_path, faults, shown

MOST_ROWS = 1_000_000
EXPORTS = {".csv": "FORMAT csv, HEADER", ".parquet": "FORMAT parquet, COMPRESSION zstd"}
FIRST = (
    "kind", "status", "reason", "workload", "machine", "sms", "cache_bytes", "tile", "stages", "policy", "execution",
    "schedule", "capacity_pebbles", "variant", "solver", "dram_bytes",
    "ratio_to_lower_bound", "lower_bound_cost", "upper_bound_cost",
)  # fmt: skip
_SORT = (
    "kind", "workload", "machine", "cache_bytes", "tile", "ratio_to_lower_bound", "capacity_pebbles", "variant",
    "solver", "schedule",
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class Results(Report):
    """Rows of a store.

    Attributes
    ----------
    store : str
    columns : tuple of str
    values : tuple of tuple
        The rows, in the order asked for.
    counts : mapping of str to int
        All rows of the store, by status.
    version : str
        Of the pebble that computed them.
    exported : str or None
        The file they were written to.
    snapshot_time : str or None
        Where a sweep is writing the store: when, in ISO 8601, the snapshot was made that was read instead.
    """

    store: str
    columns: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    counts: Mapping[str, int] = field(default_factory=dict)
    version: str = ""
    exported: str | None = None
    snapshot_time: str | None = None

    question = "results"
    old_names = (("found", "values"),)

    def summary(self) -> str:
        spec = ", ".join(f"{count:,} {status}" for status, count in self.counts.items()) or "empty"
        made = "" if self.snapshot_time is None else f", a snapshot of {self.snapshot_time} while a sweep writes it"
        return f"{self.store}{made}: {spec}, by pebble {self.version}"

    def rows(self) -> list[dict[str, Any]]:
        """The rows."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.values]

    def document(self) -> dict[str, Any]:
        units = {column.name: column.meaning for column in COLUMNS if column.name in self.columns}
        return {
            "store": self.store,
            "rows_by_status": dict(self.counts),
            "computed_by_version": self.version,
            "exported": self.exported,
            "snapshot_time": self.snapshot_time,
            "columns": units,
            "rows": self.rows(),
        }


def results(
    store: str | Path,
    *,
    where: str | None = None,
    filters: Mapping[str, str] | None = None,
    columns: Sequence[str] | None = None,
    sort: Sequence[str] | None = None,
    limit: int | str | None = None,
    sql: str | None = None,
    export: str | Path | None = None,
    timings: bool = False,
) -> Results:
    """What a store of a sweep holds.

    Parameters
    ----------
    store : str or Path
        A file that `pebble.sweep` wrote. While a sweep writes it, what is read is the snapshot that the sweep makes
        every few seconds.
    where : str, optional
        A condition in SQL: ``"ratio_to_lower_bound < 1.1 and sms > 100"``.
    filters : mapping of str to str, optional
        Columns and what they must be, with ``*`` and ``?``: ``{"workload": "llama-3-*"}``.
    columns, sort : sequence of str, optional
        Names of columns; one to sort by may begin with ``-``, from the largest.
    limit : int, optional
        The most rows.
    sql : str, optional
        A query of your own over the table ``results``, in place of all these. The store is read only, and the query
        reaches no other file.
    export : str or Path, optional
        Write the rows to this file, ``.csv`` or ``.parquet``: all columns but those that differ from run to run, in
        the order of task ids, unless asked otherwise. Stores with equal answers give equal files.
    timings : bool
        Export also ``seconds`` and ``attempts``, which differ from run to run.

    Returns
    -------
    Results

    Raises
    ------
    InputError
        No such store, a malformed query, or a file that cannot be written.
    UnknownNameError
        No such column.
    """
    check_flag("timings", timings)
    if sql is not None and (where or filters or columns or sort):
        raise InputError("--sql: got it with --where, --filter, --columns or --sort, expected the query alone.")
    exporting = export is not None
    names = _columns(columns) if columns else _default_columns(exporting, timings)
    order = _order(sort if sort else ("task_id",) if exporting else _SORT)
    most = MOST_ROWS if limit is None else whole("--limit", limit, 1, MOST_ROWS)
    if sql is None:
        condition, values = _condition(where, filters or {})
        query = f"SELECT {', '.join(names)} FROM {TABLE}{condition} ORDER BY {order}"
    else:
        query, values = check_text("--sql", sql, "a query").strip().rstrip(";"), []
    path = None if export is None else Path(check_path("--export", export)).absolute()
    if path is not None:
        check_output(path, "--export", tuple(EXPORTS))
        if path.is_symlink():
            raise InputError(f"--export: {shown(path)}: it is a link, expected a file.")
    library = duckdb()
    with reading(store, [] if path is None else [str(path)]) as (connection, made):
        counts = connection.execute(f"SELECT status, count(*) FROM {TABLE} GROUP BY 1 ORDER BY 1").fetchall()
        ((version,),) = connection.execute("SELECT value FROM about WHERE key = 'version'").fetchall()
        try:
            if path is not None:
                _export(connection, f"SELECT * FROM ({query}\n) LIMIT {most}", values, path)
            answer = connection.execute(f"SELECT * FROM ({query}\n) LIMIT {0 if exporting else most}", values)
            shape = tuple(column[0] for column in answer.description)
            result = tuple(tuple(map(_plain, row)) for row in answer.fetchall())
        except library.Error as error:
            if is_of_file(error):
                raise
            raise InputError(f"{'--sql' if sql else '--where'}: {_reason(error)}") from None
    exported = None if path is None else shown(export or "")
    return Results(shown(store), shape, result, dict(counts), version, exported, made)


def _condition(where: str | None, filters: Mapping[str, str]) -> tuple[str, list[Any]]:
    """What rows must fulfil, in SQL, and the values of its question marks."""
    conditions = [f"({check_text('--where', where, 'a condition')})"] if where else []
    conditions += [f"CAST({_columns([name])[0]} AS VARCHAR) GLOB ?" for name in filters]
    values: list[Any] = [check_text(f"--filter {name}", pattern, "a text") for name, pattern in filters.items()]
    return f" WHERE {' AND '.join(conditions)}" if conditions else "", values


def _export(connection: Any, query: str, values: list[Any], path: Path) -> None:
    with faults(path, "--export: ", "written"):
        path.unlink(missing_ok=True)
    name = str(path).replace("'", "''")
    copy = f"COPY ({query}) TO '{name}' ({EXPORTS[path.suffix.lower()]}, USE_TMP_FILE false)"
    try:
        connection.execute(copy, values)
    except duckdb().IOException as error:
        if str(path) in str(error):
            raise InputError(f"--export: {shown(path)}: it cannot be written ({_reason(error)}).") from None
        raise


def _default_columns(exporting: bool, timings: bool) -> tuple[str, ...]:
    if not exporting:
        return (*FIRST, "seconds") if timings else FIRST
    return NAMES if timings else SAME_EACH_RUN


def _columns(names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise InputError(f"--columns: got {names[:80]!r}, expected a list of names.")
    for name in names:
        if name not in NAMES:
            raise UnknownNameError("column", name, NAMES, "pebble results --help")
    return tuple(names)


def _order(names: Sequence[str]) -> str:
    _columns([name.removeprefix("-") for name in names])
    words = [f"{name.removeprefix('-')} {'DESC' if name.startswith('-') else 'ASC'} NULLS LAST" for name in names]
    return ", ".join([*words, "task_id"])


def _plain(value: Any) -> Any:
    """What JSON can say of a value of the database."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def _reason(error: Exception) -> str:
    """The first line of what the database says, as one sentence."""
    line = str(error).strip().splitlines()[0][:300]
    return f"{line.partition(': ')[2] or line}".rstrip(".") + "; see `pebble results --help` for the columns."
