"""The store of a sweep: one DuckDB file, written by one process, each batch of rows in one transaction.

A file is data: it is opened without access to other files and without extensions, and nothing in it is run. What a
killed process was writing is rolled back when the file is next opened, so that there is never half a row.

DuckDB lets no other process read a file that one writes. So who writes a store publishes a copy beside it now and then,
``NAME.snapshot``, whole or not at all; it is read in the store's place, and goes when the store is closed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pebble import __version__
from pebble.errors import InputError
from pebble.sweeps.columns import COLUMNS, FAILED, NAMES, TABLE
from pebble.system.clock import interrupts_wait
from pebble.system.files import check_output, check_path, exists, shown

SCHEMA = 1  # of the table; it rises when a column goes or changes its meaning
MOST_STORE_BYTES = 64 * 2**30
_ENDINGS = (".duckdb", ".db")
_SHAPE = json.dumps([{column.name: column.type for column in COLUMNS}])
_MEMORY = "2GB"
_SNAPSHOT = '"a snapshot"'  # its name to the database, which calls the store by that of its file
_REST = 20  # a snapshot is made when this many times what the last one took has passed

_open: set[str] = set()  # stores that this process writes: DuckDB's lock is between processes
_lock = threading.Lock()


def duckdb() -> Any:
    """The library, or one sentence."""
    try:
        import duckdb
    except ImportError:
        raise InputError(
            "the store of a sweep needs DuckDB, which is not installed; run `pip install 'duckdb>=1.2'`."
        ) from None
    return duckdb


class InUseError(InputError):
    """Another process has the store, or another sweep of this one."""


class UnwritableError(InputError):
    """The store cannot be written, for want of space or otherwise.

    Parameters
    ----------
    path : Path
    why : str
        What the system says.
    kept : str
        What it holds, as far as is known.
    """

    def __init__(self, path: Path, why: str, what_stays: str = "") -> None:
        text = f"it cannot be written ({why}){what_stays and '; '}{what_stays}; add --resume once it can be"
        super().__init__(f"store {shown(path)}: {text}.")
        self.path = path
        self.why = why


def _connect(path: Path, read_only: bool) -> Any:
    library = duckdb()
    config = {
        "threads": "1",  # rows come in the order in which they are asked for
        "memory_limit": _MEMORY,
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_unsigned_extensions": "false",
    }
    with suppress(OSError):
        if path.stat().st_size > MOST_STORE_BYTES:
            raise InputError(f"store {shown(path)}: it is larger than {MOST_STORE_BYTES // 2**30} GiB, too large.")
    try:
        return library.connect(str(path), read_only=read_only, config=config)
    except library.Error as error:
        text = str(error)
        if "set lock" in text:
            match = re.search(r"PID (\d+)", text)
            who = f"process {match.group(1)}" if match else "another process"
            raise InUseError(
                f"store {shown(path)}: {who} uses it, expected nobody: one sweep writes one store; wait until it has "
                "ended, or name another."
            ) from None
        raise InputError(f"store {shown(path)}: it is no DuckDB file of `pebble sweep`, or is damaged.") from None


def is_of_file(error: Exception) -> bool:
    """Whether the library complains of a file, which is damaged or cannot be written, and not of a query."""
    library = duckdb()
    kinds = (library.IOException, library.FatalException, library.InternalException, library.SerializationException)
    failed = isinstance(error, library.TransactionException) and "Failed to commit" in str(error)
    return failed or isinstance(error, kinds) or "Corrupt database file" in str(error)


@contextmanager
def file_faults(path: Path) -> Iterator[None]:
    """Turn what the library says of the store's file into one sentence, and of a Ctrl-C into what that usually is."""
    try:
        yield
    except RuntimeError as error:
        if "interrupted" in str(error).lower():  # it swallows the KeyboardInterrupt that ends its query
            raise KeyboardInterrupt from None
        raise
    except duckdb().Error as error:
        if isinstance(error, duckdb().InterruptException):
            raise KeyboardInterrupt from None
        if not is_of_file(error):
            raise
        reason = str(error).strip().partition("\n")[0]
        why = reason.partition(": ")[2].removeprefix("Failed to commit: ")[:200].rstrip(".")
        if "No space left" in reason:
            why = "the disk is full"
        if re.search(r"\b(write|space|sync)\b", reason):
            raise UnwritableError(path, why) from None
        raise InputError(f"store {shown(path)}: it is damaged; name another ({why}).") from None


