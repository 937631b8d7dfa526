"""Sweeps in this very process, and a store that one of them made."""

from __future__ import annotations

from pathlib import Path

import pytest

import pebble
from pebble.sweeps import sweep as room
from tests.sweeps.small import SWEEP


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.sweeps.kills import Here

    monkeypatch.setattr(room, "Local", Here)


@pytest.fixture
def store(tmp_path: Path, in_this_process: None) -> Path:
    path = tmp_path / "r.duckdb"
    pebble.sweep(SWEEP, path)
    return path
