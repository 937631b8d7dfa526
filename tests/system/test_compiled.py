"""Where compiled loops are kept, and what is said when they have to be compiled."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOWHERE = {"HOME": "/proc", "XDG_CACHE_HOME": "/proc/nowhere"}
LOOP = """
from pebble.traces.jit import jit

@jit
def twice(x):
    return 2 * x

@jit
def four_times(x):
    return twice(twice(x))
"""


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process of its own, with another environment."""
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    env |= {"PYTHONPATH": str(ROOT), **environment}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)


def folder(**environment: str) -> Path:
    """The folder that a process chooses."""
    return Path(run("import os, pebble; print(os.environ['NUMBA_CACHE_DIR'])", **environment).stdout.strip())


@pytest.mark.posix
def test_the_choice_of_the_user_then_their_cache(tmp_path: Path) -> None:
    chosen = str(tmp_path / "chosen")
    assert folder(NUMBA_CACHE_DIR=chosen) == tmp_path / "chosen"
    assert folder(NUMBA_CACHE_DIR="/proc/nowhere", XDG_CACHE_HOME=chosen).is_relative_to(chosen)
    assert folder(XDG_CACHE_HOME="", HOME=chosen).is_relative_to(chosen)


@pytest.mark.posix
def test_a_home_that_cannot_be_written_leaves_a_folder_for_the_next_call(tmp_path: Path) -> None:
    for _ in range(2):
        result = folder(TMPDIR=str(tmp_path), **NOWHERE)
        assert result.parent.parent == tmp_path and result.is_dir()
        assert result.stat().st_mode & 0o077 == 0


@pytest.mark.posix
@pytest.mark.parametrize("kind", ["open to others", "a link"])
def test_a_folder_that_others_could_fill_is_not_used(tmp_path: Path, kind: str) -> None:
    mine = folder(TMPDIR=str(tmp_path), **NOWHERE).parent
    if kind == "a link":
        mine.rename(tmp_path / "elsewhere")
        mine.symlink_to(tmp_path / "elsewhere")
    else:
        mine.chmod(0o777)
    before = sorted(tmp_path.iterdir())
    result = folder(TMPDIR=str(tmp_path), **NOWHERE)
    assert result.parent == tmp_path and result not in before
    assert sorted(tmp_path.iterdir()) == before  # it went with the process


def test_what_is_compiled_is_told_once_and_found_by_the_next_call(tmp_path: Path) -> None:
    (tmp_path / "loops.py").write_text(LOOP)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import loops; print(loops.four_times(3))"
    kept = str(tmp_path / "kept")
    first, second = (run(code, NUMBA_CACHE_DIR=kept) for _ in range(2))
    assert first.stdout == second.stdout == "12\n"
    assert first.stderr == f"pebble: compiling loops for this machine, once, into {kept}: seconds to a minute\n"
    assert second.stderr == ""


@pytest.mark.posix
def test_what_is_not_kept_says_which_variable_helps(tmp_path: Path) -> None:
    mine = folder(TMPDIR=str(tmp_path), **NOWHERE).parent
    mine.chmod(0o777)
    (tmp_path / "loops.py").write_text(LOOP)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import loops; loops.twice(3)"
    spec = run(code, TMPDIR=str(tmp_path), **NOWHERE).stderr
    assert "as in every call until NUMBA_CACHE_DIR names a folder to write to" in spec


def test_help_names_the_folder_and_the_variable(tmp_path: Path) -> None:
    text = " ".join(run("from pebble.cli import main; main(['--help'])", NUMBA_CACHE_DIR=str(tmp_path)).stdout.split())
    assert f"kept in {tmp_path}; NUMBA_CACHE_DIR names another folder" in text


def test_what_was_kept_of_a_type_that_has_moved_is_made_again(tmp_path: Path) -> None:
    loop = "from pebble.traces.jit import jit\n{}\n@jit\ndef first(pair):\n    return pair.a\n"
    kind = "from typing import NamedTuple\nclass Pair(NamedTuple):\n    a: int\n    b: int\n"
    here, ask = tmp_path / "loops.py", "from loops import Pair, first; print(first(Pair(3, 4)))"
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "kept"), "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    (tmp_path / "old.py").write_text(kind)
    here.write_text(loop.format("from old import Pair"))
    assert run(ask, **environment).stdout == "3\n"
    (tmp_path / "old.py").unlink()
    (tmp_path / "new.py").write_text(kind)
    here.write_text(loop.format("from new import Pair"))
    again = run(ask, **environment)
    assert again.stdout == "3\n" and "compiling" in again.stderr
