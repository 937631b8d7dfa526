"""The rooms of the house and their floors: an import leads to the same room or to a lower floor, never up or across."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# from the ground up; rooms of one floor do not know each other
FLOORS: tuple[tuple[str, ...], ...] = (
    ("errors", "certificate"),
    ("units", "system"),
    ("workloads",),
    ("traces", "cdag", "counters"),
    ("models", "schedules", "game"),
    ("bounds", "simulation"),
    ("solvers", "families", "timing"),
    ("proof", "tuning"),
    ("plots",),
    ("reports",),
    ("sweeps",),
    ("webpage",),
    ("cli",),
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
BESIDE = ("schedules", "models")  # at the top of the tree, with links to them where there can be links
FRONT = {"__init__", "__main__"}  # the front door stands before the house: lazily, it leads to any room


def modules() -> Iterator[tuple[Path, str]]:
    """Every module, and its dotted name below ``pebble``."""
    for folder, prefix in (("pebble", ""), ("schedules", "schedules."), ("models", "models.")):
        for path in sorted((ROOT / folder).rglob("*.py")):
            inside = path.relative_to(ROOT / folder)
            if folder != "pebble" or inside.parts[0] not in BESIDE:
                yield path, prefix + ".".join(inside.with_suffix("").parts)


def imports(path: Path, name: str) -> Iterator[tuple[str, int]]:
    """What a module imports of the package when it runs, relative imports resolved; not for type checkers only."""
    tree = ast.parse(path.read_text())
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
        for statement in node.body
        for inner in ast.walk(statement)
    }
    package = name.split(".")[:-1]
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = ["pebble", *package][: len(package) + 2 - node.level]
                base = ".".join([*above, base]).rstrip(".")
            # `from pebble import x` names a room or a name of the front door
            found = [f"pebble.{alias.name}" for alias in node.names] if base == "pebble" else [base]
        else:
            continue
        for target in found:
            if target == "pebble" or target.startswith("pebble."):
                yield target, node.lineno


def room_of(name: str) -> str:
    return name.split(".")[0]


ALL = list(modules())


@pytest.mark.parametrize(("path", "name"), ALL, ids=[name for _, name in ALL])
def test_imports_lead_down(path: Path, name: str) -> None:
    room = room_of(name)
    if room in FRONT:
        return
    for target, line in imports(path, name):
        other = room_of(target.removeprefix("pebble").removeprefix(".") or "__init__")
        if other in ("__init__", "__version__", room):
            continue
        assert other in FLOOR, f"{path}:{line} imports {target}, which is in no room"
        assert FLOOR[other] < FLOOR[room], f"{path}:{line}: {room} imports {target}, which is not below it"


def test_the_root_holds_only_the_front_door_and_the_ground() -> None:
    files = {path.stem for path in (ROOT / "pebble").glob("*.py")}
    assert files == {"__init__", "__main__", "errors", "units"}
    folders = {init.parent.name for init in (ROOT / "pebble").glob("*/__init__.py")} - set(BESIDE)
    assert folders == set(FLOOR) - {"errors", "units", *BESIDE}
    assert all((ROOT / name / "__init__.py").is_file() for name in BESIDE)


def test_the_checker_stands_alone() -> None:
    for path, name in ALL:
        if room_of(name) == "certificate":
            assert {room_of(t.removeprefix("pebble.")) for t, _ in imports(path, name)} <= {"certificate"}


def test_no_two_modules_have_names_that_a_reader_confuses() -> None:
    folders: dict[str, dict[str, str]] = {}
    for _, name in ALL:
        folder, _, stem = name.rpartition(".")
        if stem not in ("__init__", "__main__"):
            # in one folder no two names differ by a plural or an underscore; in several, one name means one thing
            plain = stem.strip("_").removesuffix("s")
            seen = folders.setdefault(folder, {})
            assert plain not in seen, f"{folder}: {stem} and {seen[plain]}"
            seen[plain] = stem


def test_a_wrong_arrow_would_be_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "from __future__ import annotations\n\ndef f():\n    from ..cli import main\n    from pebble import plots\n"
    )
    assert {target for target, _ in imports(wrong, "workloads.wrong")} == {"pebble.cli", "pebble.plots"}
