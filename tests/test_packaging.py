"""What is packaged is what is in the tree, under pebble and nowhere else."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pebble
from pebble.cli import main
from pebble.webpage.page import SCRIPTS

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ROOMS = {"pebble": "pebble", "schedules": "pebble.schedules", "models": "pebble.models"}


def test_package_list_matches_the_tree() -> None:
    results = set()
    for folder, package in ROOMS.items():
        for init in (ROOT / folder).rglob("__init__.py"):
            inside = init.parent.relative_to(ROOT / folder)
            if inside.parts[:1] not in (("schedules",), ("models",)) or folder != "pebble":
                results.add(".".join([package, *inside.parts]))
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == results


def test_the_page_has_its_assets_in_the_package() -> None:
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["pebble.webpage"]
    packed = {path.name for pattern in patterns for path in (ROOT / "pebble" / "webpage").glob(pattern)}
    assert packed == {path.name for path in (ROOT / "pebble" / "webpage" / "assets").iterdir()}
    assert {"page.html", "style.css", *SCRIPTS} == packed


def test_version_is_told_once() -> None:
    assert "version" not in PROJECT["project"] and "version" in PROJECT["project"]["dynamic"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"]["attr"] == "pebble.__version__"
    assert f"version: {pebble.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {pebble.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_every_python_that_is_promised_is_tried() -> None:
    promised = [name.rpartition(" :: ")[2] for name in PROJECT["project"]["classifiers"] if ":: Python :: 3." in name]
    assert PROJECT["project"]["requires-python"] == f">={promised[0]}"
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    tried = re.search(r"python: \[(.*)\]", workflow)
    assert tried is not None and json.loads(f"[{tried[1]}]") == promised
    for system in ("ubuntu", "macos", "windows"):
        assert workflow.count(f"{system}-latest") >= 2  # installed, and in place


def test_an_entry_of_the_changelog_is_two_lines_at_most() -> None:
    entries = re.split(r"^(?=- |#|\n)", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    lines = [entry.strip().splitlines() for entry in entries if entry.startswith("- ")]
    assert lines and not [entry for entry in lines if len(entry) > 2 or max(map(len, entry)) > 125]


def test_every_dependency_has_bounds_and_a_version_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["versions", "--json"]) == 0
    spec = json.loads(capsys.readouterr().out)
    for requirement in PROJECT["project"]["dependencies"]:
        name = re.split(r"[<>=]", requirement)[0]
        assert ">=" in requirement and "<" in requirement, requirement
        assert spec[name][0].isdigit(), name
    for extra in ("sweep", "proofs", "ncu", "browser"):
        for requirement in PROJECT["project"]["optional-dependencies"][extra]:
            told_of = spec[re.split(r"[<>=]", requirement)[0]]
            assert told_of == "not installed" or told_of[0].isdigit(), requirement


def test_what_users_are_told_to_install_needs_no_index_that_has_this_package() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    known = {".", *(f".[{extra}]" for extra in extras), *(name for group in extras.values() for name in group)}
    spec = set()
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.rst"), *(ROOT / "pebble").rglob("*.py")]:
        spec |= set(re.findall(r"\bpip install (?:--\S+ )*'?([^'`\s]+)", path.read_text()))
    assert spec - {"pandas"} <= known
    assert {"duckdb>=1.2", "distributed>=2024.8", "exact>=2.2", "ncu-report"} <= spec


def test_the_links_that_checkers_follow() -> None:
    for name in ("schedules", "models"):
        link = ROOT / "pebble" / name
        if link.is_symlink():  # a clone without link support has a text file here, an archive nothing
            assert link.resolve() == ROOT / name


@pytest.mark.parametrize("kind", ["links", "texts", "nothing"])
def test_a_tree_works_with_links_and_without(tmp_path: Path, kind: str) -> None:
    tree = tmp_path / "tree"
    for folder in ROOMS:
        unwanted = ("models", "schedules", "__pycache__") if folder == "pebble" else ("__pycache__",)
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns(*unwanted))
    for name in ("models", "schedules"):
        if kind == "links":
            (tree / "pebble" / name).symlink_to(f"../{name}")
        elif kind == "texts":
            (tree / "pebble" / name).write_text(f"../{name}")
    code = (
        "import sys, pebble.models.machine, pebble.schedules.orders; from pebble.cli import main; "
        "told = [m.__path__[0] for m in (pebble.models, pebble.schedules)]; "
        f"assert all(path.startswith({str(tree)!r}) for path in told), told; "
        "sys.exit(main(['compare', 'gemm', '-m', '64', '-n', '64', '-k', '64', '--gpu', 'a40', '--schedules', 'row']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "row" in done.stdout, done.stderr


def test_pypi_namesake_is_refused(tmp_path: Path) -> None:
    copy = tmp_path / "pebble"
    (copy / "pool").mkdir(parents=True)
    (copy / "__init__.py").write_text((ROOT / "pebble" / "__init__.py").read_text())
    done = subprocess.run(
        [sys.executable, "-c", "import pebble"], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "pip uninstall Pebble" in done.stderr