def _snapshot_of(path: Path) -> Path:
    """Where the snapshot of a store is, by whichever name it is called."""
    real = Path(os.path.realpath(path))
    return real.with_name(real.name + ".snapshot")


def _quoted(path: str | Path) -> str:
    """A name as SQL has it."""
    return "'" + str(path).replace("'", "''") + "'"


def _shut(connection: Any, writes: Sequence[str] = (), folder: Path | None = None) -> None:
    """Take from a connection all access to files but to its own, those named and those of a folder."""
    connection.execute(f"SET allowed_paths = [{', '.join(map(_quoted, writes))}]")
    if folder is not None:
        connection.execute(f"SET allowed_directories = [{_quoted(folder)}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _check(connection: Any, path: Path) -> str:
    """The version of pebble whose answers it holds; a file that is no store, or one of another kind, is refused."""
    library = duckdb()
    try:
        result = dict(connection.execute("SELECT key, value FROM main.about").fetchall())
        columns = connection.execute(
            "SELECT column_name, data_type FROM information_schema.columns c JOIN information_schema.tables t "
            "USING (table_schema, table_name) WHERE table_schema = 'main' AND table_name = ? "
            "AND table_type = 'BASE TABLE' ORDER BY ordinal_position",
            [TABLE],
        ).fetchall()
    except library.Error as error:
        if is_of_file(error):
            raise
        result, columns = {}, []
    version, wanted = result.get("version"), [(column.name, column.type) for column in COLUMNS]
    if version is None or result.get("schema") != str(SCHEMA) or columns != wanted:
        raise InputError(f"store {shown(path)}: it is no store of `pebble sweep`, or one of another version.")
    return str(version)


def _create(path: Path) -> None:
    """An empty store, there as a whole or not at all."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    keyed = (f"{c.name} {c.type}{' PRIMARY KEY' if c.name == 'task_id' else ''}" for c in COLUMNS)
    try:
        with file_faults(path), _connect(new, read_only=False) as connection:
            connection.execute("CREATE TABLE about (key VARCHAR PRIMARY KEY, value VARCHAR)")
            connection.execute("INSERT INTO about VALUES ('schema', ?), ('version', ?)", [str(SCHEMA), __version__])
            connection.execute(f"CREATE TABLE {TABLE} ({', '.join(keyed)})")
            connection.execute("CHECKPOINT")  # when it is closed, a full disk would go unsaid
        os.link(new, path)  # unlike a rename, it fails where another sweep was faster
    except FileExistsError:
        raise _taken(path) from None
    finally:
        for left in (new, new.with_name(new.name + ".wal")):
            left.unlink(missing_ok=True)


def _taken(path: Path) -> InputError:
    return InputError(
        f"store {shown(path)}: it exists already, expected a new file; add --resume to compute what is missing in it, "
        "or name another."
    )


class SweepStore:
    """A store that this process writes.

    Parameters
    ----------
    path : str or Path
    resume : bool
        Whether it may exist already.

    Raises
    ------
    InputError
        It exists and may not; another process uses it; it is no store, or one of another version.
    """

    def __init__(self, path: str | Path, resume: bool = False) -> None:
        self.path = Path(check_path("store", path))
        check_output(self.path, "store", _ENDINGS)
        self._key = os.path.realpath(self.path)
        self._snapshot = _snapshot_of(self.path)
        self._folder = self._snapshot.with_name(f".{self._snapshot.name}")  # a folder, where the next one is made
        self._made, self._took = float("-inf"), 0.0
        with _lock:
            if self._key in _open:
                raise InUseError(f"store {shown(path)}: another sweep of this process writes it; name another.")
            _open.add(self._key)
        try:
            there = exists(self.path)
            if there and not resume:
                raise _taken(self.path)
            if not there:
                duckdb()
                with interrupts_wait():
                    _create(self.path)
            self._empty = not there
            self._connection = _connect(self.path, read_only=False)
            try:
                with interrupts_wait(), file_faults(self.path):
                    version = _check(self._connection, self.path)
                    ((name,),) = self._connection.execute("SELECT current_database()").fetchall()
                    self._catalog = '"' + name.replace('"', '""') + '"'
                    self._drop_snapshot()  # of one that was killed
                    _shut(self._connection, folder=self._folder)
                if version != __version__:
                    raise InputError(
                        f"store {shown(self.path)}: it holds answers of pebble {version}, this is {__version__}; "
                        "name another."
                    )
            except BaseException:
                self._connection.close()
                raise
        except BaseException:
            _open.discard(self._key)
            raise

    def done(self) -> frozenset[str]:
        """The ids of tasks that have an answer; those that failed are asked again."""
        with interrupts_wait(), file_faults(self.path):
            rows = self._connection.execute(f"SELECT task_id FROM {TABLE} WHERE status <> ?", [FAILED]).fetchall()
        return frozenset(row[0] for row in rows)

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows, all of them or none, Ctrl-C or not; one that failed before is replaced.

        Raises
        ------
        InputError
            The disk is full, or the file damaged.
        """
        full = [{name: row.get(name) for name in NAMES} for row in rows]
        connection = self._connection
        self._empty = False
        with interrupts_wait(), file_faults(self.path):
            connection.execute("BEGIN TRANSACTION")
            try:
                connection.execute(
                    f"INSERT OR REPLACE INTO {TABLE} SELECT unnest(from_json_strict(?::JSON, ?), recursive := true)",
                    [json.dumps(full, allow_nan=False), _SHAPE],
                )
                connection.execute("COMMIT")
            except BaseException:
                with suppress(duckdb().Error):
                    connection.execute("ROLLBACK")
                raise

    def publish(self) -> None:
        """Let others read what it holds by now, unless that was done a short while ago.

        Where there is no room for a copy, or a reader keeps the last one from being replaced, there is none.
        """
        began = time.monotonic()
        if began - self._made < _REST * self._took:
            return
        new = self._folder / "next"
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            with file_faults(self.path):
                self._connection.execute(f"ATTACH {_quoted(new)} AS {_SNAPSHOT}")
                try:
                    self._connection.execute(f"COPY FROM DATABASE {self._catalog} TO {_SNAPSHOT}")
                except BaseException:
                    with suppress(duckdb().Error):  # which must not take the place of a Ctrl-C
                        self._connection.execute(f"DETACH {_SNAPSHOT}")
                    raise
                self._connection.execute(f"DETACH {_SNAPSHOT}")
            os.replace(new, self._snapshot)
        except (InputError, OSError, duckdb().Error):
            shutil.rmtree(self._folder, ignore_errors=True)
        self._made = time.monotonic()
        self._took = self._made - began

    def _drop_snapshot(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        with suppress(OSError):  # a reader has it still
            self._snapshot.unlink(missing_ok=True)

    def close(self) -> None:
        """Let others use it."""
        with interrupts_wait():  # what it writes last
            self._connection.close()
            self._drop_snapshot()
            _open.discard(self._key)

    def __enter__(self) -> SweepStore:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close()
        if kind is not None and self._empty:  # it was made for a sweep that could not begin
            self.path.unlink(missing_ok=True)


def _connect_to_read(path: Path) -> tuple[Any, str | None]:
    """A connection to a store, or to the snapshot of one that is written, and when that was made."""
    snapshot = _snapshot_of(path)
    for last in (False, False, True):  # a sweep may end between the two looks, and take its snapshot with it
        try:
            with _lock:
                if os.path.realpath(path) in _open:
                    raise InUseError(
                        f"store {shown(path)}: a sweep of this process writes it; wait until it has ended."
                    )
            return _connect(path, read_only=True), None
        except InUseError:
            with suppress(InputError, OSError):
                made = datetime.fromtimestamp(snapshot.stat().st_mtime, UTC).isoformat(timespec="seconds")
                return _connect(snapshot, read_only=True), made
            if last:
                raise
    raise AssertionError


@contextmanager
def reading(path: str | Path, writes: Sequence[str] = ()) -> Iterator[tuple[Any, str | None]]:
    """A connection that reads a store and no other file, and writes only the files named, by COPY.

    With it comes None, or where the store is being written the time, in ISO 8601, of the snapshot that is read instead.

    Raises
    ------
    InputError
        No such file; it is being written and has no snapshot; it is no store.
    """
    path = Path(check_path("store", path))
    duckdb()
    if not exists(path) or path.is_dir():
        raise InputError(f"store {shown(path)}: there is no such file, expected one that `pebble sweep` wrote.")
    connection, made = _connect_to_read(path)
    try:
        with file_faults(path):
            _shut(connection, writes)
            _check(connection, path)
            yield connection, made
    finally:
        connection.close()
