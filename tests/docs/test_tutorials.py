"""The tutorials run as they stand, and the whole documentation builds without a warning and without network."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.py"))
pytestmark = pytest.mark.slow


def run(arguments, cwd):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
    return subprocess.run([sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("script", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs(script, tmp_path):
    if "pebble.sweep(" in script.read_text():
        pytest.importorskip("duckdb", reason="the extra `sweep` is not installed")
    done = run([str(script)], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert not list(tmp_path.iterdir())  # what it writes, it writes elsewhere


def test_the_documentation_builds(tmp_path):
    for name in ("duckdb", "sphinx", "myst_parser", "sphinx_gallery", "numpydoc", "pydata_sphinx_theme"):
        pytest.importorskip(name)
    done = run(["-m", "sphinx", "-W", "--keep-going", "-q", str(ROOT / "docs"), str(tmp_path / "html")], tmp_path)
    assert done.returncode == 0, done.stderr
    for script in TUTORIALS:
        page = (tmp_path / "html" / "auto_tutorials" / f"{script.stem}.html").read_text()
        assert f"{script.stem}.ipynb" in page  # the notebook to download
        assert "sphx-glr-script-out" in page  # what it printed
    theory = (tmp_path / "html" / "theory.html").read_text()
    assert "<math" in theory
    assert not re.search(r"<script[^>]*src=\"https?:", theory)
