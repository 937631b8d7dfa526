"""Families, workloads and kernels answer for themselves: nobody outside their rooms asks one for its type."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pebble.families import FAMILIES
from pebble.schedules.tables.registry import KERNELS
from tests.test_rooms import ALL, ROOT

INSIDE = ("families", "workloads")
ROOTS = ("Workload", "Family", "TableKernel")


def subclasses() -> set[str]:
    """The names of all classes that descend from `ROOTS`, and of schedules that belong to one kernel."""
    parents = {}
    for path, _ in ALL:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                bases = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
                parents[node.name] = {ast.unparse(base) for base in bases}
    results = set(ROOTS)
    while more := {name for name, bases in parents.items() if bases & results} - results:
        results |= more
    return results | {
        name for name in parents if name.endswith("Schedule") and name.removesuffix("Schedule") in results
    }


KNOWN = subclasses()


def asked(source: str) -> Iterator[tuple[int, str]]:
    """Line and type of every question about a type of `KNOWN`: `isinstance`, `type(...) is`, a `match` on a class."""
    for node in ast.walk(ast.parse(source)):
        parts: list[ast.expr] = []
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            parts = [node.args[1]]
        elif isinstance(node, ast.Compare) and ast.unparse(node.left).startswith("type("):
            parts = node.comparators
        elif isinstance(node, ast.MatchClass):
            parts = [node.cls]
        for part in parts:
            for name in ast.walk(part):
                if isinstance(name, ast.Name | ast.Attribute):
                    word = name.id if isinstance(name, ast.Name) else name.attr
                    if word in KNOWN:
                        yield node.lineno, word


@pytest.mark.parametrize(("path", "name"), ALL, ids=[name for _, name in ALL])
def test_nobody_asks_a_family_a_workload_or_a_kernel_for_its_type(path: Path, name: str) -> None:
    if name.split(".")[0] not in INSIDE:
        assert not list(asked(path.read_text())), path


def test_a_question_would_be_found() -> None:
    assert {"Gemm", "Attention", "Ffn", "KernelFamily", "GemmKernel", "GroupedKernel"} <= KNOWN
    source = "isinstance(w, Gemm | Ffn)\ntype(w) is Attention\nmatch w:\n  case Conv2d(): pass\nisinstance(w, int)"
    assert [word for _, word in asked(source)] == ["Gemm", "Ffn", "Attention", "Conv2d"]


def test_each_family_with_kernels_has_one_that_walks_its_tables() -> None:
    simulated = {name: family.simulated for name, family in FAMILIES.items() if family.simulated}
    assert simulated.keys() == KERNELS.keys()
    for name, family in simulated.items():
        assert family.kernel is KERNELS[name]
        assert family.kernel.shape is FAMILIES[name].shape


# the modules that state, search and check it, and the most files of the package that may name it: a new theorem is a
# module, a line of its family, a check and the name of that (`docs/extending.rst`); its tests and page come besides
THEOREMS = {
    "9": (("passes", "pass_search"), 7),
    "10": (("lagrangian",), 18),  # of which seven are of Theorem 15, which prices the same chains
    "11": (("projections",), 5),
    "12": (("visits", "visit_search"), 6),
    "14": (("middle",), 2),
    "15": (("cases",), 12),
}


@pytest.mark.parametrize("theorem", THEOREMS)
def test_a_theorem_is_named_by_few_files(theorem: str) -> None:
    modules, most = THEOREMS[theorem]
    named = re.compile(rf"Theorems? (?:\d+(?:, | and ))*{theorem}\b")
    imported = re.compile(
        rf"^\s*from (?:pebble\.(?:bounds|certificate))?\.(?:{'|'.join(modules)})\w* import", re.MULTILINE
    )
    sources = {path: path.read_text() for path, _ in ALL}
    files = {path for path, source in sources.items() if named.search(source) or imported.search(source)}
    files |= {path for path, name in ALL if name.split(".")[0] in ("bounds", "certificate") and path.stem in modules}
    assert len(files) <= most, sorted(map(str, files))


def test_who_bounds_a_group_knows_no_theorem() -> None:
    """But for the lists of uses in `accounting`, which families take."""
    for name in ("weighted", "parts", "memories"):
        source = (ROOT / "pebble" / "bounds" / f"{name}.py").read_text()
        assert not re.search(r"import .*\b(By|Line|Pass|Visit|Lagrangian|Gated)\w+", source), name
