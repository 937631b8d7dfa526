"""Tasks: the smallest question of a sweep, in one canonical form, named by its hash.

A task is plain data. Equal questions have equal canonical forms, however the sweep that asks them was written, and so
the same id: that is what makes a sweep resumable, and two sweeps comparable. Which version of the program answers is
no part of it; a store holds answers of one version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

TRAFFIC, GAME = "traffic", "game"
MOST_TASKS = 1_000_000
MOST_IN_BATCH = 64  # schedules that share a kernel and its bound; also what a dying worker takes with it


def canonical(value: object) -> str:
    """Plain data as JSON with sorted keys and no blanks: equal data give equal text.

    Examples
    --------
    >>> canonical({"b": [1, 2], "a": None})
    '{"a":null,"b":[1,2]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


@dataclass(frozen=True)
class Task:
    """One row to be computed.

    Attributes
    ----------
    question : mapping
        Plain data: ``kind`` is ``traffic`` (a workload, a machine or memory, a kernel, a schedule) or ``game`` (a
        computation DAG, a capacity, a solver).
    """

    question: Mapping[str, Any]

    @cached_property
    def text(self) -> str:
        """The canonical form."""
        return canonical(self.question)

    @cached_property
    def id(self) -> str:
        """SHA-256 of the canonical form, in hex."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def kind(self) -> str:
        """``traffic`` or ``game``."""
        return str(self.question["kind"])


@dataclass(frozen=True)
class Batch:
    """Tasks that differ in their schedule alone, computed together because they share a kernel and its bound.

    Attributes
    ----------
    tasks : tuple of Task
    machine_file : str or None
        The text of a machine file of the user's own, which a worker on another computer does not have.
    """

    tasks: tuple[Task, ...]
    machine_file: str | None = None

    def message(self, version: str) -> bytes:
        """What a worker is sent: JSON."""
        tasks = [task.question for task in self.tasks]
        return canonical({"version": version, "machine_file": self.machine_file, "tasks": tasks}).encode()

    def singles(self) -> tuple[Batch, ...]:
        """Each task alone, so that one that brings its worker down takes no others with it."""
        return tuple(Batch((task,), self.machine_file) for task in self.tasks)


def batches_of(tasks: Iterable[Task], machine_files: Mapping[str, str]) -> list[Batch]:
    """Tasks in batches, in the order of the plan; ``machine_files`` has the text of own machine files by SHA-256."""
    together: dict[str, list[Task]] = {}
    for task in tasks:
        shared = {key: value for key, value in task.question.items() if key != "schedule"}
        together.setdefault(canonical(shared) if task.kind == TRAFFIC else task.text, []).append(task)
    results = []
    for group in together.values():
        machine = group[0].question.get("machine")
        file = machine_files.get(machine["sha256"]) if machine else None
        for begin in range(0, len(group), MOST_IN_BATCH):
            results.append(Batch(tuple(group[begin : begin + MOST_IN_BATCH]), file))
    return results
