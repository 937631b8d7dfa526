"""The room of cache models: loops that can be read, and a base that knows no model."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pebble.models import caches
from pebble.models.caches import CachePolicy, parse_policy, policy_names
from pebble.models.caches.queues import Fifo, Lru

FILES = sorted(Path(caches.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_function_is_long_or_takes_many_arguments(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            assert len(node.args.args) + len(node.args.kwonlyargs) <= 10, node.name
            assert (node.end_lineno or 0) - node.lineno < 80, node.name


def test_the_base_names_no_model_and_no_replacement() -> None:
    code = ast.unparse(ast.parse((Path(caches.__file__).parent / "policy.py").read_text()))
    imported = [line for line in code.splitlines() if line.startswith("from pebble.models.caches")]
    assert not imported and "oldest-of" not in code and "fifo" not in code
    assert not {"replacement", "drawn", "pad_lines"} & set(dir(CachePolicy))


def test_no_model_is_a_kind_of_another() -> None:
    kinds = {type(parse_policy(name)) for name in policy_names()}
    assert {Fifo, Lru} <= kinds
    assert not [(a, b) for a in kinds for b in kinds if a is not b and issubclass(a, b)]


def test_a_curve_says_where_it_was_simulated() -> None:
    assert not parse_policy("lru").curve_note and not parse_policy("opt").curve_note
    for name in ("lru+no-write-allocate", "fifo", "set-16"):
        assert parse_policy(name).curve_note.startswith("every cache size was simulated")
