"""The rooms of the house and their floors: an import leads to the same room or to a lower floor, never up or across."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).parents[1]
# from the ground up; rooms of one floor do not know each other
FLOORS: tuple[tuple[str, ...], ...] = (
    ("errors", "certificate"),
    ("units", "system"),
    ("workloads",),
    ("traces", "cdag", "counters", "graphs"),
    ("models", "schedules", "game"),
    ("bounds", "simulation"),
    ("solvers", "families", "timing"),
    ("proof", "tuning"),
    ("plots", "integrations"),
    ("reports",),
    ("api",),
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
    """What a module imports of the package, relative imports resolved; for type checkers only, too."""
    package = name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            results = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = ["pebble", *package][: len(package) + 2 - node.level]
                base = ".".join([*above, base]).rstrip(".")
            # `from pebble.room import x` may name a module; `from pebble import x` a room, or a name of the front door
            inside = [f"{base}.{alias.name}" for alias in node.names]
            modules = [full for full in inside if base == "pebble" or full.removeprefix("pebble.") in MODULES]
            results = modules or [base]
        else:
            continue
        for target in results:
            if target == "pebble" or target.startswith("pebble."):
                yield target, node.lineno


def room_of(name: str) -> str:
    return name.split(".")[0]


ALL = list(modules())
MODULES = {name.removesuffix(".__init__") for _, name in ALL}


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


def circles() -> set[frozenset[str]]:
    """Modules that import each other, directly or by way of others."""
    graph: nx.DiGraph = nx.DiGraph()
    for path, name in ALL:
        if name not in FRONT:
            here = name.removesuffix(".__init__")
            graph.add_edges_from((here, there.removeprefix("pebble.")) for there, _ in imports(path, name))
    graph.remove_nodes_from([name for name in graph if name not in MODULES])
    return {frozenset(result) for result in nx.strongly_connected_components(graph) if len(result) > 1}


def test_modules_import_each_other_only_where_the_map_says_why() -> None:
    on_the_map = (ROOT / "docs" / "architecture.rst").read_text()
    result = circles()
    assert len(result) <= 3
    for circle in result:
        assert f"Circle: {', '.join(f'``{name}``' for name in sorted(circle))}" in on_the_map, sorted(circle)


def test_the_root_holds_only_the_front_door_and_the_ground() -> None:
    files = {path.stem for path in (ROOT / "pebble").glob("*.py")}
    assert files == {"__init__", "__main__", "errors", "units"}
    folders = {init.parent.name for init in (ROOT / "pebble").glob("*/__init__.py")} - set(BESIDE)
    assert folders == set(FLOOR) - {"errors", "units", *BESIDE}
    assert all((ROOT / name / "__init__.py").is_file() for name in BESIDE)


def test_no_function_of_a_report_takes_more_than_eight_parameters() -> None:
    for path in sorted((ROOT / "pebble" / "reports").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                a = node.args
                named = [each.arg for each in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if each]
                assert len(set(named) - {"self", "cls"}) <= 8, f"{path}:{node.lineno}: {node.name}"


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
            assert plain != "base", f"{folder}: {stem} says nothing of what is in it"
            seen = folders.setdefault(folder, {})
            assert plain not in seen, f"{folder}: {stem} and {seen[plain]}"
            seen[plain] = stem


def test_a_wrong_arrow_would_be_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "from __future__ import annotations\n\ndef f():\n    from ..cli import main\n    from pebble import plots\n"
        "if TYPE_CHECKING:\n    from pebble.reports import bound, Report\n    from pebble.reports.fit import x\n"
    )
    result = {target for target, _ in imports(wrong, "workloads.wrong")}
    assert result == {"pebble.cli", "pebble.plots", "pebble.reports.bound", "pebble.reports.fit"}
