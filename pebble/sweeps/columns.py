"""The columns of a result: their names, types and units; and the check of rows that came from elsewhere."""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

TABLE = "results"
DONE, REFUSED, FAILED = "done", "refused", "failed"
MOST_ANSWER_BYTES = 16 * 2**20
_LONGEST_TEXT = 2**20
_MOST = 2**63 - 1
_PYTHON = {"VARCHAR": str, "BIGINT": int, "DOUBLE": float}


class Column(NamedTuple):
    """One column of the table.

    ``filled`` says by whom: ``sweep`` before a worker is asked, ``worker``, or ``run`` for what differs between two
    runs of one sweep and is therefore left out of comparisons.
    """

    name: str
    type: str
    meaning: str
    filled: str = "worker"


_TEXT, _COUNT, _REAL = "VARCHAR", "BIGINT", "DOUBLE"
COLUMNS: tuple[Column, ...] = (
    Column("task_id", _TEXT, "SHA-256 of the canonical form of the task", "sweep"),
    Column("kind", _TEXT, "traffic: a schedule through a cache; game: a computation DAG, solved", "sweep"),
    Column("status", _TEXT, "done; refused: the question has no answer; failed: no answer came", "sweep"),
    Column("reason", _TEXT, "why it was refused, or failed", "sweep"),
    Column("workload", _TEXT, "name and shape, or the family and parameters of a DAG", "sweep"),
    Column("family", _TEXT, "of the workload or DAG", "sweep"),
    Column("machine", _TEXT, "SKU; null for a bare memory", "sweep"),
    Column("machine_file_sha256", _TEXT, "of the machine file", "sweep"),
    Column("sms", _COUNT, "SMs"),
    Column("cache_bytes", _COUNT, "the cache between the SMs and DRAM"),
    Column("tile", _TEXT, "block tile, cut to the problem"),
    Column("stages", _COUNT, "steps whose tiles a block holds at once"),
    Column("blocks_per_sm", _COUNT, "blocks that run at once on an SM"),
    Column("policy", _TEXT, "cache model"),
    Column("execution", _TEXT, "how blocks run in time"),
    Column("schedule", _TEXT, "tile order or schedule; of a game its moves, as JSON"),
    Column("flops", _COUNT, "operations of the workload, two per multiply-add"),
    Column("capacity_bytes", _COUNT, "what the bound assumes can be held"),
    Column("lower_bound_bytes", _COUNT, "proved: no schedule that holds so much moves less"),
    Column("lower_bound_method", _TEXT, "the theorem; of a game what proved its bound"),
    Column("dram_read_bytes", _COUNT, "fetched from DRAM"),
    Column("dram_write_bytes", _COUNT, "written to DRAM, lines still dirty at the end included"),
    Column("dram_bytes", _COUNT, "read and written"),
    Column("dirty_residue_bytes", _COUNT, "the part of the writes still dirty in the cache at the end"),
    Column("l2_hit_rate", _REAL, "lines that needed no fetch over lines touched"),
    Column("ratio_to_lower_bound", _REAL, "dram_bytes over lower_bound_bytes"),
    Column("explicit_bytes", _COUNT, "the best schedule known under explicit control"),
    Column("explicit_schedule", _TEXT, "what that schedule does"),
    Column("capacity_pebbles", _COUNT, "game: pebbles (weight units) that fit in fast memory", "sweep"),
    Column("variant", _TEXT, "game: the rules"),
    Column("solver", _TEXT, "game: the solver that ran; auto names the one it chose"),
    Column("lower_bound_cost", _COUNT, "game: no pebbling costs less, in values (weight units)"),
    Column("upper_bound_cost", _COUNT, "game: the cheapest pebbling found, replayed, costs this"),
    Column("stop_reason", _TEXT, "why the work ended"),
    Column("solver_versions", _TEXT, "game: versions of the solver libraries, as JSON"),
    Column("version", _TEXT, "of pebble"),
    Column("task", _TEXT, "the canonical form", "sweep"),
    Column("seconds", _REAL, "that the answer took; a batch's common part is shared out", "run"),
    Column("attempts", _COUNT, "how often it was begun", "run"),
)
NAMES: tuple[str, ...] = tuple(column.name for column in COLUMNS)
SAME_EACH_RUN: tuple[str, ...] = tuple(column.name for column in COLUMNS if column.filled != "run")
_ANSWERED = {column.name: column for column in COLUMNS if column.filled == "worker"}


class AnswerError(Exception):
    """What came back from a worker is no answer."""


def read_answer(content: bytes, tasks: int, version: str) -> list[dict[str, Any]]:
    """The answers of a batch, from JSON that a worker sent: one per task, of the known columns and types alone.

    Returns
    -------
    list of dict
        Each with ``status``, ``reason``, ``seconds`` and those columns that a worker fills.

    Raises
    ------
    AnswerError
        Anything else: too long, not JSON, another version, missing or foreign keys, wrong types.
    """
    if not isinstance(content, bytes):
        raise AnswerError(f"the worker sent {type(content).__name__}, expected bytes")
    if len(content) > MOST_ANSWER_BYTES:
        raise AnswerError(f"the worker's answer has more than {MOST_ANSWER_BYTES // 2**20} MiB")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise AnswerError("the worker's answer is not JSON") from None
    if not isinstance(document, dict) or document.keys() != {"version", "rows"}:
        raise AnswerError("the worker's answer is no document of this program")
    if document["version"] != version:
        raise AnswerError(f"the worker runs pebble {str(document['version'])[:20]}, the sweep {version}")
    rows = document["rows"]
    if not isinstance(rows, list) or len(rows) != tasks:
        raise AnswerError(f"the worker's answer has not the {tasks} rows that were asked for")
    return [_row(row) for row in rows]


def _row(row: object) -> dict[str, Any]:
    if not isinstance(row, dict) or not {"status", "reason", "seconds"} <= row.keys():
        raise AnswerError("a row of the worker's answer is none")
    if row["status"] not in (DONE, REFUSED, FAILED) or (row["status"] == DONE) != (row["reason"] is None):
        raise AnswerError("a row of the worker's answer has no status")
    if type(row["seconds"]) is not float or not 0 <= row["seconds"] < math.inf:
        raise AnswerError("a row of the worker's answer has no time")
    for name, value in row.items():
        if name == "reason" and isinstance(value, str | None):
            row[name] = value and value[:_LONGEST_TEXT]
        elif name not in ("status", "seconds"):
            _check(name, value)
    return row


def _check(name: str, value: object) -> None:
    column = _ANSWERED.get(name)
    if column is None:
        raise AnswerError(f"the worker's answer has an unknown column {name[:40]!r}")
    if value is None:
        return
    if type(value) is not _PYTHON[column.type]:  # not isinstance: True is no count
        raise AnswerError(f"the worker's answer has {type(value).__name__} in {name}, expected {column.type}")
    too_long = isinstance(value, str) and len(value) > _LONGEST_TEXT
    too_large = isinstance(value, int | float) and not abs(value) <= _MOST  # as NaN and infinity are
    if too_long or too_large:
        raise AnswerError(f"the worker's answer has too large a value in {name}")
