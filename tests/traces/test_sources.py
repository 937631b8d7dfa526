"""Compiled loops that are kept are used only while all that they were made from is the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pebble.solvers.several import astar
from pebble.traces.sources import _sources, stamp_of

_CALLER = """
from pebble.callee import less
from pebble.numbers import NUMBER
from pebble.traces.jit import jit


@jit
def loop(x):
    return less(x) - NUMBER
"""
_CALLEE = """
from pebble.traces.jit import inner


@inner
def less(x):
    return x - {less}
"""
_RUN = "import sys, pebble; pebble.__path__.append(sys.argv[1]); from pebble.caller import loop; print(loop(10))"


def test_a_search_is_made_from_all_that_it_calls() -> None:
    made_from = _sources(astar.__name__)
    several = {
        f"pebble.solvers.several.{x}" for x in ("astar", "entering", "estimate", "ideals", "rules", "states", "steps")
    }
    assert several | {"pebble.solvers.search.bits"} <= made_from.keys()
    assert "pebble.solvers.several.state_search" not in made_from
    assert stamp_of(astar.__name__) != stamp_of("pebble.solvers.several.states")


def _write(folder: Path, less: int, number: int) -> None:
    (folder / "callee.py").write_text(_CALLEE.format(less=less), encoding="utf-8")
    (folder / "numbers.py").write_text(f"NUMBER = {number}\n", encoding="utf-8")
    (folder / "caller.py").write_text(_CALLER, encoding="utf-8")


def test_a_digest_is_of_what_is_called_and_of_what_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("caller", "callee", "numbers"):
        module = ModuleType(f"pebble.{name}")
        module.__file__ = str(tmp_path / f"{name}.py")
        monkeypatch.setitem(sys.modules, module.__name__, module)
    stamps = set()
    for less, number in ((1, 1), (2, 1), (2, 2), (2, 2)):
        _write(tmp_path, less, number)
        stamp_of.cache_clear()
        stamps.add(stamp_of("pebble.caller"))
    assert len(stamps) == 3


def test_numba_compiles_again_what_calls_something_else(tmp_path: Path) -> None:
    code, environment = tmp_path / "code", os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    code.mkdir()
    for less in (1, 2):
        _write(code, less, 5)
        run = subprocess.run(
            [sys.executable, "-B", "-c", _RUN, str(code)], env=environment, capture_output=True, text=True
        )
        assert run.stdout == f"{10 - less - 5}\n", run.stderr
